"""The encoding of a table does not depend on the order of its rows, columns or tasks; nor do gaps make clusters."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import mtclust
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import table_of_frames


def mixed(n=160, seed=0):
    """Every kind of column, with gaps, from three kinds of rows in four shops."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    words = np.array([["late", "parcel", "courier"], ["cheap", "price", "refund"], ["broke", "screen", "crash"]])
    frame = pd.DataFrame(
        {
            "shop": rng.choice(["Bonn", "Oslo", "Rome", "Turin"], n),
            "spent": np.exp(kind + rng.normal(size=n) / 3),
            "fee": [f"€{v:,.2f}" for v in 900.0 * (1 + kind) + rng.normal(0, 40, n)],
            "stars": kind + rng.integers(0, 3, n),
            "level": np.array(["low", "mid", "top"])[kind],
            "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(300 * kind + rng.integers(0, 90, n), "D")).strftime(
                "%d.%m.%Y"
            ),
            "review": [" ".join(rng.choice(words[k], 5)) + " thank you" for k in kind],
            "number": np.arange(n),
        }
    )
    for column in ("spent", "level", "since"):
        frame.loc[rng.choice(n, 25, replace=False), column] = None
    return frame, kind


def encoded(frame):
    table = table_of_frames(frame, "shop")
    encoder = TableEncoder.fit(table)
    return encoder.transform(table)[0], encoder


def test_order_of_rows_columns_and_tasks_changes_no_digit():
    frame, _ = mixed()
    X, encoder = encoded(frame)
    names = [feature.name for feature in encoder.features]
    assert {column.kind for column in encoder.columns} == {"number", "category", "date", "topics"}
    rows = np.random.default_rng(1).permutation(len(frame))
    shuffled, again = encoded(frame.iloc[rows].reset_index(drop=True))
    assert [feature.name for feature in again.features] == names
    np.testing.assert_array_equal(shuffled, X[rows])
    assert [note for note in again.notes if "Read as" not in note] == [
        note for note in encoder.notes if "Read as" not in note
    ]
    backwards, again = encoded(frame[frame.columns[::-1]])
    order = [[feature.name for feature in again.features].index(name) for name in names]
    np.testing.assert_array_equal(backwards[:, order], X)
    renamed, _ = encoded(frame.assign(shop=frame["shop"].map({"Bonn": "z", "Oslo": "y", "Rome": "x", "Turin": "w"})))
    np.testing.assert_allclose(renamed, X, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [11, 12, 40])
def test_a_counter_is_one_in_any_order_of_the_rows(n):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": np.arange(n) % 2, "size": rng.normal(size=n), "n": rng.permutation(n) + 7})
    assert "n (counts the rows)" in " ".join(encoded(frame)[1].notes)


@pytest.mark.parametrize("gaps", [9, 6, 4])
def test_gaps_that_go_with_a_kind_of_rows_make_no_cluster_of_their_own(gaps):
    """Every gap lies in rows of one kind, so that it would tell half of them from the others."""
    rng = np.random.default_rng(0)
    kind = np.arange(120) % 3
    values = np.array([[20.0, 5.0], [30.0, 9.0], [20.0, 13.0]])[kind] + rng.normal(size=(120, 2))
    frame = pd.DataFrame(values.round(2), columns=["warm", "wet"]).assign(plant=np.repeat(["a", "b"], 60))
    frame.loc[np.flatnonzero(kind == 0)[:: gaps // 3], "warm"] = np.nan
    found = mtclust.cluster(frame, "plant", 3, kernel="linear")
    assert adjusted_rand_score(kind, found.labels) > 0.9


def test_long_names_of_tasks_cost_what_they_are():
    """In strings of one length 3 000 rows would take 60 MB for every array of their tasks."""
    names = [f"{k:02d}" * 2_500 for k in range(20)]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"shop": rng.choice(np.array(names, dtype=object), 3_000), "size": rng.normal(size=3_000)})
    frame["kind"] = np.where(frame["size"] > 0, "big", "small")
    frame.loc[::7, ["size", "kind"]] = None
    encoded(frame.head(200))  # imports
    tracemalloc.start()
    try:
        X, _ = encoded(frame)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert X.shape == (3_000, 2)
    assert peak < 20e6
