r"""Making cluster ids mean the same in every task.

Two tasks are compared by their class means: with the normalised indicators U_i (columns 1/n_c on the rows of cluster
c), S_ik = U_iᵀ K_ik U_k holds the inner products between class means of task i and of task k, and

.. math:: V_{ik} = \max_{\pi} \sum_c S_{ik}[c, \pi(c)] \,/\, (\|\cdot\|_i \|\cdot\|_k)

is the cosine between the two sets of means under the best matching: 1 for the same clusters, near 0 for unrelated ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components

from mtclust.labels import SizeBounds

Array = NDArray[np.float64]

#: sweeps that match each task again to all others, after the first alignment
_SWEEPS = 3
#: class means shorter than this share of the longest are rounding
_ZERO_NORM = 1e-12
#: tasks more alike than this belong to one group
GROUP_SIMILARITY = 0.5


def class_mean_products(kernel: Array, offsets: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int) -> Array:
    """Inner products between the class means of all tasks, shape (m, m, C, C); empty clusters have mean 0."""
    m = len(offsets) - 1
    indicator = np.zeros((len(labels), m * n_clusters))
    columns = np.repeat(np.arange(m), np.diff(offsets)) * n_clusters + labels
    indicator[np.arange(len(labels)), columns] = 1.0
    sizes = indicator.sum(axis=0)
    indicator /= np.maximum(sizes, 1.0)
    products = indicator.T @ (kernel @ indicator)
    return products.reshape(m, n_clusters, m, n_clusters).transpose(0, 2, 1, 3)


def allowed_permutations(bounds: SizeBounds, task: int, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which cluster (row) of a task may take which id (column) without breaking the size bounds of that id."""
    return (counts[:, None] >= bounds.lower[task]) & (counts[:, None] <= bounds.upper[task])


def best_relabelling(profit: Array, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The one-to-one map old id → new id of highest profit among the allowed ones (the identity always is)."""
    forbidden = -(2.0 * np.abs(profit).sum() + 1.0)
    _, new_ids = linear_sum_assignment(np.where(allowed, profit, forbidden), maximize=True)
    return new_ids.astype(np.int64)


def align(
    kernel: Array, offsets: NDArray[np.int64], labels: NDArray[np.int64], bounds: SizeBounds
) -> tuple[NDArray[np.int64], Array]:
    """Relabel the clusters of every task so that equal ids have similar class means in all tasks.

    Strongest pair of tasks first; every further task is matched to those already aligned, weighted by V².

    Returns
    -------
    labels : ndarray of shape (N,)
    similarity : ndarray of shape (m, m)
        V, 1 on the diagonal.
    """
    n_clusters = bounds.n_clusters
    m = len(offsets) - 1
    products, similarity = _similarity(kernel, offsets, labels, n_clusters)
    parts = [labels[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
    allowed = [allowed_permutations(bounds, i, np.bincount(parts[i], minlength=n_clusters)) for i in range(m)]
    new_ids = _new_ids(products, similarity, allowed)
    return np.concatenate([new_ids[i][parts[i]] for i in range(m)]), similarity


def align_task(
    kernel: Array, offsets: NDArray[np.int64], labels: NDArray[np.int64], bounds: SizeBounds, task: int
) -> tuple[NDArray[np.int64], Array]:
    """Relabel one task to fit the others, whose ids stay; returns all labels and the similarity V."""
    products, similarity = _similarity(kernel, offsets, labels, bounds.n_clusters)
    others = [k for k in range(len(similarity)) if k != task]
    profit = sum((similarity[task, k] ** 2 * products[task, k] for k in others), np.zeros(products.shape[2:]))
    rows = slice(int(offsets[task]), int(offsets[task + 1]))
    counts = np.bincount(labels[rows], minlength=bounds.n_clusters)
    result = labels.copy()
    result[rows] = best_relabelling(profit, allowed_permutations(bounds, task, counts))[labels[rows]]
    return result, similarity


def _similarity(
    kernel: Array, offsets: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int
) -> tuple[Array, Array]:
    """Normalised products of class means (m, m, C, C) and the value V of the best matching of every two tasks."""
    m = len(offsets) - 1
    products = class_mean_products(kernel, offsets, labels, n_clusters)
    norms = np.sqrt(np.maximum(np.einsum("iicc->i", products), 0.0))
    # a task whose class means coincide resembles no other
    weights = np.divide(1.0, norms, out=np.zeros(m), where=norms > _ZERO_NORM * norms.max(initial=0.0))
    products = products * weights[:, None, None, None] * weights[None, :, None, None]
    similarity = np.eye(m)
    for i in range(m):
        for k in range(i):
            rows, columns = linear_sum_assignment(products[i, k], maximize=True)
            similarity[i, k] = similarity[k, i] = products[i, k][rows, columns].sum()
    return products, similarity


def _new_ids(products: Array, similarity: Array, allowed: list[NDArray[np.bool_]]) -> NDArray[np.int64]:
    """For every task the map old id → common id."""
    m, n_clusters = len(similarity), products.shape[2]
    new_ids = np.tile(np.arange(n_clusters), (m, 1))
    weights = similarity**2 * (1 - np.eye(m))

    def match(task: int, others: list[int]) -> None:
        profit = np.zeros((n_clusters, n_clusters))
        for k in others:
            profit[:, new_ids[k]] += weights[task, k] * products[task, k]
        new_ids[task] = best_relabelling(profit, allowed[task])

    aligned: list[int] = []
    if m > 1:
        aligned.append(int(np.unravel_index(np.argmax(weights), weights.shape)[0]))
    while len(aligned) < m and m > 1:
        rest = [i for i in range(m) if i not in aligned]
        task = rest[int(np.argmax(weights[np.ix_(rest, aligned)].max(axis=1)))]
        match(task, aligned)
        aligned.append(task)
    for _ in range(_SWEEPS if m > 2 else 0):
        for task in range(m):
            match(task, [k for k in range(m) if k != task])
    return new_ids


def groups_of_tasks(similarity: Array, threshold: float = GROUP_SIMILARITY) -> list[NDArray[np.int64]]:
    """Connected components of the tasks whose similarity exceeds the threshold."""
    _, component = connected_components(similarity > threshold, directed=False)
    return [np.flatnonzero(component == c) for c in range(component.max() + 1)]
