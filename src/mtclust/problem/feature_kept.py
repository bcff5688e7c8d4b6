"""What a fit with explicit features keeps, for later tasks and for files: moments and class vectors, no rows.

A new task becomes the last of m + 1 tasks, as in :mod:`mtclust.problem.kept`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.class_means import ClassMeans
from mtclust.core.labels import SizeBounds, code_scale, offsets_of
from mtclust.primal.features import FeatureMap
from mtclust.primal.labelling import TaskLabels
from mtclust.primal.rows import Data, Moments
from mtclust.primal.sources import LocalRows, TableRows
from mtclust.problem.criteria import criterion_named
from mtclust.problem.feature_descent import FeatureFit, class_vector
from mtclust.problem.features import FeatureProblem
from mtclust.problem.kept import joined_bounds, last_centre
from mtclust.problem.protocol import Method, Point, Start

if TYPE_CHECKING:
    from mtclust.problem.protocol import Problem

Array = NDArray[np.float64]


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
        both = _joined_moments(self.moments, new)
        offsets = offsets_of(both.sizes)
        problem = _BesideKnown(
            Data(_LastTask(source, offsets), both, joined_bounds(self.bounds, bounds)), self.method,
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
class _LastTask(LocalRows):
    """A source whose last task has rows; those of the others are gone."""

    rows: TableRows
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    @property
    def shift(self) -> NDArray[Any] | None:
        if self.rows.shift is None:
            return None
        return np.vstack([np.zeros((len(self.offsets) - 2, self.n_features)), self.rows.shift])

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        return self.rows.blocks(0) if task == len(self.offsets) - 2 else iter(())

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        assert task == len(self.offsets) - 2
        return self.rows.take(0, positions)

    def whole(self, task: int) -> NDArray[Any] | None:
        return self.rows.whole(0)


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
