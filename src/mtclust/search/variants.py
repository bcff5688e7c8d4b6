"""Outcomes that follow from another one: sizes released, tasks uncoupled, coupling shrunk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mtclust.labels import free_bounds
from mtclust.problem.protocol import Point, Problem, SearchOptions
from mtclust.search.outcome import Outcome


def released(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Rows free to move from a solution with bounded sizes; those of the tasks alone likewise."""
    problem = outcome.problem
    # the search has decided which clusters a task has
    free = problem.with_bounds(free_bounds(np.diff(problem.offsets), problem.bounds.present))
    begun = free.continued(outcome.point, outcome.point.Z)
    begun.history, begun.n_iter = list(outcome.point.history), outcome.point.n_iter
    point = free.descend(begun, rng, options.effort("released from balance"))
    single = point
    if problem.method != "independent":
        alone = free.alone()
        begun = alone.continued(outcome.single, alone.uncoupled())
        single = alone.descend(begun, rng, options.effort("single tasks released", learn=False))
    return _on_all_rows(outcome, free, point, single)


def polished(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """The last descent of a search that did without, where all rows were searched."""
    problem = outcome.problem
    if problem.method == "independent" or outcome.few is not problem:
        return outcome
    begun = problem.continued(outcome.point, outcome.point.Z)
    begun.history, begun.n_iter = list(outcome.point.history), outcome.point.n_iter
    point = problem.descend(begun, rng, options.effort("finish", last=True))
    return _on_all_rows(outcome, problem, point, outcome.single)


def uncoupled(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Every task by itself."""
    alone = outcome.problem.alone()
    begun = alone.continued(outcome.single, alone.uncoupled())
    point = alone.descend(begun, rng, options.effort("single tasks", last=True))
    return replace(_on_all_rows(outcome, alone, point, point), few=outcome.few.alone(), few_point=outcome.few_single)


def shrunk(outcome: Outcome, s: float, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Labels found anew under the fixed Ω_s = sΩ + (1−s)I/m, from the coupled and from the single-task labels."""
    problem = outcome.problem
    Omega = s * outcome.point.Z + (1 - s) * problem.uncoupled()
    effort = options.effort(f"coupling {s:g}", learn=False)
    ends = [problem.descend(problem.continued(begin, Omega), rng, effort) for begin in (outcome.point, outcome.single)]
    return _on_all_rows(outcome, problem, min(ends, key=lambda end: end.value), outcome.single)


def _on_all_rows(outcome: Outcome, problem: Problem, point: Point, single: Point) -> Outcome:
    """The outcome with other points on all rows; on few, too, where these are all."""
    if outcome.few is outcome.problem:
        return replace(
            outcome, problem=problem, point=point, single=single, few=problem, few_point=point, few_single=single
        )
    return replace(outcome, problem=problem, point=point, single=single)
