"""Models and objective of the primal form against the dense dual form, and Ω of low rank plus identity."""

import numpy as np
import pytest
from primal_helpers import case, random_coupling

from mtclust.core.coupling import EXACT_UP_TO, Relationship, Spiked, gain_matrix, objective, trace_one_root

UNEQUAL = (0.001, 0.05, 0.4)


def coupling_matrix(method, example, rng, smallest=None):
    m, r = example.problem.n_tasks, example.Phi.shape[1]
    return random_coupling(r if method == "features" else m, rng, smallest)


def dense_inverse(example, Z):
    """(G⁻¹ ⊗ I + blkdiag(2S_i/n_i))⁻¹ as G'(I + A G')⁻¹ with G' = G ⊗ I, which needs no inverse of G."""
    problem, m, r = example.problem, example.problem.n_tasks, example.Phi.shape[1]
    if problem.method == "relationship":
        G = np.kron(gain_matrix(Z, problem.lambda1, problem.lambda2), np.eye(r))
    elif problem.method == "features":
        G = np.kron(np.eye(m), gain_matrix(Z, problem.lambda1[0], problem.lambda2 * m / r))
    else:
        G = np.kron(np.diag(1 / problem.coupling.ridge), np.eye(r))
    A = np.zeros((m * r, m * r))
    for i, rows in enumerate(example.slices()):
        Phi = example.Phi[rows]
        A[i * r : (i + 1) * r, i * r : (i + 1) * r] = 2 / len(Phi) * Phi.T @ Phi
    return G @ np.linalg.inv(np.eye(m * r) + A @ G)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("smallest", [None, 1e-12])
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize(
    ("method", "lambda1"),
    [("relationship", 0.02), ("relationship", UNEQUAL), ("features", 0.02), ("independent", 0.02),
     ("independent", UNEQUAL)],
)  # fmt: skip
def test_objective_and_models_equal_the_dense_dual_form(method, lambda1, smallest, centre, seed):
    example = case(method, lambda1=lambda1, seed=seed, centre=centre)
    Z = coupling_matrix(method, example, np.random.default_rng(seed), smallest)
    dual = example.dual(Z)
    b = example.b()
    W = example.problem.coupling.condition(Z).models(b)
    assert objective(b, W) == pytest.approx(dual.objective(example.codes), rel=1e-8)
    expected = np.stack([example.Phi.T @ part for part in dual.coupling.predictors(dual, example.codes)])
    np.testing.assert_allclose(W, expected, rtol=0, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("smallest", [None, 1e-12])
@pytest.mark.parametrize("method", ["relationship", "features", "independent"])
def test_blocks_are_those_of_the_inverse(method, smallest):
    example = case(method)
    Z = coupling_matrix(method, example, np.random.default_rng(3), smallest)
    solver = example.problem.coupling.condition(Z)
    inverse, r = dense_inverse(example, Z), example.Phi.shape[1]
    for i in range(3):
        expected = inverse[i * r : (i + 1) * r, i * r : (i + 1) * r]
        np.testing.assert_allclose(solver.blocks[i], expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def many_tasks(seed=0, m=8, d=4):
    example = case(sizes=tuple(range(20, 20 + 3 * m, 3)), d=d, seed=seed)
    grams, problem = example.problem.coupling.kernel, example.problem

    def relationship(rank=None):
        system = Relationship(grams, problem.offsets, float(problem.lambda1[0]), problem.lambda2)
        system.rank = rank  # instead of what the size says
        return system

    return example.b(), relationship(), relationship


@pytest.mark.parametrize("flat", [0.05, 1e-10, 0.0])
@pytest.mark.parametrize("rank", [1, 3, 7])
def test_spiked_omega_equals_the_same_omega_in_full(rank, flat):
    b, full, spiked = many_tasks()
    rng = np.random.default_rng(rank)
    vectors = np.linalg.qr(rng.normal(size=(8, rank)))[0]
    Omega = Spiked(flat, vectors, rng.uniform(0.1, 1.0, size=rank))
    expected, found = full.condition(Omega.dense()), spiked(rank).condition(Omega)
    W = expected.models(b)
    np.testing.assert_allclose(found.models(b), W, rtol=0, atol=1e-9 * np.abs(W).max())
    assert objective(b, found.models(b)) == pytest.approx(objective(b, W), rel=1e-10)
    for i in range(8):
        block = expected.blocks[i]
        np.testing.assert_allclose(found.blocks[i], block, rtol=0, atol=1e-9 * np.abs(block).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rank", [1, 3, 7])
def test_closed_form_of_spiked_omega_never_raises_the_objective(rank, seed):
    b, _, spiked = many_tasks(seed)
    system = spiked(rank)
    solver = system.condition(random_coupling(8, np.random.default_rng(seed)))
    values = []
    for _ in range(30):
        W = solver.models(b)
        values.append(objective(b, W))
        Omega = system.closed_form(W)
        assert np.trace(Omega.dense()) == pytest.approx(1)
        solver = system.condition(Omega)
    assert np.diff(values).max() <= 1e-8 * values[0]
    assert values[-1] < values[0] * (1 - 1e-3)


@pytest.mark.parametrize("rank", [1, 3])
def test_closed_form_of_spiked_omega_is_the_best_of_its_form(rank):
    """No other matrix of the form has a lower tr(Ω⁻¹S), nearby or far away."""
    rng = np.random.default_rng(0)
    W = rng.normal(size=(8, 4, 3)) * np.geomspace(1, 0.05, 8)[:, None, None]
    best = many_tasks()[2](rank).closed_form(W)
    flat = W.reshape(8, -1)

    def penalty(Omega):
        return float(np.trace(np.linalg.solve(Omega.dense() / np.trace(Omega.dense()), flat @ flat.T)))

    for size in (1e-3, 0.1, 1.0):
        for _ in range(50):
            vectors = np.linalg.qr(best.vectors + size * rng.normal(size=best.vectors.shape))[0]
            level = best.flat * np.exp(size * rng.normal())
            other = Spiked(level, vectors, best.extra * np.exp(size * rng.normal(size=rank)))
            assert penalty(other) >= penalty(best) * (1 - 1e-6)


def test_closed_form_with_all_but_one_direction_is_the_full_one():
    rng = np.random.default_rng(0)
    W = rng.normal(size=(8, 4, 3))
    flat = W.reshape(8, -1)
    Omega = many_tasks()[2](7).closed_form(W).dense()
    np.testing.assert_allclose(Omega, trace_one_root(flat @ flat.T), atol=1e-9)


def test_closed_form_of_models_that_vanish_is_uncoupled():
    Omega = many_tasks()[2](2).closed_form(np.zeros((8, 4, 3)))
    np.testing.assert_allclose(Omega.dense(), np.eye(8) / 8, atol=1e-15)


def equal_tasks(m, r, lambda1=None):
    grams = np.broadcast_to(np.eye(r), (m, r, r))
    return Relationship(grams, np.arange(m + 1), np.full(m, 0.1) if lambda1 is None else lambda1, 0.1)


def test_full_omega_while_it_is_cheap_and_spiked_beyond():
    r = 20
    for m, full in ((EXACT_UP_TO // r, True), (EXACT_UP_TO // r + 1, False)):
        assert (equal_tasks(m, r).rank is None) == full


def test_spiked_omega_refuses_a_lambda_by_task_and_says_why():
    m, r = 51, 20
    with pytest.raises(ValueError, match=r"lambda1 differs by task.*51 tasks and 20 features"):
        equal_tasks(m, r, np.linspace(0.1, 0.2, m)).condition(np.eye(m) / m)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_closed_form_of_spiked_omega_does_not_depend_on_the_scale_of_the_models(scale):
    W = np.random.default_rng(0).normal(size=(8, 4, 3)) * np.geomspace(1, 1e-6, 8)[:, None, None]
    system = many_tasks()[2](3)
    np.testing.assert_allclose(system.closed_form(scale * W).dense(), system.closed_form(W).dense(), rtol=1e-9, atol=0)


@pytest.mark.parametrize(("m", "r", "rank"), [(51, 20, 20), (12, 100, 4), (3, 500, 1)])
def test_spiked_omega_has_as_many_directions_as_its_system_may_hold(m, r, rank):
    assert equal_tasks(m, r).rank == rank
