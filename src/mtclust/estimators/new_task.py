"""Clustering a task that was not in ``fit``, with everything learned so far held fixed.

The new task's labels and the enlarged (m+1)×(m+1) coupling are found by the same descent, in which only the new task's
labels may change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from mtclust.choose.views import is_wide
from mtclust.core.assignment import assign
from mtclust.core.coupling import COUPLINGS
from mtclust.core.criterion import CRITERIA
from mtclust.core.labels import neutral_bounds, parse_sizes, same_for_all_clusters
from mtclust.core.model import CommonKept, DecisionModel, probabilities
from mtclust.core.order import content_order
from mtclust.core.validation import generator_of
from mtclust.estimators.fit import correlation
from mtclust.search.new_task import cluster_new_task
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NewTask:
    """A task clustered by ``fit_task``.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters of the new rows; ids mean what they mean in the fitted tasks.
    task_covariance_ : ndarray of shape (m + 1, m + 1) or None
        The enlarged Ω (DMTRC), the new task last.
    task_correlation_ : ndarray of shape (m + 1,) or None
        Correlation of the new task with every fitted task and, last, with itself.
    objective_ : float
        Objective of all m + 1 tasks.

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(3, separation=6.0, random_state=0).X_y_tasks
    >>> known = tasks < 2
    >>> model = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X[known], tasks=tasks[known])
    >>> new = model.fit_task(X[~known])
    >>> new.labels_.shape, new.task_covariance_.shape, new.predict(X[~known][:2]).shape
    ((90,), (3, 3), (2,))
    """

    labels_: NDArray[np.int64]
    task_covariance_: Array | None
    task_correlation_: Array | None
    objective_: float
    _model: DecisionModel
    _n_features: int

    def decision_function(self, X: Any) -> Array:
        """Scores of further rows of the new task, shape (n, C)."""
        X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        if X.shape[1] != self._n_features:
            raise ValueError(f"X has {X.shape[1]} features, but this task was clustered with {self._n_features}.")
        task = np.full(X.shape[0], len(self._model.intercept) - 1)
        return self._model.scores(X, task)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Clusters of further rows of the new task."""
        return np.argmax(self.decision_function(X), axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the clusters for further rows of the new task, shape (n, C).

        The temperature is that of the fitted model (:mod:`mtclust.core.model`).
        """
        return probabilities(self.decision_function(X), self._model.temperature)


def cluster_task(model: AfterFit, X: Any, sizes: Any) -> NewTask:
    """``fit_task`` of a fitted estimator."""
    kept, params = model._kept, model._read_params()
    given: Any = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X", estimator=model)
    if model.kernel == "precomputed":
        raise ValueError(
            'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
            'Fit with kernel="rbf", "linear" or a callable.'
        )
    expected, got = model.n_features_in_ - (model.task_column is not None), given.shape[1]
    if got != expected:
        hint = " Leave the task column out: all rows are of the new task." if got == expected + 1 else ""
        raise ValueError(f"X has {got} features, but {type(model).__name__} was fitted on {expected}.{hint}")
    given = given.toarray() if sp.issparse(given) and not is_wide(given) else given
    n = given.shape[0]
    order = content_order(given).of_rows(np.zeros(n, dtype=np.int64)) if params.by_rows else np.arange(n)
    rows = given[order]
    if sizes is None:
        sizes = model.sizes if same_for_all_clusters(model.sizes) else "auto"
    if isinstance(kept, CommonKept):
        return _by_common_model(model, kept, given, sizes)
    open_sizes = isinstance(sizes, str) and sizes == "auto"  # then random_state has no effect, as in fit
    bounds = parse_sizes(sizes, [n], model.n_clusters_)
    if open_sizes and not CRITERIA[kept.criterion].exchanges:
        bounds = neutral_bounds(np.array([n]), np.array([model.n_clusters_]))
    rng = np.random.default_rng(0) if open_sizes else generator_of(model.random_state)
    options = replace(params.options, n_jobs=None)
    with one_blas_thread():
        problem, point = cluster_new_task(kept, rows, bounds, options, rng)
        covariance = point.Z if COUPLINGS[problem.method].couples_labels else None
        row = None if covariance is None else correlation(covariance)[-1]
        labels = problem.labels_of(point)[-1][np.argsort(order)]
        decision = replace(problem.decision(point), temperature=model._model.temperature)
        return NewTask(labels, covariance, row, point.value, decision, rows.shape[1])


def _by_common_model(model: AfterFit, kept: CommonKept, rows: Any, sizes: Any) -> NewTask:
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
    coupled = COUPLINGS[model._read_params().method_of(m)].couples_labels
    covariance, row = (np.full((m, m), 1.0 / m), np.ones(m)) if coupled else (None, None)
    return NewTask(labels, covariance, row, float("nan"), common, rows.shape[1])
