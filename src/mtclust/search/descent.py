"""The descent in labels and coupling together: one loop, whatever holds the rows and whatever labels are judged by.

A round improves the labels, exactly (:class:`ExactLabels`: exchanges, names, transfer) or in a pass over all rows
(:class:`mtclust.search.all_rows.BatchLabels`), and then takes steps of the coupling matrix. Under J every step
is taken only if the value falls, so that the history never rises; under E it may, a little, where a round ends it.

Iterating the closed form of Z converges, but slowly where Z becomes nearly singular: its steps are extrapolated
(Anderson acceleration) in L = log Z, where the map is smooth and Z stays positive definite whatever is proposed. A
proposal keeps the weak directions as alive as the closed form does: one that it killed could grow again only by steps
too small to lower the objective, and the search would take the standstill for its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack

from mtclust.core import Array, Labels
from mtclust.core.assignment import assign
from mtclust.core.coupling import REVIVAL
from mtclust.core.criterion import Term
from mtclust.core.hints import placed
from mtclust.core.kernels import ROUNDING
from mtclust.core.matching import best_renaming

if TYPE_CHECKING:
    from mtclust.search.problem import Effort, Point, Problem


#: steps remembered; more gains nothing
_MEMORY = 5
#: factor of the first step after a reset, when there is nothing to extrapolate from
_OVER_RELAXATION = 2.0
#: eigenvalues that an extrapolation may not make smaller than the closed form does
_SMALL = 1e-5
#: singular values of the differences below this share are rounding
_RANK = 1e-8
#: the last descent of coupled labels under the paper's J is carried this much further than ``tol``; under E a coupling
#: may gain a little for hundreds of steps in which no label changes
_POLISH = 1e-2
#: times that the tasks are refined in turn, at most
_MOST_ROUNDS = 50
#: steps of the coupling at a time, in the last descent, once the labels do not change any more
_POLISH_STEPS = 5
#: other tasks that propose labels of a task, at most
_SENDERS = 4


def descend(problem: Any, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
    """Lower the value, in place, until one round of label and coupling steps gains less than ``tol`` (relative).

    A label step improves the labels under a fixed coupling matrix and says whether any changed (``improve``), how many
    steps of the coupling follow at most and the share of the value below which they end (``steps``), and the share that
    a round must gain not to be the last (``least``). ``once_more`` tries what is left to try before the end.
    """
    learn, accelerator = effort.learn and problem.coupling.learns, Accelerator()
    labels: Any = problem.label_step(problem, point, rng, effort)
    point.converged = False
    point.record(effort.stage, "start")
    for _ in range(effort.max_iter):
        before = point.value
        if labels.improve():  # and with the labels the map has changed
            accelerator = Accelerator()
        point.record(effort.stage, "labels")
        if learn:
            most, least = labels.steps
            coupling_steps(problem, point, accelerator, most, least, effort.stage)
        point.n_iter += 1
        gain = before - point.value
        point.converged |= gain <= max(effort.tol, labels.least) * abs(before)
        if gain <= labels.least * abs(before) and not labels.once_more(before):
            break
    return point


def coupling_steps(problem: Any, point: Point, accelerator: Accelerator, most: int, tol: float, stage: str) -> None:
    """Steps of Z while they lower the value: accelerated where that does, else in closed form."""
    for _ in range(most):
        before, target = point.value, problem.closed_form(point)
        if not (isinstance(target, np.ndarray) and problem.take(point, accelerator.propose(point.Z, target))):
            accelerator.restart()
            if not problem.take(point, target):
                return
        point.record(stage, "coupling")
        if before - point.value <= tol * abs(before):
            return


@dataclass
class Accelerator:
    """Proposes the next Z from the last ones and their closed-form targets."""

    _points: list[Array] = field(default_factory=list)
    _targets: list[Array] = field(default_factory=list)

    def restart(self) -> None:
        """A proposal failed: go on from the last point only."""
        del self._points[:-1], self._targets[:-1]

    def propose(self, Z: Array, target: Array) -> Array:
        """The exponential of the extrapolated L with trace 1, small eigenvalues raised."""
        point, (image, smallest) = log_matrix(Z)[0], log_matrix(target)
        floor = np.clip(smallest / np.trace(target), REVIVAL / len(Z), _SMALL)
        self._points = [*self._points[-_MEMORY:], point]
        self._targets = [*self._targets[-_MEMORY:], image]
        if len(self._points) == 1:
            L = point + _OVER_RELAXATION * (image - point)
        else:
            residuals = np.array([(b - a).ravel() for a, b in zip(self._points, self._targets)])
            images = np.array([b.ravel() for b in self._targets])
            weights = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=_RANK)[0]
            L = image - (weights @ np.diff(images, axis=0)).reshape(Z.shape)
        eigenvalues, vectors = sla.eigh(0.5 * (L + L.T))
        values = np.exp(eigenvalues - eigenvalues.max())
        values = np.maximum(values / values.sum(), floor)
        return (vectors * (values / values.sum())) @ vectors.T


def log_matrix(Z: Array) -> tuple[Array, float]:
    """Logarithm of a positive semidefinite matrix, 0 taken for rounding; and its smallest eigenvalue."""
    eigenvalues, vectors = sla.eigh(Z)
    return (vectors * np.log(np.maximum(eigenvalues, np.finfo(float).eps))) @ vectors.T, float(eigenvalues[0])


class ExactLabels:
    """Exchanges or moves of single rows, names and whole labellings from elsewhere, until nothing improves.

    Whole labellings are tried while labels change, and once more before the end.
    """

    def __init__(self, problem: Problem, point: Point, rng: np.random.Generator, effort: Effort) -> None:
        self.problem, self.point, self.rng, self.effort = problem, point, rng, effort
        self.tasks = range(problem.n_tasks) if effort.tasks is None else effort.tasks
        self.seed = rng.integers(2**63, size=1, dtype=np.uint64)
        self.polish = effort.last and problem.coupling.couples_labels and problem.criterion.exchanges
        self.least = effort.tol * (_POLISH if self.polish else 1.0)
        self.stable = False

    def improve(self) -> bool:
        labels_before = self.point.labels.copy()
        exchange_until_stable(self.problem, self.point, self.tasks, self.seed)
        if self.problem.coupling.couples_labels:
            rename(self.problem, self.point, self.tasks)
        self.proposing = not self.stable
        if self.proposing:
            self._propose()
        self.stable = np.array_equal(self.point.labels, labels_before)
        self.steps = (_POLISH_STEPS if self.polish and self.stable else 1), 0.0
        self.point.value = self.problem.criterion.value(self.point.fit.at, self.problem.codes(self.point.labels))
        return not self.stable

    def _propose(self) -> bool:
        """Try whole labellings of every task, then exchange rows again; whether any label changed."""
        before = self.point.labels.copy()
        transfer(self.problem, self.point, self.rng.permutation(np.asarray(self.tasks)), self.seed)
        if np.array_equal(self.point.labels, before):
            return False
        exchange_until_stable(self.problem, self.point, self.tasks, self.seed)
        return True

    def once_more(self, before: float) -> bool:
        if self.proposing or not self._propose():
            return False
        self.point.value = self.problem.criterion.value(self.point.fit.at, self.problem.codes(self.point.labels))
        self.stable = False
        return True


def exchange_until_stable(problem: Problem, point: Point, tasks: Sequence[int], seed: NDArray[np.uint64]) -> None:
    """Refine the labels task by task until no task changes.

    Under E a task is refined for its own part of the criterion, so that two tasks may undo each other's moves for ever.
    """
    fit, codes = point.fit, problem.codes(point.labels)
    waiting = list(tasks)
    for _ in range(_MOST_ROUNDS):
        if not waiting:
            break
        changed = []
        for task in waiting:
            rows = problem.coupling.slices[task]
            labels = fit.labels[rows].copy()
            term = problem.criterion.term(fit.at, task, codes)
            lower, upper = fit.bounds.lower[task], fit.bounds.upper[task]
            if term.refine(labels, lower, upper, seed, problem.free[task]):
                fit.labels[rows] = labels
                codes[rows] = problem.codes(labels)
                changed.append(task)
        # a task that alone is stable need not be visited again until another one changes
        if not problem.coupling.couples_labels or not changed:
            break
        waiting = [task for task in tasks if len(changed) > 1 or task != changed[0]]


def rename(problem: Problem, point: Point, tasks: Sequence[int]) -> None:
    """Rename the clusters of one task at a time as the criterion prefers; its own term does not change by that."""
    fit, codes = point.fit, problem.codes(point.labels)
    for task in tasks:
        if problem.free[task] is not None:  # known rows name its clusters
            continue
        rows = problem.coupling.slices[task]
        cost = problem.criterion.term(fit.at, task, codes).cost_of_renaming(fit.labels[rows])
        counts = np.bincount(fit.labels[rows], minlength=problem.n_clusters)
        new_ids = best_renaming(-cost, fit.bounds, task, counts)
        gain = np.trace(cost) - cost[np.arange(len(cost)), new_ids].sum()
        if gain > ROUNDING * abs(point.value):
            fit.labels[rows] = new_ids[fit.labels[rows]]
            codes[rows] = problem.codes(fit.labels[rows])


def transfer(problem: Problem, point: Point, order: NDArray[np.int64], seed: NDArray[np.uint64]) -> None:
    """Propose whole labellings of a task from elsewhere, refine each, keep the best if the value falls."""
    fit, codes = point.fit, problem.codes(point.labels)
    alpha = fit.at.alpha(codes) if problem.coupling.couples_labels else None
    for task in order.tolist():
        rows = problem.coupling.slices[task]
        term = problem.criterion.term(fit.at, task, codes, alpha)
        best = term.value(fit.labels[rows]) - ROUNDING * abs(point.value)
        chosen = None
        for labels in proposals(problem, point, task, term, alpha):
            lower, upper = fit.bounds.row(task, labels)
            term.refine(labels, lower, upper, seed, problem.free[task])
            value = term.value(labels)
            if value < best:
                best, chosen = value, labels
        if chosen is not None:
            new = problem.codes(chosen)
            if alpha is not None:
                alpha = fit.at.alpha_after(alpha, task, new - codes[rows])
            fit.labels[rows], codes[rows] = chosen, new
    fit.bounds = fit.bounds.fitted(fit.counts)


def proposals(problem: Problem, point: Point, task: int, term: Term, alpha: Array | None) -> list[Labels]:
    """Labels for a task: what the other tasks' models say, and those it began with under the best naming.

    Each once, and none that the task has already. Rows that are held keep the labels they have.
    """
    fit, rows, free = point.fit, problem.coupling.slices[task], problem.free[task]
    found: list[Labels] = []
    if alpha is not None and term.linear_term is not None:
        lower, upper = fit.bounds.lower[task], fit.bounds.upper[task]
        # −M_ii⁻¹L_i, without the checks of scipy.linalg, which take longer than LAPACK for a small task
        _, leave_task_out, _ = lapack.dposv(fit.at.block(task), -term.linear_term)
        found.append(assign(-leave_task_out, lower, upper))
        others = np.delete(np.arange(problem.n_tasks), task)
        if len(others) > _SENDERS:  # those that the coupling relates to the task most closely
            nearness = np.abs(point.Z[task, others]) / np.sqrt(point.Z.diagonal()[others])
            others = np.sort(others[np.argsort(-nearness, kind="stable")[:_SENDERS]])
        for other in others.tolist():
            scores = problem.kernel[rows, problem.coupling.slices[other]] @ alpha[problem.coupling.slices[other]]
            found.append(assign(-scores, lower, upper))
    for labels in problem.proposed[task] if problem.proposed is not None else ():
        if term.linear_term is None or free is not None:
            found.append(labels.copy())
            continue
        counts = np.bincount(labels, minlength=problem.n_clusters)
        found.append(best_renaming(-term.cost_of_renaming(labels), fit.bounds, task, counts)[labels])
    if free is not None:
        known = fit.labels[rows].copy()
        known[free] = -1
        found = [placed(labels, known, *fit.bounds.row(task, labels)) for labels in found]
    distinct = {labels.tobytes(): labels for labels in (fit.labels[rows], *found)}
    return list(distinct.values())[1:]
