"""Rows enough for a search on a sample, in memory and in chunks."""

import logging

import numpy as np
import pytest

pytest.importorskip("dask", reason="Dask is not installed")
pytest.importorskip("distributed", reason="Dask is not installed")

N_ROWS = 36_000


def overlapping_tasks(n_tasks=3, n_clusters=3, d=5, n_rows=N_ROWS, seed=0):
    """Overlapping clusters, so that many rows are near a boundary; tasks in random order."""
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(n_clusters, d))
    tasks = rng.choice(n_tasks, size=n_rows, p=np.arange(1, n_tasks + 1) / np.arange(1, n_tasks + 1).sum())
    X = centres[rng.integers(n_clusters, size=n_rows)] + rng.normal(size=(n_rows, d))
    return X + rng.normal(size=(n_tasks, d))[tasks], tasks


SETTINGS = {"kernel": "linear", "lambda1": 0.01, "sizes": "balanced", "n_init": 2, "random_state": 0}


@pytest.fixture(scope="session")
def data():
    return overlapping_tasks()


@pytest.fixture(scope="module")
def cluster_of_two():
    """Two worker processes."""
    import dask
    from dask.distributed import Client, LocalCluster

    quiet = {"distributed.admin.large-graph-warning-threshold": "1GB"}
    with (
        dask.config.set(quiet),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client
