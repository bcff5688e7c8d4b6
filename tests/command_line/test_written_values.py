"""Numbers and dates as people write them: units, decimal marks, several formats in one column."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import mtclust
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import table_of_frames
from mtclust.exceptions import TableError
from mtclust.util.messages import on_command_line

NUMBERS = [f"{k}.5" for k in range(12)]


def encode(cells, **options):
    table = table_of_frames(pd.DataFrame({"shop": "a", "x": cells}), "shop")
    encoder = TableEncoder.fit(table, **options)
    return encoder, encoder.transform(table)[0][:, 0]


def values(cells, **options):
    """What the cells of a column are read as, after the feature was scaled back."""
    encoder, X = encode(cells, **options)
    (column,) = encoder.columns
    return (X * column.scale + column.centre).round(6).tolist(), encoder


@pytest.mark.parametrize("cells", [["<=50K", ">50K"], ["<18", "18-65", ">65"], ["7g", "7h", "8g"], ["12 kg", "900 g"]])
def test_bounds_and_letters_that_are_names_stay_categories(cells):
    encoder, _ = encode(cells * 20)
    assert [column.kind for column in encoder.columns] == ["category"]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["9.1 g/dL", "91 g/L"], "column 'x' mixes numbers in g/L and g/dL; convert them to one unit"),
        (["12 kg", *NUMBERS], r"holds numbers, but 3 cells are something else \(first: '12 kg' in row 1\)"),
        (["<5", *NUMBERS], r"holds numbers, but 3 cells are something else \(first: '<5' in row 1\)"),
        (["1", "inf", "2"], r"column 'x' has infinite values \('inf' in row 2\)"),
        (["n.d."] * 30 + NUMBERS, r"holds numbers, but 90 cells are something else \(first: 'n.d.' in row 1\)"),
    ],
)
def test_what_cannot_be_read_as_one_kind_of_number_is_refused_with_the_way_out(cells, words):
    with pytest.raises(TableError, match=words) as caught:
        encode(cells * 3)
    assert "(keys)" in str(caught.value) or "leave it out" in str(caught.value)


DAYS = pd.date_range("2024-01-25", periods=40, freq="D")


@pytest.mark.parametrize(
    "written",
    [
        "%d %b %Y",
        "%d %B %Y",
        "%d-%b-%Y",
        "%b %d, %Y",
        "%B %d %Y",
        "%Y/%m/%d %H:%M",
        "%m/%d/%Y %I:%M %p",
        "%d/%m/%Y %H:%M",
        "%d.%m.%Y",
        "%d/%m/%Y",
        "%Y/%m/%d",
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M:%S+02:00",
        None,
    ],
)
def test_formats_of_dates_that_are_recognised(written):
    found, encoder = values(DAYS if written is None else DAYS.strftime(written))
    assert [column.kind for column in encoder.columns] == ["date"]
    assert np.diff(found).tolist() == pytest.approx([1.0] * 39)


def test_a_cell_among_dates_that_is_none_is_named():
    said = r"holds dates, but 1 cell is something else \(first: 'soon' in row 41\).*date_format \(most are ISO8601"
    with pytest.raises(TableError, match=said):
        encode([*DAYS.strftime("%Y-%m-%d"), "soon"])
    _, encoder = values([*DAYS.strftime("%Y-%m-%d"), "soon"], missing=["soon"])
    assert [column.kind for column in encoder.columns] == ["date"]


@pytest.mark.parametrize("other", ["%Y-%m-%d", "%d.%m.%Y"])
def test_formats_are_not_mixed(other):
    written = [day.strftime("%d/%m/%Y" if k % 3 else other) for k, day in enumerate(DAYS)]
    said = rf"14 cells are something else \(first: '{DAYS[0].strftime(other)}' in row 1\).*most are %d/"
    with pytest.raises(TableError, match=said):
        encode(written)


def test_predict_names_the_cell_that_is_no_number():
    frame = pd.DataFrame({"shop": ["a", "b"] * 12, "x": np.tile(np.arange(12.0), 2), "y": np.arange(24) % 2 * 9.0})
    found = mtclust.cluster(frame, "shop", 2, kernel="linear")
    rows = frame.head(3).assign(x=["1.0", "many", "3"])
    with pytest.raises(TableError, match=r"'x' holds numbers .* not in all of these rows \(first: 'many' in row 2\)"):
        found.predict(rows)
    assert found.predict(frame.head(3).assign(x=["0.0", "1", "2.0"])).tolist() == found.labels[:3].tolist()


def test_points_that_could_part_thousands_are_decimal_marks_but_in_money():
    assert values(["718", "2.382", "1.5"] * 5)[0][1] == values(["718", "2.382"] * 8)[0][1] == 2.382
    assert values(["718", "2.382"] * 8, decimal=",")[0][1] == 2382
    assert values(["718", "2.382", "2.345.678"] * 5)[0][1] == values(["€718", "€2.382"] * 8)[0][1] == 2382


def test_what_could_be_thousands_names_the_values_that_are_taken():
    for where, marks in ((nullcontext(), ("decimal=','", "decimal='.'")), (on_command_line(), ("comma", "point"))):
        with where, pytest.raises(TableError) as caught:
            values(["718", "2,382"] * 8)
        assert all(mark in str(caught.value) for mark in marks)


def test_another_decimal_mark_than_in_fit_or_than_was_given_is_refused_and_not_read_as_thousands():
    encoder, _ = encode(NUMBERS * 3)
    more = table_of_frames(pd.DataFrame({"shop": "a", "x": ["2.5", "2,5"]}), "shop")
    with pytest.raises(TableError, match=r"'x' holds numbers .* not in all of these rows \(first: '2,5' in row 2\)"):
        encoder.transform(more)
    with pytest.raises(TableError, match=r"column 'x' has numbers such as '0.5', which are none with the decimal mark"):
        encode(NUMBERS * 3, decimal=",")
    assert values(["1,234", "5,678", "9,000"] * 5, decimal=",")[0][0] == 1.234
    assert values(["1,234", "5,678", "9,000"] * 5, decimal=".")[0][0] == 1234
