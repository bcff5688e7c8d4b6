"""Clustering tasks that were not in ``fit``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from mtclust._threads import one_blas_thread
from mtclust.features import centre_kernel, raw_kernel
from mtclust.labels import SizeBounds, label_codes, parse_sizes, same_for_all_clusters
from mtclust.model import build_model
from mtclust.new_task import NewTask, cluster_new_task
from mtclust.solvers.problem import SolverOptions

Array = NDArray[np.float64]


class NewTaskMixin:
    """``fit_task`` of the estimators."""

    sizes: Any
    n_clusters_: int
    cluster_sizes_: NDArray[np.int64]
    random_state: Any
    fit_intercept: bool
    n_init: int
    _prepared: Any
    _result_labels: Any
    _large: Any
    _sample: Any
    _lambdas: tuple[Array, float]

    if TYPE_CHECKING:

        def _read_solver_options(self) -> SolverOptions: ...

        def _primal_effort(self) -> dict[str, Any]: ...

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
            With ``labels_``, ``task_covariance_``, ``task_correlation_``, ``predict`` and ``decision_function``.

        Examples
        --------
        >>> from mtclust import DSTC
        >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
        >>> model.fit_task([[7.0], [2.1], [2.0], [7.2]]).labels_  # the task lies elsewhere; ids mean the same
        array([1, 0, 0, 1])
        """
        check_is_fitted(self, "labels_")
        if self._sample is not None:
            return self._sample.fit_task(X, sizes=sizes)
        if sizes is None:
            sizes = self.sizes if same_for_all_clusters(self.sizes) else "auto"
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        with one_blas_thread():
            return self._new_task(X, sizes, rng) if self._large is None else self._new_large_task(X, sizes, rng)

    def _new_task(self, X: Any, sizes: Any, rng: np.random.Generator) -> NewTask:
        """Exactly, with the rows of all tasks."""
        prepared = self._prepared
        if prepared.kernel.kind == "precomputed":
            raise ValueError(
                'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
                'Fit with kernel="rbf", "linear" or a callable.'
            )
        rows = self._rows_of_new_task(X, prepared.rows.shape[1])
        if sp.issparse(prepared.rows) and not sp.issparse(rows):
            rows = sp.csr_matrix(rows)
        elif sp.issparse(rows) and not sp.issparse(prepared.rows):
            rows = rows.toarray()
        own = parse_sizes(sizes, [rows.shape[0]], self.n_clusters_)
        known = prepared.problem.bounds
        bounds = SizeBounds(
            np.vstack([known.lower, own.lower]),
            np.vstack([known.upper, own.upper]),
            movable=known.movable and own.interchangeable(),
        )
        offsets = np.append(prepared.index.offsets, prepared.index.offsets[-1] + rows.shape[0])
        both = [prepared.rows, rows]
        everything: Any = sp.vstack(both, format="csr") if sp.issparse(rows) else np.concatenate(both)
        raw = raw_kernel(prepared.kernel, everything, offsets, self.fit_intercept)
        centred = centre_kernel(raw, offsets, self.fit_intercept, scale=prepared.centred.scale)
        lambda1, lambda2 = self._lambdas
        method, rank = self._new_task_method()
        options = replace(self._read_solver_options(), n_jobs=None)
        point = cluster_new_task(method, centred, self._result_labels, bounds, lambda1, lambda2, rank, options, rng)
        predictors = point.state.predictors(label_codes(point.labels, self.n_clusters_))
        order = np.arange(len(raw))
        model = build_model(prepared.kernel, everything, centred, predictors, order, bounds.present)
        covariance = point.Z if method == "relationship" else None
        row = None if covariance is None else correlation(covariance)[-1]
        labels = point.labels[offsets[-2] :]
        return NewTask(labels, covariance, row, point.objective, model, rows.shape[1])

    def _new_large_task(self, X: Any, sizes: Any, rng: np.random.Generator) -> NewTask:
        """From the moments and class vectors that a fit at scale keeps."""
        from mtclust.primal.model import decision_model
        from mtclust.primal.new_task import Known
        from mtclust.primal.new_task import cluster_new_task as cluster_new_large_task
        from mtclust.primal.solve import PrimalOptions

        large = self._large
        n_features = (large.moments.mean if large.features.landmarks is None else large.features.landmarks).shape[1]
        rows = self._rows_of_new_task(X, n_features)
        own = parse_sizes(sizes, [rows.shape[0]], self.n_clusters_)
        known = Known(large.moments, large.b, self.cluster_sizes_, large.bounds)
        options = PrimalOptions(n_init=self.n_init, **self._primal_effort())
        state, data, shift = cluster_new_large_task(
            known, large.method, large.features(rows), own, large.lambda1, large.lambda2, self.fit_intercept, options,
            rng,
        )  # fmt: skip
        covariance = state.solver.Z if large.method == "relationship" else None
        row = None if covariance is None else correlation(covariance)[-1]
        model = decision_model(large.features, data.moments, shift, data.bounds.present, state.W)
        labels = state.tasks[-1].labels.astype(np.int64)
        return NewTask(labels, covariance, row, state.value, model, rows.shape[1])

    def _rows_of_new_task(self, X: Any, expected: int) -> Any:
        rows = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=self)
        if rows.shape[1] != expected:
            raise ValueError(f"X has {rows.shape[1]} features, but {type(self).__name__} was fitted on {expected}.")
        return rows

    def _new_task_method(self) -> tuple[str, int | None]:
        return "independent", None


def correlation(covariance: Array) -> Array:
    """Correlation matrix of a covariance matrix."""
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    return covariance / np.outer(scale, scale)
