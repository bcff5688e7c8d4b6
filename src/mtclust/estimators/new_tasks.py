"""Clustering tasks that were not in ``fit``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mtclust.choose.settings import by_rows
from mtclust.choose.views import is_wide
from mtclust.core.assignment import assign
from mtclust.core.coupling import COUPLINGS
from mtclust.core.labels import SizeBounds, neutral_bounds, parse_sizes, same_for_all_clusters
from mtclust.core.new_task import NewTask
from mtclust.core.order import content_order
from mtclust.core.validation import generator_of
from mtclust.search.common import CommonKept
from mtclust.search.criteria import CRITERIA
from mtclust.search.new_task import cluster_new_task
from mtclust.util.system import one_blas_thread

Array = NDArray[np.float64]


def cluster_task(model: Any, X: Any, sizes: Any) -> NewTask:
    """``fit_task`` of a fitted estimator."""
    kept = model._kept
    given = _rows_of_new_task(model, X, kept.n_columns)
    order = content_order(given).of_rows(np.zeros(given.shape[0], dtype=np.int64)) if by_rows(model) else None
    rows = given if order is None else given[order]
    if sizes is None:
        sizes = model.sizes if same_for_all_clusters(model.sizes) else "auto"
    if isinstance(kept, CommonKept):
        return _by_common_model(model, kept, given, sizes)
    bounds = _bounds_of_new_task(model, kept, sizes, rows.shape[0])
    open_sizes = isinstance(sizes, str) and sizes == "auto"  # then random_state has no effect, as in fit
    rng = np.random.default_rng(0) if open_sizes else generator_of(model.random_state)
    options = replace(model._read_search_options(), n_jobs=None)
    with one_blas_thread():
        problem, point = cluster_new_task(kept, rows, bounds, options, rng)
        covariance = point.Z if COUPLINGS[problem.method].couples_labels else None
        row = None if covariance is None else correlation(covariance)[-1]
        labels = problem.labels_of(point)[-1]
        if order is not None:
            labels = labels[np.argsort(order)]
        decision = replace(problem.decision(point), temperature=model._model.temperature)
        return NewTask(labels, covariance, row, point.value, decision, rows.shape[1])


def _by_common_model(model: Any, kept: CommonKept, rows: Any, sizes: Any) -> NewTask:
    """In a common frame the one model labels rows of any task, aligned with the others where those are."""
    common = replace(kept.model_of_new_task(rows), temperature=model._model.temperature)
    m = len(kept.bounds.lower) + 1
    first = np.zeros(rows.shape[0], dtype=np.int64)
    if isinstance(sizes, str) and sizes == "auto":
        labels = common.scores(rows, first).argmax(axis=1)
    else:
        bounds = parse_sizes(sizes, [rows.shape[0]], model.n_clusters_)
        labels = assign(-common.scores(rows, first), bounds.lower[0], bounds.upper[0])
        common = replace(common, present=bounds.present)
    coupled = COUPLINGS[model._method(m)].couples_labels
    covariance, row = (np.full((m, m), 1.0 / m), np.ones(m)) if coupled else (None, None)
    return NewTask(labels, covariance, row, float("nan"), common, rows.shape[1])


def _bounds_of_new_task(model: Any, kept: Any, sizes: Any, n_rows: int) -> SizeBounds:
    left_open = isinstance(sizes, str) and sizes == "auto"
    if left_open and not CRITERIA[kept.criterion].exchanges:
        return neutral_bounds(np.array([n_rows]), np.array([model.n_clusters_]))
    return parse_sizes(sizes, [n_rows], model.n_clusters_)


def _rows_of_new_task(model: Any, X: Any, expected: int) -> Any:
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=model)
    if rows.shape[1] != expected:
        hint = " Leave the task column out: all rows are of the new task." if rows.shape[1] == expected + 1 else ""
        raise ValueError(f"X has {rows.shape[1]} features, but {type(model).__name__} was fitted on {expected}.{hint}")
    return rows.toarray() if sp.issparse(rows) and not is_wide(rows) else rows


def correlation(covariance: Array) -> Array:
    """Correlation matrix of a covariance matrix."""
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    return covariance / np.outer(scale, scale)
