r"""Descent in labels and coupling over the rows of a source: J never rises.

A round is one pass over the rows (batch step: models fixed, best labels within the sizes; then the models of the new
labels), steps of the coupling in closed form and a renaming of whole clusters, which need no pass. On feasible labels J
is a constant minus a convex quadratic of the class sums, so the batch step lowers it. It cannot see that a row pulls
its own model along; the polish can: among the few rows for which that could matter every exchange of two is tried
exactly, and where none is left the labels are certified optimal for single exchanges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import allowed_permutations, best_relabelling
from mtclust.core.coupling import BaseCoupling, Solver, objective, whitened
from mtclust.core.labels import code_scale
from mtclust.primal.labelling import TaskLabels, move_sums
from mtclust.primal.near import candidates
from mtclust.primal.rows import Data, Moments, NearRows
from mtclust.problem.acceleration import Accelerator
from mtclust.problem.pool import EXCHANGE_TOLERANCE
from mtclust.problem.protocol import Effort, Point

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


def point_of_labels(data: Data, solver: Solver, tasks: list[TaskLabels]) -> Point:
    """The point of given labels under the coupling of a solver."""
    b = class_vectors(data.moments, list(range(len(tasks))), tasks)
    W = solver.models(b)
    return Point(FeatureFit(tasks, solver, b, W), objective(b, W))


def descend(data: Data, coupling: BaseCoupling, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
    """Rounds until fewer than ``FEW_CHANGES`` of the rows move and J falls by less than ``tol``, then the polish.

    In place; only the tasks of the effort change their labels.
    """
    fit, tol, stage = point.fit, effort.tol, effort.stage
    tasks = list(range(data.n_tasks)) if effort.tasks is None else list(effort.tasks)
    n_rows = int(data.moments.sizes[tasks].sum())
    point.converged = False
    point.record(stage, "start")
    for _ in range(effort.max_iter):
        before = point.value
        changed = data.source.relabel(data, fit.W, fit.tasks, tasks)
        fit.b[tasks] = class_vectors(data.moments, tasks, [fit.tasks[i] for i in tasks])
        _refresh(point)
        point.record(stage, "labels")
        steady = changed <= FEW_CHANGES * n_rows
        if effort.learn:
            coupling_steps(coupling, point, tol, stage, _COUPLING_STEPS if steady else _EARLY_STEPS)
        point.n_iter += 1
        least = tol * abs(before) * (1.0 if steady else _STALLED)
        if before - point.value > least:
            continue
        # names need the blocks of an inverse: they are looked at where the search would end
        if coupling.couples_labels:
            _rename(data, point, tasks, stage)
        if before - point.value <= least:
            point.converged = True
            break
    if effort.exact:
        point.certified = polish(data, point, tasks, rng)
        point.record(stage, "polish")
        if effort.learn and not point.certified:
            coupling_steps(coupling, point, tol, stage)
    return point


def _refresh(point: Point) -> None:
    fit = point.fit
    fit.W = fit.solver.models(fit.b)
    point.value = objective(fit.b, fit.W)


def coupling_steps(coupling: BaseCoupling, point: Point, tol: float, stage: str, most: int = _COUPLING_STEPS) -> None:
    """Steps of the coupling while they lower J, accelerated where that pays; no pass over the rows."""
    accelerator = Accelerator()
    for _ in range(most):
        before = point.value
        target = coupling.closed_form(point.fit.W)
        if isinstance(target, np.ndarray) and not _take(coupling, point, accelerator.propose(point.Z, target)):
            accelerator.restart()
        if point.value == before and not _take(coupling, point, target):
            break
        if before - point.value <= tol * abs(before):
            break
    point.record(stage, "coupling")


def _take(coupling: BaseCoupling, point: Point, Z: Any) -> bool:
    """Move to another coupling if that lowers J."""
    solver, fit = coupling.condition(Z), point.fit
    W = solver.models(fit.b)
    value = objective(fit.b, W)
    if value >= point.value:
        return False
    fit.solver, fit.W, point.value = solver, W, value
    return True


def _rename(data: Data, point: Point, tasks: list[int], stage: str) -> None:
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
    near_boundary = data.source.near_boundary(data, fit, factors)
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
        _refresh(point)
    return complete and n_exchanges == 0
