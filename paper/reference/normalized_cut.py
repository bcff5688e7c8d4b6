"""Normalised cut: spectral clustering of the RBF kernel as a graph."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval

from mtclust.core.tasks import TaskIndex
from paper.reference._base import TaskClusterer
from paper.reference._runs import Restarts, Run, join_tasks, repeat_runs
from paper.reference.kernels import mean_distance, rbf_kernel


class NormalizedCut(TaskClusterer):
    """Normalised cut of every task by itself, on the RBF kernel.

    The graph has the kernel as its weights, without loops: K_ii = 0. The goal is the partition with the smallest
    normalised cut::

        Ncut = Σ_k cut(k, rest) / vol(k) = C − Σ_k Σ_{i,j∈k} K_ij / Σ_{i∈k} d_i,   d_i = Σ_j K_ij

    It is approached as in scikit-learn's ``SpectralClustering(affinity="precomputed")``: k-means on the rows of the C
    smoothest generalised eigenvectors. Of several k-means starts the one with the lowest Ncut is kept (scikit-learn
    keeps the lowest k-means inertia). Cluster ids of different tasks have nothing to do with each other.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters in each task.
    width : float, default=1.0
        RBF width as a multiple of the mean distance between rows, taken over all tasks.
    n_init : int, default=10
        Number of k-means starts on the eigenvectors; every task keeps its best.
    max_iter, tol : int, default=300, and float, default=1e-4
        Passed to k-means.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row within its task, in the order of the input.
    objective_ : float
        The normalised cut, summed over tasks.
    history_ : ndarray of shape (1,)
        Only the final value: k-means on the eigenvectors does not follow the cut step by step.
    n_iter_ : int
        Steps of the longest of the k-means runs that were kept.
    tasks_ : ndarray of shape (m,)
        The task ids.
    restart_labels_, restart_objectives_ : ndarrays of shape (n_init, n) and (n_init,)
        The outcome of every single start.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.reference import NormalizedCut
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> labels = NormalizedCut(n_clusters=2, random_state=0).fit_predict(X)
    >>> len(set(labels[:3])), len(set(labels[3:])), bool(labels[0] != labels[3])
    (1, 1, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterer._parameter_constraints,
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        width: float = 1.0,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.width = width
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _cluster(self, X: Any, index: TaskIndex, rng: np.random.RandomState) -> Restarts:
        sigma = self.width * mean_distance(X)
        graphs = (without_loops(rbf_kernel(X[part], sigma)) for part in index.slices())
        return join_tasks([self._cluster_graph(graph, rng) for graph in graphs])

    def _cluster_graph(self, K: NDArray[np.float64], rng: np.random.RandomState) -> Restarts:
        coordinates = smooth_coordinates(K, self.n_clusters)

        def run_once(rng: np.random.RandomState) -> Run:
            kmeans = KMeans(self.n_clusters, n_init=1, max_iter=self.max_iter, tol=self.tol, random_state=rng)
            labels = kmeans.fit_predict(coordinates).astype(np.int64)
            cut = normalized_cut(K, labels)
            return Run(labels, cut, (cut,), int(kmeans.n_iter_), kmeans.n_iter_ < self.max_iter)

        return repeat_runs(run_once, self.n_init, rng)


def without_loops(K: NDArray[np.float64]) -> NDArray[np.float64]:
    """The kernel as a graph: a row is not its own neighbour, as in scikit-learn.

    A row whose kernel values all underflow keeps a loop, which makes it a component of its own instead of 0/0.
    """
    graph = K.copy()
    np.fill_diagonal(graph, 0)
    np.fill_diagonal(graph, graph.sum(axis=1) == 0)
    return graph


def smooth_coordinates(K: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """The smoothest solutions v of (D − K) v = γ D v, one column each, scaled as scikit-learn scales them.

    LAPACK, not ARPACK: the kernel is dense, and the result does not depend on a random start.
    """
    root_degrees = np.sqrt(K.sum(axis=1))
    n_samples = len(K)
    _, vectors = eigh(
        K / np.outer(root_degrees, root_degrees), subset_by_index=[n_samples - n_components, n_samples - 1]
    )
    coordinates: NDArray[np.float64] = vectors[:, ::-1] / root_degrees[:, None]
    return coordinates


def normalized_cut(K: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Sum over clusters of the weight that leaves the cluster over its total weight.

    Examples
    --------
    >>> normalized_cut(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), np.array([0, 0, 1]))
    0.0
    """
    members = (labels[:, None] == np.unique(labels)).astype(np.float64)
    within = np.einsum("ik,ij,jk->k", members, K, members, optimize=True)
    return float((1 - within / (K.sum(axis=1) @ members)).sum())
