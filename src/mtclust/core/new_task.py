"""A task that was not in ``fit``: what ``fit_task`` returns (:mod:`mtclust.search.new_task` finds it)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.membership import probabilities
from mtclust.core.model import DecisionModel

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
        from sklearn.utils.validation import check_array

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

        The temperature is that of the fitted model (:mod:`mtclust.core.membership`).
        """
        return probabilities(self.decision_function(X), self._model.temperature)
