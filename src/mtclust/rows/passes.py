r"""The best labels the cluster sizes allow, for rows too many to be solved for at once.

For fixed models the batch step is :math:`\max_Y \sum_j F_{j,y_j}` within the size bounds of every task. Its dual has
one price per cluster: every row takes the cluster of highest F − price. With the prices of the step before nearly all
rows are decided in one pass; only those whose two best clusters are nearly equal go to the exact solver. If the prices
it ends with differ by no more than the gap that set these rows apart, no other row would change its mind: the labels
are optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust import core
from mtclust.core import Array, Integers
from mtclust.core.assignment import assign
from mtclust.core.labels import left_over
from mtclust.core.tasks import even_positions
from mtclust.rows.moments import Data, RowSource, block_rows

if TYPE_CHECKING:
    from mtclust.rows.source import LocalRows


#: tasks with more than five times as many rows get their first prices from this many of them
_FIRST_ROWS = 3000
#: rows near a boundary that are solved exactly, per row too many or too few, and at least
_PER_MISFIT, _FEWEST = 3, 64
#: the gap that sets them apart is estimated from this many rows
_SAMPLED_GAPS = 4096


@dataclass
class TaskLabels:
    """Labels of one task, the prices that certify them, and the raw class sums and sizes that belong to them."""

    labels: NDArray[np.int32]
    prices: Array
    sums: Array
    counts: Integers
    held: NDArray[np.bool_] | None = None  # True for rows whose labels stay

    @classmethod
    def none(cls, n_rows: int, n_clusters: int, n_features: int) -> TaskLabels:
        sums, counts = np.zeros((n_clusters, n_features)), np.zeros(n_clusters, dtype=np.int64)
        return cls(np.full(n_rows, -1, dtype=np.int32), np.zeros(n_clusters), sums, counts)

    def copy(self) -> TaskLabels:
        """The same labels, apart from these."""
        return replace(self, labels=self.labels.copy(), sums=self.sums.copy())  # others are replaced

    def put(self, source: LocalRows, task: int, positions: Integers, labels: Integers) -> int:
        """Give some rows other labels; returns how many of these are new."""
        moved = np.flatnonzero(labels != self.labels[positions])
        where, after = positions[moved], labels[moved].astype(np.int32)
        core.compiled.move_sums(source.take(task, where), self.labels[where], after, self.sums)
        self.counts = self.counts + np.bincount(after, minlength=len(self.counts))
        self.counts -= np.bincount(self.labels[where], minlength=len(self.counts))
        self.labels[where] = after
        return len(moved)

    def rename(self, new_ids: Integers) -> None:
        """Give the clusters new ids, in place."""
        self.labels[:] = new_ids.astype(np.int32)[self.labels]
        sums, prices, counts = np.empty_like(self.sums), np.empty_like(self.prices), np.empty_like(self.counts)
        sums[new_ids], prices[new_ids], counts[new_ids] = self.sums, self.prices, self.counts
        self.sums, self.prices, self.counts = sums, prices, counts

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> Any:
        """Labels of all tasks, one after the other."""
        return np.concatenate([task.labels for task in tasks])


def relabel(source: LocalRows, data: Data, task: int, W: Array, current: TaskLabels) -> int:
    """The best labels of a task for its model W (r × C) within the bounds, in place; returns how many changed."""
    if current.held is not None:
        return _relabel_free(source, data, task, W, current)
    lower, upper = data.bounds.lower[task], data.bounds.upper[task]
    weights, constant = data.on_raw(task, W)
    at_first, gaps, counts = current.labels.copy(), np.empty(len(current.labels)), np.zeros(W.shape[1], dtype=np.int64)
    for begin, end, block in source.blocks(task):
        part = current.labels[begin:end]
        core.compiled.choose(scores_of(block, weights), current.prices - constant, part, gaps[begin:end], counts)
        core.compiled.move_sums(block, at_first[begin:end], part, current.sums)
    current.counts = counts
    if not sizes_fit(current.prices, counts, lower, upper):

        def near(gap: float) -> tuple[Integers, NDArray[Any], Array]:
            rows = np.flatnonzero(gaps <= gap)
            return rows, current.labels[rows], -constant - scores_of(source.take(task, rows), weights)

        some = gaps[:: gap_step(len(gaps))]
        rows, _, labels, current.prices = settle(near, some, counts, lower, upper, current.prices)
        current.put(source, task, rows, labels)
    return int(np.count_nonzero(current.labels != at_first))


def _relabel_free(source: LocalRows, data: Data, task: int, W: Array, current: TaskLabels) -> int:
    """The same where some rows are held: the others get the best labels within the sizes that these leave."""
    assert current.held is not None
    free = np.flatnonzero(~current.held)
    if len(free) == 0:
        return 0
    weights, constant = data.on_raw(task, W)
    step = block_rows(source.n_features, 8)
    costs = np.concatenate(
        [-constant - scores_of(source.take(task, free[a : a + step]), weights) for a in range(0, len(free), step)]
    )
    low, high = left_over(current.labels[current.held], data.bounds.lower[task], data.bounds.upper[task])
    labels, current.prices = exact_labels(costs, low, high, current.prices)
    return current.put(source, task, free, labels)


def first_prices(source: RowSource, data: Data, task: int, W: Array, prices: Array) -> Array:
    """Prices near those of a whole task from some thousand of its rows, so that its first pass leaves few undecided."""
    n, lower, upper = int(data.moments.sizes[task]), data.bounds.lower[task], data.bounds.upper[task]
    free = bool(np.all(lower <= 1) and np.all(upper >= n)) and not prices.any()
    if n <= 5 * _FIRST_ROWS or free:
        return prices
    rows = source.take(task, even_positions(n, _FIRST_ROWS))
    weights, constant = data.on_raw(task, W)
    share = len(rows) / n
    low, high = np.floor(lower * share).astype(np.int64), np.ceil(upper * share).astype(np.int64)
    return exact_labels(-(scores_of(rows, weights) + constant), low, high, prices)[1]


def scores_of(block: NDArray[Any], weights: Array) -> Array:
    """Raw rows times weights; the constant of the centre is left to the prices."""
    return np.ascontiguousarray(block @ weights.astype(block.dtype, copy=False), dtype=np.float64)


def settle(
    near: Callable[[float], tuple[Integers, NDArray[Any], Array]], gaps: Array, counts: Integers, lower: Integers,
    upper: Integers, prices: Array,
) -> tuple[Integers, NDArray[Any], Integers, Array]:  # fmt: skip
    """Rows near a boundary, what prices alone give them and what the sizes allow, and prices that certify the whole.

    ``near`` gives positions, labels by prices alone and costs of all rows whose two best clusters differ by no more
    than a gap, at first :func:`first_gap`. ``gaps`` are those of every ``gap_step(n)``-th row, ``counts`` the sizes
    that prices alone give.
    """
    n, gap = int(counts.sum()), first_gap(gaps, counts, lower, upper)
    while True:
        positions, before, costs = near(gap)
        decided = counts - np.bincount(before, minlength=len(counts))
        low, high = lower - decided, upper - decided  # below 0 where rows that are decided could leave
        if np.all(high >= 0) and np.maximum(low, 0).sum() <= len(before) <= high.sum():
            after, new_prices = exact_labels(costs, low, high, prices)
            # where prices differ by more, they would move rows further from the boundary
            if len(before) == n or np.ptp(new_prices - prices) <= gap:
                return positions, before, after, new_prices
        gap = max(2 * gap, _gap_of_rank(gaps, n, 2 * len(before) + 1))


def first_gap(gaps: Array, counts: Integers, lower: Integers, upper: Integers) -> float:
    """The gap up to which rows are tried first, from the sizes that prices alone give."""
    misfit = int(np.maximum(counts - upper, 0).sum() + np.maximum(lower - counts, 0).sum())
    return _gap_of_rank(gaps, int(counts.sum()), _PER_MISFIT * misfit + _FEWEST)


def gap_step(n: int) -> int:
    """Every how many rows a gap is looked at to estimate the gap of a rank."""
    return 1 if n <= _SAMPLED_GAPS else n // _SAMPLED_GAPS


def _gap_of_rank(gaps: Array, n: int, rank: int) -> float:
    """A gap that about ``rank`` of n rows do not exceed, from every ``gap_step(n)``-th of their gaps."""
    if rank >= n:
        return np.inf
    position = min(len(gaps) - 1, -(-rank * len(gaps) // n))
    return float(np.partition(gaps, position)[position])


def exact_labels(cost: Array, low: Integers, high: Integers, prices: Array) -> tuple[Integers, Array]:
    """Optimal labels within the bounds, and prices under which every row has its cheapest cluster by cost + price.

    Difference constraints q_a ≤ q_b + min over rows of a of (cost_b − cost_a), relaxed from the given prices down. The
    last price, 0, is that of no constraint: a cluster that may take rows costs no more, one that may give no less.
    """
    labels = assign(cost, low, high, prices=prices)
    C, sizes = cost.shape[1], np.bincount(labels, minlength=cost.shape[1])
    between, movers = np.empty((C, C)), np.empty((C, C), dtype=np.int64)
    core.compiled.cheapest_exits(cost, labels, np.ones(C, dtype=np.bool_), between, movers)
    exits = np.pad(between, (0, 1), constant_values=np.inf)
    exits[:C, C] = np.where(sizes < high, 0.0, np.inf)
    exits[C, :C] = np.where(sizes > low, 0.0, np.inf)
    found = np.append(prices, 0.0)
    for _ in range(C + 2):
        reach = (exits + found).min(axis=1)
        shorter = reach < found - 1e-13 * (1.0 + np.abs(reach))
        if not shorter.any():
            break
        found = np.where(shorter, reach, found)
    return labels, np.asarray(found[:-1] - found[-1])


def sizes_fit(prices: Array, counts: Integers, lower: Integers, upper: Integers) -> bool:
    """Whether the labels that prices alone give are optimal: sizes within bounds, and the prices belong to them."""
    return bool(np.all(counts >= lower) and np.all(counts <= upper)) and prices_agree(prices, counts, lower, upper)


def prices_agree(prices: Array, counts: Integers, lower: Integers, upper: Integers) -> bool:
    """Whether prices belong to these sizes: above 0 only at the upper bound, below 0 only at the lower."""
    floor = prices[counts > lower].min(initial=np.inf)
    ceiling = prices[counts < upper].max(initial=-np.inf)
    return bool(ceiling <= 0.0 <= floor)
