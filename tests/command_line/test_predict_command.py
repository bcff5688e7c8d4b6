"""``mtclust predict`` as a user drives it."""

import csv
import io
import shlex
import subprocess
import sys

import pytest
from table_helpers import fit, read_table, run_cli, shop_rows, write_table

from mtclust.metrics import nmi


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A directory with a fitted model, of shops in Paris and Rome."""
    home = tmp_path_factory.mktemp("fitted")
    data = write_table(home / "shops.csv", shop_rows())
    code = run_cli(
        "fit", data, "--task-column", "shop", "--key", "customer,truth", "--clusters", 3, "--out", home / "result",
        "--quiet",
    )  # fmt: skip
    assert code == 0
    return home


def printed_rows(capsys):
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_the_rows_of_fit_get_their_clusters_again(fitted, capsys):
    assert run_cli("predict", fitted / "result", fitted / "shops.csv", "--key", "customer") == 0
    rows = printed_rows(capsys)
    labels = read_table(fitted / "result" / "labels.csv")
    assert [row["cluster"] for row in rows] == [row["cluster"] for row in labels]
    assert [row["margin"] for row in rows] == [row["margin"] for row in labels]
    assert list(rows[0]) == ["customer", "task", "cluster", "margin"]


def test_new_rows_are_encoded_as_in_fit(fitted, tmp_path, capsys):
    """One row alone has no spread to be scaled by: only the saved scales can give its cluster."""
    labels = {row["customer"]: row["cluster"] for row in read_table(fitted / "result" / "labels.csv")}
    row = next(row for row in read_table(fitted / "shops.csv") if row["customer"] == "R004")
    path = write_table(tmp_path / "one.csv", [row])
    assert run_cli("predict", fitted / "result" / "model.mtclust", path, "--key", "customer") == 0
    assert [found["cluster"] for found in printed_rows(capsys)] == [labels["R004"]]


def test_a_new_task_is_clustered_and_its_nearest_task_named(fitted, tmp_path, capsys):
    path = write_table(tmp_path / "oslo.csv", shop_rows(["Oslo"], seed=5))
    assert run_cli("predict", fitted / "result", path) == 1
    error = capsys.readouterr().err
    assert "the model has no task 'Oslo'; it knows 'Paris', 'Rome'" in error
    assert "--new-task" in error
    related = tmp_path / "related"  # tasks in frames of their own have a relationship, and with it a nearest task
    assert fit(fitted / "shops.csv", related, "--key", "customer,truth", "--center", "task", "--quiet") == 0
    out = tmp_path / "oslo-labels.csv"
    for model, nearest in ((fitted / "result", "."), (related, "; closest to")):
        assert run_cli("predict", model, path, "--new-task", "--key", "truth", "--out", out, "--overwrite") == 0
        rows = read_table(out)
        assert nmi([row["truth"] for row in rows], [row["cluster"] for row in rows]) == pytest.approx(1.0)
        known = read_table(model / "labels.csv")
        assert {row["truth"]: row["cluster"] for row in known} == {row["truth"]: row["cluster"] for row in rows}
        assert f"New task Oslo: 30 rows (cluster 0: 10, 1: 10, 2: 10){nearest}" in capsys.readouterr().err


def test_the_task_of_all_rows_can_be_named(fitted, tmp_path, capsys):
    rows = [{k: v for k, v in row.items() if k != "shop"} for row in shop_rows(["Rome"], seed=2)]
    path = write_table(tmp_path / "rows.csv", rows)
    assert run_cli("predict", fitted / "result", path) == 1
    assert "--task-column: there is no column 'shop'" in capsys.readouterr().err
    assert run_cli("predict", fitted / "result", path, "--task", "Rome", "--key", "truth") == 0
    found = printed_rows(capsys)
    assert {row["task"] for row in found} == {"Rome"}
    assert nmi([row["truth"] for row in found], [row["cluster"] for row in found]) == pytest.approx(1.0)


def test_values_not_seen_in_fit_are_named(fitted, tmp_path, capsys):
    rows = shop_rows()
    rows[0]["colour"] = "mauve"
    path = write_table(tmp_path / "rows.csv", rows)
    assert run_cli("predict", fitted / "result", path) == 0
    assert "Column colour has values that were not in the fitted table (mauve)" in capsys.readouterr().err


def test_missing_values_are_filled_in_with_those_of_fit(fitted, tmp_path, capsys):
    rows = shop_rows()
    rows[0]["height"] = ""
    path = write_table(tmp_path / "rows.csv", rows)
    assert run_cli("predict", fitted / "result", path) == 0
    assert "Missing values were filled in: height (1 row)." in capsys.readouterr().err


@pytest.mark.parametrize("gone", ["width", "colour"])
def test_a_missing_column_is_named(fitted, tmp_path, capsys, gone):
    path = write_table(tmp_path / "rows.csv", [{k: v for k, v in row.items() if k != gone} for row in shop_rows()])
    assert run_cli("predict", fitted / "result", path) == 1
    assert f"the model needs columns that are not there: {gone!r}" in capsys.readouterr().err


def test_an_existing_file_is_only_replaced_on_request(fitted, tmp_path, capsys):
    out = tmp_path / "labels.csv"
    out.write_text("mine")
    assert run_cli("predict", fitted / "result", fitted / "shops.csv", "--out", out) == 1
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert run_cli("predict", fitted / "result", fitted / "shops.csv", "--out", out, "--overwrite") == 0
    assert len(read_table(out)) == 60


def test_what_is_no_model_is_refused(fitted, tmp_path, capsys):
    assert run_cli("predict", tmp_path, fitted / "shops.csv") == 1
    assert "there is no model" in capsys.readouterr().err
    (tmp_path / "model.mtclust").write_text("something else")
    assert run_cli("predict", tmp_path, fitted / "shops.csv") == 1
    assert "not a model saved by mtclust" in capsys.readouterr().err


def test_a_saved_estimator_is_refused_since_its_columns_are_not_known(fitted, tmp_path, capsys):
    import mtclust

    mtclust.load(fitted / "result" / "model.mtclust").model.save(tmp_path / "model.mtclust")
    assert run_cli("predict", tmp_path, fitted / "shops.csv") == 1
    assert "model.mtclust holds an estimator without a table; use a model of mtclust fit" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="there is no head")
def test_a_reader_that_has_enough_ends_the_command_quietly(fitted, tmp_path):
    rows = write_table(tmp_path / "many.csv", shop_rows(rows=4000))
    command = shlex.join([sys.executable, "-m", "mtclust", "predict", str(fitted / "result"), str(rows)])
    run = subprocess.run(["bash", "-c", f"{command} | head -1"], capture_output=True, text=True, check=True)
    assert run.stdout == "row,task,cluster,margin\n"
    assert run.stderr == ""


def test_text_is_weighted_as_in_fit(tmp_path, capsys):
    rows = [{"site": s, "text": t} for s in "ab" for t in ["fresh bread pasta", "wheel engine oil"] * 6]
    data = write_table(tmp_path / "texts.csv", rows)
    fitted = tmp_path / "out"
    assert run_cli("fit", data, "--task-column", "site", "--text-column", "text", "--clusters", 2, "--out", fitted) == 0
    capsys.readouterr()
    path = write_table(
        tmp_path / "new.csv", [{"site": "a", "text": t} for t in ("pasta unseen", "oil", "engine wheel")]
    )
    assert run_cli("predict", fitted, path) == 0
    clusters = [row["cluster"] for row in printed_rows(capsys)]
    assert clusters[0] != clusters[1] == clusters[2]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
@pytest.mark.parametrize(("closed", "rows"), [("2>&-", True), (">&-", False)])
def test_a_stream_that_is_closed_is_no_error(fitted, closed, rows):
    command = [sys.executable, "-m", "mtclust", "predict", str(fitted / "result"), str(fitted / "shops.csv")]
    run = subprocess.run(["bash", "-c", f"{shlex.join(command)} {closed}"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("row,task,cluster,margin\n") == rows
    assert run.stderr == ""
