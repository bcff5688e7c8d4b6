"""LSKMTC: the linear program, the MMD term and the learned kernel."""

import itertools

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import linprog

from mtclust.core.tasks import index_tasks
from paper.reference.kernel_methods import best_rank, costs, neighbor_laplacian, smoothest


@pytest.fixture
def sorted_rows(noise):
    """Rows sorted by task, and the slice of every task."""
    X, tasks = noise
    return X, index_tasks(tasks, len(X)).slices()


def mmd_matrix(sizes):
    """S = Σ_{i<j} s_ij s_ijᵀ, s_ij = 1_i/n_i − 1_j/n_j."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    S = np.zeros((len(owner), len(owner)))
    for i, j in itertools.combinations(range(len(sizes)), 2):
        s = (owner == i) / sizes[i] - (owner == j) / sizes[j]
        S += np.outer(s, s)
    return S


def test_vectors_are_the_smoothest_of_the_block_diagonal_laplacian(sorted_rows):
    X, tasks = sorted_rows
    values, V = smoothest(X, tasks, 12, n_neighbors=5)
    L = block_diag(*(neighbor_laplacian(X[part], 5) for part in tasks))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(L)[:12], atol=1e-12)
    np.testing.assert_allclose(V.T @ V, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(L @ V, V * values, atol=1e-10)


def test_costs_are_smoothness_plus_mmd(sorted_rows):
    X, tasks = sorted_rows
    values, V = smoothest(X, tasks, 12, n_neighbors=5)
    S = mmd_matrix([part.stop - part.start for part in tasks])
    expected = values + 7.0 * np.einsum("ni,nm,mi->i", V, S, V)
    np.testing.assert_allclose(costs(values, V, tasks, 7.0), expected, atol=1e-10)


def test_trace_of_kernel_times_S_is_the_sum_of_squared_mmds(sorted_rows):
    X, tasks = sorted_rows
    _, V = smoothest(X, tasks, 12, n_neighbors=5)
    K = V @ V.T / 12
    squared_mmds = [K[i, i].mean() + K[j, j].mean() - 2 * K[i, j].mean() for i, j in itertools.combinations(tasks, 2)]
    S = mmd_matrix([part.stop - part.start for part in tasks])
    assert np.trace(K @ S) == pytest.approx(sum(squared_mmds), rel=1e-10)
    blocks = block_diag(*(K[part, part] for part in tasks))  # rows of different tasks never meet
    np.testing.assert_allclose(K, blocks, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_flat_spectrum_solves_the_linear_program(seed):
    costs = np.random.default_rng(seed).uniform(size=12)
    p = len(costs)
    decreasing = np.eye(p, k=1)[:-1] - np.eye(p)[:-1]  # μ_{i+1} − μ_i ≤ 0
    program = linprog(costs, A_ub=decreasing, b_ub=np.zeros(p - 1), A_eq=np.ones((1, p)), b_eq=[1])
    rank = best_rank(costs, least_rank=1)
    assert costs[:rank].mean() == pytest.approx(program.fun, rel=1e-8)


def test_without_mmd_the_bare_program_keeps_only_the_constant_vectors(sorted_rows):
    """The reason for the least rank: in connected graphs nothing else is perfectly smooth."""
    X, tasks = sorted_rows
    without_mmd = costs(*smoothest(X, tasks, 24, n_neighbors=10), tasks, 0.0)
    assert best_rank(without_mmd, least_rank=1) == len(tasks)
    assert best_rank(without_mmd, least_rank=9) == 9


def test_mmd_weight_brings_in_more_vectors(sorted_rows):
    X, tasks = sorted_rows
    spectrum = smoothest(X, tasks, 18, n_neighbors=10)
    ranks = [best_rank(costs(*spectrum, tasks, weight), least_rank=9) for weight in (0, 1e2, 1e6)]
    assert ranks == sorted(ranks)
    assert ranks[0] == 9
    assert ranks[-1] == 18


def test_a_single_row_is_a_graph_without_edges():
    assert neighbor_laplacian(np.ones((1, 3)), 10).tolist() == [[0]]
