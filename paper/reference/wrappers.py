"""Any clusterer of one table, run on several tasks: each by itself, or all stacked."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods

from mtclust.core.tasks import TaskIndex, index_tasks
from mtclust.core.validation import read_rows


class _Wrapper(MetaEstimatorMixin, ClusterMixin, BaseEstimator):
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"tasks": True}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"estimator": [HasMethods(["fit_predict"])]}

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _read(self, X: Any, tasks: Any) -> tuple[Any, TaskIndex]:
        sparse_allowed = get_tags(self.estimator).input_tags.sparse
        X, tasks = read_rows(self, X, tasks, reset=True, accept_sparse=sparse_allowed)
        index = index_tasks(tasks, X.shape[0])
        self.tasks_ = index.names
        return X, index

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


class PerTask(_Wrapper):
    """Cluster every task by itself with any scikit-learn clusterer.

    Number of clusters, seed, restarts and stopping rule are those of the wrapped clusterer
    (``estimator__n_clusters`` and so on in ``set_params``). Cluster ids of different tasks have nothing to do with
    each other.

    Parameters
    ----------
    estimator : clusterer with ``fit_predict``
        For example ``KMeans(5)`` or ``GaussianMixture(5)``; it is copied for every task.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row within its task, in the order of the input.
    objective_ : float
        Sum over tasks of what the clusterer minimises, see :func:`own_objective`.
    n_iter_ : int
        Largest number of steps of a task; 0 if the clusterer does not tell.
    estimators_ : dict
        Task id → the clusterer fitted on that task.
    tasks_ : ndarray of shape (m,)
        The task ids.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from paper.reference import PerTask
    >>> X = np.array([[0.0], [1.0], [5.0], [2.0], [8.0], [9.0]])
    >>> model = PerTask(KMeans(2, n_init=5, random_state=0)).fit(X, tasks=["a", "a", "a", "b", "b", "b"])
    >>> bool(model.labels_[0] == model.labels_[1]), bool(model.labels_[4] == model.labels_[5]), model.objective_
    (True, True, 1.0)
    """

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> PerTask:
        """Fit a copy of the clusterer on each task.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The rows of all tasks, in any order; sparse only if the clusterer takes it.
        y : ignored
            For scikit-learn's pipelines.
        tasks : array-like of shape (n,), optional
            The task id of each row; without it all rows are one task.

        Returns
        -------
        self
        """
        X, index = self._read(X, tasks)
        X = X[index.order]
        self.estimators_ = {}
        labels = []
        for name, part in zip(index.names.tolist(), index.slices()):
            fitted = clone(self.estimator)
            try:
                labels.append(np.asarray(fitted.fit_predict(X[part])))
            except ValueError as error:
                if index.n_tasks == 1:
                    raise
                raise ValueError(f"task {name!r} ({part.stop - part.start} rows): {error}") from error
            self.estimators_[name] = fitted
        self.labels_ = index.to_input_order(np.concatenate(labels))
        self.objective_ = float(sum(own_objective(fitted) for fitted in self.estimators_.values()))
        self.n_iter_ = max(_steps(fitted) for fitted in self.estimators_.values())
        return self


class Pooled(_Wrapper):
    """Cluster the rows of all tasks as one table with any scikit-learn clusterer.

    ``tasks`` is accepted and checked like everywhere, but it does not influence the clusters, whose ids mean the same
    in every task. Number of clusters, seed, restarts and stopping rule are those of the wrapped clusterer.

    Parameters
    ----------
    estimator : clusterer with ``fit_predict``
        For example ``KMeans(5)`` or ``GaussianMixture(5)``.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row, in the order of the input.
    objective_ : float
        What the clusterer minimises, see :func:`own_objective`.
    n_iter_ : int
        Number of steps; 0 if the clusterer does not tell.
    estimator_ : clusterer
        The fitted copy.
    tasks_ : ndarray of shape (m,)
        The task ids.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from paper.reference import Pooled
    >>> X = np.array([[0.0], [1.0], [8.0], [0.5], [8.0], [9.0]])
    >>> labels = Pooled(KMeans(2, n_init=5, random_state=0)).fit_predict(X, tasks=["a", "a", "a", "b", "b", "b"])
    >>> bool(labels[0] == labels[3]), bool(labels[2] == labels[4])
    (True, True)
    """

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> Pooled:
        """Fit a copy of the clusterer on all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The rows of all tasks, in any order; sparse only if the clusterer takes it.
        y : ignored
            For scikit-learn's pipelines.
        tasks : array-like of shape (n,), optional
            The task id of each row; only checked.

        Returns
        -------
        self
        """
        X, _ = self._read(X, tasks)
        self.estimator_ = clone(self.estimator)
        self.labels_ = np.asarray(self.estimator_.fit_predict(X))
        self.objective_ = own_objective(self.estimator_)
        self.n_iter_ = _steps(self.estimator_)
        return self


def own_objective(fitted: Any) -> float:
    """What a fitted clusterer has minimised.

    ``objective_`` of this package, ``inertia_`` of k-means and its relatives, minus ``lower_bound_`` (the mean log
    likelihood) of mixtures; nan for clusterers that report nothing.
    """
    for attribute, sign in (("objective_", 1), ("inertia_", 1), ("lower_bound_", -1)):
        if hasattr(fitted, attribute):
            return sign * float(getattr(fitted, attribute))
    return float("nan")


def _steps(fitted: Any) -> int:
    return int(getattr(fitted, "n_iter_", None) or 0)
