"""Scores of a clustering against known classes, per task and averaged over tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from mtclust.core.tasks import split_by_task

Metric = Callable[[Any, Any], float]


def nmi(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """Normalised mutual information with the geometric mean (Strehl and Ghosh), the paper's measure.

    Examples
    --------
    >>> nmi([0, 0, 1, 1], [1, 1, 0, 0])
    1.0
    """
    return float(normalized_mutual_info_score(labels_true, labels_pred, average_method="geometric"))


def per_task(metric: Metric, labels_true: ArrayLike, labels_pred: ArrayLike, tasks: Any = None) -> dict[Any, float]:
    """A metric computed within each task: a dictionary task id → value.

    Examples
    --------
    >>> per_task(nmi, [0, 1, 0, 1], [0, 1, 1, 0], tasks=["a", "a", "b", "b"])
    {'a': 1.0, 'b': 1.0}
    """
    truth = split_by_task(np.asarray(labels_true), tasks)
    found = split_by_task(np.asarray(labels_pred), tasks)
    return {name: float(metric(truth[name], found[name])) for name in truth}


def macro_nmi(labels_true: ArrayLike, labels_pred: ArrayLike, tasks: Any = None) -> float:
    """Mean over tasks of the :func:`nmi` within a task.

    Examples
    --------
    >>> macro_nmi([0, 1, 0, 1], [0, 1, 1, 1], tasks=["a", "a", "b", "b"])
    0.5
    """
    return float(np.mean(list(per_task(nmi, labels_true, labels_pred, tasks).values())))


def match_clusters(labels_true: ArrayLike, labels_pred: ArrayLike) -> tuple[dict[Any, Any], float]:
    """Best one-to-one matching of clusters to classes, and the share of rows it gets right.

    Examples
    --------
    >>> matching, accuracy = match_clusters([0, 0, 1, 1], [1, 1, 0, 0])
    >>> matching, accuracy
    ({0: 1, 1: 0}, 1.0)
    """
    classes, clusters = np.unique(labels_true), np.unique(labels_pred)
    counts: NDArray[np.int64] = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(-counts)
    matching = {clusters[c].item(): classes[r].item() for r, c in zip(rows, columns)}
    return dict(sorted(matching.items())), float(counts[rows, columns].sum() / counts.sum())
