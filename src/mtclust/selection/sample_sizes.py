"""The sizes clusters may have at scale, from what ``sizes="auto"`` chose on a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from mtclust.alignment import align_means, products_of_means
from mtclust.labels import SizeBounds, free_bounds, parse_sizes
from mtclust.primal.rows import Data, Moments, RemoteSource, Source, nearest_counts
from mtclust.problem.sample import take_rows

Array = NDArray[np.float64]

#: rows per task and starts of the k-means runs that estimate sizes
_ROWS = 2000
_STARTS = 3


def bounds_by_rule(
    rule: str, source: Source, own: Moments, clusters: NDArray[np.int64], rng: np.random.Generator
) -> SizeBounds:
    """Bounds of a rule to begin with: balanced (also for released sizes), free, or the sizes that k-means finds."""
    if rule in ("balanced", "released"):
        return parse_sizes("balanced", own.sizes, clusters)
    free = free_by_number(own.sizes, clusters)
    return estimated_bounds(Data(source, own, free), clusters, rng) if rule == "estimated" else free


def free_by_number(sizes: NDArray[np.int64], clusters: NDArray[np.int64]) -> SizeBounds:
    """No bounds but the number of clusters of every task."""
    present = np.arange(int(clusters.max())) < clusters[:, None]
    return free_bounds(sizes, present, movable=bool(np.ptp(clusters) > 0))


def estimated_bounds(data: Data, clusters: NDArray[np.int64], rng: np.random.Generator) -> SizeBounds:
    """Exact sizes: all rows go to the nearest centre that k-means finds in a sample of their task; ids aligned."""
    few = take_rows(data, np.minimum(data.moments.sizes, _ROWS), rng)
    m, C = data.bounds.lower.shape
    counts, means = np.zeros((m, C), dtype=np.int64), np.zeros((m, C, data.moments.n_features))
    centres: list[Array] = []
    for i, n in enumerate(few.moments.sizes):
        Phi = few.moments.centred(i, few.source.take(i, np.arange(n)))
        k_means = KMeans(min(int(clusters[i]), int(n)), n_init=_STARTS, random_state=int(rng.integers(2**31 - 1)))
        centres.append(k_means.fit(Phi).cluster_centers_)
        means[i, : len(centres[i])] = centres[i]
    for i, found in enumerate(_nearest_counts(data.source, few.moments, centres)):
        counts[i, : len(found)] = found
    new_ids, _ = align_means(products_of_means(means), counts, data.bounds)
    sizes = np.zeros_like(counts)
    for i, ids in enumerate(new_ids):
        sizes[i, ids] = counts[i]
    return SizeBounds(sizes, sizes)


def _nearest_counts(source: Source, own: Moments, centres: list[Array]) -> list[NDArray[np.int64]]:
    if isinstance(source, RemoteSource):
        return source.nearest_counts(own, centres)
    return [nearest_counts(source, own, task, part) for task, part in enumerate(centres)]
