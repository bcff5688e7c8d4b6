"""The generators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtclust.datasets import _semidefinite_root, _simplex, make_related_tasks


def centres(made, n_clusters):
    """Cluster means relative to the mean of the task, tasks × clusters × features."""
    means = np.array(
        [
            [made.data[(made.tasks == task) & (made.target == cluster)].mean(axis=0) for cluster in range(n_clusters)]
            for task in range(made.n_tasks)
        ]
    )
    return means - means.mean(axis=1, keepdims=True)


def test_sizes_may_differ_between_tasks():
    made = make_related_tasks(2, n_samples=[10, 7], n_clusters=3, random_state=0)
    assert np.bincount(made.tasks).tolist() == [10, 7]
    assert np.bincount(made.target[made.tasks == 0]).tolist() == [4, 3, 3]


def test_random_state_decides_everything():
    first, again, other = (make_related_tasks(random_state=seed).data for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
    rng = np.random.RandomState(0)
    np.testing.assert_array_equal(first, make_related_tasks(random_state=rng).data)


@pytest.mark.parametrize(
    "omega",
    ["related", "unrelated", "outlier", 0.5, -0.4, 1.0, np.array([[1, -1, 0], [-1, 1, 0], [0, 0, 4.0]])],
)
def test_products_of_centres_are_the_chosen_covariance(omega):
    made = make_related_tasks(
        3, task_covariance=omega, n_clusters=4, n_samples=400, separation=1e4, shift=10.0, random_state=0
    )
    A = centres(made, 4)
    products = np.einsum("icf,jcf->ij", A, A) / 1e8
    # four corners of a simplex of side 1: squared norms of 3/8 each
    np.testing.assert_allclose(products, made.task_covariance * 1.5, atol=1e-3)
    for task, own in enumerate(A):
        sides = np.linalg.norm(own[:, None] - own[None], axis=2)[np.triu_indices(4, 1)]
        np.testing.assert_allclose(sides, 1e4 * np.sqrt(made.task_covariance[task, task]), rtol=1e-3)


def test_noise_has_unit_variance_and_shift_moves_whole_tasks():
    still, moved = (make_related_tasks(2, n_samples=30000, shift=shift, random_state=0) for shift in (0.0, 50.0))
    for made in (still, moved):
        residual = made.data[(made.tasks == 0) & (made.target == 0)]
        np.testing.assert_allclose(residual.var(axis=0), 1, atol=0.05)
    np.testing.assert_allclose(centres(still, 3), centres(moved, 3), atol=1e-9)
    assert np.linalg.norm(moved.data[moved.tasks == 0].mean(axis=0)) > 10


def test_named_structures():
    def named(name, n_tasks=3):
        return make_related_tasks(n_tasks, task_covariance=name, random_state=0).task_covariance.tolist()

    assert named("outlier") == [[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]
    assert named("unrelated", 2) == [[1.0, 0.0], [0.0, 1.0]]
    assert [named(name, 1) for name in ("related", "unrelated", "outlier")] == [[[1.0]]] * 3


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_root_of_a_semidefinite_matrix(n_tasks, rank, seed):
    factor = np.random.default_rng(seed).standard_normal((n_tasks, rank))
    omega = factor @ factor.T
    root = _semidefinite_root(omega)
    np.testing.assert_allclose(root @ root.T, omega, atol=1e-6 * np.trace(omega))
    assert root.shape[1] <= n_tasks


@pytest.mark.parametrize("n_clusters", [2, 3, 5, 8])
def test_simplex_has_equal_sides_around_the_origin(n_clusters):
    corners = _simplex(n_clusters)
    sides = np.linalg.norm(corners[:, None] - corners[None], axis=2)[np.triu_indices(n_clusters, 1)]
    np.testing.assert_allclose(sides, 1)
    np.testing.assert_allclose(corners.sum(axis=0), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"task_covariance": "other"}, "'other' is unknown"),
        ({"task_covariance": np.eye(2)}, "symmetric matrix of shape \\(3, 3\\)"),
        ({"task_covariance": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, "symmetric"),
        ({"task_covariance": -0.9}, "positive semidefinite"),
        ({"task_covariance": [[0, 1, 0], [1, 0, 0], [0, 0, 1]]}, "positive semidefinite"),
        ({"task_covariance": np.zeros((3, 3))}, "is zero"),
        ({"task_covariance": "unrelated", "n_features": 5}, "n_features=5 is too small.*at least 6"),
        ({"n_samples": [10, 10]}, "n_samples has 2 entries but there are 3 tasks"),
        ({"n_samples": 2}, "n_samples must be at least 3; got 2"),
        ({"n_clusters": 1}, "n_clusters must be at least 2"),
        ({"n_tasks": 0}, "n_tasks"),
    ],
)
def test_impossible_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_related_tasks(**{"n_tasks": 3, **arguments})
