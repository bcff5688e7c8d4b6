"""From the outcome of a search to the attributes of a fitted estimator, and what it keeps for later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.choose.record import Selection
from mtclust.core.tasks import TaskIndex
from mtclust.estimators.confidence import separation
from mtclust.estimators.problems import Prepared
from mtclust.estimators.relaxed import store_relaxation
from mtclust.search.criteria import CRITERIA
from mtclust.search.problem import Point, SearchOptions
from mtclust.search.recipe import Outcome
from mtclust.util.messages import warn_user

if TYPE_CHECKING:
    from mtclust.search.problem import Problem

Array = NDArray[np.float64]


def store(estimator: Any, prepared: Prepared, rows: Any, index: TaskIndex, outcome: Outcome) -> Outcome:
    """Set the attributes of a fitted estimator; returns the outcome with the names that its clusters got."""
    bounds = prepared.problem.bounds
    # which of many equal namings the search ends in is chance
    free = outcome.model_codes is None and not outcome.named and (bounds.interchangeable() or bounds.movable)
    labels, single, new_ids = index.with_plain_ids(outcome.point.labels, outcome.single.labels, bounds.n_clusters, free)
    if new_ids is not None:
        outcome = _renamed(outcome, new_ids)
    problem, point = outcome.problem, outcome.point
    _warn_of_search(estimator._read_search_options(), outcome, prepared.settings.criterion)
    if outcome.model_codes is None:
        estimator._model = problem.decision(point)
    else:
        estimator._model = problem.decision(point, outcome.model_codes)
    estimator._kept = problem.kept(point)
    estimator.tasks_ = index.names
    estimator.labels_, estimator.single_task_labels_ = labels, single
    estimator.cluster_sizes_ = problem.class_counts(point)
    estimator.objective_ = point.value
    estimator.__dict__.pop("stability_", None)  # of an earlier fit
    estimator.intercept_ = estimator._model.intercept
    if estimator._model.kernel.kind == "linear" and estimator._model.rows is None:
        estimator.coef_ = estimator._model.coefficients
    elif hasattr(estimator, "coef_"):
        del estimator.coef_
    estimator.task_groups_ = [index.names[group].tolist() for group in outcome.groups]
    estimator.history_ = point.history
    estimator.n_iter_, estimator.converged_ = point.n_iter, point.converged
    certified = None if prepared.form == "dual" else point.certified
    found = {"task_similarity": outcome.similarity, "certified": certified}
    estimator.selection_ = Selection.of(prepared.settings.selection | found)
    verdict = separation(
        estimator, rows, index, index.task_numbers,
        lambda sample: labels[sample.order] if index.in_memory else sample.labels_of(point, index),
    )  # fmt: skip
    estimator.loo_score_, estimator.cluster_scores_ = verdict.separation, verdict.by_cluster
    store_relaxation(estimator, index, outcome)
    estimator._store_coupling(problem, point)
    return outcome


def _renamed(outcome: Outcome, new_ids: NDArray[np.int64]) -> Outcome:
    """The same new ids in all tasks, on all rows and on the few of the search."""
    problem, point = _renamed_point(outcome.problem, outcome.point, new_ids)
    if outcome.few is outcome.problem:
        return replace(outcome, problem=problem, point=point, few=problem, few_point=point)
    few, few_point = _renamed_point(outcome.few, outcome.few_point, new_ids)
    return replace(outcome, problem=problem, point=point, few=few, few_point=few_point)


def _renamed_point(problem: Problem, point: Point, new_ids: NDArray[np.int64]) -> tuple[Problem, Point]:
    problem = problem.with_bounds(problem.bounds.renamed(new_ids))
    return problem, problem.renamed(point, np.tile(new_ids, (problem.n_tasks, 1)))


def _warn_of_search(options: SearchOptions, outcome: Outcome, criterion: str) -> None:
    """Say that a search did not converge, or that its objective cannot be right."""
    point, problem = outcome.point, outcome.problem
    if not point.converged and outcome.model_codes is None:  # max_cuts is no shortcoming but part of the model
        warn_user(
            f"fit stopped after max_iter={options.max_iter} rounds with the objective at {point.value:.6g} and still "
            f"falling by more than tol={options.tol:g} a round; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if point.value < 0 and CRITERIA[criterion].exchanges:
        warn_user(
            f"the objective came out as {point.value:.3g}, below its lowest possible value 0: lambda1="
            f"{problem.lambda1.mean():g} and lambda2={problem.lambda2:g} are too small for double precision with "
            'these features. Raise them, or set solver_options={"form": "dual"}.',
            ConvergenceWarning,
        )


def set_labels(estimator: Any, labels: NDArray[np.int64], task_numbers: NDArray[Any]) -> None:
    """Other labels of the rows, in the order of the input, and the cluster sizes that belong to them."""
    sizes = np.zeros_like(estimator.cluster_sizes_)
    np.add.at(sizes, (task_numbers, labels), 1)
    estimator.labels_, estimator.cluster_sizes_ = labels, sizes
