"""Rows near the boundaries of the clusters, which an exchange could involve with a gain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import code_scale
from mtclust.primal.gaps import KnownGaps
from mtclust.primal.labelling import scores_of
from mtclust.primal.rows import Blocks, Data, Labelled, Moments, NearRows

Array = NDArray[np.float64]

#: rows of a task that one polish takes up, those with most to gain first
MOST_CANDIDATES = 1000
#: tasks with fewer rows than this are polished whole
FEW_ROWS = 150
#: rows whose own pull is looked at to find these
_MOST_NEAR = 20_000


def rows_near_boundary(source: Blocks, data: Data, fit: Labelled, i: int, factor: Array) -> NearRows:
    """Rows of task i that a gainful exchange could involve, by a bound on how much they pull their own model.

    An exchange of j and k gains at most e_j + e_k, e = (how much better another cluster is for the row) + 2a‖ψ‖²; with
    ‖ψ‖² ≤ (2/n)‖φ‖²·(largest row sum of |Q_i|) most rows need no second look.
    """
    moments, task, n = data.moments, fit.tasks[i], int(data.moments.sizes[i])
    if n <= FEW_ROWS:
        near = np.arange(n)
        return NearRows(near, np.full(n, np.inf), source.take(i, near), task.labels.copy(), True)
    pull = 2 * largest_pull(moments, i, factor, data.bounds.n_clusters)
    if task.gaps is not None:
        found = _near_by_gaps(source, data, fit, i, pull, task.gaps)
        if found is not None:
            return found
    wants = wants_of(source, i, moments, fit.W[i], task.prices, task.labels)
    near = np.flatnonzero(wants + float(wants.max()) + pull > 0)
    complete = len(near) <= _MOST_NEAR
    if not complete:
        near = np.sort(near[np.argpartition(-wants[near], _MOST_NEAR)[:_MOST_NEAR]])
    return NearRows(near, wants[near], source.take(i, near), task.labels[near], complete)


def _near_by_gaps(source: Blocks, data: Data, fit: Labelled, i: int, pull: float, known: KnownGaps) -> NearRows | None:
    """The same from rows that cannot be far from a boundary, without a pass; None where these are too many."""
    from mtclust.core import compiled

    moments, task = data.moments, fit.tasks[i]
    known.move_on(fit.W[i], task.prices, float(moments.largest[i]))
    weights, constant = moments.on_raw(i, fit.W[i])
    widest = pull
    for _ in range(2):
        near = known.within(widest)
        if len(near) > _MOST_NEAR:
            return None
        rows, wants = source.take(i, near), np.empty(len(near))
        compiled.eagerness(scores_of(rows, weights), task.prices - constant, task.labels[near], wants)
        most = float(wants.max(initial=-widest))
        if most + pull <= widest:  # rows not looked at want less than −widest: no exchange with one of them gains
            keep = np.flatnonzero(wants + most + pull > 0)
            return NearRows(near[keep], wants[keep], rows[keep], task.labels[near[keep]], True)
        widest = most + pull
    return None


def wants_of(source: Blocks, task: int, moments: Moments, W: Array, prices: Array, labels: NDArray[np.int32]) -> Array:
    """How much better the best other cluster is for every row of a task than its own, by score − price."""
    from mtclust.core import compiled

    weights, constant = moments.on_raw(task, W)
    wants = np.empty(len(labels))
    for first, last, block in source.blocks(task):
        scores = scores_of(block, weights)
        compiled.eagerness(scores, prices - constant, labels[first:last], wants[first:last])
    return wants


def largest_pull(moments: Moments, task: int, factor: Array, n_clusters: int) -> float:
    """A bound of 2a‖ψ‖² over the rows of a task."""
    a, _ = code_scale(n_clusters)
    norm = float(np.abs(factor @ factor.T).sum(axis=0).max())  # at least the largest eigenvalue of Q
    return 2 * a * (2.0 / int(moments.sizes[task])) * float(moments.largest[task]) * norm


def pulls_of(moments: Moments, task: int, factor: Array, rows: NDArray[Any], n_clusters: int) -> Array:
    """2a‖ψ‖² of some rows of a task."""
    a, _ = code_scale(n_clusters)
    Psi = np.sqrt(2.0 / int(moments.sizes[task])) * (moments.centred(task, rows) @ factor)
    return 2 * a * np.einsum("ij,ij->i", Psi, Psi)


def candidates(
    moments: Moments, task: int, factor: Array, near: NearRows, n_clusters: int
) -> tuple[NDArray[np.int64], bool]:
    """Which of the rows near a boundary an exchange is tried with, and whether these are all it could involve."""
    eager = near.wants + pulls_of(moments, task, factor, near.rows, n_clusters)
    keep = np.flatnonzero(eager + eager.max(initial=-np.inf) > 0)
    if len(keep) <= MOST_CANDIDATES:
        return keep, near.complete
    return np.sort(keep[np.argpartition(-eager[keep], MOST_CANDIDATES)[:MOST_CANDIDATES]]), False
