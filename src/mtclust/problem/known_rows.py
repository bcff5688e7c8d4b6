"""Descents in which rows whose cluster is known stay where they are.

With kernel matrices a criterion is told which rows of a task may move. With explicit features a pass goes over the
other rows alone, within the sizes that are left for them, and class sums count all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Conditioned
from mtclust.core.known import known_counts, placed
from mtclust.core.labels import SizeBounds, offsets_of
from mtclust.primal.labelling import TaskLabels, move_sums
from mtclust.primal.rows import Data, RowSource, block_rows
from mtclust.primal.sources import LocalRows
from mtclust.primal.systems import objective
from mtclust.problem.criteria import Criterion, TaskTerm
from mtclust.problem.feature_descent import FEW_CHANGES, FeatureFit, class_vectors, coupling_steps
from mtclust.problem.feature_predictability import decision_models, scored_by, value_of
from mtclust.problem.features import FeatureProblem
from mtclust.problem.protocol import Effort, Point, Start

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: what a name other than its own would cost a cluster of a task with known rows
_NEVER = 1e12


@dataclass(frozen=True)
class _KnownTerm:
    """A criterion seen by one task, some rows of which do not move."""

    term: TaskTerm
    known: Labels

    @property
    def linear_term(self) -> Array | None:
        return self.term.linear_term

    def value(self, labels: Labels) -> float:
        return self.term.value(labels)

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        labels[:] = placed(labels, self.known, lower, upper)
        return self.term.refine(labels, lower, upper, seed, np.flatnonzero(self.known < 0))

    def cost_of_names(self, labels: Labels) -> Array:
        cost = self.term.cost_of_names(labels)
        return cost if np.all(self.known < 0) else np.where(np.eye(len(cost), dtype=bool), cost, _NEVER)


@dataclass(frozen=True)
class KnownRows:
    """A criterion under which known rows do not move.

    Attributes
    ----------
    criterion : Criterion
    known : ndarray of shape (N,)
        Clusters of the rows sorted by task, −1 where unknown.
    """

    criterion: Criterion
    known: Labels

    @property
    def name(self) -> str:
        return self.criterion.name

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        offsets = at.coupling.offsets
        own = self.known[int(offsets[task]) : int(offsets[task + 1])]
        return _KnownTerm(self.criterion.term(at, task, codes, alpha), own)

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        return self.criterion.codes(labels, n_clusters)

    def value(self, at: Conditioned, codes: Array) -> float:
        return self.criterion.value(at, codes)

    def closed_form(self, at: Conditioned, codes: Array) -> Array:
        return self.criterion.closed_form(at, codes)

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        return self.criterion.decision_weights(at, codes)

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Start]:
        return self.criterion.starts_of_task(kernel, ridge, lower, upper, n_init, seed)


@dataclass(frozen=True)
class _SomeRows(LocalRows):
    """Some rows of every task of a source."""

    source: RowSource
    positions: list[NDArray[np.int64]]
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        where = self.positions[task]
        step = block_rows(self.n_features, 8)
        for begin in range(0, len(where), step):
            part = where[begin : begin + step]
            yield begin, begin + len(part), self.source.take(task, part)

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        return self.source.take(task, self.positions[task][positions])


def descend_with_known(problem: FeatureProblem, point: Point, known: Labels, effort: Effort) -> Point:
    """Passes over the rows that are not known while the value falls; known rows are in place already."""
    offsets, data, fit = problem.offsets, problem.data, point.fit
    parts = [known[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
    free = [np.flatnonzero(part < 0) for part in parts]
    counts = known_counts(known, offsets, problem.n_clusters)
    bounds = SizeBounds(np.maximum(data.bounds.lower - counts, 0), np.maximum(data.bounds.upper - counts, 0))
    begins = offsets_of([len(part) for part in free])
    rest = Data(_SomeRows(data.source, free, begins), data.moments, bounds)
    tasks = [_without_known(data.source, i, fit.tasks[i], free[i], parts[i]) for i in range(problem.n_tasks)]
    learn, n_free = effort.learn and problem.method != "independent", sum(map(len, free))
    which = [i for i in range(problem.n_tasks) if len(free[i])]
    point.converged = False
    point.record(effort.stage, "start")
    for _ in range(effort.max_iter):
        before = point.value
        best = fit.tasks, fit.b, fit.W, fit.solver
        if problem.criterion == "E":
            models, offset = decision_models(fit)
            changed = rest.source.relabel(scored_by(rest, offset), models, tasks, which)
        else:
            changed = rest.source.relabel(rest, fit.W, tasks, which)
        fit.tasks = [_joined(own, *pair) for own, pair in zip(best[0], zip(tasks, free, strict=True))]
        _add_known_sums(data.source, fit, parts)
        fit.b = class_vectors(data.moments, list(range(problem.n_tasks)), fit.tasks)
        fit.W = fit.solver.models(fit.b)
        point.value = _value(problem, fit)
        if point.value > before:  # rows that cannot move hold up a step that would gain with them
            fit.tasks, fit.b, fit.W, fit.solver = best
            point.value = before
            point.converged = True
            break
        if learn:
            coupling_steps(problem.system, point, effort.tol, effort.stage)
            point.value = _value(problem, fit)
        point.record(effort.stage, "labels")
        point.n_iter += 1
        if changed <= FEW_CHANGES * n_free or before - point.value <= effort.tol * abs(before):
            point.converged = True
            break
    return point


def _value(problem: FeatureProblem, fit: FeatureFit) -> float:
    return value_of(fit) if problem.criterion == "E" else objective(fit.b, fit.W)


def _without_known(source: RowSource, task: int, whole: TaskLabels, free: Labels, known: Labels) -> TaskLabels:
    """The labels of the other rows of a task, with class sums of their own."""
    sums = whole.sums.copy()
    mine = np.flatnonzero(known >= 0)
    if len(mine):
        gone = TaskLabels(known[mine].astype(np.int32), whole.prices, np.zeros_like(sums))
        move_sums(source.take(task, mine), np.full(len(mine), -1, dtype=np.int32), gone.labels, gone.sums)
        sums -= gone.sums
    return TaskLabels(whole.labels[free].copy(), whole.prices.copy(), sums)


def _joined(whole: TaskLabels, rest: TaskLabels, free: Labels) -> TaskLabels:
    labels = whole.labels.copy()
    labels[free] = rest.labels
    return TaskLabels(labels, rest.prices.copy(), rest.sums.copy())


def _add_known_sums(source: RowSource, fit: FeatureFit, parts: list[Labels]) -> None:
    for task, (own, known) in enumerate(zip(fit.tasks, parts)):
        mine = np.flatnonzero(known >= 0)
        if len(mine):
            none = np.full(len(mine), -1, dtype=np.int32)
            move_sums(source.take(task, mine), none, known[mine].astype(np.int32), own.sums)


def with_known_rows(problem: Any, known: Labels) -> Any:
    """A problem with kernel matrices whose descents leave known rows, and no others, where they are."""
    criterion = problem.criterion
    plain = criterion.criterion if isinstance(criterion, KnownRows) else criterion
    return replace(problem, criterion=KnownRows(plain, known))
