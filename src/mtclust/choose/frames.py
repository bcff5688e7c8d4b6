r"""In which frame do tasks have the same clusters? The shortest description of the rows says.

A row x of task i in cluster c, with shares π_ic that differ by task, and one covariance Σ within clusters:

.. math:: x \sim N(\mu_{gc} + \delta_i, \Sigma)

*One frame*: δ = 0, clusters lie in the same places in all tasks. *Aligned*: the same after each task is moved back by
its δ_i. *Own frames*: tasks are moved, and every group g of similar tasks, or every task, has its clusters in places of
its own. The first two are fitted by EM, whose labels are kept, from labels of one frame, of own frames and of k-means
around the means of tasks; the third has the labels that were found in own frames.
Descriptions are compared by their length, −log likelihood + ½ log n for every number that one frame does not need.

A short description is not enough, though: where every task has its own variant of a cluster, clusters that are variants
describe rows most shortly. So clusters of one frame must stay in place as well (:func:`displacement`). Aligned tasks
whose clusters have the same shares everywhere are moved by the differences of their means: own frames know that
already, and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.cluster.hierarchy import average, fcluster

from mtclust.choose.views import Frame
from mtclust.core.criterion import indicators
from mtclust.core.labels import tasks_of_rows
from mtclust.problem.pool import k_means

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: information in nats per row that tasks and clusters share, from which on shares are said to differ by task
DIFFERENT_SHARES = 0.05
#: squared distance, in units of the spread within clusters, that the clusters of tasks in one frame may be apart
MOST_DISPLACED = 1.5
#: length per row that one model around the means of tasks must save
SHORTER = 0.1
#: variance added to every direction, relative to their mean
_SMALLEST_VARIANCE = 1e-3
#: rows of a cluster that are added to every task before its shares are taken, and rows at δ = 0 before δ is
_PRIOR_ROWS = 0.5
_PRIOR_AT_ZERO = 1.0
#: groups of similar tasks at most, beside as many as there are tasks
_MOST_GROUPS = 4
#: runs of k-means on rows around the means of their tasks, from which EM begins as well
_K_MEANS_STARTS = 3
#: passes of EM at most, and gain per row below which it ends
_PASSES, _GAIN = 50, 1e-5
#: weight of a mean that no row has
_NO_ROWS = 1e-6


@dataclass(frozen=True, order=True)
class Description:
    """Length of a description of rows, and the labels that it ends with."""

    length: float
    labels: Labels = field(compare=False)


def frame_of_rows(
    X: Array, offsets: NDArray[np.int64], common: Labels, own: Labels, similarity: Array, n_clusters: int,
    frames: Sequence[Frame] = ("task", "all", "aligned"),
) -> tuple[Frame, Labels]:  # fmt: skip
    """The frame of the shortest description of rows X, sorted by task, and the labels of that description.

    ``common`` are labels that were found in one frame, ``own`` those found in the frames of the tasks, which have this
    ``similarity`` (m × m) then. ``frames`` are those to choose from.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> y, offsets = np.repeat([0, 1, 0, 1], [80, 20, 20, 80]), np.array([0, 100, 200])
    >>> X = rng.normal(size=(200, 2)) + 8.0 * y[:, None]
    >>> frame_of_rows(X, offsets, y, y, np.ones((2, 2)), 2)[0]
    'all'
    >>> X[100:, 0] += 4.0
    >>> halves = np.concatenate([np.argsort(np.argsort(part[:, 0])) // 50 for part in (X[:100], X[100:])])
    >>> frame_of_rows(X, offsets, y, halves, np.ones((2, 2)), 2)[0]
    'aligned'
    """
    tasks, centred = tasks_of_rows(offsets), _around_means(X, offsets)
    starts = (common, own, k_means(centred, n_clusters, _K_MEANS_STARTS))
    moved = min(
        (described(centred, offsets, labels, n_clusters, moved=True) for labels in starts),
        key=lambda found: found.length + _length_of_moves(X, offsets, found.labels, n_clusters),
    )
    if tuple(frames) == ("aligned",):
        return "aligned", moved.labels
    one = min(described(X, offsets, labels, n_clusters) for labels in starts)
    apart = min(length_of(X, offsets, own, n_clusters, group) for group in groups_of_similar(similarity))
    if apart <= min(one.length, moved.length):
        return "task", own
    if one.length <= moved.length:
        return ("all", one.labels) if in_place(X, offsets, one.labels) else ("task", own)
    aligned = X - moves_of_tasks(X, offsets, moved.labels, n_clusters)[tasks]
    different = shared_information(moved.labels, tasks) > DIFFERENT_SHARES
    taken = "aligned" in frames and different and in_place(aligned, offsets, moved.labels)
    return ("aligned", moved.labels) if taken else ("task", own)


def groups_of_similar(similarity: Array) -> list[NDArray[np.int64]]:
    """The number of the group of every task: one group, a few of tasks that are similar on average, or one each.

    Examples
    --------
    >>> import numpy as np
    >>> found = groups_of_similar(np.array([[1.0, 0.9, 0.1], [0.9, 1.0, 0.2], [0.1, 0.2, 1.0]]))
    >>> [group.tolist() for group in found]
    [[0, 0, 0], [0, 0, 1], [0, 1, 2]]
    """
    m = len(similarity)
    far = np.maximum(1.0 - 0.5 * (similarity + similarity.T), 0.0)[np.triu_indices(m, 1)]
    tree = average(far)
    cuts = [fcluster(tree, number, "maxclust") - 1 for number in range(2, min(_MOST_GROUPS + 1, m))]
    return [np.zeros(m, dtype=np.int64), *(cut.astype(np.int64) for cut in cuts), np.arange(m)]


def described(
    X: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int, moved: bool = False
) -> Description:
    """Rows in one frame, or around the means of their tasks with tasks that are moved; EM begins with labels.

    The M step solves for μ and δ together: with chances z (n × C) and one-hot tasks B, the normal equations of
    [z B][μ; δ] = X, in which zᵀz is diag(Σ_j z_j).
    """
    (n, d), m, tasks = X.shape, len(offsets) - 1, tasks_of_rows(offsets)
    z, last = indicators(labels, n_clusters), -np.inf
    sums = np.add.reduceat(X, offsets[:-1], axis=0)
    likelihood = last
    for _ in range(_PASSES):
        counts = np.add.reduceat(z, offsets[:-1], axis=0)
        means, moves = _means_and_moves(z.T @ X, sums, counts) if moved else (_divided(z.T @ X, counts), None)
        around = X if moves is None else X - moves[tasks]
        apart = [around - mean for mean in means]
        covariance = _covariance(sum((own * z[:, [c]]).T @ own for c, own in enumerate(apart)), n)
        factor = sla.cholesky(covariance, lower=True)
        distances = np.stack([np.sum(sla.solve_triangular(factor, own.T, lower=True) ** 2, axis=0) for own in apart])
        shares = (counts + _PRIOR_ROWS) / (counts + _PRIOR_ROWS).sum(axis=1, keepdims=True)
        log_density = np.log(shares)[tasks] - 0.5 * distances.T - np.log(factor.diagonal()).sum()
        most = log_density.max(axis=1, keepdims=True)
        z = np.exp(log_density - most)
        total = z.sum(axis=1, keepdims=True)
        likelihood = float((most + np.log(total)).sum())
        z /= total
        if likelihood - last < _GAIN * n:
            break
        last = likelihood
    length = 0.5 * moved * (m - 1) * d * np.log(n) - likelihood
    return Description(length, log_density.argmax(axis=1).astype(np.int64))


def _length_of_moves(X: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int) -> float:
    """What is added to the length of moves if they come from a Gaussian of their own: farther ones take more.

    It decides between descriptions that are as good: a task of one cluster could be moved to any.
    """
    moves = moves_of_tasks(X, offsets, labels, n_clusters)
    return 0.5 * (moves.size - moves.shape[1]) * float(np.log(np.mean(moves**2) + np.finfo(float).tiny))


def moves_of_tasks(rows: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int) -> Array:
    """δ (m × d): how far tasks are moved, in the columns of rows that are sorted by task.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.repeat([0, 0, 1, 0, 1, 1], 50)
    >>> rows = 100.0 + 4.0 * labels[:, None] + np.repeat([0.0, 1.0], 150)[:, None]  # the second task is 1 higher
    >>> moves_of_tasks(rows, np.array([0, 150, 300]), labels, 2).round(1)
    array([[-0.5],
           [ 0.5]])
    """
    z = indicators(labels, n_clusters)
    parts = [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:])]
    sums = np.stack([z[part].T @ rows[part] for part in parts])
    return moves_by_sums(sums, np.add.reduceat(z, offsets[:-1], axis=0))


def moves_by_sums(sums: Array, counts: Array) -> Array:
    """The same from the sums (m × C × d) of the rows of every cluster in every task, and their counts (m × C)."""
    sizes = counts.sum(axis=1)
    means = sums.sum(axis=1) / sizes[:, None]
    around = sums - counts[:, :, None] * means[:, None, :]
    moves = _means_and_moves(around.sum(axis=0), around.sum(axis=1), counts)[1]
    return np.asarray(means - sizes @ means / sizes.sum() + moves)


def length_of(X: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int, group: NDArray[np.int64]) -> float:
    """Length of rows whose tasks are moved, with their labels; every group of tasks has clusters in its own places."""
    (n, d), tasks, m, n_groups = X.shape, tasks_of_rows(offsets), len(offsets) - 1, int(group.max()) + 1
    z, by_task = indicators(group[tasks] * n_clusters + labels, n_groups * n_clusters), indicators(tasks, m)
    design = np.hstack([z, by_task])
    apart = X - design @ np.linalg.lstsq(design, X, rcond=None)[0]
    scatter = apart.T @ apart
    covariance = _covariance(scatter, n)
    counts = by_task.T @ indicators(labels, n_clusters) + _PRIOR_ROWS
    shares = counts / counts.sum(axis=1, keepdims=True)
    distances = float(np.trace(np.linalg.solve(covariance, scatter)))
    length = 0.5 * (distances + n * np.linalg.slogdet(covariance)[1]) - np.log(shares[tasks, labels]).sum()
    numbers = (m - 1 + (n_groups - 1) * (n_clusters - 1)) * d
    return float(length + 0.5 * numbers * np.log(n))


def shared_information(labels: Labels, tasks: Labels) -> float:
    """What the task of a row tells of its cluster, in nats per row, less what chance gives.

    Examples
    --------
    >>> import numpy as np
    >>> tasks = np.repeat([0, 1], 50)
    >>> round(shared_information(tasks, tasks), 2), round(shared_information(np.arange(100) % 2, tasks), 2)
    (0.69, -0.01)
    """
    counts = indicators(tasks, int(tasks.max()) + 1).T @ indicators(labels, int(labels.max()) + 1)
    n, expected = counts.sum(), np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    held = counts > 0
    by_chance = (np.count_nonzero(counts.any(axis=1)) - 1) * (np.count_nonzero(counts.any(axis=0)) - 1) / 2.0
    return float((np.sum(counts[held] * np.log(counts[held] / expected[held])) - by_chance) / n)


def one_model_fits(
    X: Array, around: Array, offsets: NDArray[np.int64], together: Labels, own: Labels, n_clusters: int
) -> bool:
    """Whether rows X speak for one model around the means of the tasks: for clusters of all rows ``together``.

    They must describe rows more shortly than the ``own`` clusters of the tasks do, and lie in the same places in the
    rows ``around`` the means.
    """
    all_tasks = np.zeros(len(offsets) - 1, dtype=np.int64)
    lengths = [length_of(X, offsets, labels, n_clusters, all_tasks) for labels in (own, together)]
    return lengths[0] - lengths[1] > SHORTER * len(X) and in_place(around, offsets, together)


def in_place(X: Array, offsets: NDArray[np.int64], labels: Labels) -> bool:
    """Whether the clusters of all tasks lie in about the same places."""
    return displacement(X, labels, tasks_of_rows(offsets)) < MOST_DISPLACED


def displacement(X: Array, labels: Labels, tasks: Labels) -> float:
    """How far the clusters of tasks are from where they are over all tasks, in squared units of their spread.

    With μ_ic the mean of cluster c in task i, the mean of (μ_ic − μ_c)ᵀΣ⁻¹(μ_ic − μ_c) over rows, less what chance
    gives: about 0 for clusters that lie in the same places.
    """
    n, d = X.shape
    cells = np.unique(np.stack([tasks, labels]), axis=1, return_inverse=True)[1].ravel()
    n_cells, n_clusters = int(cells.max()) + 1, len(np.unique(labels))
    in_cells, in_clusters = _means(X, cells), _means(X, labels)
    free = max(n - n_cells, 1)
    apart, moved = X - in_cells, in_cells - in_clusters
    by_chance = (n_cells - n_clusters) * d * free / max(free - d - 1, 1)
    return float((np.trace(np.linalg.solve(_covariance(apart.T @ apart, free), moved.T @ moved)) - by_chance) / n)


def _around_means(X: Array, offsets: NDArray[np.int64]) -> Array:
    """Rows around the means of their tasks."""
    sizes = np.diff(offsets)
    return np.asarray(X - np.repeat(np.add.reduceat(X, offsets[:-1], axis=0) / sizes[:, None], sizes, axis=0))


def _means_and_moves(in_clusters: Array, in_tasks: Array, counts: Array) -> tuple[Array, Array]:
    """μ (C × d) and δ (m × d), from sums of rows and counts (m × C); δ is drawn a little to 0, which settles them."""
    C = counts.shape[1]
    system = np.block(
        [
            [np.diag(counts.sum(axis=0) + _NO_ROWS), counts.T],
            [counts, np.diag(counts.sum(axis=1) + _PRIOR_AT_ZERO)],
        ]
    )
    found = sla.solve(system, np.vstack([in_clusters, in_tasks]), assume_a="pos")
    return found[:C], found[C:]


def _divided(in_clusters: Array, counts: Array) -> Array:
    return np.asarray(in_clusters / (counts.sum(axis=0) + _NO_ROWS)[:, None])


def _means(X: Array, groups: Labels) -> Array:
    """For every row the mean of its group."""
    z = indicators(groups, int(groups.max()) + 1)
    return np.asarray((z.T @ X / np.maximum(z.sum(axis=0), 1.0)[:, None])[groups])


def _covariance(scatter: Array, n: int) -> Array:
    covariance = scatter / n
    d = len(covariance)
    return np.asarray(covariance + (_SMALLEST_VARIANCE * np.trace(covariance) / d + np.finfo(float).tiny) * np.eye(d))
