"""Nyström features: exact with all rows as landmarks, better the more there are."""

import numpy as np
import pytest
import scipy.sparse as sp
from primal_helpers import stacked

from mtclust import DMTRC, DSTC
from mtclust.choose.views import KernelSpec, View
from mtclust.core.coupling import Independent, Relationship
from mtclust.core.kernels import Kernel, rbf_from_distances, squared_distances
from mtclust.core.labels import label_codes
from mtclust.core.tasks import index_tasks
from mtclust.rows.features import feature_map, rank_of

X, Y, TASKS = stacked((70, 50, 60), d=4, spread=1.0)
INDEX = index_tasks(TASKS, len(X))
SQUARED = squared_distances(X, X)
SIGMA = float(np.sqrt(SQUARED).sum()) / (len(X) * (len(X) - 1))
KERNEL = rbf_from_distances(SQUARED, SIGMA)


def features(n_components, seed=0):
    return feature_map(Kernel("rbf", sigma=SIGMA), X, INDEX, INDEX.even_rows(n_components, False))


def test_the_error_of_the_kernel_falls_with_the_number_of_landmarks():
    errors = []
    for n_components in (5, 20, 60, 180):
        found = [features(n_components, seed)(X) for seed in range(5)]
        errors.append(np.mean([np.linalg.norm(Phi @ Phi.T - KERNEL) for Phi in found]) / np.linalg.norm(KERNEL))
    assert np.all(np.diff(errors) < 0)
    assert errors[-1] < 1e-6
    assert errors[1] < 0.1


def test_the_kernel_is_exact_where_a_landmark_is_involved():
    chosen = features(30)
    approximate = chosen(X) @ chosen(chosen.landmarks).T
    np.testing.assert_allclose(approximate, Kernel("rbf", sigma=SIGMA)(X, chosen.landmarks), atol=1e-5)


def test_every_task_gives_landmarks_in_proportion():
    landmarks = features(18).landmarks
    task = [int(TASKS[np.flatnonzero((row == X).all(axis=1))[0]]) for row in landmarks]
    np.testing.assert_array_equal(np.bincount(task), [7, 5, 6])


def test_rows_that_repeat_do_not_break_the_features():
    repeated = np.repeat(X[:10], 18, axis=0)
    Phi = feature_map(Kernel("rbf", sigma=SIGMA), repeated, INDEX, INDEX.even_rows(100, False))(repeated)
    assert Phi.shape[1] <= 10
    np.testing.assert_allclose(Phi @ Phi.T, Kernel("rbf", sigma=SIGMA)(repeated, repeated), atol=1e-6)


@pytest.mark.parametrize("method", [DMTRC, DSTC])
def test_with_all_rows_as_landmarks_the_objective_is_the_exact_one(method):
    options = {"coupling": "full"} if method is DMTRC else {}
    model = method(3, kernel="rbf", width=1.0, lambda1=0.05, lambda2=0.02, sizes="balanced", n_components=len(X),
                   random_state=0, solver_options={"form": "primal"}, **options).fit(X, tasks=TASKS)  # fmt: skip
    view = View(X[INDEX.order], INDEX.offsets)
    kernel = view.through(KernelSpec("rbf", 1.0)).centred.matrix
    if method is DMTRC:
        state = Relationship(kernel, INDEX.offsets, 0.05, 0.02).condition(model.task_covariance_)
    else:
        state = Independent(kernel, INDEX.offsets, 0.07).condition(np.eye(3) / 3)
    # directions below 1e-8 of the largest eigenvalue are dropped
    assert model.objective_ == pytest.approx(state.objective(label_codes(model.labels_, 3)), rel=1e-6)


def test_rank_by_default_grows_with_the_rows_within_bounds():
    rbf = Kernel("rbf", sigma=1.0)
    rows = [np.broadcast_to(0.0, (n, 3)) for n in (50, 2_500, 22_500, 10**7)]
    assert [rank_of(rbf, X, None) for X in rows] == [50, 100, 200, 200]


def test_columns_serve_as_features_where_they_can():
    linear, rbf = Kernel("linear"), Kernel("rbf", sigma=1.0)
    assert rank_of(linear, np.empty((5, 1000)), None) is None
    assert rank_of(linear, np.empty((5, 1001)), None) == 5
    assert rank_of(linear, np.empty((5, 10)), 3) == 3
    assert rank_of(rbf, np.empty((5, 10)), None) == 5
    assert rank_of(linear, sp.csr_matrix((500, 1001)), None) == 200
    assert rank_of(linear, sp.csr_matrix((500, 20)), 30) == 20
