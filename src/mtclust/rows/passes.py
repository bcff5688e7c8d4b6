r"""The best labels the cluster sizes allow, for rows too many to be solved for at once.

For fixed models the batch step is :math:`\max_Y \sum_j F_{j,y_j}` within the size bounds of every task. Its dual has
one price per cluster: every row takes the cluster of highest F − price. With the prices of the step before nearly all
rows are decided in one pass; only those whose two best clusters are nearly equal go to the exact solver. If the prices
it ends with differ by no more than the gap that set these rows apart, no other row would change its mind: the labels
are optimal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.tasks import even_positions
from mtclust.rows.boundary import HeldBoundary, assign_near_boundary, exact_labels, sizes_fit
from mtclust.rows.moments import Data, RowSource, block_rows

if TYPE_CHECKING:
    from mtclust.rows.source import LocalRows

Array = NDArray[np.float64]

#: tasks with more rows than this get their first prices from so many of them
_FEW_ENOUGH = 20_000
_FIRST_ROWS = 6000
#: and from n to this power of very many: the rows that inexact prices leave undecided grow with n/√(rows of the prices)
_FIRST_POWER = 2 / 3


@dataclass
class TaskLabels:
    """Labels of one task, the prices that certify them, and the raw class sums that belong to them.

    ``held`` is True for rows whose labels stay.
    """

    labels: NDArray[np.int32]
    prices: Array
    sums: Array
    held: NDArray[np.bool_] | None = None
    _known_counts: NDArray[np.int64] | None = None

    @classmethod
    def none(cls, n_rows: int, n_clusters: int, n_features: int) -> TaskLabels:
        return cls(np.full(n_rows, -1, dtype=np.int32), np.zeros(n_clusters), np.zeros((n_clusters, n_features)))

    def copy(self) -> TaskLabels:
        """The same labels, apart from these."""
        return replace(self, labels=self.labels.copy(), prices=self.prices.copy(), sums=self.sums.copy())

    @property
    def counts(self) -> NDArray[np.int64]:
        if self._known_counts is None:
            self._known_counts = np.bincount(self.labels, minlength=len(self.prices))
        return self._known_counts.copy()

    def recount(self, counts: NDArray[np.int64] | None = None) -> None:
        """Take the new sizes of the clusters, or count them when next asked, after ``labels`` were changed."""
        self._known_counts = counts

    def put(self, positions: NDArray[np.int64], rows: NDArray[Any], labels: NDArray[Any]) -> int:
        """Give rows, whose raw features are given, other labels; returns how many of these are new."""
        from mtclust.core import compiled

        after = labels.astype(np.int32)
        moved = np.flatnonzero(after != self.labels[positions])
        where = positions[moved]
        compiled.move_sums(rows[moved], self.labels[where], after[moved], self.sums)
        self.labels[where] = after[moved]
        self.recount()
        return len(moved)

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        """Give the clusters new ids, in place."""
        self.labels[:] = new_ids.astype(np.int32)[self.labels]
        self.recount()
        self._rename_clusters(new_ids)

    def _rename_clusters(self, new_ids: NDArray[np.int64]) -> None:
        sums, prices = np.empty_like(self.sums), np.empty_like(self.prices)
        sums[new_ids], prices[new_ids] = self.sums, self.prices
        self.sums, self.prices = sums, prices

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> Any:
        """Labels of all tasks, one after the other."""
        return np.concatenate([task.labels for task in tasks])


def relabel(source: LocalRows, data: Data, task: int, W: Array, current: TaskLabels) -> int:
    """The best labels of a task for its model W (r × C) within the bounds, in place; returns how many changed."""
    from mtclust.core import compiled

    if current.held is not None:
        return _relabel_free(source, data, task, W, current)
    lower, upper = data.bounds.lower[task], data.bounds.upper[task]
    n, C = len(current.labels), W.shape[1]
    weights, constant = data.moments.on_raw(task, W)
    at_first, gaps, counts = current.labels.copy(), np.empty(n), np.zeros(C, dtype=np.int64)
    for begin, end, block in source.blocks(task):
        part = current.labels[begin:end]
        compiled.choose(scores_of(block, weights), current.prices - constant, part, gaps[begin:end], counts)
        compiled.move_sums(block, at_first[begin:end], part, current.sums)
    current.recount(counts)
    if not sizes_fit(current.prices, counts, lower, upper):

        def cost_of(positions: NDArray[np.int64]) -> Array:
            return -constant - scores_of(source.take(task, positions), weights)

        boundary = HeldBoundary(n, current.labels, gaps, cost_of)
        undecided, labels, current.prices = assign_near_boundary(boundary, counts, lower, upper, current.prices)
        moved = np.flatnonzero(labels != current.labels[undecided])
        current.put(undecided[moved], source.take(task, undecided[moved]), labels[moved])
    return int(np.count_nonzero(current.labels != at_first))


def _relabel_free(source: LocalRows, data: Data, task: int, W: Array, current: TaskLabels) -> int:
    """The same where some rows are held: the others get the best labels within the sizes that these leave."""
    assert current.held is not None
    free = np.flatnonzero(~current.held)
    if len(free) == 0:
        return 0
    weights, constant = data.moments.on_raw(task, W)
    step = block_rows(source.n_features, 8)
    costs = np.concatenate(
        [-constant - scores_of(source.take(task, free[a : a + step]), weights) for a in range(0, len(free), step)]
    )
    taken = current.counts - np.bincount(current.labels[free], minlength=len(constant))
    low, high = np.maximum(data.bounds.lower[task] - taken, 0), np.maximum(data.bounds.upper[task] - taken, 0)
    labels, current.prices = exact_labels(costs, low, high, current.prices)
    moved = np.flatnonzero(labels != current.labels[free])
    return current.put(free[moved], source.take(task, free[moved]), labels[moved])


def first_prices(source: RowSource, data: Data, task: int, W: Array, prices: Array) -> Array:
    """Prices near those of a whole task from some thousand of its rows, so that its first pass leaves few undecided."""
    n, lower, upper = int(data.moments.sizes[task]), data.bounds.lower[task], data.bounds.upper[task]
    free = bool(np.all(lower <= 1) and np.all(upper >= n)) and not prices.any()
    if n <= _FEW_ENOUGH or free:
        return prices
    rows = source.take(task, even_positions(n, max(_FIRST_ROWS, round(n**_FIRST_POWER))))
    weights, constant = data.moments.on_raw(task, W)
    share = len(rows) / n
    low, high = np.floor(lower * share).astype(np.int64), np.ceil(upper * share).astype(np.int64)
    return exact_labels(-(scores_of(rows, weights) + constant), low, high, prices)[1]


def scores_of(block: NDArray[Any], weights: Array) -> Array:
    """Raw rows times weights; the constant of the centre is left to the prices."""
    return np.ascontiguousarray(block @ weights.astype(block.dtype, copy=False), dtype=np.float64)
