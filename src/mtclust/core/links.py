"""Pairs of rows that must share a cluster, or must not: reading them, and the clusters that linked rows can have.

Rows that are linked to each other, directly or through others, form a group with one cluster. Which clusters the groups
get, so that every pair is kept and the scores of all linked rows are highest, is a small integer program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse.csgraph import connected_components

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: what a cluster costs that a task does not have so far, in units of the range of all scores
_ABSENT = 10.0
#: relative gap to the best clusters of linked rows at which the integer program may stop, and its seconds at most
_GAP, _SECONDS = 1e-4, 60.0


@dataclass(frozen=True)
class Links:
    """Pairs of rows, by their positions.

    Attributes
    ----------
    together : ndarray of shape (k, 2)
        Pairs that share a cluster.
    apart : ndarray of shape (l, 2)
        Pairs that do not.
    """

    together: Labels
    apart: Labels

    def at(self, positions: Labels) -> Links:
        """The pairs of rows that are now at other positions, −1 where a row is gone; pairs without it are kept."""
        moved = [positions[pairs] for pairs in (self.together, self.apart)]
        return Links(*(pairs[np.all(pairs >= 0, axis=1)] for pairs in moved))

    @property
    def n_pairs(self) -> int:
        return len(self.together) + len(self.apart)

    def kept(self, labels: Labels) -> float:
        """Share of the pairs that labels keep.

        Examples
        --------
        >>> import numpy as np
        >>> read_links([(0, 1)], [(1, 2), (0, 3)], 4).kept(np.array([0, 0, 0, 1]))
        0.6666666666666666
        """
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
    """Pairs of rows; None where there are none.

    Examples
    --------
    >>> read_links([(0, 2)], None, 3).together.tolist()
    [[0, 2]]
    """
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
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise ValueError(
            f"{argument} must hold pairs of row numbers, shape (k, 2), whole numbers; got {_described(pairs, found)}."
        )
    found = found.astype(np.int64)
    outside = found[(found < 0) | (found >= n_rows)]
    if len(outside):
        raise ValueError(f"{argument} has row {outside[0]}; rows are numbered from 0 to {n_rows - 1}, as they come.")
    itself = np.flatnonzero(found[:, 0] == found[:, 1])
    if len(itself):
        raise ValueError(f"{argument} pairs row {found[itself[0], 0]} with itself; give pairs of different rows.")
    return found


def _described(pairs: Any, found: NDArray[Any]) -> str:
    if found.ndim == 2 and found.shape[1] == 2:
        return f"values of type {found.dtype}"
    return f"the shape {found.shape}" if found.size else f"{type(pairs).__name__} that is no table"


def linked_clusters(
    links: Links, scores: Array, known: Labels | None, task_of: Labels | None = None, most: Labels | None = None
) -> Labels:
    """Clusters of the linked rows that keep all pairs and have the highest scores in sum; −1 for all other rows.

    Parameters
    ----------
    links : Links
    scores : ndarray of shape (N, C)
        Of every row for every cluster; −∞ where its task does not have the cluster so far.
    known : ndarray of shape (N,), optional
        Clusters of rows that are known, −1 elsewhere; they are part of the result.
    task_of, most : ndarrays of shape (N,) and (m, C), optional
        The task of every row, and how many linked rows of a task a cluster can hold.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[1.0, 0.0], [0.6, 0.4], [0.9, 0.1]])
    >>> linked_clusters(read_links([(0, 1)], [(1, 2)], 3), scores, None).tolist()
    [0, 0, 1]
    """
    rows, groups = links.groups()
    G, C = int(groups.max()) + 1, scores.shape[1]
    finite = scores[np.isfinite(scores)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    own = np.where(np.isfinite(scores[rows]), scores[rows], finite.min(initial=0.0) - _ABSENT * (spread or 1.0))
    gain = np.zeros((G, C))
    np.add.at(gain, groups, own)
    lower, upper = np.zeros((G, C)), np.ones((G, C))
    found = np.full(len(scores), -1, dtype=np.int64) if known is None else known.copy()
    for group, cluster in zip(groups[found[rows] >= 0].tolist(), found[rows[found[rows] >= 0]].tolist()):
        lower[group, cluster] = 1.0
    constraints = [LinearConstraint(sp.kron(sp.eye_array(G), np.ones((1, C))), 1, 1)]
    if len(links.apart):
        constraints.append(_never_both(groups[np.searchsorted(rows, links.apart)], G, C))
    if task_of is not None and most is not None:
        constraints.append(_within(groups, task_of[rows], most, G, C))
    options = {"mip_rel_gap": _GAP, "time_limit": _SECONDS}
    bounds = Bounds(lower.ravel(), upper.ravel())
    solved = milp(-gain.ravel(), integrality=np.ones(G * C), bounds=bounds, constraints=constraints, options=options)
    if solved.x is None:
        raise ValueError(
            f"must_link and cannot_link cannot all be kept with {C} clusters"
            + (" and the known rows" if known is not None else "")
            + (" and the sizes given" if most is not None else "")
            + f" ({G} groups of linked rows, {len(links.apart)} pairs apart); leave pairs out or allow more clusters."
        )
    found[rows] = solved.x.reshape(G, C).argmax(axis=1)[groups]
    return found


def _never_both(pairs: Labels, n_groups: int, n_clusters: int) -> LinearConstraint:
    """Of two groups that are apart at most one has a cluster."""
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    entries = np.repeat(np.arange(len(pairs)), 2)
    either = sp.coo_array((np.ones(len(entries)), (entries, pairs.ravel())), shape=(len(pairs), n_groups))
    return LinearConstraint(sp.kron(either, sp.eye_array(n_clusters)), -np.inf, 1)


def _within(groups: Labels, task_of: Labels, most: Labels, n_groups: int, n_clusters: int) -> LinearConstraint:
    """No cluster of a task holds more linked rows than it may."""
    counts = sp.coo_array((np.ones(len(groups)), (task_of, groups)), shape=(len(most), n_groups))
    return LinearConstraint(sp.kron(counts, sp.eye_array(n_clusters)), -np.inf, most.ravel())
