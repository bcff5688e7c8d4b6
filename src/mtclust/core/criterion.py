r"""The size-neutral criterion E: how well membership of a cluster is predicted for rows that are left out.

The paper's J explains the variance of the cluster indicators, and the variance nπ(1 − π) of an indicator is largest for
halves: a poor cut in the middle beats a perfect cut of a small cluster. E weighs what is explained of every cluster by
a power of its evenness only. For the one-hot labels z_c of a task with n rows and shares π_c

.. math:: E = \sum_c (4\pi_c(1-\pi_c))^{\gamma} R_c^2, \qquad R_c^2 = 1 - \frac{\|e_c\|^2}{n\pi_c(1-\pi_c)}
          \Big(\frac{n-1}{n}\Big)^2

with e_c the leave-one-out residuals of ridge regression on z_c, the mean fitted as well. With M of
:mod:`mtclust.core.coupling` (rows of task i, features centred within tasks)

.. math:: R = \tfrac{n_i}{2} M - \tfrac1{n_i} 11^T, \qquad e_c = \mathrm{diag}(R)^{-1} R z_c

γ = 1 with training residuals Rz_c in place of e_c is the paper's J, up to a constant and a factor (a = C/(C−1)):
J = (2/n)a² Σ_c z_cᵀRz_c, and Σ_c π_c(1−π_c)·(1 − z_cᵀRz_c/(nπ_c(1−π_c))) is that with the sign changed. γ = 0 would
weigh all clusters alike and split off the smallest tight ones; ¼ to ½ is a plateau. Leaving rows out is what forbids
clusters of one row.

Given the other tasks, ‖e_c‖² = zᵀAz + 2zᵀF + const is quadratic in the labels z of one task, so that the gain of moving
one row from cluster p to q takes a few operations (:func:`move_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: weight of evenness: 1 is the paper's, 0 weighs every cluster alike
GAMMA = 0.25
#: sweeps over the rows of a task at most
_SWEEPS = 50
#: diag(R) is kept from 0: a row that fits any label of its own has no leave-one-out residual
SMALLEST_RESIDUAL = 1e-9


def indicators(labels: ArrayLike, n_clusters: int) -> Array:
    """One-hot labels z (n × C).

    Examples
    --------
    >>> indicators([0, 2], 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    labels = np.asarray(labels, dtype=np.int64)
    z = np.zeros((len(labels), n_clusters))
    z[np.arange(len(labels)), labels] = 1.0
    return z


def weights_of_sizes(counts: NDArray[np.int64], rows: ArrayLike) -> tuple[Array, Array]:
    """For clusters of so many rows: what each adds to E if predicted perfectly, and what a unit of ‖e‖² takes from it.

    Both are 0 for a cluster that is empty or fills the task: there is nothing to predict.
    """
    n = np.asarray(rows, dtype=np.float64)
    share = counts / n
    spread = share * (1 - share)
    some = spread > 0
    weight = np.where(some, (4 * spread) ** GAMMA, 0.0)
    unit = np.where(some, weight / (n * np.where(some, spread, 1.0)), 0.0) * ((n - 1) / n) ** 2
    return weight, unit


@lru_cache(maxsize=256)
def size_weights(n_rows: int) -> tuple[Array, Array]:
    """:func:`weights_of_sizes` of clusters of 0 … n rows."""
    return weights_of_sizes(np.arange(n_rows + 1), n_rows)


@dataclass(frozen=True)
class LeaveOneOutForm:
    """‖e_c‖² of one task as a function of its labels z: zᵀAz + 2zᵀF + const.

    Attributes
    ----------
    residual_map : ndarray of shape (n, n)
        diag(R)⁻¹R: labels to leave-one-out residuals.
    A : ndarray of shape (n, n)
        ``residual_map.T @ residual_map``.
    from_others : ndarray of shape (n, C) or None
        What the labels of the other tasks add to the residuals; None where they add nothing.
    """

    residual_map: Array
    A: Array
    from_others: Array | None = None

    def linear_part(self, n_clusters: int) -> tuple[Array, Array]:
        """F (C × n) and the constant of every cluster; zeros where the other tasks add nothing."""
        if self.from_others is None:
            return np.zeros((n_clusters, len(self.A))), np.zeros(n_clusters)
        return self._linear_part

    @cached_property
    def _linear_part(self) -> tuple[Array, Array]:
        assert self.from_others is not None
        F = np.ascontiguousarray(self.from_others.T @ self.residual_map)
        return F, np.einsum("nc,nc->c", self.from_others, self.from_others)

    def errors(self, z: Array) -> Array:
        """‖e_c‖² of every cluster."""
        e = self.residual_map @ z
        if self.from_others is not None:
            e = e + self.from_others
        return np.einsum("nc,nc->c", e, e)

    def errors_by_name(self, z: Array) -> Array:
        """‖e‖² of cluster c (row) if it had the name d (column)."""
        e = self.residual_map @ z
        own = np.einsum("nc,nc->c", e, e)
        if self.from_others is None:
            return np.tile(own[:, None], (1, z.shape[1]))
        others = np.einsum("nc,nc->c", self.from_others, self.from_others)
        return own[:, None] + 2 * (e.T @ self.from_others) + others


def leave_one_out_form(M: Array) -> LeaveOneOutForm:
    """The form of a task from its block of M; the other tasks say nothing yet."""
    n = len(M)
    R = (0.5 * n) * M - 1.0 / n
    R /= np.maximum(R.diagonal(), SMALLEST_RESIDUAL)[:, None]
    return LeaveOneOutForm(R, R.T @ R)


def predictability(labels: Labels, errors: Array) -> float:
    """E of one task from its labels and the ‖e_c‖² of its clusters."""
    counts = np.bincount(labels, minlength=len(errors))
    weight, unit = size_weights(len(labels))
    return float(np.sum(weight[counts] - unit[counts] * errors))


def move_rows(
    form: LeaveOneOutForm, labels: Labels, lower: Labels, upper: Labels, order: NDArray[np.int64]
) -> tuple[float, int]:
    """Move rows of one task to other clusters, each time the best for that row, until E of the task cannot rise.

    ``labels`` change in place; cluster c keeps between ``lower[c]`` and ``upper[c]`` rows. Returns E and how many rows
    were moved.
    """
    from mtclust.core import compiled

    F, constant = form.linear_part(len(lower))
    weight, unit = size_weights(len(labels))
    value, moved = compiled.move(form.A, F, constant, labels, weight, unit, lower, upper, order, _SWEEPS)
    return float(value), int(moved)


def decision_weights(shares: Array, r_squared: Array) -> tuple[Array, Array]:
    """Scale and offset that turn predicted membership into what a row would add to E.

    A row x adds, to first order, ω_c(f_c(x) − ½(1−γ)(1−2π_c)R²_c) with ω_c = (4π_c(1−π_c))^γ/(π_c(1−π_c)), where f_c is
    the predicted membership minus π_c. A cluster that a task lacks, or that fills it, is weighed as in the other tasks;
    one that no task tells from others gets scale 0.
    """
    own = (shares > 0) & (shares < 1)
    count = np.maximum(np.count_nonzero(own, axis=0), 1)
    shares, r_squared = (np.where(own, part, np.sum(part * own, axis=0) / count) for part in (shares, r_squared))
    spread = shares * (1 - shares)
    some = spread > 0
    scale = np.where(some, (4 * spread) ** GAMMA / np.where(some, spread, 1.0), 0.0)
    return scale, -scale * 0.5 * (1 - GAMMA) * (1 - 2 * shares) * r_squared
