r"""All rows of a fit, read in passes from any source as explicit features: where labels of a sample end.

A sample is searched exactly (:class:`mtclust.search.problem.Problem`); its models label all rows, and labels and
coupling descend from there. Models and coupling need only class sums. Under J a pass (batch step: models fixed, best
labels within the sizes; then the models of the new labels) lowers the value: on feasible labels J is a constant minus a
convex quadratic of the class sums. It cannot see that a row pulls its own model along, as exchanges of single rows can;
the more rows a task has, the less that is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core import Array, Labels
from mtclust.core.coupling import COUPLINGS, Solver, objective
from mtclust.core.criterion import PaperObjective
from mtclust.core.labels import SizeBounds, code_scale, offsets_of, proportional
from mtclust.core.matching import best_renaming
from mtclust.core.model import DecisionModel, left_out
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data
from mtclust.rows.passes import TaskLabels, prices_agree
from mtclust.rows.source import LocalRows, TableRows
from mtclust.search.problem import Coupled, Effort, Method, Point
from mtclust.search.recipe import ROUGH

#: the passes end when a smaller share of the rows changes its label and J falls by less than this share of
#: ``tol``: equal rows can trade places for ever without any gain
FEW_CHANGES = 1e-3
#: steps of the coupling between two passes, once the labels have settled and before
_COUPLING_STEPS = 8
_EARLY_STEPS = 2


@dataclass
class RowsFit:
    """Labels of every task, the factorised system of one coupling and the models that belong to them."""

    tasks: list[TaskLabels]
    at: Solver
    b: Array
    W: Array

    @property
    def labels(self) -> Any:
        """Labels of all rows, sorted by task; a handle to them where the rows lie elsewhere."""
        return type(self.tasks[0]).joined(self.tasks)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""
        return np.stack([task.counts for task in self.tasks])


class BatchLabels:
    """One pass over the rows at a time, which finds the best labels of all of them for given models.

    Passes go on until fewer than ``FEW_CHANGES`` of the rows move and the value falls by less than ``tol``; then
    clusters are renamed, where sizes count.
    """

    def __init__(self, problem: AllRows, point: Point, rng: np.random.Generator, effort: Effort) -> None:
        self.problem, self.point, self.effort = problem, point, effort
        self.tasks = list(range(problem.n_tasks)) if effort.tasks is None else list(effort.tasks)
        self.n_rows = int(problem.data.moments.sizes[self.tasks].sum())
        self.steps, self.least = (_EARLY_STEPS, effort.tol), effort.tol

    def improve(self) -> bool:
        if not self.tasks:  # labels stay as they are
            return False
        fit, data, criterion = self.point.fit, self.problem.data, self.problem.criterion
        models, constants = criterion.scoring(fit)
        changed = data.source.relabel(replace(data, constants=constants), models, fit.tasks, self.tasks)
        fit.b[self.tasks] = class_vectors(data, self.tasks, [fit.tasks[i] for i in self.tasks])
        fit.W = fit.at.models(fit.b)
        self.point.value = criterion.value_of_models(fit)
        steady = changed <= FEW_CHANGES * self.n_rows
        tol, most = self.effort.tol, _COUPLING_STEPS if steady and criterion.exchanges else _EARLY_STEPS
        if changed == 0 and self.problem.coupling.rank is not None:  # Ω alone is left to learn, an approximation
            tol, most = ROUGH * tol, int(ROUGH) * most
        self.steps, self.least = (most, tol), tol * (FEW_CHANGES if criterion.exchanges and not steady else 1.0)
        return changed > 0

    def once_more(self, before: float) -> bool:
        if not (self.tasks and self.problem.criterion.exchanges and self.problem.coupling.couples_labels):
            return False
        # names need the blocks of an inverse: they are looked at where the search would end
        rename_by_sums(self.problem.data, self.point, self.tasks, self.effort.stage)
        return before - self.point.value > self.least * abs(before)


@dataclass(frozen=True)
class AllRows(Coupled):
    """Rows with their moments, size bounds and coupling."""

    data: Data  # a source of rows, their moments, and the sizes clusters may have
    method: Method
    lambda1: Array  # (m,)
    lambda2: float
    features: FeatureMap | None = None  # how rows become features, for models of new rows
    criterion: PaperObjective = field(default_factory=PaperObjective)
    held: NDArray[np.bool_] | None = None  # True for rows whose labels stay: their clusters are known (N,)
    # class vectors (k × r × C) and cluster sizes (k × C) of the first k tasks, where their rows are gone
    gone: tuple[Array, Labels] | None = None
    label_step = BatchLabels

    @property
    def bounds(self) -> SizeBounds:
        return self.data.bounds

    @property
    def offsets(self) -> NDArray[np.int64]:
        return self.data.source.offsets

    @cached_property
    def coupling(self) -> Any:
        """How the tasks are coupled: the equations of the models, for every Z."""
        grams = self.data.moments.gram * (2.0 / self.data.moments.sizes)[:, None, None]  # 2S_i/n_i
        return COUPLINGS[self.method](grams, self.offsets, self.lambda1, self.lambda2)

    def with_bounds(self, bounds: SizeBounds) -> AllRows:
        return replace(self, data=replace(self.data, bounds=bounds))

    # -- points --------------------------------------------------------------------------------------------------

    def point(self, labels: Labels, Z: Array) -> Point:
        """The point of labels of all rows under a coupling matrix; class sums cost one pass."""
        C, tasks, known = self.n_clusters, [], 0 if self.gone is None else len(self.gone[0])
        for i, (a, b) in enumerate(zip(self.offsets[:-1], self.offsets[1:])):
            if i < known:
                task = TaskLabels.none(0, C, self.data.source.n_features)
                task.counts = cast(Any, self.gone)[1][i]
            else:
                task = cast(LocalRows, self.data.source).labelled(i, labels[a:b].astype(np.int32), C)
                task.held = None if self.held is None or not self.held[a:b].any() else self.held[a:b]
            tasks.append(task)
        return self._point(tasks, Z)

    def _point(self, tasks: list[TaskLabels], Z: Array) -> Point:
        solver, b = self.coupling.condition(Z), class_vectors(self.data, list(range(len(tasks))), tasks)
        if self.gone is not None:
            b[: len(self.gone[0])] = self.gone[0]
        fit = RowsFit(tasks, solver, b, solver.models(b))
        return Point(fit, self.criterion.value_of_models(fit))

    def carried_labels(self, positions: list[NDArray[np.int64]], labels: Labels, Z: Array) -> Point:
        """The point on all rows that continues labels of some rows of every task: all rows follow their models."""
        few = replace(self, data=rows_at(self.data, positions), held=None)
        models, constants = self.criterion.scoring(few.point(labels, Z).fit)
        return self._point(self.data.source.best_labels(replace(self.data, constants=constants), models), Z)

    def starts(self, positions: list[NDArray[np.int64]], n_init: int, seed: int) -> list[Labels]:
        """The best labels of some rows of every task that are found for it alone."""
        few, ridge = rows_at(self.data, positions), self.coupling.ridge
        bounds, source = few.bounds, cast(LocalRows, few.source)
        found = []
        for i in range(self.n_tasks):
            Phi = np.concatenate([few.moments.centred(i, block) for _, _, block in source.blocks(i)])
            starts = self.criterion.starts_of_task(
                Phi @ Phi.T, float(ridge[i]), bounds.lower[i], bounds.upper[i], n_init, seed
            )
            found.append(starts[0])
        return found

    def continued(self, point: Point, Z: Array) -> Point:
        """The labels of a point, which is not changed, under the bounds of this problem and a coupling matrix."""
        tasks = [task.copy() for task in point.fit.tasks]
        for i, task in enumerate(tasks):
            if not prices_agree(task.prices, task.counts, self.bounds.lower[i], self.bounds.upper[i]):
                task.prices = np.zeros_like(task.prices)  # they are of other bounds
        return self._point(tasks, Z)

    def closed_form(self, point: Point) -> Any:
        """The coupling matrix to try next for these models."""
        return self.coupling.closed_form(point.fit.W)

    def take(self, point: Point, Z: Any) -> bool:
        """Move to another coupling matrix if that lowers J, which is what its closed form is of."""
        solver, fit = self.coupling.condition(Z), point.fit
        W = solver.models(fit.b)
        if objective(fit.b, W) >= objective(fit.b, fit.W):
            return False
        fit.at, fit.W = solver, W
        point.value = self.criterion.value_of_models(fit)
        return True

    def class_means(self, point: Point) -> Array:
        moments, counts = self.data.moments, point.fit.counts
        a, rest = code_scale(self.n_clusters)
        # b = (2/n)(a·class sums − rest·total): back to class means
        scaled = 0.5 * moments.sizes[:, None, None] * point.fit.b
        means = (scaled + rest * moments.total[:, :, None]) / (a * np.maximum(counts, 1))[:, None, :]
        return np.asarray(means.transpose(0, 2, 1))

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        """Other names (m × C) of the clusters, in place: labels of very many rows are not copied."""
        fit = point.fit
        for i, ids in enumerate(new_ids):
            fit.tasks[i].rename(ids)
            for table in (fit.b, fit.W):
                table[i][:, ids] = table[i].copy()
        return point

    # -- what is kept --------------------------------------------------------------------------------------------

    def leave_one_out(self, point: Point) -> Array:
        """Scores (N × C) of all rows, each from models without it, by its leverage (2/n_i)φ_jᵀQ_iφ_j."""
        fit, moments, offsets = point.fit, self.data.moments, self.offsets
        C, blocks = self.n_clusters, point.fit.at.blocks
        W, (scale, constants) = self.criterion.left_out_weights(fit)
        # the mean code of every task, where features are centred
        means = (fit.counts / moments.sizes[:, None]) @ self.criterion.codes(np.arange(C), C)
        centred = not np.any(moments.total)
        result = np.empty((int(offsets[-1]), C))
        for task in range(self.n_tasks):
            first, n = int(offsets[task]), int(moments.sizes[task])
            labels = np.asarray(fit.tasks[task].labels, dtype=np.int64)
            for begin, end, block in cast(LocalRows, self.data.source).blocks(task):
                codes = self.criterion.codes(labels[begin:end], C)
                Phi = moments.centred(task, self.data.projected(block))
                leverages = np.einsum("nr,nr->n", Phi @ blocks[task], Phi) * (2.0 / n)
                scores = left_out(codes, Phi @ W[task], leverages, means[task] if centred else None, n)
                scores = scores * scale[task] + constants[task]
                result[first + begin : first + end] = np.where(self.bounds.present[task], scores, -np.inf)
        return result

    def decision(self, point: Point) -> DecisionModel:
        """The model that scores new rows."""
        assert self.features is not None
        models, constants = self.criterion.scoring(point.fit)
        model = self.features.decision(self.data.moments, self.data.source.shift, self.bounds.present, models)
        return replace(model, intercept=model.intercept + constants)


def rows_at(data: Data, positions: list[NDArray[np.int64]]) -> Data:
    """These rows of every task, projected, with the size bounds in proportion."""
    wanted = np.array([len(part) for part in positions])
    source = TableRows(data.projected(np.concatenate(data.source.take_all(positions))), offsets_of(wanted))
    centre = not np.any(data.moments.total) and bool(np.any(data.moments.mean))
    of_sample = source.moments(centre, data.moments.scale or None)
    return Data(source, of_sample, proportional(data.bounds, data.moments.sizes, wanted))


def class_vectors(data: Data, which: list[int], tasks: list[TaskLabels]) -> Array:
    """b_i of some tasks, whose labels are given, shape (k, r, C)."""
    moments = data.moments
    a, rest = code_scale(len(tasks[0].prices))
    counts, sums = np.stack([task.counts for task in tasks]), data.projected(np.stack([task.sums for task in tasks]))
    centred = (sums - counts[:, :, None] * moments.mean[which, None]) / moments.root_scale
    per_row = (2.0 / moments.sizes[which])[:, None, None]
    return per_row * (a * centred.transpose(0, 2, 1) - rest * moments.total[which][:, :, None])


def rename_by_sums(data: Data, point: Point, tasks: list[int], stage: str) -> None:
    """Rename the clusters of one task at a time where that lowers J: a matching of its b to what the others ask for."""
    fit = point.fit
    renamed = False
    for i in tasks:
        b_i, counts = fit.b[i], fit.tasks[i].counts
        asked_for = fit.W[i] - fit.at.blocks[i] @ b_i
        new_ids = best_renaming(b_i.T @ asked_for, data.bounds, i, counts)
        if fit.tasks[i].held is not None or np.array_equal(new_ids, np.arange(len(new_ids))):
            continue
        b = fit.b.copy()
        b[i][:, new_ids] = b_i
        W = fit.at.models(b)
        value = objective(b, W)
        if value >= point.value:
            continue
        fit.b, fit.W, point.value, renamed = b, W, value, True
        fit.tasks[i].rename(new_ids)
    if renamed:
        point.record(stage, "rename")
