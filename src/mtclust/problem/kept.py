"""What a fit keeps, for later tasks and for files: with kernel matrices its rows, but no matrix between them; with
explicit features moments and class vectors, no rows.

A task that was not in the fit becomes the last of m + 1 tasks of a problem in which only its labels may
change. λ₂ is scaled by m/(m+1): with Ω shrunk by the same factor the models of the known tasks stay what they were, and
the new task begins as their equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core.class_means import ClassMeans
from mtclust.core.coupling import COUPLINGS
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features, raw_kernel
from mtclust.core.labels import SizeBounds, code_scale
from mtclust.core.model import KernelOrigin
from mtclust.problem.criteria import criterion_named
from mtclust.problem.feature_descent import FeatureFit, class_vector
from mtclust.problem.features import FeatureProblem
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Method, Point, Start
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data, Moments
from mtclust.rows.passes import TaskLabels
from mtclust.rows.source import TableRows

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


@dataclass(frozen=True)
class FeatureKept:
    """Of a fit with explicit features: no rows, only moments and class vectors of the tasks.

    Attributes
    ----------
    features : FeatureMap
    moments : Moments
    b : ndarray of shape (m, r, C)
        2Φ_iᵀY_i/n_i.
    counts : ndarray of shape (m, C)
        Cluster sizes.
    bounds : SizeBounds
    method : {"relationship", "features", "independent"}
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    centred : bool
    criterion : {"J", "E"}
    """

    features: FeatureMap
    moments: Moments
    b: Array
    counts: NDArray[np.int64]
    bounds: SizeBounds
    method: Method
    lambda1: Array
    lambda2: float
    centred: bool
    criterion: str = "J"

    @property
    def n_columns(self) -> int:
        return self.features.n_columns or self.moments.n_features

    def starts(self) -> list[Start]:
        """The known tasks: their labels are in the class vectors."""
        return [Start(np.empty(0, dtype=np.int64))] * self.moments.n_tasks

    def with_task(self, rows: Any, bounds: SizeBounds) -> tuple[Problem, Problem]:
        """All tasks with the new one as the last, and the new one alone; ``bounds`` are those of the new task."""
        m = self.moments.n_tasks
        mean = None if self.features.centres is None else rows.mean(axis=0, keepdims=True)
        table = self.features(rows if mean is None else rows - mean)
        source = TableRows(table, np.array([0, len(table)]))
        source = source.kept_near_zero() if self.centred else source
        new = source.moments(self.centred, self.moments.scale or None)
        alone = FeatureProblem(
            Data(source, new, bounds), "independent", self.lambda1.mean(keepdims=True), m * self.lambda2,
            criterion=criterion_named(self.criterion),
        )  # fmt: skip
        # rows of the known tasks are gone: they have none here
        offsets = np.append(np.zeros(m + 1, dtype=np.int64), len(table))
        shift = None if source.shift is None else np.vstack([np.zeros((m, source.n_features)), source.shift])
        both = _joined_moments(self.moments, new)
        beside = replace(source, offsets=offsets, shift=shift)
        problem = _BesideKnown(
            Data(beside, both, joined_bounds(self.bounds, bounds)), self.method,
            np.append(self.lambda1, self.lambda1.mean()), self.lambda2 * m / (m + 1),
            replace(self.features, centres=last_centre(mean, m)), criterion=alone.criterion, known_b=self.b,
            known_counts=self.counts,
        )  # fmt: skip
        return problem, alone


def _joined_moments(known: Moments, new: Moments) -> Moments:
    return Moments(
        np.append(known.sizes, new.sizes),
        np.vstack([known.mean, new.mean]),
        np.vstack([known.total, new.total]),
        np.concatenate([known.gram, new.gram]),
        known.scale,
        np.append(known.largest, new.largest),
    )


@dataclass(frozen=True)
class _BesideKnown(FeatureProblem):
    """A new task, the last, beside tasks of which only class vectors are left."""

    known_b: Array | None = None
    known_counts: NDArray[np.int64] | None = None

    def point_of(self, starts: Sequence[Start], Z: Array) -> Point:
        assert self.known_b is not None
        assert self.known_counts is not None
        task, m = self._labels_of(self.n_tasks - 1, starts[-1]), self.n_tasks - 1
        b = np.concatenate([self.known_b, class_vector(self.data.moments, m, task)[None]])
        solver = self.at(Z)
        W = solver.models(b)
        known = [TaskLabels.none(0, self.n_clusters, self.data.moments.n_features) for _ in range(m)]
        for gone, counts in zip(known, self.known_counts):
            gone.recount(counts)
        fit = FeatureFit([*known, task], solver, b, W)
        return Point(fit, self.criterion.value_of_models(fit))

    def class_means(self, point: Point) -> ClassMeans:
        assert self.known_counts is not None
        counts, known = np.vstack([self.known_counts, point.fit.tasks[-1].counts]), self.data.moments
        a, rest = code_scale(self.n_clusters)
        # b = (2/n)(a·class sums − rest·total): back to class means
        scaled = 0.5 * known.sizes[:, None, None] * point.fit.b
        means = (scaled + rest * known.total[:, :, None]) / (a * np.maximum(counts, 1))[:, None, :]
        return ClassMeans(counts, coordinates=means.transpose(0, 2, 1))
