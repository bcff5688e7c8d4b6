"""Clustering tasks that were not in ``fit``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from mtclust._threads import one_blas_thread
from mtclust.labels import SizeBounds, neutral_bounds, parse_sizes, same_for_all_clusters
from mtclust.new_task import NewTask
from mtclust.problem.common import CommonKept
from mtclust.problem.couplings import COUPLINGS
from mtclust.problem.protocol import SearchOptions
from mtclust.search.new_task import cluster_new_task

Array = NDArray[np.float64]


class NewTaskMixin:
    """``fit_task`` of the estimators."""

    sizes: Any
    n_clusters_: int
    random_state: Any
    _kept: Any
    _model: Any

    if TYPE_CHECKING:

        def _read_search_options(self) -> SearchOptions: ...

    def fit_task(self, X: Any, *, sizes: Any = None) -> NewTask:
        """Cluster the rows of a task that was not in ``fit``; the labels of the fitted tasks stay as they are.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
            Rows of the new task, without a task column.
        sizes : optional
            Cluster sizes of the new task, as in the constructor; a table has the shape (1, C) or (1, C, 2). By
            default ``self.sizes``, or balanced with l = 0.1 where that is a table of the fitted tasks. The new task
            has all C = ``n_clusters_`` clusters; a table with zeros leaves some out.

        Returns
        -------
        NewTask
            With ``labels_``, ``task_covariance_``, ``task_correlation_``, ``predict``, ``predict_proba`` and
            ``decision_function``.

        Examples
        --------
        >>> from mtclust import DSTC
        >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
        >>> model.fit_task([[7.0], [2.1], [2.0], [7.2]]).labels_  # the task lies elsewhere; ids mean the same
        array([1, 0, 0, 1])
        """
        check_is_fitted(self, "labels_")
        kept = self._kept
        rows = self._rows_of_new_task(X, kept.n_columns)
        if sizes is None:
            sizes = self.sizes if same_for_all_clusters(self.sizes) else "auto"
        if isinstance(kept, CommonKept):
            return self._by_common_model(kept, rows)
        bounds = self._bounds_of_new_task(kept, sizes, rows.shape[0])
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        options = replace(self._read_search_options(), n_jobs=None)
        with one_blas_thread():
            problem, point = cluster_new_task(kept, rows, bounds, options, rng)
            covariance = point.Z if COUPLINGS[problem.method].couples_labels else None
            row = None if covariance is None else correlation(covariance)[-1]
            labels = problem.starts_of(point)[-1].labels
            assert labels is not None
            model = replace(problem.decision(point), temperature=self._model.temperature)
            return NewTask(labels, covariance, row, point.value, model, rows.shape[1])

    def _by_common_model(self, kept: CommonKept, rows: Any) -> NewTask:
        """In a common frame the one model labels rows of any task."""
        model, m = replace(kept.model, temperature=self._model.temperature), len(kept.bounds.lower) + 1
        labels = model.scores(rows, np.zeros(rows.shape[0], dtype=np.int64)).argmax(axis=1)
        return NewTask(labels, np.full((m, m), 1.0 / m), np.ones(m), float("nan"), model, rows.shape[1])

    def _bounds_of_new_task(self, kept: Any, sizes: Any, n_rows: int) -> SizeBounds:
        left_open = isinstance(sizes, str) and sizes == "auto"
        if kept.criterion == "E" and left_open:
            return neutral_bounds(np.array([n_rows]), np.array([self.n_clusters_]))
        return parse_sizes(sizes, [n_rows], self.n_clusters_)

    def _rows_of_new_task(self, X: Any, expected: int) -> Any:
        rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=self)
        if rows.shape[1] != expected:
            hint = " Leave the task column out: all rows are of the new task." if rows.shape[1] == expected + 1 else ""
            raise ValueError(
                f"X has {rows.shape[1]} features, but {type(self).__name__} was fitted on {expected}.{hint}"
            )
        return rows


def correlation(covariance: Array) -> Array:
    """Correlation matrix of a covariance matrix."""
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    return covariance / np.outer(scale, scale)
