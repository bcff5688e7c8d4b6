"""The descent in labels and coupling together: one loop, whatever holds the rows and whatever labels are judged by.

A round improves the labels, exactly (:mod:`mtclust.problem.kernel_descent`) or in a pass over all rows
(:mod:`mtclust.problem.feature_descent`), and then takes steps of the coupling matrix. Every step is taken only if the
value falls, so the history never rises (under E with passes it may, a little, where a round ends it).

Iterating the closed form of Z converges, but slowly where Z becomes nearly singular: its steps are extrapolated
(Anderson acceleration) in L = log Z, where the map is smooth and Z stays positive definite whatever is proposed. A
proposal keeps the weak directions as alive as the closed form does: one that it killed could grow again only by steps
too small to lower the objective, and the search would take the standstill for its end.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import symmetric_eigen
from mtclust.problem.protocol import Effort, Point

Array = NDArray[np.float64]

#: steps remembered; more gains nothing
_MEMORY = 5
#: factor of the first step after a reset, when there is nothing to extrapolate from
_OVER_RELAXATION = 2.0
#: eigenvalues that an extrapolation may not make smaller than the closed form does
_SMALL = 1e-5
#: and the smallest, as a share of I/m, where the closed form is singular
_REVIVAL = 1e-8
#: eigenvalues of Z are floored here before the logarithm
_LOG_FLOOR = 1e-14
#: singular values of the differences below this share are rounding
_RANK = 1e-8


class LabelStep(Protocol):
    """How labels are improved under a fixed coupling matrix."""

    #: how many steps of the coupling follow at most, and the share of the value below which they end
    steps: tuple[int, float]
    #: a round that gains no more than this share of the value may be the last
    least: float

    def improve(self) -> bool:
        """Improve the labels and set the value of the point, ``steps`` and ``least``; whether any label changed."""

    def once_more(self, before: float) -> bool:
        """Try what is left to try before the end; whether the descent goes on."""

    def finish(self) -> bool:
        """What follows the last round; whether the labels changed by that."""


def descend(problem: Any, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
    """Lower the value, in place, until one round of label and coupling steps gains less than ``tol`` (relative)."""
    learn, accelerator = effort.learn and problem.coupling.learns, Accelerator()
    labels: LabelStep = problem.label_step(problem, point, rng, effort)
    point.converged = False
    point.record(effort.stage, "start")
    for _ in range(effort.max_iter):
        before = point.value
        if labels.improve():
            accelerator.reset()
        point.record(effort.stage, "labels")
        if learn:
            coupling_steps(problem, point, accelerator, *labels.steps, effort.stage)
        point.n_iter += 1
        gain = before - point.value
        point.converged |= gain <= effort.tol * abs(before)
        if gain <= labels.least * abs(before) and not labels.once_more(before):
            break
    if labels.finish() and learn:
        coupling_steps(problem, point, Accelerator(), *labels.steps, effort.stage)
    return point


def coupling_steps(
    problem: Any, point: Point, accelerator: Accelerator, most: int, tol: float, stage: str = ""
) -> int:  # fmt: skip
    """Steps of Z while they lower the value: accelerated where that does, else in closed form; how many were taken."""
    for taken in range(most):
        before, target = point.value, problem.closed_form(point)
        if not (isinstance(target, np.ndarray) and problem.take(point, accelerator.propose(point.Z, target))):
            accelerator.restart()
            if not problem.take(point, target):
                return taken
        point.record(stage, "coupling")
        if before - point.value <= tol * abs(before):
            return taken + 1
    return most


class Accelerator:
    """Proposes the next Z from the last ones and their closed-form targets."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._targets: list[Array] = []

    def reset(self) -> None:
        """Forget the past: the labels, and with them the map, have changed."""
        self._points.clear()
        self._targets.clear()

    def restart(self) -> None:
        """A proposal failed: go on from the last point only."""
        del self._points[:-1], self._targets[:-1]

    def propose(self, Z: Array, target: Array) -> Array:
        """Extrapolated Z with trace 1."""
        point, (image, smallest) = log_matrix(Z)[0], log_matrix(target)
        floor = np.clip(smallest / np.trace(target), _REVIVAL / len(Z), _SMALL)
        self._points = [*self._points[-_MEMORY:], point]
        self._targets = [*self._targets[-_MEMORY:], image]
        if len(self._points) == 1:
            return _exp_trace_one(point + _OVER_RELAXATION * (image - point), floor)
        residuals = np.array([(b - a).ravel() for a, b in zip(self._points, self._targets)])
        images = np.array([b.ravel() for b in self._targets])
        weights = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=_RANK)[0]
        return _exp_trace_one(image - (weights @ np.diff(images, axis=0)).reshape(Z.shape), floor)


def log_matrix(Z: Array) -> tuple[Array, float]:
    """Logarithm of a positive semidefinite matrix, eigenvalues floored; and its smallest eigenvalue."""
    eigenvalues, vectors = symmetric_eigen(Z)
    return (vectors * np.log(np.maximum(eigenvalues, _LOG_FLOOR))) @ vectors.T, float(eigenvalues[0])


def _exp_trace_one(L: Array, floor: float) -> Array:
    """The exponential of L with trace 1, small eigenvalues raised to ``floor``."""
    eigenvalues, vectors = symmetric_eigen(0.5 * (L + L.T))
    values = np.exp(eigenvalues - eigenvalues.max())
    values = np.maximum(values / values.sum(), floor)
    return (vectors * (values / values.sum())) @ vectors.T
