"""Task ids of every type: a missing one is an error that says where, all others fit, predict and can be saved."""

import datetime as dt
import decimal
import pickle
import tracemalloc
import uuid

import numpy as np
import pandas as pd
import polars
import pytest

import mtclust
from mtclust import DMTRC, DSTC, stack_tasks
from mtclust.app.words import Facts, cautions, sizes_table
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks, plain_ids, task_ids
from mtclust.exceptions import SmallTaskWarning
from tests.id_types import IDS, repeated, strings

X = np.repeat([[0.0, 1.0], [5.0, 5.0], [0.0, 9.0]], 4, axis=0) + np.linspace(0, 1, 12)[:, None]
ROWS = np.tile([0, 1], 6)
QUICK = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "n_init": 1, "random_state": 0}


#: each has a missing id in its second place, and no other
MISSING = {
    "nan": lambda: [1.0, np.nan, 2.0],
    "nan among strings": lambda: ["a", np.nan, "b"],
    "nan first seen late": lambda: pd.Series(["a", None, "b"]),
    "None": lambda: ["a", None, "b"],
    "NA": lambda: pd.array([1, None, 2], dtype="Int64"),
    "NA of strings": lambda: pd.array(["a", None, "b"], dtype="string"),
    "category": lambda: pd.Categorical(["a", None, "b"]),
    "StringDType with nan": lambda: strings(["a", np.nan, "b"], na_object=np.nan),
    "StringDType with None": lambda: strings(["a", None, "b"], na_object=None),
    "StringDType with NA": lambda: strings(["a", pd.NA, "b"], na_object=pd.NA),
    "mask": lambda: np.ma.masked_array([1, 2, 3], mask=[False, True, False]),
    "mask of strings": lambda: np.ma.masked_array(["a", "b", "c"], mask=[False, True, False]),
    "NaT": lambda: np.array(["2024-01-01", "NaT", "2024-01-02"], dtype="datetime64[D]"),
    "NaT of a length": lambda: np.array([1, "NaT", 2], dtype="timedelta64[s]"),
    "NaT of pandas": lambda: [pd.Timestamp("2024-01-01"), pd.NaT, pd.Timestamp("2024-01-02")],
    "NaT of periods": lambda: pd.PeriodIndex(["2024-01", None, "2024-02"], freq="M"),
    "NaT among objects": lambda: np.array([np.datetime64("2024"), np.datetime64("NaT"), None], dtype=object)[[0, 1, 0]],
    "decimal": lambda: [decimal.Decimal(1), decimal.Decimal("nan"), decimal.Decimal(2)],
    "polars": lambda: polars.Series(["a", None, "b"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_id_is_an_error_that_says_where(case):
    with pytest.raises(ValueError, match=r"tasks has 1 missing values \(first at row 1\); every row needs a task id"):
        index_tasks(MISSING[case](), 3)
    with pytest.raises(ValueError, match="tasks has 1 missing values"):
        numbers_of_known_tasks(MISSING[case](), 3, np.array(["a", "b"]))


@pytest.mark.parametrize("scalar", [np.nan, pd.NA, pd.NaT, np.datetime64("NaT"), np.ma.masked], ids=repr)
def test_a_single_id_may_not_be_missing_either(scalar):
    with pytest.raises(ValueError, match="tasks has 3 missing values"):
        index_tasks(scalar, 3)


def test_a_missing_id_in_the_task_column_names_the_column():
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(shop=["x"] * 11 + [None])
    with pytest.raises(ValueError, match=r"task_column='shop' has 1 missing values \(first at row 11\)"):
        DSTC(2, task_column="shop", **QUICK).fit(frame)


def test_missing_names_of_tables_are_refused():
    with pytest.raises(ValueError, match="names must give each of the 2 tables a name, none missing"):
        stack_tasks([X, X], ["a", np.nan])


@pytest.mark.parametrize("ids", [[1, "1"], ["1", 1], [b"a", "a"], [1, "a", 2.5]], ids=repr)
def test_ids_of_different_types_are_not_made_one(ids):
    with pytest.raises(TypeError, match=r"tasks has ids of types .*of one type for all"):
        index_tasks(ids, len(ids))
    with pytest.raises(TypeError, match="names has ids of types"):
        stack_tasks([X] * len(ids), ids)


def test_ids_that_cannot_be_hashed_are_refused():
    with pytest.raises(TypeError, match="tasks has ids of types set"):
        index_tasks([{1}, {2}], 2)


def test_ids_of_any_other_type_count_by_their_string():
    ids = [decimal.Decimal("0.10"), uuid.UUID(int=1), pd.Period("2024-01", "M"), b"a", (1, 2), dt.time(1)]
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    assert plain_ids(array, "tasks")[0].tolist() == [str(name) for name in ids]


def test_masks_of_rows_are_not_ignored():
    masked = np.ma.masked_array(X, mask=np.zeros_like(X, dtype=bool))
    masked[3, 1] = np.ma.masked
    with pytest.raises(ValueError, match="X is a masked array with masked values"):
        DSTC(2, **QUICK).fit(masked)
    assert DSTC(2, **QUICK).fit(np.ma.masked_array(X)).labels_.shape == (12,)


@pytest.mark.parametrize("case", IDS)
def test_every_id_that_fits_can_be_predicted_with_saved_and_loaded(case, tmp_path):
    ids = IDS[case]()
    model = DSTC(2, **QUICK).fit(X, tasks=repeated(ids, ROWS))
    assert len(model.tasks_) == 2
    reference = DSTC(2, **QUICK).fit(X, tasks=ROWS)
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model")
    assert loaded.tasks_.tolist() == model.tasks_.tolist()
    assert loaded.tasks_.dtype.kind in "biufMmUO"
    for found in (model, loaded, pickle.loads(pickle.dumps(model))):
        for tasks in (repeated(ids, ROWS), found.tasks_[numbers_of_known_tasks(repeated(ids, ROWS), 12, found.tasks_)]):
            np.testing.assert_array_equal(found.predict(X, tasks=tasks), model.predict(X, tasks=repeated(ids, ROWS)))
        for name in (*list(ids), *found.tasks_):  # a single id for all rows
            assert found.predict(X[:3], tasks=name).shape == (3,)
    matched = np.unique(np.stack([model.labels_ + 2 * ROWS, reference.labels_ + 2 * ROWS]), axis=1)
    assert matched.shape[1] == len(np.unique(reference.labels_ + 2 * ROWS)), "other clusters than with ids 0 and 1"


@pytest.mark.parametrize("fitted", ["datetime64[D]", "datetime64[ns]", "Timestamp", "datetime", "date"])
@pytest.mark.parametrize("asked", ["datetime64[Y]", "datetime64[ms]", "datetime64[s]", "Timestamp", "datetime", "date"])
def test_the_same_time_is_the_same_task_whatever_it_is_written_in(fitted, asked):
    make = {
        "Timestamp": lambda: [pd.Timestamp("2024"), pd.Timestamp("2025")],
        "datetime": lambda: [dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1)],
        "date": lambda: [dt.date(2024, 1, 1), dt.date(2025, 1, 1)],
    }
    ids, others = (make.get(kind, lambda kind=kind: np.array(["2024", "2025"], kind))() for kind in (fitted, asked))
    known = index_tasks(ids, 2).names
    assert numbers_of_known_tasks(others, 2, known).tolist() == [0, 1]
    with pytest.raises(ValueError, match="not in fit"):
        numbers_of_known_tasks([dt.datetime(2024, 1, 1, 1)], 1, known)


def test_times_may_name_tasks_in_mappings():
    tasks = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")[ROWS]
    clusters = {pd.Timestamp("2024-01-01"): 2, pd.Timestamp("2024-01-02"): 3}
    model = DMTRC(clusters, **QUICK).fit(X, tasks=tasks)
    assert (model.cluster_sizes_ > 0).sum(axis=1).tolist() == [2, 3]
    assert "2024-01-02" in sizes_table(model, Facts.of(model))[1][1][0]


def test_ids_of_rows_given_as_tasks_are_refused_before_any_work(monkeypatch):
    """A thousand tasks of one row, and of hardly more; whatever is left open, in every form."""

    def no_work(*_, **__):
        raise AssertionError("work was begun")

    for name in ("estimators.base.Fitting", "choose.number.choose_n_clusters"):
        monkeypatch.setattr(f"mtclust.{name}", no_work)
    X = np.random.default_rng(0).normal(size=(1000, 3))
    for tasks in (np.arange(1000), np.minimum(np.arange(1000), 990)):
        for n_clusters in (3, "auto"):
            for form in ("auto", "primal"):
                with pytest.raises(ValueError, match="they name rows, not tasks"):
                    DMTRC(n_clusters, solver_options={"form": form}).fit(X, tasks=tasks)
    with pytest.raises(AssertionError, match="work was begun"), pytest.warns(SmallTaskWarning):
        DMTRC(3).fit(X, tasks=np.arange(1000) // 2)  # two rows each are tasks, if tiny ones


def test_a_few_tasks_of_one_row_are_tasks():
    X, tasks = np.random.default_rng(0).normal(size=(30, 3)), np.minimum(np.arange(30), 12)
    with pytest.warns(SmallTaskWarning):
        DSTC(2, kernel="linear", sizes="balanced", n_init=1).fit(X, tasks=tasks)


def test_dates_as_tasks_are_named_where_a_cluster_lies_in_one_of_them():
    rows = np.concatenate([np.linspace(0, 1, 8), np.linspace(50, 51, 8)])[:, None]
    days = np.repeat(np.array(["2024-01-02T03:04:05", "2024-02-02T03:04:05"], dtype="datetime64[us]"), 8)
    model = DMTRC(2, center="all").fit(rows, tasks=days)
    said = " ".join(map(str, cautions(model)))
    assert "cluster 0 in task 2024-01-02 03:04:05 and cluster 1 in task 2024-02-02 03:04:05" in said


@pytest.mark.parametrize("container", [list, lambda ids: np.array(ids, dtype=object)], ids=["list", "objects"])
def test_long_ids_cost_what_they_are_and_not_their_length_times_the_rows(container):
    names = [str(k) * 5000 for k in range(10)]
    tasks = container([names[k % 10] for k in range(20_000)])
    tracemalloc.start()
    try:
        index = index_tasks(tasks, len(tasks))
        numbers = numbers_of_known_tasks(tasks, len(tasks), index.names)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert index.names.tolist() == names
    np.testing.assert_array_equal(numbers, index.task_numbers)
    assert peak < 5_000_000  # strings of one length would take 400 MB


def test_a_single_long_id_for_all_rows_is_held_once():
    tasks = task_ids("x" * 5000, 20_000)
    assert tasks.dtype == object
    assert len({id(name) for name in tasks}) == 1


def test_short_ids_are_strings_of_numpy_and_long_ones_are_not():
    assert index_tasks(["b", "a"], 2).names.dtype == "<U1"
    assert index_tasks(["b" * 100, "a"], 2).names.dtype == object
