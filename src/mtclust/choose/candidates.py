r"""Cheap candidates: labels of standard methods, of rows in every frame in which tasks may have common clusters.

Rows X (n × d) of m tasks are seen

- ``all``: as they are; tasks whose clusters lie in the same places
- ``task``: around the mean of their task, all rows together; tasks that are shifted and hold the same shares
- ``aligned``: after every task was moved back by an offset δ_i, found by EM together with the clusters
  (:mod:`mtclust.choose.frames`); tasks that are shifted and hold other shares
- ``alone``: every task alone, the ids of its clusters matched by the class means around the mean of the task

To add a candidate, write a function of rows and the number of clusters that returns labels, and put it into
:func:`pooled` or :data:`ALONE` under a name. Nothing is drawn at random: the same rows give the same labels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist

from mtclust.choose import frames
from mtclust.core import Array, Integers, Labels
from mtclust.core.criterion import indicators
from mtclust.core.kernels import largest_eigenvectors
from mtclust.core.labels import SizeBounds
from mtclust.core.matching import match_means
from mtclust.core.order import information


class Candidate(NamedTuple):
    """Labels (n), and how they were found."""

    method: str
    frame: str | None  # in which the rows were seen; None where there are no tasks, or nothing but kernels to compare
    labels: Labels


#: the frame of a candidate in words, after its method
IN_FRAME: dict[str | None, str] = {
    None: "",
    "all": " of all rows",
    "task": " around the means of the tasks",
    "aligned": " of aligned tasks",
    "alone": " of every task alone",
}
#: neighbours of a row in the graph that spectral clustering cuts
_NEIGHBOURS = 10
#: candidates that EM begins with
_STARTS_OF_EM = (("k-means", "all"), ("k-means", "task"), ("spectral clustering", "all"), ("k-means", "alone"))


def propose(
    X: Array, tasks: Labels, clusters: Integers | int, wanted: Collection[str | None] = IN_FRAME
) -> tuple[list[Candidate], Array]:  # fmt: skip
    """Candidates in the frames that are wanted, of rows X (n × d), and the rows with tasks aligned, if that is wanted.

    ``clusters`` is their number, of all tasks or of each; then only the frame "alone" knows them.
    """
    C, said = int(np.max(clusters)), information(X)
    if tasks.max() == 0:
        return pooled(X, C, said, None), X
    needed = {"all", "task", "alone"} if "aligned" in wanted else set(wanted)
    found: list[Candidate] = []
    if "all" in needed:
        found += pooled(X, C, said, "all")
    if "task" in needed:
        found += pooled(frames.around_means(X, tasks), C, said, "task")
    if "alone" in needed:
        by_name = {name: np.zeros(len(X), dtype=np.int64) for name in ALONE}
        for task, number in enumerate(np.broadcast_to(clusters, int(tasks.max()) + 1).tolist()):
            rows = np.flatnonzero(tasks == task)
            few = min(number, len(rows) - 1)
            for name in by_name if few > 1 else ():
                by_name[name][rows] = ALONE[name](X[rows], few)
        found += [Candidate(name, "alone", matched(X, tasks, labels, clusters)) for name, labels in by_name.items()]
    if "aligned" in wanted:
        Y, E = frames.directions(X, tasks, said)
        labels_of = {(method, frame): labels for method, frame, labels in found}
        labels = frames.described(Y, E, tasks, [labels_of[start] for start in _STARTS_OF_EM], C)
        X = X - frames.moves_of_tasks(X, tasks, labels, C)[tasks]
        found += [Candidate("EM with offsets", "aligned", labels), *pooled(X, C, said, "aligned")]
    return [own for own in found if own.frame in wanted], X


def pooled(X: Array, n_clusters: int, said: Array, frame: str | None) -> list[Candidate]:
    """Labels of rows that are all of one task; ``said`` is the :func:`information` of their columns."""
    C = min(n_clusters, len(X))
    Y, E = frames.directions(X, np.zeros(len(X), dtype=np.int64), said)
    start = k_means(Y, C, 1)
    return [
        Candidate("k-means", frame, k_means(X, C)),
        Candidate("Gaussian mixture", frame, mixture(Y, E, C, start, one_shape=False)),
        Candidate("tied Gaussian mixture", frame, mixture(Y, E, C, start, one_shape=True)),
        Candidate("spectral clustering", frame, spectral(X, C)),
    ]


def matched(X: Array, tasks: Labels, labels: Labels, clusters: Integers | int) -> Labels:
    """The same clusters with ids that agree over tasks, by their means around that of their task."""
    m, C = int(tasks.max()) + 1, int(np.max(clusters))
    cells = indicators(tasks * C + labels, m * C)
    counts = cells.sum(axis=0)
    means = cells.T @ frames.around_means(X, tasks) / np.maximum(counts, 1.0)[:, None]
    sizes = counts.reshape(m, C).astype(np.int64)
    any_id = SizeBounds(np.zeros_like(sizes), np.full_like(sizes, len(X)), movable=bool(np.ptp(clusters)))
    return match_means(means.reshape(m, C, -1), sizes, any_id)[0][tasks, labels]


def k_means(X: Array, n_clusters: int, runs: int = 5) -> Labels:
    """Lloyd's algorithm from k-means++ centres, all runs at once; the labels of the lowest sum of squares."""
    rng = np.random.default_rng(0)
    (n, d), C = X.shape, min(n_clusters, len(X))
    X = X - X.mean(axis=0)
    squares = np.einsum("nd,nd->n", X, X)
    centres = np.empty((runs, C, d))
    centres[:, 0] = X[rng.integers(n, size=runs)]
    nearest = np.full((runs, n), np.inf)
    for c in range(1, C):
        last = centres[:, c - 1]
        apart = squares - 2.0 * last @ X.T + np.einsum("rd,rd->r", last, last)[:, None]
        nearest = np.minimum(nearest, np.maximum(apart, 0.0))
        total = nearest.cumsum(axis=1)
        drawn = rng.random((runs, 3)) * total[:, -1:]
        picks = np.minimum((total[:, None, :] < drawn[:, :, None]).sum(axis=2), n - 1)
        tried = X[picks]
        potential = np.minimum(
            nearest[:, None], squares - 2.0 * tried @ X.T + np.einsum("rkd,rkd->rk", tried, tried)[..., None]
        )
        centres[:, c] = tried[np.arange(runs), potential.sum(axis=2).argmin(axis=1)]
    labels, cost, active = np.full((runs, n), -1), np.full(runs, np.inf), np.arange(runs)
    for _ in range(60):
        own = centres[active]
        apart = np.einsum("rcd,rcd->rc", own, own)[..., None] - 2.0 * own @ X.T
        new = apart.argmin(axis=1)
        cost[active] = apart.min(axis=1).sum(axis=1)
        changed = (new != labels[active]).any(axis=1)
        labels[active] = new
        z = np.eye(C)[new]
        counts = z.sum(axis=1)
        sums = z.transpose(0, 2, 1) @ X
        centres[active] = np.where(counts[..., None] > 0, sums / np.maximum(counts, 1.0)[..., None], own)
        active = active[changed]
        if len(active) == 0:
            break
    return labels[int(cost.round(9).argmin())].astype(np.int64)


def mixture(X: Array, E: Array, n_clusters: int, labels: Labels, *, one_shape: bool) -> Labels:
    """EM of Gaussians, each with a covariance of its own or all with the same, that begins with labels.

    E (d × d), the covariance of the errors of the rows, is added to all of them.
    """
    (n, d), C = X.shape, n_clusters
    z, last = indicators(labels, C), -np.inf
    smallest = E + (1e-6 * X.var() + np.finfo(float).tiny) * np.eye(d)
    products = X.T @ X if one_shape else (X[:, :, None] * X[:, None, :]).reshape(n, d * d)
    for _ in range(100):
        counts = z.sum(axis=0) + 1e-10
        means = z.T @ X / counts[:, None]
        if one_shape:
            factor = sla.cholesky((products - (means * counts[:, None]).T @ means) / n + smallest, lower=True)
            both = sla.solve_triangular(factor, np.vstack([X, means]).T, lower=True, check_finite=False).T
            apart = cdist(both[:n], both[n:], "sqeuclidean")
            half_log_det = np.log(factor.diagonal()).sum()
        else:
            shapes = (z.T @ products).reshape(C, d, d) / counts[:, None, None]
            shapes += smallest - means[:, :, None] * means[:, None, :]
            factors = np.linalg.cholesky(shapes + 1e-9 * np.trace(shapes, axis1=1, axis2=2).mean() / d * np.eye(d))
            inverse = np.linalg.inv(factors)
            apart = np.sum((inverse @ X.T - inverse @ means[:, :, None]) ** 2, axis=1).T
            half_log_det = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        density = np.log(counts / n) - 0.5 * apart - half_log_det
        top = density.max(axis=1, keepdims=True)
        z = np.exp(density - top)
        total = z.sum(axis=1, keepdims=True)
        z /= total
        value = float((top + np.log(total)).mean())
        if abs(value - last) < 1e-3:  # a row
            break
        last = value
    return density.argmax(axis=1).astype(np.int64)


def spectral(X: Array, n_clusters: int) -> Labels:
    """Normalised cut of the graph of nearest neighbours, which a row is itself one of, all of them that are as near.

    k-means of the leading eigenvectors of the graph's normalised weights, divided by the roots of the degrees.
    """
    n = len(X)
    apart = cdist(X, X, "sqeuclidean")
    k = min(_NEIGHBOURS, n - 1)
    rows, columns = np.nonzero(apart <= np.partition(apart, k - 1, axis=1)[:, k - 1 : k] * (1 + 1e-9))
    half = sp.csc_matrix((np.where(rows == columns, 0.0, 0.5), (rows, columns)), shape=(n, n))
    graph = half + half.T
    root = np.sqrt(np.maximum(np.asarray(graph.sum(axis=0))[0], 1e-12))
    graph.data *= (1.0 / root)[graph.indices] * np.repeat(1.0 / root, np.diff(graph.indptr))
    if n <= 150 or n_clusters >= n - 1:  # a small graph is quicker dense
        vectors = largest_eigenvectors(graph.toarray(), n_clusters)[1]
    else:
        begin = np.random.default_rng(0).uniform(-1, 1, n)
        vectors = eigsh(graph, k=n_clusters, sigma=1.0 + 1e-5, which="LM", v0=begin, tol=1e-4)[1]
    return k_means(np.asarray(vectors / root[:, None]), n_clusters)


#: methods of a task alone, by name
ALONE: dict[str, Callable[[Array, int], Labels]] = {"k-means": k_means, "spectral clustering": spectral}
