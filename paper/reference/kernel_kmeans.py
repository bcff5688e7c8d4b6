"""Kernel k-means: Lloyd's algorithm in the space of the kernel's features."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.extmath import safe_sparse_dot

from mtclust.core.tasks import TaskIndex
from paper.reference._base import TaskClusterer
from paper.reference._runs import Restarts, Run, fell_less_than, join_tasks, repeat_runs
from paper.reference.kernels import mean_distance, rbf_kernel


class KernelKMeans(TaskClusterer):
    """Kernel k-means of every task by itself.

    Minimises, within each task, the squared distances to the cluster means in the kernel's feature space::

        Σ_i |φ(x_i) − mean of φ over the cluster of i|² = tr K − Σ_k (1/n_k) Σ_{j,l∈k} K_jl

    Rows are reassigned to the nearest mean until none moves. Starts are chosen by k-means++ with the kernel's
    distances. Cluster ids of different tasks have nothing to do with each other.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters in each task.
    kernel : {"rbf", "linear"}, default="rbf"
        With ``"linear"`` this is k-means.
    width : float, default=1.0
        RBF width as a multiple of the mean distance between rows, taken over all tasks.
    n_init : int, default=10
        Number of random starts; every task keeps its best.
    max_iter : int, default=300
        Largest number of reassignments of one run.
    tol : float, default=0.0
        Stop when the objective falls by no more than this share; 0 means when no row moves.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row within its task, in the order of the input.
    objective_ : float
        The objective, summed over tasks.
    history_ : ndarray
        The objective at the start and after every step of the runs that were kept.
    n_iter_ : int
        Steps of the longest of the runs that were kept.
    tasks_ : ndarray of shape (m,)
        The task ids.
    restart_labels_, restart_objectives_ : ndarrays of shape (n_init, n) and (n_init,)
        The outcome of every single start.

    Examples
    --------
    >>> import numpy as np
    >>> from paper.reference import KernelKMeans
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1], [3.0], [3.1], [9.0], [9.1]])
    >>> model = KernelKMeans(n_clusters=2, random_state=0).fit(X, tasks=list("aaaabbbb"))
    >>> pairs = model.labels_.reshape(4, 2)
    >>> bool((pairs[:, 0] == pairs[:, 1]).all()), bool(pairs[0, 0] != pairs[1, 0]), bool(pairs[2, 0] != pairs[3, 0])
    (True, True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TaskClusterer._parameter_constraints,
        "kernel": [StrOptions({"rbf", "linear"})],
        "width": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: str = "rbf",
        width: float = 1.0,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.width = width
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _cluster(self, X: Any, index: TaskIndex, rng: np.random.RandomState) -> Restarts:
        # one width for all tasks: the kernel is then the same function everywhere
        sigma = self.width * mean_distance(X) if self.kernel == "rbf" else 0.0
        tasks = []
        for part in index.slices():
            rows = X[part]
            K = rbf_kernel(rows, sigma) if self.kernel == "rbf" else _linear_kernel(rows)
            tasks.append(cluster_kernel(K, self.n_clusters, self.n_init, self.max_iter, self.tol, rng))
        return join_tasks(tasks)


def _linear_kernel(X: Any) -> NDArray[np.float64]:
    kernel: NDArray[np.float64] = safe_sparse_dot(X, X.T, dense_output=True)
    return kernel


def cluster_kernel(
    K: NDArray[np.float64], n_clusters: int, n_init: int, max_iter: int, tol: float, rng: np.random.RandomState
) -> Restarts:
    """Kernel k-means on a kernel matrix from several starts."""

    def run_once(rng: np.random.RandomState) -> Run:
        return descend(K, nearest_seed(K, seed_rows(K, n_clusters, rng)), n_clusters, max_iter, tol)

    return repeat_runs(run_once, n_init, rng)


def seed_rows(K: NDArray[np.float64], n_clusters: int, rng: np.random.RandomState) -> NDArray[np.int64]:
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


def nearest_seed(K: NDArray[np.float64], seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """The position in ``seeds`` of the seed nearest to each row; a seed belongs to itself."""
    labels = (np.diagonal(K)[seeds] - 2 * K[:, seeds]).argmin(axis=1)
    labels[seeds] = np.arange(len(seeds))
    return labels


def descend(K: NDArray[np.float64], labels: NDArray[np.int64], n_clusters: int, max_iter: int, tol: float = 0.0) -> Run:
    """Reassign rows to the nearest mean, from given labels, until none moves."""
    distances = squared_distances(K, labels, n_clusters)
    rows = np.arange(len(K))
    history = [float(distances[rows, labels].sum())]
    converged = False
    while not converged and len(history) <= max_iter:
        moved = reassign(distances, labels)
        distances = squared_distances(K, moved, n_clusters)
        history.append(float(distances[rows, moved].sum()))
        converged = bool((moved == labels).all()) or bool(fell_less_than(tol, history[-2], history[-1]))
        labels = moved
    return Run(labels, history[-1], tuple(history), len(history) - 1, converged)


def squared_distances(K: NDArray[np.float64], labels: NDArray[np.int64], n_clusters: int) -> NDArray[np.float64]:
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


def reassign(distances: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
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
