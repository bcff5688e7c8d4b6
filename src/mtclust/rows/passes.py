r"""The best labels the cluster sizes allow, for rows too many to be solved for at once.

For fixed models the batch step is :math:`\max_Y \sum_j F_{j,y_j}` within the size bounds of every task. Its dual has
one price per cluster: every row takes the cluster of highest F − price. With the prices of the step before nearly all
rows are decided in one pass; only those whose two best clusters are nearly equal go to the exact solver. If the prices
it ends with differ by no more than the gap that set these rows apart, no other row would change its mind: the labels
are optimal.

The gap of a row is how much better its cluster is than the second best, by score − price. When the models move by ΔW
it shrinks by at most

.. math:: \max_{c,d} \|Δw_c - Δw_d\| \; \max_j \|φ_j\|

and when prices move, by their span. Rows whose gap is larger than all that has moved since it was measured keep their
label, whatever it was that moved: only the others are scored again. After the first pass over all rows these are few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import code_scale
from mtclust.core.tasks import spread_positions
from mtclust.rows.boundary import (
    HeldBoundary,
    TooFew,
    assign_near_boundary,
    exact_labels,
    sizes_fit,
)
from mtclust.rows.moments import Blocks, Data, Labelled, Moments, NearRows, RowSource, block_rows

Array = NDArray[np.float64]

#: of tasks with more rows only those near a boundary are looked at again, where these are at most this share
_AT_ONCE = 20_000
_NEAR_SHARE = 0.5
#: tasks with more rows than this get their first prices from so many of them
_FEW_ENOUGH = 20_000
_FIRST_ROWS = 6000
#: and from n to this power of very many: the rows that inexact prices leave undecided grow with n/√(rows of the prices)
_FIRST_POWER = 2 / 3
#: gaps are held in single precision, rounded down
_ROUNDED = 1.0 - 2.0**-22
#: rows of a task that one polish takes up, those with most to gain first
MOST_CANDIDATES = 1000
#: tasks with fewer rows than this are polished whole
FEW_ROWS = 150
#: rows whose own pull is looked at to find these
_MOST_NEAR = 20_000


@dataclass
class KnownGaps:
    """Lower bounds of the gaps of all rows of a task.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Gap when it was measured, plus what ``drift`` was then.
    W : ndarray of shape (r, C)
        The models that the bounds have been moved on to.
    prices : ndarray of shape (C,)
    margin : float
        The gap below which rows were looked at last time to meet the cluster sizes.
    drift : float
        By how much gaps may have shrunk since the first pass.
    """

    values: NDArray[np.float32]
    W: Array
    prices: Array
    margin: float
    drift: float = 0.0

    @classmethod
    def measured(cls, gaps: Array, W: Array, prices: Array, margin: float) -> KnownGaps:
        """From the gaps of all rows under these models and prices."""
        return cls((gaps * _ROUNDED).astype(np.float32), W.copy(), prices.copy(), margin)

    def move_on(self, W: Array, prices: Array, largest: float) -> None:
        """To other models and prices; ``largest`` is a bound of ‖φ‖² over the rows."""
        change = W - self.W
        squares = np.sum(change**2, axis=0)
        apart = squares[:, None] + squares[None] - 2.0 * (change.T @ change)
        # rounding of the difference of squares is at most a few of their last digits
        reach = np.sqrt(max(float(apart.max()), 0.0) + 1e-14 * float(squares.max()))
        self.drift += float(reach) * float(np.sqrt(largest)) + float(np.ptp(prices - self.prices))
        self.W, self.prices = W.copy(), prices.copy()

    def within(self, gap: float) -> NDArray[np.int64]:
        """Positions, in ascending order, of the rows whose gap may be at most this."""
        return np.flatnonzero(self.values <= np.float32((gap + self.drift) / _ROUNDED))

    def measure(self, positions: NDArray[np.int64], gaps: Array) -> None:
        """Take the gaps of some rows under the present models and prices."""
        self.values[positions] = (gaps + self.drift) * _ROUNDED

    def forget(self, positions: NDArray[np.int64]) -> None:
        """Nothing is known of these rows any more."""
        self.values[positions] = -np.inf

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        """Give the clusters new ids."""
        W, prices = np.empty_like(self.W), np.empty_like(self.prices)
        W[:, new_ids], prices[new_ids] = self.W, self.prices
        self.W, self.prices = W, prices


@dataclass
class TaskLabels:
    """Labels of one task, the prices that certify them, and the raw class sums that belong to them.

    ``held`` is True for rows whose labels stay.
    """

    labels: NDArray[np.int32]
    prices: Array
    sums: Array
    held: NDArray[np.bool_] | None = None
    gaps: KnownGaps | None = None  # of large tasks, from the last pass
    _known_counts: NDArray[np.int64] | None = None

    @classmethod
    def none(cls, n_rows: int, n_clusters: int, n_features: int) -> TaskLabels:
        return cls(np.full(n_rows, -1, dtype=np.int32), np.zeros(n_clusters), np.zeros((n_clusters, n_features)))

    def copy(self) -> TaskLabels:
        """The same labels, apart from these; gaps are not taken along."""
        return replace(self, labels=self.labels.copy(), prices=self.prices.copy(), sums=self.sums.copy(), gaps=None)

    @property
    def counts(self) -> NDArray[np.int64]:
        if self._known_counts is None:
            self._known_counts = np.bincount(self.labels, minlength=len(self.prices))
        return self._known_counts.copy()

    def recount(self, counts: NDArray[np.int64] | None = None) -> None:
        """Take the new sizes of the clusters, or count them when next asked, after ``labels`` were changed."""
        self._known_counts = counts

    def put(self, positions: NDArray[np.int64], before: NDArray[np.int32], after: NDArray[np.int32]) -> None:
        """Give some rows other labels; the class sums are left to the caller."""
        self.labels[positions] = after
        self.recount()
        if self.gaps is not None:
            self.gaps.forget(positions)

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        """Give the clusters new ids, in place."""
        self.labels[:] = new_ids.astype(np.int32)[self.labels]
        self.recount()
        self._rename_clusters(new_ids)

    def _rename_clusters(self, new_ids: NDArray[np.int64]) -> None:
        sums, prices = np.empty_like(self.sums), np.empty_like(self.prices)
        sums[new_ids], prices[new_ids] = self.sums, self.prices
        self.sums, self.prices = sums, prices
        if self.gaps is not None:
            self.gaps.rename(new_ids)

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> Any:
        """Labels of all tasks, one after the other."""
        return np.concatenate([task.labels for task in tasks])


def relabel(source: Blocks, data: Data, task: int, W: Array, current: TaskLabels) -> int:
    """The best labels of a task for its model W (r × C) within the bounds, in place; returns how many changed."""
    from mtclust.core import compiled

    if current.held is not None:
        return _relabel_free(source, data, task, W, current)
    moments, lower, upper = data.moments, data.bounds.lower[task], data.bounds.upper[task]
    n, n_clusters = len(current.labels), W.shape[1]
    weights, constant = moments.on_raw(task, W)
    offset = moments.offset_of(task)
    if current.gaps is not None:
        current.gaps.move_on(W, current.prices - offset, float(moments.largest[task]))
        near = current.gaps.within(current.gaps.margin)
        if len(near) <= _NEAR_SHARE * n:
            try:
                return _relabel_near(source, data, task, (weights, constant), current, near)
            except TooFew:
                pass
    gaps, counts = np.empty(n), np.zeros(n_clusters, dtype=np.int64)
    at_first, changed = current.labels.copy(), 0
    for begin, end, block in source.blocks(task):
        before = at_first[begin:end]
        part = current.labels[begin:end]
        scores = scores_of(block, weights)
        changed += compiled.choose(scores, current.prices - constant, part, gaps[begin:end], counts)
        move_sums(block, before, part, current.sums)
    current.recount(counts)
    keep_gaps = n > _AT_ONCE and 0 < moments.largest[task] < np.inf
    if sizes_fit(current.prices, counts, lower, upper):
        if keep_gaps:
            current.gaps = KnownGaps.measured(gaps, W, current.prices - offset, 0.0)
        return changed

    def cost_of(positions: NDArray[np.int64]) -> Array:
        return -constant - scores_of(source.take(task, positions), weights)

    boundary = HeldBoundary(n, current.labels, gaps, cost_of)
    if keep_gaps:
        current.gaps = KnownGaps.measured(gaps, W, current.prices - offset, 0.0)
    undecided, labels, current.prices = assign_near_boundary(boundary, counts, lower, upper, current.prices)
    if current.gaps is not None and keep_gaps:
        current.gaps.margin = boundary.asked
        current.gaps.forget(undecided)
    final = labels.astype(np.int32)
    moved = np.flatnonzero(final != current.labels[undecided])
    where = undecided[moved]
    move_sums(source.take(task, where), current.labels[where], final[moved], current.sums)
    old, given = at_first[where], current.labels[where]
    changed += int(np.count_nonzero(final[moved] != old)) - int(np.count_nonzero(given != old))
    current.labels[where] = final[moved]
    current.recount()
    return changed


def _relabel_free(source: Blocks, data: Data, task: int, W: Array, current: TaskLabels) -> int:
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
    before = current.labels[free]
    taken = current.counts - np.bincount(before, minlength=len(constant))
    low, high = np.maximum(data.bounds.lower[task] - taken, 0), np.maximum(data.bounds.upper[task] - taken, 0)
    labels, current.prices = exact_labels(costs, low, high, current.prices, recurse=True)
    moved = np.flatnonzero(labels != before)
    where, after = free[moved], labels[moved].astype(np.int32)
    move_sums(source.take(task, where), before[moved], after, current.sums)
    current.put(where, before[moved], after)
    return len(moved)


def _relabel_near(
    source: Blocks, data: Data, task: int, scorer: tuple[Array, Array], current: TaskLabels, near: NDArray[np.int64]
) -> int:
    """The same from the rows near a boundary alone; raises ``TooFew``, with nothing changed, where that takes more."""
    from mtclust.core import compiled

    (weights, constant), known = scorer, current.gaps
    assert known is not None
    lower, upper = data.bounds.lower[task], data.bounds.upper[task]
    C, step = len(constant), block_rows(source.n_features, 8)
    costs = np.empty((len(near), C))
    for first in range(0, len(near), step):
        costs[first : first + step] = scores_of(source.take(task, near[first : first + step]), weights)
    before = current.labels[near]
    labels, gaps, counts = before.copy(), np.empty(len(near)), np.zeros(C, dtype=np.int64)
    compiled.choose(costs, current.prices - constant, labels, gaps, counts)
    counts += current.counts - np.bincount(before, minlength=C)
    prices, undecided = current.prices, np.empty(0, dtype=np.int64)
    if not sizes_fit(prices, counts, lower, upper):
        np.negative(costs, out=costs)
        costs -= constant
        n = len(current.labels)
        boundary = HeldBoundary(n, labels, gaps, lambda rows: costs[rows], near, known.margin)
        undecided, found, prices = assign_near_boundary(boundary, counts, lower, upper, prices)
        labels[np.searchsorted(near, undecided)] = found
        known.margin = 2.0 * boundary.asked
    known.measure(near, gaps)
    known.forget(undecided)
    moved = np.flatnonzero(labels != before)
    where = near[moved]
    move_sums(source.take(task, where), before[moved], labels[moved], current.sums)
    current.labels[where] = labels[moved]
    current.recount(counts if len(undecided) == 0 else None)
    current.prices = prices
    return len(moved)


def move_sums(block: NDArray[Any], old: NDArray[np.int32], new: NDArray[np.int32], sums: Array) -> None:
    """Class sums after the labels of raw rows changed from ``old`` (−1: none yet) to ``new``."""
    from mtclust.core import compiled

    compiled.move_sums(block, old, new, sums)


def first_prices(source: RowSource, data: Data, task: int, W: Array, prices: Array) -> Array:
    """Prices near those of a whole task from some thousand of its rows, so that its first pass leaves few undecided."""
    n, lower, upper = int(data.moments.sizes[task]), data.bounds.lower[task], data.bounds.upper[task]
    free = bool(np.all(lower <= 1) and np.all(upper >= n)) and not prices.any()
    if n <= _FEW_ENOUGH or free:
        return prices
    rows = source.take(task, first_rows(n))
    weights, constant = data.moments.on_raw(task, W)
    scores = scores_of(rows, weights) + constant
    share = len(scores) / n
    low, high = np.floor(lower * share).astype(np.int64), np.ceil(upper * share).astype(np.int64)
    return exact_labels(-scores, low, high, prices, recurse=True)[1]


def first_rows(n: int) -> NDArray[np.int64]:
    """The rows of a task of n that first prices come from; none where the task has few."""
    if n <= _FEW_ENOUGH:
        return np.empty(0, dtype=np.int64)
    return spread_positions(n, max(_FIRST_ROWS, round(n**_FIRST_POWER)))


def scores_of(block: NDArray[Any], weights: Array) -> Array:
    """Raw rows times weights; the constant of the centre is left to the prices."""
    return np.ascontiguousarray(block @ weights.astype(block.dtype, copy=False), dtype=np.float64)


def rows_near_boundary(source: Blocks, data: Data, fit: Labelled, i: int, factor: Array) -> NearRows:
    """Rows of task i that a gainful exchange could involve, by a bound on how much they pull their own model.

    An exchange of j and k gains at most e_j + e_k, e = (how much better another cluster is for the row) + 2a‖ψ‖²; with
    ‖ψ‖² ≤ (2/n)‖φ‖²·(largest row sum of |Q_i|) most rows need no second look.
    """
    moments, task, n = data.moments, fit.tasks[i], int(data.moments.sizes[i])
    if n <= FEW_ROWS:
        near = np.arange(n)
        return NearRows(near, np.full(n, np.inf), source.take(i, near), task.labels.copy(), True)
    pull = 2 * largest_pull(moments, i, factor, data.bounds.n_clusters)
    if task.gaps is not None:
        found = _near_by_gaps(source, data, fit, i, pull, task.gaps)
        if found is not None:
            return found
    wants = wants_of(source, i, moments, fit.W[i], task.prices, task.labels)
    near = np.flatnonzero(wants + float(wants.max()) + pull > 0)
    complete = len(near) <= _MOST_NEAR
    if not complete:
        near = np.sort(near[np.argpartition(-wants[near], _MOST_NEAR)[:_MOST_NEAR]])
    return NearRows(near, wants[near], source.take(i, near), task.labels[near], complete)


def _near_by_gaps(source: Blocks, data: Data, fit: Labelled, i: int, pull: float, known: KnownGaps) -> NearRows | None:
    """The same from rows that cannot be far from a boundary, without a pass; None where these are too many."""
    moments, task = data.moments, fit.tasks[i]
    known.move_on(fit.W[i], task.prices, float(moments.largest[i]))
    weights, constant = moments.on_raw(i, fit.W[i])
    widest = pull
    for _ in range(2):
        near = known.within(widest)
        if len(near) > _MOST_NEAR:
            return None
        rows = source.take(i, near)
        wants = eagerness(scores_of(rows, weights) + (constant - task.prices), task.labels[near])
        most = float(wants.max(initial=-widest))
        if most + pull <= widest:  # rows not looked at want less than −widest: no exchange with one of them gains
            keep = np.flatnonzero(wants + most + pull > 0)
            return NearRows(near[keep], wants[keep], rows[keep], task.labels[near[keep]], True)
        widest = most + pull
    return None


def wants_of(source: Blocks, task: int, moments: Moments, W: Array, prices: Array, labels: NDArray[np.int32]) -> Array:
    """How much better the best other cluster is for every row of a task than its own, by score − price."""
    weights, constant = moments.on_raw(task, W)
    wants = np.empty(len(labels))
    for first, last, block in source.blocks(task):
        wants[first:last] = eagerness(scores_of(block, weights) + (constant - prices), labels[first:last])
    return wants


def eagerness(scores: Array, labels: NDArray[np.int32]) -> Array:
    """How much better than its own the best other cluster is for every row, by scores that are overwritten."""
    rows = np.arange(len(labels))
    own = scores[rows, labels]
    scores[rows, labels] = -np.inf
    return np.asarray(scores.max(axis=1, initial=-np.inf) - own)


def largest_pull(moments: Moments, task: int, factor: Array, n_clusters: int) -> float:
    """A bound of 2a‖ψ‖² over the rows of a task."""
    a, _ = code_scale(n_clusters)
    norm = float(np.abs(factor @ factor.T).sum(axis=0).max())  # at least the largest eigenvalue of Q
    return 2 * a * (2.0 / int(moments.sizes[task])) * float(moments.largest[task]) * norm


def pulls_of(moments: Moments, task: int, factor: Array, rows: NDArray[Any], n_clusters: int) -> Array:
    """2a‖ψ‖² of some rows of a task."""
    a, _ = code_scale(n_clusters)
    Psi = np.sqrt(2.0 / int(moments.sizes[task])) * (moments.centred(task, rows) @ factor)
    return 2 * a * np.einsum("ij,ij->i", Psi, Psi)


def candidates(
    moments: Moments, task: int, factor: Array, near: NearRows, n_clusters: int
) -> tuple[NDArray[np.int64], bool]:
    """Which of the rows near a boundary an exchange is tried with, and whether these are all it could involve."""
    eager = near.wants + pulls_of(moments, task, factor, near.rows, n_clusters)
    keep = np.flatnonzero(eager + eager.max(initial=-np.inf) > 0)
    if len(keep) <= MOST_CANDIDATES:
        return keep, near.complete
    return np.sort(keep[np.argpartition(-eager[keep], MOST_CANDIDATES)[:MOST_CANDIDATES]]), False
