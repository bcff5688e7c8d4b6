"""The innermost problem: models and coupling for fixed relaxed labels."""

import numpy as np
import pytest
from relaxation_helpers import reference_optimum, small_problem
from test_certificate import METHODS, random_codes

from mtclust.relaxation.alternation import solve_inner


def solved(small, codes, accuracy=1e-9):
    return solve_inner(small.coupling, codes, small.coupling.condition(small.coupling.uncoupled()), accuracy)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_value_equals_cvxpy(method, seed):
    small = small_problem(method, seed=seed, d=4, task_sizes=(9, 6, 5))
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
    predictors = state.predictors(codes)  # (m, N, C), coefficients on the kernel row
    root = np.linalg.cholesky(small.problem.kernel + 1e-12 * np.eye(len(codes)))
    models = np.einsum("nr,inc->irc", root, predictors)  # W_i in coordinates of the rows
    if method == "relationship":
        S = np.einsum("irc,krc->ik", models, models)
    else:
        stacked = np.concatenate(state.models(codes), axis=1)
        S = stacked @ stacked.T
    best = np.trace(np.linalg.solve(state.closed_form(codes), S))
    for _ in range(50):
        factor = rng.normal(size=S.shape)
        other = 0.8 * state.closed_form(codes) + 0.2 * factor @ factor.T / np.sum(factor**2)
        assert np.trace(np.linalg.solve(other, S)) >= best * (1 - 1e-9)


def test_directions_that_the_closed_form_loses_are_found_again():
    """With more features than models D is singular after one closed-form step; alone it ends far from the optimum."""
    small = small_problem("features", d=12, task_sizes=(10, 10), n_clusters=2)
    codes = random_codes(small, np.random.default_rng(0))
    state = small.coupling.condition(small.coupling.uncoupled())
    for _ in range(300):
        state = small.coupling.condition(state.closed_form(codes))
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
