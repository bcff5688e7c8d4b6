r"""The label step over the rows of a source: passes, names and polish.

Under J a pass (batch step: models fixed, best labels within the sizes; then the models of the new labels) lowers the
value: on feasible labels J is a constant minus a convex quadratic of the class sums. It cannot see that a row pulls
its own model along; the polish can: among the few rows for which that could matter every exchange of two is tried
exactly, and where none is left the labels are certified optimal for single exchanges. Where rows are so many that only
some of them are searched there is no polish: it would lower J by about 10⁻⁵ of its value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import allowed_permutations, best_relabelling
from mtclust.core.coupling import Solver, objective, whitened
from mtclust.core.labels import code_scale
from mtclust.problem.pool import EXCHANGE_TOLERANCE
from mtclust.problem.protocol import Effort, Point
from mtclust.rows.moments import Data, Moments, NearRows
from mtclust.rows.passes import TaskLabels, candidates, move_sums
from mtclust.rows.source import LocalRows

if TYPE_CHECKING:
    from mtclust.problem.features import FeatureProblem

Array = NDArray[np.float64]

#: the passes end when a smaller share of the rows changes its label
FEW_CHANGES = 1e-3
#: or when J falls by less than this share of ``tol``: equal rows can trade places for ever without any gain
_STALLED = 1e-3
#: steps of the coupling between two passes, once the labels have settled and before
_COUPLING_STEPS = 8
_EARLY_STEPS = 2


@dataclass
class FeatureFit:
    """Labels of every task, the factorised system of one coupling and the models that belong to them."""

    tasks: list[TaskLabels]
    solver: Solver
    b: Array
    W: Array

    @property
    def labels(self) -> Any:
        """Labels of all rows, sorted by task; a handle to them where the rows lie elsewhere."""
        return type(self.tasks[0]).joined(self.tasks)

    @property
    def Z(self) -> Array:
        return self.solver.Z

    @property
    def counts(self) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""
        return np.stack([task.counts for task in self.tasks])


def class_vector(moments: Moments, task: int, current: TaskLabels) -> Array:
    """b_i = 2Φ_iᵀY_i/n_i (r × C) from raw class sums."""
    return class_vectors(moments, [task], [current])[0]


def class_vectors(moments: Moments, which: list[int], tasks: list[TaskLabels]) -> Array:
    """b_i of some tasks, whose labels are given, shape (k, r, C)."""
    a, rest = code_scale(len(tasks[0].prices))
    counts, sums = np.stack([task.counts for task in tasks]), np.stack([task.sums for task in tasks])
    centred = (sums - counts[:, :, None] * moments.mean[which, None]) / moments.root_scale
    per_row = (2.0 / moments.sizes[which])[:, None, None]
    return per_row * (a * centred.transpose(0, 2, 1) - rest * moments.total[which][:, :, None])


def best_labels(data: Data, W: Array, prices: list[Array] | None = None) -> list[TaskLabels]:
    """The best labels under given models; costs one pass. ``prices`` (of a sample) make it quicker."""
    return data.source.best_labels(data, W, prices)


def scored_by(data: Data, offset: Array | None) -> Data:
    """The same rows, whose scores get constants of their own."""
    return data if offset is None else replace(data, moments=replace(data.moments, offset=offset))


class BatchLabels:
    """One pass over the rows at a time, which finds the best labels of all of them for given models.

    Passes go on until fewer than ``FEW_CHANGES`` of the rows move and the value falls by less than ``tol``; then
    clusters are renamed and, where sizes count, the polish follows.
    """

    def __init__(self, problem: FeatureProblem, point: Point, rng: np.random.Generator, effort: Effort) -> None:
        self.problem, self.point, self.rng, self.effort = problem, point, rng, effort
        self.tasks = list(range(problem.n_tasks)) if effort.tasks is None else list(effort.tasks)
        self.n_rows = int(problem.data.moments.sizes[self.tasks].sum())
        self.steps, self.least = (_EARLY_STEPS, effort.tol), effort.tol

    def improve(self) -> bool:
        if not self.tasks:  # labels stay as they are
            return False
        fit, data, criterion = self.point.fit, self.problem.data, self.problem.criterion
        models, offset = criterion.scoring(fit)
        changed = data.source.relabel(scored_by(data, offset), models, fit.tasks, self.tasks)
        fit.b[self.tasks] = class_vectors(data.moments, self.tasks, [fit.tasks[i] for i in self.tasks])
        fit.W = fit.solver.models(fit.b)
        self.point.value = criterion.value_of_models(fit)
        steady = changed <= FEW_CHANGES * self.n_rows
        self.steps = (_COUPLING_STEPS if steady and criterion.exchanges else _EARLY_STEPS), self.effort.tol
        self.least = self.effort.tol * (_STALLED if criterion.exchanges and not steady else 1.0)
        return changed > 0

    def once_more(self, before: float) -> bool:
        # names need the blocks of an inverse: they are looked at where the search would end
        if not (self.problem.couples_labels and self.problem.criterion.exchanges):
            return False
        rename(self.problem.data, self.point, self.tasks, self.effort.stage)
        return before - self.point.value > self.least * abs(before)

    def finish(self) -> bool:
        if not (self.effort.exact and self.problem.criterion.exchanges and self.problem.is_searched_whole):
            return False
        self.point.certified = polish(self.problem.data, self.point, self.tasks, self.rng)
        self.point.record(self.effort.stage, "polish")
        return not self.point.certified


def rename(data: Data, point: Point, tasks: list[int], stage: str) -> None:
    """Rename the clusters of one task at a time where that lowers J: a matching of its b to what the others ask for."""
    fit = point.fit
    renamed, blocks = False, fit.solver.blocks()
    profits = fit.b.transpose(0, 2, 1) @ (fit.W - blocks @ fit.b)
    as_they_are = np.all(profits <= np.einsum("icc->ic", profits)[:, :, None], axis=(1, 2))
    for i in tasks:
        if (as_they_are[i] and not renamed) or fit.tasks[i].held is not None:  # every cluster has its name already
            continue
        b_i = fit.b[i]
        asked_for = fit.W[i] - blocks[i] @ b_i
        counts = fit.tasks[i].counts
        new_ids = best_relabelling(b_i.T @ asked_for, allowed_permutations(data.bounds, i, counts))
        if np.array_equal(new_ids, np.arange(len(new_ids))):
            continue
        b = fit.b.copy()
        b[i][:, new_ids] = b_i
        W = fit.solver.models(b)
        value = objective(b, W)
        if value >= point.value:
            continue
        fit.b, fit.W, point.value, renamed = b, W, value, True
        fit.tasks[i].rename(new_ids)
    if renamed:
        point.record(stage, "rename")


def polish(data: Data, point: Point, tasks: list[int], rng: np.random.Generator) -> bool:
    """Exchange rows near the boundaries one by one, exactly; one pass. True if no task had an exchange left."""
    if data.bounds.n_clusters == 1 or data.moments.scale == 0:
        return True
    fit = point.fit
    certified = True
    factors = dict(zip(tasks, whitened(fit.solver.blocks()[tasks])))
    near_boundary = cast(LocalRows, data.source).near_boundary(data, fit, factors)  # rows are few, and at hand
    for i, factor in factors.items():
        certified &= _polish_task(data, point, i, factor, near_boundary(i), rng)
    return certified


def _polish_task(data: Data, point: Point, i: int, factor: Array, near: NearRows, rng: np.random.Generator) -> bool:
    from mtclust.core import compiled

    fit, moments, n = point.fit, data.moments, int(data.moments.sizes[i])
    task = fit.tasks[i]
    a, rest = code_scale(data.bounds.n_clusters)
    keep, complete = candidates(moments, i, factor, near, data.bounds.n_clusters)
    if task.held is not None:
        keep = keep[~task.held[near.positions[keep]]]
    if len(keep) == 0:
        return complete
    positions, rows = near.positions[keep], near.rows[keep]
    Phi = moments.centred(i, rows)
    Psi = np.sqrt(2.0 / n) * (Phi @ factor)
    M = (-2.0 / n) * (Psi @ Psi.T)
    M.flat[:: len(M) + 1] += 2.0 / n
    before = near.labels[keep]
    labels = before.astype(np.int64)
    # in the order of the other callers' arrays: for another one the exchanges would be compiled again
    P = np.ascontiguousarray((-2.0 / n) * (Phi @ fit.W[i]).T - (2.0 / n) * rest)
    P[labels, np.arange(len(labels))] += (2.0 / n) * a
    seed = rng.integers(2**63, size=1, dtype=np.uint64)
    tolerance = EXCHANGE_TOLERANCE * float(M.diagonal().mean())
    lower, upper = data.bounds.lower[i], data.bounds.upper[i]
    n_exchanges, _ = compiled.exchange(M, P, labels, task.counts, lower, upper, tolerance, seed)
    if n_exchanges:
        after = labels.astype(np.int32)
        move_sums(rows, before, after, task.sums)
        task.put(positions, before, after)
        fit.b[i] = class_vector(moments, i, task)
        fit.W = fit.solver.models(fit.b)
        point.value = objective(fit.b, fit.W)
    return complete and n_exchanges == 0
