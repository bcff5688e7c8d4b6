r"""Frames: where the origin of every task lies, and which of them describes the rows most shortly.

A row x of task i in cluster c, with shares π_ic that differ by task:

.. math:: x \sim N(\mu_c + \delta_i, \Sigma_c)

*One frame* ("all"): δ = 0, clusters lie in the same places in all tasks. *Aligned*: the same after each task is moved
back by its δ_i. *Own frames* ("task"): tasks are moved, and every task has its clusters in places of its own. For given
labels descriptions are compared by their length, −log likelihood + ½ log(n + 1) for every number that they need, n
the rows that it rests on; labels of aligned tasks are found by EM, with one Σ for all clusters.

Columns of few values let Σ_c be nearly singular. What their values do not say of a normal variable is an error of known
variance, whose covariance E is added to every Σ_c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from scipy.special import ndtri
from scipy.stats import rankdata

from mtclust.core import Array, Labels
from mtclust.core.criterion import indicators

#: of every task, common to all tasks, or common to all after each was moved by an offset of its own
Frame = Literal["task", "all", "aligned"]

#: leading directions at most
DIRECTIONS = 10
#: variance added to every direction, relative to their mean
_SMALLEST_VARIANCE = 1e-3
#: rows of a cluster that are added to every task before its shares are taken
_PRIOR_ROWS = 0.5


def around_means(X: Array, tasks: Labels) -> Array:
    """Rows around the means of their tasks."""
    z = indicators(tasks, int(tasks.max()) + 1)
    return np.asarray(X - (z.T @ X / z.sum(axis=0)[:, None])[tasks])


def directions(X: Array, tasks: Labels, said: Array) -> tuple[Array, Array]:
    """Rows in the leading directions within tasks, in units of their spread there, and the covariance E of the errors.

    ``said`` is how much the values of every column say (:func:`mtclust.core.order.information`). Shifts of tasks are
    kept.
    """
    around = around_means(X, tasks)
    unit = np.sqrt(np.einsum("nd,nd->n", around, around).mean()) or 1.0
    if X.shape[1] <= len(X):
        values, vectors = np.linalg.eigh(around.T @ around)
    else:
        _, roots, transposed = np.linalg.svd(around, full_matrices=False)
        values, vectors = roots[::-1] ** 2, transposed.T[:, ::-1]
    differ = int(np.count_nonzero(values > 1e-6 * values[-1]))
    r = max(1, min(DIRECTIONS, differ))
    V = vectors[:, ::-1][:, :r] / unit
    errors = around.var(axis=0) * (1.0 / said**2 - 1.0)
    return np.asarray((X - X.mean(axis=0)) @ V), np.asarray((V.T * errors) @ V)


def normal_scores(X: Array, tasks: Labels) -> Array:
    """Rows whose deviations from the mean of their task have become normal scores; shifts of tasks are kept.

    Labels are compared by lengths of these, which neither outliers nor long tails rule.
    """
    around = around_means(X, tasks)
    spread = around.std(axis=0)
    ranks = rankdata(np.round(around / np.where(spread > 0, spread, 1.0), 6), axis=0)
    return np.asarray(X - around + spread * ndtri((ranks - 0.5) / len(X)))


def described(Y: Array, E: Array, tasks: Labels, starts: Sequence[Labels], n_clusters: int) -> Labels:
    """Labels of the shortest description with tasks that are moved, by EM from every start."""
    ends = [_em(around_means(Y, tasks), E, tasks, start, n_clusters) for start in starts]
    lengths = []
    for length, labels in ends:  # as good ones differ in δ, which far ones lengthen: δ comes from a Gaussian
        moves = moves_of_tasks(Y, tasks, labels, n_clusters)
        log_square = float(np.log(np.mean(moves**2) + np.finfo(float).tiny))
        lengths.append(length + 0.5 * (moves.size - moves.shape[1]) * log_square)
    return ends[int(np.round(lengths, 6).argmin())][1]


def _em(Y: Array, E: Array, tasks: Labels, labels: Labels, n_clusters: int) -> tuple[float, Labels]:
    """EM with one Σ; the M step solves for μ and δ together, [z B][μ; δ] = Y with chances z and one-hot tasks B."""
    (n, d), m = Y.shape, int(tasks.max()) + 1
    z, B, last = indicators(labels, n_clusters), indicators(tasks, m), -np.inf
    sums = B.T @ Y
    for _ in range(50):
        counts = B.T @ z
        in_clusters, sizes = z.T @ Y, counts.sum(axis=0)
        mu, delta = _means_and_moves(in_clusters, sums, counts)
        A, in_clusters = Y - delta[tasks], in_clusters - counts.T @ delta
        cross = in_clusters.T @ mu
        squares = A.T @ A
        covariance = (squares - cross - cross.T + (mu * sizes[:, None]).T @ mu) / n + E
        floor = _SMALLEST_VARIANCE * np.trace(covariance) / d + np.finfo(float).tiny
        covariance.flat[:: d + 1] += floor + 1e-12 * np.trace(squares) / n  # far shifts leave few digits
        factor = np.linalg.cholesky(covariance)
        whitening = lapack.dtrtri(factor, lower=1)[0].T
        shares = (counts + _PRIOR_ROWS) / (counts + _PRIOR_ROWS).sum(axis=1, keepdims=True)
        density = np.log(shares)[tasks] - 0.5 * cdist(A @ whitening, mu @ whitening, "sqeuclidean")
        density -= np.log(factor.diagonal()).sum()
        top = density.max(axis=1, keepdims=True)
        z = np.exp(density - top)
        total = z.sum(axis=1, keepdims=True)
        z /= total
        likelihood = float((top + np.log(total)).sum())
        if likelihood - last < 1e-5 * n:
            break
        last = likelihood
    return -likelihood, density.argmax(axis=1).astype(np.int64)


def moves_of_tasks(X: Array, tasks: Labels, labels: Labels, n_clusters: int) -> Array:
    """δ (m × d): how far tasks are moved."""
    m = int(tasks.max()) + 1
    cells = indicators(tasks * n_clusters + labels, m * n_clusters)
    sums = (cells.T @ X).reshape(m, n_clusters, -1)
    return moves_by_sums(sums, cells.sum(axis=0).reshape(m, n_clusters))


def moves_by_sums(sums: Array, counts: Array) -> Array:
    """The same from the sums (m × C × d) of the rows of every cluster in every task, and their counts (m × C)."""
    sizes = counts.sum(axis=1)
    means = sums.sum(axis=1) / sizes[:, None]
    around = sums - counts[:, :, None] * means[:, None, :]
    moves = _means_and_moves(around.sum(axis=0), around.sum(axis=1), counts)[1]
    return np.asarray(means - sizes @ means / sizes.sum() + moves)


def _means_and_moves(in_clusters: Array, in_tasks: Array, counts: Array) -> tuple[Array, Array]:
    """μ (C × d) and δ (m × d), from sums of rows and counts (m × C); a row at δ = 0 for every task settles them."""
    m, C = counts.shape
    system = np.zeros((C + m, C + m))
    system[:C, C:], system[C:, :C] = counts.T, counts
    system.flat[:: C + m + 1] = np.append(counts.sum(axis=0) + 1e-6, counts.sum(axis=1) + 1.0)
    found = np.linalg.solve(system, np.vstack([in_clusters, in_tasks]))
    return found[:C], found[C:]


def lengths(Y: Array, E: Array, tasks: Labels, labels: Labels, n_clusters: int) -> dict[Frame, float]:
    """Length per row of the rows Y, with errors of covariance E, in every frame; one frame for a single task.

    Every cluster has a covariance of its own, shrunk to that of all.
    """
    (n, d), m, C = Y.shape, int(tasks.max()) + 1, n_clusters
    z, B = indicators(labels, C), indicators(tasks, m)
    counts = B.T @ z + _PRIOR_ROWS
    code = -float(np.log((counts / counts.sum(axis=1, keepdims=True))[tasks, labels]).sum())
    held = np.flatnonzero(z.any(axis=0))
    sizes, members = z.sum(axis=0)[held], z[:, held]
    designs: dict[Frame, tuple[Array, Array]] = {"all": (members, sizes)}
    if m > 1:
        aligned = np.append(sizes, np.sort(B.sum(axis=0))[:-1])
        designs["aligned"] = np.hstack([members, B]), aligned
        cells = indicators(tasks * C + labels, m * C)
        cells = cells[:, cells.any(axis=0)]
        own = np.sort(cells.sum(axis=0))[: max(cells.shape[1] - len(aligned), 0)]
        designs["task"] = cells, np.append(aligned, own)
    found: dict[Frame, float] = {}
    for frame, (design, rows) in designs.items():
        if frame != "all" and len(rows) >= n:  # as many means as rows fit whatever there is
            found[frame] = np.inf
            continue
        system = design.T @ design
        system.flat[:: len(system) + 1] += 1e-9 * n
        apart = Y - design @ np.linalg.solve(system, design.T @ Y)
        apart *= np.sqrt(n / max(n - len(rows), 1))  # what means of few rows fit by chance is no gain
        common = apart.T @ apart / n
        scatter = (members.T @ (apart[:, :, None] * apart[:, None, :]).reshape(n, d * d)).reshape(-1, d, d)
        shrunk = (scatter + (d + 2) * common) / (sizes[:, None, None] + d + 2)
        shrunk += E + (_SMALLEST_VARIANCE * np.trace(common + E) / d + np.finfo(float).tiny) * np.eye(d)
        fit = np.trace(np.linalg.solve(shrunk, scatter + sizes[:, None, None] * E), axis1=1, axis2=2)
        length = code + 0.5 * float(np.sum(sizes * np.linalg.slogdet(shrunk)[1] + fit))
        others = (C - len(held)) * d + C * d * (d + 1) // 2  # leaving a cluster empty saves nothing
        found[frame] = (length + 0.5 * float(d * np.log(rows + 1).sum() + others * np.log(n))) / n
    return found
