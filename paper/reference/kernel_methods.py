"""k-means, and kernel k-means and normalised cut on the paper's RBF kernel, every task by itself; LSKMTC's own kernel.

k(x, y) = exp(−|x − y|² / (2σ²)),  σ = w·A,  A = mean Euclidean distance of two rows of the data
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.linalg import block_diag, eigh
from scipy.sparse.csgraph import laplacian
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_chunked
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.neighbors import kneighbors_graph

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: the multiples w the paper searches
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: the most steps of a run
MAX_STEPS = 300
#: costs closer than this count as equal: eigenvalues that are 0 in theory come out as ±1e-16
_COST_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Run:
    """One run of a method from one random start, on one task or on all of them.

    ``history`` has the objective at the start and after every step; the last entry is what the run has reached.
    """

    labels: Labels
    history: tuple[float, ...]

    @property
    def objective(self) -> float:
        return self.history[-1]


def fell_less_than(tol: float, before: Any, after: Any) -> Any:
    """Whether an objective fell by no more than ``tol`` times its size (elementwise for arrays)."""
    return before - after <= tol * np.abs(before)


def k_means_runs(X: Any, n_clusters: int, n_init: int, rng: RandomState) -> list[Run]:
    """Scikit-learn's k-means of one table, from several starts."""
    with warnings.catch_warnings():
        # fewer distinct rows than clusters: some stay empty then
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [KMeans(n_clusters, n_init=1, random_state=rng).fit(X) for _ in range(n_init)]
    return [Run(fit.labels_.astype(np.int64), (float(fit.inertia_),)) for fit in fits]


def mean_distance(X: Any) -> float:
    """Mean Euclidean distance over all pairs of different rows."""
    total = sum(float(block.sum()) for block in pairwise_distances_chunked(X))
    return total / (X.shape[0] * (X.shape[0] - 1))


def rbf_kernel(X: Any, sigma: float) -> Array:
    """Kernel matrix of the rows of X; all ones when ``sigma`` is 0, that is when all rows are equal."""
    squared = euclidean_distances(X, squared=True)
    if sigma == 0:
        return np.ones_like(squared)
    kernel: Array = np.exp(squared / (-2 * sigma**2))
    return kernel


def k_means(X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState) -> list[list[Run]]:
    """Scikit-learn's k-means of every task by itself; how the paper draws its starts is not printed, k-means++ here."""
    return [k_means_runs(X[part], n_clusters, n_init, rng) for part in tasks]


def kernel_k_means(
    X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState, *, width: float
) -> list[list[Run]]:
    """Kernel k-means of every task by itself.

    Minimises, within each task, the squared distances to the cluster means in the kernel's feature space::

        Σ_i |φ(x_i) − mean of φ over the cluster of i|² = tr K − Σ_k (1/n_k) Σ_{j,l∈k} K_jl

    ``width`` is a multiple of the mean distance between rows, taken over all tasks: the kernel is then the same
    function everywhere.
    """
    sigma = width * mean_distance(X)
    return [cluster_kernel(rbf_kernel(X[part], sigma), n_clusters, n_init, rng) for part in tasks]


def cluster_kernel(K: Array, n_clusters: int, n_init: int, rng: RandomState) -> list[Run]:
    """Kernel k-means on a kernel matrix from several starts, which are those of k-means++."""
    starts = (nearest_seed(K, seed_rows(K, n_clusters, rng)) for _ in range(n_init))
    return [descend(K, labels, n_clusters) for labels in starts]


def seed_rows(K: Array, n_clusters: int, rng: RandomState) -> Labels:
    """k-means++: each further seed is drawn with probability proportional to its squared distance to the seeds."""
    diagonal = np.diagonal(K)
    seeds = [int(rng.randint(len(K)))]
    nearest = np.full(len(K), np.inf)
    for _ in range(1, n_clusters):
        last = seeds[-1]
        nearest = np.minimum(nearest, np.maximum(diagonal + K[last, last] - 2 * K[last], 0))
        nearest[last] = 0
        total = nearest.sum()
        # all rows coincide with a seed: any row not taken yet will do
        weights = nearest / total if total > 0 else None
        candidates = np.arange(len(K)) if total > 0 else np.setdiff1d(np.arange(len(K)), seeds)
        seeds.append(int(rng.choice(candidates, p=weights)))
    return np.array(seeds, dtype=np.int64)


def nearest_seed(K: Array, seeds: Labels) -> Labels:
    """The position in ``seeds`` of the seed nearest to each row; a seed belongs to itself."""
    labels = (np.diagonal(K)[seeds] - 2 * K[:, seeds]).argmin(axis=1)
    labels[seeds] = np.arange(len(seeds))
    return labels


def descend(K: Array, labels: Labels, n_clusters: int) -> Run:
    """Reassign rows to the nearest mean, from given labels, until none moves."""
    distances = squared_distances(K, labels, n_clusters)
    rows = np.arange(len(K))
    history = [float(distances[rows, labels].sum())]
    while len(history) <= MAX_STEPS:
        moved = reassign(distances, labels)
        distances = squared_distances(K, moved, n_clusters)
        history.append(float(distances[rows, moved].sum()))
        if (moved == labels).all() or history[-1] >= history[-2]:
            break
        labels = moved
    return Run(moved, tuple(history))


def squared_distances(K: Array, labels: Labels, n_clusters: int) -> Array:
    """Squared distance of each row to each mean: K_ii − (2/n_k) Σ_{j∈k} K_ij + (1/n_k²) Σ_{j,l∈k} K_jl.

    An empty cluster is infinitely far away.
    """
    members = labels[:, None] == np.arange(n_clusters)
    counts = members.sum(axis=0)
    similarity = (K @ members) / np.maximum(counts, 1)
    spread = (similarity * members).sum(axis=0) / np.maximum(counts, 1)
    distances = np.diagonal(K)[:, None] - 2 * similarity + spread
    distances[:, counts == 0] = np.inf
    return distances


def reassign(distances: Array, labels: Labels) -> Labels:
    """Each row to the nearest mean; a cluster left empty takes the row that is farthest from its mean.

    Both lower the objective: a row alone in a cluster costs nothing, and the cluster it left only gets tighter.
    """
    rows = np.arange(len(labels))
    nearest = distances.argmin(axis=1)
    # a tie does not move a row, or rows could move for ever
    moved = np.where(distances[rows, nearest] < distances[rows, labels], nearest, labels)
    counts = np.bincount(moved, minlength=distances.shape[1])
    cost = distances[rows, moved]
    for empty in np.flatnonzero(counts == 0):
        farthest = int(np.where(counts[moved] > 1, cost, -np.inf).argmax())
        counts[moved[farthest]] -= 1
        counts[empty] = 1
        moved[farthest] = empty
        cost[farthest] = 0
    return moved


def normalised_cut(
    X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState, *, width: float
) -> list[list[Run]]:
    """Normalised cut of every task by itself, on the RBF kernel with a width as in :func:`kernel_k_means`.

    The graph has the kernel as its weights, without loops: K_ii = 0. The goal is the partition with the smallest
    normalised cut::

        Ncut = Σ_k cut(k, rest) / vol(k) = C − Σ_k Σ_{i,j∈k} K_ij / Σ_{i∈k} d_i,   d_i = Σ_j K_ij

    It is approached as in scikit-learn's ``SpectralClustering(affinity="precomputed")``: k-means on the rows of the C
    smoothest generalised eigenvectors. Of several k-means starts the one with the lowest Ncut is kept (scikit-learn
    keeps the lowest k-means inertia).
    """
    sigma = width * mean_distance(X)
    graphs = (without_loops(rbf_kernel(X[part], sigma)) for part in tasks)
    return [
        [
            Run(run.labels, (cut_of(K, run.labels),))
            for run in k_means_runs(smooth_coordinates(K, n_clusters), n_clusters, n_init, rng)
        ]
        for K in graphs
    ]


def without_loops(K: Array) -> Array:
    """The kernel as a graph: a row is not its own neighbour, as in scikit-learn.

    A row whose kernel values all underflow keeps a loop, which makes it a component of its own instead of 0/0.
    """
    graph = K.copy()
    np.fill_diagonal(graph, 0)
    np.fill_diagonal(graph, graph.sum(axis=1) == 0)
    return graph


def smooth_coordinates(K: Array, n_components: int) -> Array:
    """The smoothest solutions v of (D − K) v = γ D v, one column each, scaled as scikit-learn scales them.

    LAPACK, not ARPACK: the kernel is dense, and the result does not depend on a random start.
    """
    root_degrees = np.sqrt(K.sum(axis=1))
    n_samples = len(K)
    _, vectors = eigh(
        K / np.outer(root_degrees, root_degrees), subset_by_index=[n_samples - n_components, n_samples - 1]
    )
    coordinates: Array = vectors[:, ::-1] / root_degrees[:, None]
    return coordinates


def cut_of(K: Array, labels: Labels) -> float:
    """Sum over clusters of the weight that leaves the cluster over its total weight."""
    members = (labels[:, None] == np.unique(labels)).astype(np.float64)
    within = np.einsum("ik,ij,jk->k", members, K, members, optimize=True)
    return float((1 - within / (K.sum(axis=1) @ members)).sum())


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
    """
    means = np.cumsum(costs) / np.arange(1, len(costs) + 1)
    allowed = means[min(least_rank, len(costs)) - 1 :]
    near_best = np.flatnonzero(allowed <= allowed.min() + _COST_TOLERANCE)
    return int(near_best[-1]) + len(costs) - len(allowed) + 1
