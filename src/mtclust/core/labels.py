r"""Label codes and the sizes a cluster may have.

A row of cluster k has the code ȳ with 1 at k and −1/(C−1) elsewhere, so that codes have squared norm C/(C−1) and sum
to 0 (the paper's Yⁱ). The set Bⁱ of the paper's (2) allows labels whose mean code in every column lies between
−l/(C−1) and l; so l bounds the size n_c of every cluster of a task with n rows:

.. math:: \lceil n(1-l)/C \rceil \le n_c \le \lfloor n(1+(C-1)l)/C \rfloor
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtclust.core import Array, Integers
from mtclust.core.kernels import ROUNDING

#: l of ``sizes="auto"`` where J needs bounds: of 100 rows in two clusters each has 45 to 55
AUTO_BALANCE = 0.1


def code_scale(n_clusters: int) -> tuple[float, float]:
    """C/(C−1) and 1/(C−1): codes are C/(C−1)·indicator − 1/(C−1)."""
    return (n_clusters / (n_clusters - 1), 1.0 / (n_clusters - 1)) if n_clusters > 1 else (1.0, 0.0)


def label_codes(labels: ArrayLike, n_clusters: int) -> Array:
    """The code matrix Y (n × C) of integer labels: the members of the paper's set Bⁱ, (2).

    Examples
    --------
    >>> label_codes([0, 2], 3)
    array([[ 1. , -0.5, -0.5],
           [-0.5, -0.5,  1. ]])
    """
    labels = np.asarray(labels, dtype=np.int64)
    codes = np.full((len(labels), n_clusters), -1.0 / max(n_clusters - 1, 1))
    codes[np.arange(len(labels)), labels] = 1.0
    return codes


def offsets_of(sizes: ArrayLike) -> Integers:
    """Where the rows of every task begin among rows sorted by task, and where the last ones end."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def tasks_of_rows(offsets: Integers) -> Integers:
    """The number of the task of every row, for rows sorted by task."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def rows_of_tasks(offsets: Integers, tasks: Any) -> Integers:
    """The rows of some tasks, one task after the other, for rows sorted by task."""
    return np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in tasks])


def counts_by_task(labels: Any, offsets: Integers, n_clusters: int) -> Integers:
    """Cluster sizes (m × C) of labels sorted by task, task i from ``offsets[i]`` on; those below 0 are unknown."""
    if not isinstance(labels, np.ndarray):  # a handle to labels that lie elsewhere
        return labels.counts_by_task(n_clusters)
    return np.stack([np.bincount(part[part >= 0], minlength=n_clusters) for part in np.split(labels, offsets[1:-1])])


def balance_bounds(n_rows: int, n_clusters: int, l: float) -> tuple[int, int]:
    """Lowest and highest size of a cluster under the paper's balance parameter l, (2).

    The interval always contains floor(n/C) and ceil(n/C): without them a small l would often allow no labelling at
    all (C = 5, n = 39, l = .1). Nor is n(1-l)/C rounded past an integer that it equals (n = 90, C = 3, l = .2).

    Examples
    --------
    >>> balance_bounds(100, 5, 0.0), balance_bounds(39, 5, 0.1), balance_bounds(90, 3, 0.2)
    ((20, 20), (7, 10), (24, 42))
    """
    lower = int(np.ceil(n_rows * (1 - l) / n_clusters - ROUNDING * n_rows))
    upper = int(np.floor(n_rows * (1 + (n_clusters - 1) * l) / n_clusters + ROUNDING * n_rows))
    return min(lower, n_rows // n_clusters), min(n_rows, max(upper, -(-n_rows // n_clusters)))


@dataclass(frozen=True)
class SizeBounds:
    """Lowest and highest number of rows per task (row) and cluster (column).

    A cluster that a task does not have is bounded by [0, 0] there. ``movable`` says that each task only has a *number*
    of clusters, all with the same bounds, and that its labels decide which ids these have: see :meth:`fitted`.
    """

    lower: Integers
    upper: Integers
    movable: bool = False

    @property
    def n_clusters(self) -> int:
        return self.lower.shape[1]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Which task (row) has which cluster (column)."""
        return self.upper > 0

    def interchangeable(self) -> bool:
        """Whether all clusters of a task have the same bounds, so that ids can be renamed freely."""
        return bool(np.all(self.lower == self.lower[:, :1]) and np.all(self.upper == self.upper[:, :1]))

    def restrict(self, tasks: ArrayLike) -> SizeBounds:
        """The bounds of some of the tasks."""
        return SizeBounds(self.lower[np.asarray(tasks)], self.upper[np.asarray(tasks)], self.movable)

    def renamed(self, new_ids: Integers) -> SizeBounds:
        """The bounds under new ids of the clusters, for every task (m × C) or the same for all (C)."""
        lower, upper = np.empty_like(self.lower), np.empty_like(self.upper)
        tasks = np.arange(len(lower))[:, None]
        lower[tasks, new_ids], upper[tasks, new_ids] = self.lower, self.upper
        return SizeBounds(lower, upper, self.movable)

    def row(self, task: int, labels: Integers) -> tuple[Integers, Integers]:
        """Lower and upper bounds of a task; if movable, with its clusters where these labels of the task have them."""
        if not self.movable:
            return self.lower[task], self.upper[task]
        here = self.restrict([task]).fitted(np.bincount(labels, minlength=self.n_clusters)[None])
        return here.lower[0], here.upper[0]

    def fitted(self, counts: Integers, fixed: bool = False) -> SizeBounds:
        """The bounds with each task's clusters where labels of these cluster sizes (m × C) have them, if movable.

        Ids without rows stay as they are as far as possible; ``fixed`` bounds are not movable any more.
        """
        if not self.movable:
            return self
        # used ids first, then those a task has anyway, then the rest; clusters that it has before the others
        ids = np.argsort(np.where(counts > 0, 0, np.where(self.present, 1, 2)), axis=1, kind="stable")
        clusters, new_ids = np.argsort(~self.present, axis=1, kind="stable"), np.empty_like(ids)
        np.put_along_axis(new_ids, clusters, ids, axis=1)
        return replace(self.renamed(new_ids), movable=not fixed)

    def respects(self, task: int, counts: Integers) -> bool:
        """Whether cluster sizes of a task lie within its bounds."""
        return bool(np.all(counts >= self.lower[task]) and np.all(counts <= self.upper[task]))


def free_bounds(sizes: Integers, present: NDArray[np.bool_]) -> SizeBounds:
    """No bound but that every cluster that a task has keeps a row, if the task has one for each."""
    kept = np.minimum(1, sizes // np.maximum(present.sum(axis=1), 1))
    return SizeBounds(np.where(present, kept[:, None], 0), np.where(present, sizes[:, None], 0))


def neutral_bounds(sizes: Integers, clusters: Integers) -> SizeBounds:
    """No bound but that each of so many clusters of a task keeps a row."""
    bounds = free_bounds(sizes, np.arange(clusters.max()) < clusters[:, None])
    return replace(bounds, movable=bool(np.ptp(clusters)))


def proportional(bounds: SizeBounds, sizes: Integers, wanted: Integers) -> SizeBounds:
    """Bounds of a sample: the same shares, rounded outwards."""
    lower = bounds.lower * wanted[:, None] // sizes[:, None]
    upper = -(-bounds.upper * wanted[:, None] // sizes[:, None])
    return SizeBounds(lower, upper, bounds.movable)


def left_over(known: NDArray[Any], lower: Integers, upper: Integers) -> tuple[Integers, Integers]:
    """Bounds of a task for its other rows, from the labels of those that are known (−1 for unknown)."""
    own = np.bincount(known[known >= 0], minlength=len(lower))
    return np.maximum(lower - own, 0), np.maximum(upper - own, 0)


def parse_sizes(
    sizes: Any, task_sizes: ArrayLike, n_clusters: ArrayLike, task_names: ArrayLike | None = None
) -> SizeBounds:
    """Turn the ``sizes`` argument of an estimator into bounds.

    ``"balanced"`` is l = 0, a float is the paper's l, ``(low, high)`` bounds every cluster's share of its task (rounded
    outwards to whole rows), an array of shape (m, C) gives exact sizes per task and cluster, one of shape (m, C, 2)
    lowest and highest sizes, and a mapping task → row the same by task id. Where tasks differ in ``n_clusters``, one
    with fewer has bounds of its own C_i clusters and [0, 0] for the others; which are which is left open (``movable``),
    unless a table says it.

    Examples
    --------
    >>> bounds = parse_sizes((0.1, 0.5), [100, 50], 3)
    >>> bounds.lower.tolist(), bounds.upper.tolist()
    ([[10, 10, 10], [5, 5, 5]], [[50, 50, 50], [25, 25, 25]])
    >>> parse_sizes("balanced", [60, 60], [3, 2]).upper.tolist()
    [[20, 20, 20], [30, 30, 0]]
    """
    rows = np.asarray(task_sizes, dtype=np.int64)
    names = np.arange(len(rows)) if task_names is None else np.asarray(task_names)
    own = np.broadcast_to(np.asarray(n_clusters, dtype=np.int64), rows.shape)
    most = int(own.max())
    if same_for_all_clusters(sizes):
        ranges = np.array([_size_range(sizes, n, c) for n, c in zip(rows.tolist(), own.tolist())], dtype=np.int64)
        lower, upper = (np.where(np.arange(most) < own[:, None], bound[:, None], 0) for bound in ranges.T)
        bounds = SizeBounds(lower, upper, movable=bool(np.any(own < most)))
    else:
        if isinstance(sizes, Mapping):
            sizes = one_per_task("sizes", sizes, names)
        bounds = _table(sizes, (len(rows), most))
    for i, name in enumerate(names.tolist()):
        n, lower, upper = rows[i], bounds.lower[i], bounds.upper[i]
        if np.any(lower > upper) or not lower.sum() <= n <= upper.sum():
            raise ValueError(
                f"sizes cannot be met in task {name!r}: it has {n} rows, the sizes add up to at least {lower.sum()} "
                f"and at most {upper.sum()} ({lower.tolist()} to {upper.tolist()})."
            )
        if np.count_nonzero(upper) > own[i]:
            raise ValueError(
                f"sizes gives task {name!r} {np.count_nonzero(upper)} clusters that may have rows, but n_clusters "
                f"gives it {own[i]}; set the sizes of the others to 0."
            )
    return bounds


def same_for_all_clusters(sizes: Any) -> bool:
    """Whether ``sizes`` is one rule for every cluster: a word, a number or a pair of fractions, not a table."""
    if isinstance(sizes, tuple) and len(sizes) == 2:
        return not any(hasattr(value, "__len__") for value in sizes)
    return isinstance(sizes, str) or not hasattr(sizes, "__len__")


def _size_range(sizes: Any, n_rows: int, n_clusters: int) -> tuple[int, int]:
    """Lowest and highest size of every cluster of a task by one rule."""
    if isinstance(sizes, tuple):
        low, high = (float(value) for value in sizes)
        if not 0 <= low <= high <= 1:
            raise ValueError(f"sizes={sizes!r}: a pair of fractions needs 0 <= low <= high <= 1.")
        slack = ROUNDING * n_rows
        return int(np.floor(low * n_rows + slack)), min(n_rows, int(np.ceil(high * n_rows - slack)))
    if isinstance(sizes, str) and sizes in ("auto", "balanced"):
        return balance_bounds(n_rows, n_clusters, AUTO_BALANCE if sizes == "auto" else 0.0)
    if isinstance(sizes, bool | np.bool_) or not isinstance(sizes, int | float | np.number):
        raise ValueError(
            f'sizes={sizes!r} is not known; allowed are "auto", "balanced", the balance parameter l in [0, 1], a pair '
            "(low, high) of fractions, an array of sizes of shape (n_tasks, n_clusters) or (n_tasks, n_clusters, 2), "
            "or a mapping from task to such a row."
        )
    if not 0 <= sizes <= 1:
        raise ValueError(f"sizes={sizes!r}: as a number it is the paper's l and must lie in [0, 1].")
    return balance_bounds(n_rows, n_clusters, float(sizes))


def one_per_task(argument: str, entries: Mapping[Any, Any], names: NDArray[Any]) -> list[Any]:
    """What a mapping task → value holds, in the order of the tasks; refused where it has other tasks than these."""
    known = names.tolist()
    missing = [name for name in known if name not in entries]
    surplus = [name for name in entries if name not in known]
    if missing or surplus:
        raise ValueError(
            f"{argument} must have one entry per task; missing: {missing or 'none'}, not a task: {surplus or 'none'}."
        )
    return [entries[name] for name in known]


def _table(sizes: Any, expected: tuple[int, int]) -> SizeBounds:
    try:
        table = np.asarray(sizes, dtype=np.float64)
    except (TypeError, ValueError):  # no regular table
        table = np.empty(0)
    if table.shape not in (expected, (*expected, 2)) or not np.all((table >= 0) & (table == table // 1)):
        raise ValueError(
            f"sizes as a table must hold whole numbers of rows, none negative, of shape {expected} or "
            f"{(*expected, 2)}; got {sizes!r:.200}."
        )
    counts = table.astype(np.int64)
    return SizeBounds(counts, counts) if table.ndim == 2 else SizeBounds(counts[..., 0], counts[..., 1])
