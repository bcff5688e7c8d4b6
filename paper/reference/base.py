"""What the reference methods share: runs from random starts, the base estimator, and wrappers of other clusterers."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, MetaEstimatorMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval

from mtclust.core.tasks import TaskIndex, index_tasks
from mtclust.core.validation import read_rows


@dataclass(frozen=True)
class Run:
    """One run of an alternating method from one random start, on one task or on all of them.

    ``history`` has the objective at the start and after every step, so that its last entry is ``objective``;
    ``converged`` says whether the run stopped by itself, not by ``max_iter``.
    """

    labels: NDArray[np.int64]
    objective: float
    history: tuple[float, ...]
    n_iter: int
    converged: bool


def _side_by_side(runs: Sequence[Run]) -> Run:
    n_steps = max(len(run.history) for run in runs)
    # a task that stopped earlier stays where it is while the others go on
    padded = [run.history + run.history[-1:] * (n_steps - len(run.history)) for run in runs]
    return Run(
        labels=np.concatenate([run.labels for run in runs]),
        objective=float(sum(run.objective for run in runs)),
        history=tuple(float(sum(step)) for step in zip(*padded)),
        n_iter=max(run.n_iter for run in runs),
        converged=all(run.converged for run in runs),
    )


def fell_less_than(tol: float, before: Any, after: Any) -> Any:
    """Whether an objective fell by no more than ``tol`` times its size (elementwise for arrays)."""
    return before - after <= tol * np.abs(before)


@dataclass(eq=False, repr=False)
class TaskClusterer(ClusterMixin, BaseEstimator):
    """Base of the reference methods: parameters, checks, and the way from rows to fitted attributes.

    To add one: inherit, be a dataclass with a field and a line in ``_parameter_constraints`` per hyper-parameter, write
    ``_cluster``, and add it to the table in :mod:`paper.reference.registry`.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters in each task.
    n_init : int, default=10
        Number of random starts; the lowest objective is kept, task by task where tasks are clustered apart.
    max_iter : int, default=300
        Largest number of steps of one run.
    tol : float, default=0.0
        Stop when the objective falls by no more than this share; 0 means when nothing changes.
    random_state : int, RandomState or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row, in the order of the input. Unless a method says otherwise, ids of different tasks have
        nothing to do with each other.
    objective_ : float
        What the method minimises, summed over tasks.
    history_ : ndarray
        The objective at the start and after every step of the run that was kept.
    n_iter_ : int
        Steps of that run, the longest of them where every task has its own.
    tasks_ : ndarray of shape (m,)
        The task ids.
    restart_labels_, restart_objectives_ : ndarrays of shape (n_init, n) and (n_init,)
        The outcome of every single start.
    """

    # scikit-learn's metadata routing: fit asks for the task ids without the user calling set_fit_request
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"tasks": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 10
    max_iter: int = 300
    tol: float = 0.0
    random_state: Any = None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> TaskClusterer:
        """Cluster the rows of every task.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            The rows of all tasks, in any order.
        y : ignored
            For scikit-learn's pipelines.
        tasks : array-like of shape (n,), optional
            The task id of each row; without it all rows are one task.

        Returns
        -------
        self
        """
        X, tasks = read_rows(self, X, tasks, reset=True)
        index = index_tasks(tasks, X.shape[0])
        for name, size in zip(index.names.tolist(), index.sizes.tolist()):
            if size < self.n_clusters:
                where = f"task {name!r} has" if index.n_tasks > 1 else "X has"
                raise ValueError(
                    f"{where} n_samples={size}, fewer than n_clusters={self.n_clusters}; "
                    "every task needs a row per cluster."
                )
        parts = self._cluster(X[index.order], index, check_random_state(self.random_state))
        # the best of each part makes the sum of the objectives smallest
        best = _side_by_side([min(runs, key=lambda run: run.objective) for runs in parts])
        restarts = [_side_by_side(same_start) for same_start in zip(*parts)]
        self.tasks_ = index.names
        self.labels_ = index.to_input_order(best.labels)
        self.objective_ = best.objective
        self.history_ = np.array(best.history)
        self.n_iter_ = best.n_iter
        self.restart_labels_ = np.stack([index.to_input_order(run.labels) for run in restarts])
        self.restart_objectives_ = np.array([run.objective for run in restarts])
        if not best.converged:
            warnings.warn(
                f"{type(self).__name__} had not converged after max_iter={self.max_iter} steps; "
                f"raise max_iter or tol (now {self.tol}).",
                ConvergenceWarning,
                stacklevel=3,  # scikit-learn's check of parameters stands between
            )
        return self

    @abstractmethod
    def _cluster(self, X: Any, index: TaskIndex, rng: np.random.RandomState) -> list[list[Run]]:
        """Cluster rows that are sorted by task: a run per start, for all tasks together or for each by itself."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@dataclass(eq=False, repr=False)
class _Wrapper(MetaEstimatorMixin, ClusterMixin, BaseEstimator):
    """Any clusterer with ``fit_predict`` on the rows of each part of a table."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"tasks": True}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"estimator": [HasMethods(["fit_predict"])]}

    estimator: Any

    @abstractmethod
    def _parts(self, index: TaskIndex) -> dict[Any, slice]:
        """Name → rows, sorted by task, of what is clustered by itself."""

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> _Wrapper:
        """Fit copies of the clusterer; arguments as in :meth:`TaskClusterer.fit`, sparse rows only if it takes them."""
        sparse_allowed = get_tags(self.estimator).input_tags.sparse
        X, tasks = read_rows(self, X, tasks, reset=True, accept_sparse=sparse_allowed)
        index = index_tasks(tasks, X.shape[0])
        parts = self._parts(index)
        # as given if there is one part only: the labels are then those of the clusterer itself
        order = index.order if len(parts) > 1 else np.arange(X.shape[0])
        X = X[order]
        labels = np.empty(len(order), dtype=np.int64)
        self.tasks_ = index.names
        self.estimators_ = {}
        for name, part in parts.items():
            fitted = clone(self.estimator)
            try:
                labels[order[part]] = fitted.fit_predict(X[part])
            except ValueError as error:
                if len(parts) == 1:
                    raise
                raise ValueError(f"task {name!r} ({part.stop - part.start} rows): {error}") from error
            self.estimators_[name] = fitted
        self.labels_ = labels
        self.objective_ = float(sum(own_objective(fitted) for fitted in self.estimators_.values()))
        self.n_iter_ = max(int(getattr(fitted, "n_iter_", None) or 0) for fitted in self.estimators_.values())
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags


class PerTask(_Wrapper):
    """Cluster every task by itself with any scikit-learn clusterer.

    Number of clusters, seed, restarts and stopping rule are those of the wrapped clusterer
    (``estimator__n_clusters`` and so on in ``set_params``). Cluster ids of different tasks have nothing to do with
    each other.

    Parameters
    ----------
    estimator : clusterer with ``fit_predict``
        For example ``KMeans(5)`` or ``GaussianMixture(5)``; it is copied for every task.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of each row within its task, in the order of the input.
    objective_ : float
        Sum over tasks of what the clusterer minimises, see :func:`own_objective`.
    n_iter_ : int
        Largest number of steps of a task; 0 if the clusterer does not tell.
    estimators_ : dict
        Task id → the clusterer fitted on that task.
    tasks_ : ndarray of shape (m,)
        The task ids.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from paper.reference import PerTask
    >>> X = np.array([[0.0], [1.0], [5.0], [2.0], [8.0], [9.0]])
    >>> model = PerTask(KMeans(2, n_init=5, random_state=0)).fit(X, tasks=["a", "a", "a", "b", "b", "b"])
    >>> bool(model.labels_[0] == model.labels_[1]), bool(model.labels_[4] == model.labels_[5]), model.objective_
    (True, True, 1.0)
    """

    def _parts(self, index: TaskIndex) -> dict[Any, slice]:
        return dict(zip(index.names.tolist(), index.slices()))


class Pooled(_Wrapper):
    """Cluster the rows of all tasks as one table with any scikit-learn clusterer.

    ``tasks`` is accepted and checked like everywhere, but it does not influence the clusters, whose ids mean the same
    in every task. Number of clusters, seed, restarts and stopping rule are those of the wrapped clusterer.

    Parameters
    ----------
    estimator : clusterer with ``fit_predict``
        For example ``KMeans(5)`` or ``GaussianMixture(5)``.

    Attributes
    ----------
    labels_, objective_, n_iter_, tasks_
        As in :class:`PerTask`.
    estimators_ : dict
        ``"all"`` → the fitted copy.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from paper.reference import Pooled
    >>> X = np.array([[0.0], [1.0], [8.0], [0.5], [8.0], [9.0]])
    >>> labels = Pooled(KMeans(2, n_init=5, random_state=0)).fit_predict(X, tasks=["a", "a", "a", "b", "b", "b"])
    >>> bool(labels[0] == labels[3]), bool(labels[2] == labels[4])
    (True, True)
    """

    def _parts(self, index: TaskIndex) -> dict[Any, slice]:
        return {"all": slice(0, len(index.order))}


def own_objective(fitted: Any) -> float:
    """What a fitted clusterer has minimised.

    ``objective_`` of this package, ``inertia_`` of k-means and its relatives, minus ``lower_bound_`` (the mean log
    likelihood) of mixtures; nan for clusterers that report nothing.
    """
    for attribute, sign in (("objective_", 1), ("inertia_", 1), ("lower_bound_", -1)):
        if hasattr(fitted, attribute):
            return sign * float(getattr(fitted, attribute))
    return float("nan")
