"""How far the clusters agree with those of each task alone and with k-means."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mtclust.metrics import match_clusters, nmi

#: rows of a task that k-means is run on
_ROWS = 4000


@dataclass(frozen=True)
class Agreement:
    """Of one task: share of rows in the same cluster after the best matching, and NMI, with two other clusterings."""

    task: int
    alone: float
    alone_nmi: float
    kmeans: float
    kmeans_nmi: float


def agreement(
    X: Any,
    task_numbers: NDArray[np.int64],
    labels: NDArray[np.int64],
    alone: NDArray[np.int64],
    tasks: list[int],
    seed: int,
) -> list[Agreement]:
    """Compare the labels of every task with those of the task alone and with k-means on its rows."""
    rng = np.random.default_rng(seed)
    found = []
    for task in tasks:
        rows = np.flatnonzero(task_numbers == task)
        if len(rows) > _ROWS:
            rows = np.sort(rng.choice(rows, _ROWS, replace=False))
        own = labels[rows]
        others = (alone[rows], _kmeans(X[rows], len(np.unique(own)), seed))
        scores = [value for other in others for value in (match_clusters(own, other)[1], nmi(own, other))]
        found.append(Agreement(task, *scores))
    return found


def _kmeans(rows: Any, n_clusters: int, seed: int) -> NDArray[np.int64]:
    with warnings.catch_warnings(), threadpool_limits(1):  # so few rows are slower on several cores
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: nothing to report
        return KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(rows)
