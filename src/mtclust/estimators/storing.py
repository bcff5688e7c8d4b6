"""From the outcome of a search to the attributes of a fitted estimator, and what it keeps for later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.choose.record import Record
from mtclust.choose.settings import Input, Params, Settings, selection_of
from mtclust.core.coupling import COUPLINGS
from mtclust.core.criterion import CRITERIA
from mtclust.core.labels import counts_by_task, free_bounds
from mtclust.core.matching import groups_of_tasks
from mtclust.core.model import CommonKept
from mtclust.core.tasks import TaskIndex
from mtclust.estimators.problems import Prepared
from mtclust.search.problem import Point, SearchOptions
from mtclust.search.recipe import Outcome
from mtclust.util.messages import warn_user

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Array = NDArray[np.float64]


def store(
    estimator: AfterFit, params: Params, prepared: Prepared, given: Input, outcome: Outcome, **decided: Record | None
) -> Outcome:
    """Set the attributes of a fitted estimator; returns the outcome with the names that its clusters got.

    ``decided`` are entries of ``selection_``.
    """
    index, bounds = given.index, prepared.problem.bounds
    # which of many equal namings the search ends in is chance
    free = outcome.model_codes is None and not outcome.named and (bounds.interchangeable() or bounds.movable)
    labels, single, new_ids = index.with_plain_ids(outcome.point.labels, outcome.single.labels, bounds.n_clusters, free)
    if new_ids is not None:
        outcome = _renamed(outcome, new_ids)
    problem, point = outcome.problem, outcome.point
    _warn_of_search(params.options, outcome, prepared.settings)
    codes = () if outcome.model_codes is None else (outcome.model_codes,)
    model, moves, counts = problem.decision(point, *codes), prepared.settings.moves, problem.class_counts(point)
    if prepared.settings.frame == "task":
        kept = problem.kept(point)
    else:  # one model for all tasks
        counts = counts_by_task(point.labels, index.offsets, bounds.n_clusters)
        rows = None if moves is None else prepared.settings.view.rows
        kept = CommonKept.of(model, free_bounds(index.sizes, counts > 0), moves, rows)
        model = model.shared_by(index.n_tasks, moves)
    estimator._model, estimator._kept = model, kept
    estimator.tasks_ = index.names
    estimator.labels_, estimator.single_task_labels_ = labels, single
    estimator.cluster_sizes_ = counts
    estimator.objective_ = point.value
    estimator.intercept_ = estimator._model.intercept
    if estimator._model.kernel.kind == "linear" and estimator._model.rows is None:
        estimator.coef_ = estimator._model.coefficients
    estimator.task_groups_ = [index.names[group].tolist() for group in groups_of_tasks(outcome.similarity)]
    estimator.history_ = point.history
    estimator.n_iter_, estimator.converged_ = point.n_iter, point.converged
    form: dict[str, Any] = {"form": prepared.form}  # how the rows were held
    if prepared.form != "dual":
        form["features"] = prepared.problem.features.described.format(prepared.problem.data.moments.n_features)
    estimator.selection_ = selection_of(
        params, prepared.settings, prepared.sample, index.names, **form,
        n_components=_store_coupling(estimator, params, problem, point), task_similarity=outcome.similarity, **decided,
    )  # fmt: skip
    if outcome.relaxation is not None:
        _store_relaxation(estimator, index, outcome)
    return outcome


def _store_coupling(estimator: AfterFit, params: Params, problem: Any, point: Point) -> int | None:
    """Set Ω or D, whichever the method has; returns how many features D weighs."""
    if COUPLINGS[params.method].couples_labels:
        m = len(estimator.tasks_)
        Omega = point.Z if len(point.Z) == m else np.full((m, m), 1.0 / m)  # 11ᵀ/m: the tasks share one model
        estimator.task_covariance_, estimator.task_correlation_ = Omega, correlation(Omega)
    if not COUPLINGS[params.method].of_features:
        return None
    estimator.feature_covariance_ = problem.in_input_coordinates(point.Z)
    return len(point.Z)


def _renamed(outcome: Outcome, new_ids: NDArray[np.int64]) -> Outcome:
    """The same new ids in all tasks, on all rows and on the few of the search."""
    both = [(outcome.problem, outcome.point)]
    both += [] if outcome.few is outcome.problem else [(outcome.few, outcome.few_point)]
    both = [(problem.with_bounds(problem.bounds.renamed(new_ids)), point) for problem, point in both]
    both = [(problem, problem.renamed(point, np.tile(new_ids, (problem.n_tasks, 1)))) for problem, point in both]
    return replace(outcome, problem=both[0][0], point=both[0][1], few=both[-1][0], few_point=both[-1][1])


def _warn_of_search(options: SearchOptions, outcome: Outcome, settings: Settings) -> None:
    """Say that a search did not converge, or that its objective cannot be right."""
    point = outcome.point
    if not point.converged and outcome.model_codes is None:  # max_cuts is no shortcoming but part of the model
        warn_user(
            f"fit stopped after max_iter={options.max_iter} rounds with the objective at {point.value:.6g} and still "
            f"falling by more than tol={options.tol:g} a round; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if point.value < 0 and CRITERIA[settings.criterion].exchanges:
        warn_user(
            f"the objective came out as {point.value:.3g}, below its lowest possible value 0: lambda1="
            f"{settings.lambda1.mean():g} and lambda2={settings.lambda2:g} are too small for double precision with "
            'these features. Raise them, or set solver_options={"form": "dual"}.',
            ConvergenceWarning,
        )


def _store_relaxation(estimator: AfterFit, index: TaskIndex, result: Outcome) -> None:
    """Set the attributes of the relaxation."""
    relaxation = result.relaxation
    estimator.relaxed_labels_ = index.to_input_order(relaxation.codes)
    estimator.mixture_weights_ = relaxation.weights
    estimator.init_labels_ = index.to_input_order(relaxation.start)
    estimator.lower_bound_ = relaxation.lower_bound
    estimator.history_ = [
        entry | {"labels": index.to_input_order(entry["labels"])} if "labels" in entry else entry
        for entry in result.point.history
    ]
    if result.model_codes is not None:  # refined labels do not come from the relaxed ones
        from mtclust.relaxation.options import CuttingPlaneOptions, warn_if_collapsed

        init = (estimator.solver_options or {}).get("init", CuttingPlaneOptions.init)
        warn_if_collapsed(relaxation, init)


def correlation(covariance: Array) -> Array:
    """Correlation matrix of a covariance matrix, or of each of several."""
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", covariance), np.finfo(float).tiny))
    return covariance / (scale[..., :, None] * scale[..., None, :])
