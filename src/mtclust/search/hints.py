"""From what a search has found to labels that keep hints: rows whose cluster is known, pairs together or apart.

The clusters are named after the known rows, these are put in place, and labels and coupling descend once more while
they stay. Which clusters groups of linked rows get, so that every pair is kept and their scores are highest, is a small
integer program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linear_sum_assignment, milp

from mtclust.core import Array, Integers, Labels
from mtclust.core.hints import Hints, Links, placed
from mtclust.core.labels import SizeBounds, counts_by_task, tasks_of_rows
from mtclust.core.matching import pair_counts
from mtclust.search.problem import SearchOptions
from mtclust.search.recipe import Outcome

#: relative gap to the best clusters of linked rows at which the integer program may stop, and its seconds at most
_GAP, _SECONDS = 1e-4, 60.0
#: times that linked rows are put in place and the others follow, at most
_ROUNDS = 5


def keep_known(
    outcome: Outcome, known: Labels, options: SearchOptions, rng: np.random.Generator, few_tasks: Labels,
    free_names: bool = True,
) -> Outcome:  # fmt: skip
    """The outcome with known rows (sorted by task, −1 where unknown) in place.

    ``few_tasks`` says which tasks those of the sample are, ``free_names`` that clusters may be renamed: not where
    a table of sizes names them.
    """
    problem, point, offsets = outcome.problem, outcome.point, outcome.problem.offsets
    labels = np.asarray(point.labels, dtype=np.int64)
    bounds = problem.bounds.fitted(point.fit.counts, fixed=True)
    new_ids = np.tile(np.arange(bounds.n_clusters), (problem.n_tasks, 1))
    if free_names:
        new_ids = ids_after_known(labels, known, offsets, bounds)
    bounds = with_room(bounds.renamed(new_ids), counts_by_task(known, offsets, bounds.n_clusters), np.diff(offsets))
    problem = replace(problem.with_bounds(bounds), held=known >= 0)
    begun = [
        placed(new_ids[i][labels[a:b]], known[a:b], bounds.lower[i], bounds.upper[i])
        for i, (a, b) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist()))
    ]
    end = problem.point(np.concatenate(begun), point.Z)
    end = problem.descend(end, rng, options.effort("known rows", last=True))
    end.history, end.n_iter = list(point.history), point.n_iter + end.n_iter
    end.record("known rows", "labels")
    few = outcome.few
    if few is not None:
        bounds = few.problem.bounds.fitted(few.point.fit.counts, fixed=True)
        renamed = few.problem.with_bounds(bounds.renamed(new_ids[few_tasks]))
        few = replace(few, problem=renamed, point=renamed.renamed(few.point, new_ids[few_tasks]))
    return replace(outcome, problem=problem, point=end, few=few, named=True)


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


def with_room(bounds: SizeBounds, counts: Labels, sizes: Labels) -> SizeBounds:
    """Bounds that the known rows of every task fit in: where sizes are left open, a search may settle on narrower ones.

    ``counts`` (m × C) are those of known rows, ``sizes`` the rows of the tasks.
    """
    crowded = np.maximum(bounds.lower, counts).sum(axis=1) > sizes
    return SizeBounds(np.where(crowded[:, None], 0, bounds.lower), np.maximum(bounds.upper, counts))


def ids_after_known(labels: Labels, known: Labels, offsets: Integers, bounds: SizeBounds) -> Labels:
    """New ids (m × C) under which labels agree with most known rows.

    Clusters mean the same in all tasks, so that one naming serves all; a task departs from it where more of its own
    known rows say so.
    """
    m, C = len(offsets) - 1, bounds.n_clusters
    given = known >= 0
    slices = [slice(a, b) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist())]
    pairs = np.stack([pair_counts(labels[own][given[own]], known[own][given[own]], C) for own in slices])
    # where known rows say nothing names stay
    _, common = linear_sum_assignment(-(pairs.sum(axis=0) + 1e-6 * np.eye(C)))
    result = np.empty((m, C), dtype=np.int64)
    for i in range(m):
        wish = pairs[i].astype(np.float64)
        wish[np.arange(C), common] += 1e-6
        if not bounds.present[i].all():  # a cluster that the task has for every id that is known there
            wish[np.ix_(bounds.upper[i] > 0, pairs[i].any(axis=0))] += 1e6
        _, result[i] = linear_sum_assignment(-wish)
    return result


def linked_clusters(
    links: Links, scores: Array, known: Labels | None, task_of: Labels | None = None, most: Labels | None = None
) -> Labels:
    """Clusters of the linked rows that keep all pairs and have the highest scores in sum; −1 for all other rows.

    Scores (N × C) are −∞ where the task of a row does not have the cluster so far: that costs more than all others
    could gain. Clusters that are known (−1 elsewhere) are part of the result; a cluster holds at most ``most`` (m × C)
    linked rows of a task.
    """
    rows, groups = links.groups()
    G, C = int(groups.max()) + 1, scores.shape[1]
    finite = scores[np.isfinite(scores)]
    extent = float(np.ptp(finite)) if len(finite) else 0.0
    own = np.where(np.isfinite(scores[rows]), scores[rows], finite.min(initial=0.0) - len(rows) * (extent or 1.0))
    gain = np.zeros((G, C))
    np.add.at(gain, groups, own)
    lower, upper = np.zeros((G, C)), np.ones((G, C))
    found = np.full(len(scores), -1, dtype=np.int64) if known is None else known.copy()
    for group, cluster in zip(groups[found[rows] >= 0].tolist(), found[rows[found[rows] >= 0]].tolist()):
        lower[group, cluster] = 1.0
    constraints = [LinearConstraint(sp.kron(sp.eye_array(G), np.ones((1, C))), 1, 1)]
    if len(links.apart):  # of two groups that are apart at most one has a cluster
        pairs = np.unique(np.sort(groups[np.searchsorted(rows, links.apart)], axis=1), axis=0)
        entries = np.repeat(np.arange(len(pairs)), 2)
        either = sp.coo_array((np.ones(len(entries)), (entries, pairs.ravel())), shape=(len(pairs), G))
        constraints.append(LinearConstraint(sp.kron(either, sp.eye_array(C)), -np.inf, 1))
    if task_of is not None and most is not None:  # no cluster of a task holds more linked rows than it may
        counts = sp.coo_array((np.ones(len(groups)), (task_of[rows], groups)), shape=(len(most), G))
        constraints.append(LinearConstraint(sp.kron(counts, sp.eye_array(C)), -np.inf, most.ravel()))
    options = {"mip_rel_gap": _GAP, "time_limit": _SECONDS}
    bounds = Bounds(lower.ravel(), upper.ravel())
    solved = milp(-gain.ravel(), integrality=np.ones(G * C), bounds=bounds, constraints=constraints, options=options)
    if solved.x is None:
        raise ValueError(
            f"must_link and cannot_link cannot all be kept with {C} clusters"
            + (" and the known rows" if known is not None else "")
            + (" and the sizes given" if most is not None else "")
            + f" ({G} groups of linked rows, {len(links.apart)} pairs apart); leave pairs out or allow more clusters."
        )
    found[rows] = solved.x.reshape(G, C).argmax(axis=1)[groups]
    return found
