"""The quadratic form, its exchanges and leave-one-out residuals against direct computation."""

import numpy as np
import pytest

from mtclust.core import compiled
from mtclust.core.coupling import Independent, Relationship, SharedFeatures
from mtclust.core.criterion import QuadraticTerm
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.core.labels import label_codes
from mtclust.search.problem import predictions_left_out
from tests.conftest import gaussian_tasks

C = 3


def random_omega(m, seed=0):
    A = np.random.default_rng(seed).normal(size=(m, m))
    return A @ A.T / np.trace(A @ A.T)


def setting(coupling_name, seed=0, centre=True):
    X, _, _ = gaussian_tasks(rows=9, d=4, seed=seed)
    offsets = np.array([0, 9, 18, 27])
    kernel = centre_kernel(X @ X.T, offsets, centre).matrix
    if coupling_name == "relationship":
        coupling = Relationship(kernel, offsets, 0.3, 0.2)
        return coupling, coupling.condition(random_omega(3)), offsets
    if coupling_name == "features":
        coupling = SharedFeatures(eigen_features(kernel), offsets, 0.3, 0.2)
        return coupling, coupling.condition(random_omega(coupling.features.rank)), offsets
    coupling = Independent(kernel, offsets, 0.5)
    return coupling, coupling.condition(np.eye(3) / 3), offsets


def objective_by_minimising_over_models(Phi, offsets, codes, gain_inverse):
    """min over W of the paper's objective, by solving the normal equations of all tasks at once."""
    m, r = len(offsets) - 1, Phi.shape[1]
    design = np.zeros((len(Phi), m * r))
    weight = np.zeros(len(Phi))
    for i in range(m):
        rows = slice(offsets[i], offsets[i + 1])
        design[rows, i * r : (i + 1) * r] = Phi[rows]
        weight[rows] = 1 / (offsets[i + 1] - offsets[i])
    normal = gain_inverse / 2 + design.T @ (weight[:, None] * design)
    W = np.linalg.solve(normal, design.T @ (weight[:, None] * codes))
    residual = codes - design @ W
    return 0.5 * np.trace(W.T @ gain_inverse @ W) + np.sum(weight[:, None] * residual**2), residual


def test_objective_and_alpha_of_relationship_equal_the_minimum_over_models():
    coupling, state, offsets = setting("relationship")
    Phi = eigen_features(coupling.kernel).values
    codes = label_codes(np.random.default_rng(1).integers(0, C, 27), C)
    gain_inverse = np.kron(0.3 * np.eye(3) + 0.2 * np.linalg.inv(state.Z), np.eye(Phi.shape[1]))
    value, residual = objective_by_minimising_over_models(Phi, offsets, codes, gain_inverse)
    assert state.objective(codes) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(state.alpha(codes), 2 / 9 * residual, atol=1e-9)


def test_objective_and_alpha_of_shared_features_equal_the_minimum_over_models():
    coupling, state, offsets = setting("features")
    Phi, r = coupling.features.values, coupling.features.rank
    codes = label_codes(np.random.default_rng(1).integers(0, C, 27), C)
    inverse = 0.3 * np.eye(r) + 0.2 * 3 / r * np.linalg.inv(state.Z)
    value, residual = objective_by_minimising_over_models(Phi, offsets, codes, np.kron(np.eye(3), inverse))
    assert state.objective(codes) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(state.alpha(codes), 2 / 9 * residual, atol=1e-9)


def test_uncoupled_relationship_equals_independent_tasks_and_flat_shared_features():
    coupling, _, offsets = setting("relationship")
    codes = label_codes(np.random.default_rng(2).integers(0, C, 27), C)
    flat = coupling.condition(coupling.uncoupled()).objective(codes)
    alone = Independent(coupling.kernel, offsets, 0.3 + 3 * 0.2)
    features = SharedFeatures(eigen_features(coupling.kernel), offsets, 0.3, 0.2)
    assert alone.condition(alone.uncoupled()).objective(codes) == pytest.approx(flat, rel=1e-10)
    assert features.condition(features.uncoupled()).objective(codes) == pytest.approx(flat, rel=1e-8)


@pytest.mark.parametrize("name", ["relationship", "features", "independent"])
def test_exchange_change_equals_objective_difference(name):
    """Every sequence of swaps and moves: the value the compiled loop sums up is the change of the objective."""
    _, state, offsets = setting(name)
    rng = np.random.default_rng(3)
    for trial in range(20):
        labels = rng.integers(0, C, 27)
        codes = label_codes(labels, C)
        task = trial % 3
        rows = slice(offsets[task], offsets[task + 1])
        field = state.linear_term(task, codes)
        P = np.ascontiguousarray((state.block(task) @ codes[rows] + field).T)
        mine = labels[rows].copy()
        counts = np.bincount(mine, minlength=C)
        bounds = (np.zeros(C, dtype=np.int64), np.full(C, 9)) if trial % 2 else (counts.copy(), counts.copy())
        moves = compiled.exchange(
            state.block(task), P, mine, counts, *bounds, np.arange(9), 1e-12, np.array([trial], dtype=np.uint64)
        )
        after = labels.copy()
        after[rows] = mine
        difference = state.objective(label_codes(after, C)) - state.objective(codes)
        assert (difference < 0) if moves else (difference == 0)
        np.testing.assert_array_equal(counts, np.bincount(mine, minlength=C))


def test_exchange_ends_where_no_swap_or_move_lowers_the_objective():
    _, state, _ = setting("independent")
    M = state.block(0)
    labels = np.random.default_rng(4).integers(0, C, 9)
    lower, upper = np.full(C, 2), np.full(C, 5)
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])[np.random.default_rng(4).permutation(9)]
    term = QuadraticTerm(M, len(lower))
    term.refine(labels, lower, upper, np.array([1], dtype=np.uint64))
    value = term.value(labels)

    def J(candidate):
        codes = label_codes(candidate, C)
        return 0.5 * np.trace(codes.T @ M @ codes)

    assert value == pytest.approx(J(labels), rel=1e-12)
    for j in range(9):
        for k in range(9):
            swapped = labels.copy()
            swapped[[j, k]] = swapped[[k, j]]
            assert J(swapped) >= value - 1e-9
        for c in range(C):
            moved = labels.copy()
            moved[j] = c
            sizes = np.bincount(moved, minlength=C)
            if np.all(sizes >= lower) and np.all(sizes <= upper):
                assert J(moved) >= value - 1e-9


def refit_without(X, offsets, codes, row, Omega, scale, centre_without):
    """Residual of one row when the models are fitted without it, n_i kept, centre with or without the row."""
    task = int(np.searchsorted(offsets, row, side="right") - 1)
    centred = X.copy()
    for i in range(len(offsets) - 1):
        rows = np.arange(offsets[i], offsets[i + 1])
        counted = rows[rows != row] if centre_without and i == task else rows
        centred[rows] -= X[counted].mean(axis=0)
    Phi = centred / np.sqrt(scale)
    m, r = len(offsets) - 1, X.shape[1]
    design, weight = np.zeros((len(X), m * r)), np.zeros(len(X))
    for i in range(m):
        rows = slice(offsets[i], offsets[i + 1])
        design[rows, i * r : (i + 1) * r] = Phi[rows]
        weight[rows] = 1 / (offsets[i + 1] - offsets[i])
    weight[row] = 0
    inverse = np.kron(0.3 * np.eye(m) + 0.2 * np.linalg.inv(Omega), np.eye(r))
    W = np.linalg.solve(inverse / 2 + design.T @ (weight[:, None] * design), design.T @ (weight[:, None] * codes))
    return codes[row] - design[row] @ W


@pytest.mark.parametrize("offsets", [[0, 9, 18, 27], [0, 2, 11, 27]])
@pytest.mark.parametrize("centre_without", [False, True])
def test_leave_one_out_equals_refitting_without_the_row(centre_without, offsets):
    X, _, _ = gaussian_tasks(rows=9, d=3)
    offsets = np.array(offsets)
    centred = centre_kernel(X @ X.T, offsets, True)
    Omega = random_omega(3)
    state = Relationship(centred.matrix, offsets, 0.3, 0.2).condition(Omega)
    codes = label_codes(np.random.default_rng(0).integers(0, C, 27), C)  # sizes differ: the mean code is not 0
    residuals = codes - predictions_left_out(state, codes, centre_without)
    for row in range(27):
        expected = refit_without(X, offsets, codes, row, Omega, centred.scale, centre_without)
        np.testing.assert_allclose(residuals[row], expected, atol=1e-9)


def test_nothing_is_predicted_for_the_only_row_of_a_task_whose_centre_it_is():
    X, _, _ = gaussian_tasks(rows=4, d=3)
    offsets = np.array([0, 6, 7, 12])
    state = Independent(centre_kernel(X @ X.T, offsets, True).matrix, offsets, 0.1).condition(np.eye(3) / 3)
    codes = label_codes(np.arange(12) % C, C)
    residuals = codes - predictions_left_out(state, codes, True)
    np.testing.assert_array_equal(residuals[6], codes[6])
