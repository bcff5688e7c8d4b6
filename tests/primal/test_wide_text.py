"""Sparse tables with very many columns: their singular directions are the features, models are told in the columns."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.metrics import macro_nmi
from mtclust.rows.features import singular_directions

SETTINGS = {"kernel": "linear", "lambda1": 2.0**-4, "lambda2": 2.0**-4, "n_init": 2, "random_state": 0}


def topics(sizes: dict[int, int], n_columns: int = 1200, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Word counts of two tasks; task → number of its topics, the first of three."""
    rng = np.random.default_rng(seed)
    words = rng.random((3, n_columns)) ** 8
    tasks = np.arange(4200) % 2
    y = np.array([rng.integers(sizes[task]) for task in tasks])
    counts = rng.poisson(words[y])
    counts[:, 0] += 1
    return sp.csr_matrix(counts, dtype=np.float64), y, tasks


@pytest.mark.parametrize("rank", [5, 60])
def test_directions_are_those_of_the_dense_table_in_any_order_of_the_rows(rank):
    X = sp.random(60, 90, density=0.2, random_state=0, format="csr")
    expected = np.linalg.svd(X.toarray(), full_matrices=False)[2][:rank].T
    for table in (X, X[np.random.default_rng(1).permutation(60)]):
        found = singular_directions(table, rank)
        np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)


def test_directions_that_say_nothing_are_left_out():
    assert not singular_directions(sp.csr_matrix((30, 40)), 3).any()
    two = np.zeros((30, 40))
    two[:10, 3], two[10:, 7] = 2.0, 1.0
    found = singular_directions(sp.csr_matrix(two), 5)
    np.testing.assert_allclose(np.abs(found), np.eye(40)[:, [3, 7]], atol=1e-8)


@pytest.mark.parametrize("estimator", [DMTRC, DMTFC, DSTC])
def test_topics_are_found_and_models_are_told_in_the_columns(estimator):
    X, y, tasks = topics({0: 3, 1: 3})
    model = estimator(3, sizes="balanced", **SETTINGS).fit(X, tasks=tasks)
    assert model.selection_["features"] == "200 singular directions of X"
    assert macro_nmi(y, model.labels_, tasks) > 0.9
    values = [entry["objective"] for entry in model.history_]
    assert np.all(np.diff(values) <= 1e-9)
    assert model.cluster_sizes_.tolist() == [[700, 700, 700]] * 2
    scores = np.stack([X[j] @ model.coef_[tasks[j]].T + model.intercept_[tasks[j]] for j in range(20)])
    np.testing.assert_allclose(scores.reshape(20, 3), model.decision_function(X[:20], tasks=tasks[:20]), atol=1e-10)


def test_the_number_of_clusters_that_was_chosen_is_used():
    X, _, tasks = topics({0: 3, 1: 3})
    model = DSTC(range(2, 7), sizes="balanced", **SETTINGS).fit(X, tasks=tasks)
    assert model.n_clusters_ == model.selection_["n_clusters"]["chosen"] == 3
    assert model.cluster_sizes_.shape == (2, 3)


def test_tasks_may_have_different_numbers_of_clusters():
    X, y, tasks = topics({0: 3, 1: 2})
    model = DSTC({0: 3, 1: 2}, sizes="balanced", **SETTINGS).fit(X, tasks=tasks)
    assert np.count_nonzero(model.cluster_sizes_, axis=1).tolist() == [3, 2]
    assert macro_nmi(y, model.labels_, tasks) > 0.9


def test_sizes_left_open_follow_the_sample():
    X, y, tasks = topics({0: 3, 1: 3})
    keep = (y != 2) | (np.arange(len(y)) % 4 < 1)  # a rare topic
    X, y, tasks = X[keep], y[keep], tasks[keep]
    X, y, tasks = sp.vstack([X, X]).tocsr(), np.tile(y, 2), np.tile(tasks, 2)
    model = DSTC(3, **SETTINGS).fit(X, tasks=tasks)
    assert model.cluster_sizes_.min() < 0.5 * model.cluster_sizes_.max()
    assert macro_nmi(y, model.labels_, tasks) > 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", [DMTRC, DSTC])
def test_more_tasks_than_settings_are_chosen_on(estimator, tmp_path):
    """Settings are chosen on some of the tasks; the search takes rows of all, and so do files and new tasks."""
    rng = np.random.default_rng(0)
    m, n, C = 105, 15, 3
    y, tasks = np.tile(np.arange(n) % C, m), np.repeat(np.arange(m), n)
    own, any_word = y[:, None] * 100 + rng.integers(100, size=(m * n, 25)), rng.integers(300, 1500, size=(m * n, 10))
    words = np.concatenate([own, any_word], axis=1)
    X = sp.csr_matrix((np.ones(words.size), (np.repeat(np.arange(m * n), 35), words.ravel())), shape=(m * n, 1500))
    few_rounds = {"max_iter": 2} if estimator is DMTRC else {}
    model = estimator(C, kernel="linear", sizes="balanced", n_init=1, random_state=0, **few_rounds).fit(X, tasks=tasks)
    assert "100 tasks" in model.selection_.chosen_on
    assert model.cluster_sizes_.shape == (m, C)
    assert macro_nmi(y, model.labels_, tasks) > 0.8
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X, tasks=tasks), model.predict(X, tasks=tasks))
    np.testing.assert_array_equal(loaded.fit_task(X[:30]).labels_, model.fit_task(X[:30]).labels_)
