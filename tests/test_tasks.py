"""Grouping rows by task, stacking and splitting tables."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from mtclust import split_by_task, stack_tasks
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks


def test_sorted_rows_return_to_input_order():
    tasks = np.array(["b", "a", "c", "a", "b"])
    index = index_tasks(tasks, 5)
    assert index.to_input_order(tasks[index.order]).tolist() == tasks.tolist()
    assert [tasks[index.order][part].tolist() for part in index.slices()] == [["a", "a"], ["b", "b"], ["c"]]


@pytest.mark.parametrize("container", ["dense", "sparse", "frame"])
def test_split_undoes_stack(container):
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(n, 4)) for n in (3, 1, 5)]
    make = {"dense": np.asarray, "sparse": sp.csr_matrix, "frame": lambda t: pd.DataFrame(t, columns=list("abcd"))}
    X, tasks = stack_tasks([make[container](t) for t in tables], names=["x", "y", "z"])
    parts = split_by_task(X, tasks)
    assert list(parts) == ["x", "y", "z"]
    for table, part in zip(tables, parts.values()):
        dense = part.toarray() if sp.issparse(part) else np.asarray(part)
        np.testing.assert_array_equal(dense, table)


def test_frames_are_stacked_by_column_name():
    first = pd.DataFrame({"a": [1.0], "b": [2.0]})
    X, _ = stack_tasks([first, pd.DataFrame({"b": [4.0], "a": [3.0]})])
    assert X["a"].tolist() == [1.0, 3.0]


@pytest.mark.parametrize("first", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("second", [pl.DataFrame, pa.table])
def test_frames_of_any_kind_are_stacked_by_column_name(first, second):
    tables = [first({"x": [1.0, 2.0], "y": [3.0, 4.0]}), second({"y": [5.0, 6.0], "x": [7.0, 8.0]})]
    X, tasks = stack_tasks(tables)
    np.testing.assert_array_equal(X, [[1, 3], [2, 4], [7, 5], [8, 6]])
    assert tasks.tolist() == [0, 0, 1, 1]
    np.testing.assert_array_equal(stack_tasks(tables[::-1])[0], [[5, 7], [6, 8], [3, 1], [4, 2]])


@pytest.mark.parametrize(
    ("tables", "names", "message"),
    [
        ([np.zeros((2, 3)), np.zeros((2, 4))], None, r"table 1 has shape \(2, 4\) but table 0 has \(2, 3\)"),
        ([np.zeros((2, 3))], ["a", "b"], "names must give each of the 1 tables a name"),
        ([np.zeros((2, 3)), np.zeros((2, 3))], ["a", "a"], "no two the same"),
        ([], None, "tables is empty"),
        ([np.zeros(3)], None, "must have two dimensions"),
        ([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})], None, r"different: a, b"),
        ([pl.DataFrame({"a": [1.0]}), pl.DataFrame({"b": [1.0]})], None, r"different: a, b"),
    ],
)
def test_tables_that_cannot_be_stacked(tables, names, message):
    with pytest.raises(ValueError, match=message):
        stack_tasks(tables, names)


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        ([1, 2], ValueError, "tasks has 2 entries but X has 3 rows"),
        ([1.0, np.nan, 2.0], ValueError, "1 missing values .first at row 1."),
        (np.array(["a", None, "b"], dtype=object), ValueError, "1 missing values"),
        (np.array(["a", 1, "b"], dtype=object), TypeError, "has ids of types int, str"),
        (np.zeros((3, 2)), ValueError, r"got an array of shape \(3, 2\)"),
    ],
)
def test_task_ids_that_cannot_be_used(tasks, error, message):
    with pytest.raises(error, match=message):
        index_tasks(tasks, 3)


def test_scalar_task_stands_for_all_rows():
    known = np.array(["a", "b"])
    assert numbers_of_known_tasks("b", 2, known).tolist() == [1, 1]


def test_unknown_task_names_it_and_the_way_out():
    with pytest.raises(ValueError, match=r"not in fit: 'z'; known are 'a' and 'b'. Use fit_task"):
        numbers_of_known_tasks(["a", "z"], 2, np.array(["a", "b"]))


def test_tasks_may_be_left_out_only_with_one_known_task():
    assert numbers_of_known_tasks(None, 2, np.array(["only"])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="tasks is required"):
        numbers_of_known_tasks(None, 2, np.array(["a", "b"]))
