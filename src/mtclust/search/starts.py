"""Good labellings of every task alone: random starts refined along a path of falling λ.

At large λ the objective is smooth in the labels and a local search finds the coarse structure; following it down to
the wanted λ avoids the poor local optima that a direct search ends in.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.core.labels import code_scale, label_codes

Array = NDArray[np.float64]

#: λ is multiplied by these in turn
PATH = (1024.0, 256.0, 64.0, 16.0, 4.0, 1.0)
#: an exchange must lower the objective by this share of the mean diagonal of M: below it is rounding
EXCHANGE_TOLERANCE = 1e-9


def exchange_rows(
    M: Array,
    linear_term: Array | None,
    labels: NDArray[np.int64],
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    seed: NDArray[np.uint64],
) -> tuple[float, int]:
    """Swap and move rows of one task until nothing improves; ``labels`` change in place.

    Returns ½⟨Y, MY⟩ + ⟨Y, L⟩ at the end and the number of exchanges.
    """
    from mtclust.core import compiled

    n_clusters = len(lower)
    codes = label_codes(labels, n_clusters)
    P = codes.T @ M
    if linear_term is not None:
        P += linear_term.T
    counts = np.bincount(labels, minlength=n_clusters)
    tolerance = EXCHANGE_TOLERANCE * float(M.trace()) / len(M)
    moves = 0
    if n_clusters > 1:
        moves, _ = compiled.exchange(M, P, labels, counts, lower, upper, tolerance, seed)
    a, rest = code_scale(n_clusters)
    rows = np.arange(len(labels))
    value = a * float(P[labels, rows].sum()) - rest * float(P.sum())
    if linear_term is not None:
        value += a * float(linear_term[rows, labels].sum()) - rest * float(linear_term.sum())
    return 0.5 * value, moves


def random_labels(
    n: int, lower: NDArray[np.int64], upper: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Random labels whose sizes lie within the bounds, as even as those allow."""
    sizes = lower.copy()
    while sizes.sum() < n:
        room = np.flatnonzero(sizes < upper)
        smallest = room[sizes[room] == sizes[room].min()]
        take = (
            smallest[: n - sizes.sum()]
            if len(smallest) <= n - sizes.sum()
            else rng.choice(smallest, n - sizes.sum(), replace=False)
        )
        sizes[take] += 1
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def k_means(features: Array, n_clusters: int) -> NDArray[np.int64]:
    """Labels of k-means, the same every time; silent about fewer distinct rows than clusters."""
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(n_clusters, n_init=3, random_state=0).fit_predict(features).astype(np.int64)


def quadratic_forms(kernel: Array, ridges: Array) -> list[Array]:
    """M = (K/λ + (n/2)I)⁻¹ of one task for every ridge λ, from one eigendecomposition."""
    n = len(kernel)
    eigenvalues, vectors = sla.eigh(kernel)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    forms = ((vectors / (eigenvalues / ridge + 0.5 * n)) @ vectors.T for ridge in ridges)
    return [0.5 * (M + M.T) for M in forms]


def refined_along(
    path: Sequence[Array] | Array,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    n_init: int,
    rng: np.random.Generator,
) -> list[tuple[float, NDArray[np.int64]]]:
    """Where random labels end that are exchanged under one M after the other: distinct ones, lowest value first."""
    from mtclust.core import compiled

    C, drawn, found = len(lower), set[bytes](), dict[bytes, tuple[float, NDArray[np.int64]]]()
    a, rest = code_scale(C)
    tolerances = [EXCHANGE_TOLERANCE * float(M.trace()) / len(M) for M in path]
    for _ in range(n_init):
        labels = random_labels(len(path[0]), lower, upper, rng)
        bits = rng.integers(2**63, size=1, dtype=np.uint64)
        key = partition_key(labels, C)
        if key in drawn:  # few rows have few labellings
            continue
        drawn.add(key)
        counts = np.bincount(labels, minlength=C)
        for M, tolerance in zip(path, tolerances):
            P = label_codes(labels, C).T @ M
            if C > 1:
                compiled.exchange(M, P, labels, counts, lower, upper, tolerance, bits)
        value = 0.5 * (a * float(P[labels, np.arange(len(labels))].sum()) - rest * float(P.sum()))
        found.setdefault(partition_key(labels, C), (value, labels))
    return sorted(found.values(), key=lambda item: item[0])


def partition_key(labels: NDArray[np.int64], n_clusters: int) -> bytes:
    """The same for labellings that differ only by the names of the clusters."""
    order = np.full(n_clusters, n_clusters)
    clusters, first = np.unique(labels, return_index=True)
    order[clusters[np.argsort(first)]] = np.arange(len(clusters))
    return order[labels].astype(np.int32).tobytes()
