"""Fitting sparse tables with very many columns (text): exact search on some rows, all rows without making them dense.

The estimator itself is fitted on a sample of the rows in its exact form, which settles λ, sizes and coupling; its
models then label all rows, and labels, models and Ω are improved on all of them together.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from mtclust.estimators.large import warn_of_search
from mtclust.exceptions import SearchWarning
from mtclust.features import Kernel
from mtclust.labels import SizeBounds, free_bounds, parse_sizes
from mtclust.memory import require_memory
from mtclust.primal.features import FeatureMap
from mtclust.primal.labelling import TaskLabels, move_sums
from mtclust.primal.matrix_free import MatrixFreeSystem, SparseTable, sparse_moments, table_of
from mtclust.primal.model import decision_model
from mtclust.primal.search import Data, State, begin, descend, state_of
from mtclust.tasks import TaskIndex

Array = NDArray[np.float64]

#: sparse tables with more columns than this are solved matrix-free
MANY_COLUMNS = 1000
#: rows of the exact search
_SAMPLED_ROWS = 1500


def is_sparse_text(estimator: Any, X: Any) -> bool:
    """Whether the table is sparse, linear and too wide for Gram matrices; DMTFC needs explicit features (Nyström)."""
    wide = sp.issparse(X) and X.shape[1] > MANY_COLUMNS
    return wide and estimator.kernel == "linear" and estimator._coupled_by_tasks and estimator.n_components is None


def fit_sparse_text(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
) -> None:
    """Fit and store the attributes."""
    C, m, d = int(clusters.max()), index.n_tasks, X.shape[1]
    require_memory(
        8.0 * (10 * m * d * C + 12 * _SAMPLED_ROWS**2) + 16.0 * X.nnz + 48.0 * X.shape[0],
        f"fit of {m} tasks with {d} columns and {C} clusters",
        "Use fewer columns (TaskTfidf has max_features) or n_components for Nyström features.",
    )
    small, positions = _fit_sample(estimator, X, index, clusters, rng)
    source = table_of(X, index.order, index.offsets)
    own = sparse_moments(source, estimator.fit_intercept)
    bounds = _bounds(estimator, small, index, clusters)
    lambda1, lambda2 = small._lambdas
    decision = small.selection_.get("coupling", {}).get("decision", "none")
    coupled = decision != "none"
    data = Data(source, own, bounds)
    effort: dict[str, Any] = {"max_rounds": getattr(estimator, "max_iter", 40), "tol": getattr(estimator, "tol", 1e-4)}

    def run(labels: NDArray[np.int64], Z: Array, learn: bool, stage: str) -> State:
        system = MatrixFreeSystem(source, own, lambda1, lambda2)
        W = _models_of_sample(source, own.scale, positions, labels, bounds, system, Z)
        state = begin(data, system, Z, W)
        return descend(data, system, state, rng, learn=learn, polish_rounds=0, stage=stage, **effort)

    identity = np.eye(m) / m
    Z = small.task_covariance_ if coupled else identity
    sampled = small._result_labels
    state = run(sampled, Z, coupled and decision in ("full", 1), "all rows")
    single = state.labels
    if coupled:
        alone = small.single_task_labels_[small._prepared.index.order]
        single = run(alone, identity, False, "single tasks, all rows").labels
    _store(estimator, small, index, data, state, single)


def _fit_sample(
    estimator: Any, X: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Any, list[NDArray[np.int64]]]:
    """The estimator fitted exactly on some rows of every task; and which rows of each task these are."""
    wanted = np.minimum(index.sizes, np.maximum(1, index.sizes * _SAMPLED_ROWS // index.sizes.sum() + 1))
    positions = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(index.sizes, wanted)]
    rows = np.concatenate([index.order[a + part] for a, part in zip(index.offsets, positions)])
    options = {**(estimator.solver_options or {}), "form": "dual"}
    sizes = estimator.sizes if isinstance(estimator.sizes, str | float | int | tuple) else "auto"
    # what was chosen or given for all rows, not chosen anew on the sample
    number = int(clusters[0]) if np.ptp(clusters) == 0 else dict(zip(index.names.tolist(), clusters.tolist()))
    small = clone(estimator).set_params(
        n_clusters=number, task_column=None, solver_options=options, sizes=sizes,
        random_state=int(rng.integers(2**31 - 1)),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        small.fit(X[rows], tasks=index.names[np.repeat(np.arange(index.n_tasks), wanted)])
    return small, positions


def _bounds(estimator: Any, small: Any, index: TaskIndex, clusters: NDArray[np.int64]) -> SizeBounds:
    """Sizes of all rows: the estimator's own rule, or what was chosen on the sample, for the clusters found there."""
    chosen = small.selection_["sizes"]
    rule = chosen["chosen"] if isinstance(chosen, dict) else None
    if rule in ("released", "free"):
        return free_bounds(index.sizes, small._prepared.problem.bounds.present)
    if rule == "estimated":
        shares = small.cluster_sizes_ / small.cluster_sizes_.sum(axis=1, keepdims=True)
        wanted = shares * index.sizes[:, None]
        return SizeBounds(np.floor(wanted).astype(np.int64), np.ceil(wanted).astype(np.int64))
    bounds = parse_sizes(rule or estimator.sizes, index.sizes, clusters, index.names)
    return bounds.fitted(small._result_labels, small._prepared.index.offsets).fixed()


def _models_of_sample(
    source: SparseTable, scale: float, positions: list[NDArray[np.int64]], labels: NDArray[np.int64],
    bounds: SizeBounds, system: MatrixFreeSystem, Z: Array,
) -> Array:  # fmt: skip
    """Models of the sample's labels in the columns of the table."""
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in positions])]).astype(np.int64)
    few = SparseTable([source.take(i, part) for i, part in enumerate(positions)], offsets)
    own = sparse_moments(few, bool(np.any(system.moments.mean)), scale)
    C = bounds.n_clusters
    tasks = []
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        task = TaskLabels(labels[a:b].astype(np.int32), np.zeros(C), np.zeros((C, few.n_features)))
        move_sums(few.parts[i], np.full(b - a, -1, dtype=np.int32), task.labels, task.sums)
        tasks.append(task)
    part = MatrixFreeSystem(few, own, system.lambda1, system.lambda2)
    return state_of(Data(few, own, bounds), part, Z, tasks).W


def _store(estimator: Any, small: Any, index: TaskIndex, data: Data, state: State, single: NDArray[np.int32]) -> None:
    warn_of_search(state, *small._lambdas)
    linear = FeatureMap(Kernel("linear"))
    estimator._model = decision_model(linear, data.moments, None, data.bounds.present, state.W)
    estimator._prepared = estimator._result_labels = estimator._large = None
    estimator._sample = small  # new tasks are clustered beside its rows
    estimator._lambdas = small._lambdas
    estimator.tasks_ = index.names
    estimator.labels_ = index.to_input_order(state.labels).astype(np.int64)
    estimator.single_task_labels_ = index.to_input_order(single).astype(np.int64)
    estimator.cluster_sizes_ = np.stack([task.counts for task in state.tasks])
    estimator.objective_ = state.value
    estimator.loo_score_ = small.loo_score_
    estimator.coef_, estimator.intercept_ = estimator._model.coefficients, estimator._model.intercept
    estimator.task_groups_ = small.task_groups_
    estimator.history_, estimator.n_iter_, estimator.converged_ = state.history, state.n_rounds, state.converged
    about = {"form": "matrix-free", "chosen_on": f"{len(small.labels_)} rows (loo_score_ too)", "certified": False}
    estimator.selection_ = {**small.selection_, **about}
    estimator._store_coupling(state.solver.Z)
