"""Labels the cutting-plane solver can begin with: k-means, spectral, random, or given ones.

All of them obey the cluster sizes: a start is the first member of a pool, and pools hold labellings that are allowed.
Tasks are clustered one by one in the feature space of the kernel, then cluster ids are matched over tasks.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from mtclust.core.alignment import align
from mtclust.core.assignment import assign
from mtclust.core.kernels import eigen_features
from mtclust.core.labels import SizeBounds
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.pool import random_labels

Array = NDArray[np.float64]

#: random starts of k-means
_N_INIT = 10


def starting_labels(problem: KernelProblem, init: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Labels of the sorted rows within the size bounds; ``init`` names a method or holds labels."""
    if not isinstance(init, str):
        return _checked(np.asarray(init), problem)
    parts = []
    for task in range(problem.n_tasks):
        rows = problem.rows(task)
        lower, upper = problem.bounds.lower[task], problem.bounds.upper[task]
        block = problem.kernel[rows, rows]
        if init == "random" or len(block) <= problem.n_clusters:
            parts.append(random_labels(len(block), lower, upper, rng))
            continue
        points = eigen_features(block).values if init == "k-means" else _spectral_map(block, problem.n_clusters)
        parts.append(assign(_squared_distances(points, problem.n_clusters, rng), lower, upper))
    labels, _ = align(problem.kernel, problem.offsets, np.concatenate(parts), problem.bounds)
    return labels


def _squared_distances(points: Array, n_clusters: int, rng: np.random.Generator) -> Array:
    """Squared distances of the points to the centres of k-means."""
    kmeans = KMeans(n_clusters, n_init=_N_INIT, random_state=int(rng.integers(2**31 - 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: a start may be poor
        return np.asarray(kmeans.fit_transform(points)) ** 2


def _spectral_map(block: Array, n_clusters: int) -> Array:
    """The leading C − 1 eigenvectors of the kernel centred within the task: the relaxed labels of largest norm."""
    n = len(block)
    means = block.mean(axis=0)
    centred = block - means - means[:, None] + means.mean()
    wanted = max(1, n_clusters - 1)
    return np.asarray(sla.eigh(centred, subset_by_index=(n - wanted, n - 1))[1])


def _checked(labels: NDArray[Any], problem: KernelProblem) -> NDArray[np.int64]:
    n, n_clusters = len(problem.kernel), problem.n_clusters
    if labels.shape != (n,):
        raise ValueError(f"solver_options['init'] has shape {labels.shape}; expected one label per row, {(n,)}.")
    try:
        whole = labels.astype(np.int64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"solver_options['init'] must hold whole numbers, the cluster of every row; got {labels.dtype}."
        ) from error
    wrong = (whole != labels) | (whole < 0) | (whole >= n_clusters)
    if wrong.any():
        raise ValueError(
            f"solver_options['init'] must hold whole numbers from 0 to {n_clusters - 1}; "
            f"got {labels[wrong].tolist()[0]!r}."
        )
    _check_sizes(whole, problem, problem.bounds)
    return whole


def _check_sizes(labels: NDArray[np.int64], problem: KernelProblem, bounds: SizeBounds) -> None:
    for task in range(problem.n_tasks):
        counts = np.bincount(labels[problem.rows(task)], minlength=problem.n_clusters)
        if not bounds.respects(task, counts):
            raise ValueError(
                f"solver_options['init'] gives the {task + 1}. task the cluster sizes {counts.tolist()}, which are not "
                f"between {bounds.lower[task].tolist()} and {bounds.upper[task].tolist()}; change the labels or sizes=."
            )
