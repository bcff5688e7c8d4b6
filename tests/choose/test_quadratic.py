"""The quadratic discriminant of the judge against fits that really leave each row out."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mtclust.choose import quadratic
from mtclust.choose.judge import Judge
from mtclust.choose.views import KernelSpec, View, judging_kernels


def _cross(seed=0, n=120):
    """Two clusters with one centre, long in different directions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 2)) * np.where(np.arange(2 * n)[:, None] < n, [9.0, 0.5], [0.5, 9.0])
    return X, np.repeat([0, 1], n)


@pytest.mark.parametrize("counts", [(25, 15), (20, 2), (20, 12, 1)], ids=str)
def test_leaves_each_row_out(counts):
    rng, C = np.random.default_rng(1), len(counts)
    labels = np.repeat(np.arange(C), counts)
    X = rng.normal(size=(len(labels), 3)) + 1.5 * labels[:, None]
    chance = quadratic.membership(X, labels, C)
    n, r = X.shape
    means = np.stack([X[labels == c].mean(axis=0) for c in range(C)])
    apart = X - means[labels]
    within = apart.T @ apart / (n - C)  # the shape that all clusters share is not left out
    within += 1e-6 * np.mean(X**2) * np.eye(r)
    nu = r + 2
    for j in range(n):
        density = []
        for c in range(C):
            others = X[(labels == c) & (np.arange(n) != j)]
            if len(others) == 0:  # a row alone in its cluster counts as half a row where it is
                density.append(0.5 * multivariate_normal.pdf(X[j], X[j], within))
                continue
            scatter = (others - others.mean(axis=0)).T @ (others - others.mean(axis=0))
            covariance = (scatter + nu * within) / (len(others) + nu)
            density.append(len(others) * multivariate_normal.pdf(X[j], others.mean(axis=0), covariance))
        np.testing.assert_allclose(chance[j], np.array(density) / np.sum(density), rtol=1e-6, atol=1e-9)


def test_shapes_that_no_line_separates_are_seen():
    X, labels = _cross()
    mixed = np.random.default_rng(0).permutation(labels)
    right, wrong = (quadratic.errors(X, own, 2).sum() for own in (labels, mixed))
    assert right < 0.25 * wrong


def test_a_cluster_without_rows_has_no_probability_and_rows_that_do_not_differ_are_no_error():
    chance = quadratic.membership(np.zeros((6, 1)), np.array([0, 0, 0, 2, 2, 2]), 3)
    np.testing.assert_array_equal(chance[:, 1], 0.0)
    np.testing.assert_allclose(chance.sum(axis=1), 1.0)
    assert quadratic.leading_directions(np.empty((4, 0)), np.empty(0), 2).shape == (4, 1)


def test_no_more_directions_than_rows_allow():
    n = 60
    vectors = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    assert quadratic.leading_directions(vectors, np.arange(n) + 1.0, 2).shape == (n, 10)
    assert quadratic.leading_directions(vectors, np.arange(n) + 1.0, 5).shape == (n, 4)


def test_judges_beside_several_kernels_only():
    X, labels = _cross()
    offsets = np.array([0, len(X)])
    view = View(X, offsets)
    several = {spec.name: view.through(spec, "task").centred.matrix for spec in judging_kernels("auto")}
    one = {"linear": view.through(KernelSpec("linear"), "task").centred.matrix}
    both = Judge(several, offsets)(labels, 2)
    assert both.shape > both.by_kernel["linear"] + 1.0
    assert both.score > both.score_by_kernels
    two = dict(list(several.items())[:2])
    assert Judge(two, offsets)(labels, 2).shape == both.shape
    alone = Judge(one, offsets)(labels, 2)
    assert alone.shape is None
    assert alone.score == alone.score_by_kernels
    assert Judge(several, offsets, by_shape=False)(labels, 2).separation == both.separation
