"""Rows whose cluster is known: reading them, putting them in place, naming clusters after them.

A known row has its cluster from the user and is never moved; −1 stands for unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from mtclust.core.assignment import assign
from mtclust.core.labels import SizeBounds
from mtclust.core.tasks import missing_ids, plain_ids

Labels = NDArray[np.int64]

#: a name that clusters have in all tasks is given up in one for more than this many known rows of the task
_COMMON_NAME = 1.5


def read_known(known: Any, n_rows: int) -> Labels | None:
    """One cluster id per row, −1 where it is unknown; None where none is known.

    Examples
    --------
    >>> read_known([0, None, 2, -1], 4).tolist()
    [0, -1, 2, -1]
    """
    if known is None:
        return None
    values = plain_ids(known, "known")
    if values.shape != (n_rows,):
        raise ValueError(
            f"known has the shape {values.shape} but X has {n_rows} rows; give one cluster id per row, -1 where it is "
            "unknown."
        )
    missing = missing_ids(values)
    found = np.full(n_rows, -1, dtype=np.int64)
    given = np.flatnonzero(~missing)
    for value in values[given].tolist():
        if not isinstance(value, int | float):
            raise TypeError(
                f"known must hold cluster ids 0, 1, ... and -1 or missing where the cluster is unknown; got {value!r}."
            )
    numbers = values[given].astype(np.float64)
    wrong = (numbers != np.round(numbers)) | (numbers < -1)
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"known has {values[given[first]]} at row {given[first]}; allowed are whole cluster ids from 0 on, and -1 "
            "or missing where the cluster is unknown."
        )
    found[given] = numbers.astype(np.int64)
    return found if (found >= 0).any() else None


def known_counts(known: Labels, offsets: NDArray[np.int64], n_clusters: int) -> Labels:
    """How many rows of every task and cluster (m × C) are known, of rows sorted by task."""
    parts = (known[a:b] for a, b in zip(offsets[:-1], offsets[1:]))
    return np.stack([np.bincount(part[part >= 0], minlength=n_clusters) for part in parts])


def check_sizes(counts: Labels, bounds: SizeBounds, sizes: Labels, names: list[Any]) -> None:
    """Refuse known rows that no labels within the sizes can have."""
    for i, name in enumerate(names):
        own = counts[i]
        if bounds.movable:
            has, held = int(np.count_nonzero(bounds.upper[i])), int(np.count_nonzero(own))
            if held > has:
                raise ValueError(
                    f"known has rows of {held} clusters in task {name!r}, which has n_clusters={has}; give the task "
                    "more clusters."
                )
            continue
        over = np.flatnonzero(own > bounds.upper[i])
        if len(over):
            c = int(over[0])
            raise ValueError(
                f"known has {own[c]} rows of cluster {c} in task {name!r}, but sizes and n_clusters allow at most "
                f"{bounds.upper[i, c]}; change sizes or leave some of these rows unknown."
            )
        if np.maximum(own, bounds.lower[i]).sum() > sizes[i]:
            raise ValueError(
                f"known leaves too few rows of task {name!r} for the other clusters: sizes ask for "
                f"{bounds.lower[i].tolist()} rows at least, known has {own.tolist()} of {sizes[i]}; change sizes or "
                "leave some of these rows unknown."
            )


def with_room(bounds: SizeBounds, counts: Labels, sizes: Labels) -> SizeBounds:
    """Bounds that the known rows of every task fit in: where sizes are left open, a search may settle on narrower ones.

    ``counts`` (m × C) are those of known rows, ``sizes`` the rows of the tasks.
    """
    crowded = np.maximum(bounds.lower, counts).sum(axis=1) > sizes
    return SizeBounds(np.where(crowded[:, None], 0, bounds.lower), np.maximum(bounds.upper, counts))


def left_over(known: Labels, lower: Labels, upper: Labels) -> tuple[Labels, Labels]:
    """Bounds of a task for its rows that are not known."""
    own = np.bincount(known[known >= 0], minlength=len(lower))
    return np.maximum(lower - own, 0), np.maximum(upper - own, 0)


def placed(labels: Labels, known: Labels, lower: Labels, upper: Labels) -> Labels:
    """Labels of a task with its known rows in place, and as few other rows moved as the sizes ask for."""
    found = np.where(known >= 0, known, labels)
    free = np.flatnonzero(known < 0)
    low, high = left_over(known, lower, upper)
    counts = np.bincount(found[free], minlength=len(lower))
    if np.any(counts < low) or np.any(counts > high):
        cost = np.ones((len(free), len(lower)))
        cost[np.arange(len(free)), found[free]] = 0.0
        found[free] = assign(cost, low, high)
    return found


def names_after_known(labels: Labels, known: Labels, offsets: NDArray[np.int64], bounds: SizeBounds) -> Labels:
    """New ids (m × C) under which labels agree with most known rows.

    Clusters mean the same in all tasks, so that one naming serves all; a task departs from it where its own known rows
    say so more than once.
    """
    m, C = len(offsets) - 1, bounds.n_clusters
    pairs = np.zeros((m, C, C))
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        mine = known[a:b] >= 0
        np.add.at(pairs[i], (labels[a:b][mine], known[a:b][mine]), 1.0)
    # where known rows say nothing names stay
    _, common = linear_sum_assignment(-(pairs.sum(axis=0) + 1e-6 * np.eye(C)))
    result = np.empty((m, C), dtype=np.int64)
    for i in range(m):
        wish = pairs[i].copy()
        wish[np.arange(C), common] += _COMMON_NAME
        if not bounds.present[i].all():  # a cluster that the task has for every id that is known there
            wish[np.ix_(bounds.upper[i] > 0, pairs[i].any(axis=0))] += 1e6
        _, result[i] = linear_sum_assignment(-wish)
    return result


def agreement(labels: Labels, known: Labels, n_clusters: int) -> float:
    """Share of the known rows that labels have right, under the best naming of all clusters.

    Examples
    --------
    >>> import numpy as np
    >>> agreement(np.array([1, 1, 0, 0]), np.array([0, -1, 1, 0]), 2)
    0.6666666666666666
    """
    mine = known >= 0
    pairs = np.zeros((n_clusters, n_clusters))
    np.add.at(pairs, (labels[mine], known[mine]), 1.0)
    rows, columns = linear_sum_assignment(-pairs)
    return float(pairs[rows, columns].sum() / max(1, np.count_nonzero(mine)))
