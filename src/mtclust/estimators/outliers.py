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

from mtclust.core.kernels import KERNELS, Kernel
from mtclust.core.tasks import TaskIndex

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: a row with a higher score belongs nowhere
OUTLIER_CUT = 0.5
#: robust standard deviations at the cut
_DEVIATIONS = 3.5
#: the median absolute deviation of normal values is their standard deviation over this
_PER_DEVIATION = 1.4826
_NEIGHBOURS = 5
#: rows of a task that neighbours are sought among
_MOST_REFERENCES = 500
#: distances held at once
_BLOCK = 2**19


def outliers_of(index: TaskIndex, rows: Any, kernel: Kernel) -> Array:
    """Outlier scores of rows that are sorted by task, in the order of the input."""
    return index.to_input_order(outlier_scores(neighbour_distances(rows, index.offsets, kernel), index.offsets))


def outlier_scores(distances: Array, offsets: NDArray[np.int64]) -> Array:
    """Scores in [0, 1] of rows sorted by task from their distances to their neighbours."""
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

    ``rows`` are sorted by task. With a callable or precomputed ``kernel``, of which they are the matrix then, distances
    are those of its features: k(x, x) + k(y, y) − 2k(x, y). The RBF kernel has the neighbours that the rows have.
    """

    def squared_distances(these: Labels, those: Labels) -> Array:
        if kernel is None or kernel.kind in KERNELS:
            return np.asarray(euclidean_distances(rows[these], rows[those], squared=True), dtype=np.float64)
        pairs = ((these, these), (those, those), (these, those))
        if kernel.kind == "precomputed":
            own, others, between = (rows[np.ix_(*pair)] for pair in pairs)
        else:
            own, others, between = (kernel(rows[a], rows[b]) for a, b in pairs)
        return np.asarray(own.diagonal()[:, None] + others.diagonal() - 2.0 * between)

    result = np.zeros(rows.shape[0])
    for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        those = np.arange(a, b)
        if b - a > _MOST_REFERENCES:
            those = a + np.sort(np.random.default_rng(0).permutation(b - a)[:_MOST_REFERENCES])
        nearest = min(_NEIGHBOURS, len(those) - 1)
        for part in gen_batches(b - a, max(1, _BLOCK // len(those))) if nearest else ():
            these = np.arange(a + part.start, a + part.stop)
            squared = squared_distances(these, those)
            squared[these[:, None] == those] = np.inf  # itself
            closest = np.partition(squared, nearest - 1, axis=1)[:, :nearest]
            result[these] = np.sqrt(np.maximum(closest, 0.0)).mean(axis=1)
    return result
