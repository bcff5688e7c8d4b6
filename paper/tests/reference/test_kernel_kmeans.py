"""Kernel k-means and the paper's kernel width."""

import itertools

import numpy as np
import pytest
from reference_helpers import assert_never_rises
from sklearn.cluster import KMeans
from sklearn.metrics.pairwise import euclidean_distances

from paper.reference import REFERENCE_METHODS
from paper.reference.kernel_methods import (
    descend,
    mean_distance,
    nearest_seed,
    rbf_kernel,
    reassign,
    seed_rows,
    squared_distances,
)


def within_cluster_scatter(X, labels):
    return sum(((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels))


def test_kmeans_has_the_scatter_within_clusters_as_its_objective(rows_and_tasks):
    X, tasks = rows_and_tasks
    found = REFERENCE_METHODS["KM"].fit(X, tasks, 5, n_init=3)
    expected = sum(within_cluster_scatter(X[tasks == t], found.labels[tasks == t]) for t in np.unique(tasks))
    assert found.objective == pytest.approx(expected, rel=1e-9)


def test_linear_kernel_takes_the_steps_of_kmeans(rows_and_tasks):
    X, _ = rows_and_tasks
    X = X - X.mean(axis=0)
    start = KMeans(5, n_init=1, max_iter=1, random_state=3).fit(X[::2]).cluster_centers_
    labels = euclidean_distances(X, start).argmin(axis=1)
    ours = descend(X @ X.T, labels, 5)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(5)])
    theirs = KMeans(5, init=means, n_init=1, tol=0, algorithm="lloyd").fit(X)
    assert ours.objective == pytest.approx(theirs.inertia_, rel=1e-9)
    np.testing.assert_array_equal(ours.labels, theirs.labels_)


def test_distances_are_those_to_the_means_in_feature_space(noise):
    X, _ = noise
    labels = np.arange(len(X)) % 3
    means = np.stack([X[labels == k].mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(
        squared_distances(X @ X.T, labels, 3), euclidean_distances(X, means, squared=True), atol=1e-10
    )


def test_finds_the_optimum_of_a_tiny_problem():
    X = np.random.default_rng(0).normal(size=(9, 2))
    K = rbf_kernel(X, mean_distance(X))

    def value(labels):
        labels = np.array(labels)
        return squared_distances(K, labels, 3)[np.arange(9), labels].sum()

    optimum = min(value(labels) for labels in itertools.product(range(3), repeat=9))
    assert REFERENCE_METHODS["KKM"].fit(X, None, 3, n_init=30).objective == pytest.approx(optimum, rel=1e-10)


def test_every_start_descends(noise):
    X, _ = noise
    K = rbf_kernel(X, 0.5 * mean_distance(X))
    rng = np.random.RandomState(0)
    for _ in range(20):
        run = descend(K, rng.randint(8, size=len(K)), 8)
        assert_never_rises(run.history)


def test_an_empty_cluster_is_filled_and_the_objective_falls(noise):
    X, _ = noise
    K = rbf_kernel(X, mean_distance(X))
    labels = np.arange(len(K)) % 2  # clusters 2 and 3 are empty
    distances = squared_distances(K, labels, 4)
    assert np.isinf(distances[:, 2:]).all()
    moved = reassign(distances, labels)
    assert np.bincount(moved, minlength=4).min() >= 1
    rows = np.arange(len(K))
    assert squared_distances(K, moved, 4)[rows, moved].sum() < distances[rows, labels].sum()


def test_seeds_are_distinct_even_among_equal_rows():
    K = np.ones((6, 6))
    seeds = seed_rows(K, 4, np.random.RandomState(0))
    assert len(set(seeds.tolist())) == 4
    assert sorted(nearest_seed(K, seeds)[seeds].tolist()) == [0, 1, 2, 3]


def test_width_is_a_multiple_of_the_mean_distance_of_all_tasks(noise):
    X, tasks = noise
    pairs = [np.linalg.norm(a - b) for a, b in itertools.combinations(X, 2)]
    assert mean_distance(X) == pytest.approx(np.mean(pairs), rel=1e-10)
    found = REFERENCE_METHODS["KKM"].fit(X, tasks, 3, width=0.5, n_init=2)
    sigma = 0.5 * np.mean(pairs)
    total = 0.0
    for task in np.unique(tasks):
        rows, labels = X[tasks == task], found.labels[tasks == task]
        K = np.exp(-(euclidean_distances(rows) ** 2) / (2 * sigma**2))
        total += len(rows) - sum(K[np.ix_(labels == k, labels == k)].sum() / (labels == k).sum() for k in range(3))
    assert found.objective == pytest.approx(total, rel=1e-9)
