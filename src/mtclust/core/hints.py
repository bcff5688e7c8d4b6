"""What is known of rows beside their values: clusters of some of them, and pairs that belong together or apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtclust.core.known import agreement
from mtclust.core.links import Links

Labels = NDArray[np.int64]

#: the share of known rows or of pairs that a candidate has right weighs n/(n + this) beside its score, for n of them
_ENOUGH = 60.0


@dataclass(frozen=True)
class Hints:
    """Known clusters and pairs of some rows.

    Attributes
    ----------
    known : ndarray of shape (N,), optional
        Clusters of rows that are known, −1 elsewhere.
    links : Links, optional
        Pairs of rows that share a cluster, or do not.
    """

    known: Labels | None = None
    links: Links | None = None

    def of_rows(self, rows: Labels, n_rows: int) -> Hints:
        """The hints of some of ``n_rows`` rows, in this order; a row that comes several times is the last of them."""
        known = None if self.known is None else self.known[rows]
        if known is not None and np.all(known < 0):
            known = None
        links = self.links
        if links is not None:
            positions = np.full(n_rows, -1, dtype=np.int64)
            positions[rows] = np.arange(len(rows))
            links = links.at(positions)
        return Hints(known, links if links is not None and links.n_pairs else None)

    def agreement(self, labels: Labels, n_clusters: int) -> float:
        """What hints say for labels: the share of them that labels keep, weighed by how many there are."""
        found = 0.0
        if self.known is not None:
            n = np.count_nonzero(self.known >= 0)
            found += n / (n + _ENOUGH) * agreement(labels, self.known, n_clusters)
        if self.links is not None:
            found += self.links.n_pairs / (self.links.n_pairs + _ENOUGH) * self.links.kept(labels)
        return found


NO_HINTS = Hints()
