"""Data and assertions that several tests of the reference methods use."""

import numpy as np


def separated_tasks(n_tasks=3, n_clusters=4, rows_per_cluster=12, n_features=10, seed=0):
    """Far apart clusters, nearly the same in every task, rows in random order: X, classes, task ids."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=5, size=(n_clusters, n_features))
    shifts = rng.normal(scale=0.3, size=(n_tasks, n_clusters, n_features))
    tasks, classes = (grid.ravel() for grid in np.indices((n_tasks, n_clusters)).repeat(rows_per_cluster, axis=2))
    X = centers[classes] + shifts[tasks, classes] + rng.normal(scale=0.3, size=(len(tasks), n_features))
    order = rng.permutation(len(X))
    return X[order], classes[order], np.array(["oslo", "rome", "bern", "kyiv"])[tasks[order]]


def assert_never_rises(values):
    """Each value at most the one before, up to rounding."""
    values = np.asarray(values)
    assert np.isfinite(values).all()
    rise = np.diff(values) / np.maximum(np.abs(values[:-1]), 1e-12)
    assert rise.max(initial=-np.inf) <= 1e-10, f"rises by a share of {rise.max():.2e} in step {rise.argmax()}"
