"""The paper's RBF kernel: its width is a multiple of the mean distance between the rows.

k(x, y) = exp(−|x − y|² / (2σ²)),  σ = w·A,  A = mean Euclidean distance of two rows of the data
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked
from sklearn.metrics.pairwise import euclidean_distances

#: the multiples w the paper searches
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)


def mean_distance(X: Any) -> float:
    """Mean Euclidean distance over all pairs of different rows; 0 for a single row.

    Examples
    --------
    >>> mean_distance([[0.0], [1.0], [3.0]])
    2.0
    """
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_samples < 2:
        return 0.0
    total = sum(float(block.sum()) for block in pairwise_distances_chunked(X))
    return total / (n_samples * (n_samples - 1))


def rbf_kernel(X: Any, sigma: float) -> NDArray[np.float64]:
    """Kernel matrix of the rows of X; all ones when ``sigma`` is 0, that is when all rows are equal.

    Examples
    --------
    >>> rbf_kernel([[0.0], [2.0]], sigma=2.0).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """
    squared = euclidean_distances(X, squared=True)
    if sigma == 0:
        return np.ones_like(squared)
    kernel: NDArray[np.float64] = np.exp(squared / (-2 * sigma**2))
    return kernel
