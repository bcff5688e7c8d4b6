"""Rows that belong nowhere: distances to neighbours against all pairs, scores against their formula."""

import numpy as np
import pytest
import scipy.sparse as sp

from mtclust.core.kernels import Kernel
from mtclust.estimators.confidence import neighbour_distances, outlier_scores

#: tasks of 1, 2, 3, 30 and 450 rows that lie close together
OFFSETS = np.array([0, 1, 3, 6, 36, 486])
ROWS = 0.1 * np.random.default_rng(0).normal(size=(486, 4))


def by_all_pairs(rows, offsets):
    pairs = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    np.fill_diagonal(pairs, np.inf)
    expected = np.zeros(len(rows))
    for a, b in zip(offsets[:-1], offsets[1:]):
        if b - a > 1:
            expected[a:b] = np.sort(pairs[a:b, a:b], axis=1)[:, : min(5, b - a - 1)].mean(axis=1)
    return expected


@pytest.mark.parametrize("block", [2**19, 400])
def test_distances_to_neighbours_are_those_of_all_pairs(block, monkeypatch):
    monkeypatch.setattr("mtclust.estimators.confidence._BLOCK", block)
    expected = by_all_pairs(ROWS, OFFSETS)
    np.testing.assert_allclose(neighbour_distances(ROWS, OFFSETS), expected, atol=1e-8)
    np.testing.assert_allclose(neighbour_distances(sp.csr_matrix(ROWS), OFFSETS), expected, atol=1e-8)


@pytest.mark.parametrize("block", [2**19, 400])
def test_distances_through_a_kernel_are_those_of_its_features(block, monkeypatch):
    monkeypatch.setattr("mtclust.estimators.confidence._BLOCK", block)
    expected = by_all_pairs(ROWS, OFFSETS)
    product = Kernel("callable", function=lambda A, B: A @ B.T)
    np.testing.assert_allclose(neighbour_distances(ROWS, OFFSETS, product), expected, atol=1e-7)
    matrix = ROWS @ ROWS.T
    np.testing.assert_allclose(neighbour_distances(matrix, OFFSETS, Kernel("precomputed")), expected, atol=1e-7)


def test_neighbours_of_large_tasks_are_sought_among_some_rows(monkeypatch):
    expected = by_all_pairs(ROWS, OFFSETS)
    monkeypatch.setattr("mtclust.estimators.confidence._MOST_REFERENCES", 60)
    some = neighbour_distances(ROWS, OFFSETS)
    np.testing.assert_allclose(some[:36], expected[:36], atol=1e-8)
    assert np.all(some >= expected - 1e-8)
    assert np.corrcoef(some, expected)[0, 1] > 0.8


def test_scores_follow_their_formula():
    rng = np.random.default_rng(1)
    distances, offsets = rng.uniform(1, 3, size=60), np.array([0, 25, 60])
    distances[25:] *= 40.0  # tasks have scales of their own
    relative = np.concatenate([distances[a:b] / np.median(distances[a:b]) for a, b in ((0, 25), (25, 60))])
    roots = np.sqrt(relative)
    z = (roots - np.median(roots)) / (1.4826 * np.median(np.abs(roots - np.median(roots))))
    expected = np.where(z > 0, z / (z + 3.5), 0.0)
    np.testing.assert_allclose(outlier_scores(distances, offsets), expected, atol=1e-12)
    assert np.count_nonzero(expected == 0) >= 30


def test_rows_that_do_not_differ_are_no_outliers():
    assert outlier_scores(np.zeros(6), np.array([0, 6])).tolist() == [0.0] * 6
    twice = outlier_scores(np.array([0.0, 0.0, 0.0, 0.0, 5.0]), np.array([0, 5]))
    assert twice[:4].tolist() == [0.0] * 4
    assert twice[4] > 0.4
    alone = outlier_scores(np.array([0.0, 1.0, 1.2, 0.9, 1.1]), np.array([0, 1, 5]))
    assert alone[0] == 0.0


def test_scores_of_distances_are_those_of_robust_deviations():
    scores = outlier_scores(np.array([1.0, 1.1, 0.9, 1.05, 9.0]), np.array([0, 5]))
    assert scores.round(2).tolist() == [0.0, 0.16, 0.0, 0.0, 0.94]
