"""Fitted estimators in the format: parameters, fitted attributes, and the state that predict and fit_task need.

A saved estimator has four parts (format 2):

========== =========================================================================================================
parameters what the constructor was given
fitted     the public attributes that ``fit`` sets, whose names end in an underscore
decision   :class:`mtclust.model.DecisionModel`: what ``predict`` needs
kept       :class:`~mtclust.problem.kept.KernelKept` or :class:`~mtclust.problem.kept.FeatureKept`: what ``fit_task``
           needs
========== =========================================================================================================

and what it was told about metadata routing. No matrix between rows is part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.features import Kernel
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.persistence.codec import Decoder, Encoder, add_type, register
from mtclust.primal.features import FeatureMap
from mtclust.primal.rows import Moments
from mtclust.problem.kept import FeatureKept, KernelKept

ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (DMTRC, DMTFC, DSTC)}
#: where scikit-learn keeps what ``set_fit_request`` and its like were told
_ROUTING = "_metadata_request"

for _state in (Kernel, SizeBounds, DecisionModel, Moments, FeatureMap, KernelKept, FeatureKept):
    register(_state)


def _encode(encoder: Encoder, model: Any, where: str) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if _is_fitted(name) and name not in parameters}
    return {
        "type": "estimator",
        "class": type(model).__name__,
        "parameters": {name: encoder.encode(value, name) for name, value in parameters.items()},
        "fitted": {name: encoder.encode(value, name) for name, value in fitted.items()},
        "decision": encoder.encode(model._model, "the model"),
        "kept": encoder.encode(model._kept, "the state for new tasks"),
        "routing": {
            method: requests.requests
            for method, requests in vars(vars(model).get(_ROUTING, object)).items()
            if hasattr(requests, "requests")
        },
    }


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _decode(decoder: Decoder, value: dict[str, Any]) -> Any:
    cls = ESTIMATORS.get(value["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {value['class']!r}")
    model = cls(**{name: decoder.decode(item) for name, item in value["parameters"].items()})
    for name, item in value["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        if not _is_fitted(name) or hasattr(cls, name):
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        setattr(model, name, decoder.decode(item))
    model._model, model._kept = decoder.decode(value["decision"]), decoder.decode(value["kept"])
    for method, requests in value["routing"].items():
        vars(model).setdefault(_ROUTING, model._get_metadata_request())
        for argument, request in requests.items():
            getattr(vars(model)[_ROUTING], method).add_request(param=argument, alias=request)
    _check_consistent(model)
    return model


def _check_consistent(model: Any) -> None:
    """Labels, task bounds and size bounds, which compiled code takes as addresses, must be in range."""
    n, C, m = len(model.labels_), model.n_clusters_, len(model.tasks_)
    for name in ("labels_", "single_task_labels_"):
        _check_labels(getattr(model, name), name, n, C)
    if not isinstance(model._model, DecisionModel):
        raise ValueError("it holds no model that scores rows")
    kept = model._kept
    if not isinstance(kept, KernelKept | FeatureKept):
        raise ValueError("it holds no state for new tasks")
    bounds = kept.bounds
    if bounds.lower.shape != (m, C) or bounds.upper.shape != (m, C) or bounds.lower.min() < 0:
        raise ValueError(f"its cluster sizes are not those of {m} tasks and {C} clusters")
    if isinstance(kept, KernelKept):
        _check_rows(kept, C, m)


def _check_labels(labels: Any, name: str, n: int, n_clusters: int) -> None:
    if labels.shape != (n,) or labels.dtype != np.int64 or labels.min() < 0 or labels.max() >= n_clusters:
        raise ValueError(f"{name} are no labels of {n} rows in {n_clusters} clusters")


def _check_rows(kept: KernelKept, n_clusters: int, n_tasks: int) -> None:
    offsets, n = kept.offsets, len(kept.labels)
    if offsets.shape != (n_tasks + 1,) or offsets[0] != 0 or offsets[-1] != n or np.any(np.diff(offsets) < 1):
        raise ValueError(f"its rows are not those of {n_tasks} tasks")
    _check_labels(kept.labels, "the labels kept for new tasks", n, n_clusters)
    if kept.rows is not None and kept.rows.shape[0] != n:
        raise ValueError(f"it has {kept.rows.shape[0]} rows but {n} labels")


for _cls in ESTIMATORS.values():
    add_type(_cls, "estimator", _encode, _decode)
