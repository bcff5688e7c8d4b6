r"""Do the clusters of all tasks lie in the same places? What rows say for one frame, or for one of every task's own.

Two descriptions of the rows x of task i in cluster c, both with one covariance Σ within clusters and with shares of
clusters that differ by task:

.. math:: \text{one frame: } x \sim N(\mu_c, \Sigma), \qquad \text{own frames: } x \sim N(\mu_c + \delta_i, \Sigma)

each with the labels that were found in its frame. They are compared by their length, −log likelihood + ½ log n for
every number of δ. A shorter description is not enough, though: where tasks move apart by more than their clusters are
wide, clusters of one frame may be tasks. So the clusters of one frame must stay in place as well: with μ_ic the mean of
cluster c in task i, the *displacement* is the mean of (μ_ic − μ_c)ᵀΣ⁻¹(μ_ic − μ_c) over rows, less what chance gives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.criterion import indicators
from mtclust.labels import tasks_of_rows

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: squared distance, in units of the spread within clusters, that the clusters of tasks in one frame may be apart
MOST_DISPLACED = 1.0
#: length per row that one model around the means of tasks must save
SHORTER = 0.1
#: variance added to every direction, relative to their mean
_SMALLEST_VARIANCE = 1e-3
#: rows of a cluster that are added to every task before its shares are taken
_PRIOR_ROWS = 0.5


def one_frame_fits(X: Array, offsets: NDArray[np.int64], common: Labels, own: Labels, n_clusters: int) -> bool:
    """Whether rows X, sorted by task, speak for one frame: for ``common`` labels of it against ``own`` ones.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, offsets = np.repeat([0, 1, 0, 1], 50), np.array([0, 100, 200])
    >>> X = rng.normal(size=(200, 2)) + 6.0 * y[:, None]
    >>> one_frame_fits(X, offsets, y, y, 2)
    True
    >>> X[100:] += 3.0
    >>> one_frame_fits(X, offsets, y, y, 2)
    False
    """
    tasks = tasks_of_rows(offsets)
    shorter = _length(X, common, tasks, n_clusters) < _length(X, own, tasks, n_clusters, own_frames=True)
    return shorter and in_place(X, offsets, common)


def one_model_fits(
    X: Array, around: Array, offsets: NDArray[np.int64], together: Labels, own: Labels, n_clusters: int
) -> bool:
    """Whether rows X speak for one model around the means of the tasks: for clusters of all rows ``together``.

    They must describe rows more shortly than the ``own`` clusters of the tasks do, and lie in the same places in the
    rows ``around`` the means.
    """
    tasks = tasks_of_rows(offsets)
    shorter = _length(X, own, tasks, n_clusters, own_frames=True)
    shorter -= _length(X, together, tasks, n_clusters, own_frames=True)
    return shorter > SHORTER * len(X) and in_place(around, offsets, together)


def in_place(X: Array, offsets: NDArray[np.int64], labels: Labels) -> bool:
    """Whether the clusters of all tasks lie in about the same places."""
    return displacement(X, labels, tasks_of_rows(offsets)) < MOST_DISPLACED


def displacement(X: Array, labels: Labels, tasks: Labels) -> float:
    """How far the clusters of tasks are from where they are over all tasks, in squared units of their spread.

    About 0 for clusters that lie in the same places.
    """
    n, d = X.shape
    cells = np.unique(np.stack([tasks, labels]), axis=1, return_inverse=True)[1].ravel()
    n_cells, n_clusters = int(cells.max()) + 1, len(np.unique(labels))
    in_cells, in_clusters = _means(X, cells), _means(X, labels)
    free = max(n - n_cells, 1)
    apart, moved = X - in_cells, in_cells - in_clusters
    by_chance = (n_cells - n_clusters) * d * free / max(free - d - 1, 1)
    return float((np.trace(np.linalg.solve(_covariance(apart, free), moved.T @ moved)) - by_chance) / n)


def _length(X: Array, labels: Labels, tasks: Labels, n_clusters: int, own_frames: bool = False) -> float:
    """−log likelihood of rows and their labels, with ½ log n for every number of the tasks' own frames."""
    (n, d), m = X.shape, int(tasks.max()) + 1
    z, by_task = indicators(labels, n_clusters), indicators(tasks, m)
    apart = X - (_sums_of_means(X, np.hstack([z, by_task[:, 1:]])) if own_frames else _means(X, labels))
    covariance = _covariance(apart, n)
    counts = by_task.T @ z + _PRIOR_ROWS
    shares = counts / counts.sum(axis=1, keepdims=True)
    distances = np.trace(np.linalg.solve(covariance, apart.T @ apart))
    length = 0.5 * (distances + n * np.linalg.slogdet(covariance)[1]) - np.log(shares[tasks, labels]).sum()
    return float(length + 0.5 * own_frames * (m - 1) * d * np.log(n))


def _means(X: Array, groups: Labels) -> Array:
    """For every row the mean of its group."""
    z = indicators(groups, int(groups.max()) + 1)
    return np.asarray((z.T @ X / np.maximum(z.sum(axis=0), 1.0)[:, None])[groups])


def _sums_of_means(X: Array, design: Array) -> Array:
    """For every row μ_c + δ_i, by least squares."""
    return np.asarray(design @ np.linalg.lstsq(design, X, rcond=None)[0])


def _covariance(apart: Array, n: int) -> Array:
    covariance = apart.T @ apart / n
    d = len(covariance)
    return np.asarray(covariance + (_SMALLEST_VARIANCE * np.trace(covariance) / d + np.finfo(float).tiny) * np.eye(d))
