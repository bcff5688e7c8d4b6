"""E, its moves and its kinship with J, against refitting without rows and against trying all labellings."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mtclust.core.criterion import (
    GAMMA,
    LeaveOneOutTerm,
    decision_weights,
    indicators,
    size_weights,
)
from mtclust.core.kernels import centre_kernel
from mtclust.core.labels import label_codes


def one_task(n: int, d: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return centre_kernel(X @ X.T, np.array([0, n]), centre=True).matrix


def quadratic_form(kernel: np.ndarray, ridge: float) -> np.ndarray:
    n = len(kernel)
    return np.linalg.inv(kernel / ridge + 0.5 * n * np.eye(n))


def refitted_residuals(kernel: np.ndarray, ridge: float, z: np.ndarray) -> np.ndarray:
    """z_j minus its prediction by ridge regression with an intercept on the other rows, one row at a time.

    The penalty stays that of all n rows, and features stay centred where they were: what the closed form leaves out is
    the row's own residual.
    """
    n = len(kernel)
    penalty = 0.5 * n * ridge
    result = np.empty(n)
    for j in range(n):
        rest = np.delete(np.arange(n), j)
        # minimise |z − b − K a|² + penalty aᵀKa over the other rows' coefficients and the intercept b
        system = np.block([[kernel[np.ix_(rest, rest)] + penalty * np.eye(n - 1), np.ones((n - 1, 1))],
                           [np.ones((1, n - 1)), np.zeros((1, 1))]])  # fmt: skip
        solution = np.linalg.solve(system, np.append(z[rest], 0.0))
        result[j] = z[j] - kernel[j, rest] @ solution[:-1] - solution[-1]
    return result


@pytest.mark.parametrize(("n", "d", "ridge"), [(12, 2, 0.5), (9, 4, 0.125), (15, 3, 2.0)])
def test_residuals_equal_refitting_without_each_row(n: int, d: int, ridge: float) -> None:
    kernel = one_task(n, d, seed=n)
    z = (np.random.default_rng(1).random(n) < 0.4).astype(float)
    form = LeaveOneOutTerm.of(quadratic_form(kernel, ridge), 2)
    np.testing.assert_allclose(form.residual_map @ z, refitted_residuals(kernel, ridge, z), atol=1e-8)


def test_predictability_is_the_weighted_sum_of_leave_one_out_r_squared() -> None:
    kernel, labels = one_task(20, 3, 0), np.random.default_rng(2).integers(3, size=20)
    z = indicators(labels, 3)
    form = LeaveOneOutTerm.of(quadratic_form(kernel, 0.25), 3)
    expected = 0.0
    for c in range(3):
        e = refitted_residuals(kernel, 0.25, z[:, c])
        # predicting the mean of the others leaves (n/(n−1))² of the variance: R² is 0 then
        mean_of_others = (z[:, c].sum() - z[:, c]) / 19
        r_squared = 1 - np.sum(e**2) / np.sum((z[:, c] - mean_of_others) ** 2)
        share = z[:, c].mean()
        expected += (4 * share * (1 - share)) ** GAMMA * r_squared
    assert -form.value(labels) == pytest.approx(expected, abs=1e-9)


def test_gamma_one_with_training_residuals_is_the_objective_of_the_paper() -> None:
    n, C, ridge = 18, 3, 0.3
    kernel = one_task(n, 2, 3)
    M = quadratic_form(kernel, ridge)
    R = 0.5 * n * M - 1.0 / n
    values = []
    for seed in range(6):
        labels = np.random.default_rng(seed).permutation(np.arange(n) % C)
        Y, z = label_codes(labels, C), indicators(labels, C)
        share = z.mean(axis=0)
        J = 0.5 * np.trace(Y.T @ M @ Y)
        explained = np.einsum("nc,nm,mc->c", z, R, z)
        E = np.sum(4 * share * (1 - share) * (1 - explained / (n * share * (1 - share))))
        values.append((J, E))
    J, E = np.array(values).T
    # J = const − (a²/4)·E for labels of any sizes, a = C/(C−1)
    np.testing.assert_allclose(np.diff(J), -((C / (C - 1)) ** 2) / 4 * np.diff(E), atol=1e-10)


def test_moves_change_the_criterion_by_what_they_claim_and_end_where_none_gains() -> None:
    rng = np.random.default_rng(0)
    for seed in range(8):
        kernel = one_task(14, 2, seed)
        form = LeaveOneOutTerm.of(quadratic_form(kernel, 0.125), 3)
        form = replace(form, from_others=0.05 * rng.normal(size=(14, 3)))
        labels = rng.permutation(np.arange(14) % 3)
        lower, upper = np.full(3, 2), np.full(3, 14)
        before = form.value(labels)
        moves, value = (
            form.refine(labels, lower, upper, rng.integers(2**63, size=1, dtype=np.uint64)),
            form.value(labels),
        )
        assert value < before if moves else value == before
        counts = np.bincount(labels, minlength=3)
        for j, q in itertools.product(range(14), range(3)):
            if counts[labels[j]] > 2:
                other = labels.copy()
                other[j] = q
                assert form.value(other) >= value - 1e-9


def test_search_finds_what_trying_all_labellings_finds() -> None:
    """Two clusters of nine rows: 2⁹ labellings, tried one by one."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(10):
        X = np.concatenate([rng.normal(size=(6, 2)), rng.normal(size=(3, 2)) + 4])
        kernel = centre_kernel(X @ X.T, np.array([0, 9]), centre=True).matrix
        form = LeaveOneOutTerm.of(quadratic_form(kernel, 0.125), 2)
        best = max(
            -form.value(np.array(labels)) for labels in itertools.product((0, 1), repeat=9) if 2 <= sum(labels) <= 7
        )
        ends = []
        for start in range(6):
            labels = np.random.default_rng(start).permutation(np.arange(9) % 2)
            form.refine(labels, np.full(2, 2), np.full(2, 9), np.array([start], dtype=np.uint64))
            ends.append(-form.value(labels))
        assert max(ends) <= best + 1e-9
        found += max(ends) >= best - 1e-9
    assert found >= 9


def test_one_row_is_never_a_cluster_worth_having() -> None:
    weight, unit = size_weights(10)
    assert weight[0] == weight[10] == unit[0] == unit[10] == 0
    kernel = one_task(10, 2, 0)
    form = LeaveOneOutTerm.of(quadratic_form(kernel, 0.125), 2)
    error = form.residual_map @ indicators([1, *[0] * 9], 2)[:, 1]
    assert 1 - error @ error * (0.9**2) / (10 * 0.1 * 0.9) < 0.5


def test_decision_weights_are_the_derivative_of_the_criterion() -> None:
    """Adding a row of score f to a cluster changes its part of E by 2/n·(scale·f + constant), to first order."""
    n, count, explained, f = 200_000, 30_000, 22_000.0, 0.7

    def E(c: float, b: float) -> float:
        share = c / n
        return (4 * share * (1 - share)) ** GAMMA * b / (n * share * (1 - share))

    gain = E(count + 1, explained + 2 * f) - E(count, explained)
    share = count / n
    scale, constant = decision_weights(np.array([share]), np.array([explained / (n * share * (1 - share))]))
    assert gain == pytest.approx(2 / n * float(scale[0] * f + constant[0]), rel=1e-3)


def test_the_cost_of_names_is_what_renaming_clusters_changes() -> None:
    rng = np.random.default_rng(4)
    form = LeaveOneOutTerm.of(quadratic_form(one_task(12, 2, 1), 0.2), 3)
    labels = rng.integers(3, size=12)
    for others in (None, 0.1 * rng.normal(size=(12, 3))):
        own = replace(form, from_others=others)
        cost = own.cost_of_renaming(labels)
        for names in itertools.permutations(range(3)):
            changed = cost[np.arange(3), names].sum() - np.trace(cost)
            assert own.value(np.array(names)[labels]) - own.value(labels) == pytest.approx(changed, abs=1e-12)


def test_a_cluster_that_a_task_lacks_is_weighed_as_in_the_others_and_one_that_all_lack_decides_nothing() -> None:
    shares = np.array([[0.0, 0.0, 0.3, 1.0], [0.4, 0.0, 0.6, 1.0]])
    scale, constant = decision_weights(shares, np.full((2, 4), 0.5))
    assert scale[:, [1, 3]].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert not constant[:, [1, 3]].any()
    assert scale[0, 2] == pytest.approx((4 * 0.21) ** GAMMA / 0.21)
    assert constant[0, 2] == pytest.approx(-scale[0, 2] * 0.5 * (1 - GAMMA) * 0.4 * 0.5)
    assert (scale[0, 0], constant[0, 0]) == (scale[1, 0], constant[1, 0])


def test_a_row_that_fits_any_label_of_its_own_keeps_residuals_finite() -> None:
    """Without a ridge to speak of diag(R) is 0 up to rounding: it is kept at 1e-9."""
    form = LeaveOneOutTerm.of(np.full((4, 4), 0.5 / 4), 2)  # R = n/2·M − 1/n = 0
    np.testing.assert_array_equal(form.residual_map, 0.0)
    M = (2 / 4) * (np.full((4, 4), 0.25) + np.diag([1e-12, 0.5, 0.5, 0.5]))
    form = LeaveOneOutTerm.of(M, 2)
    assert form.residual_map[0, 0] == pytest.approx(1e-3, rel=1e-3)
    np.testing.assert_allclose(form.residual_map.diagonal()[1:], 1.0)
