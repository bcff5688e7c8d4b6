"""What is known of rows beside their values: clusters of some of them, and pairs that belong together or apart.

A known row has its cluster from the user and is never moved; −1 stands for unknown. Rows that are linked to each other,
directly or through others, form a group with one cluster. How labels keep them: :mod:`mtclust.search.hints`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mtclust.core import Labels
from mtclust.core.assignment import assign
from mtclust.core.labels import left_over
from mtclust.core.matching import best_renaming, pair_counts
from mtclust.core.tasks import plain_ids


def read_known(known: Any, n_rows: int) -> Labels | None:
    """One cluster id per row, −1 where it is unknown; None where none is known."""
    if known is None:
        return None
    values, missing = plain_ids(known, "known")
    if values.shape != (n_rows,):
        raise ValueError(
            f"known has the shape {values.shape} but X has {n_rows} rows; give one cluster id per row, -1 where it is "
            "unknown."
        )
    given = wrong = np.flatnonzero(~missing)
    if values.dtype.kind in "iuf":
        numbers = values[given].astype(np.float64)
        wrong = given[(numbers != np.round(numbers)) | (numbers < -1) | (numbers >= 2.0**63)]
    if len(wrong):
        raise ValueError(
            f"known has {values[wrong].tolist()[0]!r} at row {wrong[0]}; allowed are whole cluster ids from 0 on, and "
            "-1 or missing where the cluster is unknown."
        )
    found = np.full(n_rows, -1, dtype=np.int64)
    found[given] = values[given].astype(np.int64)
    return found if (found >= 0).any() else None


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


@dataclass(frozen=True)
class Links:
    """Pairs of rows, by their positions."""

    together: Labels  # pairs that share a cluster (k × 2)
    apart: Labels  # pairs that do not (l × 2)

    @property
    def n_pairs(self) -> int:
        return len(self.together) + len(self.apart)

    def kept(self, labels: Labels) -> float:
        """Share of the pairs that labels keep."""
        same = np.count_nonzero(labels[self.together[:, 0]] == labels[self.together[:, 1]])
        differ = np.count_nonzero(labels[self.apart[:, 0]] != labels[self.apart[:, 1]])
        return float((same + differ) / max(1, self.n_pairs))

    def groups(self) -> tuple[Labels, Labels]:
        """The linked rows, and the group of each: rows that must share a cluster are one group."""
        rows = np.unique(np.concatenate([self.together.ravel(), self.apart.ravel()]))
        first, second = np.searchsorted(rows, self.together).T
        graph = sp.coo_array((np.ones(len(first)), (first, second)), shape=(len(rows), len(rows)))
        return rows, connected_components(graph, directed=False)[1].astype(np.int64)


def read_links(must_link: Any, cannot_link: Any, n_rows: int) -> Links | None:
    """Pairs of rows; None where there are none."""
    links = Links(_read_pairs(must_link, "must_link", n_rows), _read_pairs(cannot_link, "cannot_link", n_rows))
    if not links.n_pairs:
        return None
    rows, groups = links.groups()
    first, second = groups[np.searchsorted(rows, links.apart)].T
    both = np.flatnonzero(first == second)
    if len(both):
        a, b = links.apart[both[0]].tolist()
        raise ValueError(
            f"cannot_link has the rows {a} and {b}, which must_link puts in one cluster, directly or through other "
            "rows; leave one of these pairs out."
        )
    return links


def _read_pairs(pairs: Any, argument: str, n_rows: int) -> Labels:
    if pairs is None or (hasattr(pairs, "__len__") and len(pairs) == 0):
        return np.empty((0, 2), dtype=np.int64)
    try:
        found = np.asarray(pairs)
    except ValueError:  # rows of different lengths
        found = np.empty(0)
    wrong: Any = [found]
    if found.ndim == 2 and found.shape[1] == 2 and found.dtype.kind in "iu":
        found = found.astype(np.int64)
        wrong = found[np.any((found < 0) | (found >= n_rows), axis=1) | (found[:, 0] == found[:, 1])]
    if len(wrong):
        raise ValueError(
            f"{argument} must hold pairs of different rows, shape (k, 2), by their numbers from 0 to {n_rows - 1}; got "
            f"{wrong[0]}."
        )
    return found


@dataclass(frozen=True)
class Hints:
    """Known clusters and pairs of some rows."""

    known: Labels | None = None  # clusters of rows that are known, −1 elsewhere (N,)
    links: Links | None = None  # pairs of rows that share a cluster, or do not

    def of_rows(self, rows: Labels, n_rows: int) -> Hints:
        """The hints of some of ``n_rows`` rows, in this order; a row that comes several times is the last of them."""
        known = None if self.known is None else self.known[rows]
        if known is not None and np.all(known < 0):
            known = None
        links = self.links
        if links is not None:
            positions = np.full(n_rows, -1, dtype=np.int64)
            positions[rows] = np.arange(len(rows))
            moved = [positions[pairs] for pairs in (links.together, links.apart)]
            links = Links(*(pairs[np.all(pairs >= 0, axis=1)] for pairs in moved))
        return Hints(known, links if links is not None and links.n_pairs else None)

    def agreement(self, labels: Labels, n_clusters: int) -> float:
        """How many hints labels keep for every cluster: known rows, where clusters are best named, and pairs."""
        found = 0.0
        if self.known is not None:
            given = self.known >= 0
            mine, known = labels[given], self.known[given]
            new_ids = best_renaming(pair_counts(mine, known, n_clusters))
            found += np.count_nonzero(new_ids[mine] == known)
        if self.links is not None:
            found += self.links.n_pairs * self.links.kept(labels)
        return found / n_clusters


NO_HINTS = Hints()
