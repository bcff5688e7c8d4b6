"""The largest eigenvalues of a symmetric matrix and their vectors, also of one with thousands of rows."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: up to so many rows LAPACK finds them exactly; its time grows with their cube
EXACT_UP_TO = 1000
#: of larger ones a block of vectors, some more than are wanted, is multiplied by the matrix so many times
_MORE, _TIMES = 20, 4


def leading_eigenvectors(matrix: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, rising, and their vectors (n × k).

    A matrix of more than ``EXACT_UP_TO`` rows must have no negative eigenvalues as large as those. Block power steps
    find the eigenvalues that stand out to rounding, and those that hardly differ from the rest roughly.

    Examples
    --------
    >>> import numpy as np
    >>> values, vectors = leading_eigenvectors(np.diag([3.0, 1.0, 2.0, 0.5]), 2)
    >>> values.tolist(), np.abs(vectors).round(6).argmax(axis=0).tolist()
    ([2.0, 3.0], [2, 0])
    """
    n = len(matrix)
    if n <= EXACT_UP_TO or k + _MORE >= n:
        values, vectors = sla.eigh(matrix, subset_by_index=(n - k, n - 1))
        return values, vectors
    block = np.random.default_rng(0).normal(size=(n, k + _MORE))
    for _ in range(_TIMES):
        block = sla.qr(matrix @ block, mode="economic", check_finite=False)[0]
    values, turned = sla.eigh(block.T @ (matrix @ block))
    return values[-k:], (block @ turned)[:, -k:]
