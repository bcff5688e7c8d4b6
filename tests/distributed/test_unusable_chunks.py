"""Chunks that are damaged or do not fit are refused; a model fitted on a Dask collection can be saved."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import mtclust
from mtclust import DMTRC, DSTC
from mtclust.core.kernels import Kernel
from mtclust.distributed.engine import Engine
from mtclust.distributed.source import ChunkedRows
from mtclust.distributed.table import ChunkedTable, read
from mtclust.rows.features import FeatureMap

from .conftest import SETTINGS


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("tasks", ["array", "collection", "one"])
def test_predict_refuses_what_is_no_number_as_it_does_in_memory(data, bad, tasks):
    X, ids = data[0][:3000].copy(), data[1][:3000]
    model = DSTC(3, **SETTINGS).fit(X, tasks=ids)
    X[1705, 2] = bad
    given = {"array": ids, "collection": da.from_array(ids, chunks=500), "one": 0}[tasks]
    with pytest.raises(ValueError, match="Input X contains"):
        model.predict(X, tasks=ids if tasks != "one" else 0)
    for method in (model.predict, model.decision_function):
        found = method(da.from_array(X, chunks=(1000, 5)), tasks=given)
        with pytest.raises(ValueError, match=r"Input X contains NaN or infinity"):
            found.compute()
    assert model.predict(da.from_array(X[:1000], chunks=500), tasks=ids[:1000]).compute().shape == (1000,)


@pytest.mark.parametrize("rows", [3000, 36_000], ids=["gathered", "in chunks"])
def test_a_model_fitted_on_a_collection_can_be_saved(data, rows, tmp_path):
    X, tasks = data[0][:rows], data[1][:rows]
    chunked = da.from_array(X, chunks=(5000, 5))
    model = DMTRC(3, **SETTINGS, coupling="full").fit(chunked, tasks=tasks)
    assert isinstance(model.labels_, da.Array)
    model.save(tmp_path / "model")
    assert isinstance(model.labels_, da.Array), "the model itself is not changed"
    loaded = mtclust.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.labels_, model.labels_.compute())
    np.testing.assert_array_equal(loaded.single_task_labels_, model.single_task_labels_.compute())
    for given in (X[:100], chunked[:100]):
        np.testing.assert_array_equal(
            np.asarray(loaded.predict(given, tasks=tasks[:100])), model.predict(X[:100], tasks=tasks[:100])
        )
    new = X[:60] + 1
    np.testing.assert_array_equal(loaded.fit_task(new).labels_, model.fit_task(new).labels_)


@pytest.fixture
def parquet(data, tmp_path):
    X, tasks = data
    frame = pd.DataFrame(X, columns=list("abcde")).assign(task=tasks)

    def write(rows, spoil):
        for k, begin in enumerate(range(0, rows, rows // 4)):
            part = frame.iloc[begin : begin + rows // 4].copy()
            spoil(k, part).to_parquet(tmp_path / f"part-{k}.parquet")
        return tmp_path

    return write


def as_it_is(k, part):
    return part


def huge(k, part):
    """What is read from a page with a few bits turned over."""
    if k == 2:
        part.iloc[7, 1] = 1e300
    return part


def missing(k, part):
    if k == 2:
        part.iloc[7, 1] = np.nan
    return part


@pytest.mark.parametrize("rows", [4000, 36_000], ids=["gathered", "in chunks"])
@pytest.mark.parametrize("spoil", [huge, missing])
def test_rows_that_cannot_be_used_are_refused(parquet, rows, spoil):
    frame = dd.read_parquet(parquet(rows, spoil), split_row_groups=False, aggregate_files=False)
    words = {huge: "too large to be squared", missing: "Input X contains NaN"}[spoil]
    with pytest.raises(ValueError, match=words):
        DSTC(3, task_column="task", **SETTINGS).fit(frame)


def test_a_chunk_that_cannot_be_read_raises_the_error_of_its_reader(parquet):
    directory = parquet(36_000, as_it_is)
    frame = dd.read_parquet(directory, split_row_groups=False, aggregate_files=False)
    path = directory / "part-2.parquet"
    content = bytearray(path.read_bytes())
    content[4:-2000] = b"\xff" * len(content[4:-2000])
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"\w"):
        DSTC(3, task_column="task", **SETTINGS).fit(frame)


def test_values_too_large_to_be_squared_are_refused_where_means_are_put_together(data):
    X, tasks = data[0][:3000].copy(), data[1][:3000]
    X[0] = 1e300
    engine = Engine()
    parts, ids, _, reading = read(engine, DSTC(3, **SETTINGS), da.from_array(X, chunks=(1000, 5)), tasks, reset=True)
    with pytest.raises(ValueError, match=r"X has values too large to be squared.*divide X"):
        ChunkedRows(ChunkedTable.of(engine, parts, ids, reading), FeatureMap(Kernel("linear"))).moments(True)


def test_a_missing_task_id_is_named_with_its_row(data):
    frame = pd.DataFrame(data[0][:3000]).rename(columns=str).assign(task=np.where(np.arange(3000) == 1705, None, "a"))
    with pytest.raises(ValueError, match=r"chunk 1 of tasks has 1 missing values \(first at row 705\)"):
        DSTC(3, task_column="task", **SETTINGS).fit(dd.from_pandas(frame, npartitions=3))


def test_an_error_that_is_not_of_the_rows_is_left_as_it_is(data):
    chunked = da.from_array(data[0], chunks=(9000, 5))
    with pytest.raises(ValueError, match=r"^n_clusters must have one entry per task"):
        DSTC({0: 2}, **SETTINGS).fit(chunked, tasks=data[1])
