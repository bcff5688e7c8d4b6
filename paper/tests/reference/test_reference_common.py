"""What every reference method must do, whatever it optimises."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference_helpers import assert_never_rises, separated_tasks
from sklearn.model_selection import ParameterGrid

from mtclust.core.tasks import index_tasks
from mtclust.metrics import nmi, per_task
from paper.reference import REFERENCE_METHODS

every_method = pytest.mark.parametrize("method", REFERENCE_METHODS.values(), ids=list(REFERENCE_METHODS))


def test_names_of_the_paper():
    assert list(REFERENCE_METHODS) == ["KM", "KKM", "NC", "ALL KM", "ALL KKM", "ALL NC", "LSSMTC", "LSKMTC", "MBC"]
    assert [name for name, method in REFERENCE_METHODS.items() if method.pooled] == ["ALL KM", "ALL KKM", "ALL NC"]


def test_reconstructions_say_so_everywhere():
    rebuilt = [name for name, method in REFERENCE_METHODS.items() if method.reconstruction]
    assert rebuilt == ["LSKMTC", "MBC"]
    for name in rebuilt:
        assert REFERENCE_METHODS[name].label == f"{name} (reconstruction)"
        assert "A reconstruction." in REFERENCE_METHODS[name].cluster.__doc__
        assert "What is not known" in REFERENCE_METHODS[name].cluster.__doc__


@every_method
def test_grid_contains_the_default(method):
    assert dict(method.default) in list(ParameterGrid(dict(method.grid)))


@pytest.mark.parametrize("seed", range(3))
@every_method
def test_separated_clusters_are_found_in_every_task(method, seed):
    X, classes, tasks = separated_tasks(seed=seed)
    scores = per_task(nmi, classes, method.fit(X, tasks, 4).labels, tasks)
    assert min(scores.values()) > 0.95, scores


@every_method
def test_same_seed_same_result_and_rows_are_not_changed(method, noise):
    X, tasks = noise
    before = X.copy()
    first, second = (method.fit(X, tasks, 3, n_init=2, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.labels, second.labels)
    assert first.objective == second.objective
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", ["KKM", "LSSMTC", "LSKMTC", "MBC"])
def test_objective_never_rises(name, rows_and_tasks):
    X, tasks = rows_and_tasks
    method, index = REFERENCE_METHODS[name], index_tasks(tasks, len(X))
    for seed in range(3):
        parts = method.cluster(X[index.order], index.slices(), 5, 2, np.random.RandomState(seed), **method.default)
        for run in (run for runs in parts for run in runs):
            assert_never_rises(run.history)


@every_method
def test_sparse_equals_dense(method, separated):
    X, _, tasks = separated
    X = np.where(np.abs(X) < 1, 0, X)
    dense, sparse = (method.fit(rows, tasks, 4, n_init=2) for rows in (X, sp.csr_array(X)))
    # clusters, not ids: two restarts can end in the same clusters, and rounding decides between them
    assert min(per_task(nmi, dense.labels, sparse.labels, tasks).values()) == pytest.approx(1.0)
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-6)


@every_method
def test_labels_come_back_in_the_order_of_the_input(method):
    X, _, tasks = separated_tasks()
    by_task = np.argsort(tasks, kind="stable")
    labels, in_order = method.fit(X, tasks, 4).labels[by_task], method.fit(X[by_task], tasks[by_task], 4).labels
    if not method.pooled:  # starts of pooled methods depend on the order of the rows
        np.testing.assert_array_equal(labels, in_order)
    assert nmi(labels, in_order) == pytest.approx(1.0)


@every_method
def test_every_start_is_reported_and_the_best_is_kept(method, noise):
    X, tasks = noise
    found = method.fit(X, tasks, 3, n_init=4)
    assert found.starts.shape == (4, len(X))
    if method.pooled or method.name in ("LSSMTC", "MBC"):
        assert (found.starts == found.labels).all(axis=1).any()
    for task in np.unique(tasks):  # each task keeps its own best start
        mine = tasks == task
        assert (found.starts[:, mine] == found.labels[mine]).all(axis=1).any()


@every_method
def test_equal_rows_are_no_obstacle(method):
    found = method.fit(np.ones((8, 3)), list("aaaabbbb"), 2, n_init=2)
    assert np.isfinite(found.objective)
    assert set(found.labels.tolist()) <= {0, 1}


def test_a_task_with_too_few_rows_is_named(noise):
    X, _ = noise
    with pytest.raises(ValueError, match="task 'small' has 2 rows, fewer than the 3 clusters"):
        REFERENCE_METHODS["KM"].fit(X, np.repeat(["big", "small"], [88, 2]), 3)
