"""Fitting sparse tables with very many columns (text): exact search on some rows, all rows without making them dense.

The estimator itself is fitted on a sample of the rows in its exact form, which settles λ, sizes and coupling; its
models then label all rows, and labels, models and Ω are improved on all of them together.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mtclust.exceptions import ClusterNumberWarning, SearchWarning
from mtclust.features import Kernel
from mtclust.labels import SizeBounds, parse_sizes
from mtclust.memory import require_memory
from mtclust.model import DecisionModel
from mtclust.primal.labelling import TaskLabels, move_sums
from mtclust.primal.matrix_free import MatrixFreeSystem, SparseTable, sparse_moments, table_of
from mtclust.primal.search import Data, State, begin, descend, state_of
from mtclust.primal.sizes import free_bounds
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
    small, positions = _fit_sample(estimator, X, index, rng)
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
    estimator: Any, X: Any, index: TaskIndex, rng: np.random.Generator
) -> tuple[Any, list[NDArray[np.int64]]]:
    """The estimator fitted exactly on some rows of every task; and which rows of each task these are."""
    wanted = np.minimum(index.sizes, np.maximum(1, index.sizes * _SAMPLED_ROWS // index.sizes.sum() + 1))
    positions = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(index.sizes, wanted)]
    rows = np.concatenate([index.order[a + part] for a, part in zip(index.offsets, positions)])
    options = {**(estimator.solver_options or {}), "form": "dual"}
    sizes = estimator.sizes if isinstance(estimator.sizes, str | float | int | tuple) else "auto"
    small = clone(estimator).set_params(
        task_column=None, solver_options=options, sizes=sizes, random_state=int(rng.integers(2**31 - 1))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchWarning)
        warnings.simplefilter("ignore", ClusterNumberWarning)
        small.fit(X[rows], tasks=index.names[np.repeat(np.arange(index.n_tasks), wanted)])
    return small, positions


def _bounds(estimator: Any, small: Any, index: TaskIndex, clusters: NDArray[np.int64]) -> SizeBounds:
    """Sizes of all rows: the estimator's own rule, or what was chosen on the sample."""
    chosen = small.selection_["sizes"]
    if not isinstance(chosen, dict):
        return parse_sizes(estimator.sizes, index.sizes, clusters, index.names)
    if chosen["chosen"] == "balanced":
        return parse_sizes("balanced", index.sizes, clusters)
    if chosen["chosen"] == "estimated":
        shares = small.cluster_sizes_ / small.cluster_sizes_.sum(axis=1, keepdims=True)
        lower = np.floor(shares * index.sizes[:, None]).astype(np.int64)
        return SizeBounds(lower, np.ceil(shares * index.sizes[:, None]).astype(np.int64))
    return replace(free_bounds(index.sizes, clusters), movable=False)


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
    own, scaled = data.moments, state.W / data.moments.root_scale
    intercept = -np.einsum("ir,irc->ic", own.mean, scaled)
    present = data.bounds.present
    if not state.converged:
        warnings.warn(
            f"fit stopped after {state.n_rounds} passes with the objective at {state.value:.6g} and still falling "
            "by more than tol a pass; raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=6,
        )
    estimator._model = DecisionModel(Kernel("linear"), None, scaled.transpose(0, 2, 1).copy(), intercept, present)
    estimator._prepared = estimator._result_labels = estimator._large = None
    estimator._sample = small  # new tasks are clustered beside its rows
    estimator._lambdas = small._lambdas
    estimator.tasks_ = index.names
    estimator.labels_ = index.to_input_order(state.labels).astype(np.int64)
    estimator.single_task_labels_ = index.to_input_order(single).astype(np.int64)
    estimator.cluster_sizes_ = np.stack([task.counts for task in state.tasks])
    estimator.objective_ = state.value
    estimator.loo_score_ = small.loo_score_
    estimator.coef_, estimator.intercept_ = estimator._model.coefficients, intercept
    estimator.task_groups_ = small.task_groups_
    estimator.history_, estimator.n_iter_, estimator.converged_ = state.history, state.n_rounds, state.converged
    about = {"form": "matrix-free", "chosen_on": f"{len(small.labels_)} rows (loo_score_ too)", "certified": False}
    estimator.selection_ = {**small.selection_, **about}
    estimator._store_coupling(state.solver.Z)
