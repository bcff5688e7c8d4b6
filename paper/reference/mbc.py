"""Multitask Bregman clustering with pairwise task regularisation (MBC-P): a reconstruction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import row_norms

from paper.reference.kernel_methods import Run, fell_less_than

#: the most sweeps of a run, and the share by which J must fall for another
MAX_STEPS, _TOLERANCE = 300, 1e-6


def mbc(
    X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState, *, strength: float
) -> list[list[Run]]:
    """Multitask Bregman clustering, pairwise (MBC-P of Zhang and Zhang 2011). **A reconstruction.**

    k-means in every task, with the centroids of each two tasks drawn towards each other through an optimal matching::

        J = (1/T) Σ_t (1/n_t) Σ_i |x_i − m_{h(i)}^t|² + λ/(T(T−1)) Σ_{t≠s} min_W Σ_kl w_kl |m_k^t − m_l^s|²

    h assigns rows to clusters, m are the centroids, W transports the uniform weights 1/C of one task's clusters to
    those of another; λ is ``strength``, 0 being k-means in every task. Rows, plans and centroids are optimised in turn;
    J never rises. Starts are those of k-means++; ids follow the matching with the first task.

    What is not known: only the abstract and later summaries were at hand. The original works with any Bregman
    divergence, here it is the squared Euclidean distance. Its marginals of W may be the cluster proportions; then J
    can rise in a whole sweep, hence the uniform ones. Its λ, starts and stopping rule are unknown.
    """
    tables = [X[part] for part in tasks]
    problem = CoupledCentroids(tables, n_clusters, strength)
    runs = []
    for _ in range(n_init):
        seeds = (kmeans_plusplus(table, n_clusters, random_state=rng)[0] for table in tables)
        runs.append(descend(problem, np.stack([rows.toarray() if sp.issparse(rows) else rows for rows in seeds])))
    return [runs]


@dataclass(frozen=True)
class CoupledCentroids:
    """The problem: the rows of each task, the number of clusters C and the strength λ."""

    tables: list[Any]
    n_clusters: int
    strength: float

    @property
    def pair_weight(self) -> float:
        """What multiplies Σ_k |m_k^t − m_{match(k)}^s|² of two tasks t < s: 2λ/(T(T−1)C); no pairs, no weight."""
        n_tasks = len(self.tables)
        return 2 * self.strength / (n_tasks * (n_tasks - 1) * self.n_clusters) if n_tasks > 1 else 0.0


#: how much a centroid clings to its place; only felt by one without rows, whose equations would be 0 = 0
_INERTIA = 1e-12

#: matching[t, s, k] is the cluster of task s that cluster k of task t is transported to
Matching = NDArray[np.int64]


def assign_rows(problem: CoupledCentroids, centroids: NDArray[np.float64]) -> tuple[list[NDArray[np.int64]], float]:
    """h: each row to the nearest centroid of its task; also the first term of J."""
    labels, loss = [], 0.0
    for table, own in zip(problem.tables, centroids):
        squared = row_norms(table, squared=True)[:, None] + row_norms(own, squared=True) - 2 * (table @ own.T)
        labels.append(squared.argmin(axis=1))
        loss += float(np.maximum(squared.min(axis=1), 0).mean()) / len(problem.tables)
    return labels, loss


def match_centroids(problem: CoupledCentroids, centroids: NDArray[np.float64]) -> tuple[Matching, float]:
    """W between each two tasks; also the second term of J.

    With uniform marginals the transport problem has a permutation (divided by C) among its solutions, so an assignment
    solves it exactly.
    """
    n_tasks = len(centroids)
    matching = np.tile(np.arange(problem.n_clusters), (n_tasks, n_tasks, 1))
    penalty = 0.0
    for t, s in combinations(range(n_tasks), 2):
        cost = cdist(centroids[t], centroids[s], "sqeuclidean")
        rows, columns = linear_sum_assignment(cost)
        matching[t, s, rows] = columns
        matching[s, t, columns] = rows
        penalty += problem.pair_weight * float(cost[rows, columns].sum())
    return matching, penalty


def move_centroids(
    problem: CoupledCentroids, centroids: NDArray[np.float64], labels: list[NDArray[np.int64]], matching: Matching
) -> NDArray[np.float64]:
    """Minimise J over all centroids at once, rows and plans fixed.

    The centroids satisfy the linear equations
    m_k^t = [Σ_{i∈k} x_i/(T n_t) + w Σ_s m_{match(k)}^s] / [n_k/(T n_t) + w (T−1)],  w = 2λ/(T(T−1)C).
    """
    n_tasks, n_clusters, n_features = centroids.shape
    weight = problem.pair_weight
    equations = np.zeros((n_tasks, n_clusters, n_tasks, n_clusters))
    right = np.empty_like(centroids)
    clusters = np.arange(n_clusters)
    for t, table in enumerate(problem.tables):
        share = 1 / (n_tasks * table.shape[0])
        members = np.eye(n_clusters)[labels[t]]
        right[t] = share * (members.T @ table) + _INERTIA * centroids[t]
        equations[t, clusters, t, clusters] = share * members.sum(axis=0) + weight * (n_tasks - 1) + _INERTIA
        for s in range(n_tasks):
            if s != t:
                equations[t, clusters, s, matching[t, s]] = -weight
    size = n_tasks * n_clusters
    moved = np.linalg.solve(equations.reshape(size, size), right.reshape(size, n_features))
    return np.asarray(moved).reshape(centroids.shape)


def descend(problem: CoupledCentroids, centroids: NDArray[np.float64]) -> Run:
    """Alternate from given centroids; clusters are named after their partners in the first task."""
    history: list[float] = []
    for _ in range(MAX_STEPS + 1):
        labels, loss = assign_rows(problem, centroids)
        matching, penalty = match_centroids(problem, centroids)
        history.append(loss + penalty)
        if history[1:] and fell_less_than(_TOLERANCE, history[-2], history[-1]):
            break
        centroids = move_centroids(problem, centroids, labels, matching)
    renamed = np.concatenate([names[own] for names, own in zip(matching[:, 0], labels)])
    return Run(renamed, tuple(history))
