"""The sizes clusters may have at scale, from what ``sizes="auto"`` chose on a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from mtclust.alignment import align_means, products_of_means
from mtclust.labels import SizeBounds, free_bounds, parse_sizes
from mtclust.primal.rows import Moments, RemoteSource, Source
from mtclust.primal.sample import take_rows
from mtclust.primal.search import Data

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
    present = np.arange(int(clusters.max())) < clusters[:, None]
    free = free_bounds(own.sizes, present, movable=bool(np.ptp(clusters) > 0))
    return estimated_bounds(Data(source, own, free), clusters, rng) if rule == "estimated" else free


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
    new_ids, _ = align_means(products_of_means(means), counts, few.bounds)
    sizes = np.zeros_like(counts)
    for i, ids in enumerate(new_ids):
        sizes[i, ids] = counts[i]
    return SizeBounds(sizes, sizes)


def _nearest_counts(source: Source, own: Moments, centres: list[Array]) -> list[NDArray[np.int64]]:
    if isinstance(source, RemoteSource):
        return source.nearest_counts(own, centres)
    return [nearest_counts(source, own, task, part) for task, part in enumerate(centres)]


def nearest_counts(source: Source, own: Moments, task: int, centres: Array) -> NDArray[np.int64]:
    """How many rows of a task are nearest to each centre."""
    counts = np.zeros(len(centres), dtype=np.int64)
    for _, _, block in source.blocks(task):
        nearness = own.centred(task, block) @ centres.T - 0.5 * np.sum(centres**2, axis=1)
        counts += np.bincount(nearness.argmax(axis=1), minlength=len(centres))
    return counts
