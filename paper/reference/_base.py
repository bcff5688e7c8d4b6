"""What the reference estimators share: parameters, checks, and the way from rows to fitted attributes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from mtclust.core.tasks import TaskIndex, index_tasks
from mtclust.core.validation import read_rows
from paper.reference._runs import Restarts, warn_if_not_converged


class TaskClusterer(ClusterMixin, BaseEstimator):
    """Base of the reference methods; a subclass only writes ``_cluster``."""

    # scikit-learn's metadata routing: fit asks for the task ids without the user calling set_fit_request
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"tasks": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    n_clusters: int
    random_state: Any

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> TaskClusterer:
        """Cluster the rows of every task.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The rows of all tasks, in any order.
        y : ignored
            For scikit-learn's pipelines.
        tasks : array-like of shape (n,), optional
            The task id of each row; without it all rows are one task.

        Returns
        -------
        self
        """
        X, tasks = read_rows(self, X, tasks, reset=True)
        index = index_tasks(tasks, X.shape[0])
        _require_a_row_per_cluster(index, self.n_clusters)
        restarts = self._cluster(X[index.order], index, check_random_state(self.random_state))
        best = restarts.best
        self.tasks_ = index.names
        self.labels_ = index.to_input_order(best.labels)
        self.objective_ = best.objective
        self.history_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.restart_labels_ = np.stack([index.to_input_order(run.labels) for run in restarts.runs])
        self.restart_objectives_ = np.array([run.objective for run in restarts.runs])
        warn_if_not_converged(best, self)
        return self

    @abstractmethod
    def _cluster(self, X: Any, index: TaskIndex, rng: np.random.RandomState) -> Restarts:
        """Cluster rows that are sorted by task."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _require_a_row_per_cluster(index: TaskIndex, n_clusters: int) -> None:
    for name, size in zip(index.names.tolist(), index.sizes.tolist()):
        if size < n_clusters:
            where = f"task {name!r} has" if index.n_tasks > 1 else "X has"
            raise ValueError(
                f"{where} n_samples={size}, fewer than n_clusters={n_clusters}; every task needs a row per cluster."
            )
