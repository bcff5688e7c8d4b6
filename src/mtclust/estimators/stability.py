"""``stability`` of the estimators: refits of a fitted model on subsamples, with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.choice import Question, labelling
from mtclust.choose.record import SizesChoice
from mtclust.choose.views import KernelSpec, View
from mtclust.core.known import placed
from mtclust.core.labels import parse_sizes, proportional, same_for_all_clusters
from mtclust.core.stability import Refit, Stability, compared, subsample
from mtclust.core.tasks import TaskIndex, index_tasks, numbers_of_known_tasks
from mtclust.core.validation import generator_of, read_rows
from mtclust.distributed import is_dask
from mtclust.estimators.mistakes import check_index
from mtclust.estimators.problems import clusters_per_task
from mtclust.search.common import rows_in_frame
from mtclust.search.problem import Method, Point, Problem
from mtclust.search.recipe import solve
from mtclust.util.messages import counted, reporting
from mtclust.util.system import one_blas_thread

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: rows that a refit sees at most
MOST_ROWS = 400
#: random starts of every task in a refit, and labellings that enter the coupled search
_STARTS, _N_INIT = 6, 1
#: below this share of the rows a refit also labels those that it has not seen
_SMALL_SHARE = 0.5


def refit_on_subsamples(model: Any, X: Any, tasks: Any, n_refits: int, share: float, random_state: Any) -> Stability:
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


class _Refitting:
    """Refits of one model."""

    def __init__(self, model: Any, rows: Any, index: TaskIndex, labels: Labels) -> None:
        self.model, self.index, self.labels = model, index, labels
        self.precomputed = model._model.kernel.kind == "precomputed"
        self.rows = rows if self.precomputed else rows[index.order]
        chosen = model.selection_
        kind = "rbf" if chosen.width is not None else chosen.kernel
        function = model._model.kernel.function if kind == "callable" else None
        self.spec = KernelSpec(kind, chosen.width, function)
        self.sizes = chosen.sizes.chosen if isinstance(chosen.sizes, SizesChoice) else "given"
        apart = chosen.coupling is not None and chosen.coupling.decision in ("none", 0)
        self.method: Method = "independent" if apart else model._method(index.n_tasks)
        own = chosen.coupling is not None and not apart and chosen.center == "task"
        self.covariance = model.task_covariance_ if own and index.n_tasks > 1 else None
        self.name = chosen.candidates[0].name if self.sizes == "free" and chosen.candidates else None
        options = model._read_search_options()
        self.options = replace(options, n_init=_N_INIT, single_task_n_init=_STARTS, n_seeds=1)

    def __call__(self, share: float, rng: np.random.Generator) -> Refit:
        strata = self.labels if self.sizes == "given" else None
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
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in tasks])
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
        lambda2 = chosen.lambda2 * model._lambda2_share(m) * m / len(tasks)
        rule = model.sizes if same_for_all_clusters(model.sizes) else "balanced"
        open_sizes = self.sizes != "given"
        method: Method = self.method if len(tasks) > 1 else "independent"
        self._question = Question(
            self._view(where, offsets), (self.spec,), clusters[tasks], method, rule, open_sizes,
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
