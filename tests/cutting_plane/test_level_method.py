"""The level method on fixed pools and on functions whose minimum is known."""

import builtins

import cvxpy as cp
import numpy as np
import pytest
from relaxation_helpers import mixtures, reference_optimum, small_problem

from mtclust.problem.pool import random_labels
from mtclust.relaxation.cutting_plane import Reduced
from mtclust.relaxation.level_method import Cut, Evaluation, minimise


def quadratic(rng, n):
    root = rng.normal(size=(n, n))
    H, q = root @ root.T / n, rng.normal(size=n)

    def evaluate(mu, accuracy):
        value = 0.5 * mu @ H @ mu + q @ mu
        slopes = H @ mu + q
        return Evaluation(value, Cut(value - slopes @ mu, slopes))

    return H, q, evaluate


def minimum(H, q, groups):
    mu = cp.Variable(len(q), nonneg=True)
    sums = [cp.sum(mu[np.flatnonzero(groups == g)]) == 1 for g in np.unique(groups)]
    program = cp.Problem(cp.Minimize(0.5 * cp.quad_form(mu, cp.psd_wrap(H)) + q @ mu), sums)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12)
    return program.value


@pytest.mark.parametrize("level", [0.3, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_minimum_of_a_quadratic_equals_cvxpy(seed, level):
    rng = np.random.default_rng(seed)
    groups = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    H, q, evaluate = quadratic(rng, len(groups))
    start = 1.0 / np.bincount(groups)[groups]
    found = minimise(evaluate, groups, start, tol=0.0, tol_absolute=1e-6, max_steps=500, level=level)
    optimum = minimum(H, q, groups)
    assert found.converged
    assert found.best.value == pytest.approx(optimum, abs=1e-6)
    np.testing.assert_allclose(np.bincount(groups, weights=found.mu), 1.0, atol=1e-12)
    assert found.mu.min() >= 0
    for step in found.steps:
        assert step.lower <= optimum + 1e-9
        assert step.upper >= optimum - 1e-9
        assert step.lower <= step.upper


@pytest.mark.parametrize("method", ["relationship", "features", "independent"])
def test_value_on_fixed_pools_equals_cvxpy(method):
    """Φ itself, mixtures of random labellings: the level method alone, no oracle."""
    small, rng = small_problem(method, task_sizes=(9, 7, 6)), np.random.default_rng(5)
    bounds, parts = small.problem.bounds, small.parts
    pools = [
        [random_labels(rows.stop - rows.start, bounds.lower[i], bounds.upper[i], rng) for _ in range(4)]
        for i, rows in enumerate(parts)
    ]
    reduced = Reduced(small.coupling, bounds, np.concatenate([pool[0] for pool in pools]))
    mu = np.ones(3)
    for k in range(1, 4):
        mu = reduced.grow([pool[k] for pool in pools], mu)
    found = reduced.minimise(mu, [], tol=1e-7, max_steps=400)
    optimum = reference_optimum(small, *mixtures(small.problem, pools))
    assert found.converged
    assert found.best.value == pytest.approx(optimum, rel=1e-6)
    for step in found.steps:
        assert step.lower <= optimum * (1 + 1e-7)
        assert step.upper >= optimum * (1 - 1e-7)
        assert step.lower <= step.upper
    assert np.all(np.diff([step.upper for step in found.steps]) <= 0)
    assert np.all(np.diff([step.lower for step in found.steps]) >= 0)


def test_carried_cuts_give_the_lower_bound_again():
    rng = np.random.default_rng(0)
    groups = np.array([0, 0, 0, 1, 1, 1])
    _, _, evaluate = quadratic(rng, 6)
    start = np.full(6, 1 / 3)
    found = minimise(evaluate, groups, start, tol=0.0, tol_absolute=1e-7, max_steps=500)
    assert found.weights.sum() == pytest.approx(1.0)
    slopes = sum(w * cut.slopes for w, cut in zip(found.weights, found.cuts))
    constant = sum(w * cut.constant for w, cut in zip(found.weights, found.cuts))
    assert constant + slopes[:3].min() + slopes[3:].min() == pytest.approx(found.lower, abs=1e-7)
    again = minimise(evaluate, groups, found.mu, cuts=found.cuts, tol=0.0, tol_absolute=2e-7, max_steps=500)
    assert len(again.steps) < len(found.steps) / 2


def test_stops_after_max_steps_with_valid_bounds():
    groups = np.array([0, 0, 0, 1, 1, 1])
    H, q, evaluate = quadratic(np.random.default_rng(1), 6)
    found = minimise(evaluate, groups, np.full(6, 1 / 3), tol=0.0, max_steps=3)
    assert not found.converged
    assert len(found.steps) == 3
    assert found.lower <= minimum(H, q, groups) <= found.best.value + 1e-9


def test_missing_clarabel_names_the_extra(monkeypatch):
    real = builtins.__import__

    def no_clarabel(name, *args, **kwargs):
        if name == "clarabel":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    _, _, evaluate = quadratic(np.random.default_rng(1), 6)
    monkeypatch.setattr(builtins, "__import__", no_clarabel)
    with pytest.raises(ImportError, match=r"mtclust\[cutting-plane\]"):
        minimise(evaluate, np.array([0, 0, 0, 1, 1, 1]), np.full(6, 1 / 3), tol=0.0, max_steps=3)
