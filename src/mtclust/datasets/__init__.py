"""Data sets made of several tasks, bundled and generated; the paper's are in the folder ``paper`` of the repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import helmert
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from mtclust.core.tasks import split_by_task

__all__ = ["TaskData", "load_digits_tasks", "make_related_tasks"]

#: relative to the largest variance: what is less counts as zero in a task covariance
_ZERO = 1e-10


@dataclass(frozen=True, repr=False)
class TaskData:
    """Rows of several tasks, stacked task after task, with the classes they come from.

    Attributes
    ----------
    data : ndarray or CSR array of shape (n, d)
        The features.
    target : ndarray of shape (n,)
        The class of each row, a position in ``target_names``.
    tasks : ndarray of shape (n,)
        The task id of each row.
    target_names : tuple of str
        Names of the classes.
    feature_names : ndarray of str of shape (d,), or None
        Names of the features, if they have any.
    rows : ndarray of shape (n,), or None
        Row numbers in the whole data set in its canonical order; None for generated data.
    task_covariance : ndarray of shape (m, m), or None
        The Ω the tasks were generated with; None for real data.

    Examples
    --------
    >>> from mtclust.datasets import load_digits_tasks
    >>> digits = load_digits_tasks()
    >>> digits
    TaskData(300 rows, 64 features, 3 tasks, 5 classes)
    >>> {task: X.shape for task, X in digits.by_task().items()}
    {0: (100, 64), 1: (100, 64), 2: (100, 64)}
    """

    data: Any
    target: NDArray[np.int64]
    tasks: NDArray[Any]
    target_names: tuple[str, ...]
    feature_names: NDArray[Any] | None
    rows: NDArray[np.int64] | None = None
    task_covariance: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        (n, d), n_classes = self.data.shape, len(np.unique(self.target))
        return f"TaskData({n} rows, {d} features, {self.n_tasks} tasks, {n_classes} classes)"

    @property
    def n_tasks(self) -> int:
        return len(np.unique(self.tasks))

    @property
    def X_y_tasks(self) -> tuple[Any, NDArray[np.int64], NDArray[Any]]:
        """The triple ``data, target, tasks``."""
        return self.data, self.target, self.tasks

    def by_task(self) -> dict[Any, Any]:
        """The features of each task: a dictionary task id → rows of that task."""
        return split_by_task(self.data, self.tasks)


def one_per(name: str, given: int | Sequence[int], of: str, n: int, least: int) -> list[int]:
    """Numbers of rows, one per task or class, from one number for all or one each."""
    sizes = [int(given)] * n if isinstance(given, int | np.integer) else [int(size) for size in given]
    if len(sizes) != n:
        raise ValueError(f"{name} has {len(sizes)} entries but there are {n} {of}; give one number, or one each.")
    if min(sizes) < least:
        raise ValueError(f"{name} must be at least {least}; got {min(sizes)}.")
    return sizes


def load_digits_tasks(
    digits: Sequence[int] = (0, 3, 6, 8, 9),
    *,
    n_tasks: int = 3,
    rows_per_class: int | Sequence[int] = 20,
    unrelated: Sequence[int] | None = None,
    seed: int = 0,
) -> TaskData:
    """Related clustering tasks from the 8 × 8 digits that come with scikit-learn; needs no network.

    Every task holds its own rows of the same digits: the tasks are related, and no row is in two of them.

    Parameters
    ----------
    digits : sequence of int, default=(0, 3, 6, 8, 9)
        The classes of every task.
    n_tasks : int, default=3
        Number of tasks.
    rows_per_class : int or sequence of int, default=20
        Rows of each digit in a task, or one number per digit for skewed sizes. There are about 180 rows of each digit.
    unrelated : sequence of int, optional
        The classes of a second group of ``n_tasks`` tasks, as many as in ``digits``. With other digits than the first
        group, the two groups are unrelated.
    seed : int, default=0
        Which draw.

    Returns
    -------
    TaskData
        Grey levels in [0, 1]; ``target`` is the digit, ``tasks`` counts from 0 (the second group follows the first),
        ``rows`` are row numbers of ``sklearn.datasets.load_digits``.

    Examples
    --------
    >>> from mtclust.datasets import load_digits_tasks
    >>> digits = load_digits_tasks([1, 7], n_tasks=2, rows_per_class=10)
    >>> digits.data.shape, sorted(set(digits.target.tolist()))
    ((40, 64), [1, 7])

    Two groups of tasks that have nothing to do with each other:

    >>> load_digits_tasks([0, 3, 6], unrelated=[1, 2, 4], n_tasks=2).n_tasks
    4
    """
    groups = [list(digits)] + ([list(unrelated)] if unrelated is not None else [])
    for group in groups:
        if not group or len(set(group)) != len(group) or not set(group) <= set(range(10)):
            raise ValueError(f"digits and unrelated must be different digits from 0 to 9; got {group}.")
    if len({len(group) for group in groups}) > 1:
        raise ValueError(f"unrelated must have as many digits as digits: {len(groups[0])}, not {len(groups[1])}.")
    if n_tasks < 1:
        raise ValueError(f"n_tasks must be at least 1; got {n_tasks}.")
    sizes = one_per("rows_per_class", rows_per_class, "classes", len(groups[0]), 1)

    bunch = load_digits()
    rng = np.random.default_rng(seed)
    # each digit's rows are shuffled once and dealt out from the front, so that no row is given twice
    stock = {digit: rng.permutation(np.flatnonzero(bunch.target == digit)) for digit in range(10)}
    chosen = []
    for group in np.repeat(groups, n_tasks, axis=0).tolist():
        for digit, size in zip(group, sizes):
            if size > len(stock[digit]):
                raise ValueError(
                    f"there are {np.sum(bunch.target == digit)} rows of digit {digit}, too few for {size} in each of "
                    "its tasks; ask for fewer tasks or fewer rows_per_class."
                )
            chosen.append(stock[digit][:size])
            stock[digit] = stock[digit][size:]
    rows = np.concatenate(chosen)
    return TaskData(
        data=bunch.data[rows] / 16.0,  # the grey level of white
        target=bunch.target[rows].astype(np.int64),
        tasks=np.repeat(np.arange(n_tasks * len(groups)), sum(sizes)),
        target_names=tuple(str(digit) for digit in range(10)),
        feature_names=np.array(bunch.feature_names),
        rows=rows.astype(np.int64),
    )


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
