r"""Exact assignment of rows to clusters whose sizes are bounded.

.. math:: \min_Z \langle A, Z\rangle, \quad Z \in \{0,1\}^{n\times C},\; Z1 = 1,\; L \le Z^T1 \le U

is a transportation problem: totally unimodular, so the integer optimum is the optimum of the linear program, and with
cost A = α it is the most violated labelling of the paper's cutting planes. It is solved by class prices (rows take the
cluster with the lowest cost + price) and finished by shortest augmenting paths between clusters. Taking the nC entries
greedily in sorted order, as is sometimes done, is wrong for C ≥ 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mtclust import core
from mtclust.core import Array, Integers
from mtclust.core.kernels import ROUNDING

#: up to this many rows augmenting paths alone are quicker than price sweeps
_SMALL = 700
#: coordinate sweeps over the class prices; they gain little after that, the paths finish exactly
_SWEEPS = 5


def assign(cost: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, prices: ArrayLike | None = None) -> Integers:
    """Labels of lowest total cost (n × C) with cluster sizes between ``lower`` and ``upper``.

    ``prices`` (C) of a similar problem to begin with make it quicker, not different.

    Examples
    --------
    >>> assign([[0.0, 1.0], [0.0, 5.0], [0.0, 2.0], [0.0, 9.0]], lower=[2, 2], upper=[2, 2])
    array([1, 0, 1, 0])
    """
    cost = np.ascontiguousarray(cost, dtype=np.float64)
    low = np.ascontiguousarray(lower, dtype=np.int64)
    high = np.ascontiguousarray(upper, dtype=np.int64)
    n, n_clusters = cost.shape
    if np.any(low > high) or not low.sum() <= n <= high.sum():
        raise ValueError(f"cluster sizes between {low.tolist()} and {high.tolist()} cannot be met by {n} rows.")
    first = np.zeros(n_clusters) if prices is None else np.asarray(prices, dtype=np.float64)
    if n > _SMALL:
        # noise at the level of rounding: equal rows would all take the same cluster and be moved one at a time
        cost = cost + ROUNDING * (float(np.ptp(cost)) or 1.0) * np.random.default_rng(0).random(cost.shape)
        first = _class_prices(cost, low, high, first)
    labels, extent = np.argmin(cost + first, axis=1), float(np.ptp(cost)) if n else 0.0
    core.compiled.augment(cost, labels, np.bincount(labels, minlength=n_clusters), low, high, 1e-13 * extent)
    return labels


def _class_prices(cost: Array, low: Integers, high: Integers, first: Array) -> Array:
    """Coordinate ascent on the dual: one class price at a time such that its cluster's size meets its bounds."""
    prices = first.copy()
    columns = np.ascontiguousarray(cost.T)  # the smallest of a few rows is found quicker than of a few columns
    priced = columns + prices[:, None]
    for _ in range(_SWEEPS):
        before = prices.copy()
        for c in range(len(columns)):
            # a row prefers c while its lead over the best rival, with the price of c, is below 0
            priced[c] = np.inf
            lead = columns[c] - priced.min(axis=0)
            size = int(np.count_nonzero(lead < 0))
            wanted = int(np.clip(size, low[c], high[c]))
            prices[c] = 0.0 if wanted == size else -_threshold(lead, wanted)
            priced[c] = columns[c] + prices[c]
        if np.array_equal(prices, before):
            break
    return prices


def _threshold(values: Array, count: int) -> float:
    """A number with exactly ``count`` of the values below it (values differ from each other)."""
    if count == 0:
        return float(values.min())
    if count == len(values):
        return float(np.nextafter(values.max(), np.inf))
    ordered = np.partition(values, count)
    return float((ordered[:count].max() + ordered[count]) / 2)
