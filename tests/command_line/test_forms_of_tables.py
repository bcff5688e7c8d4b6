"""Tables in the forms that people hold them in: lists, names that are no strings, days, several spellings."""

import datetime

import numpy as np
import pandas as pd
import pytest
from table_helpers import error_of, fit, run_cli, shop_rows, write_table

import mtclust
from mtclust.exceptions import TableError

DAYS = ["2024-03-01", "2024-04-01"]


@pytest.fixture
def wells():
    rng = np.random.default_rng(0)
    kind = np.arange(60) % 2
    frame = pd.DataFrame({"iron": 5.0 * kind + rng.normal(size=60), "lead": rng.normal(size=60) - 4.0 * kind})
    return frame.assign(day=pd.to_datetime(np.repeat(DAYS, 30)))


def clustered(table, task=None, **options):
    return mtclust.cluster(table, task, 2, kernel="linear", **options)


def test_a_list_of_frames_is_refused_with_the_way_out(wells):
    with pytest.raises(TableError, match=r"a list that holds a DataFrame; .*Give data frames as a mapping from tasks"):
        clustered([frame for _, frame in wells.groupby("day")])


@pytest.mark.parametrize("name", [7, 2024.0])
def test_the_name_of_the_task_column_need_not_be_a_string(wells, name):
    expected = clustered(wells, "day").labels
    renamed = wells.set_axis(["iron", "lead", name], axis=1)
    found = clustered(renamed, name)
    assert found.labels.equals(expected)
    assert found.predict(renamed).equals(expected)
    with pytest.raises(TableError, match="task: there is no column '8'"):
        clustered(renamed, 8)


def test_days_are_days_whatever_holds_them(wells, tmp_path):
    found = clustered(wells, "day")
    assert list(found.tasks.index) == DAYS
    for same in (wells["day"].dt.strftime("%Y-%m-%d"), wells["day"].dt.date, wells["day"].astype("datetime64[s]")):
        assert found.predict(wells.assign(day=same)).equals(found.labels)
    by_day = {day: rows.drop(columns="day") for day, rows in wells.groupby("day")}
    assert list(clustered(by_day).tasks.index) == DAYS
    dates = [datetime.date(2024, 3 + k // 30, 1) for k in range(60)]
    assert list(clustered(wells.drop(columns="day"), dates).tasks.index) == DAYS
    wells.to_csv(tmp_path / "wells.csv", index=False)
    assert (found.predict(tmp_path / "wells.csv").to_numpy() == found.labels.to_numpy()).all()
    hours = clustered(wells.assign(day=wells["day"] + pd.Timedelta(hours=6)), "day")
    assert list(hours.tasks.index) == [f"{day} 06:00:00" for day in DAYS]


def test_names_of_tasks_that_differ_in_capitals_are_kept_apart_and_in_spaces_joined(wells):
    found = clustered(wells.assign(day=np.tile(["North", "north ", " South"], 20)), "day")
    assert list(found.tasks.index) == ["North", "north", "South"]
    assert found.notes == []
    spaces = clustered(wells.assign(day=np.tile(["north", "north ", " South"], 20)), "day")
    assert list(spaces.tasks.index) == ["north", "South"]


def test_how_to_name_the_task_of_rows_that_have_an_unknown_one(wells, tmp_path, capsys):
    found = clustered(wells, "day")
    rows = wells.assign(day="2024-05-01")
    with pytest.raises(
        TableError, match=r"no task '2024-05-01'.*new_tasks=True, or give the task of every row \(task=\[...\]\)"
    ):
        found.predict(rows)
    assert found.predict(rows, task=[DAYS[0]] * 30 + [DAYS[1]] * 30).equals(found.labels)
    fit(write_table(tmp_path / "shops.csv", shop_rows()), tmp_path / "out", "--kernel", "linear", "--no-stability")
    more = write_table(tmp_path / "more.csv", shop_rows(tasks=["Oslo"], rows=3))
    capsys.readouterr()
    assert run_cli("predict", tmp_path / "out", more) == 1
    assert "--new-task, or name the task of all rows (--task NAME)." in error_of(capsys)
    assert run_cli("predict", tmp_path / "out", more, "--task", "Rome") == 0


def test_one_cluster_is_one(wells):
    assert repr(mtclust.cluster(wells, "day", 1, kernel="linear")) == "<Clustering: 60 rows of 2 tasks in 1 cluster>"


HEADER = "shop,width,height"
ROWS = [f"{'ab'[k % 2]},{k % 3}.{k},{k % 3 * 5}.{k}" for k in range(30)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["Sales of 2024", HEADER, *ROWS], "Expected 1 fields in line 2, saw 3.*first line.* reads 'Sales of 2024'"),
        (["Sales,,", ",,", HEADER, *ROWS], r"column named '' \(no name\).* remove what stands above it"),
        ([HEADER, ROWS[0] + ",lost", *ROWS], "Expected 3 fields in line 2, saw 4"),
    ],
)
def test_lines_above_the_header_and_fields_beyond_it_are_refused(lines, words, tmp_path):
    (tmp_path / "sales.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(TableError, match=words):
        clustered(tmp_path / "sales.csv", "shop")


def test_a_title_above_the_header_of_a_sheet_and_other_sheets_are_told(wells, tmp_path):
    with pd.ExcelWriter(tmp_path / "wells.xlsx") as book:
        wells.to_excel(book, sheet_name="wells", startrow=2, index=False)
        book.sheets["wells"]["A1"] = "Wells of 2024"
        wells.to_excel(book, sheet_name="more")
    with pytest.raises(TableError, match=r"no column 'day'.*remove what stands above it"):
        clustered(tmp_path / "wells.xlsx", "day")
    with pytest.raises(TableError, match=r"task is needed .* \(wells.xlsx: the sheet 'wells' was read, not 'more'"):
        clustered(tmp_path / "wells.xlsx")


@pytest.mark.parametrize("ending", [",,\n,,\n", "\n\n"])
def test_empty_rows_at_the_end_and_spaces_around_tasks_do_no_harm(ending, tmp_path):
    (tmp_path / "plain.csv").write_text("\n".join([HEADER, *ROWS]), encoding="utf-8")
    spaced = "\n".join([HEADER, *(" " + row.replace(",", " , ") for row in ROWS)]) + "\n" + ending
    (tmp_path / "spaced.csv").write_text(spaced, encoding="utf-8")
    plain, found = (clustered(tmp_path / name, "shop") for name in ("plain.csv", "spaced.csv"))
    assert found.labels.equals(plain.labels)
    assert list(found.tasks.index) == ["a", "b"]
    assert found.notes == (["spaced.csv: 2 empty rows at the end left out."] if "," in ending else [])
