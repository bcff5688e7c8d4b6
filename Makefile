# Every target does its own set-up: a virtual environment in .venv, made once and refreshed when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STAMP := $(VENV)/.installed-demo
DEV_STAMP := $(VENV)/.installed-dev

.PHONY: help demo test lint bench docs clean

help:
	@echo "make demo   cluster handwritten digits from several related tasks (no download)"
	@echo "make test   run the tests"
	@echo "make lint   ruff and mypy"
	@echo "make bench  run the benchmarks (minutes; real data from MTCLUST_DATA)"
	@echo "make docs   build the documentation"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[plot]"
	@touch $@

$(DEV_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

demo: $(DEMO_STAMP)
	$(BIN)/python -m mtclust demo --out demo-output

test: $(DEV_STAMP)
	$(BIN)/python -m pytest -n 2 -q

lint: $(DEV_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(DEV_STAMP)
	$(BIN)/python benchmarks/reference_objective.py
	$(BIN)/python benchmarks/without_labels.py
	$(BIN)/python benchmarks/rule_constants.py
	$(BIN)/python benchmarks/number_of_clusters.py
	$(BIN)/python benchmarks/reference_methods.py
	$(BIN)/python benchmarks/cutting_plane.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/dask_cluster.py

docs: $(DEV_STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	$(BIN)/python -m sphinx -W -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist docs/_build demo-output
