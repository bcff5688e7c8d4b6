"""All tasks in one frame: one model for all of them, found with all rows as one task.

A task may lack clusters there, and the levels of the tasks count, unless every task was moved by an offset of its own
before. Seen as a coupling this is Ω = 11ᵀ/m: the tasks' models are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core.criterion import indicators
from mtclust.core.labels import SizeBounds, counts_by_task
from mtclust.core.model import DecisionModel
from mtclust.problem.protocol import Method, Point

Array = NDArray[np.float64]

#: turns of labels and moves of a new task at most
_TURNS = 20


@dataclass(frozen=True)
class CommonFit:
    """A point of the one task that all rows are held as."""

    pooled: Point
    n_tasks: int

    @property
    def labels(self) -> Any:
        return self.pooled.labels

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
    moves : ndarray of shape (m, d), optional
        What was taken off the rows of every task, where tasks are aligned.
    few_rows : ndarray of shape (k, d), optional
        Some of the rows then, after they were moved.
    """

    pooled: Any
    offsets: NDArray[np.int64]
    bounds: SizeBounds
    moves: Array | None = None
    few_rows: Array | None = None

    method: Method = "relationship"

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
        return replace(pooled, fit=CommonFit(pooled, self.n_tasks))

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        return self.point(self.pooled.renamed(point.fit.pooled, new_ids[:1]))

    def decision(self, point: Point) -> DecisionModel:
        """The one model, for every task."""
        model, m = self.pooled.decision(point.fit.pooled), self.n_tasks
        model = replace(
            model,
            coefficients=np.repeat(model.coefficients, m, axis=0),
            intercept=np.repeat(model.intercept, m, axis=0),
            present=np.ones((m, self.bounds.n_clusters), dtype=bool),
            centres=None if model.centres is None else np.repeat(model.centres[:1], m, axis=0),
        )
        return model if self.moves is None else model.moved(self.moves)

    def leave_one_out(self, point: Point) -> Array:
        return self.pooled.leave_one_out(point.fit.pooled)

    def kept(self, point: Point) -> CommonKept:
        model, means = self.pooled.decision(point.fit.pooled), None
        if self.few_rows is not None:
            labels = labels_by(model, self.few_rows)
            z = indicators(labels, self.bounds.n_clusters)
            means = z.T @ self.few_rows / np.maximum(z.sum(axis=0), 1.0)[:, None]
        return CommonKept(model, self.bounds, self.moves, means)


def labels_by(model: DecisionModel, rows: Array) -> NDArray[np.int64]:
    """Clusters of rows by a model of one task."""
    return np.asarray(model.scores(rows, np.zeros(len(rows), dtype=np.int64)).argmax(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class CommonKept:
    """What a fit in a common frame keeps for later tasks: the one model.

    Attributes
    ----------
    model : DecisionModel
        With one task.
    bounds : SizeBounds
        Of the fitted tasks.
    moves : ndarray of shape (m, d), optional
        What is taken off the rows of the fitted tasks, where they are aligned.
    means : ndarray of shape (C, d), optional
        Of the clusters then, to which a new task is moved.
    """

    model: DecisionModel
    bounds: SizeBounds
    moves: Array | None = None
    means: Array | None = None

    @property
    def n_columns(self) -> int:
        model = self.model
        if model.kernel.kind == "precomputed":
            raise ValueError(
                'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
                'Fit with kernel="rbf", "linear" or a callable.'
            )
        return int(model.coefficients.shape[2] if model.rows is None else model.rows.shape[1])

    def model_of_new_task(self, rows: Any) -> DecisionModel:
        """The one model for the rows of a new task: where tasks are aligned, for rows that are moved as those are.

        The task is moved to where its rows lie closest to the means of the clusters that the model then puts them in:
        from where it is, or from where its mean is that of the others, in turns.
        """
        if self.means is None:
            return self.model
        rows = rows.toarray() if sp.issparse(rows) else rows
        centre = self.means.mean(axis=0)
        ends = [self._moved_to_means(rows, begun) for begun in (np.zeros_like(centre), rows.mean(axis=0) - centre)]
        # of two that are as good the nearer: the rows of one cluster would fit any
        near = [distance * len(rows) + float(np.mean(move**2)) for distance, move in ends]
        return self.model.moved(ends[int(np.argmin(near))][1][None, :])

    def _moved_to_means(self, rows: Array, move: Array) -> tuple[float, Array]:
        """Mean squared distance of rows to the means of their clusters, and the move that it ends with."""
        assert self.means is not None
        labels = None
        for _ in range(_TURNS):
            now = labels_by(self.model, rows - move)
            if labels is not None and np.array_equal(labels, now):
                break
            labels = now
            move = (rows - self.means[labels]).mean(axis=0)
        return float(np.mean((rows - move - self.means[labels_by(self.model, rows - move)]) ** 2)), move


def rows_in_frame(kept: Any, rows: Any, task_numbers: NDArray[np.int64]) -> Any:
    """Rows of the fitted tasks where their model compares them: moved, if tasks are aligned."""
    if not isinstance(kept, CommonKept) or kept.moves is None:
        return rows
    return (rows.toarray() if sp.issparse(rows) else rows) - kept.moves[task_numbers]
