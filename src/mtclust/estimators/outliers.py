r"""Rows that belong nowhere: far from all other rows of their task.

With r_j the mean distance of row j to its five nearest rows of the same task, divided by the median of that over the
task,

.. math:: z_j = \frac{\sqrt{r_j} - \mathrm{med}}{1.4826\,\mathrm{MAD}}, \qquad
          \text{score}_j = \frac{z_j^+}{z_j^+ + 3.5}

with median and median absolute deviation over all rows. The score is 0 for half of the rows and tends to 1; at the cut
½ a row is 3.5 robust standard deviations further from its neighbours than the middle one. Nothing in it depends on the
labels: a row between two clusters is unsure, but it is no outlier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import gen_batches

from mtclust.core.kernels import Kernel

Array = NDArray[np.float64]

#: a row with a higher score belongs nowhere
OUTLIER_CUT = 0.5
#: robust standard deviations at the cut
_DEVIATIONS = 3.5
#: the median absolute deviation of normal values is their standard deviation over this
_PER_DEVIATION = 1.4826
NEIGHBOURS = 5
#: rows of a task that neighbours are sought among
_MOST_REFERENCES = 500
#: distances held at once
_BLOCK = 2**19
#: rows whose k(x, x) are found at once
_SELF_BLOCK = 64


def outlier_scores(distances: Array, offsets: NDArray[np.int64]) -> Array:
    """Scores in [0, 1] of rows sorted by task from their distances to their neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> outlier_scores(np.array([1.0, 1.1, 0.9, 1.05, 9.0]), np.array([0, 5])).round(2).tolist()
    [0.0, 0.16, 0.0, 0.0, 0.94]
    """
    relative = np.empty_like(distances)
    for a, b in zip(offsets[:-1], offsets[1:]):
        relative[a:b] = distances[a:b] / (_middle(distances[a:b]) or 1.0)
    roots = np.sqrt(relative)
    middle = float(np.median(roots))
    deviation = _PER_DEVIATION * _middle(np.abs(roots - middle))
    if not deviation > 0:
        return np.zeros_like(distances)
    z = np.maximum(roots - middle, 0.0) / deviation
    return z / (z + _DEVIATIONS)


def _middle(values: Array) -> float:
    """The median; the mean where more than half are zero, as among rows that occur twice."""
    middle = float(np.median(values))
    return middle if middle > 0 else float(np.mean(values))


def neighbour_distances(rows: Any, offsets: NDArray[np.int64], kernel: Kernel | None = None) -> Array:
    """Mean distance of every row to its nearest rows of the same task, itself left out; 0 for a task of one row.

    Parameters
    ----------
    rows : array or CSR matrix
        Sorted by task; the kernel matrix itself where ``kernel`` is precomputed.
    offsets : ndarray of shape (m + 1,)
    kernel : Kernel, optional
        A callable or precomputed one: then distances are those of its features, k(x, x) + k(y, y) − 2k(x, y).
    """
    result = np.zeros(rows.shape[0])
    for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        if b - a > 1:
            result[a:b] = _within_task(rows, a, b, kernel)
    return result


def _within_task(rows: Any, a: int, b: int, kernel: Kernel | None) -> Array:
    n = b - a
    chosen = np.arange(n)
    if n > _MOST_REFERENCES:
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:_MOST_REFERENCES])
    nearest = min(NEIGHBOURS, len(chosen) - 1)
    squares = np.empty(0) if kernel is None else _self_products(rows, a, b, kernel)
    result = np.empty(n)
    for part in gen_batches(n, max(1, _BLOCK // len(chosen))):
        own = np.arange(part.start, part.stop)
        these, those = a + own, a + chosen
        if kernel is None:
            squared = np.asarray(euclidean_distances(rows[these], rows[those], squared=True), dtype=np.float64)
        else:
            precomputed = kernel.kind == "precomputed"
            product = rows[np.ix_(these, those)] if precomputed else kernel(rows[these], rows[those])
            squared = squares[part, None] + squares[chosen] - 2.0 * product
        squared[own[:, None] == chosen] = np.inf  # itself
        closest = np.partition(squared, nearest - 1, axis=1)[:, :nearest]
        result[part] = np.sqrt(np.maximum(closest, 0.0)).mean(axis=1)
    return result


def _self_products(rows: Any, a: int, b: int, kernel: Kernel) -> Array:
    """k(x, x) of the rows of a task."""
    if kernel.kind == "precomputed":
        return np.asarray(rows.diagonal()[a:b], dtype=np.float64)
    own = rows[a:b]
    return np.concatenate([kernel(own[part], own[part]).diagonal() for part in gen_batches(b - a, _SELF_BLOCK)])
