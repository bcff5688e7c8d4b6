"""What a fit keeps, for later tasks and for files, and clustering a task that was not in ``fit``.

With kernel matrices a fit keeps its rows, but no matrix between them; with explicit features moments and class vectors,
no rows. A task that was not in the fit becomes the last of m + 1 tasks of a problem in which only its labels may
change; the enlarged (m+1)×(m+1) coupling is found by the same descent. λ₂ is scaled by m/(m+1): with Ω shrunk by the
same factor the models of the known tasks stay what they were, and the new task begins as their equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core.assignment import assign
from mtclust.core.coupling import COUPLINGS
from mtclust.core.criterion import CRITERIA, indicators
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features
from mtclust.core.labels import SizeBounds
from mtclust.core.model import KernelOrigin
from mtclust.core.tasks import even_positions
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data, Moments
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows, rows_at
from mtclust.search.problem import Method, Point, Problem, SearchOptions
from mtclust.search.recipe import first_relationship

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: a task is small if it has at most this share of the rows of the median task
SMALL_SHARE = 0.3
#: ridge of the regression on the other tasks that labels a small task
_RIDGE = 0.001
#: rows of a new task that are searched, of more
_SEARCHED = 600


@dataclass(frozen=True)
class KernelKept:
    """Of a fit with kernel matrices: its rows and labels, sorted by task."""

    kernel: Kernel
    rows: Any  # None for a precomputed kernel (N × d)
    offsets: NDArray[np.int64]  # (m + 1,)
    scale: float  # mean diagonal that the centred kernel was divided by
    centred: bool  # whether features were centred within tasks
    labels: NDArray[np.int64]  # (N,)
    bounds: SizeBounds
    method: Method
    lambda1: Array  # (m,)
    lambda2: float
    rank: int | None = None  # of the features that D weighs
    centred_rows: bool = False  # whether the rows of every task have its mean taken off
    criterion: str = "J"  # a key of CRITERIA

    def beginning(
        self, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
    ) -> tuple[Problem, list[Labels], Labels]:
        """All tasks with the new one as the last, labels that this one can begin with, and those of the known rows.

        ``bounds`` are those of the new task.
        """
        if sp.issparse(self.rows) and not sp.issparse(rows):
            rows = sp.csr_matrix(rows)
        elif sp.issparse(rows) and not sp.issparse(self.rows):
            rows = rows.toarray()
        mean = rows.mean(axis=0, keepdims=True) if self.centred_rows else None
        both = [self.rows, rows if mean is None else rows - mean]
        everything: Any = sp.vstack(both, format="csr") if sp.issparse(rows) else np.concatenate(both)
        n, m = rows.shape[0], len(self.offsets) - 1
        offsets = np.append(self.offsets, self.offsets[-1] + n)
        raw = self.kernel(everything, everything)
        centred = centre_kernel(raw, offsets, self.centred, scale=self.scale)
        weight = self.lambda2 * m / (m + 1)
        features = None
        if COUPLINGS[self.method].of_features:
            features = eigen_features(centred.matrix, self.rank)
            weight *= features.rank / (self.rank or 1)
        lambda1 = np.append(self.lambda1, self.lambda1.mean())
        problem = Problem(
            centred.matrix, offsets, joined_bounds(self.bounds, bounds), lambda1, weight, self.method, features,
            CRITERIA[self.criterion](),
            origin=KernelOrigin(self.kernel, everything, centred, np.arange(len(raw)), last_centre(mean, m)),
        )  # fmt: skip
        block = np.ascontiguousarray(centred.matrix[offsets[m] :, offsets[m] :])
        alone = Problem(
            block, np.array([0, n]), bounds, self.lambda1.mean(keepdims=True), m * self.lambda2, "independent",
            criterion=problem.criterion,
        )  # fmt: skip
        return problem, alone.starts(options, rng)[0], self.labels


def last_centre(mean: Array | None, n_known: int) -> Array | None:
    """What is taken off rows of the new task, the last; the known tasks are not asked about any more."""
    return None if mean is None else np.vstack([np.zeros((n_known, mean.shape[1])), mean])


def joined_bounds(known: SizeBounds, new: SizeBounds) -> SizeBounds:
    """Bounds of the known tasks and, last, of the new one."""
    lower, upper = np.vstack([known.lower, new.lower]), np.vstack([known.upper, new.upper])
    return SizeBounds(lower, upper, movable=known.movable and new.interchangeable())


@dataclass(frozen=True)
class FeatureKept:
    """Of a fit with explicit features: no rows, only moments and class vectors of the tasks."""

    features: FeatureMap
    moments: Moments
    b: Array  # 2Φ_iᵀY_i/n_i (m × r × C)
    counts: NDArray[np.int64]  # cluster sizes (m × C)
    bounds: SizeBounds
    method: Method
    lambda1: Array  # (m,)
    lambda2: float
    centred: bool
    criterion: str = "J"  # a key of CRITERIA

    def beginning(
        self, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
    ) -> tuple[AllRows, list[Labels], Labels]:
        """As with kernel matrices; rows of the known tasks are gone, their labels are in the class vectors."""
        m, criterion = self.moments.n_tasks, CRITERIA[self.criterion]()
        mean = None if self.features.centres is None else rows.mean(axis=0, keepdims=True)
        table = self.features(rows if mean is None else rows - mean)
        source = TableRows(table, np.array([0, len(table)]))
        source = source.kept_near_zero() if self.centred else source
        new = source.moments(self.centred, self.moments.scale or None)
        ridge = self.lambda1.mean(keepdims=True), m * self.lambda2
        alone = AllRows(Data(source, new, bounds), "independent", *ridge, criterion=criterion)
        positions = [even_positions(len(table), _SEARCHED)]
        few = rows_at(alone.data, positions)
        Phi = few.moments.centred(0, few.source.take(0, np.arange(len(positions[0]))))
        exact = Problem(Phi @ Phi.T, few.source.offsets, few.bounds, *ridge, "independent", criterion=criterion)
        starts = [
            np.asarray(alone.carried_labels(positions, labels, np.ones((1, 1))).labels, dtype=np.int64)
            for labels in exact.starts(options, rng)[0][:1]
        ]
        # rows of the known tasks are gone: they have none here
        offsets = np.append(np.zeros(m + 1, dtype=np.int64), len(table))
        shift = None if source.shift is None else np.vstack([np.zeros((m, source.n_features)), source.shift])
        data = Data(
            replace(source, offsets=offsets, shift=shift), self.moments.joined(new), joined_bounds(self.bounds, bounds)
        )
        problem = AllRows(
            data, self.method, np.append(self.lambda1, self.lambda1.mean()), self.lambda2 * m / (m + 1),
            replace(self.features, centres=last_centre(mean, m)), criterion, gone=(self.b, self.counts),
        )  # fmt: skip
        return problem, starts, np.empty(0, dtype=np.int64)


def cluster_new_task(
    kept: KernelKept | FeatureKept, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
) -> tuple[Problem | AllRows, Point]:
    """Labels of the rows of one more task, whose size bounds are given; the new task is the last of the problem.

    Rows fewer than the features they have fit any labels, so that neither criterion can tell which are right. A task
    with far fewer rows than the others borrows: its labels are predicted from those of all other tasks.
    """
    problem, starts, known = kept.beginning(rows, bounds, options, rng)
    m = problem.n_tasks - 1
    begun = problem.point(np.concatenate([known, starts[0]]), problem.uncoupled())
    begun, similarity = problem.matched(begun, m)
    Z = first_relationship(similarity) if problem.couples_labels else problem.uncoupled()
    if isinstance(problem, Problem):
        problem = replace(problem, proposed=[*([] for _ in range(m)), starts[: options.n_init]])
    point = problem.descend(problem.continued(begun, Z), rng, options.effort("new task", tasks=[m]))
    sizes, n = np.diff(problem.offsets), len(known)
    small = problem.couples_labels and sizes[m] <= SMALL_SHARE * np.median(sizes)
    if small and isinstance(problem, Problem) and problem.kernel.diagonal().max() > 0:
        z, system = indicators(known, problem.n_clusters), problem.kernel[:n, :n] + 0.5 * n * _RIDGE * np.eye(n)
        mean = z.mean(axis=0)
        scores = problem.kernel[n:, :n] @ sla.solve(system, z - mean, assume_a="pos") + mean
        labels = assign(-scores, problem.bounds.lower[m], problem.bounds.upper[m])
        point = problem.point(np.concatenate([known, labels]), point.Z)
    return problem, point
