r"""Which rows of a large task a new pass must look at, from what the pass before has found.

The gap of a row is how much better its cluster is than the second best, by score − price. When the models move by ΔW
it shrinks by at most

.. math:: \max_{c,d} \|Δw_c - Δw_d\| \; \max_j \|φ_j\|

and when prices move, by their span. Rows whose gap is larger than all that has moved since it was measured keep their
label, whatever it was that moved: only the others are scored again. After the first pass over all rows these are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: gaps are held in single precision, rounded down
_ROUNDED = 1.0 - 2.0**-22


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
