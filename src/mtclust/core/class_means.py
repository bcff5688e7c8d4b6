r"""Class means of all tasks, and common cluster ids from them.

:mod:`mtclust.core.alignment` matches all pairs of tasks. For many tasks comparing every two of them would be most of
the work: there tasks are matched to one of them; those that do not resemble it to one of the rest, and so on; then
every task is matched to the mean of all others, weighted by V², until nothing changes. With the ids fixed the
similarity of two tasks is the cosine of their class means, without any matching.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import (
    GROUP_SIMILARITY,
    align_means,
    align_task_means,
    allowed_permutations,
    best_relabelling,
    products_of_means,
)
from mtclust.core.labels import SizeBounds

Array = NDArray[np.float64]

#: with more tasks than this
MANY = 50
_SWEEPS = 5


@dataclass(frozen=True)
class ClassMeans:
    """Class means of all tasks, by their inner products or in coordinates.

    Attributes
    ----------
    counts : ndarray of shape (m, C)
        Cluster sizes; the mean of an empty cluster is 0.
    products : ndarray of shape (m, m, C, C), optional
    coordinates : ndarray of shape (m, C, r), optional
        One of the two is given.
    """

    counts: NDArray[np.int64]
    products: Array | None = None
    coordinates: Array | None = None

    def aligned(self, bounds: SizeBounds) -> tuple[NDArray[np.int64], Array]:
        """New ids (m × C) that mean the same in all tasks, and the similarity V of the tasks."""
        if self.coordinates is not None and len(self.counts) > MANY and not bounds.movable:
            return align_many(self.coordinates, self.counts, bounds)
        return align_means(self._products(), self.counts, bounds)

    def last_aligned(self, bounds: SizeBounds) -> tuple[NDArray[np.int64], Array]:
        """New ids of the last task that fit the others, whose ids stay, and the similarity V of the tasks."""
        return align_task_means(self._products(), self.counts, bounds, len(self.counts) - 1)

    def _products(self) -> Array:
        if self.products is not None:
            return self.products
        assert self.coordinates is not None
        return products_of_means(self.coordinates)


def align_many(means: Array, counts: NDArray[np.int64], bounds: SizeBounds) -> tuple[NDArray[np.int64], Array]:
    """New ids (m × C) from the class means (m × C × r) of every task, and the similarity V of the tasks."""
    m, C, _ = means.shape
    norms = np.linalg.norm(means.reshape(m, -1), axis=1)
    unit = means / np.maximum(norms, np.finfo(float).tiny)[:, None, None]
    allowed = [allowed_permutations(bounds, i, counts[i]) for i in range(m)]
    ids = np.tile(np.arange(C), (m, 1))

    def match(task: int, model: Array) -> bool:
        """Rename the clusters of a task to fit ``model`` (C × r); whether that changed any."""
        now = unit[task][np.argsort(ids[task])]  # by their present ids
        counts_now = counts[task][np.argsort(ids[task])]
        free = allowed[task] if np.all(allowed[task]) else allowed_permutations(bounds, task, counts_now)
        new = best_relabelling(now @ model.T, free)
        ids[task] = new[ids[task]]
        return not np.array_equal(new, np.arange(C))

    def named() -> Array:
        """Class means ordered by their present ids."""
        return np.take_along_axis(unit, np.argsort(ids, axis=1)[:, :, None], axis=1)

    rest = list(np.argsort(-norms))
    while rest:
        first, rest = int(rest[0]), rest[1:]
        model = named()[first]
        for task in rest:
            match(int(task), model)
        flat = named().reshape(m, -1)
        alike = flat @ flat[first]
        rest = [task for task in rest if alike[task] <= GROUP_SIMILARITY]
    for _ in range(_SWEEPS):
        by_id = named()
        flat = by_id.reshape(m, -1)
        weights = flat @ flat.T
        np.maximum(weights, 0.0, out=weights)
        np.square(weights, out=weights)
        np.fill_diagonal(weights, 0.0)
        models = (weights @ flat).reshape(by_id.shape)
        if sum(match(task, models[task]) for task in range(m)) == 0:
            break
    flat = named().reshape(m, -1)
    similarity = flat @ flat.T
    np.fill_diagonal(similarity, 1.0)
    return ids, similarity
