"""The reduced problem: weights of given labellings, models and coupling."""

import cvxpy as cp
import numpy as np
import pytest
from relaxation_helpers import mixtures, reference_optimum, small_problem
from test_certificate import METHODS, random_codes

from mtclust.core.criterion import random_labels
from mtclust.core.labels import label_codes
from mtclust.relaxation import level_method
from mtclust.relaxation.level_method import _project, solve_by_levels
from mtclust.relaxation.mixtures import Pools, smallest_mixture, solve_mixture

#: λ₁ that differs by task
UNEQUAL = (0.02, 0.1, 1.0)
COUPLED = [("relationship", None), ("relationship", UNEQUAL), ("features", None), ("features", UNEQUAL)]


def solved(small, codes, accuracy=1e-9):
    """Φ at fixed labels: pools of one."""
    pools, at = Pools(small.problem.offsets, codes), small.coupling.condition(small.coupling.uncoupled())
    return solve_mixture(small.coupling, pools, np.ones(len(small.parts)), at, accuracy=accuracy)


def random_pools(small, rng, n=4):
    """Allowed labellings of every task, and weights: all of it on the first."""
    bounds, offsets, C = small.problem.bounds, small.problem.offsets, small.problem.n_clusters
    labels = [
        np.concatenate([random_labels(k, *both, rng) for k, *both in zip(np.diff(offsets), bounds.lower, bounds.upper)])
        for _ in range(n)
    ]
    pools, mu = Pools(offsets, label_codes(labels[0], C)), np.ones(len(small.parts))
    for other in labels[1:]:
        mu = pools.add(label_codes(other, C), mu)
    return pools, mu, [[each[rows] for each in labels] for rows in small.parts]


def minimum(H, groups):
    mu = cp.Variable(len(H), nonneg=True)
    sums = [cp.sum(mu[np.flatnonzero(groups == g)]) == 1 for g in np.unique(groups)]
    program = cp.Problem(cp.Minimize(0.5 * cp.quad_form(mu, cp.psd_wrap(H))), sums)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    return program.value


@pytest.mark.parametrize("rank", [3, 9, 30])
@pytest.mark.parametrize("seed", range(4))
def test_smallest_mixture_equals_cvxpy(seed, rank):
    """Of vectors with a common part, in fewer, as many and more dimensions; from one of every group and from all."""
    rng = np.random.default_rng(seed)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2])
    vectors = rng.normal(size=(12, rank)) + 2 * rng.normal(size=rank)
    H = vectors @ vectors.T
    optimum = minimum(H, groups)
    first = np.isin(np.arange(12), [0, 3, 5]).astype(float)
    for start in (first, 1.0 / np.bincount(groups)[groups]):
        mu = smallest_mixture(H, groups, start)
        assert 0.5 * mu @ H @ mu == pytest.approx(optimum, rel=1e-7, abs=1e-9 * H.max())
        np.testing.assert_allclose(np.bincount(groups, weights=mu), 1.0, atol=1e-12)
        assert mu.min() >= 0


def test_smallest_mixture_of_equal_and_of_zero_vectors():
    groups = np.array([0, 0, 1, 1])
    for H in (np.ones((4, 4)), np.zeros((4, 4))):
        mu = smallest_mixture(H, groups, np.array([1.0, 0.0, 0.5, 0.5]))
        np.testing.assert_allclose(np.bincount(groups, weights=mu), 1.0)


@pytest.mark.parametrize("method", [*METHODS, "independent"])
def test_gram_holds_the_products_of_all_labellings(method):
    small, rng = small_problem(method, task_sizes=(9, 7, 6)), np.random.default_rng(5)
    pools, _, _ = random_pools(small, rng)
    at = small.coupling.condition(small.coupling.uncoupled())
    H = pools.gram(at)
    for k, weights in enumerate(np.eye(len(H))):
        np.testing.assert_allclose(pools.slopes(at.alpha(pools.codes(weights))), H[:, k], atol=1e-12)


@pytest.mark.parametrize("reduced", ["quadratic", "level"])
@pytest.mark.parametrize(("method", "lambda1"), [*COUPLED, ("independent", UNEQUAL)])
def test_value_on_fixed_pools_equals_cvxpy(method, reduced, lambda1):
    """Φ itself, mixtures of random labellings: no oracle."""
    small = small_problem(method, task_sizes=(9, 7, 6), lambda1=lambda1)
    pools, mu, labellings = random_pools(small, np.random.default_rng(5))
    at = small.coupling.condition(small.coupling.uncoupled())
    if reduced == "level":
        found = solve_by_levels(small.coupling, pools, mu, at, cuts=[], tol=1e-7, max_steps=400)
    else:
        found = solve_mixture(small.coupling, pools, mu, at, tol=1e-7)
    optimum = reference_optimum(small, *mixtures(small.problem, labellings))
    assert found.converged
    assert found.value == pytest.approx(optimum, rel=1e-6)
    assert found.lower <= optimum * (1 + 1e-7)
    assert found.lower == pytest.approx(found.value, rel=2e-7)
    assert found.lower == pytest.approx(pools.bound(found.alpha, found.conjugate), rel=1e-7)
    assert np.all(np.array(found.values) >= optimum * (1 - 1e-7))
    assert np.all(np.diff(found.values) <= 0)
    assert found.value == pytest.approx(found.at.objective(pools.codes(found.mu)), rel=1e-9)


@pytest.mark.parametrize("level", [0.3, 0.9])
@pytest.mark.parametrize("method", METHODS)
def test_bounds_of_the_level_method_hold_when_it_is_stopped_and_its_cuts_are_carried_on(method, level, monkeypatch):
    monkeypatch.setattr(level_method, "LEVEL", level)
    small = small_problem(method, task_sizes=(9, 7, 6))
    pools, mu, labellings = random_pools(small, np.random.default_rng(5), n=6)
    at, cuts = small.coupling.condition(small.coupling.uncoupled()), []
    optimum = reference_optimum(small, *mixtures(small.problem, labellings))
    stopped = solve_by_levels(small.coupling, pools, mu, at, cuts=cuts, tol=1e-6, max_steps=3)
    assert not stopped.converged
    assert len(stopped.values) == 3
    assert stopped.lower <= optimum <= stopped.value
    first = solve_by_levels(small.coupling, pools, mu, at, cuts=cuts, tol=1e-6)
    assert first.converged
    assert first.value == pytest.approx(optimum, rel=1e-5)
    again = solve_by_levels(small.coupling, pools, first.mu, first.at, cuts=cuts, tol=2e-6)
    assert again.lower == pytest.approx(first.lower, rel=1e-5)
    assert len(again.values) < len(first.values) / 2


@pytest.mark.parametrize("seed", range(4))
def test_projection_on_the_level_set_equals_cvxpy(seed):
    rng = np.random.default_rng(seed)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    mu, inside = (weights / np.bincount(groups, weights=weights)[groups] for weights in rng.random((2, 9)))
    A, k = rng.normal(size=(6, 9)), rng.normal(size=6)
    level = np.max(A @ inside + k) + 0.01
    nu = cp.Variable(9, nonneg=True)
    sums = [cp.sum(nu[np.flatnonzero(groups == g)]) == 1 for g in range(3)]
    program = cp.Problem(cp.Minimize(cp.sum_squares(nu - mu)), [*sums, A @ nu + k <= level])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    np.testing.assert_allclose(_project(mu, A, k, groups, level), nu.value, atol=1e-6)
    assert _project(mu, A, k, groups, level=-100.0) is None


def test_pools_grow_by_new_labellings_only_and_these_begin_without_weight():
    first, other = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 2]), np.array([1, 0, 0, 1, 2, 2])
    pools = Pools(np.array([0, 6, 10]), label_codes(first, 3))
    mu = pools.add(label_codes(np.concatenate([other, first[6:]]), 3), np.ones(2))
    assert mu.tolist() == [1.0, 0.0, 1.0]
    assert pools.sizes == [2, 1]
    assert pools.groups.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(pools.codes(mu), label_codes(first, 3))
    alpha = np.random.default_rng(0).normal(size=(10, 3))
    labellings = [(slice(0, 6), first[:6]), (slice(0, 6), other), (slice(6, 10), first[6:])]
    expected = [np.vdot(alpha[rows], label_codes(labels, 3)) for rows, labels in labellings]
    np.testing.assert_allclose(pools.slopes(alpha), expected)
    assert pools.add(label_codes(first, 3), mu) is None


@pytest.mark.parametrize(("method", "lambda1"), COUPLED)
@pytest.mark.parametrize("seed", range(4))
def test_value_of_fixed_labels_equals_cvxpy(method, seed, lambda1):
    small = small_problem(method, seed=seed, d=4, task_sizes=(9, 6, 5), lambda1=lambda1)
    codes = random_codes(small, np.random.default_rng(seed))
    solution = solved(small, codes)
    reference = reference_optimum(small, [codes[rows] for rows in small.parts], [])
    assert solution.value == pytest.approx(reference, rel=1e-6)
    assert solution.value >= reference * (1 - 1e-7)
    assert solution.bound(codes) <= reference * (1 + 1e-7)
    assert solution.value - solution.bound(codes) <= 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_alternation_never_raises_the_objective(method):
    for seed in range(10):
        small = small_problem(method, seed=seed, d=8, task_sizes=(12, 9, 9))
        rng = np.random.default_rng(seed)
        values = solved(small, random_codes(small, rng), accuracy=1e-12).values
        assert len(values) > 1
        assert np.all(np.diff(values) < 0)


@pytest.mark.parametrize("method", METHODS)
def test_closed_form_is_the_minimiser_for_fixed_models(method):
    """½λ₂ tr(S Z⁻¹), S of the models W: no other Z of trace 1 is lower."""
    small, rng = small_problem(method, d=4, task_sizes=(9, 8, 7)), np.random.default_rng(0)
    coupling = small.coupling
    state = coupling.condition(coupling.uncoupled())
    codes = random_codes(small, rng)
    predictors = state.coupling.predictors(state, codes)  # (m, N, C), coefficients on the kernel row
    root = np.linalg.cholesky(small.problem.kernel + 1e-12 * np.eye(len(codes)))
    models = np.einsum("nr,inc->irc", root, predictors)  # W_i in coordinates of the rows
    if method == "relationship":
        S = np.einsum("irc,krc->ik", models, models)
    else:
        stacked = np.concatenate(coupling.models(state, codes), axis=1)
        S = stacked @ stacked.T
    best = np.trace(np.linalg.solve(state.coupling.closed_form_of_rows(state, codes), S))
    for _ in range(50):
        factor = rng.normal(size=S.shape)
        other = 0.8 * state.coupling.closed_form_of_rows(state, codes) + 0.2 * factor @ factor.T / np.sum(factor**2)
        assert np.trace(np.linalg.solve(other, S)) >= best * (1 - 1e-9)


def test_directions_that_the_closed_form_loses_are_found_again():
    """With more features than models D is singular after one closed-form step; alone it ends far from the optimum."""
    small = small_problem("features", d=12, task_sizes=(10, 10), n_clusters=2)
    codes = random_codes(small, np.random.default_rng(0))
    state = small.coupling.condition(small.coupling.uncoupled())
    for _ in range(300):
        state = small.coupling.condition(state.coupling.closed_form_of_rows(state, codes))
    solution = solved(small, codes)
    assert solution.value - solution.bound(codes) <= 1e-9
    assert state.objective(codes) > solution.value * 1.001


def test_looser_accuracy_is_obeyed_and_cheaper():
    small = small_problem("relationship", d=6, task_sizes=(12, 12, 12))
    codes = random_codes(small, np.random.default_rng(0))
    loose, tight = solved(small, codes, 1e-2), solved(small, codes, 1e-10)
    assert loose.value - loose.bound(codes) <= 1e-2
    assert tight.value - tight.bound(codes) <= 1e-10
    assert len(loose.values) < len(tight.values)


def test_independent_tasks_have_nothing_to_learn():
    small = small_problem("independent")
    codes = random_codes(small, np.random.default_rng(0))
    solution = solved(small, codes)
    assert solution.values == (solution.value,)
    assert solution.bound(codes) == pytest.approx(solution.value)


@pytest.mark.parametrize("method", METHODS)
def test_tiny_labels_are_solved_to_the_same_relative_accuracy(method):
    """Values fall by many orders of magnitude along the cuts."""
    small = small_problem(method, d=4)
    codes = random_codes(small, np.random.default_rng(0))
    large, tiny = solved(small, codes, 1e-9), solved(small, 1e-5 * codes, 1e-19)
    assert tiny.value == pytest.approx(1e-10 * large.value, rel=1e-7)
