"""From checked rows to a problem that a search can take, in the form that suits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust._warnings import warn_user
from mtclust.exceptions import NO_VARIATION
from mtclust.features import Kernel, eigen_features
from mtclust.labels import SizeBounds, parse_sizes
from mtclust.memory import require_memory
from mtclust.problem.kernels import KernelOrigin, KernelProblem
from mtclust.problem.protocol import Problem
from mtclust.selection.settings import Sample, Settings, all_rows, choose_settings, needs_sample, settings_sample
from mtclust.selection.sizes import estimated_sizes
from mtclust.tasks import TaskIndex, index_tasks

Array = NDArray[np.float64]

#: rows of the search in a wide sparse table
_WIDE_ROWS = 1500


@dataclass(frozen=True)
class Prepared:
    """A problem with everything chosen before the search."""

    problem: Any
    settings: Settings
    form: str  # "dual", "primal" or "matrix-free"


def prepare(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], form: str, rng: np.random.Generator
) -> Prepared:
    """Choose the settings and build the problem of a form; ``clusters`` is the number of clusters of every task."""
    build = {"dual": _kernel_problem, "primal": _feature_problem, "matrix-free": _wide_problem}[form]
    problem, settings = build(estimator, X, index, clusters, rng)
    settings.selection["form"] = form
    return Prepared(problem, settings, form)


def _warn_if_constant(scale: float) -> None:
    if scale == 0:
        warn_user(NO_VARIATION, ConvergenceWarning)


def _kernel_problem(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Problem, Settings]:
    sample = all_rows(X, index)
    settings = choose_settings(estimator, sample, index, clusters, rng)
    bounds = parse_sizes(estimator.sizes, index.sizes, clusters, index.names)
    problem = _of_sample(estimator, sample, settings, bounds, index.order)
    _warn_if_constant(problem.origin.centred.scale)  # type: ignore[union-attr]
    if problem.features is not None:
        settings.selection["n_components"] = problem.features.rank
    return problem, settings


def _of_sample(
    estimator: Any, sample: Sample, settings: Settings, bounds: SizeBounds, order: NDArray[np.int64]
) -> KernelProblem:
    """The kernel problem of the rows that settings were chosen on."""
    assert settings.centred is not None
    method = estimator._method(sample.index.n_tasks)
    matrix = settings.centred.matrix
    features = eigen_features(matrix, estimator.n_components) if method == "features" else None
    return KernelProblem(
        matrix, sample.index.offsets, bounds, settings.lambda1, settings.lambda2, method, features,
        origin=KernelOrigin(settings.kernel, sample.rows, settings.centred, order),
    )  # fmt: skip


def _feature_problem(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Problem, Settings]:
    # imported where they are needed, here and below, so that "import mtclust" is quick
    from mtclust.primal.features import feature_map, source_of
    from mtclust.primal.rows import Data, moments
    from mtclust.problem.features import FeatureProblem
    from mtclust.selection.sample_sizes import bounds_by_rule

    _check_feature_memory(estimator, X, index, clusters)
    sample = settings_sample(X, index, rng) if needs_sample(estimator, clusters) else None
    settings = choose_settings(estimator, sample, index, clusters, rng)
    features = feature_map(settings.kernel, X, index, estimator.n_components, rng)
    source = source_of(features, X, index, estimator.fit_intercept)
    own = moments(source, estimator.fit_intercept)
    _warn_if_constant(own.scale)
    if settings.sizes is None:
        bounds = parse_sizes(estimator.sizes, index.sizes, clusters, index.names)
    else:
        bounds = bounds_by_rule(settings.sizes, source, own, clusters, rng)
    kind = "the {} columns of X" if features.projection is None else "{} Nyström features"
    settings.selection["features"] = kind.format(own.n_features)
    method = estimator._method(index.n_tasks)
    return FeatureProblem(Data(source, own, bounds), method, settings.lambda1, settings.lambda2, features), settings


def _check_feature_memory(estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64]) -> None:
    """Gram matrices, systems and per-row arrays; X itself is there already."""
    from mtclust.primal.features import default_rank, needs_landmarks

    n, m, C = X.shape[0], index.n_tasks, int(clusters.max())
    held = n if index.in_memory else 0
    kind = estimator.kernel if isinstance(estimator.kernel, str) else "callable"
    nystroem = needs_landmarks(Kernel(kind), X, estimator.n_components)
    r = (estimator.n_components or default_rank(n)) if nystroem else X.shape[1]
    system = min(m * r, 1000) if estimator._method(m) == "relationship" else r
    need = 8.0 * (6 * m * r * r + 4 * system**2) + held * (4 * 8 + 8 * 2) + 8.0 * 20_000 * r + 8.0 * m * r * C * 6
    require_memory(
        need,
        f"fit of {n} rows in {m} tasks with {r} features",
        "Set n_components to use fewer features (Nyström), or fit fewer tasks at a time.",
    )


def _wide_problem(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Problem, Settings]:
    from mtclust.primal.features import FeatureMap
    from mtclust.primal.matrix_free import sparse_moments, table_of
    from mtclust.primal.rows import Data
    from mtclust.problem.wide import WideSparseProblem

    C, m, d = int(clusters.max()), index.n_tasks, X.shape[1]
    require_memory(
        8.0 * (10 * m * d * C + 12 * _WIDE_ROWS**2) + 16.0 * X.nnz + 48.0 * X.shape[0],
        f"fit of {m} tasks with {d} columns and {C} clusters",
        "Use fewer columns (TaskTfidf has max_features) or n_components for Nyström features.",
    )
    sample, positions = _wide_sample(X, index, rng)
    settings = choose_settings(estimator, sample, index, clusters, rng)
    few_bounds = parse_sizes("balanced", sample.index.sizes, np.minimum(clusters, sample.index.sizes))
    few = _of_sample(estimator, sample, settings, few_bounds, np.arange(sample.rows.shape[0]))
    _warn_if_constant(settings.centred.scale)  # type: ignore[union-attr]
    source = table_of(X, index.order, index.offsets)
    own = sparse_moments(source, estimator.fit_intercept)
    data = Data(source, own, _wide_bounds(estimator, settings, few, index, clusters, rng))
    problem = WideSparseProblem(
        data, few.method, settings.lambda1, settings.lambda2, FeatureMap(Kernel("linear")), sample=few,
        positions=positions,
    )  # fmt: skip
    return problem, settings


def _wide_sample(X: Any, index: TaskIndex, rng: np.random.Generator) -> tuple[Sample, list[NDArray[np.int64]]]:
    """Some rows of every task; and which rows of each task these are."""
    wanted = np.minimum(index.sizes, np.maximum(1, index.sizes * _WIDE_ROWS // index.sizes.sum() + 1))
    positions = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(index.sizes, wanted)]
    rows = np.concatenate([index.order[a + part] for a, part in zip(index.offsets, positions)])
    tasks = np.arange(index.n_tasks)
    return Sample(X[rows].astype(np.float64), index_tasks(np.repeat(tasks, wanted), len(rows)), tasks), positions


def _wide_bounds(
    estimator: Any, settings: Settings, few: KernelProblem, index: TaskIndex, clusters: NDArray[np.int64],
    rng: np.random.Generator,
) -> SizeBounds:  # fmt: skip
    """Sizes of all rows: the estimator's own rule, or what was chosen on the sample."""
    from mtclust.selection.sample_sizes import free_by_number

    if settings.sizes == "free":
        return free_by_number(index.sizes, clusters)
    if settings.sizes == "estimated":
        lower = estimated_sizes(few, rng).lower
        wanted = lower / lower.sum(axis=1, keepdims=True) * index.sizes[:, None]
        return SizeBounds(np.floor(wanted).astype(np.int64), np.ceil(wanted).astype(np.int64))
    rule = estimator.sizes if settings.sizes is None else "balanced"
    return parse_sizes(rule, index.sizes, clusters, index.names)


def clusters_per_task(n_clusters: Any, index: TaskIndex) -> NDArray[np.int64]:
    """The number of clusters of every task from a number or a mapping task → number."""
    if not isinstance(n_clusters, Mapping):
        return np.full(index.n_tasks, n_clusters, dtype=np.int64)
    names = index.names.tolist()
    missing, surplus = [n for n in names if n not in n_clusters], [n for n in n_clusters if n not in names]
    if missing or surplus:
        raise ValueError(
            f"n_clusters must have one entry per task; missing: {missing or 'none'}, not a task: {surplus or 'none'}."
        )
    for name in names:
        value = n_clusters[name]
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"n_clusters must hold whole numbers >= 1, one per task; got {value!r} for task {name!r}.")
    return np.array([n_clusters[name] for name in names], dtype=np.int64)
