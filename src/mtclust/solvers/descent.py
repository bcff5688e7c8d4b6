"""Descent of the objective in labels and coupling together: swaps, permutations, transfer, closed-form steps.

Every step is exact and is taken only if the objective falls, so the history never rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.alignment import allowed_permutations, best_relabelling
from mtclust.assignment import assign
from mtclust.coupling import Conditioned, Coupling, Relationship
from mtclust.labels import SizeBounds, label_codes
from mtclust.solvers.acceleration import Accelerator
from mtclust.solvers.pool import Pool, exchange_rows

Array = NDArray[np.float64]

#: a relative change of J below this is rounding
_ROUNDING = 1e-12


@dataclass
class Point:
    """Where a descent stands: labels, coupling matrix, its conditioned problem and the value."""

    labels: NDArray[np.int64]
    Z: Array
    state: Conditioned
    objective: float
    bounds: SizeBounds  # those of the search, with each task's clusters where the labels have them
    history: list[dict[str, Any]] = field(default_factory=list)
    converged: bool = False
    n_iter: int = 0


@dataclass(frozen=True)
class Search:
    """What a descent needs besides its start."""

    coupling: Coupling
    bounds: SizeBounds
    pools: Sequence[Pool] | None = None
    max_iter: int = 40
    tol: float = 1e-4
    active: Sequence[int] | None = None  # tasks whose labels may change; all by default
    learn: bool = True  # whether Z may change
    coupling_steps: int = 1  # steps of Z in a round that changed no label; in others one, for labels will change again

    @property
    def tasks(self) -> Sequence[int]:
        return range(self.coupling.n_tasks) if self.active is None else self.active

    def rows(self, task: int) -> slice:
        return slice(int(self.coupling.offsets[task]), int(self.coupling.offsets[task + 1]))

    def codes(self, labels: NDArray[np.int64]) -> Array:
        return label_codes(labels, self.bounds.n_clusters)


def start(search: Search, labels: NDArray[np.int64], Z: Array) -> Point:
    """Evaluate labels under a coupling matrix."""
    state = search.coupling.condition(Z)
    bounds = search.bounds.fitted(labels, search.coupling.offsets)
    if search.coupling.couples_labels:
        # which clusters a task has was decided by their means; the objective confuses neighbours more often
        bounds = bounds.fixed()
    return Point(labels.copy(), Z, state, state.objective(search.codes(labels)), bounds)


def descend(search: Search, point: Point, rng: np.random.Generator, stage: str) -> Point:
    """Lower the objective until one round of label and coupling steps gains less than ``tol`` (relative)."""
    seed = rng.integers(2**63, size=1, dtype=np.uint64)
    accelerator = Accelerator()
    point.converged = False
    record(point, stage, "start")
    for point.n_iter in range(1, search.max_iter + 1):
        before, labels_before = point.objective, point.labels.copy()
        settle(search, point, seed)
        if search.coupling.couples_labels:
            permute(search, point)
        transfer(search, point, rng.permutation(np.asarray(search.tasks)), seed)
        settle(search, point, seed)
        point.objective = point.state.objective(search.codes(point.labels))
        record(point, stage, "labels")
        settled = np.array_equal(point.labels, labels_before)
        if not settled:
            accelerator.reset()
        for _ in range(search.coupling_steps if settled else 1):
            if not (search.learn and step_coupling(search, point, accelerator)):
                break
            record(point, stage, "coupling")
        if before - point.objective <= search.tol * before:
            point.converged = True
            break
    return point


def record(point: Point, stage: str, step: str) -> None:
    point.history.append({"stage": stage, "step": step, "objective": point.objective})


def settle(search: Search, point: Point, seed: NDArray[np.uint64]) -> None:
    """Exchange rows task by task until no task changes."""
    codes = search.codes(point.labels)
    waiting = list(search.tasks)
    while waiting:
        changed = []
        for task in waiting:
            rows = search.rows(task)
            labels = point.labels[rows].copy()
            _, moves = exchange_rows(
                point.state.block(task),
                point.state.field(task, codes) if search.coupling.couples_labels else None,
                labels,
                point.bounds.lower[task],
                point.bounds.upper[task],
                seed,
            )
            if moves:
                point.labels[rows] = labels
                codes[rows] = search.codes(labels)
                changed.append(task)
        # a task that alone has just settled need not be visited again until another one changes
        if not search.coupling.couples_labels or not changed:
            break
        waiting = [task for task in search.tasks if len(changed) > 1 or task != changed[0]]


def permute(search: Search, point: Point) -> None:
    """Rename the clusters of one task at a time as the objective prefers; its own term does not change by that."""
    codes = search.codes(point.labels)
    for task in search.tasks:
        rows = search.rows(task)
        cost = codes[rows].T @ point.state.field(task, codes)
        counts = np.bincount(point.labels[rows], minlength=search.bounds.n_clusters)
        new_ids = best_relabelling(-cost, allowed_permutations(point.bounds, task, counts))
        gain = np.trace(cost) - cost[np.arange(len(cost)), new_ids].sum()
        if gain > _ROUNDING * point.objective:
            point.labels[rows] = new_ids[point.labels[rows]]
            codes[rows] = search.codes(point.labels[rows])


def transfer(search: Search, point: Point, order: NDArray[np.int64], seed: NDArray[np.uint64]) -> None:
    """Propose whole labellings of a task from elsewhere, refine each by exchanges, keep the best if J falls."""
    codes = search.codes(point.labels)
    for task in order:
        rows = search.rows(task)
        M = point.state.block(task)
        L = point.state.field(task, codes) if search.coupling.couples_labels else None
        own = codes[rows]
        best = 0.5 * float(np.vdot(own, M @ own)) + (0.0 if L is None else float(np.vdot(own, L)))
        best -= _ROUNDING * point.objective
        chosen = None
        for labels in _proposals(search, point, int(task), codes, L):
            lower, upper = point.bounds.row(int(task), labels)
            value, _ = exchange_rows(M, L, labels, lower, upper, seed)
            if value < best:
                best, chosen = value, labels
        if chosen is not None:
            point.labels[rows] = chosen
            codes[rows] = search.codes(chosen)
    point.bounds = point.bounds.fitted(point.labels, search.coupling.offsets)


def _proposals(search: Search, point: Point, task: int, codes: Array, L: Array | None) -> list[NDArray[np.int64]]:
    """Labels for a task: what the other tasks' models say, and its own pool under the best naming."""
    lower, upper = point.bounds.lower[task], point.bounds.upper[task]
    proposals = []
    if isinstance(search.coupling, Relationship) and L is not None:
        rows = search.rows(task)
        leave_task_out = -sla.cho_solve(sla.cho_factor(point.state.block(task)), L)
        proposals.append(assign(-leave_task_out, lower, upper))
        alpha = point.state.alpha(codes)
        for other in range(search.coupling.n_tasks):
            if other != task:
                scores = search.coupling.kernel[rows, search.rows(other)] @ alpha[search.rows(other)]
                proposals.append(assign(-scores, lower, upper))
    for labels in search.pools[task].labels if search.pools is not None else ():
        if L is None:
            proposals.append(labels.copy())
            continue
        counts = np.bincount(labels, minlength=search.bounds.n_clusters)
        allowed = allowed_permutations(point.bounds, task, counts)
        proposals.append(best_relabelling(-(search.codes(labels).T @ L), allowed)[labels])
    return proposals


def step_coupling(search: Search, point: Point, accelerator: Accelerator) -> bool:
    """Step of Z: accelerated where that lowers J, else in closed form; returns whether Z moved."""
    codes = search.codes(point.labels)
    target = point.state.closed_form(codes)
    if _take(search, point, codes, accelerator.propose(point.Z, target)):
        return True
    accelerator.restart()
    return _take(search, point, codes, target)


def _take(search: Search, point: Point, codes: Array, Z: Array) -> bool:
    state = search.coupling.condition(Z)
    objective = state.objective(codes)
    if objective > point.objective * (1 - _ROUNDING):
        return False
    point.Z, point.state, point.objective = Z, state, objective
    return True
