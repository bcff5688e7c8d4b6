"""LSKMTC: a spectral kernel that keeps each task's geometry and brings the tasks together: a reconstruction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import kneighbors_graph

from paper.reference.base import Run
from paper.reference.kernel_methods import cluster_kernel

Array = NDArray[np.float64]

#: costs closer than this count as equal: eigenvalues that are 0 in theory come out as ±1e-16
_COST_TOLERANCE = 1e-10


def lskmtc(
    X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState, *, mmd_weight: float,
    n_neighbors: int,
) -> list[list[Run]]:  # fmt: skip
    """Learning a spectral kernel for multitask clustering (after Gu, Li and Han 2011). **A reconstruction.**

    The kernel is built from the p smoothest eigenvectors v_i, with eigenvalues γ_i, of the tasks' graphs
    (L = block-diagonal normalised Laplacians of nearest-neighbour graphs within each task)::

        K = Σ_{i≤p} μ_i v_i v_iᵀ,   μ_1 ≥ … ≥ μ_p ≥ 0,  Σ μ_i = 1
        min over μ of  tr(KL) + λ tr(KS) = Σ μ_i (γ_i + λ v_iᵀSv_i),   S = Σ_{i<j} s_ij s_ijᵀ,  s_ij = 1_i/n_i − 1_j/n_j

    tr(KS) is the sum of the squared maximum mean discrepancies (MMD) between the tasks; λ is ``mmd_weight``. The
    optimum of this linear program is flat: μ_i = 1/j* on the first j* eigenvectors. Kernel k-means on K then gives the
    clusters, task by task: L is block-diagonal and so is K, rows of different tasks never meet in it.

    What is not known: only the abstract was at hand. Graph weights (here 0/1), number of neighbours, p (twice the
    number of clusters of all tasks), λ, whether the first (constant) eigenvectors count, and whether kernel k-means is
    run on all tasks together are guesses. The bare program can choose j* so small that K has no room for the clusters
    (with λ = 0 and connected graphs only the constant vectors remain); so j* ≥ clusters × tasks is required here.
    """
    least_rank = n_clusters * len(tasks)
    eigenvalues, vectors = smoothest(X, tasks, 2 * least_rank, n_neighbors)
    rank = best_rank(costs(eigenvalues, vectors, tasks, mmd_weight), least_rank)
    kernels = (vectors[part, :rank] @ vectors[part, :rank].T / rank for part in tasks)
    return [cluster_kernel(K, n_clusters, n_init, rng) for K in kernels]


def smoothest(X: Any, tasks: Sequence[slice], n_eigenvectors: int, n_neighbors: int) -> tuple[Array, Array]:
    """Smallest eigenvalues and eigenvectors of the block-diagonal Laplacian; a vector is 0 in all tasks but one."""
    spectra = [
        eigh(neighbor_laplacian(X[part], n_neighbors), subset_by_index=[0, min(n_eigenvectors, X[part].shape[0]) - 1])
        for part in tasks
    ]
    eigenvalues = np.concatenate([values for values, _ in spectra])
    order = np.argsort(eigenvalues, kind="stable")[:n_eigenvectors]
    return eigenvalues[order], block_diag(*(vectors for _, vectors in spectra))[:, order]


def costs(eigenvalues: Array, vectors: Array, tasks: Sequence[slice], mmd_weight: float) -> Array:
    """γ_i + λ v_iᵀSv_i. A vector on task t meets the T−1 pairs that t is in: v_iᵀSv_i = (T−1)(mean of v_i)²."""
    means = sum(vectors[part].mean(axis=0) for part in tasks)
    return np.asarray(eigenvalues + mmd_weight * (len(tasks) - 1) * means**2)


def neighbor_laplacian(X: Any, n_neighbors: int) -> Array:
    """Normalised Laplacian of the graph that joins a row to its nearest neighbours, in either direction."""
    n_rows = X.shape[0]
    if n_rows == 1:
        return np.zeros((1, 1))
    directed = kneighbors_graph(X, min(n_neighbors, n_rows - 1)).toarray()
    result: Array = laplacian(np.maximum(directed, directed.T), normed=True)
    return result


def best_rank(costs: Array, least_rank: int) -> int:
    """Solve the linear program min Σ μ_i c_i over μ_1 ≥ … ≥ μ_p ≥ 0, Σμ = 1, with at least ``least_rank`` vectors.

    The corners of the feasible set are the flat vectors (1/j, …, 1/j, 0, …), whose value is the mean of the first j
    costs. Of equally good ones the longest is taken, which keeps a whole eigenspace together.

    Examples
    --------
    >>> best_rank(np.array([3.0, 0.0, 0.0, 9.0]), least_rank=1)
    3
    """
    means = np.cumsum(costs) / np.arange(1, len(costs) + 1)
    allowed = means[min(least_rank, len(costs)) - 1 :]
    near_best = np.flatnonzero(allowed <= allowed.min() + _COST_TOLERANCE)
    return int(near_best[-1]) + len(costs) - len(allowed) + 1
