"""Messages of what users reach only through other things: chunks, large systems, experiments, archives."""

import errno
import re
import types

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DSTC
from mtclust.core import kernels as features
from mtclust.distributed.engine import Engine
from mtclust.exceptions import ClusterLostError
from paper.experiments.runner import Cell, Outcome, run_cells
from paper.experiments.table import RunTable, as_row

X = np.random.default_rng(0).normal(size=(40, 3))
ROWS = da.from_array(X, chunks=(10, 3))
FRAME = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=4)
IDS = dd.from_pandas(pd.Series(np.arange(40) % 2), npartitions=4)
TABLE = pd.DataFrame(X, columns=list("abc"))


def chunks(X, tasks=None, **options):
    return lambda: DSTC(2, kernel="linear", lambda1=0.1, sizes="balanced", **options).fit(X, tasks=tasks)


def unknown_lengths(array):
    """The same rows in chunks whose lengths nobody knows."""
    return da.concatenate(
        [da.from_delayed(part, (np.nan, *array.shape[1:]), array.dtype) for part in np.ravel(array.to_delayed())]
    )


def several(*lengths):
    """A data frame in partitions of these lengths."""
    ends = np.cumsum([0, *lengths])
    return dd.from_delayed([dask.delayed(TABLE.iloc[a:b]) for a, b in zip(ends[:-1], ends[1:])], meta=TABLE.iloc[:0])


CASES = {
    "sparse chunks": (
        chunks(ROWS.map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))), TypeError,
        ["X is a Dask array of csr_array chunks", "dense chunks of real numbers", "toarray()"],
    ),
    "chunks of words": (chunks(ROWS.astype(str)), TypeError, ["X is a Dask array", "dtype <U32", "real numbers"]),
    "dimensions of tasks": (
        chunks(ROWS, da.zeros((40, 2), chunks=10)), ValueError, ["tasks must be one id per row", "2 dimensions"],
    ),
    "no rows": (chunks(da.zeros((0, 3), chunks=3)), ValueError, ["X has no rows", "at least one per cluster"]),
    "no rows of a frame": (
        chunks(several(0, 0), task_column="a"), ValueError, ["X has no rows", "at least one per cluster"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_chunks_that_cannot_be_used(name):
    act, error, words = CASES[name]
    with pytest.raises(error) as caught:
        act()
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        (unknown_lengths(ROWS), unknown_lengths(da.arange(40, chunks=20) % 2)),
        (several(10, 30), dd.from_pandas(pd.Series(np.arange(40) % 2), npartitions=2)),
        (several(10, 0, 30), IDS),
    ],
    ids=["unknown lengths", "other partitions", "an empty partition"],
)
def test_chunks_of_tasks_may_be_others_than_those_of_the_rows(rows, ids):
    np.testing.assert_array_equal(chunks(rows, ids)().labels_.compute(), chunks(X, np.arange(40) % 2)().labels_)


def test_workers_that_die_again_and_again_are_explained_by_their_memory():
    distributed = pytest.importorskip("distributed")
    engine = Engine.__new__(Engine)
    engine.client = types.SimpleNamespace(status="running")
    worker = types.SimpleNamespace(address="tcp://127.0.0.1:1")
    said = r"Workers died again and again .*127\.0\.0\.1.* too small: use smaller chunks \(rechunk, repartition\)"
    with pytest.raises(ClusterLostError, match=said), engine._explained():
        raise distributed.KilledWorker("step", worker, allowed_failures=3)


def test_rows_of_other_methods_than_promised_are_an_error_of_the_cell(tmp_path):
    def other(cell):
        return [Outcome("B", nmi=0.5)]

    cell = Cell("toy", "set", 0, ("A",))
    table = RunTable(tmp_path / "runs.csv")
    run_cells([cell], other, table)
    assert table.read()[0]["error"] == "RuntimeError: the cell gave rows for ['B'], not for ['A']"


def test_rows_that_cannot_be_written_name_the_table(tmp_path, monkeypatch):
    table = RunTable(tmp_path / "runs.csv")
    before = table.path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("paper.experiments.table.os.fsync", full)
    with pytest.raises(OSError, match=rf"No space left on device: '{re.escape(str(table.path))}'"):
        table.append([as_row(experiment="x")])
    assert table.path.read_bytes() == before


@pytest.mark.parametrize("module", [mtclust, features])
def test_a_module_names_the_attribute_that_it_does_not_have(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'speed'"):
        assert module.speed
