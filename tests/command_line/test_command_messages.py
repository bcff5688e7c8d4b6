"""What the commands say: the option, what was given, what is allowed, and the way out; one case per message."""

import pytest
from table_helpers import run_cli, shop_rows, write_table

from mtclust.app import cli
from mtclust.exceptions import CommandError
from mtclust.util.system import require
from paper.experiments import load_experiment
from paper.experiments.driver import write_report


def said(capsys):
    """The one line of the error that was printed."""
    err = capsys.readouterr().err.strip()
    assert err.startswith("mtclust: ")
    assert "\n" not in err
    return err


@pytest.fixture
def data(tmp_path):
    rows = [{**row, "day": f"2024-01-{1 + i % 28:02d}"} for i, row in enumerate(shop_rows())]
    return write_table(tmp_path / "shops.csv", rows)


@pytest.fixture
def fit(tmp_path):
    """Runs fit on some files and gives the exit code."""
    return lambda *more: run_cli("fit", *more, "--out", tmp_path / "out", "--quiet")


COMMON = ("--task-column", "shop", "--kernel", "linear", "--sizes", "balanced")


@pytest.mark.parametrize(("option", "value"), [("--clusters", "few"), ("--clusters", "2-x"), ("--seed", "a")])
def test_the_option_is_named_before_its_value(option, value, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["fit", "x.csv", "--out", "y", option, value])
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert f"argument {option}: invalid" in said
    assert repr(value) in said


def test_too_little_memory(data, fit, monkeypatch, capsys):
    def too_large(*_, **__):
        raise MemoryError("fit of 60 rows in 2 tasks ran out of memory. Use fewer rows or columns.")

    monkeypatch.setattr("mtclust.DMTRC.fit", too_large)
    assert fit(data, "--task-column", "shop", "--clusters", 3) == 1
    assert said(capsys).startswith("mtclust: fit of 60 rows in 2 tasks ran out of memory. Use fewer rows or columns.")


def test_more_clusters_than_rows(tmp_path, fit, capsys):
    few = write_table(tmp_path / "few.csv", shop_rows(rows=2))
    assert fit(few, *COMMON, "--clusters", "5-8") == 1
    assert "clusters >= 2, some of them no larger than the number of rows, 4." in said(capsys)


def test_a_key_with_the_name_of_a_result(data, fit, capsys):
    assert fit(data, *COMMON, "--key", "cluster") == 1
    assert "--key 'cluster' clashes with a column of labels.csv; rename it in the file." in said(capsys)


def test_a_column_that_cannot_be_used(tmp_path, fit, capsys):
    rows = [{**row, "code": f"x{i}"} for i, row in enumerate(shop_rows(rows=60))]
    path = write_table(tmp_path / "codes.csv", rows)
    assert fit(path, *COMMON, "--columns", "width,code", "--clusters", 2) == 1
    error = said(capsys)
    assert "--columns names 'code', which is neither numbers nor dates and has 120 distinct values" in error
    assert "--key" in error
    assert "--categories" in error


@pytest.fixture
def model(data, tmp_path):
    command = ["fit", data, *COMMON, "--columns", "width,day", "--clusters", 2, "--quiet", "--out", tmp_path / "model"]
    assert run_cli(*command) == 0
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("column", "kind", "where"), [("width", "numbers", "all of these rows"), ("day", "dates", "all of these rows")]
)
def test_columns_that_hold_something_else_than_in_fit(model, tmp_path, column, kind, where, capsys):
    rows = [{**row, "day": "2024-01-05", column: "x"} for row in shop_rows(rows=3)]
    assert run_cli("predict", model, write_table(tmp_path / "new.csv", rows)) == 1
    assert (
        f"column {column!r} holds {kind} in the model, but not in {where} (first: 'x' in row 1). Correct the column, "
        "or fit again with these data." in said(capsys)
    )


def test_predictions_without_a_directory_to_go_to(model, data, tmp_path, capsys):
    assert run_cli("predict", model, data, "--out", tmp_path / "none" / "x.csv") == 1
    assert f"--out {tmp_path}/none/x.csv cannot be written: No such file or directory." in said(capsys)


def test_a_new_task_that_cannot_be_clustered(model, tmp_path, capsys):
    rows = [{**row, "day": "2024-01-05", "width": f"{i}e200"} for i, row in enumerate(shop_rows(["Oslo"], rows=6))]
    assert run_cli("predict", model, write_table(tmp_path / "one.csv", rows), "--new-task", "--quiet") == 1
    assert "task 'Oslo' cannot be clustered: X has values too large" in said(capsys)


def test_an_extra_that_is_not_installed():
    with pytest.raises(ImportError, match=r'^nothing_of_that_name is needed here; .* pip install "\.\[plot\]"$'):
        require("nothing_of_that_name.part", "plot")


def test_a_page_without_rows(tmp_path):
    directory = tmp_path / "transfer"
    directory.mkdir()
    (directory / "run.json").write_text('{"quick": true, "repeats": 1, "command": "x"}')
    with pytest.raises(
        CommandError, match=r"runs\.csv has no finished rows yet; run python -m paper reproduce transfer first\."
    ):
        write_report(load_experiment("transfer"), directory)
