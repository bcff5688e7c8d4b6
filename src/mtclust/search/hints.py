"""From what a search has found to labels that keep hints: rows whose cluster is known, pairs together or apart.

The clusters are named after the known rows, these are put in place, and labels and coupling descend once more while
they stay. With kernel matrices there is a second start, in which models of the known rows alone label all others: of
the two ends this one is kept if under it clearly more of the known rows, left out, are put where they belong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.assignment import assign
from mtclust.core.hints import Hints, known_counts, left_over, linked_clusters, names_after_known, placed, with_room
from mtclust.core.labels import SizeBounds, tasks_of_rows
from mtclust.core.model import best_temperature, probabilities
from mtclust.search.problem import Point, SearchOptions
from mtclust.search.recipe import Outcome

Labels = NDArray[np.int64]

#: ridge of the regression on known rows
_RIDGE = 0.125
#: known rows that labels taught by known rows must have right beyond those that the search has found
_MORE_RIGHT = 0.7
#: times that linked rows are put in place and the others follow, at most
_ROUNDS = 5


def keep_known(
    outcome: Outcome, known: Labels, options: SearchOptions, rng: np.random.Generator, few_tasks: Labels,
    free_names: bool = True,
) -> Outcome:  # fmt: skip
    """The outcome with known rows (sorted by task, −1 where unknown) in place.

    ``few_tasks`` says which tasks those of ``outcome.few`` are, ``free_names`` that clusters may be renamed: not where
    a table of sizes names them.
    """
    problem, point = outcome.problem, outcome.point
    labels, bounds = np.asarray(point.labels, dtype=np.int64), problem.bounds
    names = np.tile(np.arange(bounds.n_clusters), (problem.n_tasks, 1))
    if free_names:
        names = names_after_known(labels, known, problem.offsets, bounds.fitted(labels, problem.offsets))
    found, end = _descended(problem, point, known, names, options, rng)
    few, few_point = found, end
    if outcome.few is not problem:
        labels = np.asarray(outcome.few_point.labels, dtype=np.int64)
        bounds = outcome.few.bounds.fitted(labels, outcome.few.offsets)
        few = outcome.few.with_bounds(bounds.renamed(names[few_tasks]).fixed())
        few_point = few.renamed(outcome.few_point, names[few_tasks])
    return replace(outcome, problem=found, point=end, few=few, few_point=few_point, named=True)


def _descended(
    problem: Any, point: Point, known: Labels, names: Labels, options: SearchOptions, rng: np.random.Generator
) -> tuple[Any, Point]:
    """The problem under new names of its clusters, and where labels end that keep known rows."""
    offsets = problem.offsets
    labels = np.asarray(point.labels, dtype=np.int64)
    bounds = problem.bounds.fitted(labels, offsets).renamed(names).fixed()
    bounds = with_room(bounds, known_counts(known, offsets, bounds.n_clusters), np.diff(offsets))
    problem = replace(problem.with_bounds(bounds), held=known >= 0)
    begun = [
        placed(names[i][labels[a:b]], known[a:b], bounds.lower[i], bounds.upper[i])
        for i, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist()))
    ]
    taught = _taught(problem, known, bounds)
    starts = [np.concatenate(begun), *([] if taught is None else [taught])]
    effort = options.effort("known rows", last=True)
    ends = [problem.descend(problem.point(labels, point.Z), rng, effort) for labels in starts]
    best = ends[0]
    if len(ends) > 1:
        right = [_probability_of_known(problem, end, known) for end in ends]
        best = ends[int(right[1] - right[0] > _MORE_RIGHT)]
    best.history, best.n_iter = list(point.history), point.n_iter + best.n_iter
    best.record("known rows", "labels")
    return problem, best


def _probability_of_known(problem: Any, point: Point, known: Labels) -> float:
    """Sum of the probabilities of the clusters of known rows, each left out: about how many would be put right."""
    scores, mine = problem.leave_one_out(point), known >= 0
    temperature = best_temperature(scores, np.asarray(point.labels, dtype=np.int64))
    return float(probabilities(scores, temperature)[mine, known[mine]].sum())


def _taught(problem: Any, known: Labels, bounds: SizeBounds) -> Labels | None:
    """Labels of all rows from ridge regression on the known ones of all tasks; None where a cluster has none."""
    rows = np.flatnonzero(known >= 0)
    if len(np.unique(known[rows])) < bounds.n_clusters:
        return None
    scores, labels = problem.taught_scores(rows, known[rows], _RIDGE), known.copy()
    if scores is None:
        return None
    for task, (a, b) in enumerate(zip(problem.offsets[:-1], problem.offsets[1:])):
        free = a + np.flatnonzero(known[a:b] < 0)
        labels[free] = assign(-scores[free], *left_over(known[a:b], bounds.lower[task], bounds.upper[task]))
    return labels


def keep_links(
    outcome: Outcome, hints: Hints, options: SearchOptions, rng: np.random.Generator, few_tasks: Labels,
    within_sizes: bool,
) -> Outcome:  # fmt: skip
    """The outcome with every pair kept: linked rows get the clusters that models without them score highest.

    Known rows are in place already; linked rows are then known as well, and the others descend once more. That is
    repeated while linked rows would change their clusters. ``within_sizes`` says that sizes or the clusters of tasks
    are given, so that linked rows must fit in.
    """
    assert hints.links is not None
    if hints.links.kept(np.asarray(outcome.point.labels, dtype=np.int64)) == 1.0:
        return outcome
    offsets = outcome.problem.offsets
    task_of = tasks_of_rows(offsets)
    most = outcome.problem.bounds.upper if within_sizes else None
    before = None
    for _ in range(_ROUNDS):
        scores = outcome.problem.leave_one_out(outcome.point)
        clusters = linked_clusters(hints.links, scores, hints.known, task_of, most)
        if before is not None and np.array_equal(before, clusters):
            break
        kept = keep_known(outcome, clusters, options, rng, few_tasks, free_names=False)
        outcome, before = replace(kept, named=outcome.named), clusters
    return outcome
