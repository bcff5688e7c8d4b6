"""How clear the clusters are: distances to the centres of the clusters within each task, beside data without clusters.

Every cloud of points can be cut into parts that look clear to a degree. So the clarity of the clusters is compared with
that of k-means on noise: numbers drawn from one normal distribution per task with the covariance of its rows, and
categories shuffled, since they look clear whatever they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from mtclust.app.tables.columns import Feature

Array = NDArray[np.float64]

#: tasks and rows of a task that noise is made of
_TASKS, _ROWS = 20, 400
#: how far the clarity must exceed that of noise, as a share of what is left to 1, to be called clear, and fairly clear
_CLEAR, _FAIRLY = 0.3, 0.08


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


def clarity(X: Any, task_codes: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int) -> Clarity:
    """Distances and simplified silhouettes of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [2.0], [10.0], [12.0]])
    >>> clarity(X, np.zeros(4, dtype=int), np.array([0, 0, 1, 1]), 2).silhouette.round(2).tolist()
    [0.91, 0.89, 0.89, 0.91]
    """
    distance, silhouette = np.zeros(len(labels)), np.full(len(labels), np.nan)
    for task in np.unique(task_codes):
        rows = np.flatnonzero(task_codes == task)
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


@dataclass(frozen=True)
class Verdict:
    """How far the clusters are more than cuts through one cloud.

    Attributes
    ----------
    clarity, noise : float
        Mean silhouette of the rows, and that of k-means on data without clusters.

    Examples
    --------
    >>> print(Verdict(0.62, 0.31))
    The clusters are clear-cut (clarity 0.62; the same data without clusters would have 0.31).
    >>> Verdict(0.32, 0.31).doubtful
    True
    """

    clarity: float
    noise: float

    @property
    def excess(self) -> float:
        return (self.clarity - self.noise) / (1.0 - self.noise)

    @property
    def doubtful(self) -> bool:
        """Whether data without clusters would look as clear."""
        return self.excess < _FAIRLY

    def __str__(self) -> str:
        if self.doubtful:
            return (
                f"The clusters are cuts through a continuum (clarity {self.clarity:.2f}; the same data without "
                f"clusters would have {self.noise:.2f}): useful to sort rows, no proof that there are kinds of rows."
            )
        word = "clear-cut" if self.excess >= _CLEAR else "fairly clear"
        return (
            f"The clusters are {word} (clarity {self.clarity:.2f}; the same data without clusters would have "
            f"{self.noise:.2f})."
        )


def verdict(
    X: Any, task_codes: NDArray[np.int64], labels: NDArray[np.int64], features: Sequence[Feature], clear: Clarity
) -> Verdict | None:
    """The clarity of the clusters beside that of noise; None for text and where there is nothing to compare."""
    known = clear.silhouette[~np.isnan(clear.silhouette)]
    if sp.issparse(X) or len(known) == 0:
        return None
    rng = np.random.default_rng(0)
    tasks, counts = np.unique(task_codes, return_counts=True)
    scores, weights = [], []
    for task in tasks[np.argsort(-counts, kind="stable")][:_TASKS]:
        rows = np.flatnonzero(task_codes == task)
        if len(rows) > _ROWS:
            rows = np.sort(rng.choice(rows, _ROWS, replace=False))
        present = len(np.unique(labels[rows]))
        if 1 < present < len(rows):
            noise = _without_clusters(np.asarray(X[rows], dtype=np.float64), features, rng)
            with threadpool_limits(1):  # so few rows are slower on several cores
                found = KMeans(present, n_init=3, random_state=0).fit_predict(noise).astype(np.int64)
            alike = clarity(noise, np.zeros(len(rows), dtype=np.int64), found, present).silhouette
            scores.append(float(np.nanmean(alike)))
            weights.append(len(rows))
    if not scores:
        return None
    return Verdict(float(known.mean()), float(np.average(scores, weights=weights)))


def _without_clusters(rows: Array, features: Sequence[Feature], rng: np.random.Generator) -> Array:
    """Rows of one normal distribution with the covariance of the given ones; columns of categories are shuffled."""
    n = len(rows)
    noise = rng.normal(size=(n, n)) @ (rows - rows.mean(axis=0)) / np.sqrt(n) + rows.mean(axis=0)
    columns: dict[str, list[int]] = {}
    for place, feature in enumerate(features):
        if feature.kind == "category":
            columns.setdefault(feature.column, []).append(place)
    for places in columns.values():
        noise[:, places] = rows[rng.permutation(n)][:, places]
    return noise


def exemplars(
    found: Clarity, task_codes: NDArray[np.int64], labels: NDArray[np.int64], cluster: int, most: int = 3
) -> list[int]:
    """Typical rows of a cluster: nearest to its centre, one of each of the tasks that have the most of it."""
    members = np.flatnonzero(labels == cluster)
    tasks, counts = np.unique(task_codes[members], return_counts=True)
    chosen = []
    for task in tasks[np.argsort(-counts, kind="stable")][:most]:
        own = members[task_codes[members] == task]
        chosen.append(int(own[np.argmin(found.distance[own])]))
    left = members[np.argsort(found.distance[members], kind="stable")]
    chosen += [int(row) for row in left if row not in chosen][: most - len(chosen)]
    return chosen
