"""All tasks in one frame: one model for all of them, found with all rows as one task.

A task may lack clusters there, and the levels of the tasks count. Seen as a coupling this is Ω = 11ᵀ/m: the tasks'
models are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.labels import SizeBounds, counts_by_task
from mtclust.model import DecisionModel
from mtclust.problem.protocol import Method, Point

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CommonFit:
    """A point of the one task that all rows are held as."""

    pooled: Point
    n_tasks: int
    place: NDArray[np.int64] | None = None

    @property
    def labels(self) -> Any:
        return self.pooled.labels if self.place is None else np.asarray(self.pooled.labels)[self.place]

    @property
    def Z(self) -> Array:
        """11ᵀ/m: the models of the tasks are the same."""
        return np.full((self.n_tasks, self.n_tasks), 1.0 / self.n_tasks)


@dataclass(frozen=True)
class CommonFrame:
    """Rows of m tasks that a problem holds as those of one.

    Attributes
    ----------
    pooled : Problem
        With one task.
    offsets : ndarray of shape (m + 1,)
        Where the rows of every task begin.
    bounds : SizeBounds
        Of the tasks: which clusters they have.
    place : ndarray of shape (N,), optional
        Where the one task has the rows of the tasks, if not in the same order.
    """

    pooled: Any
    offsets: NDArray[np.int64]
    bounds: SizeBounds
    place: NDArray[np.int64] | None = None

    method: Method = "relationship"
    #: leave-one-out scores are the judge's
    judged_on_few = False

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def lambda1(self) -> Array:
        return self.pooled.lambda1

    @property
    def lambda2(self) -> float:
        return self.pooled.lambda2

    def with_bounds(self, bounds: SizeBounds) -> CommonFrame:
        return replace(self, bounds=bounds)

    def class_counts(self, point: Point) -> NDArray[np.int64]:
        return counts_by_task(point.labels, self.offsets, self.bounds.n_clusters)

    def point(self, pooled: Point) -> Point:
        """A point of the one task as one of all tasks."""
        return replace(pooled, fit=CommonFit(pooled, self.n_tasks, self.place))

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        return self.point(self.pooled.renamed(point.fit.pooled, new_ids[:1]))

    def decision(self, point: Point) -> DecisionModel:
        """The one model, for every task."""
        model, m = self.pooled.decision(point.fit.pooled), self.n_tasks
        return replace(
            model,
            coefficients=np.repeat(model.coefficients, m, axis=0),
            intercept=np.repeat(model.intercept, m, axis=0),
            present=np.ones((m, self.bounds.n_clusters), dtype=bool),
            centres=None if model.centres is None else np.repeat(model.centres[:1], m, axis=0),
        )

    def leave_one_out(self, point: Point) -> Array:
        scores = self.pooled.leave_one_out(point.fit.pooled)
        return scores if self.place is None else scores[self.place]

    def kept(self, point: Point) -> CommonKept:
        return CommonKept(self.pooled.decision(point.fit.pooled), self.bounds)


@dataclass(frozen=True)
class CommonKept:
    """What a fit in a common frame keeps for later tasks: the one model.

    Attributes
    ----------
    model : DecisionModel
        With one task.
    bounds : SizeBounds
        Of the fitted tasks.
    """

    model: DecisionModel
    bounds: SizeBounds

    @property
    def n_columns(self) -> int:
        model = self.model
        if model.kernel.kind == "precomputed":
            raise ValueError(
                'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
                'Fit with kernel="rbf", "linear" or a callable.'
            )
        return int(model.coefficients.shape[2] if model.rows is None else model.rows.shape[1])
