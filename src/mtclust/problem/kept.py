"""What a fit with kernel matrices keeps, for later tasks and for files: its rows, but no matrix between them.

A task that was not in the fit becomes the last of m + 1 tasks of a problem in which only its labels may
change. λ₂ is scaled by m/(m+1): with Ω shrunk by the same factor the models of the known tasks stay what they were, and
the new task begins as their equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core.coupling import COUPLINGS
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features, raw_kernel
from mtclust.core.labels import SizeBounds
from mtclust.core.model import KernelOrigin
from mtclust.problem.criteria import criterion_named
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Method, Start

if TYPE_CHECKING:
    from mtclust.problem.protocol import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KernelKept:
    """Of a fit with kernel matrices: its rows and labels, sorted by task.

    Attributes
    ----------
    kernel : Kernel
    rows : array or CSR matrix of shape (N, d), or None
        None for a precomputed kernel.
    offsets : ndarray of shape (m + 1,)
    scale : float
        Mean diagonal that the centred kernel was divided by.
    centred : bool
        Whether features were centred within tasks.
    labels : ndarray of shape (N,)
    bounds : SizeBounds
    method : {"relationship", "features", "independent"}
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    rank : int or None
        Of the features that D weighs.
    centred_rows : bool
        Whether the rows of every task have its mean taken off.
    criterion : {"J", "E"}
    """

    kernel: Kernel
    rows: Any
    offsets: NDArray[np.int64]
    scale: float
    centred: bool
    labels: NDArray[np.int64]
    bounds: SizeBounds
    method: Method
    lambda1: Array
    lambda2: float
    rank: int | None = None
    centred_rows: bool = False
    criterion: str = "J"

    @property
    def n_columns(self) -> int:
        if self.rows is None:
            raise ValueError(
                'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
                'Fit with kernel="rbf", "linear" or a callable.'
            )
        return int(self.rows.shape[1])

    def starts(self) -> list[Start]:
        """The labels of the known tasks."""
        return [Start(self.labels[a:b]) for a, b in zip(self.offsets[:-1], self.offsets[1:])]

    def with_task(self, rows: Any, bounds: SizeBounds) -> tuple[Problem, Problem]:
        """All tasks with the new one as the last, and the new one alone; ``bounds`` are those of the new task."""
        if sp.issparse(self.rows) and not sp.issparse(rows):
            rows = sp.csr_matrix(rows)
        elif sp.issparse(rows) and not sp.issparse(self.rows):
            rows = rows.toarray()
        mean = rows.mean(axis=0, keepdims=True) if self.centred_rows else None
        both = [self.rows, rows if mean is None else rows - mean]
        everything: Any = sp.vstack(both, format="csr") if sp.issparse(rows) else np.concatenate(both)
        n, m = rows.shape[0], len(self.offsets) - 1
        offsets = np.append(self.offsets, self.offsets[-1] + n)
        raw = raw_kernel(self.kernel, everything, offsets, self.centred)
        centred = centre_kernel(raw, offsets, self.centred, scale=self.scale)
        weight = self.lambda2 * m / (m + 1)
        features = None
        if COUPLINGS[self.method].of_features:
            features = eigen_features(centred.matrix, self.rank)
            weight *= features.rank / (self.rank or 1)
        lambda1 = np.append(self.lambda1, self.lambda1.mean())
        problem = KernelProblem(
            centred.matrix, offsets, joined_bounds(self.bounds, bounds), lambda1, weight, self.method, features,
            criterion_named(self.criterion),
            origin=KernelOrigin(self.kernel, everything, centred, np.arange(len(raw)), last_centre(mean, m)),
        )  # fmt: skip
        block = np.ascontiguousarray(centred.matrix[offsets[m] :, offsets[m] :])
        alone = KernelProblem(
            block, np.array([0, n]), bounds, self.lambda1.mean(keepdims=True), m * self.lambda2, "independent",
            criterion=problem.criterion,
        )  # fmt: skip
        return problem, alone


def last_centre(mean: Array | None, n_known: int) -> Array | None:
    """What is taken off rows of the new task, the last; the known tasks are not asked about any more."""
    return None if mean is None else np.vstack([np.zeros((n_known, mean.shape[1])), mean])


def joined_bounds(known: SizeBounds, new: SizeBounds) -> SizeBounds:
    """Bounds of the known tasks and, last, of the new one."""
    lower, upper = np.vstack([known.lower, new.lower]), np.vstack([known.upper, new.upper])
    return SizeBounds(lower, upper, movable=known.movable and new.interchangeable())
