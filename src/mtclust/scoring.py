"""Scorers for model selection with known classes: the metric within each task, averaged over tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._metadata_requests import _MetadataRequester

from mtclust.core.validation import split_task_column
from mtclust.metrics import Metric, per_task


class _TaskScorer(_MetadataRequester):
    """``scorer(estimator, X, y, tasks=None)``: mean over tasks of ``metric(y, estimator.predict(X))``."""

    __metadata_request__score = {"tasks": True}  # noqa: RUF012

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def score(self, estimator: BaseEstimator, X: Any, y: Any, *, tasks: Any = None) -> float:
        """The same as calling the scorer; scikit-learn's metadata routing looks at the signature of ``score``."""
        column = getattr(estimator, "task_column", None)
        predicted = estimator.predict(X) if tasks is None else estimator.predict(X, tasks=tasks)
        if tasks is None and column is not None:
            _, tasks = split_task_column(X if hasattr(X, "shape") else np.asarray(X), column)
        return float(np.mean(list(per_task(self.metric, y, predicted, tasks).values())))

    __call__ = score

    def __repr__(self) -> str:
        return f"task_scorer({getattr(self.metric, '__name__', self.metric)})"


def task_scorer(metric: Metric) -> _TaskScorer:
    """A scikit-learn scorer that applies ``metric(y_true, labels)`` within every task and averages.

    Tasks come from the estimator's ``task_column`` or, with metadata routing, from ``tasks``.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust import DSTC, task_scorer
    >>> from mtclust.metrics import nmi
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> model = DSTC(n_clusters=2, random_state=0).fit(X)
    >>> round(task_scorer(nmi)(model, X, [0, 0, 1, 1]), 6)
    1.0
    """
    return _TaskScorer(metric)
