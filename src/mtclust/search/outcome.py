"""What a search ends with, and what follows from that: sizes released, tasks uncoupled, coupling shrunk."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import free_bounds
from mtclust.problem.protocol import Point, SearchOptions

if TYPE_CHECKING:
    from mtclust.problem.protocol import Problem

Array = NDArray[np.float64]


@dataclass
class Outcome:
    """Where the search ended on all rows, and what every task alone gave.

    Attributes
    ----------
    problem : Problem
        All rows; its bounds say which clusters each task has.
    point : Point
    single : Point
        Every task alone, cluster ids common to all tasks.
    few, few_point, few_single
        The same on the rows that the search ran on.
    similarity : ndarray of shape (m, m)
        V of the tasks alone.
    groups : list of ndarrays
        Tasks whose clusters resemble each other.
    model_codes : ndarray of shape (N, C), optional
        What the models are fitted to, where that is not the labels.
    relaxation : object, optional
        Of the cutting-plane solver.
    named : bool
        Whether the ids of clusters come from known rows, so that they are not to be changed.
    """

    problem: Problem
    point: Point
    single: Point
    few: Problem
    few_point: Point
    few_single: Point
    similarity: Array
    groups: list[NDArray[np.int64]] = field(default_factory=list)
    model_codes: Array | None = None
    relaxation: Any = None
    named: bool = False


def released(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Rows free to move from a solution with bounded sizes; those of the tasks alone likewise."""
    problem = outcome.problem
    # the search has decided which clusters a task has
    free = problem.with_bounds(free_bounds(np.diff(problem.offsets), problem.bounds.present))
    begun = free.continued(outcome.point, outcome.point.Z).following(outcome.point)
    point = free.descend(begun, rng, options.effort("released from balance"))
    single = point
    if problem.coupling.learns:
        alone = free.alone()
        begun = alone.continued(outcome.single, alone.uncoupled())
        single = alone.descend(begun, rng, options.effort("single tasks released", learn=False))
    return _with_points(outcome, free, point, single)


def uncoupled(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Every task by itself."""
    alone = outcome.problem.alone()
    begun = alone.continued(outcome.single, alone.uncoupled())
    point = alone.descend(begun, rng, options.effort("single tasks", last=True))
    return replace(_with_points(outcome, alone, point, point), few=outcome.few.alone(), few_point=outcome.few_single)


def shrunk(outcome: Outcome, s: float, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Labels found anew under the fixed Ω_s = sΩ + (1−s)I/m, from the coupled and from the single-task labels."""
    problem = outcome.problem
    Omega = s * outcome.point.Z + (1 - s) * problem.uncoupled()
    effort = options.effort(f"coupling {s:g}", learn=False)
    ends = [problem.descend(problem.continued(begin, Omega), rng, effort) for begin in (outcome.point, outcome.single)]
    return _with_points(outcome, problem, min(ends, key=lambda end: end.value), outcome.single)


def _with_points(outcome: Outcome, problem: Problem, point: Point, single: Point) -> Outcome:
    """The outcome with other points on all rows; on few, too, where these are all."""
    if outcome.few is outcome.problem:
        return replace(
            outcome, problem=problem, point=point, single=single, few=problem, few_point=point, few_single=single
        )
    return replace(outcome, problem=problem, point=point, single=single)
