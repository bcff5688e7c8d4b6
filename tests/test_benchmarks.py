"""The benchmarks run: each says what it does, and a small one is run to its table."""

import contextlib
import csv
import runpy
import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = sorted(path.name for path in (ROOT / "benchmarks").glob("[a-z]*.py"))
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@pytest.fixture(autouse=True)
def as_a_script_would(monkeypatch):
    """Imports, working directory and threads as where a benchmark is run; all of it as before afterwards."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.chdir(ROOT)
    for name in THREADS:
        monkeypatch.setenv(name, "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a benchmark in this process; what it printed."""

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        with contextlib.suppress(SystemExit) if "--help" in arguments else contextlib.nullcontext():
            runpy.run_path(str(ROOT / "benchmarks" / name), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_explains_itself(run, name):
    assert f"benchmarks/{name}" in run(name, "--help")


def test_reference_objective_on_one_draw(run, data_home, tmp_path, monkeypatch):
    monkeypatch.setenv("MTCLUST_DATA", str(data_home))
    run("reference_objective.py", "--draws", "1", "--out", tmp_path)
    rows = [line.split(",") for line in (tmp_path / "runs.csv").read_text().splitlines()]
    gaps = [float(row[rows[0].index("gap_percent")]) for row in rows[1:]]
    assert len(gaps) == 3
    assert max(gaps) < 2
    assert "| job |" in (tmp_path / "table.md").read_text()


def test_tables_in_small_scores_every_fit_once_and_goes_on_where_it_stopped(run, tmp_path):
    choice = ["--sets", "iris", "blobs_80_15_5", "--methods", "DSTC", "k-means, pooled", "k-means, per task"]
    run("tables.py", *choice, "--draws", "1", "--out", tmp_path)
    runs = (tmp_path / "runs.csv").read_text()
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5  # one task has no need of "per task"
    pooled = {row["set"]: row for row in rows if row["method"] == "k-means, pooled"}
    assert float(pooled["blobs_80_15_5"]["pari"]) > 0.99
    assert all(row["chosen"] for row in rows if row["method"] == "DSTC")
    page = (tmp_path / "table.md").read_text()
    assert page.startswith("Made by `python")
    assert "Sets looked at while deciding" in page
    assert "| DSTC | k-means, pooled |" in page  # wins and losses
    assert "Sets run once at the end" not in page
    run("tables.py", *choice, "--draws", "1", "--out", tmp_path)
    assert (tmp_path / "runs.csv").read_text() == runs


def test_the_two_groups_of_tables_are_apart_and_large_enough():
    from _tables_sets import DECIDED_ON, HELD_OUT, SETS

    assert not {SETS[name].table for name in DECIDED_ON} & {SETS[name].table for name in HELD_OUT}
    for group, least in ((DECIDED_ON, 30), (HELD_OUT, 15)):
        kinds = Counter(SETS[name].kind for name in group)
        assert kinds["single"] >= 10
        assert kinds["multi"] >= least


def test_the_judge_learns_from_no_table_that_is_held_out():
    from _judge_problems import HELD_OUT_ALIASES, learned_from
    from _tables_sets import HELD_OUT, SETS

    assert {SETS[name].table for name in HELD_OUT} == set(HELD_OUT_ALIASES)
    names = set(HELD_OUT_ALIASES) | {alias for aliases in HELD_OUT_ALIASES.values() for alias in aliases}
    learned = learned_from()
    assert len(learned) > 150
    assert not learned & names
    items = {name.split("/")[-1].lower() for name in names}
    assert not {name.split("/")[-1].lower() for name in learned} & items


def test_the_weight_of_a_term_that_tells_good_candidates_from_bad_ones_is_learned():
    from learn_judge import Described, Lessons

    rng, rows = np.random.default_rng(0), []
    for number in range(120):
        quality, noise = rng.uniform(size=8), rng.normal(size=(2, 8))
        terms = {"length": 0.1 * noise[0], "telling": quality + 0.1 * noise[1]}
        rows.append(Described(str(number), f"table {number % 40}", list("abcdefgh"), terms, quality))
    lessons = Lessons(rows)
    gain, error = lessons.gain([0, 1])
    assert gain > 0.2
    assert error < 0.05
    assert abs(lessons.gain([0])[0]) < 0.05
    assert lessons.learned([0, 1], np.ones(120, dtype=bool))[1] > 0.5


def test_everyday_in_small_measures_every_part_and_goes_on_where_it_stopped(run, tmp_path):
    run("everyday.py", "--quick", "--out", tmp_path)
    runs = (tmp_path / "runs.csv").read_text()
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} - {"report", "memory"} == {"starts", "sizes", "growth", "tasks", "given"}
    assert {row["method"] for row in rows if row["part"] == "sizes"} > {"KMeans()", "DMTRC", "DMTFC", "DSTC"}
    fits = [row for row in rows if row["part"] in ("sizes", "growth", "tasks", "given")]
    assert all(float(row["cpu_seconds"]) > 0 and 0 <= float(row["nmi"]) <= 1 for row in fits)
    assert "| import mtclust.estimators | 1 |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    run("everyday.py", "--quick", "--out", tmp_path)
    assert (tmp_path / "runs.csv").read_text() == runs


def test_figures_of_a_release_are_kept_and_what_became_slower_or_worse_is_told(tmp_path, capsys):
    import watch

    path = tmp_path / "new" / "releases.csv"
    assert watch.last_release(path) == ("none", {})
    watch.keep(path, "1.0", {"a": (1.0, 0.9), "b": (1.0, 0.9)})
    watch.keep(path, "1.1", {"a": (2.0, 0.9), "b": (1.0, 0.9)})
    release, before = watch.last_release(path)
    assert (release, before) == ("1.1", {"a": (2.0, 0.9), "b": (1.0, 0.9)})
    assert watch.compare(before, before, release) == 0
    assert watch.compare({"a": (3.9, 0.89), "b": (2.1, 0.9), "new": (9.0, 0.1)}, before, release) == 1
    assert watch.compare({"a": (2.0, 0.87), "b": (1.0, 0.9)}, before, release) == 1
    told = capsys.readouterr().out
    assert "slower" in told
    assert "worse" in told
