"""From checked rows to the outcome of a search, in the form that suits them.

Settings are chosen on few rows, held as kernel matrices (:mod:`mtclust.choose.settings`). Where these are all rows,
what the choice has found is the outcome; or else its labels are carried to all rows, held as features.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.choose.choice import bounds_of_labels, labels_of, modelled
from mtclust.choose.coupling import decide_coupling, decision_of_relaxation
from mtclust.choose.frames import offsets_by_sums
from mtclust.choose.record import CouplingDecision
from mtclust.choose.settings import (
    EFFORT,
    LEAST_ROWS,
    ROWS,
    Input,
    Params,
    Sample,
    Settings,
    all_rows,
    choose_settings,
    sample_rows,
    taken,
)
from mtclust.choose.views import MANY_DIRECTIONS, View, in_many_directions
from mtclust.core.coupling import COUPLINGS
from mtclust.core.criterion import CRITERIA, indicators
from mtclust.core.hints import check_sizes, known_counts
from mtclust.core.kernels import KERNELS, Kernel, eigen_features, is_precomputed
from mtclust.core.labels import SizeBounds, free_bounds, neutral_bounds, one_per_task, parse_sizes, proportional
from mtclust.core.order import added
from mtclust.core.tasks import TaskIndex
from mtclust.exceptions import NO_VARIATION
from mtclust.rows.features import FeatureMap, feature_map, rank_of, source_of
from mtclust.rows.moments import Data
from mtclust.search.all_rows import AllRows
from mtclust.search.problem import Fit, Point, Problem, SearchOptions
from mtclust.search.recipe import ROUGH, Outcome, first_relationship, solve
from mtclust.util.messages import warn_user
from mtclust.util.system import require_kernel_memory

Array = NDArray[np.float64]

#: rows that are looked at where they spread over many directions
_ROWS_IN_MANY = 1500
#: up to this many rows kernel matrices of all of them are used, if the form is left open
_SMALL = 720
#: rows of a task that is not in the sample, or that nothing couples to others; turns of labels and offset of the first,
#: starts of the others
_ROWS_ALONE, _TURNS, _STARTS_ALONE = 100, 5, 8


@dataclass(frozen=True)
class Prepared:
    """A problem with everything chosen before the search."""

    problem: Any
    settings: Settings
    sample: Sample
    form: str  # "dual" or "primal"

    @property
    def is_searched(self) -> bool:
        """Whether there is a search of its own: where nothing or only the kernel was open."""
        return self.settings.choice is None or not self.settings.question.sizes_open


def prepare(params: Params, given: Input) -> Prepared:
    """Choose settings and build the problem in the form that suits the rows."""
    X, index, most, form = given.rows, given.index, ROWS, form_of(params, given)
    if form == "primal" and params.by_rows and X.shape[0] > most and X.shape[1] > MANY_DIRECTIONS:
        few = sample_rows(X, index, most)
        most = _ROWS_IN_MANY if in_many_directions(few.rows, few.index.offsets) else most
    if form == "dual":
        sample = all_rows(X, index)
    elif params.center == "all" and index.n_tasks <= most:  # then rows of all tasks are looked at
        sample = sample_rows(X, index, most, most_tasks=index.n_tasks, least=1)
    else:
        sample = sample_rows(X, index, most)
    settings = choose_settings(params, given, sample)
    if settings.moves is not None and not sample.complete:
        settings = _moved_by_all_rows(settings, given, sample)
    return Prepared(_problem(params, given, settings, form), settings, sample, form)


def form_of(params: Params, given: Input) -> str:
    """Kernel matrices ("dual", if memory holds them) or features ("primal")."""
    n, form = given.rows.shape[0], params.form
    dual_only = is_precomputed(params.kernel) or params.solver == "cutting-plane"
    if form == "primal" and dual_only:
        raise ValueError(
            'solver_options["form"]="primal" needs explicit rows and solver="exchange"; '
            f"got kernel={params.kernel!r} and solver={params.solver!r}."
        )
    if not given.index.in_memory or form == "primal" or (form == "auto" and n > _SMALL and not dual_only):
        return "primal"
    way_out = (
        "Use fewer rows."
        if dual_only
        else 'Leave solver_options["form"] at "auto" or set it to "primal", which forms no kernel matrix.'
    )
    require_kernel_memory(n, way_out)
    return "dual"


def _moved_by_all_rows(settings: Settings, given: Input, sample: Sample) -> Settings:
    """Offsets of tasks by all of their rows, in the clusters that the model of the sample puts them in.

    A task that is not in the sample begins with the offset of its mean, and takes turns of labels and offset.
    """
    assert settings.choice is not None
    assert settings.moves is not None
    index, outcome, C = given.index, settings.choice.outcome, int(given.clusters.max())
    model: Any = outcome.problem.decision(outcome.point)
    moves, sampled = settings.moves.copy(), settings.view.rows
    others = np.setdiff1d(np.arange(index.n_tasks), sample.tasks)
    if len(others):
        z = indicators(labels_of(outcome.point), C)
        means = z.T @ sampled / np.maximum(z.sum(axis=0), 1.0)[:, None]
        few = _some_rows(given, others)
        for task, part in zip(others, few.index.slices()):
            rows = _dense(few.rows[part])
            moves[task] = rows.mean(axis=0) - sampled.mean(axis=0)
            for _ in range(_TURNS):
                moves[task] = (rows - means[model.clusters(rows - moves[task])]).mean(axis=0)
    sums, counts = index.over(given.rows)(partial(_sums_in_clusters, model, moves, C), added)
    moves = offsets_by_sums(sums, counts)
    view = replace(settings.question.view).aligned(moves[sample.tasks])
    return replace(settings, moves=moves, view=view)


def _sums_in_clusters(model: Any, moves: Array, C: int, rows: Any, tasks: NDArray[np.int64]) -> tuple[Array, Array]:
    """Sums (m × C × d) and numbers (m × C) of the rows of every task in every cluster."""
    rows, shape = _dense(rows), (len(moves), C)
    cells = tasks.astype(np.int64) * C + model.clusters(rows - moves[tasks])
    found, places, counts = np.unique(cells, return_inverse=True, return_counts=True)
    sums, sizes = np.zeros((len(moves) * C, rows.shape[1])), np.zeros(len(moves) * C)
    sums[found], sizes[found] = indicators(places, len(found)).T @ rows, counts
    return sums.reshape(*shape, -1), sizes.reshape(shape)


def _some_rows(given: Input, tasks: NDArray[np.int64]) -> Sample:
    """The first rows of tasks that are not in the sample."""
    numbers = np.minimum(given.index.sizes[tasks], _ROWS_ALONE)
    return taken(given.rows, given.index, tasks, given.index.first_rows(tasks, numbers))


def _dense(rows: Any) -> Array:
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)


def tasks_of_few(prepared: Prepared, index: TaskIndex) -> NDArray[np.int64]:
    """Which tasks those of ``few`` of an outcome are."""
    if prepared.settings.frame != "task":  # all rows are one task
        return np.zeros(1, dtype=np.int64)
    whole = prepared.is_searched and prepared.form == "dual"
    return np.arange(index.n_tasks) if whole else prepared.sample.tasks


def solved(
    params: Params, prepared: Prepared, given: Input, rng: np.random.Generator
) -> tuple[Outcome, CouplingDecision | None]:
    """What a search ends with, and what is decided on the coupling where it is open."""
    settings, m = prepared.settings, given.index.n_tasks
    decides = COUPLINGS[params.method].couples_labels
    if params.solver == "cutting-plane":
        decision = decision_of_relaxation(params.coupling, m) if decides else None
        return _solve_relaxed(params, prepared.problem, given.index, rng), decision
    outcome = search(prepared, given, params.options, rng)
    if not decides:
        return outcome, None
    if settings.frame != "task":
        moved = "tasks moved by an offset each" if settings.moves is not None else "rows compared as they are"
        return outcome, CouplingDecision("full", f"one model serves all tasks, with {moved}")
    return decide_coupling(
        params.coupling, outcome, settings.question.X, settings.choice, prepared.sample, given.index, params.options
    )


def _solve_relaxed(params: Params, problem: Problem, index: TaskIndex, rng: np.random.Generator) -> Outcome:
    """Run the cutting-plane solver with the ``solver_options`` of a user; labels to start from come in input order."""
    from mtclust.relaxation.cutting_plane import solve_cutting_plane
    from mtclust.relaxation.options import CuttingPlaneOptions

    options = CuttingPlaneOptions.from_dict(params.solver_options)
    if not isinstance(options.init, str):
        init = np.asarray(options.init)
        options = replace(options, init=init[index.order] if init.shape == index.order.shape else init)
    return solve_cutting_plane(problem, options, params.options, rng)


def search(prepared: Prepared, given: Input, options: SearchOptions, rng: np.random.Generator) -> Outcome:
    """What the choice has found, on all rows, or a search of its own."""
    settings, problem, sample, index = prepared.settings, prepared.problem, prepared.sample, given.index
    choice = settings.choice
    if prepared.is_searched and prepared.form == "dual":
        return solve(problem, options, rng)
    if choice is None or not (problem.bounds.interchangeable() or problem.bounds.movable):  # a table of sizes
        few = _searched_on_few(prepared, index, options, rng)
    else:
        few = choice.outcome
    rng = np.random.default_rng(0)  # what was chosen does not depend on random_state
    if settings.frame != "task":
        return _in_common_frame(prepared, few, index, options, rng)
    return few if sample.complete and prepared.form == "dual" else _carried(prepared, few, given, options, rng)


def _searched_on_few(
    prepared: Prepared, index: TaskIndex, options: SearchOptions, rng: np.random.Generator
) -> Outcome:  # fmt: skip
    """The search on the rows of the sample, with less effort: all rows descend from its end."""
    settings, sample, bounds = prepared.settings, prepared.sample, prepared.problem.bounds
    few = settings.question.problem(settings.spec, settings.criterion)
    part = proportional(bounds.restrict(sample.tasks), index.sizes[sample.tasks], sample.index.sizes)
    starts = options.single_task_n_init or options.n_init
    many = sample.index.sizes.max() <= LEAST_ROWS  # tasks, so that restarts would cost more than they gain
    n_init = 1 if many else max(min(options.n_init, 2), options.n_init // EFFORT)
    rough = replace(options, n_init=n_init, single_task_n_init=starts, tol=ROUGH * options.tol, polish=False)
    return solve(few.with_bounds(part), rough, rng)


def _carried(
    prepared: Prepared, few: Outcome, given: Input, options: SearchOptions, rng: np.random.Generator
) -> Outcome:  # fmt: skip
    """Labels of a sample carried to all rows; with sizes open they stay, or else they descend from there."""
    sample, problem, index = prepared.sample, prepared.problem, given.index
    if not few.problem.coupling.learns:  # whatever the method is, tasks apart were chosen
        problem = problem.alone()
    positions, labels, seen = _of_every_task(prepared, given, labels_of(few.point))
    small = not problem.coupling.learns and sample.index.sizes.max() < _ROWS_ALONE and not problem.bounds.movable
    if prepared.is_searched and small:  # every task is a search of its own
        wanted = np.minimum(index.sizes, _ROWS_ALONE)
        positions = index.first_rows(np.arange(index.n_tasks), wanted)
        starts = max(1, min(options.n_init, _STARTS_ALONE, int(index.sizes.max()) // problem.bounds.n_clusters))
        labels = problem.starts(positions, starts, int(rng.integers(2**31)))
    counts = np.stack([np.bincount(part, minlength=few.problem.bounds.n_clusters) for part in labels])
    if prepared.is_searched:
        problem = problem.with_bounds(problem.bounds.fitted_to(counts).fixed())
    else:
        problem = problem.with_bounds(bounds_of_labels(np.diff(problem.offsets), counts, given.clusters))
    Z = problem.uncoupled()
    if problem.couples_labels:
        Z = _coupling_of_all(few.point.Z, seen)
    begun = problem.carried_labels(positions, np.concatenate(labels), Z)
    if prepared.is_searched:
        begun, similarity = problem.matched(begun)
        if problem.couples_labels:  # Ω of few rows hardly revives where it has collapsed: it begins anew
            begun = problem.continued(begun, first_relationship(similarity))
        point = problem.descend(begun, rng, options.effort("all rows", last=True))
        point.n_iter += few.point.n_iter
        if not problem.couples_labels:
            point, _ = problem.matched(point)
    else:
        point = _followed(problem, begun, options, rng)
    alone = point
    if problem.coupling.learns:
        single = _of_every_task(prepared, given, labels_of(few.single))[1]
        apart = problem.alone()
        alone = apart.carried_labels(positions, np.concatenate(single), apart.uncoupled())
        if prepared.is_searched:
            alone = apart.descend(alone, rng, options.effort("single tasks", learn=False, max_iter=2))
    similarity = np.eye(index.n_tasks)
    similarity[np.ix_(sample.tasks, sample.tasks)] = few.similarity
    whole = {"problem": problem, "point": point, "single": alone, "similarity": similarity}
    return replace(few, **whole, few=few.problem, few_point=few.point)


def _followed(problem: Any, begun: Point, options: SearchOptions, rng: np.random.Generator) -> Point:
    """All rows as the models of all rows have them, once: going on would leave what was chosen."""
    point: Point = problem.descend(begun, rng, options.effort("all rows", last=True, max_iter=1))
    point.converged = True
    return point


def _of_every_task(
    prepared: Prepared, given: Input, labels: NDArray[np.int64]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], NDArray[np.int64]]:
    """Positions of some rows of every task, their labels, and the place of every task in the sample or −1.

    Rows of tasks that are not in the sample are labelled by one model of all its rows, each around its task's mean.
    """
    sample, index = prepared.sample, given.index
    seen = np.full(index.n_tasks, -1)
    seen[sample.tasks] = np.arange(len(sample.tasks))
    offsets, others = sample.index.offsets, np.flatnonzero(seen < 0)
    positions: list[Any] = [None] * index.n_tasks
    found: list[Any] = [None] * index.n_tasks
    for k, task in enumerate(sample.tasks):
        positions[task], found[task] = sample.positions[k], labels[offsets[k] : offsets[k + 1]]
    if len(others):
        teacher = _teacher(prepared, labels)
        few = _some_rows(given, others)
        for task, part, rows in zip(others, few.positions, few.index.slices()):
            own = _dense(few.rows[rows])
            positions[task], found[task] = part, teacher.clusters(own - own.mean(axis=0))
    return positions, found, seen


def _teacher(prepared: Prepared, labels: NDArray[np.int64]) -> Any:
    """One model of the rows of the sample around the means of their tasks."""
    question, settings = prepared.settings.question, prepared.settings
    rows = _dense(question.view.centred_rows[0])
    view = View(rows, np.array([0, len(rows)]))
    one = replace(question, view=view, clusters=question.clusters[:1], method="independent", lambdas=None, names=None)
    outcome = modelled(one, settings.spec, labels, SearchOptions())
    model: Any = outcome.problem
    return model.decision(outcome.point)


def _coupling_of_all(Z: Array, seen: NDArray[np.int64]) -> Array:
    """Ω of all tasks from that of some of them: the others are like the mean of these."""
    if len(Z) == len(seen):
        return Z
    own, rest = float(np.mean(Z.diagonal())), float((Z.sum() - np.trace(Z)) / max(len(Z) * (len(Z) - 1), 1))
    found = np.full((len(seen), len(seen)), max(rest, 0.0))
    found.flat[:: len(seen) + 1] = own
    return found / np.trace(found)


def _in_common_frame(
    prepared: Prepared, few: Outcome, index: TaskIndex, options: SearchOptions, rng: np.random.Generator
) -> Outcome:  # fmt: skip
    """All rows as one task, in the order of the tasks; the tasks alone keep the best labels that each has by itself."""
    sample, choice = prepared.sample, prepared.settings.choice
    pooled, point = few.problem, few.point
    apart = None if choice is None else choice.apart
    similarity = np.eye(index.n_tasks)  # one model for all says nothing of how tasks differ
    if not sample.complete:
        pooled, apart = prepared.problem, None
        pooled = pooled.with_bounds(free_bounds(np.diff(pooled.offsets), few.problem.bounds.present))
        positions = sample.positions_in(index)
        first = np.argsort(positions)
        carried = pooled.carried_labels([positions[first]], labels_of(few.point)[first], pooled.uncoupled())
        point = _followed(pooled, carried, options, rng)
    single = point if apart is None else Point(Fit(apart, few.point.fit.at, few.problem.bounds), point.value)
    return Outcome(pooled, point, single, few.problem, few.point, few.point, similarity)


def _problem(params: Params, given: Input, settings: Settings, form: str) -> Any:
    """All rows as kernel matrices, or as features with moments."""
    rank, landmarks = None, None
    if form == "primal":
        tasks = given.index.n_tasks if settings.frame == "task" else 1
        rank = rank_of(settings.kernel, given.rows, params.n_components, tasks)
        landmarks = None if rank is None else given.index.even_rows(rank, params.sizes_open)
        given = given if settings.frame == "task" else given.as_one_task(settings.moves)
    X, index, criterion = given.rows, given.index, CRITERIA[settings.criterion]()
    method, lambda1 = params.method_of(index.n_tasks), settings.lambda1[: index.n_tasks]
    bounds = neutral_bounds(index.sizes, given.clusters)
    if criterion.exchanges:
        bounds = parse_sizes(params.sizes, index.sizes, given.clusters, index.names)
    if form == "dual":
        seen = settings.view.through(settings.spec)
        scale, matrix = seen.centred.scale, seen.centred.matrix
        weighed = eigen_features(matrix, params.n_components) if COUPLINGS[method].of_features else None
        problem: Any = Problem(
            matrix, index.offsets, bounds, lambda1, settings.weight, method, weighed, criterion,
            origin=seen,
        )  # fmt: skip
    else:
        curved = settings.kernel.kind in KERNELS and settings.kernel.kind != "linear"
        centres = _means_by_task(X, index) if curved and params.fit_intercept else None
        features = feature_map(settings.kernel, X, index, landmarks, centres)
        source = source_of(X, features, index, params.fit_intercept)
        moments = source.moments(params.fit_intercept)
        scale, data = moments.scale, Data(source, moments, bounds)
        problem = AllRows(data, method, lambda1, settings.weight, features, criterion=criterion)
    if scale == 0:
        warn_user(NO_VARIATION, ConvergenceWarning)
    return problem


def _means_by_task(X: Any, index: TaskIndex) -> Array | None:
    """Mean row of every task (m × d), wherever the rows are; None for sparse rows, which are not centred."""
    if sp.issparse(X):
        return None
    source = source_of(X, FeatureMap(Kernel("linear")), index, True)
    mean = source.moments(True).mean
    return mean if source.shift is None else mean + source.shift


def check_known(params: Params, given: Input) -> None:
    """Refuse known rows that contradict the number of clusters or sizes that are given."""
    known, index, clusters = given.hints.known, given.index, given.clusters
    if known is None:
        return
    C = int(clusters.max())
    if known.max() >= C:
        row = int(index.order[int(np.flatnonzero(known >= C)[0])])
        raise ValueError(
            f"known has {known.max()} at row {row}; allowed are the cluster ids 0 to {C - 1}, and -1 or missing where "
            "the cluster is unknown."
        )
    if isinstance(params.sizes, str) and params.sizes == "auto":  # nobody has given sizes
        bounds = neutral_bounds(index.sizes, clusters)
        bounds = SizeBounds(np.zeros_like(bounds.lower), bounds.upper, bounds.movable)
    else:
        bounds = parse_sizes(params.sizes, index.sizes, clusters, index.names)
    check_sizes(known_counts(known, index.offsets, C), bounds, index.sizes, index.names.tolist())


def clusters_per_task(n_clusters: Any, index: TaskIndex) -> NDArray[np.int64]:
    """The number of clusters of every task from a number or a mapping task → number."""
    if not isinstance(n_clusters, Mapping):
        return np.full(index.n_tasks, n_clusters, dtype=np.int64)
    numbers = one_per_task("n_clusters", n_clusters, index.names)
    for name, value in zip(index.names.tolist(), numbers):
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"n_clusters must hold whole numbers >= 1, one per task; got {value!r} for task {name!r}.")
    return np.array(numbers, dtype=np.int64)
