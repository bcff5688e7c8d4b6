"""The default solver: local search on the paper's original mixed-integer objective.

1. pools: every task alone, random starts along a path of λ (:mod:`mtclust.solvers.pool`); the best is DSTC
2. align the tasks by their class means; their similarity V is the first Ω. With different numbers of clusters this also
   decides which clusters each task has, for the rest of the search
3. descend in labels and coupling together (:mod:`mtclust.solvers.descent`)
4. restarts: a good labelling of one task labels the related tasks through its model
5. groups of related tasks are solved apart before one joint descent
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg as sla
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mtclust._progress import counted
from mtclust.alignment import align, allowed_permutations, best_relabelling, groups_of_tasks
from mtclust.assignment import assign
from mtclust.coupling import Independent, Relationship, SharedFeatures
from mtclust.features import EigenFeatures
from mtclust.labels import label_codes
from mtclust.solvers.descent import Point, Search, descend, record, start
from mtclust.solvers.pool import Pool, single_task_pools
from mtclust.solvers.problem import Problem, SolverOptions, SolverResult

Array = NDArray[np.float64]

#: smallest eigenvalue of the first Ω, relative to its largest possible (V has ones on its diagonal)
_FIRST_EIGENVALUE = 0.02
#: weight of the first Ω when a restart begins near the best Ω so far
_RESTART_MIXTURE = 0.2
#: restarts of one coupled search, however many tasks there are
_MOST_RESTARTS = 16
#: rounds of restarts: the first from the tasks alone, then from the best solutions so far
_ROUNDS = 2
#: solutions that seed the next round
_KEPT = 3
#: solutions whose objectives differ by less (relative) count as one
_SAME_OBJECTIVE = 1e-4
#: shares of I/r in the D under which DMTFC clusters its tasks anew
_SMOOTHING = (0.8, 0.5, 0.2)
#: restarts, and all searches for D, stop at this multiple of ``tol``
_ROUGH = 10.0
#: the last descent is carried this much further than the searches before it
_POLISH = 1e-2
#: steps of the coupling at a time once the labels have settled
_POLISH_STEPS = 5


def solve_independent(problem: Problem, options: SolverOptions, rng: np.random.Generator) -> SolverResult:
    """DSTC: the best labelling found of every task alone, clusters aligned at the end."""
    pools = _pools(problem, options, rng)
    return independent_result(problem, *_aligned_best(problem, pools))


def solve_relationship(problem: Problem, options: SolverOptions, rng: np.random.Generator) -> SolverResult:
    """DMTRC: labels of all tasks and Ω together."""
    pools = _pools(problem, options, rng)
    aligned, similarity = _aligned_best(problem, pools)
    if problem.n_tasks == 1:
        return independent_result(problem, aligned, similarity)
    groups = groups_of_tasks(similarity)
    if problem.bounds.movable:
        problem, pools = _with_ids_of(aligned, problem, pools)
    point = _search_coupled(problem, options, rng, _truncated(pools, options.n_init), aligned, similarity, groups)
    return SolverResult(
        point.labels, point.Z, point.state, point.objective, point.history, point.converged, point.n_iter,
        aligned, similarity, groups,
    )  # fmt: skip


def solve_shared_features(
    problem: Problem, features: EigenFeatures, options: SolverOptions, rng: np.random.Generator
) -> SolverResult:
    """DMTFC: labels of all tasks and D together; clusters aligned at the end, which costs nothing."""
    pools = _pools(problem, options, rng)
    aligned, similarity = _aligned_best(problem, pools)
    coupling = SharedFeatures(features, problem.offsets, float(problem.lambda1.mean()), problem.lambda2)
    search = Search(coupling, problem.bounds, _truncated(pools, options.n_init), options.max_iter, options.tol)
    # D settles slowly: searches stop early, and only the best is carried to the end
    rough = replace(search, tol=options.tol * _ROUGH)
    point = descend(rough, start(search, aligned, coupling.uncoupled()), rng, "from single-task solutions")
    point = _restarts_under_shared_features(problem, coupling, rough, options, rng, point)
    point = descend(replace(search, coupling_steps=_POLISH_STEPS), point, rng, "polish")
    labels, _ = align(problem.kernel, problem.offsets, point.labels, problem.bounds)
    return SolverResult(
        labels, point.Z, point.state, point.objective, point.history, point.converged, point.n_iter,
        aligned, similarity, groups_of_tasks(similarity),
    )  # fmt: skip


def _restarts_under_shared_features(
    problem: Problem,
    coupling: SharedFeatures,
    search: Search,
    options: SolverOptions,
    rng: np.random.Generator,
    best: Point,
) -> Point:
    """Cluster every task anew from random starts under a smoothed D, descend; again while that lowers J.

    D adapts to the labels it is learned from and would hold them fast: smoothing it lets the features that the other
    tasks use speak up against them.
    """
    r = coupling.features.rank
    for smoothing in _SMOOTHING:
        D = (1 - smoothing) * best.Z + smoothing * np.eye(r) / r
        kernel = coupling.gain_kernel(D)
        pools = single_task_pools(
            kernel, problem.offsets, np.ones(problem.n_tasks), problem.bounds, options.n_init, rng, options.n_jobs
        )
        labels = np.concatenate([pool.labels[0] for pool in pools])
        wider = replace(search, pools=[_merged(a, b) for a, b in zip(search.pools or pools, pools)])
        best = _better(best, descend(wider, start(search, labels, D), rng, "restart under smoothed features"))
    return best


def _merged(first: Pool, second: Pool) -> Pool:
    return Pool(first.labels + second.labels, np.concatenate([first.objectives, second.objectives]))


def _pools(problem: Problem, options: SolverOptions, rng: np.random.Generator) -> list[Pool]:
    return single_task_pools(
        problem.kernel, problem.offsets, problem.ridge, problem.bounds, options.single_task_n_init, rng, options.n_jobs
    )


def _truncated(pools: list[Pool], size: int) -> list[Pool]:
    return [Pool(pool.labels[:size], pool.objectives[:size]) for pool in pools]


def _aligned_best(problem: Problem, pools: list[Pool]) -> tuple[NDArray[np.int64], Array]:
    best = np.concatenate([pool.labels[0] for pool in pools])
    return align(problem.kernel, problem.offsets, best, problem.bounds)


def _with_ids_of(aligned: NDArray[np.int64], problem: Problem, pools: list[Pool]) -> tuple[Problem, list[Pool]]:
    """Every task keeps the clusters that it has in the aligned labels; pools are renamed to agree with those."""
    bounds = problem.bounds.fitted(aligned, problem.offsets).fixed()
    renamed = []
    for task, pool in enumerate(pools):
        model = aligned[problem.rows(task)]
        labels = []
        for own in pool.labels:
            agreement = np.zeros((problem.n_clusters, problem.n_clusters))
            np.add.at(agreement, (own, model), 1)
            allowed = allowed_permutations(bounds, task, np.bincount(own, minlength=problem.n_clusters))
            labels.append(best_relabelling(agreement, allowed)[own])
        renamed.append(Pool(labels, pool.objectives))
    return replace(problem, bounds=bounds), renamed


def independent_result(problem: Problem, labels: NDArray[np.int64], similarity: Array) -> SolverResult:
    """The result that consists of these labels of every task alone."""
    coupling = Independent(problem.kernel, problem.offsets, problem.ridge)
    point = start(Search(coupling, problem.bounds), labels, coupling.uncoupled())
    record(point, "single tasks", "labels")
    return SolverResult(
        labels, point.Z, point.state, point.objective, point.history, True, 1,
        labels, similarity, groups_of_tasks(similarity),
    )  # fmt: skip


def first_relationship(similarity: Array) -> Array:
    """Ω to begin with: the similarity of the tasks' class means, made positive definite with trace 1."""
    eigenvalues, vectors = sla.eigh(np.clip(similarity, 0.0, None))
    Omega = (vectors * np.maximum(eigenvalues, _FIRST_EIGENVALUE)) @ vectors.T
    return Omega / np.trace(Omega)


def _search_coupled(
    problem: Problem,
    options: SolverOptions,
    rng: np.random.Generator,
    pools: list[Pool],
    aligned: NDArray[np.int64],
    similarity: Array,
    groups: list[NDArray[np.int64]],
) -> Point:
    coupling = Relationship(problem.kernel, problem.offsets, problem.lambda1, problem.lambda2)
    search = Search(coupling, problem.bounds, pools, options.max_iter, options.tol)
    first = first_relationship(similarity)
    best = descend(search, start(search, aligned, first), rng, "from single-task solutions")
    if len(groups) == 1:
        best = _restarts(problem, search, options, rng, best, first)
    else:
        for point in _from_groups(problem, search, options, rng, pools, aligned, similarity, groups, first):
            best = _better(best, point)
    return _polish(search, best, rng, options)


def _better(best: Point, other: Point) -> Point:
    """The lower of two points; the winner's history tells how the value fell, whoever found it."""
    if other.objective >= best.objective:
        return best
    other.history = best.history + [entry for entry in other.history if entry["objective"] < best.objective]
    return other


def _polish(search: Search, point: Point, rng: np.random.Generator, options: SolverOptions) -> Point:
    """Carry a point further than ``tol``; it counts as converged if it reached ``tol``."""
    converged, n_iter = point.converged, point.n_iter
    fine = replace(search, tol=options.tol * _POLISH, coupling_steps=_POLISH_STEPS)
    point = descend(fine, point, rng, "polish")
    point.converged |= converged
    point.n_iter += n_iter
    return point


def _restarts(
    problem: Problem, search: Search, options: SolverOptions, rng: np.random.Generator, best: Point, first: Array
) -> Point:
    """Label all tasks through the model of one task's labelling, for the best labellings of every task; descend."""
    independent = Independent(problem.kernel, problem.offsets, problem.ridge).condition(first)
    Omega = (1 - _RESTART_MIXTURE) * best.Z + _RESTART_MIXTURE * first
    pools = search.pools or []
    # the best labelling of every task first, then the second best: when the number is limited, all tasks have a say
    seeds = [
        (task, pool.labels[k])
        for k in range(options.n_seeds)
        for task, pool in enumerate(pools)
        if k < len(pool.labels)
    ]
    rough = replace(search, tol=search.tol * _ROUGH)  # only the best is carried to the end
    found = [best]
    for _ in range(_ROUNDS):
        starts = [_seeded_labels(problem, independent.block(task), task, z) for task, z in seeds[:_MOST_RESTARTS]]
        generators = rng.spawn(len(starts))

        def run(labels: NDArray[np.int64], generator: np.random.Generator) -> Point:
            return descend(rough, start(search, labels, Omega), generator, "restart")

        jobs = (delayed(run)(labels, generator) for labels, generator in zip(starts, generators))
        told = counted(jobs, "clustering together: start", len(starts))
        found += list(Parallel(n_jobs=options.n_jobs, prefer="threads")(told))
        # next, what coupling has made of the tasks in the best solutions
        found = _distinct(found)[:_KEPT]
        seeds = [(task, point.labels[problem.rows(task)]) for point in found for task in range(problem.n_tasks)]
    for point in found:
        best = _better(best, point)
    return best


def _distinct(points: list[Point]) -> list[Point]:
    """Points with different objectives, lowest first."""
    ordered = sorted(points, key=lambda point: point.objective)
    return [
        point
        for k, point in enumerate(ordered)
        if k == 0 or point.objective > ordered[k - 1].objective * (1 + _SAME_OBJECTIVE)
    ]


def _seeded_labels(problem: Problem, M: Array, task: int, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels of all tasks from the single-task model of one labelled task."""
    rows = problem.rows(task)
    alpha = M @ label_codes(labels, problem.n_clusters)
    result = np.empty(len(problem.kernel), dtype=np.int64)
    for other in range(problem.n_tasks):
        if other == task:
            result[rows] = labels
            continue
        scores = problem.kernel[problem.rows(other), rows] @ alpha
        result[problem.rows(other)] = assign(-scores, problem.bounds.lower[other], problem.bounds.upper[other])
    return result


def _from_groups(
    problem: Problem,
    search: Search,
    options: SolverOptions,
    rng: np.random.Generator,
    pools: list[Pool],
    aligned: NDArray[np.int64],
    similarity: Array,
    groups: list[NDArray[np.int64]],
    first: Array,
) -> list[Point]:
    """Solve every group of related tasks apart, put Ω together from the blocks, and descend jointly."""
    m = problem.n_tasks
    labels = aligned.copy()
    Omega = np.zeros((m, m))
    for group in groups:
        part = problem.restrict(group)
        within = np.concatenate([np.arange(problem.offsets[i], problem.offsets[i + 1]) for i in group])
        if len(group) == 1:
            Omega[group[0], group[0]] = 1 / m
            continue
        solved = _search_coupled(
            part, options, rng, [pools[i] for i in group], aligned[within], similarity[np.ix_(group, group)],
            [np.arange(len(group))],
        )  # fmt: skip
        labels[within] = solved.labels
        Omega[np.ix_(group, group)] = solved.Z * len(group) / m
    realigned, _ = align(problem.kernel, problem.offsets, labels, problem.bounds)
    mixed = (1 - _RESTART_MIXTURE) * Omega + _RESTART_MIXTURE * first
    return [
        descend(search, start(search, labels, Omega), rng, "from groups"),
        descend(search, start(search, realigned, mixed), rng, "from aligned groups"),
    ]
