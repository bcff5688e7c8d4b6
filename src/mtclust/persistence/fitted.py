"""Fitted estimators in the format: their parameters, what ``fit`` has set, and the dataclasses that belong to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.estimators.preparation import Prepared
from mtclust.features import CentredKernel, EigenFeatures, Kernel
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.persistence.codec import Decoder, Encoder, add_type, register
from mtclust.solvers.problem import Problem
from mtclust.tasks import TaskIndex

ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (DMTRC, DMTFC, DSTC)}
#: where scikit-learn keeps what ``set_fit_request`` and its like were told
_ROUTING = "_metadata_request"


def _needed_after_fit(prepared: Prepared) -> Prepared:
    """Without the notes, which are part of ``selection_``, and without the "rows" of a precomputed kernel."""
    return replace(prepared, selection={}, rows=None if prepared.kernel.kind == "precomputed" else prepared.rows)


# N × N and N × r matrices are left out: predict and fit_task use the rows, and compute what they need from them
register(Kernel)
register(TaskIndex)
register(SizeBounds)
register(DecisionModel)
register(Prepared, slim=_needed_after_fit)
register(Problem, slim=lambda problem: replace(problem, kernel=problem.kernel[:0]))
register(CentredKernel, slim=lambda k: replace(k, matrix=k.matrix[:0], task_means=k.task_means[:0]))
register(EigenFeatures, slim=lambda f: replace(f, values=f.values[:0], projection=f.projection[:0]))


def _encode(encoder: Encoder, model: Any, where: str) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if name not in parameters and name != _ROUTING}
    prefix = "" if where == "model" else f"{where}."
    return {
        "type": "estimator",
        "class": type(model).__name__,
        "parameters": {name: encoder.encode(value, prefix + name) for name, value in parameters.items()},
        "fitted": {name: encoder.encode(value, prefix + name) for name, value in fitted.items()},
        "routing": {
            method: requests.requests
            for method, requests in vars(vars(model).get(_ROUTING, object)).items()
            if hasattr(requests, "requests")
        },
    }


def _decode(decoder: Decoder, value: dict[str, Any]) -> Any:
    cls = ESTIMATORS.get(value["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {value['class']!r}")
    model = cls(**{name: decoder.decode(item) for name, item in value["parameters"].items()})
    for name, item in value["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        fitted = name.endswith("_") or name.startswith("_")
        if not fitted or name.startswith("__") or hasattr(cls, name):
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        setattr(model, name, decoder.decode(item))
    for method, requests in value["routing"].items():
        vars(model).setdefault(_ROUTING, model._get_metadata_request())
        for argument, request in requests.items():
            getattr(vars(model)[_ROUTING], method).add_request(param=argument, alias=request)
    _check_consistent(model)
    return model


def _check_consistent(model: Any) -> None:
    """Labels, task bounds and size bounds, which compiled code takes as addresses, must be in range."""
    n, C, m = len(model.labels_), model.n_clusters_, len(model.tasks_)
    for name in ("labels_", "single_task_labels_", "_result_labels"):
        labels = getattr(model, name)
        if labels is None and name.startswith("_"):  # not kept by every way of fitting
            continue
        if labels.shape != (n,) or labels.dtype != np.int64 or labels.min() < 0 or labels.max() >= C:
            raise ValueError(f"{name} are no labels of {n} rows in {C} clusters")
    if isinstance(model._prepared, Prepared):
        _check_prepared(model._prepared, n, C, m)


def _check_prepared(prepared: Prepared, n: int, C: int, m: int) -> None:
    offsets, bounds = prepared.index.offsets, prepared.problem.bounds
    for found in (prepared.problem.offsets, prepared.centred.offsets):
        if not np.array_equal(found, offsets):
            raise ValueError("its tasks are not those of its problem")
    if offsets.shape != (m + 1,) or offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 1):
        raise ValueError(f"its rows are not those of {m} tasks")
    if not np.array_equal(np.sort(prepared.index.order), np.arange(n)):
        raise ValueError("the order of its rows is none")
    if bounds.lower.shape != (m, C) or bounds.upper.shape != (m, C) or bounds.lower.min() < 0:
        raise ValueError(f"its cluster sizes are not those of {m} tasks and {C} clusters")
    if prepared.rows is not None and prepared.rows.shape[0] != n:
        raise ValueError(f"it has {prepared.rows.shape[0]} rows but {n} labels")


for _cls in ESTIMATORS.values():
    add_type(_cls, "estimator", _encode, _decode)
