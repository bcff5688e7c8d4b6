r"""The objective with the models eliminated, and leave-one-out scores.

For fixed coupling Z the models W can be eliminated from the paper's objective:

.. math:: J(Y) = \tfrac12 \mathrm{tr}(Y^T M Y), \quad M = (K_Z + \Lambda/2)^{-1}, \quad
          \alpha = MY = \tfrac{2}{n_i}(Y - F)

Λ holds the number of rows of each row's task. Leaving row j out of its task, with n_i kept, changes its residual to
α_j/M_jj; with the task's centre re-estimated without the row as well, to α_j/(M_jj − 2/n_i²).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.labels import label_codes


def loo_residuals(
    alpha: NDArray[np.float64], diagonal: NDArray[np.float64], task_sizes: NDArray[np.int64], centred: bool
) -> NDArray[np.float64]:
    """Leave-one-out residuals Y − F₋ⱼ of all rows, in closed form; rows sorted by task.

    Parameters
    ----------
    alpha : array of shape (N, C)
        Dual variables MY.
    diagonal : array of shape (N,)
        Diagonal of M.
    task_sizes : array of shape (m,)
        n_i.
    centred : bool
        Whether each task's centre is re-estimated without the row (``fit_intercept=True``). A task of one row has no
        centre without it; its residual is then its label, that is, nothing is predicted.
    """
    denominator = diagonal.copy()
    if centred:
        n = np.repeat(task_sizes, task_sizes).astype(np.float64)
        denominator = np.where(n > 1, diagonal - 2.0 / n**2, diagonal)
    return alpha / denominator[:, None]


def r_squared(residuals: NDArray[np.float64], codes: NDArray[np.float64]) -> float:
    """R² = 1 − Σ|residual|²/Σ|ȳ|²."""
    return float(1.0 - np.sum(residuals**2) / np.sum(codes**2))


def macro_r_squared(
    residuals: NDArray[np.float64], labels: NDArray[np.int64], n_clusters: int, offsets: NDArray[np.int64]
) -> float:
    """Mean over tasks and clusters of the R² of the centred cluster indicator; comparable between cluster sizes.

    Clusters that are empty or fill a whole task have no variance to explain and are left out.
    """
    codes = label_codes(labels, n_clusters)
    scores = []
    for start, end in zip(offsets[:-1], offsets[1:]):
        truth = codes[start:end]
        variance = np.sum((truth - truth.mean(axis=0)) ** 2, axis=0)
        counted = variance > 0
        errors = np.sum(residuals[start:end] ** 2, axis=0)
        scores.extend((1.0 - errors[counted] / variance[counted]).tolist())
    return float(np.mean(scores)) if scores else 0.0
