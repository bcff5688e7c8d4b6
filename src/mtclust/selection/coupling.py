r"""Choosing without labels: the kernel width, λ, and whether to couple the tasks.

The width is chosen by the leave-one-out R² of every task alone. Coupling is judged row by row: with the uncoupled model
M_i of a task, q_j(Y) = ½⟨ȳ_j, ((M_i − (2/n_i)I)Y)_j⟩ is row j's share of the task's own objective,

.. math:: x_j = q_j(Y_{coupled}) - q_j(Y_{single}), \quad t_i = \sum_j x_j/(\sqrt{n_i}\,\mathrm{sd}(x_j)), \quad
          Z = \sum_i t_i/\sqrt m

Large Z says that the coupled labels are worse for the tasks' own data than chance fluctuation: coupling may only break
ties that a task's own data cannot decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtclust.coupling import Independent
from mtclust.features import CentredKernel, centre_kernel, mean_distance, rbf_from_distances
from mtclust.labels import SizeBounds, label_codes
from mtclust.objective import loo_residuals, r_squared
from mtclust.solvers.pool import single_task_pools

Array = NDArray[np.float64]

#: widths tried by ``width="auto"``, in units of the mean distance between two rows
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: random starts per task and width: enough to compare widths, the fit searches further
_WIDTH_STARTS = 4
#: λ₁ = λ₂ of ``"auto"``: RBF models are flexible and want a small ridge, linear ones are not
DEFAULT_LAMBDA = {"rbf": 2.0**-10, "linear": 2.0**-6, "precomputed": 2.0**-8, "callable": 2.0**-8}
#: coupled labels are kept up to this value of Z
COUPLING_LIMIT = 1.645


@dataclass(frozen=True)
class WidthChoice:
    """The chosen width and the leave-one-out R² of every candidate."""

    width: float
    scores: dict[float, float]
    kernel: CentredKernel
    sigma: float


def rbf_kernel_of_width(squared: Array, width: float) -> tuple[Array, float]:
    """RBF matrix with σ = width × mean distance (σ = width where all rows are equal), and σ."""
    sigma = width * (mean_distance(squared) or 1.0)
    return rbf_from_distances(squared, sigma), sigma


def select_width(
    squared: Array,
    offsets: NDArray[np.int64],
    centre: bool,
    bounds: SizeBounds,
    ridge: Array,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> WidthChoice:
    """The width whose single-task clusterings have the highest leave-one-out R²; ties go to the wider kernel."""
    best: tuple[float, WidthChoice] | None = None
    scores: dict[float, float] = {}
    for width in sorted(WIDTHS, reverse=True):
        raw, sigma = rbf_kernel_of_width(squared, width)
        kernel = centre_kernel(raw, offsets, centre)
        scores[width] = single_task_score(kernel, bounds, ridge, rng, n_jobs)
        if best is None or scores[width] > best[0]:
            best = scores[width], WidthChoice(width, scores, kernel, sigma)
    assert best is not None
    return best[1]


def single_task_score(
    kernel: CentredKernel, bounds: SizeBounds, ridge: Array, rng: np.random.Generator, n_jobs: int | None = None
) -> float:
    """Leave-one-out R² of the best clustering found of every task alone."""
    offsets = kernel.offsets
    pools = single_task_pools(kernel.matrix, offsets, ridge, bounds, _WIDTH_STARTS, rng, n_jobs)
    codes = label_codes(np.concatenate([pool.labels[0] for pool in pools]), bounds.n_clusters)
    state = Independent(kernel.matrix, offsets, ridge).condition(np.eye(kernel.n_tasks))
    residuals = loo_residuals(codes, state.alpha(codes), state.diagonal(), np.diff(offsets), kernel.centred)
    return r_squared(residuals, codes)


@dataclass(frozen=True)
class CouplingTest:
    """How the coupled labels fare on the tasks' own data.

    Attributes
    ----------
    statistic : float
        Z; above ``COUPLING_LIMIT`` the coupled labels are refused.
    per_task : ndarray of shape (m,)
        t_i.
    """

    statistic: float
    per_task: Array

    @property
    def accepted(self) -> bool:
        return self.statistic <= COUPLING_LIMIT


def coupling_statistic(
    kernel: Array, offsets: NDArray[np.int64], ridge: Array, coupled: Array, single: Array
) -> CouplingTest:
    """Compare coupled and single-task label codes on every task's own objective."""
    state = Independent(kernel, offsets, ridge).condition(np.eye(len(offsets) - 1))
    t = np.zeros(len(offsets) - 1)
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        n = b - a
        M = state.block(i) - (2.0 / n) * np.eye(n)
        share = [0.5 * np.einsum("nc,nc->n", codes[a:b], M @ codes[a:b]) for codes in (coupled, single)]
        difference = share[0] - share[1]
        spread = difference.std()
        if spread > 1e-12 * np.abs(share[1]).mean():
            t[i] = difference.sum() / (np.sqrt(n) * spread)
    return CouplingTest(float(t.sum() / np.sqrt(len(t))), t)
