"""Models fitted at scale are saved and loaded like small ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import make_related_tasks

PRIMAL = {"form": "primal"}


def _rows() -> tuple[np.ndarray, np.ndarray]:
    data = make_related_tasks(2, n_samples=120, n_features=5, random_state=0)
    X, _, tasks = data.X_y_tasks
    return X, tasks


def _sparse_rows(seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(seed)
    topics = rng.random((3, 1200)) ** 8
    labels = rng.integers(3, size=4100)
    counts = rng.poisson(topics[labels] * 0.5)
    counts[:, 0] += 1
    return sp.csr_matrix(counts, dtype=np.float64), np.arange(4100) % 2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("estimator", [DMTRC, DMTFC, DSTC])
def test_a_primal_model_is_the_same_after_loading(tmp_path, estimator, kernel):
    X, tasks = _rows()
    model = estimator(3, kernel=kernel, sizes="balanced", solver_options=PRIMAL, random_state=0).fit(X, tasks=tasks)
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model")
    assert np.array_equal(loaded.decision_function(X, tasks=tasks), model.decision_function(X, tasks=tasks))
    assert np.array_equal(loaded.labels_, model.labels_)
    new = X[tasks == 0] + 0.01
    assert np.array_equal(loaded.fit_task(new).labels_, model.fit_task(new).labels_)


def test_a_sparse_model_is_the_same_after_loading(tmp_path):
    X, tasks = _sparse_rows()
    settings = {"kernel": "linear", "lambda1": 2.0**-4, "lambda2": 2.0**-4, "sizes": "balanced", "random_state": 0}
    model = DSTC(3, n_init=2, **settings).fit(X, tasks=tasks)
    assert "singular directions" in model.selection_["features"]
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X, tasks=tasks), model.predict(X, tasks=tasks))
    new = X[:60]
    assert np.array_equal(loaded.fit_task(new).labels_, model.fit_task(new).labels_)
