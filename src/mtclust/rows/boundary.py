r"""Rows near the boundaries between clusters, and the labels that size bounds allow them.

With class prices nearly all rows of a task are decided; only those whose two best clusters are nearly equal go to the
exact solver. If the prices it ends with differ by no more than the gap that set these rows apart, no other row would
change its mind: the labels are optimal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.assignment import assign
from mtclust.core.tasks import spread_positions

Array = NDArray[np.float64]

#: many rows near a boundary get their first prices from so many of them
_SAMPLED_ROWS = 1500


class TooFew(Exception):
    """The rows looked at do not suffice."""


@dataclass
class HeldBoundary:
    """Labels and gaps of rows at hand: of all rows of a task, or of those at some positions.

    These are then all with a gap of at most ``margin``, and some with a larger one. ``costs`` gives the costs of rows
    by their place among the rows at hand.
    """

    n_rows: int
    labels: NDArray[Any]
    gaps: Array
    costs: Callable[[NDArray[np.int64]], Array]
    positions: NDArray[np.int64] | None = None
    margin: float = np.inf
    asked: float = 0.0  # the widest gap asked for

    def gap_of_rank(self, rank: int) -> float:
        if rank >= self.n_rows and self.positions is None:
            return float(self.gaps.max())
        step = gap_step(self.n_rows)
        sample = self.gaps[::step] if self.positions is None else self.gaps[self.positions % step == 0]
        return self._covered(gap_of_rank(sample, self.n_rows, rank, -(-self.n_rows // step)))

    def within(self, gap: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
        self.asked = max(self.asked, self._covered(gap))
        self._near = np.flatnonzero(self.gaps <= gap)
        return self._near if self.positions is None else self.positions[self._near], self.labels[self._near]

    def cost_of(self, positions: NDArray[np.int64]) -> Array:
        return self.costs(self._near)

    def _covered(self, gap: float) -> float:
        if gap > self.margin:
            raise TooFew
        return gap


def first_gap_rank(counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]) -> int:
    """How many rows near the boundary are tried first, from the sizes that prices alone give."""
    from mtclust.core.compiled import FEWEST_UNDECIDED, UNDECIDED_PER_MISFIT

    misfit = int(np.maximum(counts - upper, 0).sum() + np.maximum(lower - counts, 0).sum())
    return UNDECIDED_PER_MISFIT * misfit + FEWEST_UNDECIDED


def assign_near_boundary(
    boundary: HeldBoundary, counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64], prices: Array
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:  # fmt: skip
    """Labels that the size bounds allow from those that the prices alone give.

    Returns the rows near a boundary, their labels, and prices that certify the whole.
    """
    from mtclust.core.compiled import ROUNDING, WIDER

    n = boundary.n_rows
    delta = boundary.gap_of_rank(first_gap_rank(counts, lower, upper))
    while True:
        undecided, labels = boundary.within(delta)
        decided = counts - np.bincount(labels, minlength=len(counts))
        low, high = np.maximum(lower - decided, 0), upper - decided
        if np.all(high >= 0) and low.sum() <= len(undecided) <= high.sum():
            fewer = len(undecided) < n
            new_labels, new_prices = exact_labels(boundary.cost_of(undecided), low, high, prices, recurse=fewer)
            span = float(np.ptp(new_prices - prices))
            if len(undecided) == n or span <= delta * (1 + ROUNDING):
                return undecided, new_labels, new_prices
            # those prices would move rows further from the boundary: take these in as well
            delta = max(WIDER * delta, WIDER * span)
        else:
            delta = max(2 * delta, boundary.gap_of_rank(2 * len(undecided) + 1))


def assign_small_task(
    scores: Array, constant: Array, lower: NDArray[np.int64], upper: NDArray[np.int64], labels: NDArray[np.int32],
    prices: Array,
) -> Array | None:  # fmt: skip
    """The same as ``assign_near_boundary``, quicker, for a small task by scores + constant; ``labels`` are written.

    Returns the prices that certify the whole; None, with labels that are not the best, where too many rows are near a
    boundary.
    """
    from mtclust.core import compiled

    n, C = scores.shape
    gaps, held, counts = np.empty(n), np.empty(n), np.zeros(C, dtype=np.int64)
    compiled.choose(scores, prices - constant, labels, gaps, counts)
    optimal, misfit = compiled.misfit_of(prices, counts, lower, upper)
    if optimal:
        return prices
    room = min(n, compiled.MOST_ROWS)
    undecided, cost, found = np.empty(room, dtype=np.int64), np.empty((room, C)), np.append(prices, 0.0)
    rank = compiled.UNDECIDED_PER_MISFIT * misfit + compiled.FEWEST_UNDECIDED
    delta = compiled.gap_of_rank(gaps, rank, held)
    while True:
        low, high = lower - counts, upper - counts
        k, all_held, possible = compiled.gather(scores, constant, labels, gaps, delta, undecided, cost, low, high)
        if not all_held:
            return None
        if not possible:
            taken = int(np.count_nonzero(gaps <= delta))
            delta = max(2 * delta, compiled.gap_of_rank(gaps, 2 * taken + 1, held))
            continue
        found[:-1], new_labels = prices, np.empty(k, dtype=np.int64)
        compiled.exact(cost[:k], low, high, found, new_labels)
        change = (found[:-1] - prices).tolist()
        span = max(change) - min(change)
        if k == n or span <= delta * (1 + compiled.ROUNDING):
            labels[undecided[:k]] = new_labels
            return found[:-1]
        # those prices would move rows further from the boundary: take these in as well
        delta = compiled.WIDER * max(delta, span)


def exact_labels(
    cost: Array, low: NDArray[np.int64], high: NDArray[np.int64], prices: Array, recurse: bool
) -> tuple[NDArray[np.int64], Array]:
    """Optimal labels within the bounds and prices that prove it; many rows are settled like a whole task."""
    from mtclust.core import compiled

    n = len(cost)
    if n <= compiled.MOST_ROWS:
        labels, found = np.empty(n, dtype=np.int64), np.append(prices, 0.0)
        compiled.exact(cost, low, high, found, labels)
        return labels, found[:-1]
    rows = spread_positions(n, _SAMPLED_ROWS)
    share = len(rows) / n
    lower, upper = np.floor(low * share).astype(np.int64), np.ceil(high * share).astype(np.int64)
    prices = prices.copy()
    compiled.newton_prices(cost[rows], lower, upper, prices)
    compiled.newton_prices(cost, low, high, prices)
    if recurse:
        labels, gaps = np.full(n, -1, dtype=np.int32), np.empty(n)
        counts = np.zeros(len(low), dtype=np.int64)
        compiled.choose(-cost, prices, labels, gaps, counts)
        if sizes_fit(prices, counts, low, high):
            return labels.astype(np.int64), prices
        boundary = HeldBoundary(n, labels, gaps, lambda rows: cost[rows])
        undecided, few, prices = assign_near_boundary(boundary, counts, low, high, prices)
        result = labels.astype(np.int64)
        result[undecided] = few
        return result, prices
    best = assign(cost, low, high, prices=prices)
    sizes = np.bincount(best, minlength=len(low))
    found = np.append(prices, 0.0)
    compiled.lower_prices(cost, best, sizes > low, sizes < high, found)
    return best, found[:-1] - found[-1]


def sizes_fit(prices: Array, counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]) -> bool:
    """Whether the labels that prices alone give are optimal: sizes within bounds, and the prices belong to them."""
    return bool(np.all(counts >= lower) and np.all(counts <= upper)) and prices_agree(prices, counts, lower, upper)


def prices_agree(prices: Array, counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]) -> bool:
    """Whether prices belong to these sizes: above 0 only at the upper bound, below 0 only at the lower."""
    floor = prices[counts > lower].min(initial=np.inf)
    ceiling = prices[counts < upper].max(initial=-np.inf)
    return bool(ceiling <= 0.0 <= floor)


def gap_step(n: int) -> int:
    """Every how many rows a gap is looked at to estimate the gap of a rank."""
    from mtclust.core.compiled import SAMPLED_GAPS

    return 1 if n <= SAMPLED_GAPS else n // SAMPLED_GAPS


def gap_of_rank(sample: Array, n: int, rank: int, size: int | None = None) -> float:
    """A gap that about ``rank`` < n of n rows do not exceed, from every ``gap_step(n)``-th of their gaps.

    Raises ``TooFew`` where the sample has only the smallest of these ``size`` gaps, and fewer than that.
    """
    size = len(sample) if size is None else size
    position = rank if gap_step(n) == 1 else min(size - 1, -(-rank * size // n))
    if position >= len(sample):
        raise TooFew
    return float(np.partition(sample, position)[position])
