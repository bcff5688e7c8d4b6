"""How far labels would stay the same with other rows: what refits on subsamples say.

Each refit sees some of the rows (and, of five tasks or more, some of the tasks), clusters them anew with the settings
of the fit, and is compared with it:

======== =============================================================================================================
rows     share of the refits that put a row in the cluster that it has, clusters matched by the rows they have in common
clusters mean Jaccard similarity of a cluster with its counterpart in a refit (Hennig, 2007)
overall  mean adjusted Rand index of refits and fit, within tasks: 1 for the same clusters, 0 for chance
======== =============================================================================================================

The best clusters of structureless rows reach .3 to .7 on halves of the rows; below .7 clusters are doubted. On a share
f of the rows figures vary as the delete-d jackknife says: their variance is f/(1 − f) times that over refits, so that
halves vary as much as the figures themselves. Intervals are two-sided, for 90 %, from a normal distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mtclust.choose.choice import Question, labelling
from mtclust.choose.settings import Input, all_rows, given_lambdas, question_of, rows_by_task
from mtclust.choose.views import KernelSpec, View
from mtclust.core.hints import placed
from mtclust.core.labels import (
    counts_by_task,
    parse_sizes,
    proportional,
    rows_of_tasks,
    same_for_all_clusters,
    tasks_of_rows,
)
from mtclust.core.tasks import TaskIndex, index_tasks, numbers_of_known_tasks
from mtclust.core.validation import generator_of, read_rows
from mtclust.distributed import is_dask
from mtclust.estimators.mistakes import check_index
from mtclust.estimators.problems import clusters_per_task
from mtclust.estimators.storing import correlation
from mtclust.search.new_task import rows_in_frame
from mtclust.search.problem import Method, Point, Problem
from mtclust.search.recipe import solve
from mtclust.util.messages import counted, reporting
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: half of a 90 % interval, in standard deviations
_REACH = 1.6449
#: agreement below which clusters are not to be trusted
DOUBTFUL = 0.7
#: with this many tasks or more a refit leaves some out, and keeps this share
_FEW_TASKS = 5
_TASKS_KEPT = 0.8
#: rows of a task that a refit keeps at least, per cluster
_ROWS_PER_CLUSTER = 2
#: rows that a refit sees at most
MOST_ROWS = 400
#: random starts of every task in a refit, and labellings that enter the coupled search
_STARTS, _N_INIT = 6, 1
#: below this share of the rows a refit also labels those that it has not seen
_SMALL_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class Stability:
    """What refits on subsamples say of a fitted model.

    Attributes
    ----------
    overall : float
        Mean adjusted Rand index of refits and fit, within tasks.
    rows : ndarray of shape (n,)
        Share of the refits that put a row in its cluster; NaN for a row that no refit has seen.
    clusters : ndarray of shape (C,)
        Mean Jaccard similarity with the counterparts in refits.
    shares : ndarray of shape (m, C, 2)
        Intervals for the share of every cluster in every task.
    task_correlation : ndarray of shape (m, m, 2) or None
        Intervals for ``task_correlation_``.
    task_covariance : ndarray of shape (m, m, 2) or None
        Intervals for Ω.
    n_refits : int
    share : float
        Of the rows that a refit saw.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DSTC
    >>> X, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> print(DSTC(3, random_state=0).fit(X).stability(X))
    Clusters found in 10 samples of 50 % of the rows agree with these to 1.00 (1: the same clusters, 0: chance).
    """

    overall: float
    rows: Array
    clusters: Array
    shares: Array
    task_correlation: Array | None
    task_covariance: Array | None
    n_refits: int
    share: float

    def __str__(self) -> str:
        return (
            f"Clusters found in {self.n_refits} samples of {100 * self.share:.0f} % of the rows agree with these to "
            f"{self.overall:.2f} (1: the same clusters, 0: chance)."
        )

    __repr__ = __str__


@dataclass(frozen=True)
class Refit:
    """Labels of some rows by a refit.

    Attributes
    ----------
    rows : ndarray of shape (k,)
        Which of the rows sorted by task.
    labels : ndarray of shape (k,)
    tasks : ndarray of int
        Which tasks it saw.
    covariance : ndarray or None
        Ω of these tasks.
    """

    rows: Labels
    labels: Labels
    tasks: Labels
    covariance: Array | None = None


def subsample(
    offsets: NDArray[np.int64], share: float, n_clusters: int, rng: np.random.Generator, strata: Labels | None = None
) -> tuple[Labels, Labels]:
    """Tasks and rows (sorted by task) of one refit: of every task this share, but no fewer than it needs.

    With ``strata`` the same share of each of them: sizes that are given would not fit other samples.
    """
    m = len(offsets) - 1
    tasks = np.arange(m)
    if m >= _FEW_TASKS:
        tasks = np.sort(rng.choice(m, max(2, int(np.ceil(_TASKS_KEPT * m))), replace=False))
    parts = []
    for i in tasks:
        n = int(offsets[i + 1] - offsets[i])
        k = min(n, max(round(share * n), _ROWS_PER_CLUSTER * n_clusters))
        order = rng.permutation(n)
        if strata is not None:  # rows of every cluster in turn, as many of each as it has
            own = strata[offsets[i] : offsets[i + 1]][order]
            place = np.array([np.count_nonzero(own[:j] == own[j]) for j in range(n)]) + rng.random(n)
            order = order[np.argsort(place / np.bincount(own, minlength=n_clusters)[own], kind="stable")]
        parts.append(offsets[i] + np.sort(order[:k]))
    return tasks, np.concatenate(parts).astype(np.int64)


def compared(
    labels: Labels, offsets: NDArray[np.int64], n_clusters: int, refits: list[Refit], share: float,
    covariance: Array | None,
) -> Stability:  # fmt: skip
    """What refits say of labels (sorted by task) and of Ω."""
    n, m, C = len(labels), len(offsets) - 1, n_clusters
    task_of = tasks_of_rows(offsets)
    agreed, seen = np.zeros(n), np.zeros(n)
    jaccards, rand = np.full((len(refits), C), np.nan), []
    shares = np.full((len(refits), m, C), np.nan)
    covariances = np.full((len(refits), m, m), np.nan)
    for k, refit in enumerate(refits):
        own = labels[refit.rows]
        pairs = np.zeros((C, C))
        np.add.at(pairs, (refit.labels, own), 1.0)
        found, names = linear_sum_assignment(-pairs)
        renamed = np.empty(C, dtype=np.int64)
        renamed[found] = names
        seen[refit.rows] += 1
        agreed[refit.rows] += renamed[refit.labels] == own
        union = pairs.sum(axis=1)[:, None] + pairs.sum(axis=0) - pairs
        similarity = np.divide(pairs, union, out=np.zeros_like(pairs), where=union > 0)
        jaccards[k] = np.where(pairs.sum(axis=0) > 0, similarity.max(axis=0), np.nan)
        by_task = [task_of[refit.rows] == i for i in refit.tasks]
        rand.append(np.mean([adjusted_rand_score(own[mine], refit.labels[mine]) for mine in by_task]))
        for i, mine in zip(refit.tasks, by_task):
            counts = np.bincount(renamed[refit.labels[mine]], minlength=C)
            shares[k, i] = counts / counts.sum()
        if refit.covariance is not None and covariance is not None:
            part = np.ix_(refit.tasks, refit.tasks)
            covariances[k][part] = refit.covariance * np.trace(covariance[part]) / np.trace(refit.covariance)
    sizes = counts_by_task(labels, offsets, C)
    factor = np.sqrt(share / (1.0 - share)) if share < 1 else 1.0
    with np.errstate(invalid="ignore"):
        return Stability(
            float(np.mean(rand)),
            np.divide(agreed, seen, out=np.full(n, np.nan), where=seen > 0),
            _mean(jaccards),
            np.clip(_interval(sizes / sizes.sum(axis=1, keepdims=True), shares, factor), 0.0, 1.0),
            None
            if covariance is None
            else np.clip(_interval(correlation(covariance), correlation(covariances), factor), -1, 1),
            None if covariance is None else _interval(covariance, covariances, factor),
            len(refits),
            share,
        )


def _mean(values: Array) -> Array:
    """Mean over refits of what is known; NaN where nothing is."""
    known = np.count_nonzero(~np.isnan(values), axis=0)
    return np.divide(np.nansum(values, axis=0), known, out=np.full(known.shape, np.nan), where=known > 0)


def _interval(estimate: Array, values: Array, factor: float) -> Array:
    """Around the estimate, as wide as refits vary; last axis low and high."""
    deviation = np.sqrt(_mean((values - _mean(values)) ** 2))
    reach = _REACH * factor * np.nan_to_num(deviation)
    return np.stack([estimate - reach, estimate + reach], axis=-1)


def refit_on_subsamples(
    model: AfterFit, X: Any, tasks: Any, n_refits: int, share: float, random_state: Any
) -> Stability:
    """``stability`` of a fitted estimator."""
    if is_dask(X, tasks):
        raise TypeError("stability needs rows in memory, but X or tasks is a Dask collection; give some computed.")
    if model.solver == "cutting-plane":
        raise ValueError('stability needs solver="exchange"; what cutting planes return depends on their start.')
    if n_refits < 2 or not 0 < share < 1:
        raise ValueError(
            f"n_refits={n_refits!r} and share={share!r}: there must be two refits at least, and a share between 0 "
            "and 1."
        )
    check_index(X, tasks, "tasks")
    rows, ids = read_rows(model, X, tasks, task_column=model.task_column, reset=False)
    if rows.shape[0] != len(model.labels_):
        raise ValueError(
            f"X has {rows.shape[0]} rows, but the model was fitted on {len(model.labels_)}; stability needs the "
            "rows of fit, in the same order."
        )
    numbers = numbers_of_known_tasks(ids, rows.shape[0], model.tasks_)
    index = index_tasks(numbers, rows.shape[0])
    rng = generator_of(random_state)
    share = min(share, MOST_ROWS / rows.shape[0])
    labels, rows = np.asarray(model.labels_)[index.order], rows_in_frame(model._kept, rows, numbers)
    with one_blas_thread(), reporting(model):
        refitting = _Refitting(model, rows, index, labels)
        refits = [refitting(share, rng) for _ in counted(range(n_refits), "stability: refit", n_refits)]
    covariance = refitting.covariance
    found = compared(labels, index.offsets, model.n_clusters_, refits, share, covariance)
    return replace(found, rows=index.to_input_order(found.rows))


def searched_anew(model: AfterFit, X: Array, tasks: Any) -> Labels:
    """What the method, or with sizes given the kernel, that a model was chosen with finds in other rows or columns."""
    chosen, params = model.selection_, model._read_params()
    number = model.n_clusters if isinstance(model.n_clusters, Mapping) else model.n_clusters_
    if not (params.sizes_open and chosen.candidates):
        anew = clone(model).set_params(n_clusters=number)
        if chosen.candidates:
            anew.set_params(kernel="rbf" if chosen.width else chosen.kernel, width=chosen.width or "auto")
        return anew.fit(X, tasks=tasks).labels_
    name = chosen.candidates[0].name
    index = rows_by_task(params, X, index_tasks(tasks, len(X)))
    read = Input(X, index, clusters_per_task(number, index))
    question = question_of(params, read, all_rows(X, index), given_lambdas(params, index))
    if not name.endswith(":em"):  # which begins in all frames
        question = replace(question, frames=("task",))
    question, places = question.of_tasks(np.arange(index.n_tasks) if index.by_rows is None else index.by_rows)
    labels = np.empty(len(X), dtype=np.int64)
    with one_blas_thread():
        labels[places] = labelling(question, name, params.options)
    return index.to_input_order(labels)


class _Refitting:
    """Refits of one model."""

    def __init__(self, model: AfterFit, rows: Any, index: TaskIndex, labels: Labels) -> None:
        self.model, self.index, self.labels = model, index, labels
        self.precomputed = model._model.kernel.kind == "precomputed"
        self.rows = rows if self.precomputed else rows[index.order]
        chosen = model.selection_
        kind = "rbf" if chosen.width is not None else chosen.kernel
        function = model._model.kernel.function if kind == "callable" else None
        self.spec = KernelSpec(kind, chosen.width, function)
        apart = chosen.coupling is not None and chosen.coupling.decision in ("none", 0)
        self.params = model._read_params()
        self.method: Method = "independent" if apart else self.params.method_of(index.n_tasks)
        own = chosen.coupling is not None and not apart and chosen.center == "task"
        self.covariance = model.task_covariance_ if own and index.n_tasks > 1 else None
        free = getattr(chosen.sizes, "chosen", None) == "free"  # not in models of earlier versions
        self.name = chosen.candidates[0].name if free and chosen.candidates else None
        self.options = replace(self.params.options, n_init=_N_INIT, single_task_n_init=_STARTS, n_seeds=1)

    def __call__(self, share: float, rng: np.random.Generator) -> Refit:
        strata = None if self.params.sizes_open else self.labels
        tasks, where = subsample(self.index.offsets, share, self.model.n_clusters_, rng, strata)
        offsets = np.searchsorted(where, np.append(self.index.offsets[tasks], self.index.offsets[-1]))
        common = self.model.selection_.center != "task"
        problem = self._common(where) if common else self._own(tasks, where, offsets)
        found, ends = self._searched(problem, rng)
        ends.append(self._warm(found, ends[0].Z, self.labels[where], tasks, rng))
        best = min(ends, key=lambda end: end.value)
        covariance = best.Z if self.covariance is not None else None
        labels = np.asarray(best.labels, dtype=np.int64)
        if share < _SMALL_SHARE and not self.precomputed:
            where, labels = self._predicted(found, best, tasks, where, labels, common)
        return Refit(where, labels, tasks, covariance)

    def _warm(self, problem: Problem, Z: Array, labels: Labels, tasks: Labels, rng: np.random.Generator) -> Point:
        """Where labels of the fit end on these rows."""
        bounds = problem.bounds.fitted(labels, problem.offsets)
        parts = enumerate(zip(problem.offsets[:-1], problem.offsets[1:]))
        none = np.full(len(labels), -1)
        begun = np.concatenate(
            [placed(labels[a:b], none[a:b], bounds.lower[i], bounds.upper[i]) for i, (a, b) in parts]
        )
        if self.covariance is not None:
            Z = self.covariance[np.ix_(tasks, tasks)]
            Z = Z / np.trace(Z)
        return problem.descend(problem.point(begun, Z), rng, self.options.effort("warm", last=True))

    def _predicted(
        self, problem: Problem, point: Point, tasks: Labels, where: Labels, labels: Labels, common: bool
    ) -> tuple[Labels, Labels]:
        """All rows of the tasks, those that the refit did not see by its model."""
        offsets = self.index.offsets
        rows = rows_of_tasks(offsets, tasks)
        numbers = np.repeat(np.arange(len(tasks)), np.diff(offsets)[tasks])
        scores = problem.decision(point).scores(self.rows[rows], np.zeros_like(numbers) if common else numbers)
        found = scores.argmax(axis=1)
        found[np.searchsorted(rows, where)] = labels
        return rows, found

    def _searched(self, problem: Problem, rng: np.random.Generator) -> tuple[Any, list[Point]]:
        """The problem, and where a search like that of the fit ends: the method that found its labels, or J anew."""
        if self.name is not None:
            return problem, [problem.point(labelling(self._question, self.name, self.options), problem.uncoupled())]
        outcome = solve(problem, self.options, rng)
        found: Any = outcome.problem
        return found, [found.point(np.asarray(outcome.point.labels, dtype=np.int64), outcome.point.Z)]

    def _own(self, tasks: Labels, where: Labels, offsets: NDArray[np.int64]) -> Problem:
        """The problem of some rows, every task in its own frame."""
        model, chosen, m = self.model, self.model.selection_, self.index.n_tasks
        number = model.n_clusters if isinstance(model.n_clusters, Mapping) else model.n_clusters_
        names = replace(self.index, names=model.tasks_)
        clusters = clusters_per_task(number, names)
        first = chosen.lambda1
        lambda1 = np.array(
            [first[name] for name in model.tasks_.tolist()] if isinstance(first, Mapping) else [first] * m
        )
        lambda2 = chosen.lambda2 * self.params.lambda2_share(m) * m / len(tasks)
        rule = model.sizes if same_for_all_clusters(model.sizes) else "balanced"
        method: Method = self.method if len(tasks) > 1 else "independent"
        self._question = Question(
            self._view(where, offsets), (self.spec,), clusters[tasks], method, rule, self.params.sizes_open,
            (lambda1[tasks], lambda2), ("task",), model.n_components, model.tasks_[tasks],
        )  # fmt: skip
        problem = self._question.problem(self.spec, chosen.criterion)
        if same_for_all_clusters(model.sizes):
            return problem
        table = parse_sizes(model.sizes, self.index.sizes, clusters, model.tasks_).restrict(tasks)
        return problem.with_bounds(proportional(table, self.index.sizes[tasks], np.diff(offsets)))

    def _common(self, where: Labels) -> Problem:
        """The problem of some rows as one task, in the frame common to all."""
        chosen = self.model.selection_
        first = np.mean(list(chosen.lambda1.values()) if isinstance(chosen.lambda1, Mapping) else chosen.lambda1)
        self._question = Question(
            self._view(where, np.array([0, len(where)])), (self.spec,), np.array([self.model.n_clusters_]),
            "independent", lambdas=(np.array([first]), chosen.lambda2), frames=("all",),
        )  # fmt: skip
        return self._question.problem(self.spec, chosen.criterion)

    def _view(self, where: Labels, offsets: NDArray[np.int64]) -> View:
        if self.precomputed:
            rows = self.index.order[where]
            part = self.rows[np.ix_(rows, rows)]
            return View(part, offsets, None, self.model.fit_intercept)
        part = self.rows[where]
        part = part.astype(np.float64) if part.dtype != np.float64 else part
        return View(part, offsets, None, self.model.fit_intercept)
