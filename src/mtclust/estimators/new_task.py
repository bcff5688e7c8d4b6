"""What a fit keeps for later tasks and for files, and clustering a task that was not in ``fit``: ``fit_task``.

With kernel matrices a fit keeps its rows, but no matrix between them; with explicit features moments and class vectors
(and the landmarks of Nyström features). A task that was not in the fit becomes the last of m + 1 tasks of a problem in
which only its labels may change; the enlarged (m+1)×(m+1) coupling is found by the same descent. λ₂ is scaled by
m/(m+1): with Ω shrunk by the same factor the models of the known tasks stay what they were, and the new task begins as
their equal.

Rows fewer than the features they have fit any labels, so that neither criterion can tell which are right. A task with
far fewer rows than the others borrows, where the rows of these are kept: its labels are predicted from theirs. In a
common frame the one model labels rows of any task, aligned with the others where those are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from sklearn.base import clone

from mtclust.choose.choice import NARROW_RIDGE
from mtclust.choose.views import is_wide
from mtclust.core import Array, Integers, Labels
from mtclust.core.assignment import assign
from mtclust.core.coupling import COUPLINGS, correlation
from mtclust.core.criterion import CRITERIA, indicators
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features
from mtclust.core.labels import SizeBounds, neutral_bounds, parse_sizes, same_for_all_clusters
from mtclust.core.model import CommonKept, DecisionModel, KernelOrigin, probabilities
from mtclust.core.order import content_order
from mtclust.core.tasks import even_positions
from mtclust.core.validation import generator_of, read_rows
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data, Moments
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows
from mtclust.search.problem import Method, Point, Problem, SearchOptions
from mtclust.search.recipe import first_relationship
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


#: a task is small if it has at most this share of the rows of the median task
SMALL_SHARE = 0.3


@dataclass(frozen=True)
class KernelKept:
    """Of a fit with kernel matrices: its rows and labels, sorted by task."""

    kernel: Kernel
    rows: Any  # None for a precomputed kernel (N × d)
    offsets: Integers  # (m + 1,)
    scale: float  # mean diagonal that the centred kernel was divided by
    centred: bool  # whether features were centred within tasks
    labels: Integers  # (N,)
    bounds: SizeBounds
    method: Method
    lambda1: Array  # (m,)
    lambda2: float
    rank: int | None = None  # of the features that D weighs
    centred_rows: bool = False  # whether the rows of every task have its mean taken off
    criterion: str = "J"  # a key of CRITERIA

    @classmethod
    def of(cls, problem: Problem, point: Point) -> KernelKept:
        assert problem.origin is not None
        origin, centred, features = problem.origin, problem.origin.centred, problem.features
        return cls(
            origin.kernel, None if origin.kernel.kind == "precomputed" else origin.rows, problem.offsets, centred.scale,
            centred.centred, point.labels, problem.bounds.fitted(point.fit.counts), problem.method,
            problem.lambda1, problem.lambda2, None if features is None else features.rank, origin.centres is not None,
            problem.criterion.name,
        )  # fmt: skip

    def beginning(
        self, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
    ) -> tuple[Problem, list[Labels], Labels]:
        """All tasks with the new one as the last, labels that this one can begin with, and those of the known rows.

        ``bounds`` are those of the new task.
        """
        if sp.issparse(self.rows):
            rows = sp.csr_matrix(rows)
        elif sp.issparse(rows):
            rows = rows.toarray()
        mean = rows.mean(axis=0, keepdims=True) if self.centred_rows else None
        both = [self.rows, rows if mean is None else rows - mean]
        everything: Any = sp.vstack(both, format="csr") if sp.issparse(rows) else np.concatenate(both)
        n, m = rows.shape[0], len(self.offsets) - 1
        offsets = np.append(self.offsets, self.offsets[-1] + n)
        raw = self.kernel(everything, everything)
        centred = centre_kernel(raw, offsets, self.centred, scale=self.scale)
        weight = self.lambda2 * m / (m + 1)
        features = None
        if COUPLINGS[self.method].of_features:
            features = eigen_features(centred.matrix, self.rank)
            weight *= features.rank / (self.rank or 1)
        lambda1 = np.append(self.lambda1, self.lambda1.mean())
        problem = Problem(
            centred.matrix, offsets, joined_bounds(self.bounds, bounds), lambda1, weight, self.method, features,
            CRITERIA[self.criterion](),
            origin=KernelOrigin(self.kernel, everything, centred, np.arange(len(raw)), last_centre(mean, m)),
        )  # fmt: skip
        alone = replace(problem.of_tasks(np.array([m])), method="independent", lambda2=m * self.lambda2)
        return problem, alone.starts(options, rng)[0], self.labels


def last_centre(mean: Array | None, n_known: int) -> Array | None:
    """What is taken off rows of the new task, the last; the known tasks are not asked about any more."""
    return None if mean is None else np.vstack([np.zeros((n_known, mean.shape[1])), mean])


def joined_bounds(known: SizeBounds, new: SizeBounds) -> SizeBounds:
    """Bounds of the known tasks and, last, of the new one."""
    lower, upper = np.vstack([known.lower, new.lower]), np.vstack([known.upper, new.upper])
    return SizeBounds(lower, upper, movable=known.movable and new.interchangeable())


@dataclass(frozen=True)
class FeatureKept:
    """Of a fit with explicit features: moments and class vectors of the tasks, and of the rows only landmarks."""

    features: FeatureMap
    moments: Moments
    b: Array  # 2Φ_iᵀY_i/n_i (m × r × C)
    counts: Integers  # cluster sizes (m × C)
    bounds: SizeBounds
    method: Method
    lambda1: Array  # (m,)
    lambda2: float
    centred: bool
    criterion: str = "J"  # a key of CRITERIA

    @classmethod
    def of(cls, problem: AllRows, point: Point) -> FeatureKept:
        assert problem.features is not None
        own = problem.data.moments
        return cls(
            problem.features, own, point.fit.b, point.fit.counts, problem.bounds, problem.method,
            problem.lambda1, problem.lambda2, not np.any(own.total), problem.criterion.name,
        )  # fmt: skip

    def beginning(
        self, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
    ) -> tuple[AllRows, list[Labels], Labels]:
        """As with kernel matrices; rows of the known tasks are gone, their labels are in the class vectors."""
        m, criterion = len(self.moments.sizes), CRITERIA[self.criterion]()
        mean = None if self.features.centres is None else rows.mean(axis=0, keepdims=True)
        table = self.features(rows if mean is None else rows - mean)
        source = TableRows(table, np.array([0, len(table)]))
        source = source.kept_near_zero() if self.centred else source
        new = source.moments(self.centred, self.moments.scale or None)
        ridge = self.lambda1.mean(keepdims=True), m * self.lambda2
        alone = AllRows(Data(source, new, bounds), "independent", *ridge, criterion=criterion)
        positions = [even_positions(len(table), 600)]  # of more rows so many are searched
        start = alone.starts(positions, options.starts, int(rng.integers(2**31)))[0]
        begun = alone.carried_labels(positions, start, np.ones((1, 1)))
        # rows of the known tasks are gone: they have none here
        offsets = np.append(np.zeros(m + 1, dtype=np.int64), len(table))
        shift = None if source.shift is None else np.vstack([np.zeros((m, source.n_features)), source.shift])
        data = Data(
            replace(source, offsets=offsets, shift=shift), self.moments.joined(new), joined_bounds(self.bounds, bounds)
        )
        problem = AllRows(
            data, self.method, np.append(self.lambda1, self.lambda1.mean()), self.lambda2 * m / (m + 1),
            replace(self.features, centres=last_centre(mean, m)), criterion, gone=(self.b, self.counts),
        )  # fmt: skip
        return problem, alone.labels_of(begun), np.empty(0, dtype=np.int64)


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
        Objective of all m + 1 tasks; NaN where they share a frame.

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

    labels_: Integers
    task_covariance_: Array | None
    task_correlation_: Array | None
    objective_: float
    _model: DecisionModel
    _reader: Any  # an estimator that was fitted on columns as those of the task

    def decision_function(self, X: Any) -> Array:
        """Scores of further rows of the new task, shape (n, C)."""
        rows, _ = read_rows(self._reader, X, None, reset=False)
        task = np.full(rows.shape[0], len(self._model.intercept) - 1)
        return self._model.scores(rows.astype(np.float64, copy=False), task)

    def predict(self, X: Any) -> Integers:
        """Clusters of further rows of the new task."""
        return np.argmax(self.decision_function(X), axis=1)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the clusters for further rows of the new task, shape (n, C).

        The temperature is that of the fitted model (:mod:`mtclust.core.model`).
        """
        return probabilities(self.decision_function(X), self._model.temperature)


def cluster_task(model: MultitaskClusterer, X: Any, sizes: Any) -> NewTask:
    """``fit_task`` of a fitted estimator; the new task is the last of its problem."""
    kept, params, temperature = model._kept, model._read_params(), model._model.temperature
    if model.kernel == "precomputed":
        raise ValueError(
            'fit_task needs the rows themselves; it cannot be used with kernel="precomputed". '
            'Fit with kernel="rbf", "linear" or a callable.'
        )
    reader: Any = clone(model).set_params(task_column=None)
    reader.n_features_in_ = d = model.n_features_in_ - (model.task_column is not None)
    if hasattr(model, "feature_names_in_"):
        reader.feature_names_in_ = model.feature_names_in_[model.feature_names_in_ != model.task_column]
    if np.shape(X)[1:] == (d + 1,):
        raise ValueError(f"X has {d + 1} features, not {d}. Leave the task column out: all rows are of the new task.")
    given: Any = read_rows(reader, X, None, reset=False)[0].astype(np.float64, copy=False)
    given = given.toarray() if sp.issparse(given) and not is_wide(given) else given
    n, m, C = given.shape[0], len(model.tasks_), model.n_clusters_
    if sizes is None:
        sizes = model.sizes if same_for_all_clusters(model.sizes) else "auto"
    sizes_open = isinstance(sizes, str) and sizes == "auto"  # then random_state has no effect, as in fit
    bounds = parse_sizes(sizes, [n], C)
    if isinstance(kept, CommonKept):
        present = kept.model.present if sizes_open else bounds.present
        decision = replace(kept.model_of_new_task(given), temperature=temperature, present=present)
        scores = decision.scores(given, np.zeros(n, dtype=np.int64))
        labels = scores.argmax(axis=1)
        if not sizes_open:
            labels = assign(np.where(present, -scores, 0.0), bounds.lower[0], bounds.upper[0])
        coupled = COUPLINGS[params.method_of(m + 1)].couples_labels
        covariance, row = (np.full((m + 1, m + 1), 1.0 / (m + 1)), np.ones(m + 1)) if coupled else (None, None)
        return NewTask(labels, covariance, row, float("nan"), decision, reader)
    if sizes_open and not CRITERIA[kept.criterion].exchanges:
        bounds = neutral_bounds(np.array([n]), np.array([C]))
    rng = np.random.default_rng(0) if sizes_open else generator_of(model.random_state)
    options = replace(params.options, n_jobs=None)
    order = content_order(given).of_rows(np.zeros(n, dtype=np.int64)) if params.by_rows else np.arange(n)
    with one_blas_thread():
        problem, starts, known = kept.beginning(given[order], bounds, options, rng)
        begun = problem.point(np.concatenate([known, starts[0]]), problem.coupling.uncoupled())
        begun, similarity = problem.matched(begun, m)
        Z = first_relationship(similarity) if problem.coupling.couples_labels else problem.coupling.uncoupled()
        if isinstance(problem, Problem):
            problem = replace(problem, proposed=[*([] for _ in range(m)), starts[: options.n_init]])
        point = problem.descend(problem.continued(begun, Z), rng, options.effort("new task", tasks=[m]))
        small = problem.coupling.couples_labels and n <= SMALL_SHARE * np.median(np.diff(problem.offsets))
        if small and isinstance(problem, Problem) and problem.kernel.diagonal().max() > 0:
            N = len(known)  # ridge regression on the other tasks
            z, system = indicators(known, C), problem.kernel[:N, :N] + 0.5 * N * NARROW_RIDGE * np.eye(N)
            mean = z.mean(axis=0)
            scores = problem.kernel[N:, :N] @ sla.solve(system, z - mean, assume_a="pos") + mean
            labels = assign(-scores, problem.bounds.lower[m], problem.bounds.upper[m])
            point = problem.point(np.concatenate([known, labels]), point.Z)
        covariance = point.Z if problem.coupling.couples_labels else None
        row = None if covariance is None else correlation(covariance)[-1]
        labels = problem.labels_of(point)[-1][np.argsort(order)]
        decision = replace(problem.decision(point), temperature=temperature)
        return NewTask(labels, covariance, row, point.value, decision, reader)
