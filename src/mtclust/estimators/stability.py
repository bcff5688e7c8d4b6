"""``stability`` of the estimators: refits of a fitted model on subsamples, with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mtclust._progress import counted, reporting
from mtclust._threads import one_blas_thread
from mtclust.choose.candidates import Question, constant_lambdas, own_frame_problem
from mtclust.choose.record import SizesChoice
from mtclust.choose.views import KernelSpec, View
from mtclust.distributed import is_dask
from mtclust.estimators.mistakes import check_index
from mtclust.estimators.problems import clusters_per_task
from mtclust.known import placed
from mtclust.labels import neutral_bounds, parse_sizes, proportional, same_for_all_clusters
from mtclust.problem.kernels import KernelOrigin, KernelProblem
from mtclust.problem.predictability import criterion_named
from mtclust.problem.protocol import Method, Point, Start
from mtclust.search.recipe import solve
from mtclust.search.variants import released
from mtclust.stability import Refit, Stability, compared, subsample
from mtclust.tasks import TaskIndex, index_tasks, numbers_of_known_tasks
from mtclust.validation import read_rows

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: rows that a refit sees at most
MOST_ROWS = 400
#: random starts of every task in a refit, and labellings that enter the coupled search
_STARTS, _N_INIT = 6, 1
#: below this share of the rows a refit also labels those that it has not seen
_SMALL_SHARE = 0.5


class StabilityMixin:
    """``stability`` of the estimators."""

    tasks_: NDArray[Any]
    labels_: NDArray[np.int64]
    n_clusters_: int
    selection_: Any
    solver: str
    task_column: Any
    _model: Any

    def stability(
        self, X: Any, *, tasks: Any = None, n_refits: int = 10, share: float = 0.5, random_state: Any = 0
    ) -> Stability:
        """Cluster subsamples of the rows of ``fit`` anew and see what stays the same; sets ``stability_``.

        A refit keeps the settings of the fit (kernel, λ, criterion, frame, coupling), and searches both from new random
        starts and from the labels of the fit: whichever is better by the criterion counts. All refits together take
        about as long as a fit that chose its settings.

        Parameters
        ----------
        X, tasks
            The rows of ``fit`` and their tasks, in the same order.
        n_refits : int, default=10
        share : float, default=0.5
            Of the rows of every task that a refit sees; of more than 800 rows, as many as make 400.
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        Stability
            Also kept as ``stability_``: ``overall``, by row, by cluster, and intervals for the shares of clusters and
            for Ω (:mod:`mtclust.stability`).

        Examples
        --------
        >>> import numpy as np
        >>> from mtclust import DSTC
        >>> X = np.r_[np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).normal(9, size=(40, 2))]
        >>> model = DSTC(2, random_state=0).fit(X)
        >>> model.stability(X).clusters.round(2).tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self, "labels_")
        if is_dask(X, tasks):
            raise TypeError("stability needs rows in memory, but X or tasks is a Dask collection; give some computed.")
        if self.solver == "cutting-plane":
            raise ValueError('stability needs solver="exchange"; what cutting planes return depends on their start.')
        if n_refits < 2 or not 0 < share < 1:
            raise ValueError(
                f"n_refits={n_refits!r} and share={share!r}: there must be two refits at least, and a share between 0 "
                "and 1."
            )
        check_index(X, tasks, "tasks")
        rows, ids = read_rows(self, X, tasks, task_column=self.task_column, reset=False)
        if rows.shape[0] != len(self.labels_):
            raise ValueError(
                f"X has {rows.shape[0]} rows, but the model was fitted on {len(self.labels_)}; stability needs the "
                "rows of fit, in the same order."
            )
        codes = numbers_of_known_tasks(ids, rows.shape[0], self.tasks_)
        index = index_tasks(codes, rows.shape[0])
        rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        share = min(share, MOST_ROWS / rows.shape[0])
        with one_blas_thread(), reporting(self):
            refitting = _Refitting(self, rows, index)
            refits = [refitting(share, rng) for _ in counted(range(n_refits), "stability: refit", n_refits)]
        labels = np.asarray(self.labels_)[index.order]
        covariance = refitting.covariance
        found = compared(labels, index.offsets, self.n_clusters_, refits, share, covariance)
        self.stability_ = replace(found, rows=index.to_input_order(found.rows))
        return self.stability_


class _Refitting:
    """Refits of one model."""

    def __init__(self, model: Any, rows: Any, index: TaskIndex) -> None:
        self.model, self.index = model, index
        self.precomputed = model._model.kernel.kind == "precomputed"
        self.rows = rows if self.precomputed else rows[index.order]
        chosen = model.selection_
        kind = "rbf" if chosen.width is not None else chosen.kernel
        function = model._model.kernel.function if kind == "callable" else None
        self.spec = KernelSpec(kind, chosen.width, function)
        self.sizes = chosen.sizes.chosen if isinstance(chosen.sizes, SizesChoice) else "given"
        self.labels = np.asarray(model.labels_)[index.order]
        apart = chosen.coupling is not None and chosen.coupling.decision in ("none", 0)
        self.method: Method = "independent" if apart else model._method(index.n_tasks)
        own = chosen.coupling is not None and not apart and chosen.center == "task"
        self.covariance = model.task_covariance_ if own and index.n_tasks > 1 else None
        self.from_mixture = "from a Gaussian mixture" in (chosen.reason or "").split(":")[0]
        options = model._read_search_options()
        self.options = replace(options, n_init=_N_INIT, single_task_n_init=_STARTS, n_seeds=1)

    def __call__(self, share: float, rng: np.random.Generator) -> Refit:
        strata = self.labels if self.sizes == "given" else None
        tasks, where = subsample(self.index.offsets, share, self.model.n_clusters_, rng, strata)
        offsets = np.searchsorted(where, np.append(self.index.offsets[tasks], self.index.offsets[-1]))
        common = self.model.selection_.center == "all"
        problem = self._common(where) if common else self._own(tasks, where, offsets)
        starts = None if common else self._mixture_starts(problem)
        outcome = solve(problem, self.options, rng, starts)
        if self.sizes == "released":
            outcome = released(outcome, self.options, rng)
        found: Any = outcome.problem
        ends = [found.point(np.asarray(outcome.point.labels, dtype=np.int64), outcome.point.Z)]
        ends.append(self._warm(found, outcome.point.Z, self.labels[where], tasks, rng))
        best = min(ends, key=lambda end: end.value)
        covariance = best.Z if self.covariance is not None else None
        labels = np.asarray(best.labels, dtype=np.int64)
        if share < _SMALL_SHARE and not self.precomputed:
            where, labels = self._predicted(found, best, tasks, where, labels, common)
        return Refit(where, labels, tasks, covariance)

    def _warm(self, problem: KernelProblem, Z: Array, labels: Labels, tasks: Labels, rng: np.random.Generator) -> Point:
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
        self, problem: KernelProblem, point: Point, tasks: Labels, where: Labels, labels: Labels, common: bool
    ) -> tuple[Labels, Labels]:
        """All rows of the tasks, those that the refit did not see by its model."""
        offsets = self.index.offsets
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in tasks])
        codes = np.repeat(np.arange(len(tasks)), np.diff(offsets)[tasks])
        scores = problem.decision(point).scores(self.rows[rows], np.zeros_like(codes) if common else codes)
        found = scores.argmax(axis=1)
        found[np.searchsorted(rows, where)] = labels
        return rows, found

    def _mixture_starts(self, problem: KernelProblem) -> list[list[Start]] | None:
        """Where the clusters of the fit began with those of a Gaussian mixture, a mixture of these rows."""
        if not self.from_mixture:
            return None
        labels = self._question.mixture()
        if labels is None:
            return None
        alone = problem.alone()
        begun = alone.point(labels, alone.uncoupled())
        point = alone.descend(begun, np.random.default_rng(0), self.options.effort("from a Gaussian mixture"))
        return [[start] for start in alone.starts_of(point)]

    def _own(self, tasks: Labels, where: Labels, offsets: NDArray[np.int64]) -> KernelProblem:
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
        self._question = question = Question(
            self._view(where, offsets), (self.spec,), None, clusters[tasks],  # type: ignore[arg-type]
            method, rule, (lambda1[tasks], lambda2), ("task",),
            model.n_components, (chosen.criterion,), open_sizes, model.tasks_[tasks],
        )  # fmt: skip
        problem = own_frame_problem(question, self.spec, chosen.criterion)
        if same_for_all_clusters(model.sizes):
            return problem
        table = parse_sizes(model.sizes, self.index.sizes, clusters, model.tasks_).restrict(tasks)
        return problem.with_bounds(proportional(table, self.index.sizes[tasks], np.diff(offsets)))

    def _common(self, where: Labels) -> KernelProblem:
        """The problem of some rows as one task in the frame common to all."""
        view = self._view(where, np.array([0, len(where)]))
        seen = view.through(self.spec, "all")
        bounds = neutral_bounds(np.array([len(where)]), np.array([self.model.n_clusters_]))
        lambda1, lambda2 = constant_lambdas(1, self.spec, "E")
        return KernelProblem(
            seen.centred.matrix, np.array([0, len(where)]), bounds, lambda1, lambda2, "independent",
            criterion=criterion_named("E"),
            origin=KernelOrigin(seen.kernel, seen.rows, seen.centred, np.arange(len(where)), seen.centres),
        )  # fmt: skip

    def _view(self, where: Labels, offsets: NDArray[np.int64]) -> View:
        if self.precomputed:
            rows = self.index.order[where]
            part = self.rows[np.ix_(rows, rows)]
            return View(part, offsets, None, self.model.fit_intercept)
        part = self.rows[where]
        part = part.astype(np.float64) if part.dtype != np.float64 else part
        return View(part, offsets, None, self.model.fit_intercept)
