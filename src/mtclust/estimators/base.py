r"""What the three estimators share: checking, preparing, storing, predicting.

All of them minimise, over the labels Y (one cluster per row, sizes within bounds), the models W and the coupling,

.. math:: J = \sum_c \Big[\frac{\lambda_1}{2}\|W_c\|^2 + \frac{\lambda_2}{2} R(W_c)\Big]
          + \sum_i \frac{1}{n_i} \sum_j \|\bar y_j - f(x_j)\|^2

with R(W_c) = tr(W_c Ω⁻¹ W_cᵀ) for DMTRC, tr(W_cᵀ D⁻¹ W_c) for DMTFC and ‖W_c‖² for DSTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, _fit_context, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mtclust._progress import told
from mtclust._threads import one_blas_thread
from mtclust._warnings import warn_user
from mtclust.alignment import ids_by_first_appearance, renamed_like
from mtclust.coupling import Coupling
from mtclust.distributed import is_dask
from mtclust.estimators.display import DisplayMixin
from mtclust.estimators.failure import unchanged_on_failure
from mtclust.estimators.forms import FORMS, is_large
from mtclust.estimators.new_tasks import NewTaskMixin
from mtclust.estimators.preparation import Prepared, clusters_per_task, given_lambda1, prepare
from mtclust.estimators.saving import SavingMixin
from mtclust.exceptions import NO_VARIATION, SmallTaskWarning
from mtclust.labels import label_codes
from mtclust.model import build_model
from mtclust.objective import loo_residuals, r_squared
from mtclust.selection.n_clusters import (
    CANDIDATES,
    no_more_than,
    select_n_clusters,
    warn_unless_supported,
    words_of_choice,
)
from mtclust.selection.sizes import choose_sizes
from mtclust.solvers.problem import Problem, SolverOptions, SolverResult
from mtclust.tasks import TaskIndex, codes_of_known_tasks, index_tasks
from mtclust.validation import read_rows

if TYPE_CHECKING:
    from mtclust.primal.solve import PrimalOptions, PrimalResult

Array = NDArray[np.float64]

#: options a user may set through ``solver_options``; the others have arguments of their own
_SOLVER_OPTIONS = ("single_task_n_init", "n_seeds")


class MultitaskClusterer(DisplayMixin, SavingMixin, NewTaskMixin, ClusterMixin, BaseEstimator):
    """Base of DMTRC, DMTFC and DSTC."""

    __metadata_request__fit: ClassVar = {"tasks": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), Mapping, StrOptions({"auto"}), range],
        "kernel": [StrOptions({"rbf", "linear", "precomputed"}), callable],
        "width": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "lambda1": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), Mapping],
        "lambda2": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "sizes": "no_validation",
        "solver": [StrOptions({"exchange", "cutting-plane"})],
        "solver_options": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "task_column": [str, Integral, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    # -- fitting -------------------------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_failure
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> Any:
        """Cluster the rows of all tasks.

        Parameters
        ----------
        X : array, CSR matrix, pandas or polars frame, Dask array or data frame of shape (n, d)
            The rows of all tasks, stacked in any order; columns are not rescaled. Rows of a Dask collection stay where
            they are, and ``labels_`` and ``single_task_labels_`` are Dask arrays. With ``kernel="precomputed"`` the
            kernel matrix of all rows, shape (n, n).
        y : ignored
        tasks : array of shape (n,), optional
            The task each row belongs to; one task by default.

        Returns
        -------
        self
        """
        if is_dask(X, tasks):
            from mtclust.distributed.fit import fit_distributed

            return fit_distributed(self, X, tasks)
        features, ids = read_rows(self, X, tasks, task_column=self.task_column, reset=True)
        index = index_tasks(ids, features.shape[0])
        options, form = self._read_solver_options(), self._read_form()
        large = is_large(self, form, features, index.n_tasks)
        with told(self):
            choice = self._choose_n_clusters(features, ids, index, large)
        clusters = clusters_per_task(self.n_clusters if choice is None else choice.n_clusters, index)
        self._check_clusters(index, clusters)
        self.n_clusters_ = int(clusters.max())
        rng = np.random.default_rng(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        with one_blas_thread(), told(self):
            if large:
                # imported where they are needed, here and below, so that "import mtclust" is quick
                from mtclust.estimators.large import fit_large
                from mtclust.estimators.sparse_text import fit_sparse_text, is_sparse_text

                if is_sparse_text(self, features):
                    fit_sparse_text(self, features, index, clusters, rng)
                else:
                    fit_large(self, features, index, clusters, given_lambda1(self.lambda1, index), rng)
                self.selection_ |= words_of_choice(choice)
                self._print_history()
                return self
            prepared = self._prepare(features, index, clusters, rng)
            prepared.selection.update(words_of_choice(choice))
            if self.solver == "cutting-plane":
                result = self._solve_relaxed(prepared, options, rng)
            else:
                prepared, result = self._solve(prepared, options, rng)
            self._store(prepared, result)
        return self

    def fit_predict(self, X: Any, y: Any = None, *, tasks: Any = None) -> NDArray[np.int64]:
        """Cluster the rows of all tasks and return ``labels_``."""
        return self.fit(X, tasks=tasks).labels_

    def _choose_n_clusters(self, features: Any, tasks: Any, index: TaskIndex, large: bool) -> Any:
        """The number of clusters where it is left open (on a sample of large data); None where it is given."""
        if not isinstance(self.n_clusters, str | range):
            return None
        if large:
            from mtclust.primal.settings import settings_sample

            sample = settings_sample(features, index, np.random.default_rng(0))
            features, tasks = sample.rows, sample.tasks[sample.index.codes]
        candidates = CANDIDATES if isinstance(self.n_clusters, str) else self.n_clusters
        choice = select_n_clusters(
            clone(self).set_params(task_column=None, **self._in_form_of(large)), features, tasks=tasks,
            candidates=no_more_than(candidates, features.shape[0]), random_state=self.random_state,
        )  # fmt: skip
        warn_unless_supported(choice)
        return choice

    def _solve(
        self, prepared: Prepared, options: SolverOptions, rng: np.random.Generator
    ) -> tuple[Prepared, SolverResult]:
        """Search with the sizes given, or choose them; then let the method judge what was found."""
        free = isinstance(self.sizes, str) and self.sizes == "auto" and self.n_clusters_ > 1
        if not (free and self.fit_intercept and prepared.centred.scale > 0):
            result = self._search(prepared, prepared.problem, options, rng)
            return prepared, self._judge(prepared, result, options, rng)
        choice = choose_sizes(
            prepared.problem, lambda problem: self._search(prepared, problem, options, rng), options, rng
        )
        prepared.selection["sizes"] = {
            "chosen": choice.chosen,
            "reason": choice.reason,
            "scores": choice.scores,
            "labels": {name: prepared.index.to_input_order(found) for name, found in choice.labels.items()},
        }
        prepared = replace(prepared, problem=choice.problem)
        return prepared, self._judge(prepared, choice.result, options, rng)

    def _search(
        self, prepared: Prepared, problem: Problem, options: SolverOptions, rng: np.random.Generator
    ) -> SolverResult:
        """The method's own search, for the size bounds of ``problem``."""
        raise NotImplementedError

    def _judge(
        self, prepared: Prepared, result: SolverResult, options: SolverOptions, rng: np.random.Generator
    ) -> SolverResult:
        return result

    def _solve_relaxed(self, prepared: Prepared, options: SolverOptions, rng: np.random.Generator) -> SolverResult:
        from mtclust.estimators.relaxed import solve_relaxed

        return solve_relaxed(prepared, self._coupling_of(prepared), self.solver_options, options, rng)

    def _coupling_of(self, prepared: Prepared) -> Coupling:
        """How the method couples the tasks."""
        raise NotImplementedError

    def _store_extra(self, prepared: Prepared, result: SolverResult) -> None:
        """Attributes of one method only."""

    def _lambda2_share(self, n_tasks: int) -> float:
        """Share of λ₂ that a task alone gets once from each of the m tasks; the ridge is λ₁ + m · share · λ₂."""
        return 1.0

    def _check_clusters(self, index: TaskIndex, clusters: NDArray[np.int64]) -> None:
        n = int(index.sizes.sum())
        if n < clusters.max():
            raise ValueError(
                f"n_samples={n} should be >= n_clusters={clusters.max()}; give more rows or fewer clusters."
            )
        if self.solver == "cutting-plane" and np.ptp(clusters) > 0:
            raise ValueError(
                f'solver="cutting-plane" needs the same number of clusters in all tasks; got n_clusters='
                f'{dict(self.n_clusters)}. Use solver="exchange".'
            )
        small = index.names[index.sizes < clusters]
        if len(small):
            warn_user(
                f"{len(small)} of {index.n_tasks} tasks have fewer rows than n_clusters={self.n_clusters} "
                f"(first: {small.tolist()[0]!r}); some of their clusters stay empty"
                + (", and a task of one row has no structure of its own." if self.fit_intercept else "."),
                SmallTaskWarning,
            )

    def _read_solver_options(self) -> SolverOptions:
        given = self._exchange_options(_SOLVER_OPTIONS)
        return SolverOptions(n_init=self.n_init, max_iter=self.max_iter, tol=self.tol, n_jobs=self.n_jobs, **given)

    def _read_form(self) -> str:
        """Which form of the problem to solve: "dual" (kernel matrices), "primal" (explicit features) or "auto"."""
        form = "auto" if self.solver == "cutting-plane" else (self.solver_options or {}).get("form", "auto")
        if form not in FORMS:
            raise ValueError(f'solver_options["form"]={form!r} is not known; allowed are {list(FORMS)}.')
        return form

    def _in_form_of(self, large: bool) -> dict[str, Any]:
        """Parameters that keep a copy of this estimator, fitted on a sample of large data, to the primal form."""
        return {"solver_options": {**(self.solver_options or {}), "form": "primal"}} if large else {}

    #: whether the tasks are coupled, if at all, by Ω: then no explicit features are needed
    _coupled_by_tasks = True

    def _primal_method(self, n_tasks: int) -> str:
        """How the primal form couples the tasks."""
        return "independent"

    def _primal_effort(self) -> dict[str, Any]:
        return {}

    def _judge_large(
        self, result: PrimalResult, index: TaskIndex, options: PrimalOptions, rng: np.random.Generator,
        selection: dict[str, Any],
    ) -> PrimalResult:  # fmt: skip
        return result

    def _store_coupling(self, Z: Array) -> None:
        """Attributes of one method that the coupling matrix Z gives."""

    def _exchange_options(self, known: tuple[str, ...]) -> dict[str, Any]:
        """What ``solver_options`` says to the exchange solver; the other solver's are only checked here."""
        if self.solver == "cutting-plane":
            from mtclust.solvers.relaxation import CuttingPlaneOptions

            CuttingPlaneOptions.from_dict(self.solver_options)
            return {}
        given = dict(self.solver_options or {})
        unknown = sorted(set(given) - {*known, "form"})
        if unknown:
            raise ValueError(f"solver_options has unknown keys {unknown}; allowed are {[*known, 'form']}.")
        given.pop("form", None)
        for key, value in given.items():
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"solver_options[{key!r}]={value!r} must be a whole number >= 1.")
        assert {field.name for field in fields(SolverOptions)} >= set(known)
        return given

    def _prepare(
        self, features: Any, index: TaskIndex, clusters: NDArray[np.int64], rng: np.random.Generator
    ) -> Prepared:
        prepared = prepare(self, features, index, clusters, rng)
        if prepared.centred.scale == 0:
            warn_user(
                NO_VARIATION,
                ConvergenceWarning,
            )
        return prepared

    def _store(self, prepared: Prepared, result: SolverResult) -> None:
        from mtclust.estimators.relaxed import store_relaxation

        index, problem = prepared.index, prepared.problem
        bounds = problem.bounds
        if result.model_codes is None and (bounds.interchangeable() or bounds.movable):
            result = _with_plain_ids(result, index, self.n_clusters_)
        if bounds.movable:
            bounds = bounds.fitted(result.labels, problem.offsets)
            problem = replace(problem, bounds=bounds)
            prepared = replace(prepared, problem=problem)
        codes = label_codes(result.labels, self.n_clusters_)
        predictors = result.state.predictors(codes if result.model_codes is None else result.model_codes)
        # the labels of the relaxation are the plain argmax of f, whatever the sizes
        present = bounds.present if result.model_codes is None else np.ones_like(bounds.present)
        model = build_model(prepared.kernel, prepared.rows, prepared.centred, predictors, index.order, present)
        residuals = loo_residuals(
            codes, result.state.alpha(codes), result.state.diagonal(), index.sizes, prepared.centred.centred
        )
        if not result.converged and result.model_codes is None:  # max_cuts is no shortcoming but part of the model
            warn_user(
                f"fit stopped after max_iter={self.max_iter} rounds with the objective at {result.objective:.6g} and "
                f"still falling by more than tol={self.tol:g} a round; raise max_iter or tol.",
                ConvergenceWarning,
            )
        self._prepared, self._model, self._result_labels = prepared, model, result.labels
        self._large = self._sample = None
        self.tasks_ = index.names
        self.labels_ = index.to_input_order(result.labels)
        self.single_task_labels_ = index.to_input_order(result.single_task_labels)
        self.cluster_sizes_ = np.stack(
            [np.bincount(result.labels[part], minlength=self.n_clusters_) for part in index.slices()]
        )
        self.objective_ = result.objective
        self.loo_score_ = r_squared(residuals, codes)
        self.intercept_ = model.intercept
        if prepared.kernel.kind == "linear":
            self.coef_ = model.coefficients
        elif hasattr(self, "coef_"):
            del self.coef_
        self.task_groups_ = [index.names[group].tolist() for group in result.groups]
        self.history_ = result.history
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.selection_ = prepared.selection | {"task_similarity": result.similarity}
        self._lambdas = problem.lambda1, problem.lambda2
        store_relaxation(self, index, result)
        self._store_extra(prepared, result)
        self._print_history()

    def _print_history(self) -> None:
        for entry in self.history_ if self.verbose else ():
            print(f"[{type(self).__name__}] {entry['stage']}, {entry['step']}: {entry['objective']:.6g}")

    # -- predicting ----------------------------------------------------------------------------------------------

    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """Scores f of every row for the clusters of its task, shape (n, C); −∞ for clusters the task does not have.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
            With ``kernel="precomputed"`` the kernel between these rows and the rows of ``fit``, shape (n, N).
        tasks : array of shape (n,) or a single id
            The task of each row; may be left out if the model has one task.
        """
        check_is_fitted(self, "labels_")
        if is_dask(X, tasks):
            from mtclust.distributed.fit import scores_distributed

            return scores_distributed(self, X, tasks)
        features, ids = read_rows(self, X, tasks, task_column=self.task_column, reset=False)
        codes = codes_of_known_tasks(ids, features.shape[0], self.tasks_)
        return self._model.scores(features, codes)

    def predict(self, X: Any, *, tasks: Any = None) -> NDArray[np.int64]:
        """Cluster of every row: the one with the highest score.

        On the rows of ``fit`` this may differ from ``labels_``, which also obey the cluster sizes. A cluster that a
        task does not have (``n_clusters`` by task, or a table of sizes with zeros) is never predicted there.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
        tasks : array of shape (n,) or a single id
            The task of each row; an id that was not in ``fit`` is an error (see :meth:`fit_task`).
        """
        return self.decision_function(X, tasks=tasks).argmax(axis=1)


def _with_plain_ids(result: SolverResult, index: TaskIndex, n_clusters: int) -> SolverResult:
    """Number the clusters as they appear in the input: which of many equal namings the search ends in is chance."""
    new_ids = ids_by_first_appearance(index.to_input_order(result.labels), n_clusters)
    labels = new_ids[result.labels]
    return replace(
        result, labels=labels, single_task_labels=renamed_like(result.single_task_labels, labels, n_clusters)
    )
