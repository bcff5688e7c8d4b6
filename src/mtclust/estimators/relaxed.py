"""``solver="cutting-plane"`` of the estimators: what goes in and which attributes come out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mtclust.core.tasks import TaskIndex
from mtclust.relaxation.options import CuttingPlaneOptions, warn_if_collapsed
from mtclust.search.problem import Problem, SearchOptions
from mtclust.search.recipe import Outcome

#: attributes that only this solver sets
_ATTRIBUTES = ("relaxed_labels_", "mixture_weights_", "init_labels_", "lower_bound_")


def solve_relaxed(
    estimator: Any, problem: Problem, index: TaskIndex, exchange: SearchOptions, rng: np.random.Generator
) -> Outcome:
    """Run the cutting-plane solver with the ``solver_options`` of a user; labels to start from come in input order."""
    from mtclust.relaxation.cutting_plane import solve_cutting_plane  # not needed by fits that only store their result

    options = CuttingPlaneOptions.from_dict(estimator.solver_options)
    if not isinstance(options.init, str):
        init = np.asarray(options.init)
        options = replace(options, init=init[index.order] if init.shape == index.order.shape else init)
    return solve_cutting_plane(problem, options, exchange, rng)


def decision_of_relaxation(coupling: float | str, n_tasks: int) -> dict[str, Any]:
    """What the ``coupling`` of DMTRC means for cutting planes: they learn Ω or leave the tasks apart."""
    if n_tasks == 1 or coupling in ("none", 0):
        return {"decision": "none", "reason": "there is only one task" if n_tasks == 1 else "set by the user"}
    if coupling not in ("auto", "full", 1):
        raise ValueError(
            f'coupling={coupling!r} needs solver="exchange"; '
            'cutting planes know "full", which "auto" means for them, and "none".'
        )
    reason = "set by the user" if coupling != "auto" else "cutting planes always couple, as in the paper"
    return {"decision": "full", "reason": reason}


def store_relaxation(estimator: Any, index: TaskIndex, result: Outcome) -> None:
    """Set the attributes of the relaxation, or remove those of an earlier fit."""
    relaxation = result.relaxation
    if relaxation is None:
        for name in _ATTRIBUTES:
            estimator.__dict__.pop(name, None)
        return
    estimator.relaxed_labels_ = index.to_input_order(relaxation.codes)
    estimator.mixture_weights_ = relaxation.weights
    estimator.init_labels_ = index.to_input_order(relaxation.start)
    estimator.lower_bound_ = relaxation.lower_bound
    estimator.history_ = [
        entry | {"labels": index.to_input_order(entry["labels"])} if "labels" in entry else entry
        for entry in result.point.history
    ]
    if result.model_codes is not None:  # refined labels do not come from the relaxed ones
        init = (estimator.solver_options or {}).get("init", CuttingPlaneOptions.init)
        warn_if_collapsed(relaxation, init)
