"""Fitting estimators on data too large for kernel matrices: see :mod:`mtclust.primal`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust._warnings import warn_user
from mtclust.alignment import ids_by_first_position, names_by_agreement
from mtclust.exceptions import NO_VARIATION, UncoupledWarning
from mtclust.features import Kernel
from mtclust.labels import SizeBounds, free_bounds, parse_sizes
from mtclust.memory import available_memory, bytes_with_features, require_memory
from mtclust.primal.features import FeatureMap, default_rank, feature_map, held_as, needs_landmarks, source_of
from mtclust.primal.judge import coupling_statistic, loo_score
from mtclust.primal.model import decision_model
from mtclust.primal.rows import Moments, RemoteLabels, RemoteTable, moments
from mtclust.primal.sample import ALL_ROWS, SAMPLED_ROWS
from mtclust.primal.search import Data, State, begin, descend, state_of
from mtclust.primal.settings import Settings, settle
from mtclust.primal.sizes import bounds_by_rule
from mtclust.primal.solve import PrimalOptions, PrimalProblem, PrimalResult, solve
from mtclust.tasks import TaskIndex

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LargeFit:
    """What a fit at scale keeps for later tasks: no rows, only their moments and class vectors."""

    features: FeatureMap
    moments: Moments
    b: Array
    bounds: SizeBounds
    method: str
    lambda1: Array
    lambda2: float


def fit_large(
    estimator: Any,
    X: Any,
    index: TaskIndex,
    clusters: NDArray[np.int64],
    given1: Array | None,
    rng: np.random.Generator,
) -> None:
    """Fit and store the attributes."""
    _check_memory(estimator, X, index)
    settings = settle(estimator, X, index, clusters, given1, rng)
    features = feature_map(settings.kernel, X, index, estimator.n_components, rng)
    source = source_of(features, X, index, estimator.fit_intercept)
    own = moments(source, estimator.fit_intercept)
    if own.scale == 0:
        warn_user(
            NO_VARIATION,
            ConvergenceWarning,
        )
    if settings.sizes is None:
        bounds = parse_sizes(estimator.sizes, index.sizes, clusters, index.names)
    else:
        bounds = bounds_by_rule(settings.sizes, source, own, clusters, rng)
    problem = PrimalProblem(
        Data(source, own, bounds), estimator._primal_method(index.n_tasks), settings.lambda1, settings.lambda2
    )
    options = PrimalOptions(n_init=estimator.n_init, **estimator._primal_effort())
    result = solve(problem, options, rng)
    if settings.sizes == "released":
        result = _released(result, options, rng)
    selection = dict(settings.selection)
    selection["features"] = _words(features, own)
    result = estimator._judge_large(result, index, options, rng, selection)
    _store(estimator, features, index, settings, result, selection, rng)


def _words(features: FeatureMap, own: Moments) -> str:
    if features.projection is None:
        return f"the {own.n_features} columns of X"
    return f"{own.n_features} Nyström features"


def _check_memory(estimator: Any, X: Any, index: TaskIndex) -> None:
    """Features that are held, Gram matrices, systems and per-row arrays; X itself is there already."""
    n, m = X.shape[0], index.n_tasks
    here = 0 if isinstance(X, RemoteTable) else n
    kind = estimator.kernel if isinstance(estimator.kernel, str) else "callable"
    nystroem = needs_landmarks(Kernel(kind), X, estimator.n_components)
    r = (estimator.n_components or default_rank(n)) if nystroem else X.shape[1]
    kept = held_as(n, r, available_memory()) if nystroem and here else None
    need = bytes_with_features(
        here, m, r, estimator._primal_method(m), sampled=n if n <= ALL_ROWS else SAMPLED_ROWS,
        held=0.0 if kept is None else float(np.dtype(kept).itemsize) * n * r, nystroem=nystroem,
    )  # fmt: skip
    require_memory(
        need,
        f"fit of {n} rows in {m} tasks with {r} features",
        "Set n_components to use fewer features (Nyström), or fit fewer tasks at a time.",
    )


def judge_relationship(
    estimator: Any, result: PrimalResult, index: TaskIndex, options: PrimalOptions, rng: np.random.Generator,
    selection: dict[str, Any],
) -> PrimalResult:  # fmt: skip
    """DMTRC's coupling: forced, shrunk, or kept unless the tasks' own data contradict it."""
    m, coupling = index.n_tasks, estimator.coupling
    if m == 1 or coupling in ("none", 0):
        reason = "there is only one task" if m == 1 else "set by the user"
        selection["coupling"] = {"decision": "none", "reason": reason}
        return result
    if coupling != "auto":
        selection["coupling"] = {"decision": coupling, "reason": "set by the user"}
        return result if coupling in ("full", 1) else _shrunk(result, float(coupling), options, rng)
    test = coupling_statistic(
        result.sample, result.problem.ridge, result.sampled_state, result.alone_state, result.similarity
    )
    selection["coupling"] = {
        "decision": "full" if test.accepted else "none",
        "reason": test.reason,
        "statistic": test.statistic,
        "per_task": dict(zip(index.names.tolist(), test.per_task.tolist())),
        "similarity": test.similarity,
        "coupled_labels": index.to_input_order(result.state.labels).astype(np.int64),
        "task_covariance": result.state.solver.Z,
    }
    if test.accepted:
        return result
    warn_user(
        f"The tasks were clustered apart: {test.reason}. "
        'Use coupling="full" to couple them all the same; selection_["coupling"] holds both results.',
        UncoupledWarning,
    )
    problem = replace(result.problem, method="independent")
    system = problem.alone()
    prices = [task.prices for task in result.alone_state.tasks]
    state = begin(problem.data, system, system.uncoupled(), result.alone_state.W, prices)
    state = descend(
        problem.data, system, state, rng, max_rounds=options.max_iter, tol=options.tol, stage="single tasks",
        learn=False,
    )  # fmt: skip
    return replace(result, problem=problem, state=state, system=system, alone_labels=state.labels)


def _released(result: PrimalResult, options: PrimalOptions, rng: np.random.Generator) -> PrimalResult:
    """The balanced solution with rows then free to move; the tasks alone likewise."""
    data = result.problem.data
    # the balanced search has settled which clusters a task has
    data = replace(data, bounds=free_bounds(data.moments.sizes, data.bounds.present))
    problem = replace(result.problem, data=data)
    for task in result.state.tasks:
        task.prices = np.zeros_like(task.prices)
    state = state_of(data, result.system, result.state.solver.Z, result.state.tasks)
    state.history = result.state.history
    state = descend(
        data, result.system, state, rng, max_rounds=options.max_iter, tol=options.tol, stage="released from balance",
        learn=problem.method != "independent",
    )  # fmt: skip
    alone = problem.alone()
    if problem.method == "independent":
        labels = state.labels
    else:
        labels = begin(data, alone, alone.uncoupled(), result.alone_state.W).labels
    return replace(result, problem=problem, state=state, alone_labels=labels)


def _shrunk(result: PrimalResult, s: float, options: PrimalOptions, rng: np.random.Generator) -> PrimalResult:
    """Labels re-optimised under the fixed Ω_s = sΩ + (1−s)I/m."""
    data, m = result.problem.data, result.problem.data.n_tasks
    Omega = s * result.state.solver.Z + (1 - s) * np.eye(m) / m
    state = state_of(data, result.system, Omega, result.state.tasks)
    state = descend(
        data, result.system, state, rng, max_rounds=options.max_iter, tol=options.tol, stage=f"coupling {s:g}",
        learn=False,
    )  # fmt: skip
    return replace(result, state=state)


def _store(
    estimator: Any, features: FeatureMap, index: TaskIndex, settings: Settings, result: PrimalResult,
    selection: dict[str, Any], rng: np.random.Generator,
) -> None:  # fmt: skip
    state, data = result.state, result.problem.data
    labels, single, new_ids = _with_plain_ids(index, state, result.alone_labels, data.bounds)
    if new_ids is not None:
        _rename_all(state, new_ids)
    warn_of_search(state, settings.lambda1, settings.lambda2)
    estimator._prepared = estimator._result_labels = estimator._sample = None
    shift = getattr(data.source, "shift", None)
    estimator._model = decision_model(features, data.moments, shift, data.bounds.present, state.W)
    estimator._lambdas = settings.lambda1, settings.lambda2
    estimator._large = LargeFit(
        features, data.moments, state.b, data.bounds, result.problem.method, settings.lambda1, settings.lambda2
    )
    estimator.tasks_ = index.names
    estimator.labels_, estimator.single_task_labels_ = labels, single
    estimator.cluster_sizes_ = np.stack([task.counts for task in state.tasks])
    estimator.objective_ = state.value
    estimator.loo_score_ = loo_score(data, state, estimator.fit_intercept, rng)
    estimator.intercept_ = estimator._model.intercept
    if features.projection is None:
        estimator.coef_ = estimator._model.coefficients
    elif hasattr(estimator, "coef_"):
        del estimator.coef_
    estimator.task_groups_ = [index.names[group].tolist() for group in result.groups]
    estimator.history_ = state.history
    estimator.n_iter_, estimator.converged_ = state.n_rounds, state.converged
    selection["form"] = "primal"
    selection["certified"] = state.certified
    estimator.selection_ = selection | {"task_similarity": result.similarity}
    estimator._store_coupling(state.solver.Z)


def warn_of_search(state: State, lambda1: Array, lambda2: float) -> None:
    """Say that a search at scale did not converge, or that its objective cannot be right."""
    if not state.converged:
        warn_user(
            f"fit stopped after {state.n_rounds} passes with the objective at {state.value:.6g} and still falling "
            "by more than tol a pass; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if state.value < 0:
        warn_user(
            f"the objective came out as {state.value:.3g}, below its lowest possible value 0: lambda1="
            f"{lambda1.mean():g} and lambda2={lambda2:g} are too small for double precision with these features. "
            'Raise them, or set solver_options={"form": "dual"}.',
            ConvergenceWarning,
        )


def _with_plain_ids(
    index: TaskIndex, state: State, alone: Any, bounds: SizeBounds
) -> tuple[Any, Any, NDArray[np.int64] | None]:
    """Labels and those of the tasks alone in the order of the input, and the new ids of the clusters, if any."""
    from mtclust.primal import _compiled

    C, free = bounds.n_clusters, bounds.interchangeable()
    if isinstance(alone, RemoteLabels):
        return state.labels.with_plain_ids(alone, C, free)
    # 32-bit labels until the last step, task by task: these arrays are the memory that a fit takes beside the data
    parts = [task.labels for task in state.tasks]
    new_ids = ids_by_first_position(_first_positions(index, parts, C)) if free else None
    ids = np.arange(C) if new_ids is None else new_ids
    pairs = np.zeros((C, C), dtype=np.int64)
    for rows, found in zip(index.slices(), parts):
        _compiled.count_pairs(alone[rows], found, pairs)
    renamed = np.empty_like(pairs)
    renamed[:, ids] = pairs
    names = names_by_agreement(renamed)
    labels, single = np.empty(len(alone), dtype=np.int64), np.empty(len(alone), dtype=np.int64)
    for rows, found in zip(index.slices(), parts):
        where = rows if index.is_sorted else index.order[rows]
        labels[where], single[where] = ids[found], names[alone[rows]]
    return labels, single, new_ids


def _first_positions(index: TaskIndex, parts: list[NDArray[np.int32]], n_clusters: int) -> NDArray[np.int64]:
    """Where in the input each cluster first appears, −1 where it has no rows."""
    n = int(index.offsets[-1])
    first = np.full(n_clusters, n)
    for rows, found in zip(index.slices(), parts):
        if index.is_sorted and first.max() <= rows.start:  # later rows cannot come first
            break
        for c in range(n_clusters):
            mine = np.flatnonzero(found == c)
            if len(mine):
                first[c] = min(first[c], rows.start + mine[0] if index.is_sorted else index.order[rows][mine].min())
    return np.where(first < n, first, -1)


def _rename_all(state: State, new_ids: NDArray[np.int64]) -> None:
    """The same new ids in all tasks."""
    for i, task in enumerate(state.tasks):
        task.rename(new_ids)
        for table in (state.b, state.W):
            table[i][:, new_ids] = table[i].copy()
