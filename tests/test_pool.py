"""Labellings of one task alone: random starts, the path of λ, pools."""

import numpy as np
import pytest

from mtclust.core import compiled
from mtclust.core.criterion import (
    PaperObjective,
    QuadraticTerm,
    random_labels,
    ridge_inverses,
)
from mtclust.core.kernels import centre_kernel
from mtclust.core.labels import SizeBounds, label_codes, parse_sizes
from mtclust.search.problem import Problem, SearchOptions
from tests.conftest import gaussian_tasks


def task_pool(kernel, ridge, lower, upper, n_init, seed):
    found = PaperObjective().starts_of_task(kernel, ridge, lower, upper, n_init, seed)
    M = ridge_inverses(kernel, np.array([ridge]))[0]
    return [(value(M, labels, len(lower)), labels) for labels in found]


def one_task(rows=18, seed=0):
    """Rows without clusters, which have many local optima."""
    X = np.random.default_rng(seed).normal(size=(rows, 8))
    return centre_kernel(X @ X.T, np.array([0, rows]), True).matrix


def bounds_of(n, n_clusters=3, l=0.3):
    bounds = parse_sizes(l, [n], n_clusters)
    return bounds.lower[0], bounds.upper[0]


def value(M, labels, n_clusters=3):
    codes = label_codes(labels, n_clusters)
    return 0.5 * np.trace(codes.T @ M @ codes)


def partition(labels):
    return frozenset(tuple(np.flatnonzero(labels == c)) for c in np.unique(labels))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [([0, 0, 0], [11, 11, 11]), ([0, 5, 1], [2, 9, 9]), ([1, 1, 8], [3, 3, 8]), ([0, 0, 4], [9] * 3)],
)
def test_random_labels_are_as_even_as_the_bounds_allow(lower, upper):
    lower, upper = np.array(lower), np.array(upper)
    for seed in range(10):
        sizes = np.bincount(random_labels(11, lower, upper, np.random.default_rng(seed)), minlength=3)
        for a in np.flatnonzero(sizes < upper):
            for b in np.flatnonzero(sizes > lower):
                assert sizes[b] - sizes[a] <= 1


def test_every_row_and_every_surplus_place_is_drawn_at_random():
    drawn = np.array([random_labels(4, np.zeros(3, int), np.full(3, 4), np.random.default_rng(s)) for s in range(60)])
    assert all(len(np.unique(column)) == 3 for column in drawn.T)
    sizes = {tuple(np.bincount(labels, minlength=3).tolist()) for labels in drawn}
    assert sizes == {(2, 1, 1), (1, 2, 1), (1, 1, 2)}


def test_quadratic_forms_are_the_inverses_for_every_ridge():
    kernel = one_task(rows=9)
    for ridge, M in zip((0.5, 8.0), ridge_inverses(kernel, np.array([0.5, 8.0]))):
        np.testing.assert_allclose(M, np.linalg.inv(kernel / ridge + 4.5 * np.eye(9)), atol=1e-12)
        np.testing.assert_array_equal(M, M.T)


def test_eigenvalues_that_rounding_made_negative_count_as_zero():
    M = ridge_inverses(np.diag([1.0, -0.9]), np.array([1.0]))[0]
    np.testing.assert_allclose(M, np.diag([0.5, 1.0]))


def test_one_cluster_has_nothing_to_exchange():
    labels, four = np.zeros(4, dtype=np.int64), np.array([4])
    term = QuadraticTerm(np.eye(4), 1)
    assert term.refine(labels, four, four, np.array([1], dtype=np.uint64)) == 0
    assert term.value(labels) == 2.0


def test_a_pool_holds_local_optima_of_the_wanted_ridge_that_are_no_renamings_of_each_other():
    kernel, (lower, upper) = one_task(), bounds_of(18)
    found = task_pool(kernel, 0.01, lower, upper, n_init=20, seed=3)
    M = ridge_inverses(kernel, np.array([0.01]))[0]
    assert len(found) > 2
    assert np.all(np.diff([objective for objective, _ in found]) >= 0)
    assert len({partition(labels) for _, labels in found}) == len(found)
    for objective, labels in found:
        assert value(M, labels) == pytest.approx(objective, rel=1e-10)
        moves = QuadraticTerm(M, 3).refine(labels.copy(), lower, upper, np.array([1], dtype=np.uint64))
        assert moves == 0


def test_the_path_of_ridges_falls_to_the_wanted_one():
    path = PaperObjective.path
    assert path[-1] == 1
    assert np.all(np.diff(path) < 0)


def test_a_pool_follows_falling_ridges_down_to_the_wanted_one(monkeypatch):
    seen = []

    def looked_at(M, *rest):
        seen.append(np.trace(M))
        return exchange(M, *rest)

    exchange = compiled.exchange
    monkeypatch.setattr(compiled, "exchange", looked_at)
    kernel = one_task()
    task_pool(kernel, 0.01, *bounds_of(18), n_init=1, seed=0)
    assert np.all(np.diff(seen) < 0)  # M grows with λ
    assert seen[-1] == pytest.approx(np.trace(np.linalg.inv(kernel / 0.01 + 9 * np.eye(18))))


def test_the_unit_of_the_quadratic_form_does_not_matter():
    M, (lower, upper) = ridge_inverses(one_task(), np.array([0.01]))[0], bounds_of(18)
    ends = []
    for unit in (1.0, 1e-8, 1e8):
        labels = np.arange(18) % 3
        moves = QuadraticTerm(unit * M, 3).refine(labels, lower, upper, np.array([1], dtype=np.uint64))
        assert moves > 0
        ends.append(labels.tolist())
    assert ends[0] == ends[1] == ends[2]


def test_forms_of_a_path_are_those_of_their_own_ridge():
    kernel, ridges = one_task(rows=24), np.array([1.0, 0.1, 0.01])
    for M, ridge in zip(ridge_inverses(kernel, ridges), ridges, strict=True):
        np.testing.assert_allclose(M, np.linalg.inv(kernel / ridge + 12 * np.eye(24)), atol=1e-12)


def test_every_task_has_the_pool_of_its_own_block_ridge_and_bounds():
    X, _, _ = gaussian_tasks(n_tasks=2, rows=10, spread=1.5)
    offsets, ridge = np.array([0, 12, 20]), np.array([0.01, 1.0])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    bounds = SizeBounds(np.array([[6, 3, 3], [2, 2, 2]]), np.array([[6, 3, 3], [4, 4, 4]]))
    problem = Problem(kernel, offsets, bounds, ridge, 0.0, "independent")
    pools = problem.starts(SearchOptions(starts=5), np.random.default_rng(0))
    assert len(pools) == 2
    for task, found in enumerate(pools):
        rows = slice(offsets[task], offsets[task + 1])
        M = ridge_inverses(kernel[rows, rows], ridge[[task]])[0]
        assert 1 <= len(found) <= 5
        for start in found:
            assert bounds.respects(task, np.bincount(start, minlength=3))
        values = [value(M, start) for start in found]
        assert np.all(np.diff(values) >= -1e-12)
