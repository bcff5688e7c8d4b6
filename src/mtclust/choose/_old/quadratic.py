r"""The quadratic discriminant of labels, each row left out in turn: clusters that have a shape of their own.

Kernels of the rows' distances see gaps. They miss clusters that touch and are long in different directions, or of
different width, which a Gaussian of its own for every cluster tells apart. For a task's rows x in their leading
directions, cluster c with n_c rows has the mean μ_c and the covariance (S_c + νS)/(n_c + ν), S_c its scatter about μ_c,
S the covariance within all clusters and ν = r + 2, so that small clusters borrow their shape from the others. The
probability of cluster c for row j uses neither μ nor S_c of the row itself; with d = x_j − μ_c, A = S_c + νS,
q = dᵀA⁻¹d and k = n_c/(n_c − 1)

.. math:: d_{-j}^T A_{-j}^{-1} d_{-j} = \frac{k^2q}{1 - kq}, \qquad \det A_{-j} = \det A\,(1 - kq)
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.core.coupling import leading_eigenvectors
from mtclust.core.criterion import indicators

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: leading directions at most, and rows of every cluster that one direction needs
DIRECTIONS = 10
ROWS_PER_DIRECTION = 3
#: variance added to every direction, relative to their mean
_SMALLEST_VARIANCE = 1e-6
_SMALLEST_SHARE = 1e-9
#: share of the variance below which rows do not differ in a direction
_SMALLEST_EIGENVALUE = 1e-6


def leading_directions(vectors: Array, eigenvalues: Array, n_clusters: int) -> Array:
    """Coordinates of a task's rows in the directions that it has rows enough for; eigenvalues ascend.

    Examples
    --------
    >>> import numpy as np
    >>> leading_directions(np.eye(3), np.array([1.0, 4.0, 9.0]), 1).tolist()
    [[0.0], [0.0], [3.0]]
    """
    n = len(vectors)
    if len(eigenvalues) == 0:  # rows that do not differ
        return np.zeros((n, 1))
    r = max(1, min(DIRECTIONS, len(eigenvalues), n // (ROWS_PER_DIRECTION * n_clusters)))
    return np.asarray(vectors[:, -r:] * np.sqrt(eigenvalues[-r:]))


def directions_of(kernel: Array, n_clusters: int) -> Array:
    """Rows of a centred kernel matrix in their leading directions, in which they differ."""
    eigenvalues, vectors = leading_eigenvectors(kernel, min(DIRECTIONS, len(kernel)))
    differ = eigenvalues > _SMALLEST_EIGENVALUE * np.trace(kernel)
    return leading_directions(vectors[:, differ], eigenvalues[differ], n_clusters)


def membership(X: Array, labels: Labels, n_clusters: int) -> Array:
    """Probability of every cluster for every row of a task, the row itself left out (n × C).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2]])
    >>> membership(X, np.array([0, 0, 0, 1, 1, 1]), 2).round(3)[:, 0].tolist()
    [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    n, r = X.shape
    z = indicators(labels, n_clusters)
    counts = z.sum(axis=0)
    means = z.T @ X / np.maximum(counts, 1.0)[:, None]
    apart = X - means[labels]
    within = apart.T @ apart / max(n - np.count_nonzero(counts), 1)
    within += (_SMALLEST_VARIANCE * np.vdot(X, X) / (n * r) + np.finfo(float).tiny) * np.eye(r)
    prior_rows = r + 2.0
    log_density = np.full((n, n_clusters), -np.inf)
    for c in np.flatnonzero(counts):
        members = labels == c
        d = X - means[c]
        A = d[members].T @ d[members] + prior_rows * within
        factor = sla.cholesky(A, lower=True)
        q = np.sum(sla.solve_triangular(factor, d.T, lower=True) ** 2, axis=0)
        log_det, rows = 2.0 * np.log(factor.diagonal()).sum(), counts[c] + prior_rows
        log_density[:, c] = np.log(counts[c]) - 0.5 * (log_det - r * np.log(rows) + rows * q)
        k = counts[c] / max(counts[c] - 1.0, 1.0)
        left = np.maximum(1.0 - k * q[members], _SMALLEST_SHARE)
        without = log_det + np.log(left) - r * np.log(rows - 1.0) + (rows - 1.0) * k**2 * q[members] / left
        log_density[members, c] = np.log(max(counts[c] - 1.0, 0.5)) - 0.5 * without
    log_density -= log_density.max(axis=1, keepdims=True)
    density = np.exp(log_density)
    return np.asarray(density / density.sum(axis=1, keepdims=True))


def errors(X: Array, labels: Labels, n_clusters: int) -> Array:
    """‖z_c − p_c‖² of every cluster: one-hot labels against probabilities."""
    difference = indicators(labels, n_clusters) - membership(X, labels, n_clusters)
    return np.asarray(np.einsum("nc,nc->c", difference, difference))
