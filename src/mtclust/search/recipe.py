"""The recipe: local search on the paper's original mixed-integer objective, on kernel matrices.

1. starts: every task alone, random labels along a path of λ; the best of every task is DSTC
2. match the tasks by their class means; their similarity V is the first Ω. With different numbers of clusters this also
   decides which clusters each task has
3. descend in labels and coupling together
4. DMTRC: groups of tasks that have little in common are searched one by one and descend together; then restarts, in
   which a good labelling of one task labels all others through its model. DMTFC: tasks clustered anew under a
   smoothed D
5. descend to the end

A coupling costs one factorisation, so restarts share one: labels are searched under a fixed Ω, and only the best ends
go on to learn theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg as sla
from joblib import Parallel, delayed

from mtclust.core import Array, Labels
from mtclust.core.kernels import EXACT_UP_TO, largest_eigenvectors
from mtclust.core.labels import rows_of_tasks
from mtclust.core.matching import best_renaming, groups_of_tasks, pair_counts
from mtclust.search.problem import Point, Problem, SearchOptions
from mtclust.util.messages import counted, phase

#: smallest eigenvalue of the first Ω, relative to its largest possible (V has ones on its diagonal)
_FIRST_EIGENVALUE = 0.02
#: leading directions that stand for all where these would cost too much: of the first Ω of very many tasks, of D, of
#: rows that are only known through a kernel
LEADING = 100
#: rounds of restarts at most, and for a candidate that is only to be compared with others
_ROUNDS, _FEW_ROUNDS = 8, 2
#: restarts of a round, per start asked for, and up to so many tasks; of more, as many as take the same time, or none
_RESTARTS_PER_INIT, _RESTARTED_TASKS = 2, 100
#: weight of the first Ω beside that of the best so far, in all rounds but the first
_FIRST_AGAIN = 0.2
#: ends that seed the next round, and that go on to learn their coupling
_KEPT = 3
#: ends whose values differ by less (relative) count as one
_SAME_VALUE = 1e-4
#: shares of I/r in the D under which DMTFC clusters its tasks anew
_SMOOTHING = (0.8, 0.5, 0.2)
#: all descents but the last stop at this multiple of ``tol``
ROUGH = 10.0


@dataclass(frozen=True)
class Outcome:
    """Where a search ended, and what every task alone gave."""

    problem: Any  # its bounds say which clusters each task has
    point: Point
    single: Point  # every task alone, cluster ids common to all tasks
    similarity: Array  # V of the tasks alone (m × m)
    few: Outcome | None = None  # the search on a sample, where its labels were carried to all rows
    relaxation: Any = None  # of the cutting-plane solver
    named: bool = False  # whether the ids of clusters come from known rows, so that they are not to be changed


def solve(problem: Problem, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Labels of all rows and the coupling together."""
    given, alone = problem.bounds, problem.alone
    starts = alone.starts(options, rng)
    single = alone.point(np.concatenate([task[0] for task in starts]), alone.coupling.uncoupled())
    single.record("single tasks", "labels")
    single.converged = True
    single, similarity = alone.matched(single)
    if given.movable:
        problem, starts = _with_ids_of(single, problem, starts)
    if problem.coupling.learns:
        best, stage = _coupled(problem, single.labels, starts, similarity, options, rng), "finish"
    else:
        best, stage = problem.point(single.labels, problem.coupling.uncoupled()), "single tasks"
    with phase(stage):
        point = problem.descend(best, rng, options.effort(stage, last=options.polish))
    if not problem.coupling.couples_labels:
        point, _ = problem.with_bounds(given).matched(point)
        problem = problem.with_bounds(given.fitted(point.fit.counts, fixed=True))
    return Outcome(problem, point, single if problem.coupling.learns else point, similarity)


def _with_ids_of(
    single: Point, problem: Problem, starts: list[list[Labels]]
) -> tuple[Problem, list[list[Labels]]]:  # fmt: skip
    """Every task keeps the clusters that it has in the matched labels; starts are renamed to agree with those."""
    bounds = problem.bounds.fitted(single.fit.counts, fixed=True)

    def agreeing(labels: Labels, task: int) -> Labels:
        """Labels of a task with the names of clusters that agree best among those that the bounds allow."""
        pairs = pair_counts(labels, single.labels[problem.coupling.slices[task]], bounds.n_clusters)
        return best_renaming(pairs, bounds, task, pairs.sum(axis=1))[labels]

    return problem.with_bounds(bounds), [[agreeing(start, i) for start in own] for i, own in enumerate(starts)]


def first_relationship(similarity: Array) -> Array:
    """Ω to begin with: the similarity of the tasks' class means, made positive definite with trace 1."""
    similarity = np.clip(similarity, 0.0, None)
    m = len(similarity)
    if m > EXACT_UP_TO:  # the leading ones, and one level for the others
        eigenvalues, vectors = largest_eigenvectors(similarity, LEADING, roughly=True)
        level = max(_FIRST_EIGENVALUE, (m - float(eigenvalues.sum())) / (m - LEADING))
        Omega = (vectors * np.maximum(eigenvalues - level, 0.0)) @ vectors.T
        Omega.flat[:: m + 1] += level
    else:
        eigenvalues, vectors = sla.eigh(similarity)
        Omega = (vectors * np.maximum(eigenvalues, _FIRST_EIGENVALUE)) @ vectors.T
    return Omega / np.trace(Omega)


def _coupled(
    problem: Problem, single: Labels, starts: list[list[Labels]], similarity: Array, options: SearchOptions,
    rng: np.random.Generator,
) -> Point:  # fmt: skip
    """The best coupled labels that are found from the tasks alone; only the last descent is missing.

    ``single`` are the best of every task, with common ids, ``starts`` all of every task, best first. Groups of tasks
    that have little in common are searched one by one, and then descend together.
    """
    problem = replace(problem, proposed=[task[: options.n_init] for task in starts])
    first = first_relationship(similarity) if problem.coupling.couples_labels else problem.coupling.uncoupled()
    with phase("clustering together: from single tasks"):
        best = _rough(problem, problem.point(single, first), options, rng, "from single-task solutions")
    if options.n_init == 1:
        return best
    if not problem.coupling.couples_labels:
        return _restarts_under_shared_features(problem, best, starts, options, rng)
    groups = groups_of_tasks(similarity) if options.polish else []
    by_groups = 1 < len(groups) < problem.n_tasks <= _RESTARTED_TASKS
    if by_groups:
        labels = single.copy()
        for group in (group for group in groups if len(group) > 1):
            rows, near = rows_of_tasks(problem.offsets, group), similarity[np.ix_(group, group)]
            end = _coupled(problem.of_tasks(group), single[rows], [starts[i] for i in group], near, options, rng).labels
            if problem.bounds.interchangeable():  # the names that these clusters have had among all tasks
                end = best_renaming(pair_counts(end, single[rows], problem.bounds.n_clusters))[end]
            labels[rows] = end
        with phase("clustering together: from groups of tasks"):
            best = better(best, _rough(problem, problem.point(labels, first), options, rng, "from groups of tasks"))
    return _restarts(problem, best, starts, first, options, rng, thorough=options.polish and not by_groups)


def _rough(
    problem: Problem, point: Point, options: SearchOptions, rng: np.random.Generator, stage: str, learn: bool = True
) -> Point:
    """A descent that is not the last."""
    effort = options.effort(stage, tol=options.tol * ROUGH, learn=learn)
    return problem.descend(point, rng, effort)


def better(best: Point, other: Point) -> Point:
    """The lower of two points; the winner's history tells how the value fell, whoever found it."""
    if other.value >= best.value:
        return best
    other.history = best.history + [entry for entry in other.history if entry["objective"] < best.value]
    return other


def _restarts(
    problem: Problem, best: Point, starts: list[list[Labels]], first: Array, options: SearchOptions,
    rng: np.random.Generator, thorough: bool,
) -> Point:  # fmt: skip
    """Label all tasks through the model of one, for the best labellings of every task; then from the best ends.

    The labels of a round are searched under one Ω, the first one and then one near the best so far: that costs one
    factorisation each. Only the best ends go on to learn their own. Where the best ends lead to none that is better,
    the next labellings of the tasks follow, if the search is to be thorough, or else rounds end.
    """
    most = round(_RESTARTS_PER_INIT * options.n_init * min(1.0, _RESTARTED_TASKS / problem.n_tasks))
    if most == 0:
        return best
    # the best labelling of every task first, then the second best: all tasks have a say
    seeds = [(task, own[k]) for k in range(max(map(len, starts))) for task, own in enumerate(starts) if k < len(own)]
    waiting, from_ends = seeds[most:] if thorough else [], False
    known, Omega = [best], first
    for _ in range(_ROUNDS if options.polish else _FEW_ROUNDS):
        before = best

        def end_of(seed: tuple[int, Labels], own: np.random.Generator, Omega: Array = Omega) -> Point:
            return _rough(problem, problem.seeded(*seed, Omega), options, own, "restart", learn=False)

        ends = distinct(_in_parallel(end_of, seeds[:most], options, rng))[:_KEPT]
        learned = _in_parallel(lambda end, own: _rough(problem, end, options, own, "restart"), ends, options, rng)
        known = distinct([*known, *learned])[:_KEPT]
        for point in learned:
            best = better(best, point)
        if not from_ends or best is not before:  # what coupling has made of the tasks in the best ends
            seeds, from_ends = [seed for point in known for seed in enumerate(problem.labels_of(point))], True
        elif waiting:
            seeds, waiting, from_ends = waiting, waiting[most:], False
        else:
            break
        Omega = (1 - _FIRST_AGAIN) * best.Z + _FIRST_AGAIN * first
    return best


def _in_parallel(
    run: Callable[..., Point], items: Sequence[object], options: SearchOptions, rng: np.random.Generator
) -> list[Point]:
    """One run per item, each with random numbers of its own: the same whatever the number of threads."""
    jobs = (delayed(run)(item, own) for item, own in zip(items, rng.spawn(len(items))))
    reported = counted(jobs, "clustering together: start", len(items))
    return list(Parallel(n_jobs=options.n_jobs, prefer="threads")(reported))


def distinct(points: list[Point]) -> list[Point]:
    """Points with different values, lowest first."""
    ordered = sorted(points, key=lambda point: point.value)
    return [
        point
        for k, point in enumerate(ordered)
        if k == 0 or point.value - ordered[k - 1].value > _SAME_VALUE * abs(ordered[k - 1].value)
    ]


def _restarts_under_shared_features(
    problem: Problem, best: Point, starts: list[list[Labels]], options: SearchOptions, rng: np.random.Generator
) -> Point:
    """Cluster every task anew from random starts under a smoothed D, descend; again while that lowers J.

    D adapts to the labels it is learned from and would hold them fast: smoothing it lets the features that the other
    tasks use speak up against them.
    """
    r = len(best.Z)
    for smoothing in _SMOOTHING:
        D = (1 - smoothing) * best.Z + smoothing * np.eye(r) / r
        with phase(f"clustering together: smoothed features {smoothing:g}"):
            anew = problem.starts(options, rng, D)
            wider = [old[: options.n_init] + new for old, new in zip(starts, anew)]
            point = problem.point(np.concatenate([task[0] for task in anew]), D)
            stage = "restart under smoothed features"
            best = better(best, _rough(replace(problem, proposed=wider), point, options, rng, stage))
    return best


def uncoupled(outcome: Outcome, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Every task by itself."""
    alone, few = outcome.problem.alone, outcome.few
    begun = alone.continued(outcome.single, alone.coupling.uncoupled())
    point = alone.descend(begun, rng, options.effort("single tasks", last=True))
    if few is not None:
        few = replace(few, problem=few.problem.alone, point=few.single)
    return replace(outcome, problem=alone, point=point, single=point, few=few)


def shrunk(outcome: Outcome, s: float, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Labels found anew under the fixed Ω_s = sΩ + (1−s)I/m, from the coupled and from the single-task labels."""
    problem = outcome.problem
    Omega = s * outcome.point.Z + (1 - s) * problem.coupling.uncoupled()
    effort = options.effort(f"coupling {s:g}", learn=False)
    ends = [problem.descend(problem.continued(begin, Omega), rng, effort) for begin in (outcome.point, outcome.single)]
    return replace(outcome, point=min(ends, key=lambda end: end.value))
