r"""The objective with the models eliminated, and leave-one-out scores.

For fixed coupling Z the models W can be eliminated from the paper's objective, (10) for Z = D and (20) with (22) for
Z = Ω. What is left is the maximum over α of the dual (13), which is reached at α = MY:

.. math:: J(Y) = \tfrac12 \mathrm{tr}(Y^T M Y), \quad M = (K_Z + \Lambda/2)^{-1}, \quad
          \alpha = MY = \tfrac{2}{n_i}(Y - F)

K_Z is the multitask kernel, (14) or (24), and Λ holds the number of rows of each row's task.

Leaving row j out of its task i, with n_i kept, changes its residual to α_j/M_jj. With the task's centre re-estimated
without the row as well, it becomes

.. math:: \frac{\alpha_j - \tfrac{2}{n_i}\bar y}{M_{jj} - 2/n_i^2} + \bar y_{-j}

where ȳ and ȳ₋ⱼ are the mean codes of the task with and without the row: the fraction is the residual of a model that
also fits the mean of the codes, which ours does not (f is 0 at the task's centre).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def loo_residuals(
    codes: NDArray[np.float64],
    alpha: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    task_sizes: NDArray[np.int64],
    centred: bool,
    *,
    fit_mean: bool = False,
) -> NDArray[np.float64]:
    """Leave-one-out residuals Y − F₋ⱼ of all rows, in closed form; rows sorted by task.

    Parameters
    ----------
    codes : array of shape (N, C)
        Label codes Y.
    alpha : array of shape (N, C)
        Dual variables MY.
    diagonal : array of shape (N,)
        Diagonal of M.
    task_sizes : array of shape (m,)
        n_i.
    centred : bool
        Whether each task's centre is re-estimated without the row (``fit_intercept=True``). A task of one row has no
        centre without it; its residual is then its label, that is, nothing is predicted.
    fit_mean : bool, default=False
        Residuals of the model that fits the mean of the codes as well. They measure how well cluster membership is
        predicted whatever the cluster sizes; with equal sizes they hardly differ. Needs ``centred``.
    """
    residuals = alpha / diagonal[:, None]
    if not centred:
        return residuals
    starts = np.concatenate([[0], np.cumsum(task_sizes)])
    for start, n in zip(starts, task_sizes):
        rows = slice(int(start), int(start + n))
        if n > 1:
            Y = codes[rows]
            mean = Y.mean(axis=0)
            fitted_mean = (alpha[rows] - (2.0 / n) * mean) / (diagonal[rows] - 2.0 / n**2)[:, None]
            residuals[rows] = fitted_mean if fit_mean else fitted_mean + (n * mean - Y) / (n - 1)
        else:
            residuals[rows] = codes[rows]
    return residuals
