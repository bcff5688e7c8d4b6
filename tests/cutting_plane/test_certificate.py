"""Water-filling and the lower bound that holds for every dual variable."""

import numpy as np
import pytest
from relaxation_helpers import small_problem
from scipy.optimize import minimize

from mtclust.core.labels import label_codes
from mtclust.relaxation.mixtures import conjugate, water_fill

METHODS = ("relationship", "features")
#: Ω and D with λ₁ that differs by task have no closed form
ALL = (*METHODS, "independent", "relationship, unequal", "features, unequal")


def problem_of(method):
    name, _, unequal = method.partition(", ")
    return small_problem(name, lambda1=(0.02, 2.0) if unequal else None)


def random_codes(small, rng):
    """A point of the hull of all labellings, sizes free: a mixture of a few."""
    n, C = len(small.problem.kernel), small.problem.n_clusters
    shares = rng.dirichlet(np.ones(4))
    return sum(share * label_codes(rng.integers(C, size=n), C) for share in shares)


@pytest.mark.parametrize("lambdas", [(1.0, 1.0), (4.0, 0.3), (0.01, 1.0), (1.0, 0.01)])
@pytest.mark.parametrize("b", [(3.0, 1.0, 0.2), (1.0, 1.0, 1.0), (2.0, 0.0, 0.0), (1e-8, 5.0)])
def test_water_filling_is_the_maximum_over_the_simplex(b, lambdas):
    b, (lambda1, lambda2) = np.array(b), lambdas
    omega, value = water_fill(b, lambda1, lambda2)
    assert omega.min() >= 0
    assert omega.sum() == pytest.approx(1.0, abs=1e-12)
    found = minimize(
        lambda w: -np.sum(b * w / (lambda1 * w + lambda2)),
        np.full(len(b), 1 / len(b)),
        bounds=[(0, 1)] * len(b),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert value == pytest.approx(-found.fun, rel=1e-6)
    assert value >= -found.fun * (1 - 1e-9)


def test_water_filling_of_nothing_is_uniform():
    omega, value = water_fill(np.zeros(4), 1.0, 1.0)
    assert omega.tolist() == [0.25] * 4
    assert value == 0.0


@pytest.mark.parametrize("method", ALL)
def test_bound_holds_for_any_alpha_labels_and_coupling(method):
    small, rng = problem_of(method), np.random.default_rng(0)
    size = len(small.coupling.uncoupled())
    for trial in range(40):
        root = rng.normal(size=(size, rng.integers(1, size + 1)))
        Z = root @ root.T / np.sum(root**2)
        codes = random_codes(small, rng)
        state = small.coupling.condition(Z)
        alpha = state.alpha(codes) if trial % 2 else rng.normal(size=codes.shape) * 10.0 ** rng.integers(-3, 2)
        bound = np.vdot(alpha, codes) - conjugate(small.coupling, alpha).value
        assert bound <= state.objective(codes) * (1 + 1e-12)


@pytest.mark.parametrize("method", ALL)
def test_conjugate_is_the_maximum_over_couplings(method):
    small, rng = problem_of(method), np.random.default_rng(1)
    alpha = rng.normal(size=(len(small.problem.kernel), 3))
    best = conjugate(small.coupling, alpha)
    size = len(best.Z)
    assert np.trace(best.Z) == pytest.approx(1.0)

    def value(Z):  # ½⟨α, M⁻¹α⟩
        return 0.5 * np.vdot(alpha, np.linalg.solve(_dense(small.coupling.condition(Z)), alpha))

    assert value(best.Z) == pytest.approx(best.value, rel=1e-7)
    assert value(best.Z) <= best.value * (1 + 1e-12)
    for _ in range(20):
        root = rng.normal(size=(size, size))
        other = root @ root.T / np.sum(root**2)
        assert value(0.9 * best.Z + 0.1 * other) <= best.value * (1 + 1e-12)


def _dense(state):
    """M as one matrix, column by column."""
    n = sum(len(state.block(i)) for i in range(state.coupling.n_tasks))
    return state.alpha(np.eye(n))


@pytest.mark.parametrize("method", ALL)
def test_gradient_of_the_conjugate_equals_differences(method):
    small, rng = problem_of(method), np.random.default_rng(2)
    alpha, step = rng.normal(size=(2, len(small.problem.kernel), 3))
    found = conjugate(small.coupling, alpha)
    h = 1e-6
    difference = conjugate(small.coupling, alpha + h * step).value - conjugate(small.coupling, alpha - h * step).value
    assert difference / (2 * h) == pytest.approx(np.vdot(found.gradient, step), rel=1e-6)
