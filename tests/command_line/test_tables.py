"""Reading tables and turning columns into features."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mtclust.app.tables.columns import CATEGORY_WEIGHT, NumberColumn, TopicColumn, column_from_dict
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import Table, read_file, read_tables, sniff_separator, table_of_frames
from mtclust.exceptions import TableError
from mtclust.text import TaskTfidf


def table_of(**columns):
    frame = pd.DataFrame(columns)
    n = len(frame)
    return Table(frame, np.array(["t"] * n, dtype=object), np.arange(1, n + 1), ("table.csv",), "task")


def encode(table, **options):
    encoder = TableEncoder.fit(table, **options)
    return encoder, encoder.transform(table)[0]


def test_numbers_have_mean_zero_and_deviation_one():
    _, X = encode(table_of(a=["1", "2", "6"], b=["-1e3", "0", "1e3"]))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(X.std(axis=0), 1)


def test_range_and_no_scaling():
    table = table_of(a=["1", "2", "6"])
    np.testing.assert_allclose(encode(table, scale="range")[1][:, 0], [0, 0.2, 1])
    np.testing.assert_allclose(encode(table, scale="none")[1][:, 0], [1, 2, 6])


def test_a_category_as_a_whole_has_a_third_of_the_spread_of_a_number():
    encoder, X = encode(table_of(colour=["red", "red", "blue", "green"]))
    assert [feature.name for feature in encoder.features] == ["colour = blue", "colour = green", "colour = red"]
    assert X.var(axis=0).sum() == pytest.approx(CATEGORY_WEIGHT**2) == pytest.approx(1 / 9)
    np.testing.assert_array_equal(X > 0, [[0, 0, 1], [0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_a_date_that_can_be_read_in_two_ways_needs_a_format():
    table = table_of(day=["01/02/2021", "05/03/2021", "07/08/2021"])
    with pytest.raises(TableError, match=r"more than one way \(%d/%m/%Y or %m/%d/%Y.*date_format"):
        encode(table)
    encoder, X = encode(table, date_format="%m/%d/%Y")
    days = encoder.features[0].offset + encoder.features[0].factor * X[:, 0]
    np.testing.assert_allclose(np.diff(days), [121, 66])


def test_decimal_commas_are_read():
    encoder, X = encode(table_of(price=["1,5", "-0,25", "1.234,00"]))
    feature = encoder.features[0]
    np.testing.assert_allclose(feature.offset + feature.factor * X[:, 0], [1.5, -0.25, 1234])


def test_points_and_commas_mixed_are_refused():
    with pytest.raises(
        TableError, match=r"numbers such as '2,5', which are none with the decimal mark of the others \(decimal\)"
    ):
        encode(table_of(price=["1.5", "2,5", "3.5"]))


def test_numbers_declared_as_categories():
    encoder, _ = encode(table_of(zip=["8001", "8002", "8001"]), categories=["zip"])
    assert [feature.name for feature in encoder.features] == ["zip = 8002"]


def test_missing_values_come_from_the_rows_of_the_same_task():
    frame = pd.DataFrame({"a": ["1", "", "5", "9", "", "100", "100"], "kind": ["x", "y", "", "x", "y", "x", ""]})
    tasks = np.array(["s", "s", "s", "s", "t", "t", "t"], dtype=object)
    table = Table(frame, tasks, np.arange(1, 8), ("table.csv",), "task")
    encoder, X = encode(table)
    values = [f.offset + f.factor * X[:, k] for k, f in enumerate(encoder.features)]
    np.testing.assert_allclose(values[0], [1, 5, 5, 9, 100, 100, 100])
    np.testing.assert_allclose(values[1], [0, 1, 1 / 3, 0, 1, 0, 1 / 2])
    assert encoder.notes == ["Missing values were filled in: a (2 rows) and kind (2 rows)."]


def test_no_usable_column_is_refused_with_the_reasons():
    with pytest.raises(TableError, match="no column is left to cluster by: a \\(the same in every row\\)"):
        encode(table_of(a=["1", "1", "1"]))


def test_the_saved_encoding_is_json_and_encodes_the_same():
    days = ["2021-03-01", "2022-03-02", "2023-03-11"]
    table = table_of(a=["1", "2", "6"], kind=["x", "y", "x"], day=days, price=["1,5", "2,5", "0,5"])
    encoder, X = encode(table)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(table)[0], X)


def test_text_has_the_weights_of_the_library_also_after_saving():
    texts = ["a good book", "a dull book", "good sound good"]
    table = table_of(text=texts)
    encoder, X = encode(table, text_column="text")
    expected = TaskTfidf().fit_transform(texts)
    assert sp.issparse(X)
    np.testing.assert_allclose(X.toarray(), expected.toarray(), rtol=1e-14)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(table)[0].toarray(), X.toarray())


def test_a_text_without_words_is_refused():
    with pytest.raises(TableError, match="text_column='text' has no words to work with"):
        encode(table_of(text=["!", "?", "."]), text_column="text")


def test_columns_of_version_0_2_are_read_but_not_their_seasons_and_mixed_dates():
    text = {"name": "note", "terms": ["good"], "idf": [1.5]}
    topics = {"kind": "topics", "name": "note", "text": text, "axes": [[1.0]], "centre": [0.5], "names": ["x"]}
    assert column_from_dict(topics) == TopicColumn(**text, axes=[[1.0]], centre=[0.5], names=["x"])
    column = NumberColumn("day", 0.0, 1.0, 0.0, {}, "ISO8601", few=True)
    date = {"kind": "date"} | asdict(column)
    assert column_from_dict(date | {"season": False}) == column
    for change in ({"season": True}, {"season": False, "form": "mixed"}):
        with pytest.raises(TableError, match="'day' holds dates as this version no longer reads them; fit again"):
            column_from_dict(date | change)


@pytest.mark.parametrize("saved", [None, {}, {"format": 99}])
def test_an_encoding_of_another_version_is_refused(saved):
    with pytest.raises(TableError, match="no encoding of a table that this version of mtclust reads"):
        TableEncoder.from_dict(saved)


@pytest.mark.parametrize(
    ("beginning", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1,5;2,5\n", ";"),
        ("a\tb c,d\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('a,b\n"x;y;z",1\n', ","),
        ("only\n1\n2\n", ","),
    ],
)
def test_the_separator_is_found(beginning, separator):
    assert sniff_separator(beginning) == separator


def test_leading_zeros_survive_in_tasks_and_keys(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("shop,id,a\n007,01,1\n7,1.0,2\n")
    table = read_tables([read_file(path)], "shop")
    assert table.tasks.tolist() == ["007", "7"]
    assert table.frame["id"].tolist() == ["01", "1.0"]


def test_two_files_of_one_name_cannot_be_two_tasks(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shop.csv").write_text("x\n1\n2\n")
    with pytest.raises(TableError, match="Files are named shop more than once"):
        read_tables([read_file(tmp_path / "one" / "shop.csv"), read_file(tmp_path / "two" / "shop.csv")], None)


def test_mixed_types_of_a_parquet_file(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame(
        {
            "shop": [1, 1, 2],
            "flag": [True, False, True],
            "count": pd.array([1, None, 3], dtype="Int64"),
            "level": pd.Categorical(["low", "high", "low"]),
        }
    )
    frame.to_parquet(path)
    table = read_tables([read_file(path)], "shop")
    assert table.tasks.tolist() == ["1", "1", "2"]
    encoder, X = encode(table)
    assert [feature.name for feature in encoder.features] == ["flag = True", "count", "level = low"]
    assert np.isfinite(X).all()


def test_text_beside_other_columns_counts_as_one_number_by_its_topics():
    rng = np.random.default_rng(0)
    words = [["late", "parcel", "courier", "waited"], ["price", "cheap", "discount", "value"]]
    texts = [" ".join(rng.choice(words[k % 2], 6)) + f" n{k}" for k in range(60)]
    places = [f"{k} {k + 7} Street {k * 3}" for k in range(60)]
    table = table_of(review=texts, size=rng.normal(size=60), place=places)
    encoder, X = encode(table)
    assert [column.kind for column in encoder.columns] == ["number", "topics"]
    assert X[:, 1:].var(axis=0).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(X[:, 1:].mean(axis=0), 0, atol=1e-9)
    assert max(abs(np.corrcoef(column, np.arange(60) % 2)[0, 1]) for column in X[:, 1:].T) > 0.9
    told = "The text review is used by its main topics, weighted as one number; text_column=review uses it alone."
    assert told in encoder.notes
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_allclose(again.transform(table)[0], X)


def test_a_column_that_a_task_does_not_know_is_filled_in_from_all_rows():
    frame = pd.DataFrame({"site": np.repeat(["a", "b", "c"], 20), "u": np.arange(60.0), "v": np.arange(60.0) % 7})
    frame.loc[frame["site"] == "c", "v"] = np.nan
    table = table_of_frames(frame, "site")
    encoder = TableEncoder.fit(table, columns=["u", "v"], scale="none")
    X, notes = encoder.transform(table)
    assert set(X[40:, 1]) == {np.nanmedian(frame["v"])}
    assert encoder.notes == notes == ["Missing values were filled in: v (20 rows)."]
