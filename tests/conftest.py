"""Shared helpers of the tests."""

import os

import numpy as np
import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Tests run side by side; more threads than cores would only make them wait for each other."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def data_home():
    """Where the real data lie; tests that need them are skipped without."""
    path = os.environ.get("MTCLUST_DATA")
    if not path:
        pytest.skip("MTCLUST_DATA is not set: real data are not at hand")
    return path


def gaussian_tasks(n_tasks=3, rows=30, n_clusters=3, d=4, spread=0.3, seed=0, shift=1.0):
    """Separated clusters at the same places in every task, tasks shifted against each other."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, d)) * 2
    X, y, tasks = [], [], []
    for task in range(n_tasks):
        labels = np.arange(rows) % n_clusters
        X.append(centres[labels] + spread * rng.normal(size=(rows, d)) + shift * rng.normal(size=d))
        y.append(labels)
        tasks.append(np.full(rows, task))
    return np.concatenate(X), np.concatenate(y), np.concatenate(tasks)
