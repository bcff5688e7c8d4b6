"""Which candidate is chosen, where a wrong one could look good."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from mtclust import DMTRC, DSTC
from mtclust.choose.candidates import k_means, matched, mixture, propose, spectral
from mtclust.metrics import macro_nmi


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
@pytest.mark.parametrize("seed", range(4))
def test_batches_are_no_clusters(seed):
    """A few rows of shifted tasks in many columns: as many batches as clusters, and the batches further apart."""
    rng = np.random.default_rng(seed)
    centres, shifts = 1.3 * rng.normal(size=(5, 20)), 3.0 * rng.normal(size=(5, 20))
    y, tasks = np.tile(np.arange(5), 30), np.repeat(np.arange(5), 30)
    X = centres[y] + shifts[tasks] + rng.normal(size=(150, 20))
    model = DMTRC(5).fit(X, tasks=tasks)
    assert np.all(np.count_nonzero(model.cluster_sizes_, axis=1) > 1)
    assert macro_nmi(y, model.labels_, tasks) > 0.6


def test_clusters_that_touch_but_have_shapes_are_found_from_a_mixture():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = DSTC(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.85  # k-means: 0.62


def test_ids_are_those_of_one_frame_where_both_find_the_same_clusters():
    """Shares that change move the centres of tasks: clusters are found around them, but may swap names."""
    rng = np.random.default_rng(0)
    shares = [(0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)]
    y = np.concatenate([rng.choice(3, 150, p=share) for share in shares])
    X = 6.0 * np.eye(5)[y] + rng.normal(size=(450, 5))
    model = DMTRC(3).fit(X, tasks=np.repeat([0, 1, 2], 150))
    assert adjusted_rand_score(y, model.labels_) > 0.98


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_k_means_is_as_good_as_that_of_scikit_learn(load):
    X, _ = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    labels = k_means(X, 3)
    cost = sum(np.sum((X[labels == c] - X[labels == c].mean(axis=0)) ** 2) for c in range(3))
    assert cost <= KMeans(3, n_init=10, random_state=0).fit(X).inertia_ * 1.01


@pytest.mark.parametrize("one_shape", [True, False])
def test_mixtures_are_those_of_scikit_learn(one_shape):
    X, _ = load_iris(return_X_y=True)
    start = k_means(X, 3)
    theirs = GaussianMixture(
        3, covariance_type="tied" if one_shape else "full", reg_covar=1e-6 * X.var(),
        weights_init=np.bincount(start) / len(X), means_init=[X[start == c].mean(axis=0) for c in range(3)], tol=1e-5,
        random_state=0,  # of the first covariances
    ).fit_predict(X)  # fmt: skip
    assert adjusted_rand_score(mixture(X, np.zeros((4, 4)), 3, start, one_shape=one_shape), theirs) > 0.85


def test_neighbours_follow_shapes_that_means_cannot():
    X, y = make_moons(200, noise=0.05, random_state=0)
    assert adjusted_rand_score(y, spectral(X, 2)) == 1.0
    assert adjusted_rand_score(y, k_means(X, 2)) < 0.6


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.ClusterNumberWarning")
def test_equal_rows_have_the_same_neighbours():
    """Where several rows are as near as the tenth, all are neighbours: which come first tells equal rows apart."""
    rng = np.random.default_rng(712)
    X, tasks = (rng.random((60, 4)) < 0.5) * 1.0, rng.integers(2, size=60)
    labels = DMTRC("auto", center="task").fit(X, tasks=tasks).labels_
    kinds = np.unique(np.c_[X, tasks], axis=0, return_inverse=True)[1].ravel()
    assert len(np.unique(np.c_[kinds, labels], axis=0)) == kinds.max() + 1
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(60)
        again = DMTRC("auto", center="task").fit(X[order], tasks=tasks[order])
        np.testing.assert_array_equal(again.labels_, labels[order])


def test_ids_are_matched_by_means_around_those_of_the_tasks():
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(4), 30), np.tile(np.arange(3), 40)
    X = 6.0 * np.eye(4)[y] + rng.normal(size=(120, 4)) + 9.0 * rng.normal(size=(4, 4))[tasks]
    turned = np.stack([rng.permutation(3) for _ in range(4)])[tasks, y]
    assert adjusted_rand_score(y, turned) < 0.9
    assert adjusted_rand_score(y, matched(X, tasks, turned, 3)) == 1.0


def test_candidates_do_not_depend_on_the_order_of_tasks_and_small_tasks_are_no_trouble():
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(5), [1, 2, 3, 20, 20])
    X = rng.normal(size=(46, 3))
    found, _ = propose(X, tasks, 4)
    assert len({(own.method, own.frame) for own in found}) == len(found) == 15
    assert all(own.labels.shape == (46,) and own.labels.min() >= 0 and own.labels.max() < 4 for own in found)
