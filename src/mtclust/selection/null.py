"""Null models: data without clusters, to see how well noise of the same shape can be clustered."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def gaussian_kernel(kernel: Array, rng: np.random.Generator) -> Array:
    """Kernel of as many Gaussian points with the covariance that the rows of one task have in feature space.

    K_null = H R K Rᵀ H/n with R of independent standard normal entries and H the centring matrix.
    """
    n = len(kernel)
    R = rng.standard_normal((n, n))
    null = R @ kernel @ R.T / n
    null -= null.mean(axis=0)
    null -= null.mean(axis=1)[:, None]
    return 0.5 * (null + null.T)


def gaussian_rows(rows: Array, rng: np.random.Generator) -> Array:
    """As many Gaussian points with the mean and covariance of the rows of one task, in the space of the data."""
    n = len(rows)
    mean = rows.mean(axis=0)
    # R(X − x̄)/√(n−1) has the covariance of X, without forming it
    R = rng.standard_normal((n, n)) / np.sqrt(max(n - 1, 1))
    return mean + R @ (rows - mean)
