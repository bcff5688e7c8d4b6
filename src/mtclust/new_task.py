"""Clustering a task that was not in ``fit``, with everything learned so far held fixed.

The new task's labels and the enlarged (m+1)×(m+1) coupling are found by the same descent, in which only the new task's
labels may change. λ₂ is scaled by m/(m+1): with Ω shrunk by the same factor the models of the known tasks stay what
they were, and the new task begins as their equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.alignment import align_task
from mtclust.coupling import Coupling, Independent, Relationship, SharedFeatures
from mtclust.features import CentredKernel, eigen_features
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.solvers.descent import Point, Search, descend, start
from mtclust.solvers.exchange import first_relationship
from mtclust.solvers.pool import Pool, task_pool
from mtclust.solvers.problem import SolverOptions

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NewTask:
    """A task clustered by ``fit_task``.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters of the new rows; ids mean what they mean in the fitted tasks.
    task_covariance_ : ndarray of shape (m + 1, m + 1) or None
        The enlarged Ω (DMTRC), the new task last.
    task_correlation_ : ndarray of shape (m + 1,) or None
        Correlation of the new task with every fitted task and, last, with itself.
    objective_ : float
        Objective of all m + 1 tasks.

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(3, separation=6.0, random_state=0).X_y_tasks
    >>> known = tasks < 2
    >>> model = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X[known], tasks=tasks[known])
    >>> new = model.fit_task(X[~known])
    >>> new.labels_.shape, new.task_covariance_.shape, new.predict(X[~known][:2]).shape
    ((90,), (3, 3), (2,))
    """

    labels_: NDArray[np.int64]
    task_covariance_: Array | None
    task_correlation_: Array | None
    objective_: float
    _model: DecisionModel
    _n_features: int

    def decision_function(self, X: Any) -> Array:
        """Scores of further rows of the new task, shape (n, C)."""
        from sklearn.utils.validation import check_array

        X = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
        if X.shape[1] != self._n_features:
            raise ValueError(f"X has {X.shape[1]} features, but this task was clustered with {self._n_features}.")
        task = np.full(X.shape[0], len(self._model.intercept) - 1)
        return self._model.scores(X, task)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Clusters of further rows of the new task."""
        return np.argmax(self.decision_function(X), axis=1)


def cluster_new_task(
    method: str,
    kernel: CentredKernel,
    known_labels: NDArray[np.int64],
    bounds: SizeBounds,
    lambda1: Array,
    lambda2: float,
    rank: int | None,
    options: SolverOptions,
    rng: np.random.Generator,
) -> Point:
    """Labels of the last task of ``kernel`` with those of the others fixed.

    ``lambda1``, ``lambda2`` and ``rank`` (of the features, DMTFC) are those of the fit on the first m tasks;
    ``method`` is "relationship", "features" or "independent".
    """
    offsets = kernel.offsets
    m = kernel.n_tasks - 1
    ridge = float(lambda1.mean() + m * lambda2)
    rows = slice(int(offsets[m]), int(offsets[m + 1]))
    pool = task_pool(
        kernel.matrix[rows, rows], ridge, bounds.lower[m], bounds.upper[m],
        options.single_task_n_init, int(rng.integers(2**63)),
    )  # fmt: skip
    labels, similarity = align_task(kernel.matrix, offsets, np.concatenate([known_labels, pool.labels[0]]), bounds, m)
    all_lambda1 = np.append(lambda1, lambda1.mean())
    shrunk = lambda2 * m / (m + 1)
    coupling: Coupling
    if method == "relationship":
        coupling = Relationship(kernel.matrix, offsets, all_lambda1, shrunk)
        Z = first_relationship(similarity)
    elif method == "features":
        features = eigen_features(kernel.matrix, rank)
        coupling = SharedFeatures(features, offsets, float(lambda1.mean()), shrunk * features.rank / (rank or 1))
        Z = coupling.uncoupled()
    else:
        coupling = Independent(kernel.matrix, offsets, all_lambda1 + m * lambda2)
        Z = coupling.uncoupled()
    empty = Pool([], np.array([]))
    own = Pool(pool.labels[: options.n_init], pool.objectives[: options.n_init])
    search = Search(coupling, bounds, [empty] * m + [own], options.max_iter, options.tol, active=[m])
    return descend(search, start(search, labels, Z), rng, "new task")
