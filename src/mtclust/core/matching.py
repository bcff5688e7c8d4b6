r"""Making cluster ids mean the same in every task.

Two tasks are compared by their class means: with the normalised indicators U_i (columns 1/n_c on the rows of cluster
c), S_ik = U_iᵀ K_ik U_k holds the inner products between class means of task i and of task k, and

.. math:: V_{ik} = \max_{\pi} \sum_c S_{ik}[c, \pi(c)] \,/\, (\|\cdot\|_i \|\cdot\|_k)

is the cosine between the two sets of means under the best matching: 1 for the same clusters, near 0 for unrelated ones.

Tasks with different numbers of clusters are compared on the clusters they can share: the means a of the smaller task
are matched one-to-one to some of the means b of the larger so that

.. math:: \min_{\pi, t} \sum_c \|a_c + t - b_{\pi(c)}\|^2

where the shift t makes up for the centres of the two tasks, which lie apart because one lacks clusters of the other
(t = 0 if the features are not centred). Inner products would prefer the outermost clusters of the larger task.

For many tasks comparing every two of them would be most of the work: there tasks are matched to one of them; those that
do not resemble it to one of the rest, and so on; then every task is matched to the mean of all others, weighted by V²,
until nothing changes. With the ids fixed the similarity of two tasks is the cosine of their class means.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from mtclust.core import Array, Integers
from mtclust.core.kernels import ROUNDING
from mtclust.core.labels import SizeBounds, counts_by_task, tasks_of_rows

#: with more tasks than this, whose class means are known in coordinates, pairs of tasks are not matched one by one
_MATCHED_IN_PAIRS = 50
#: sweeps that match each task again to all others, after the first matching
_SWEEPS = 5
#: tasks more alike than this belong to one group
GROUP_SIMILARITY = 0.5


def class_mean_products(kernel: Array, offsets: Integers, labels: Integers, n_clusters: int) -> Array:
    """Inner products between the class means of all tasks, shape (m, m, C, C); empty clusters have mean 0."""
    m = len(offsets) - 1
    indicator = np.zeros((len(labels), m * n_clusters))
    columns = np.repeat(np.arange(m), np.diff(offsets)) * n_clusters + labels
    indicator[np.arange(len(labels)), columns] = 1.0
    sizes = indicator.sum(axis=0)
    indicator /= np.maximum(sizes, 1.0)
    products = indicator.T @ (kernel @ indicator)
    return products.reshape(m, n_clusters, m, n_clusters).transpose(0, 2, 1, 3)


def best_renaming(
    profit: NDArray[Any], bounds: SizeBounds | None = None, task: int = 0, counts: Any = None
) -> Integers:
    """The one-to-one map old id → new id of highest profit.

    With the ``bounds`` of a task and its cluster sizes ``counts`` no cluster takes an id whose bounds its size breaks,
    unless these move with the clusters.
    """
    if bounds is not None and not bounds.movable:
        allowed = (counts[:, None] >= bounds.lower[task]) & (counts[:, None] <= bounds.upper[task])
        profit = np.where(allowed, profit, -(2.0 * np.abs(profit).sum() + 1.0))
    _, new_ids = linear_sum_assignment(profit, maximize=True)
    return new_ids.astype(np.int64)


def match_labels(kernel: Array, offsets: Integers, labels: Integers, bounds: SizeBounds) -> tuple[Integers, Array]:
    """Labels whose equal ids have similar class means in all tasks, and the similarity V of the tasks (m × m).

    Strongest pair of tasks first; every further task is matched to those before it, weighted by V².
    """
    C = bounds.n_clusters
    products = class_mean_products(kernel, offsets, labels, C)
    new_ids, similarity = match_means(products, counts_by_task(labels, offsets, C), bounds)
    return new_ids[tasks_of_rows(offsets), labels], similarity


def match_means(means: Array, sizes: Integers, bounds: SizeBounds, task: int | None = None) -> tuple[Integers, Array]:
    """New ids (m × C) from the class means of all tasks and the cluster sizes, and the similarity V of the tasks.

    ``means`` are inner products (m, m, C, C) or coordinates (m, C, r); the mean of an empty cluster is 0. Where a
    ``task`` is given only its ids change, to fit the others.
    """
    m, C = sizes.shape
    if means.ndim == 3 and m > _MATCHED_IN_PAIRS and not bounds.movable and task is None:
        return _match_many(means, sizes, bounds)
    if means.ndim == 3:
        flat = means.reshape(m * C, -1)
        means = (flat @ flat.T).reshape(m, C, m, C).transpose(0, 2, 1, 3)
    products, similarity = _similarity(means, sizes, bounds)
    weights = similarity**2 * (1 - np.eye(m))
    # the clusters (m × C) a task offers for matching: those that have rows, if tasks differ in how many they have
    offered = sizes > 0 if bounds.movable else np.ones(sizes.shape, dtype=bool)
    new_ids = np.tile(np.arange(C), (m, 1))

    def match(task: int, others: list[int]) -> None:
        """Ids of the clusters of a task that fit those of others best, in the mean over the tasks that have an id."""
        # column c of the product with task k counts for the id that k's cluster c has
        order = np.argsort(new_ids[others], axis=1)
        by_id = np.take_along_axis(products[task, others], order[:, None, :], axis=2)
        profit = np.tensordot(weights[task, others], by_id, axes=1)
        if not offered.all():  # where all tasks have all clusters the sum is the mean times a constant
            total = weights[task, others] @ np.take_along_axis(offered[others], order, axis=1)
            profit = profit / np.where(total > 0, total, 1.0)
        new_ids[task] = best_renaming(profit, bounds, task, sizes[task])

    if task is not None:
        match(task, [k for k in range(m) if k != task])
        return new_ids, similarity
    done: list[int] = []
    if m > 1:
        # one of the tasks with most clusters, for the others are matched to some of them
        n_offered = offered.sum(axis=1)
        largest = np.flatnonzero(n_offered == n_offered.max())
        done.append(int(largest[np.argmax(weights[largest].max(axis=1))]))
    nearest = np.full(m, -np.inf)  # how similar each task is to the most similar of these
    while 0 < len(done) < m:
        np.maximum(nearest, weights[:, done[-1]], out=nearest)
        nearest[done] = -np.inf
        match(int(np.argmax(nearest)), done)
        done.append(int(np.argmax(nearest)))
    for _ in range(_SWEEPS if m > 2 else 0):
        before = new_ids.copy()
        for i in range(m):
            match(i, [k for k in range(m) if k != i])
        if np.array_equal(before, new_ids):
            break
    return new_ids, similarity


def _similarity(products: Array, sizes: Integers, bounds: SizeBounds) -> tuple[Array, Array]:
    """Normalised products of class means (m, m, C, C) and the value V of the best matching of every two tasks.

    Where one of two tasks lacks clusters, the products are those of its clusters with the matched ones of the other,
    shifted on each other: they stand for distances then.
    """
    m = len(sizes)
    squares = np.maximum(np.einsum("iicc->i", products), 0.0)
    # a task whose class means coincide resembles no other
    apart = squares > ROUNDING * squares.max(initial=0.0)
    weights = np.divide(1.0, np.sqrt(squares), out=np.zeros(m), where=apart)
    raw, products = products, products * weights[:, None, None, None] * weights[None, :, None, None]
    similarity = np.eye(m)
    unequal = bounds.movable & ~np.all(sizes > 0, axis=1)
    for i in range(m):
        for k in range(i):
            if unequal[i] or unequal[k]:
                products[i, k], similarity[i, k] = _shifted_products(raw, sizes, i, k)
                products[k, i], similarity[k, i] = products[i, k].T, similarity[i, k]
                continue
            rows, columns = linear_sum_assignment(products[i, k], maximize=True)
            similarity[i, k] = similarity[k, i] = products[i, k][rows, columns].sum()
    return products, similarity


def _shifted_products(products: Array, sizes: Integers, i: int, k: int) -> tuple[Array, float]:
    """How near the class means of two tasks are (C × C, 0 for clusters one of them lacks), and their cosine V.

    The nearness of two means is (τ − ½|a + t − b|²)/(Cτ), τ the mean squared length of the matched ones: 1/C where they
    coincide, 0 where they are orthogonal, like the normalised inner products of two tasks with the same C clusters.
    """
    if np.count_nonzero(sizes[i]) > np.count_nonzero(sizes[k]):
        nearness, cosine = _shifted_products(products, sizes, k, i)
        return nearness.T, cosine
    n_clusters = sizes.shape[1]
    gram = np.block([[products[i, i], products[i, k]], [products[k, i], products[k, k]]])
    eigenvalues, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    points = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))  # the class means in coordinates
    ours, theirs = np.flatnonzero(sizes[i]), np.flatnonzero(sizes[k])
    a, b = points[:n_clusters][ours], points[n_clusters:][theirs]
    centres = np.stack([sizes[i, ours] @ a / sizes[i].sum(), sizes[k, theirs] @ b / sizes[k].sum()])
    # means of tasks that are rounding: the features are centred within tasks
    centred = bool(np.sum(centres**2) <= ROUNDING * np.sum(points**2))
    matched, shift = _nearest_subset(a, b, centred)
    nearness = np.zeros((n_clusters, n_clusters))
    a_own, b_own = (part - part.mean(axis=0) if centred else part for part in (a, b[matched]))
    squares = float(np.sum(a_own**2)), float(np.sum(b_own**2))
    typical = 0.5 * sum(squares) / len(a)
    norm = np.sqrt(squares[0] * squares[1])
    if norm <= ROUNDING * np.trace(gram):  # a single cluster, or class means that coincide: it may be any
        return nearness, 0.0
    distances = cdist(a + shift, b, "sqeuclidean")
    nearness[np.ix_(ours, theirs)] = (1.0 - 0.5 * distances / typical) / n_clusters
    return nearness, float(np.sum(a_own * b_own) / norm)


def _nearest_subset(a: Array, b: Array, shifted: bool) -> tuple[Integers, Array]:
    """For every point of a one of b, and the shift of a, such that the matched points are nearest.

    Matching and shifting in turn, from the shifts that put one point of a on one of b.
    """
    starts = (b[None] - a[:, None]).reshape(-1, a.shape[1]) if shifted else np.zeros((1, a.shape[1]))
    best, matched, shift = np.inf, np.arange(len(a)), np.zeros(a.shape[1])
    for t in starts:
        before = np.inf
        while True:
            _, columns = linear_sum_assignment(cdist(a + t, b, "sqeuclidean"))
            if shifted:
                t = (b[columns] - a).mean(axis=0)
            value = float(np.sum((a + t - b[columns]) ** 2))
            if not value < before:
                break
            before = value
        if value < best:
            best, matched, shift = value, columns.astype(np.int64), t
    return matched, shift


def _match_many(means: Array, counts: Integers, bounds: SizeBounds) -> tuple[Integers, Array]:
    """New ids (m × C) from the class means (m × C × r) of every task, and the similarity V of the tasks."""
    m, C, _ = means.shape
    norms = np.linalg.norm(means.reshape(m, -1), axis=1)
    unit = means / np.maximum(norms, np.finfo(float).tiny)[:, None, None]
    ids = np.tile(np.arange(C), (m, 1))

    def match(task: int, model: Array) -> bool:
        """Rename the clusters of a task to fit ``model`` (C × r); whether that changed any."""
        order = np.argsort(ids[task])  # by their present ids
        new = best_renaming(unit[task][order] @ model.T, bounds, task, counts[task][order])
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
        flat = named().reshape(m, -1)
        weights = np.maximum(flat @ flat.T, 0.0) ** 2
        np.fill_diagonal(weights, 0.0)
        models = (weights @ flat).reshape(means.shape)
        if sum(match(task, models[task]) for task in range(m)) == 0:
            break
    flat = named().reshape(m, -1)
    similarity = flat @ flat.T
    np.fill_diagonal(similarity, 1.0)
    return ids, similarity


def pair_counts(labels: Any, model: Any, n_clusters: int) -> Integers:
    """How many rows have which two labels."""
    if not isinstance(labels, np.ndarray):  # a handle to labels that lie elsewhere
        return labels.pair_counts(model, n_clusters)
    return np.bincount(labels * n_clusters + model, minlength=n_clusters**2).reshape(n_clusters, n_clusters)


def groups_of_tasks(similarity: Array) -> list[Integers]:
    """Connected components of the tasks whose similarity exceeds ``GROUP_SIMILARITY``."""
    n_groups, group_of = connected_components(similarity > GROUP_SIMILARITY, directed=False)
    return [np.flatnonzero(group_of == group) for group in range(n_groups)]
