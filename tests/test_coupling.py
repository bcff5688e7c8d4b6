"""Ridge and coupling steps against cvxpy, and the invariances of the three couplings."""

import cvxpy as cp
import numpy as np
import pytest

from mtclust.core.coupling import COUPLINGS, Relationship, gain_matrix, objective, trace_one_root
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.core.labels import label_codes, parse_sizes
from mtclust.search.descent import Accelerator, coupling_steps
from mtclust.search.problem import Problem
from tests.conftest import gaussian_tasks

C, LAMBDA1, LAMBDA2 = 3, 0.05, 0.03


def problem(seed=0):
    X, _, _ = gaussian_tasks(rows=8, d=3, seed=seed, spread=1.0)
    offsets = np.array([0, 8, 16, 24])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    codes = label_codes(np.random.default_rng(seed).integers(0, C, 24), C)
    return kernel, offsets, codes


def coupled(kernel, offsets, method):
    bounds = parse_sizes(1.0, [8, 8, 8], C)
    features = eigen_features(kernel) if method == "features" else None
    return Problem(kernel, offsets, bounds, np.full(3, LAMBDA1), LAMBDA2, method, features)


def converged(problem, codes):
    """Z for fixed labels, iterated to the end; the objective must fall at every step."""
    point = problem.point(np.argmax(codes, axis=1), problem.coupling.uncoupled())
    accelerator = Accelerator()
    for _ in range(200):
        before, steps = point.value, len(point.history)
        coupling_steps(problem, point, accelerator, 1, 0.0, "Z")
        if len(point.history) == steps:
            break
        assert point.value <= before
    return point


def minimum_by_cvxpy(Phi, offsets, codes, lambda2, stack):
    """min over W of the objective with Z eliminated: λ₂/2 times a squared nuclear norm."""
    m, r = len(offsets) - 1, Phi.shape[1]
    W = [cp.Variable((r, C)) for _ in range(m)]
    loss = sum(
        cp.sum_squares(codes[a:b] - Phi[a:b] @ W[i]) / (b - a)
        for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:]))
    )
    ridge = LAMBDA1 / 2 * sum(cp.sum_squares(w) for w in W)
    task = cp.Problem(cp.Minimize(ridge + lambda2 / 2 * cp.square(cp.normNuc(stack(W))) + loss))
    value = task.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return value, stack([w.value for w in W])


def test_labels_given_the_models_and_omega_equal_cvxpy():
    kernel, offsets, codes = problem()
    point = converged(coupled(kernel, offsets, "relationship"), codes)
    columns = lambda W: cp.hstack([cp.reshape(w, (w.size, 1), order="F") for w in W])  # noqa: E731
    value, stacked = minimum_by_cvxpy(eigen_features(kernel).values, offsets, codes, LAMBDA2, columns)
    assert point.value == pytest.approx(value, rel=1e-6)
    expected = trace_one_root(np.asarray(stacked.value).T @ np.asarray(stacked.value))
    np.testing.assert_allclose(point.Z, expected, atol=2e-3)


def test_labels_given_the_models_and_d_equal_cvxpy():
    kernel, offsets, codes = problem()
    features = eigen_features(kernel)
    point = converged(coupled(kernel, offsets, "features"), codes)
    value, stacked = minimum_by_cvxpy(features.values, offsets, codes, LAMBDA2 * 3 / features.rank, cp.hstack)
    assert point.value == pytest.approx(value, rel=1e-6)
    expected = trace_one_root(np.asarray(stacked.value) @ np.asarray(stacked.value).T)
    np.testing.assert_allclose(point.Z, expected, atol=2e-3)


def test_closed_form_is_the_best_coupling_for_fixed_models():
    """Ω = S^½/tr S^½ minimises tr(Ω⁻¹S) over trace-one matrices."""
    A = np.random.default_rng(0).normal(size=(4, 6))
    S = A @ A.T
    Omega = cp.Variable((4, 4), PSD=True)
    task = cp.Problem(cp.Minimize(cp.matrix_frac(A, Omega)), [cp.trace(Omega) == 1])
    value = task.solve(solver=cp.CLARABEL)
    closed = trace_one_root(S)
    assert np.trace(np.linalg.solve(closed, S)) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(closed, Omega.value, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_closed_form_has_trace_one_and_is_positive_definite(scale):
    A = np.random.default_rng(1).normal(size=(5, 2))
    Z = trace_one_root(scale * A @ A.T)
    assert np.trace(Z) == pytest.approx(1)
    assert np.linalg.eigvalsh(Z).min() > 0
    np.testing.assert_allclose(Z, Z.T)


def test_gain_inverts_ridge_plus_inverse_coupling_with_one_lambda_per_task():
    Z = trace_one_root(np.diag([1.0, 2.0, 3.0]) + 0.5)
    lambda1 = np.array([0.1, 0.2, 0.4])
    inverse = np.diag(lambda1) + 0.3 * np.linalg.inv(Z)
    np.testing.assert_allclose(gain_matrix(Z, lambda1, 0.3), np.linalg.inv(inverse), atol=1e-12)


def test_shared_features_do_not_see_a_permutation_of_clusters_within_a_task():
    kernel, offsets, codes = problem()
    coupling = coupled(kernel, offsets, "features")
    permuted = codes.copy()
    permuted[8:16] = codes[8:16][:, [2, 0, 1]]
    assert converged(coupling, codes).value == pytest.approx(converged(coupling, permuted).value, rel=1e-9)


def test_relationship_does_see_it():
    kernel, offsets, codes = problem()
    coupling = coupled(kernel, offsets, "relationship")
    permuted = codes.copy()
    permuted[8:16] = codes[8:16][:, [2, 0, 1]]
    assert abs(converged(coupling, codes).value - converged(coupling, permuted).value) > 1e-4


def test_a_kernel_that_is_not_positive_is_refused():
    kernel = np.diag([1.0, -50.0, 1.0, 1.0])
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        Relationship(kernel, np.array([0, 4]), 0.1, 0.1).condition(np.eye(1))


@pytest.mark.parametrize(("method", "size"), [("relationship", 3), ("features", 3), ("independent", 3)])
def test_couplings_know_their_tasks_and_where_they_begin(method, size):
    kernel, offsets, codes = problem()
    own = coupled(kernel, offsets, method).coupling
    assert own.n_tasks == 3
    np.testing.assert_allclose(own.uncoupled(), np.eye(size) / size)
    assert own.predictors(own.condition(own.uncoupled()), codes).shape == (3, 24, C)


@pytest.mark.parametrize("method", ["relationship", "independent"])
@pytest.mark.parametrize("lambda1", [(0.05, 0.05, 0.05), (0.001, 0.05, 0.4)])
@pytest.mark.parametrize("smallest", [None, 0.0])
def test_both_factorisations_answer_alike(method, lambda1, smallest):
    """N × N and mr × mr, also where Ω is singular and λ₁ differs by task."""
    X, _, _ = gaussian_tasks(rows=18)
    rng, offsets = np.random.default_rng(0), np.array([0, 18, 36, 54])
    table = np.concatenate([X[a:b] - X[a:b].mean(axis=0) for a, b in zip(offsets[:-1], offsets[1:])])
    kernel, codes = table @ table.T, label_codes(rng.integers(3, size=54), 3)
    B = rng.normal(size=(3, 3))
    values, vectors = np.linalg.eigh(B @ B.T)
    if smallest is not None:
        values[0] = smallest
    Z = (vectors * (values / values.sum())) @ vectors.T
    rows = COUPLINGS[method](kernel, offsets, np.array(lambda1), 0.1).condition(Z)
    Phi = table.reshape(3, 18, -1)
    coupling = COUPLINGS[method](Phi.transpose(0, 2, 1) @ Phi / 9, offsets, np.array(lambda1), 0.1)
    columns, b = coupling.condition(Z), Phi.transpose(0, 2, 1) @ codes.reshape(3, 18, 3) / 9
    W, Q = columns.models(b), columns.blocks
    assert objective(b, W) == pytest.approx(rows.objective(codes), rel=1e-10)
    pairs = [(rows.alpha(codes), (codes - (Phi @ W).reshape(54, 3)) / 9)]
    pairs += [(rows.block(i), (np.eye(18) - Phi[i] @ Q[i] @ Phi[i].T / 9) / 9) for i in range(3)]
    if method == "relationship":
        pairs.append((rows.coupling.closed_form_of_rows(rows, codes), coupling.closed_form(W)))
    for one, other in pairs:
        np.testing.assert_allclose(other, one, atol=1e-7 * max(1.0, np.abs(one).max()))
