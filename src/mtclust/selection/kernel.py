r"""Kernel width and λ by leave-one-out, against what noise would give.

For every candidate width and λ each task is clustered alone, and so is a Gaussian null of the same covariance. The gap
between the two leave-one-out R² says how much structure the setting finds that noise does not have: R² itself always
prefers the smallest λ. The width is the one with the largest gap; λ the smallest whose gap is nearly as large. Where no
gap is positive (text: many weak features) λ hardly matters, and a middling one is taken.

One path of falling λ per width serves all λ, on at most ``ROWS`` rows per task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mtclust._progress import counted
from mtclust.features import CentredKernel, centre_kernel, mean_distance, rbf_from_distances
from mtclust.labels import SizeBounds, label_codes
from mtclust.objective import loo_residuals
from mtclust.problem.pool import labels_along_path
from mtclust.selection.null import gaussian_kernel

Array = NDArray[np.float64]

#: widths tried by ``width="auto"``, in units of the mean distance between two rows
WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
#: λ₁ = λ₂ tried by ``"auto"``, largest first
LAMBDAS = tuple(2.0**-k for k in range(2, 11))
#: λ is the smallest whose gap is at least this share of the largest
NEARLY = 0.9
#: λ where no setting finds more than noise does
FALLBACK_LAMBDA = 2.0**-4
#: the path of λ begins this much above the largest candidate
_APPROACH = (256.0, 64.0, 16.0, 4.0)
#: random starts per task and setting: enough to compare settings, the fit searches further
_STARTS = 4
#: rows per task that the choice is made on
ROWS = 500


@dataclass(frozen=True)
class KernelChoice:
    """The chosen width and λ, and what they were chosen from.

    Attributes
    ----------
    width : float or None
        None for kernels without a width.
    lambda_ : float
    candidates : list of dict
        width, lambda, loo (R² of the data), null (of noise) and their gap.
    reason : str

    Examples
    --------
    What an estimator chose is kept in its ``selection_``:

    >>> from mtclust import DSTC
    >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> sorted(model.selection_["candidates"][0])
    ['gap', 'lambda', 'loo', 'null', 'width']
    """

    width: float | None
    lambda_: float
    candidates: list[dict[str, float | None]]
    reason: str


def rbf_of_width(squared: Array, width: float) -> tuple[Array, float]:
    """RBF matrix with σ = width × mean distance (σ = width where all rows are equal), and σ."""
    sigma = width * (mean_distance(squared) or 1.0)
    return rbf_from_distances(squared, sigma), sigma


def select_kernel(
    kernels: dict[float | None, CentredKernel],
    bounds: SizeBounds,
    lambdas: Sequence[float],
    ridge_per_lambda: float,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> KernelChoice:
    """Choose among kernels (by width) and values of λ, largest λ first.

    Parameters
    ----------
    kernels : dict
        Width (None for kernels without one) → :class:`mtclust.features.CentredKernel`.
    bounds : SizeBounds
        Cluster sizes (:func:`mtclust.labels.parse_sizes`).
    lambdas : sequence of float
        Candidates, largest first.
    ridge_per_lambda : float
        The ridge of a task alone is this times λ: m + 1 for DMTRC and DMTFC, 2 for DSTC.
    rng : numpy Generator
    n_jobs : int, optional
        Threads.

    Returns
    -------
    KernelChoice

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust.features import centre_kernel
    >>> from mtclust.labels import parse_sizes
    >>> from mtclust.selection import select_kernel
    >>> X, _ = make_blobs(60, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> kernel = centre_kernel(X @ X.T, np.array([0, 60]), centre=True)
    >>> bounds = parse_sizes("balanced", [60], 3)
    >>> choice = select_kernel({None: kernel}, bounds, (0.25, 0.0625), 2.0, np.random.default_rng(0))
    >>> choice.width, choice.lambda_ in (0.25, 0.0625), len(choice.candidates)
    (None, True, 2)
    """
    candidates: list[dict[str, float | None]] = []
    for width, kernel in counted(kernels.items(), "choosing the kernel: width", len(kernels)):
        scores, null = _scores(kernel, bounds, np.asarray(lambdas) * ridge_per_lambda, rng, n_jobs)
        for lambda_, score, noise in zip(lambdas, scores, null):
            candidates.append({"width": width, "lambda": lambda_, "loo": score, "null": noise, "gap": score - noise})
    best = max(candidates, key=lambda row: row["gap"] or 0.0)
    gap = best["gap"] or 0.0
    width = best["width"]
    if gap <= 0:
        lambda_ = min(lambdas, key=lambda value: abs(np.log2(value / FALLBACK_LAMBDA)))
        reason = "no setting separates the data better than noise of the same covariance; λ hardly matters then"
    else:
        near = [row for row in candidates if row["width"] == width and (row["gap"] or 0.0) >= NEARLY * gap]
        lambda_ = min(row["lambda"] or 0.0 for row in near)
        reason = f"largest gap of the leave-one-out R² to noise ({gap:.3f}), smallest λ with {NEARLY:.0%} of it"
    return KernelChoice(width, lambda_, candidates, reason)


def _scores(
    kernel: CentredKernel, bounds: SizeBounds, ridges: Array, rng: np.random.Generator, n_jobs: int | None
) -> tuple[Array, Array]:
    """Leave-one-out R² at every ridge, of the data and of a Gaussian null, all tasks together."""
    seeds = rng.integers(2**63, size=kernel.n_tasks)
    jobs = (
        delayed(_task_errors)(
            kernel.matrix[a:b, a:b], bounds.lower[i], bounds.upper[i], ridges, kernel.centred, int(seeds[i])
        )
        for i, (a, b) in enumerate(zip(kernel.offsets[:-1], kernel.offsets[1:]))
    )
    totals = np.sum(Parallel(n_jobs=n_jobs, prefer="threads")(jobs), axis=0)
    data, null, norm = totals[0], totals[1], totals[2]
    return 1.0 - data / norm, 1.0 - null / norm


def _task_errors(
    kernel: Array, lower: NDArray[np.int64], upper: NDArray[np.int64], ridges: Array, centred: bool, seed: int
) -> Array:
    """Sums of squared leave-one-out residuals of one task: data, null, and the labels themselves."""
    rng = np.random.default_rng(seed)
    lower, upper = lower[upper > 0], upper[upper > 0]  # only the clusters that this task has
    n = len(kernel)
    if n > ROWS:
        rows = rng.choice(n, ROWS, replace=False)
        kernel = kernel[np.ix_(rows, rows)]
        lower, upper = lower * ROWS // n, -(-upper * ROWS // n)
        n = ROWS
    result = np.zeros((3, len(ridges)))
    path = np.concatenate([np.asarray(_APPROACH) * ridges[0], ridges])
    for k, matrix in enumerate((kernel, gaussian_kernel(kernel, rng))):
        ends = labels_along_path(matrix, path, lower, upper, _STARTS, rng)[len(_APPROACH) :]
        for position, (labels, M) in enumerate(ends):
            codes = label_codes(labels, len(lower))
            residuals = loo_residuals(codes, M @ codes, M.diagonal(), np.array([n]), centred)
            result[k, position] = np.sum(residuals**2)
            result[2, position] = np.sum(codes**2)
    return result


def centred_rbf(squared: Array, width: float, offsets: NDArray[np.int64], centre: bool) -> tuple[CentredKernel, float]:
    """Centred RBF kernel of a width, and its σ."""
    raw, sigma = rbf_of_width(squared, width)
    return centre_kernel(raw, offsets, centre), sigma
