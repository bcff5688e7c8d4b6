"""The recipe for large data: search on few rows, finish on all.

1. starts: every task alone on some hundred of its rows, random labels along a path of λ (as for small data)
2. every task alone on a sample of the rows, from its best starts; the best end is the single-task solution
3. align the tasks by their class means; their similarity is the first Ω; descend on the sample, with restarts from the
   models of single tasks and from groups of related tasks (as many as ``n_init`` allows)
4. all rows: a few passes and the polish
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.alignment import align_means, groups_of_tasks, products_of_means
from mtclust.labels import SizeBounds
from mtclust.primal.labelling import TaskLabels
from mtclust.primal.many_tasks import MANY, align_many
from mtclust.primal.rows import Moments, Source
from mtclust.primal.sample import proportional, sample_of
from mtclust.primal.search import Data, State, begin, descend, state_of
from mtclust.primal.starts import first_models
from mtclust.primal.systems import AloneSystem, SharedSystem, System, relationship_system
from mtclust.solvers.exchange import first_relationship

Array = NDArray[np.float64]

#: restarts of the coupled search on the sample, per start asked for
_RESTARTS_PER_INIT = 2
#: weight of the first Ω in a restart
_RESTART_MIXTURE = 0.2
#: rounds of restarts: from the tasks alone, then from the best so many ends; ends as near as this count as one
_ROUNDS = 2
_KEPT = 3
_SAME = 1e-4
#: shares of I/r in the D under which DMTFC clusters its tasks anew
_SMOOTHING = (0.8, 0.5, 0.2)
#: searches on the sample stop at this multiple of ``tol``
_ROUGH = 10.0


@dataclass(frozen=True)
class PrimalProblem:
    """Rows with their moments and size bounds, the penalties, and how tasks are coupled."""

    data: Data
    method: str  # "relationship", "features" or "independent"
    lambda1: Array
    lambda2: float

    @property
    def ridge(self) -> Array:
        """λ₁ + mλ₂: the ridge of every task alone."""
        return self.lambda1 + self.data.n_tasks * self.lambda2

    def system(self, data: Data | None = None) -> System:
        grams = (data or self.data).moments.normalised_gram
        if self.method == "relationship":
            return relationship_system(grams, self.lambda1, self.lambda2)
        if self.method == "features":
            return SharedSystem(grams, float(self.lambda1.mean()), self.lambda2)
        return AloneSystem(grams, self.ridge)

    def alone(self, data: Data | None = None) -> AloneSystem:
        return AloneSystem((data or self.data).moments.normalised_gram, self.ridge)


@dataclass(frozen=True)
class PrimalOptions:
    """How hard to search: ``n_init`` starts, ``max_iter`` passes at most, ``tol`` relative to J, a polish or not."""

    n_init: int = 8
    max_iter: int = 40
    tol: float = 1e-4
    polish: bool = True


@dataclass
class PrimalResult:
    """The state on all rows, and what the tasks alone gave."""

    problem: PrimalProblem
    state: State
    system: System
    sample: Data
    sampled_state: State
    alone_state: State  # on the sample, clusters aligned
    alone_labels: Any  # on all rows
    similarity: Array
    groups: list[NDArray[np.int64]]


def solve(problem: PrimalProblem, options: PrimalOptions, rng: np.random.Generator) -> PrimalResult:
    """Labels of all rows and the coupling together."""
    sample, sampled = sample_of(problem.data, rng)
    search = replace(options, polish=not sampled)
    alone, similarity, models = _alone(problem, sample, search, rng)
    groups = groups_of_tasks(similarity)
    if problem.data.bounds.movable:
        problem, sample = _with_ids_of(problem, sample, alone)
    best = _coupled(problem, sample, search, rng, alone, similarity, groups, models)
    system, data = problem.system(), problem.data
    state = best
    if sampled:
        # prices of the sample are near those of all rows; the models are the same functions
        state = begin(data, system, best.solver.Z, best.W, [task.prices for task in best.tasks])
        state = descend(data, system, state, rng, max_rounds=options.max_iter, tol=options.tol, stage="all rows")
        for task in state.tasks:
            task.gaps = None  # the memory is needed for the labels that are returned
    alone_labels = alone.labels
    if problem.method == "independent":
        alone_labels = state.labels
    elif sampled:
        prices = [task.prices for task in alone.tasks]
        alone_labels = begin(data, problem.alone(), np.eye(data.n_tasks), alone.W, prices).labels
    if problem.method != "relationship":
        _align(data, state)
    return PrimalResult(problem, state, system, sample, best, alone, alone_labels, similarity, groups)


def _alone(
    problem: PrimalProblem, sample: Data, options: PrimalOptions, rng: np.random.Generator
) -> tuple[State, Array, list[Array]]:
    """The best labels of every task alone, clusters aligned; the similarity of the tasks; the models of all starts."""
    system = problem.alone(sample)
    starts = first_models(problem.ridge, sample, options.n_init, rng)
    states = []
    for k in range(max(len(models) for models in starts)):
        W = np.stack([models[min(k, len(models) - 1)] for models in starts])
        state = begin(sample, system, system.uncoupled(), W)
        effort: dict[str, Any] = {
            "max_rounds": options.max_iter,
            "tol": options.tol * _ROUGH,
            "polish_rounds": int(options.polish),
        }
        states.append(descend(sample, system, state, rng, learn=False, stage="single tasks", **effort))
    if len(states) > 1:
        gains = np.stack([np.einsum("irc,irc->i", state.b, state.W) for state in states])
        tasks = [states[k].tasks[i] for i, k in enumerate(gains.argmax(axis=0))]
        best = state_of(sample, system, system.uncoupled(), tasks)
    else:
        best = states[0]
    models = [state.W.copy() for state in states]
    return best, _align(sample, best), models


def _align(data: Data, state: State) -> Array:
    """Common cluster ids by class means, in place; returns the similarity of the tasks."""
    counts = np.stack([task.counts for task in state.tasks])
    m = len(counts)
    sums = np.stack([task.sums for task in state.tasks])
    means = (sums - counts[:, :, None] * data.moments.mean[:, None]) / data.moments.root_scale
    means /= np.maximum(counts, 1)[:, :, None]
    if m > MANY and not data.bounds.movable:
        new_ids, similarity = align_many(means, counts, data.bounds)
    else:
        new_ids, similarity = align_means(products_of_means(means), counts, data.bounds)
    for i, ids in enumerate(new_ids):
        state.tasks[i].rename(ids)
        for table in (state.b, state.W):
            table[i][:, ids] = table[i].copy()
    return similarity


def _with_ids_of(problem: PrimalProblem, sample: Data, alone: State) -> tuple[PrimalProblem, Data]:
    """Every task keeps the clusters that it has in the aligned labels of the sample."""
    rows = [problem.data.bounds.row(i, task.labels.astype(np.int64)) for i, task in enumerate(alone.tasks)]
    fixed = SizeBounds(np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows]))
    own = proportional(fixed, problem.data.moments.sizes, sample.moments.sizes)
    return replace(problem, data=replace(problem.data, bounds=fixed)), replace(sample, bounds=own)


def _coupled(
    problem: PrimalProblem, sample: Data, options: PrimalOptions, rng: np.random.Generator,
    alone: State, similarity: Array, groups: list[NDArray[np.int64]], models: list[Array],
) -> State:  # fmt: skip
    """The best coupled labels found on the sample; ``models`` are those of all starts of the tasks alone."""
    if problem.method == "independent" or (problem.method == "relationship" and problem.data.n_tasks == 1):
        system: System = problem.alone(sample)
        copy = state_of(sample, system, system.uncoupled(), _copies(alone))
        if not options.polish:
            return copy
        return descend(
            sample, system, copy, rng, max_rounds=options.max_iter, tol=options.tol, learn=False, stage="single tasks"
        )
    system = problem.system(sample)
    coupled = problem.method == "relationship"
    first = first_relationship(similarity) if coupled else system.uncoupled()

    only = options.n_init == 1

    def run(state: State, stage: str) -> State:
        return descend(
            sample, system, state, rng, max_rounds=options.max_iter, tol=options.tol * (1.0 if only else _ROUGH),
            stage=stage, polish_rounds=int(options.polish),
        )  # fmt: skip

    best = run(state_of(sample, system, first, _copies(alone)), "from single-task solutions")
    if isinstance(system, SharedSystem) and not only:
        best = _restarts_under_features(problem, sample, options, rng, system, best, run)
    elif len(groups) > 1 and not only:
        start = _from_groups(problem, sample, options, rng, alone, similarity, groups, models)
        best = _better(best, run(start, "groups"))
    elif not only:
        Omega = (1 - _RESTART_MIXTURE) * best.solver.Z + _RESTART_MIXTURE * first
        best = _restarts(sample, system, Omega, best, models, _RESTARTS_PER_INIT * options.n_init, run)
    if only or not options.polish:
        return best
    return descend(sample, system, best, rng, max_rounds=options.max_iter, tol=options.tol, stage="finish")


def _restarts(
    sample: Data, system: System, Omega: Array, best: State, models: list[Array], most: int,
    run: Callable[[State, str], State],
) -> State:  # fmt: skip
    """Label all tasks through the model of one of them, for every start; descend; again from the best ends."""
    m = len(best.W)
    found = [best]
    for _ in range(_ROUNDS):
        seeds = [W[i] for W in models for i in range(m)]
        for seed in seeds[:most]:
            W = np.broadcast_to(seed, best.W.shape)
            found.append(run(begin(sample, system, Omega, W), "restart"))
        ordered = sorted(found, key=lambda state: state.value)
        found = [s for k, s in enumerate(ordered) if k == 0 or s.value > ordered[k - 1].value * (1 + _SAME)][:_KEPT]
        models = [state.W for state in found]
    for state in found:
        best = _better(best, state)
    return best


def _restarts_under_features(
    problem: PrimalProblem, sample: Data, options: PrimalOptions, rng: np.random.Generator, system: SharedSystem,
    best: State, run: Callable[[State, str], State],
) -> State:  # fmt: skip
    """Cluster every task anew from random starts under a smoothed D, which does not hold its labels so fast."""
    r = sample.moments.n_features
    for smoothing in _SMOOTHING:
        D = (1 - smoothing) * best.solver.Z + smoothing * np.eye(r) / r
        starts = first_models(problem.ridge, sample, options.n_init, rng, system.gain(D))
        W = np.stack([models[0] for models in starts])
        best = _better(best, run(begin(sample, system, D, W), "restart under smoothed features"))
    return best


def _copies(state: State) -> list[TaskLabels]:
    return [replace(task, labels=task.labels.copy(), sums=task.sums.copy(), gaps=None) for task in state.tasks]


def _better(best: State, other: State) -> State:
    """The lower of two states; the winner's history tells how the value fell, whoever found it."""
    if other.value >= best.value:
        return best
    other.history = best.history + [entry for entry in other.history if entry["objective"] < best.value]
    return other


def _from_groups(
    problem: PrimalProblem, sample: Data, options: PrimalOptions, rng: np.random.Generator,
    alone: State, similarity: Array, groups: list[NDArray[np.int64]], models: list[Array],
) -> State:  # fmt: skip
    """Every group of related tasks solved apart, Ω put together from the blocks."""
    m = problem.data.n_tasks
    Omega, tasks = np.zeros((m, m)), _copies(alone)
    for group in groups:
        if len(group) == 1:
            Omega[group[0], group[0]] = 1 / m
            continue
        data = restrict(sample, group)
        part = PrimalProblem(data, problem.method, problem.lambda1[group], problem.lambda2 * m / len(group))
        own = state_of(data, part.alone(), np.eye(len(group)), [_copies(alone)[i] for i in group])
        within = similarity[np.ix_(group, group)]
        own_models = [W[group] for W in models]
        solved = _coupled(part, data, options, rng, own, within, [np.arange(len(group))], own_models)
        for i, task in zip(group, solved.tasks):
            tasks[i] = task
        Omega[np.ix_(group, group)] = solved.solver.Z * len(group) / m
    return state_of(sample, problem.system(sample), Omega, tasks)


@dataclass(frozen=True)
class _SomeTasks:
    """Some tasks of a source."""

    source: Source
    tasks: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.source.n_features

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        return self.source.blocks(int(self.tasks[task]))

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        return self.source.take(int(self.tasks[task]), positions)

    def whole(self, task: int) -> NDArray[Any] | None:
        return self.source.whole(int(self.tasks[task]))


def restrict(data: Data, tasks: NDArray[np.int64]) -> Data:
    """Some of the tasks."""
    own = data.moments
    part = Moments(own.sizes[tasks], own.mean[tasks], own.total[tasks], own.gram[tasks], own.scale, own.largest[tasks])
    offsets = np.concatenate([[0], np.cumsum(part.sizes)]).astype(np.int64)
    return Data(_SomeTasks(data.source, tasks, offsets), part, data.bounds.restrict(tasks))
