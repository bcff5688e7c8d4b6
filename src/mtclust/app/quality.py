"""How typical rows are of their clusters: distances to the centres of the clusters within each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Clarity:
    """Of every row: how far it is from its own centre, and how much nearer than to the next one.

    Attributes
    ----------
    distance : ndarray of shape (n,)
        To the centre of the row's cluster in its task.
    silhouette : ndarray of shape (n,)
        (b − a)/max(a, b) with the distances a to the own and b to the nearest other centre in the task: 1 is clear, 0 a
        border, below 0 nearer to another cluster. NaN where the task has no other cluster.
    """

    distance: Array
    silhouette: Array


def clarity(X: Any, task_numbers: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int) -> Clarity:
    """Distances and simplified silhouettes of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> clarity(X, np.zeros(4, dtype=int), np.array([0, 0, 1, 1]), 2).silhouette.round(2).tolist()
    [0.91, 0.89, 0.89, 0.91]
    """
    distance, silhouette = np.zeros(len(labels)), np.full(len(labels), np.nan)
    for task in np.unique(task_numbers):
        rows = np.flatnonzero(task_numbers == task)
        part, own = X[rows], labels[rows]
        counts = np.bincount(own, minlength=n_clusters)
        present = np.flatnonzero(counts)
        place = np.searchsorted(present, own)
        sums = (
            sp.csr_matrix((np.ones(len(rows)), (place, np.arange(len(rows)))), shape=(len(present), len(rows))) @ part
        )
        centres = (sums.toarray() if sp.issparse(sums) else np.asarray(sums)) / counts[present, None]
        squares = part.multiply(part).sum(axis=1) if sp.issparse(part) else np.sum(part**2, axis=1)
        squared = np.asarray(squares).reshape(-1, 1) - 2 * np.asarray(part @ centres.T) + np.sum(centres**2, axis=1)
        away = np.sqrt(np.maximum(squared, 0.0))
        mine = away[np.arange(len(rows)), place]
        distance[rows] = mine
        if len(present) > 1:
            away[np.arange(len(rows)), place] = np.inf
            nearest = away.min(axis=1)
            larger = np.maximum(mine, nearest)
            silhouette[rows] = np.where(larger > 0, (nearest - mine) / np.where(larger > 0, larger, 1.0), 0.0)
    return Clarity(distance, silhouette)


def exemplars(
    found: Clarity, task_numbers: NDArray[np.int64], labels: NDArray[np.int64], cluster: int, most: int = 3
) -> list[int]:
    """Typical rows of a cluster: nearest to its centre, one of each of the tasks that have the most of it."""
    members = np.flatnonzero(labels == cluster)
    tasks, counts = np.unique(task_numbers[members], return_counts=True)
    chosen = []
    for task in tasks[np.argsort(-counts, kind="stable")][:most]:
        own = members[task_numbers[members] == task]
        chosen.append(int(own[np.argmin(found.distance[own])]))
    left = members[np.argsort(found.distance[members], kind="stable")]
    chosen += [int(row) for row in left if row not in chosen][: most - len(chosen)]
    return chosen
