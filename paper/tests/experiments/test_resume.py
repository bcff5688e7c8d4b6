"""A run that is torn or repeated ends with the table of a run that was not; kills are in ``tests/kills``."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mtclust import __version__
from mtclust.exceptions import CommandError
from paper.experiments.runner import Cell, DataUnavailable, Outcome, load_array, run_cells
from paper.experiments.table import COLUMNS, RunTable, as_row

ROOT = Path(__file__).resolve().parents[3]
#: a run of 12 slow cells, two rows each, a matrix each, one of which fails
SCRIPT = """
import sys, time
from pathlib import Path
from paper.experiments.runner import Cell, Outcome, run_cells
from paper.experiments.table import RunTable

def execute(cell):
    time.sleep(0.05)
    if cell.draw == 5:
        raise ValueError("draw 5, \\n does not\\twork")
    return [Outcome(m, nmi=cell.draw / 7, arrays={f"{m}_{cell.draw}": [[cell.draw]]}) for m in cell.methods]

cells = [Cell("toy", "set", draw, ("A", "B"), setting={"x": 0.1}) for draw in range(12)]
run_cells(cells, execute, RunTable(Path(sys.argv[1])))
"""


def start(script, table):
    found = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(found)}
    return subprocess.Popen([sys.executable, str(script), str(table)], stderr=subprocess.DEVNULL, env=environment)


def without_times(table):
    with open(table, newline="") as file:
        return [{name: value for name, value in row.items() if name != "seconds"} for row in csv.DictReader(file)]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("script") / "toy.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def uninterrupted(script, tmp_path_factory):
    table = tmp_path_factory.mktemp("whole") / "runs.csv"
    assert start(script, table).wait() == 0
    return table


@pytest.mark.parametrize("cut", [1, 30, 200])
def test_a_torn_last_line_is_dropped_and_its_cell_run_again(script, uninterrupted, tmp_path, cut):
    table = tmp_path / "runs.csv"
    content = uninterrupted.read_bytes()
    table.write_bytes(content[: len(content) - cut])
    assert start(script, table).wait() == 0
    assert without_times(table) == without_times(uninterrupted)


def test_half_of_the_rows_of_a_cell_do_not_count_as_the_cell(script, uninterrupted, tmp_path):
    table = tmp_path / "runs.csv"
    rows = uninterrupted.read_text().splitlines(keepends=True)
    table.write_text("".join(rows[:-1]))
    assert start(script, table).wait() == 0
    assert without_times(table) == without_times(uninterrupted)


def test_finished_cells_are_not_run_again(tmp_path):
    table = RunTable(tmp_path / "runs.csv")
    seen = []

    def execute(cell):
        seen.append(cell.draw)
        return [Outcome("A", nmi=0.5)]

    cells = [Cell("toy", "set", draw, ("A",)) for draw in range(3)]
    run_cells(cells[:2], execute, table)
    run_cells(cells, execute, RunTable(tmp_path / "runs.csv"))
    assert seen == [0, 1, 2]


def test_a_failed_method_is_a_row_and_is_run_again(tmp_path, capsys):
    table = RunTable(tmp_path / "runs.csv")
    broken = True

    def execute(cell):
        if broken and cell.methods == ("bad",):
            raise ZeroDivisionError("no rows left")
        return [Outcome(cell.methods[0], nmi=0.5)]

    cells = [Cell("toy", "set", 0, (name,)) for name in ("bad", "good")]
    run_cells(cells, execute, table)
    by_method = {row["method"]: row for row in table.read()}
    assert by_method["bad"]["error"] == "ZeroDivisionError: no rows left"
    assert by_method["bad"]["nmi"] == ""
    assert (by_method["good"]["error"], by_method["good"]["nmi"]) == ("", "0.5")
    assert "1 failed" in capsys.readouterr().err
    broken = False
    run_cells(cells, execute, table)
    assert {row["error"] for row in table.read()} == {""}


def test_missing_data_end_the_run_and_keep_what_is_finished(tmp_path):
    table = RunTable(tmp_path / "runs.csv")

    def execute(cell):
        if cell.draw == 1:
            raise FileNotFoundError("no file")
        return [Outcome("A", nmi=0.5)]

    with pytest.raises(DataUnavailable, match="no file"):
        run_cells([Cell("toy", "set", draw, ("A",)) for draw in range(3)], execute, table)
    assert [row["draw"] for row in table.read()] == ["0"]


def two_rows(cell):
    return [Outcome(method, nmi=cell.draw / 4, arrays={f"M{cell.draw}": [[0.5]]}) for method in cell.methods]


def test_two_processes_give_the_table_of_one(tmp_path):
    cells = [Cell("toy", "set", draw, ("A", "B")) for draw in range(4)]
    for n_jobs in (1, 2):
        run_cells(cells, two_rows, RunTable(tmp_path / str(n_jobs) / "runs.csv"), n_jobs=n_jobs)
    assert without_times(tmp_path / "1" / "runs.csv") == without_times(tmp_path / "2" / "runs.csv")
    assert load_array(tmp_path / "2", "M3", __version__).tolist() == [[0.5]]


def test_a_table_of_another_version_is_not_touched(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("something,else\n1,2\n")
    with pytest.raises(CommandError, match="not those of this version"):
        RunTable(path)
    assert path.read_text() == "something,else\n1,2\n"


def test_texts_with_commas_quotes_and_non_ascii_survive(tmp_path):
    table = RunTable(tmp_path / "runs.csv")
    table.append([as_row(experiment="x", dataset='5 %, "raw"', draw=1, method="Ω", setting={"λ": 0.5})])
    (row,) = RunTable(table.path).read()
    assert (row["dataset"], row["method"], row["setting"]) == ('5 %, "raw"', "Ω", '{"λ":0.5}')
    assert list(row) == list(COLUMNS)
