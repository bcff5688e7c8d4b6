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

Array = NDArray[np.float64]

#: rows near a boundary that are solved exactly, per row too many or too few, and at least
_PER_MISFIT, _FEWEST = 9, 64
#: where these were too few, the gap is widened by this factor
_WIDER = 1.2
#: the gap that sets them apart is estimated from this many rows
_SAMPLED_GAPS = 4096
#: certificates hold up to this share of the spread of the scores
_ROUNDING = 1e-12


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

    def gap_of_rank(self, rank: int) -> float:
        if rank >= self.n_rows and self.positions is None:
            return float(self.gaps.max())
        step = gap_step(self.n_rows)
        sample = self.gaps[::step] if self.positions is None else self.gaps[self.positions % step == 0]
        return self._covered(gap_of_rank(sample, self.n_rows, rank, -(-self.n_rows // step)))

    def within(self, gap: float) -> tuple[NDArray[np.int64], NDArray[Any]]:
        self._near = np.flatnonzero(self.gaps <= self._covered(gap))
        return self._near if self.positions is None else self.positions[self._near], self.labels[self._near]

    def cost_of(self, positions: NDArray[np.int64]) -> Array:
        return self.costs(self._near)

    def _covered(self, gap: float) -> float:
        if gap > self.margin:
            raise TooFew
        return gap


def first_gap_rank(counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]) -> int:
    """How many rows near the boundary are tried first, from the sizes that prices alone give."""
    misfit = int(np.maximum(counts - upper, 0).sum() + np.maximum(lower - counts, 0).sum())
    return _PER_MISFIT * misfit + _FEWEST


def assign_near_boundary(
    boundary: HeldBoundary, counts: NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64], prices: Array
) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:  # fmt: skip
    """Labels that the size bounds allow from those that the prices alone give.

    Returns the rows near a boundary, their labels, and prices that certify the whole.
    """
    n = boundary.n_rows
    delta = boundary.gap_of_rank(first_gap_rank(counts, lower, upper))
    while True:
        undecided, labels = boundary.within(delta)
        decided = counts - np.bincount(labels, minlength=len(counts))
        low, high = np.maximum(lower - decided, 0), upper - decided
        if np.all(high >= 0) and low.sum() <= len(undecided) <= high.sum():
            new_labels, new_prices = exact_labels(boundary.cost_of(undecided), low, high, prices)
            span = float(np.ptp(new_prices - prices))
            if len(undecided) == n or span <= delta * (1 + _ROUNDING):
                return undecided, new_labels, new_prices
            # those prices would move rows further from the boundary: take these in as well
            delta = max(_WIDER * delta, _WIDER * span)
        else:
            delta = max(2 * delta, boundary.gap_of_rank(2 * len(undecided) + 1))


def exact_labels(
    cost: Array, low: NDArray[np.int64], high: NDArray[np.int64], prices: Array
) -> tuple[NDArray[np.int64], Array]:
    """Optimal labels within the bounds and prices that prove it."""
    best = assign(cost, low, high, prices=prices)
    return best, certifying_prices(cost, best, low, high, prices)


def certifying_prices(
    cost: Array, labels: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64], prices: Array
) -> Array:
    """Prices under which every row has its cheapest cluster by cost + price, for labels that are optimal.

    Difference constraints q_a ≤ q_b + min over rows of a of (cost_b − cost_a), relaxed from the given prices down. The
    last price, 0, is that of no constraint: a cluster that may take rows costs no more, one that may give no less.
    """
    C, sizes = cost.shape[1], np.bincount(labels, minlength=cost.shape[1])
    exits = np.full((C + 1, C + 1), np.inf)
    for a in np.flatnonzero(sizes):
        mine = cost[labels == a]
        exits[a, :C] = (mine - mine[:, [a]]).min(axis=0)
    exits[:C, C] = np.where(sizes < high, 0.0, np.inf)
    exits[C, :C] = np.where(sizes > low, 0.0, np.inf)
    found = np.append(prices, 0.0)
    for _ in range(C + 2):
        reach = (exits + found).min(axis=1)
        shorter = reach < found - 1e-13 * (1.0 + np.abs(reach))
        if not shorter.any():
            break
        found = np.where(shorter, reach, found)
    return np.asarray(found[:-1] - found[-1])


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
    return 1 if n <= _SAMPLED_GAPS else n // _SAMPLED_GAPS


def gap_of_rank(sample: Array, n: int, rank: int, size: int | None = None) -> float:
    """A gap that about ``rank`` < n of n rows do not exceed, from every ``gap_step(n)``-th of their gaps.

    Raises ``TooFew`` where the sample has only the smallest of these ``size`` gaps, and fewer than that.
    """
    size = len(sample) if size is None else size
    position = rank if gap_step(n) == 1 else min(size - 1, -(-rank * size // n))
    if position >= len(sample):
        raise TooFew
    return float(np.partition(sample, position)[position])
