"""Rows held as explicit features, read from any source: search on few of them, finish on all.

A pass over the rows finds the best labels of all of them for given models; models and coupling need only class sums
(:mod:`mtclust.problem.feature_descent`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.class_means import ClassMeans
from mtclust.core.coupling import COUPLINGS, SharedFeatures, Solver, objective
from mtclust.core.labels import SizeBounds, offsets_of
from mtclust.core.model import DecisionModel
from mtclust.problem.criteria import Criterion, PaperObjective
from mtclust.problem.feature_descent import BatchLabels, FeatureFit, best_labels, class_vectors, scored_by
from mtclust.problem.protocol import BaseProblem, Method, Point, SearchOptions, Start
from mtclust.problem.sample import first_models, rows_at, sample_of
from mtclust.rows.boundary import prices_agree
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data, Moments
from mtclust.rows.passes import TaskLabels
from mtclust.rows.source import LocalRows
from mtclust.util.messages import counted

Array = NDArray[np.float64]

#: descents of the tasks alone stop at this multiple of ``tol``
_ROUGH = 10.0


@dataclass(frozen=True)
class FeatureProblem(BaseProblem):
    """Rows with their moments, size bounds and coupling.

    Attributes
    ----------
    data : Data
        A source of rows, their moments, and the sizes clusters may have.
    method : {"relationship", "features", "independent"}
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    features : FeatureMap, optional
        How rows become features, for models of new rows.
    exact_search : bool
        Whether the descents before the last try single exchanges: not on the few rows of a search.
    criterion : Criterion
    held : ndarray of shape (N,), optional
        True for rows whose labels stay: their clusters are known.
    """

    data: Data
    method: Method
    lambda1: Array
    lambda2: float
    features: FeatureMap | None = None
    exact_search: bool = True
    criterion: Criterion = field(default_factory=PaperObjective)
    held: NDArray[np.bool_] | None = None
    _last: list[tuple[Array, Solver]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def bounds(self) -> SizeBounds:
        return self.data.bounds

    @property
    def offsets(self) -> NDArray[np.int64]:
        return self.data.source.offsets

    #: labels are improved in passes over the rows
    label_step = BatchLabels

    @cached_property
    def coupling(self) -> Any:
        """How the tasks are coupled: the equations of the models, for every Z."""
        return COUPLINGS[self.method].of(self.data.moments.normalised_gram, self.offsets, self.lambda1, self.lambda2)

    def at(self, Z: Array) -> Solver:
        """The factorised system of one coupling matrix; the last one is kept, for restarts share it."""
        last = self._last[0] if self._last else None  # read once: restarts in several threads share this
        if last is None or last[0] is not Z:
            last = Z, self.coupling.condition(Z)
            self._last[:] = [last]
        return last[1]

    # -- other problems ------------------------------------------------------------------------------------------

    def alone(self) -> FeatureProblem:
        return self._alone if self.coupling.learns else self

    @cached_property
    def _alone(self) -> FeatureProblem:
        return replace(self, method="independent")

    def restrict(self, tasks: NDArray[np.int64]) -> FeatureProblem:
        weight = self.lambda2 * self.n_tasks / len(tasks)
        return replace(self, data=_restricted(self.data, tasks), lambda1=self.lambda1[tasks], lambda2=weight)

    def with_bounds(self, bounds: SizeBounds) -> FeatureProblem:
        return replace(self, data=replace(self.data, bounds=bounds))

    def few(self, rng: np.random.Generator) -> FeatureProblem:
        sample, sampled = sample_of(self.data, rng)
        return replace(self, data=sample, exact_search=False) if sampled else self

    def carried(self, few: Any, point: Point) -> Point:
        if few.data.source is self.data.source:
            return point
        models, offset = self.criterion.scoring(point.fit)
        # prices of the sample are near those of all rows; the models are the same functions
        found = best_labels(scored_by(self.data, offset), models, [task.prices for task in point.fit.tasks])
        other = self.point(found, point.Z)
        other.n_iter = point.n_iter
        return other

    def carried_labels(self, positions: list[NDArray[np.int64]], labels: NDArray[np.int64], Z: Array) -> Point:
        """The point on all rows that continues labels of some rows of every task."""
        few = replace(self, data=rows_at(self.data, positions), exact_search=False)
        parts = zip(few.offsets[:-1], few.offsets[1:])
        # D of another form is in other coordinates
        Z = few.uncoupled() if self.coupling.of_features else Z
        return self.carried(few, few.point_of([Start(labels[a:b]) for a, b in parts], Z))

    def proposing(self, starts: list[list[Start]]) -> FeatureProblem:
        return self  # the polish knows no proposals

    # -- points --------------------------------------------------------------------------------------------------

    def starts(self, options: SearchOptions, rng: np.random.Generator, Z: Array | None = None) -> list[list[Start]]:
        if Z is not None:
            assert isinstance(self.coupling, SharedFeatures)
            models = first_models(self.ridge, self.data, options.n_init, 1, rng, self.coupling.gain(Z))
            return [[Start(None, model=W) for W in task] for task in models]
        n_init = options.single_task_n_init or options.n_init
        models = first_models(self.ridge, self.data, n_init, min(options.n_seeds, options.n_init, n_init), rng)
        alone = self.alone()
        rounds = range(max(len(task) for task in models))
        found: list[list[Start]] = []
        for k in counted(rounds, "clustering alone: start", len(rounds)):
            point = alone.point_of(
                [Start(None, model=task[min(k, len(task) - 1)]) for task in models], alone.uncoupled()
            )
            effort = options.effort("single tasks", tol=options.tol * _ROUGH, learn=False, exact=self.exact_search)
            found.append(alone.starts_of(alone.descend(point, rng, effort)))
        return [
            sorted((start[i] for start in found[: len(models[i])]), key=lambda start: start.value)
            for i in range(self.n_tasks)
        ]

    def point(self, tasks: list[TaskLabels], Z: Array) -> Point:
        """The point of given labels under a coupling matrix."""
        solver, b = self.at(Z), class_vectors(self.data.moments, list(range(len(tasks))), tasks)
        fit = FeatureFit(tasks, solver, b, solver.models(b))
        return Point(fit, self.criterion.value_of_models(fit))

    def continued(self, point: Point, Z: Array) -> Point:
        tasks = [task.copy() for task in point.fit.tasks]
        for i, task in enumerate(tasks):
            if not prices_agree(task.prices, task.counts, self.bounds.lower[i], self.bounds.upper[i]):
                task.prices = np.zeros_like(task.prices)  # they are of other bounds
        return self.point(tasks, Z)

    def point_of(self, starts: Sequence[Start], Z: Array) -> Point:
        if any(start.labels is None for start in starts):
            models = [start.model for start in starts if start.model is not None]
            return self.point(best_labels(self.data, np.stack(models)), Z)
        return self.point([self._labels_of(i, start) for i, start in enumerate(starts)], Z)

    def _labels_of(self, task: int, start: Start) -> TaskLabels:
        """Labels with their class sums, which cost one pass over the task."""
        assert start.labels is not None
        labels, C = start.labels.astype(np.int32), self.n_clusters
        prices = np.zeros(C) if start.prices is None else start.prices.copy()
        held = None if self.held is None else self.held[self.offsets[task] : self.offsets[task + 1]]
        held = None if held is None or not held.any() else held
        return TaskLabels(labels, prices, self.data.source.class_sums(task, labels, C), held)

    def seeded(self, task: int, start: Start, Z: Array) -> Point:
        assert start.model is not None
        W = np.broadcast_to(start.model, (self.n_tasks, *start.model.shape))
        return self.point(best_labels(self.data, W), Z)

    def starts_of(self, point: Point) -> list[Start]:
        fit = point.fit
        gains = np.einsum("irc,irc->i", fit.b, fit.W)
        return [
            Start(task.labels.astype(np.int64), -0.5 * float(gain), W.copy(), task.prices.copy())
            for task, gain, W in zip(fit.tasks, gains, fit.W)
        ]

    def closed_form(self, point: Point) -> Any:
        """The coupling matrix to try next for these models."""
        return self.coupling.closed_form(point.fit.W)

    def take(self, point: Point, Z: Any) -> bool:
        """Move to another coupling matrix if that lowers J, which is what its closed form is of."""
        solver, fit = self.coupling.condition(Z), point.fit
        W = solver.models(fit.b)
        if objective(fit.b, W) >= objective(fit.b, fit.W):
            return False
        fit.solver, fit.W = solver, W
        point.value = self.criterion.value_of_models(fit)
        return True

    def class_counts(self, point: Point) -> NDArray[np.int64]:
        return point.fit.counts

    def class_means(self, point: Point) -> ClassMeans:
        counts = self.class_counts(point)
        sums = np.stack([task.sums for task in point.fit.tasks])
        own = self.data.moments
        means = (sums - counts[:, :, None] * own.mean[:, None]) / own.root_scale
        return ClassMeans(counts, coordinates=means / np.maximum(counts, 1)[:, :, None])

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        """In place: labels of very many rows are not copied."""
        fit = point.fit
        for i, ids in enumerate(new_ids):
            fit.tasks[i].rename(ids)
            for table in (fit.b, fit.W):
                table[i][:, ids] = table[i].copy()
        return point

    # -- what is kept --------------------------------------------------------------------------------------------

    def leave_one_out(self, point: Point) -> Array:
        from mtclust.problem.leave_one_out import scores_with_features

        return scores_with_features(self, point)

    def kept(self, point: Point) -> Any:
        from mtclust.problem.kept import FeatureKept

        assert self.features is not None
        own = self.data.moments
        return FeatureKept(
            self.features, own, point.fit.b, self.class_counts(point), self.bounds, self.method, self.lambda1,
            self.lambda2, not np.any(own.total), self.criterion.name,
        )  # fmt: skip

    def decision(self, point: Point) -> DecisionModel:
        """The model that scores new rows."""
        assert self.features is not None
        models, offset = self.criterion.scoring(point.fit)
        model = self.features.decision(self.data.moments, self.data.source.shift, self.bounds.present, models)
        return model if offset is None else replace(model, intercept=model.intercept + offset)


@dataclass(frozen=True)
class _SomeTasks(LocalRows):
    """Some tasks of rows at hand."""

    source: LocalRows
    tasks: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        return self.source.blocks(int(self.tasks[task]))

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        return self.source.take(int(self.tasks[task]), positions)

    def whole(self, task: int) -> NDArray[Any] | None:
        return self.source.whole(int(self.tasks[task]))


def _restricted(data: Data, tasks: NDArray[np.int64]) -> Data:
    """Some of the tasks."""
    all_tasks = data.moments
    part = Moments(
        all_tasks.sizes[tasks], all_tasks.mean[tasks], all_tasks.total[tasks], all_tasks.gram[tasks], all_tasks.scale,
        all_tasks.largest[tasks],
    )  # fmt: skip
    offsets = offsets_of(part.sizes)
    source = cast(LocalRows, data.source)  # the search runs on few rows, which are at hand
    return Data(_SomeTasks(source, tasks, offsets), part, data.bounds.restrict(tasks))
