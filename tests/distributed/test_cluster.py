"""Fits on a cluster of two worker processes: the same labels, little traffic, lost workers, lost clusters."""

import logging
import os
import signal
import time

import dask
import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster

from mtclust import DMTRC, DSTC
from mtclust.distributed.engine import Engine
from mtclust.distributed.source import ChunkedRows
from mtclust.exceptions import ClusterLostError

from .conftest import N_ROWS, SETTINGS

COUPLED = {"n_clusters": 3, "coupling": "full", **SETTINGS}


@pytest.fixture(scope="module")
def whole(data):
    X, tasks = data
    return DMTRC(**COUPLED).fit(X, tasks=tasks)


def in_chunks(data):
    X, tasks = data
    return da.from_array(X, chunks=(4000, 5)), da.from_array(tasks, chunks=4000)


@pytest.fixture(scope="module")
def fit_on_cluster(cluster_of_two, data):
    """A model, and how many numbers every step of its fit brought here."""
    gathered, gather = [], Engine.gather

    def counted(self, steps):
        results = gather(self, steps)
        gathered.append(sum(_numbers(result) for result in results))
        return results

    X, tasks = in_chunks(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "gather", counted)
        return DMTRC(**COUPLED).fit(X, tasks=tasks), gathered


def test_labels_are_those_of_the_fit_in_memory(fit_on_cluster, data, whole):
    model, (X, tasks) = fit_on_cluster[0], in_chunks(data)
    np.testing.assert_array_equal(model.labels_.compute(), whole.labels_)
    np.testing.assert_array_equal(model.predict(X, tasks=tasks).compute(), whole.predict(data[0], tasks=data[1]))


def test_only_a_few_rows_come_to_the_driver(fit_on_cluster):
    """Most in the first pass of all tasks and in that of tasks alone, for which no prices are known; as scores."""
    largest = sorted(fit_on_cluster[1])
    assert largest[-1] <= 20_000 * 5
    assert largest[-3] <= 0.25 * N_ROWS * 5
    assert sum(largest) <= 2 * N_ROWS * 5


def _numbers(result):
    if isinstance(result, np.ndarray):
        return result.size
    if isinstance(result, dict):
        return sum(map(_numbers, result.values()))
    if isinstance(result, list | tuple):
        return sum(map(_numbers, result))
    return sum(map(_numbers, vars(result).values())) if hasattr(result, "__dict__") else 1


def test_parquet_is_read_pass_by_pass_and_never_held(cluster_of_two, data, whole, tmp_path, monkeypatch):
    X, tasks = data
    frame = pd.DataFrame(X, columns=list("abcde")).assign(task=tasks)
    for k, begin in enumerate(range(0, N_ROWS, 2000)):
        frame.iloc[begin : begin + 2000].to_parquet(tmp_path / f"part-{k:02}.parquet")
    held, relabel = [], ChunkedRows.relabel

    def weighed(self, *arguments):
        changed = relabel(self, *arguments)
        for _ in range(6000):  # workers hear a little later what is needed no more
            now = sum(cluster_of_two.run(_bytes_held).values())
            if now < X.nbytes / 2:
                break
            time.sleep(0.05)
        held.append(now)
        return changed

    monkeypatch.setattr(ChunkedRows, "relabel", weighed)
    model = DMTRC(task_column="task", **COUPLED).fit(dd.read_parquet(tmp_path))
    np.testing.assert_array_equal(model.labels_.compute(), whole.labels_)
    assert len(held) > 3
    assert max(held) < X.nbytes / 2  # labels, and gaps of the pass that is under way


def _bytes_held(dask_worker):
    from dask.sizeof import sizeof

    return sum(sizeof(value) for value in dask_worker.data.values())


def test_a_worker_killed_during_a_pass_changes_nothing(cluster_of_two, data, whole, monkeypatch):
    processes = cluster_of_two.run(os.getpid)
    overview, passes = ChunkedRows._overview, []

    def killed(self, *arguments):  # the chunks of this pass are being labelled now
        passes.append(len(passes))
        if len(passes) == 2:
            os.kill(next(iter(processes.values())), signal.SIGKILL)
        return overview(self, *arguments)

    monkeypatch.setattr(ChunkedRows, "_overview", killed)
    X, tasks = in_chunks(data)
    model = DMTRC(**COUPLED).fit(X, tasks=tasks)
    assert len(passes) > 2
    np.testing.assert_array_equal(model.labels_.compute(), whole.labels_)
    cluster_of_two.wait_for_workers(2)
    assert set(cluster_of_two.run(os.getpid).values()) != set(processes.values())


@pytest.mark.filterwarnings("ignore:`apply_async` is deprecated:DeprecationWarning")  # joblib of its own Dask backend
def test_restarts_spread_over_the_cluster_by_joblib(cluster_of_two):
    rng = np.random.default_rng(0)
    X, tasks = rng.normal(size=(90, 3)) + 3 * rng.integers(3, size=(90, 1)), np.arange(90) % 3
    model = DMTRC(3, kernel="linear", lambda1=0.01, sizes="balanced", coupling="full", random_state=0, n_init=2)
    here = model.fit(X, tasks=tasks).labels_
    ran_before = _tasks_run(cluster_of_two)
    with joblib.parallel_config(backend="dask"):
        there = model.fit(X, tasks=tasks).labels_
    np.testing.assert_array_equal(there, here)
    assert _tasks_run(cluster_of_two) > ran_before


def _tasks_run(client):
    return client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.transition_counter)


def test_a_cluster_without_workers_ends_in_an_error(data):
    X, tasks = in_chunks(data)
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        pytest.raises(ClusterLostError, match=r"has no worker.*Start workers"),
    ):
        DSTC(3, **SETTINGS).fit(X, tasks=tasks)


def test_a_cluster_closed_during_a_pass_ends_in_an_error(data, monkeypatch):
    overview = ChunkedRows._overview

    def closed(self, *arguments):
        cluster.close()
        return overview(self, *arguments)

    monkeypatch.setattr(ChunkedRows, "_overview", closed)
    X, tasks = in_chunks(data)
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL) as cluster,
        Client(cluster),
        pytest.raises(ClusterLostError, match="Dask cluster"),
    ):
        DSTC(3, **SETTINGS).fit(X, tasks=tasks)
