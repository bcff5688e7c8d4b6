"""The whole solver against cvxpy with the hull written out, and what it does on the way."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from relaxation_helpers import EXACT, hull, mixtures, reference_optimum, small_problem

from mtclust.core.labels import SizeBounds, label_codes, parse_sizes
from mtclust.relaxation import cutting_plane
from mtclust.relaxation.cutting_plane import (
    CuttingPlaneOptions,
    most_violated,
    shrinkage,
    solve_cutting_plane,
    starting_labels,
)
from mtclust.relaxation.mixtures import Pools
from mtclust.search.problem import Problem

METHODS = ("relationship", "features", "independent")
#: exact sizes that differ by cluster, and intervals that do not contain n/C
ASYMMETRIC = {
    "two clusters": (2, np.array([[6, 2], [4, 2]])),
    "three clusters": (3, np.array([[5, 2, 1], [1, 3, 2]])),
    "intervals": (3, np.array([[[5, 5], [1, 2], [1, 2]], [[1, 1], [1, 2], [3, 4]]])),
}
SYMMETRIC = {"balanced": (3, "balanced", True), "l = 0.3": (3, 0.3, False), "two clusters": (2, 0.5, False)}


def cases(names, by_levels):
    """Every case for the coupled methods, one for independent tasks, whose problem is a part of theirs.

    The level method, which is slow, has one per method.
    """
    independent = by_levels["independent"]
    coupled = [(method, name, "quadratic") for method in METHODS[:2] for name in names]
    return [*coupled, ("independent", independent, "quadratic"), *((*case, "level") for case in by_levels.items())]


def solve(small, options=EXACT, seed=1):
    return solve_cutting_plane(small.problem, replace(options, init="random"), np.random.default_rng(seed))


@pytest.fixture
def solve_and_look(monkeypatch):
    """``solve`` that also says which labellings of every task (K_i × n_i) the pools end with."""

    def solved(small, options):
        kept = []
        monkeypatch.setattr(cutting_plane, "Pools", lambda *given: kept.append(Pools(*given)) or kept[-1])
        result = solve(small, options)
        return result, [Y.reshape(len(Y), -1, 3).argmax(axis=2) for Y in kept[0].members]

    return solved


@pytest.mark.parametrize(
    ("method", "case", "reduced"),
    cases(ASYMMETRIC, {"relationship": "three clusters", "features": "intervals", "independent": "two clusters"}),
)
def test_asymmetric_bounds_without_intercept_equal_cvxpy(method, case, reduced):
    n_clusters, sizes = ASYMMETRIC[case]
    small = small_problem(method, sizes=sizes, n_clusters=n_clusters)
    optimum = reference_optimum(small, *hull(small.problem))
    result = solve(small, replace(EXACT, reduced=reduced))
    assert optimum > 1e-3
    assert result.point.converged
    assert result.point.value == pytest.approx(optimum, rel=1e-5)
    for entry in result.point.history:
        assert entry["objective"] >= optimum * (1 - 1e-7)
        assert entry["lower_bound"] <= optimum * (1 + 1e-7)
        assert entry["lower_bound"] <= entry["pool_bound"] * (1 + 1e-12)  # the pools are a part of the hull
        assert entry["pool_bound"] <= entry["objective"]


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate:UserWarning")  # cvxpy, at a value of 1e-28
@pytest.mark.parametrize(
    ("method", "case", "reduced"),
    cases(SYMMETRIC, {"relationship": "l = 0.3", "features": "two clusters", "independent": "balanced"}),
)
def test_symmetric_bounds_have_the_value_zero(method, case, reduced):
    n_clusters, sizes, centre = SYMMETRIC[case]
    small = small_problem(method, sizes=sizes, n_clusters=n_clusters, centre=centre, task_sizes=(9, 6))
    optimum = reference_optimum(small, *hull(small.problem))
    result = solve(small, replace(EXACT, reduced=reduced))
    assert abs(optimum) <= 1e-8
    assert result.point.converged
    assert abs(result.point.value - optimum) <= 1e-8
    assert result.relaxation.lower_bound == 0.0
    assert shrinkage(result.relaxation.codes) < 1e-3


@pytest.mark.parametrize("method", METHODS)
def test_objective_falls_and_bounds_never_cross(method):
    small = small_problem(method, task_sizes=(30, 24, 18), d=8)
    result = solve(small, replace(EXACT, max_cuts=6, level_tol=1e-3))
    objective, lower = (
        np.array([entry[key] for entry in result.point.history]) for key in ("objective", "lower_bound")
    )
    assert np.all(np.diff(objective) < 0)
    assert np.all(np.diff(lower) >= 0)
    assert np.all(lower <= objective)
    np.testing.assert_allclose([entry["gap"] for entry in result.point.history], objective - lower)
    assert [entry["step"] for entry in result.point.history] == [f"cut {k}" for k in range(len(result.point.history))]


def test_oracle_finds_the_most_violated_of_all_labellings():
    small = small_problem("independent", task_sizes=(6, 4), sizes=np.array([[3, 2, 1], [1, 1, 2]]))
    alpha = np.random.default_rng(0).normal(size=(10, 3))
    found = most_violated(alpha, small.problem.offsets, small.problem.bounds)
    for task, rows in enumerate(small.parts):
        lowest = min(
            np.vdot(alpha[rows], label_codes(candidate, 3))
            for candidate in product(range(3), repeat=rows.stop - rows.start)
            if small.problem.bounds.respects(task, np.bincount(candidate, minlength=3))
        )
        assert np.vdot(alpha[rows], label_codes(found[rows], 3)) == pytest.approx(lowest)


def test_relaxed_labels_are_the_mixture_of_the_pools(solve_and_look):
    small = small_problem("relationship", task_sizes=(12, 9))
    result, pools = solve_and_look(small, replace(EXACT, max_cuts=4, level_tol=1e-3))
    relaxation = result.relaxation
    for rows, weights, pool in zip(small.parts, relaxation.weights, pools):
        assert weights.sum() == pytest.approx(1.0)
        assert weights.min() >= 0
        mixture = sum(w * label_codes(labels, 3) for w, labels in zip(weights, pool))
        np.testing.assert_allclose(relaxation.codes[rows], mixture, atol=1e-12)
        assert len({labels.tobytes() for labels in pool}) == len(pool)
    assert [len(pool) for pool in pools] == result.point.history[-1]["pool_sizes"]


def test_pools_hold_allowed_labellings_only(solve_and_look):
    small = small_problem("features", sizes=0.2, task_sizes=(15, 10))
    _, pools = solve_and_look(small, replace(EXACT, max_cuts=5, level_tol=1e-3))
    for task, pool in enumerate(pools):
        for labels in pool:
            assert small.problem.bounds.respects(task, np.bincount(labels, minlength=3))


@pytest.mark.parametrize("reduced", ["quadratic", "level"])
@pytest.mark.parametrize("method", METHODS)
def test_value_on_the_final_pools_equals_cvxpy(solve_and_look, method, reduced):
    small = small_problem(method, sizes=np.array([[6, 4, 2], [2, 4, 3]]), task_sizes=(12, 9), d=4)
    result, pools = solve_and_look(small, replace(EXACT, max_cuts=3, reduced=reduced))
    optimum = reference_optimum(small, *mixtures(small.problem, pools))
    assert not result.point.converged
    assert result.point.value == pytest.approx(optimum, rel=1e-5)


def test_scores_are_those_of_the_models_and_labels_their_argmax():
    small = small_problem("relationship", task_sizes=(12, 9))
    result = solve(small, replace(EXACT, max_cuts=2, level_tol=1e-3))
    at = result.point.fit.at
    predictors = at.coupling.predictors(at, result.point.codes)
    for task, rows in enumerate(small.parts):
        np.testing.assert_allclose(
            result.relaxation.scores[rows], small.problem.kernel[rows] @ predictors[task], atol=1e-9
        )
    np.testing.assert_array_equal(result.point.labels, result.relaxation.scores.argmax(axis=1))


def test_fewer_cuts_are_the_first_cuts_of_a_longer_run():
    small = small_problem("relationship", task_sizes=(15, 12), sizes=np.array([[8, 4, 3], [2, 9, 1]]))
    short, long = (solve(small, CuttingPlaneOptions(max_cuts=k)) for k in (1, 3))
    for a, b in zip(short.point.history, long.point.history):
        assert a["objective"] == b["objective"]
        np.testing.assert_array_equal(a["labels"], b["labels"])


def test_no_cuts_is_the_model_of_the_start():
    small = small_problem("relationship", task_sizes=(15, 12))
    result = solve(small, CuttingPlaneOptions(max_cuts=0))
    np.testing.assert_array_equal(result.relaxation.codes, label_codes(result.relaxation.start, 3))
    assert shrinkage(result.relaxation.codes) == pytest.approx(1.0)
    assert len(result.point.history) == 1


def test_two_clusters_collapse_within_two_cuts():
    """The oracle looks for the opposite of the labels, and the mean of both is zero."""
    small = small_problem("relationship", sizes="balanced", n_clusters=2, task_sizes=(20, 20), centre=True)
    result = solve(small, CuttingPlaneOptions(max_cuts=5, zero_tol=0))
    assert result.point.converged
    assert result.point.n_iter <= 2
    assert result.relaxation.collapsed
    assert shrinkage(result.relaxation.codes) < 1e-3


def test_one_cluster_needs_no_cuts():
    small = small_problem("independent", n_clusters=1, sizes="balanced")
    result = solve(small)
    assert np.all(result.point.labels == 0)
    assert not result.relaxation.collapsed


def test_single_task_labels_of_coupled_tasks_are_the_start():
    small = small_problem("relationship", task_sizes=(15, 12))
    options = CuttingPlaneOptions(init="random", max_cuts=1)
    result = solve_cutting_plane(small.problem, options, np.random.default_rng(3))
    np.testing.assert_array_equal(result.single.labels, result.relaxation.start)


@pytest.mark.parametrize("method", METHODS[:2])
def test_lambda1_may_differ_by_task(method):
    n_clusters, sizes = ASYMMETRIC["three clusters"]
    small = small_problem(method, sizes=sizes, n_clusters=n_clusters, lambda1=(0.02, 1.0))
    optimum = reference_optimum(small, *hull(small.problem))
    result = solve_cutting_plane(small.problem, EXACT, np.random.default_rng(0))
    assert result.point.converged
    assert result.point.value == pytest.approx(optimum, rel=1e-5)
    assert result.relaxation.lower_bound <= optimum * (1 + 1e-7)


def test_lambda1_of_zero_is_refused():
    problem = small_problem("relationship", lambda1=(0.1, 0.0)).problem
    with pytest.raises(ValueError, match="need lambda1 > 0 in all"):
        solve_cutting_plane(problem, EXACT, np.random.default_rng(0))


def test_constant_rows_do_no_harm():
    offsets = np.array([0, 6, 12])
    bounds = parse_sizes("balanced", [6, 6], 3)
    problem = Problem(np.zeros((12, 12)), offsets, bounds, np.full(2, 0.1), 0.1, "independent")
    for init in ("k-means", "spectral", "random"):
        options = CuttingPlaneOptions(init=init, max_cuts=1)
        result = solve_cutting_plane(problem, options, np.random.default_rng(0))
        assert np.isfinite(result.point.value)


@pytest.mark.parametrize("init", ["k-means", "spectral", "random"])
def test_starts_obey_the_bounds_and_are_reproducible(init):
    small = small_problem("relationship", sizes=np.array([[8, 4, 3], [2, 9, 1]]), task_sizes=(15, 12))
    first, second = (starting_labels(small.problem, init, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    for task, rows in enumerate(small.parts):
        assert small.problem.bounds.respects(task, np.bincount(first[rows], minlength=3))


@pytest.mark.parametrize("init", ["k-means", "spectral"])
def test_starts_find_separated_clusters(init):
    rng = np.random.default_rng(0)
    truth = np.tile(np.repeat(np.arange(3), 10), 2)
    X = 10 * np.eye(3)[truth] + rng.normal(size=(60, 3))
    offsets = np.array([0, 30, 60])
    X[:30] -= X[:30].mean(axis=0)
    X[30:] -= X[30:].mean(axis=0)
    bounds = SizeBounds(np.full((2, 3), 5), np.full((2, 3), 20))
    problem = Problem(X @ X.T, offsets, bounds, np.full(2, 0.1), 0.1)
    labels = starting_labels(problem, init, rng)
    assert len(set(zip(labels.tolist(), truth.tolist()))) == 3  # ids agree over tasks, too


@pytest.mark.parametrize("method", METHODS)
def test_a_collapse_is_the_end_of_the_way_to_zero(method):
    """The level method would go on for as many steps again; a program solved exactly jumps to zero."""
    small = small_problem(method, sizes="balanced", task_sizes=(12, 9), centre=True)
    largest = 2 * 3 / 2
    result = solve(small, CuttingPlaneOptions(max_cuts=200, reduced="level"))
    assert result.point.converged
    assert result.relaxation.collapsed
    assert 1e-6 * largest < result.relaxation.value <= 1e-4 * largest
    exact = solve(small, CuttingPlaneOptions(max_cuts=200, reduced="level", zero_tol=0))
    assert exact.relaxation.value < 1e-8
    steps = [sum(entry["level_steps"] for entry in each.point.history) for each in (result, exact)]
    assert steps[0] < 0.7 * steps[1]


@pytest.mark.parametrize("method", METHODS)
def test_relaxed_labels_that_are_zero_tie_all_rows(method):
    """Not the signs of rounding, which differ by machine."""
    small = small_problem(method, sizes="balanced", task_sizes=(12, 9), centre=True)
    result = solve(small, CuttingPlaneOptions(max_cuts=200))
    assert result.point.converged
    assert result.relaxation.collapsed
    assert np.all(result.relaxation.codes == 0)
    assert result.relaxation.n_ties == 21
    assert np.all(result.point.labels == 0)
