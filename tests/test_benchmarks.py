"""The benchmarks run: each says what it does, and a small one is run to its table."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = sorted(path.name for path in (ROOT / "benchmarks").glob("[a-z]*.py"))


def run(name, *arguments, **environment):
    command = [sys.executable, str(ROOT / "benchmarks" / name), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, **environment}
    )


#: one process for all of them: what they import takes longer than they do
EXPLAIN = """
import contextlib, io, json, runpy, sys
sys.path.insert(0, "benchmarks")
said = {}
for name in sys.argv[1:]:
    sys.argv = [name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.suppress(SystemExit):
        runpy.run_path(f"benchmarks/{name}", run_name="__main__")
    said[name] = output.getvalue()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def explanations():
    command = [sys.executable, "-c", EXPLAIN, *BENCHMARKS]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_explains_itself(explanations, name):
    assert f"benchmarks/{name}" in explanations[name]


def test_reference_objective_on_one_draw(data_home, tmp_path):
    result = run("reference_objective.py", "--draws", "1", "--out", str(tmp_path), MTCLUST_DATA=data_home)
    assert result.returncode == 0, result.stderr
    rows = [line.split(",") for line in (tmp_path / "runs.csv").read_text().splitlines()]
    gaps = [float(row[rows[0].index("gap_percent")]) for row in rows[1:]]
    assert len(gaps) == 3
    assert max(gaps) < 2
    assert "| job |" in (tmp_path / "table.md").read_text()


def test_scale_in_small_measures_every_part_and_goes_on_where_it_stopped(tmp_path):
    result = run("scale.py", "--quick", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    runs = (tmp_path / "runs.csv").read_text()
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} == {"memory", "grid", "nystroem", "growth", "import", "first fit"}
    grid = [row for row in rows if row["part"] == "grid" and row["method"] != "one pass"]
    assert {row["family"] for row in grid} == {"isotropic", "elongated"}
    assert all(float(row["cpu_seconds"]) > 0 and 0 <= float(row["nmi"]) <= 1 for row in grid)  # no method failed
    page = (tmp_path / "table.md").read_text()
    assert "| target | limit |" in page
    assert "not measured" in page  # the targets are about sizes that are not run here
    assert (tmp_path / "growth.svg").read_text().lstrip().startswith("<?xml")
    again = run("scale.py", "--quick", "--out", str(tmp_path))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "runs.csv").read_text() == runs


def test_tables_in_small_scores_every_fit_once_and_goes_on_where_it_stopped(tmp_path):
    choice = ["--sets", "iris", "blobs_80_15_5", "--methods", "DSTC", "k-means, pooled", "k-means, per task"]
    result = run("tables.py", *choice, "--draws", "1", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
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
    again = run("tables.py", *choice, "--draws", "1", "--out", str(tmp_path))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "runs.csv").read_text() == runs


def test_the_two_groups_of_tables_are_apart_and_large_enough():
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from collections import Counter\n"
        "from _tables_sets import DECIDED_ON, HELD_OUT, SETS\n"
        "assert not {SETS[name].table for name in DECIDED_ON} & {SETS[name].table for name in HELD_OUT}\n"
        "for group, least in ((DECIDED_ON, 30), (HELD_OUT, 15)):\n"
        "    kinds = Counter(SETS[name].kind for name in group)\n"
        "    assert kinds['single'] >= 10 and kinds['multi'] >= least, kinds\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr


def test_the_judge_learns_from_no_table_that_is_held_out():
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from _judge_problems import HELD_OUT_ALIASES, learned_from\n"
        "from _tables_sets import HELD_OUT, SETS\n"
        "assert {SETS[name].table for name in HELD_OUT} == set(HELD_OUT_ALIASES)\n"
        "names = set(HELD_OUT_ALIASES) | {alias for aliases in HELD_OUT_ALIASES.values() for alias in aliases}\n"
        "learned = learned_from()\n"
        "assert len(learned) > 150 and not learned & names, learned & names\n"
        "items = {name.split('/')[-1].lower() for name in names}\n"
        "assert not {name.split('/')[-1].lower() for name in learned} & items\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr


def test_the_weight_of_a_term_that_tells_good_candidates_from_bad_ones_is_learned():
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "import numpy as np\n"
        "from learn_judge import Described, Lessons\n"
        "rng, rows = np.random.default_rng(0), []\n"
        "for number in range(120):\n"
        "    quality, noise = rng.uniform(size=8), rng.normal(size=(2, 8))\n"
        "    terms = {'length': 0.1 * noise[0], 'telling': quality + 0.1 * noise[1]}\n"
        "    rows.append(Described(str(number), f'table {number % 40}', list('abcdefgh'), terms, quality))\n"
        "lessons = Lessons(rows)\n"
        "gain, error = lessons.gain([0, 1])\n"
        "assert gain > 0.2 and error < 0.05, (gain, error)\n"
        "assert abs(lessons.gain([0])[0]) < 0.05\n"
        "assert lessons.learned([0, 1], np.ones(120, dtype=bool))[1] > 0.5\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr


def test_everyday_in_small_measures_every_part(tmp_path):
    result = run("everyday.py", "--quick", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} == {"import", "first fit", "report", "sizes", "growth"}
    assert {row["method"] for row in rows if row["part"] == "sizes"} == {"KMeans()", "DMTRC", "DMTFC", "DSTC"}
    assert all(0 <= float(row["nmi"]) <= 1 for row in rows if row["part"] in ("sizes", "growth"))
    assert "from mtclust import DMTRC beyond sklearn.cluster" in (tmp_path / "table.md").read_text()
    assert "| mtclust fit made.csv | 1 | ≤ 20 |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert (tmp_path / "growth.svg").stat().st_size > 0


def test_figures_of_a_release_are_kept_and_what_became_slower_or_worse_is_told(tmp_path):
    code = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "from pathlib import Path\n"
        "import watch\n"
        f"path = Path({str(tmp_path)!r}) / 'new' / 'releases.csv'\n"
        "assert watch.last_release(path) == ('none', {})\n"
        "watch.keep(path, '1.0', {'a': (1.0, 0.9), 'b': (1.0, 0.9)})\n"
        "watch.keep(path, '1.1', {'a': (2.0, 0.9), 'b': (1.0, 0.9)})\n"
        "release, before = watch.last_release(path)\n"
        "assert (release, before) == ('1.1', {'a': (2.0, 0.9), 'b': (1.0, 0.9)})\n"
        "assert watch.compare(before, before, release) == 0\n"
        "assert watch.compare({'a': (3.9, 0.89), 'b': (2.1, 0.9), 'new': (9.0, 0.1)}, before, release) == 1\n"
        "assert watch.compare({'a': (2.0, 0.87), 'b': (1.0, 0.9)}, before, release) == 1\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert "slower" in result.stdout
    assert "worse" in result.stdout


def test_how_sure_measures_every_part_and_goes_on_where_it_stopped(tmp_path):
    arguments = ("--sets", "iris", "--draws", "1", "--out", str(tmp_path))
    result = run("how_sure.py", *arguments)
    assert result.returncode == 0, result.stderr

    def read(path):
        return list(csv.DictReader(path.read_text().splitlines()))

    rows = {path.stem: read(path) for path in tmp_path.glob("*.csv")}
    assert set(rows) == {"calibration", "reliability", "stability", "outliers", "known"}
    assert all(0 <= float(row["ece"]) <= 1 for row in rows["calibration"])
    assert [row["what"] for row in rows["stability"]] == ["set", "cluster 0", "cluster 1", "cluster 2"]
    ours = [float(row["auc"]) for row in rows["outliers"] if row["method"] == "mtclust"]
    assert min(ours) > 0.9
    assert [float(row["kept"]) for row in rows["known"]] == [1.0]
    assert run("how_sure.py", *arguments).returncode == 0
    assert read(tmp_path / "known.csv") == rows["known"]
    text = (tmp_path / "table.md").read_text()
    assert all(f"## {part}" in text for part in ("Calibration", "Stability", "Outliers", "Known rows"))


def test_frames_in_small_cuts_a_table_in_every_way(tmp_path):
    result = run("frames.py", "--tables", "iris", "--draws", "1", "--out", str(tmp_path))
    assert result.returncode == 0, result.stderr
    rows = list(csv.DictReader((tmp_path / "runs.csv").read_text().splitlines()))
    assert len(rows) == 6 * 5
    found = {(row["cut"], row["method"]): float(row["pari"]) for row in rows}
    assert found["shares", "chosen"] > found["shares", "own frames"] + 0.2
    assert "| **all** |" in (tmp_path / "table.md").read_text()
