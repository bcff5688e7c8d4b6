"""LSKMTC: the linear program, the MMD term and the learned kernel."""

import itertools

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.optimize import linprog

from mtclust.core.tasks import split_by_task
from paper.reference.lskmtc import best_rank, neighbor_laplacian, smoothest


@pytest.fixture
def tables(noise):
    return list(split_by_task(*noise).values())


def whole_vectors(spectrum):
    """The eigenvectors over the rows of all tasks, one column each."""
    offsets = np.concatenate([[0], np.cumsum(spectrum.sizes)])
    columns = np.zeros((offsets[-1], len(spectrum.vectors)))
    for i, (owner, vector) in enumerate(zip(spectrum.owners, spectrum.vectors)):
        columns[offsets[owner] : offsets[owner + 1], i] = vector
    return columns


def mmd_matrix(sizes):
    """S = Σ_{i<j} s_ij s_ijᵀ, s_ij = 1_i/n_i − 1_j/n_j."""
    owner = np.repeat(np.arange(len(sizes)), sizes)
    S = np.zeros((len(owner), len(owner)))
    for i, j in itertools.combinations(range(len(sizes)), 2):
        s = (owner == i) / sizes[i] - (owner == j) / sizes[j]
        S += np.outer(s, s)
    return S


def test_vectors_are_the_smoothest_of_the_block_diagonal_laplacian(tables):
    spectrum = smoothest(tables, 12, n_neighbors=5)
    L = block_diag(*(neighbor_laplacian(table, 5) for table in tables))
    np.testing.assert_allclose(spectrum.eigenvalues, np.linalg.eigvalsh(L)[:12], atol=1e-12)
    V = whole_vectors(spectrum)
    np.testing.assert_allclose(V.T @ V, np.eye(12), atol=1e-10)
    np.testing.assert_allclose(L @ V, V * spectrum.eigenvalues, atol=1e-10)


def test_costs_are_smoothness_plus_mmd(tables):
    spectrum = smoothest(tables, 12, n_neighbors=5)
    V, S = whole_vectors(spectrum), mmd_matrix(spectrum.sizes)
    expected = spectrum.eigenvalues + 7.0 * np.einsum("ni,nm,mi->i", V, S, V)
    np.testing.assert_allclose(spectrum.costs(7.0), expected, atol=1e-10)


def test_trace_of_kernel_times_S_is_the_sum_of_squared_mmds(tables):
    spectrum = smoothest(tables, 12, n_neighbors=5)
    K = block_diag(*spectrum.task_kernels(12))
    offsets = np.concatenate([[0], np.cumsum(spectrum.sizes)])
    blocks = [slice(a, b) for a, b in itertools.pairwise(offsets)]
    squared_mmds = [K[i, i].mean() + K[j, j].mean() - 2 * K[i, j].mean() for i, j in itertools.combinations(blocks, 2)]
    assert np.trace(K @ mmd_matrix(spectrum.sizes)) == pytest.approx(sum(squared_mmds), rel=1e-10)
    V = whole_vectors(spectrum)
    np.testing.assert_allclose(K, V @ V.T / 12, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_flat_spectrum_solves_the_linear_program(seed):
    costs = np.random.default_rng(seed).uniform(size=12)
    p = len(costs)
    decreasing = np.eye(p, k=1)[:-1] - np.eye(p)[:-1]  # μ_{i+1} − μ_i ≤ 0
    program = linprog(costs, A_ub=decreasing, b_ub=np.zeros(p - 1), A_eq=np.ones((1, p)), b_eq=[1])
    rank = best_rank(costs, least_rank=1)
    assert costs[:rank].mean() == pytest.approx(program.fun, rel=1e-8)


def test_without_mmd_the_bare_program_keeps_only_the_constant_vectors(tables):
    """The reason for the least rank: in connected graphs nothing else is perfectly smooth."""
    spectrum = smoothest(tables, 24, n_neighbors=10)
    assert best_rank(spectrum.costs(0.0), least_rank=1) == len(tables)
    assert best_rank(spectrum.costs(0.0), least_rank=9) == 9


def test_mmd_weight_brings_in_more_vectors(tables):
    spectrum = smoothest(tables, 18, n_neighbors=10)
    ranks = [best_rank(spectrum.costs(weight), least_rank=9) for weight in (0, 1e2, 1e6)]
    assert ranks == sorted(ranks)
    assert ranks[0] == 9
    assert ranks[-1] == 18


def test_kernel_has_unit_trace(tables):
    spectrum = smoothest(tables, 12, n_neighbors=5)
    assert sum(np.trace(K) for K in spectrum.task_kernels(10)) == pytest.approx(1.0)


def test_a_single_row_is_a_graph_without_edges():
    assert neighbor_laplacian(np.ones((1, 3)), 10).tolist() == [[0]]
