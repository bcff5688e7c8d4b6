"""Generated tasks that are related by a chosen Ω."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert
from sklearn.utils import check_random_state

from mtclust.datasets.digits import TaskData, one_per

#: relative to the largest variance: what is less counts as zero in a task covariance
_ZERO = 1e-10


def make_related_tasks(
    n_tasks: int = 3,
    *,
    task_covariance: str | float | ArrayLike = "related",
    n_samples: int | Sequence[int] = 90,
    n_features: int = 10,
    n_clusters: int = 3,
    separation: float = 4.0,
    shift: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> TaskData:
    """Tasks whose clusters are related as a chosen covariance Ω says, exactly.

    Let A_i (clusters × features) hold the cluster centres of task i, relative to the centre of the task. They are made
    such that ⟨A_i, A_j⟩ ∝ Ω_ij, and that in every task all pairs of clusters are equally far apart. Rows are the centre
    of their cluster plus standard Gaussian noise.

    Parameters
    ----------
    n_tasks : int, default=3
        Number of tasks.
    task_covariance : str, float or array of shape (n_tasks, n_tasks), default="related"
        The relationship Ω; a variance of 1 means clusters at the distance ``separation``. A float is the correlation
        between all pairs of tasks. Names:

        - "related": all pairs have the correlation .9;
        - "unrelated": 0 between all pairs;
        - "outlier": the last task is unrelated to the others, which are related.
    n_samples : int or sequence of int, default=90
        Rows of each task, shared among the clusters as evenly as can be.
    n_features : int, default=10
        At least the rank of Ω times ``n_clusters - 1``, so that unrelated tasks have room for directions of their own.
    n_clusters : int, default=3
        Clusters in every task.
    separation : float, default=4.0
        Distance between two clusters of a task of variance 1, in standard deviations of the noise.
    shift : float, default=0.0
        Standard deviation of the centres of the tasks; 0: all at the origin.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    TaskData
        With the Ω that was used in ``task_covariance``.

    Examples
    --------
    >>> from mtclust.datasets import make_related_tasks
    >>> made = make_related_tasks(3, task_covariance="outlier", random_state=0)
    >>> made.data.shape
    (270, 10)
    >>> made.task_covariance
    array([[1. , 0.9, 0. ],
           [0.9, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    rng = check_random_state(random_state)
    for name, value, least in (("n_tasks", n_tasks, 1), ("n_clusters", n_clusters, 2)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}; got {value}.")
    sizes = one_per("n_samples", n_samples, "tasks", n_tasks, n_clusters)
    omega = _read_covariance(task_covariance, n_tasks)
    root = _semidefinite_root(omega)
    rank, dimension = root.shape[1], n_clusters - 1
    if rank * dimension > n_features:
        raise ValueError(
            f"n_features={n_features} is too small: a task_covariance of rank {rank} with {n_clusters} clusters needs "
            f"at least {rank * dimension}."
        )
    # one simplex of clusters in each of `rank` orthogonal subspaces; task i mixes them by row i of the root of Ω, which
    # gives ⟨A_i, A_j⟩ = Ω_ij |simplex|² and keeps the distances within a task equal
    basis, triangle = np.linalg.qr(rng.standard_normal((n_features, rank * dimension)))
    # QR is unique, and its directions uniformly distributed, once the diagonal is positive
    directions = (basis * np.sign(np.diag(triangle))).reshape(n_features, rank, dimension)
    centres = np.einsum("ik,cd,fkd->icf", root, separation * _simplex(n_clusters), directions)
    centres += shift * rng.standard_normal((n_tasks, 1, n_features))
    # task after task and cluster after cluster; the first clusters have one row more if need be
    target = np.concatenate([np.sort(np.arange(size) % n_clusters) for size in sizes])
    tasks = np.repeat(np.arange(n_tasks), sizes)
    return TaskData(
        data=centres[tasks, target] + rng.standard_normal((len(target), n_features)),
        target=target,
        tasks=tasks,
        target_names=tuple(map(str, range(n_clusters))),
        feature_names=None,
        task_covariance=omega,
    )


def _read_covariance(given: Any, n_tasks: int) -> NDArray[np.float64]:
    """Ω from its name, a correlation or itself."""
    named = {"related": 0.9, "unrelated": 0.0, "outlier": 0.9}
    if isinstance(given, str) and given not in named:
        raise ValueError(f"task_covariance={given!r} is unknown; use {', '.join(named)}, a correlation or a matrix.")
    omega = np.array(named[given] if isinstance(given, str) else given, dtype=np.float64)
    if omega.ndim == 0:
        omega = np.where(np.eye(n_tasks) > 0, 1.0, omega)
    if isinstance(given, str) and given == "outlier":
        omega[-1, :-1] = omega[:-1, -1] = 0.0
    if omega.shape != (n_tasks, n_tasks) or not np.allclose(omega, omega.T):
        raise ValueError(f"task_covariance must be a symmetric matrix of shape ({n_tasks}, {n_tasks}); got {given}.")
    smallest, largest = np.linalg.eigvalsh(omega)[[0, -1]]
    if smallest < -_ZERO * max(largest, 0.0):
        raise ValueError(f"task_covariance must be positive semidefinite; its smallest eigenvalue is {smallest:.3g}.")
    if largest <= 0:
        raise ValueError("task_covariance is zero; at least one task needs clusters that differ.")
    return omega


def _simplex(n_clusters: int) -> NDArray[np.float64]:
    """Points at distance 1 from each other around the origin, in one dimension less than points (Helmert's basis)."""
    corners = (np.eye(n_clusters) - 1.0 / n_clusters) / np.sqrt(2.0)
    return np.asarray(corners @ helmert(n_clusters).T)


def _semidefinite_root(omega: NDArray[np.float64]) -> NDArray[np.float64]:
    """L with L Lᵀ = Ω, one column per unit of rank: Cholesky's recursion with zero pivots left out.

    An eigendecomposition would do, but its basis is arbitrary when eigenvalues coincide, as they do for "related", and
    one seed would give other data on another machine.
    """
    rest, columns = omega.copy(), []
    for i in range(len(omega)):
        if rest[i, i] > _ZERO * np.diag(omega).max():
            columns.append(rest[:, i] / np.sqrt(rest[i, i]))
            rest -= np.outer(columns[-1], columns[-1])
    return np.column_stack(columns)
