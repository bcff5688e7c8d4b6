"""Fitted estimators in the format: parameters, fitted attributes, and the state that predict and fit_task need.

A saved estimator has four parts (format 2):

========== =========================================================================================================
parameters what the constructor was given
fitted     the public attributes that ``fit`` sets, whose names end in an underscore
decision   :class:`mtclust.core.model.DecisionModel`: what ``predict`` needs
kept       :class:`~mtclust.problem.kept.KernelKept` or :class:`~mtclust.problem.kept.FeatureKept`: what
           ``fit_task`` needs
========== =========================================================================================================

and what it was told about metadata routing. No matrix between rows is part of it.
"""

from __future__ import annotations

from typing import Any

from mtclust import estimators
from mtclust.choose.record import Selection
from mtclust.core.kernels import Kernel
from mtclust.core.labels import SizeBounds
from mtclust.core.model import DecisionModel
from mtclust.core.stability import Stability
from mtclust.persistence.checks import check_state
from mtclust.persistence.codec import Decoder, Encoder, add_type, register
from mtclust.problem.common import CommonKept
from mtclust.problem.kept import FeatureKept, KernelKept
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Moments

ESTIMATORS: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__}
#: where scikit-learn keeps what ``set_fit_request`` and its like were told
_ROUTING = "_metadata_request"

for _state in (Kernel, SizeBounds, DecisionModel, Moments, FeatureMap, KernelKept, FeatureKept, CommonKept, Stability):
    register(_state)


def _encode(encoder: Encoder, model: Any, where: str) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if _is_fitted(name) and name not in parameters}
    return {
        "type": "estimator",
        "class": type(model).__name__,
        "parameters": {name: encoder.encode(value, name) for name, value in parameters.items()},
        "fitted": {name: encoder.encode(_plain(value), name) for name, value in fitted.items()},
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


def _plain(value: Any) -> Any:
    """Records of choices are saved as the dictionaries they read like."""
    return value.to_dict() if isinstance(value, Selection) else value


def _decode(decoder: Decoder, value: dict[str, Any]) -> Any:
    cls = ESTIMATORS.get(value["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {value['class']!r}")
    model = cls(**{name: decoder.decode(item) for name, item in value["parameters"].items()})
    for name, item in value["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        if not _is_fitted(name) or hasattr(cls, name):
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        found = decoder.decode(item)
        setattr(model, name, Selection.of(found) if name == "selection_" and isinstance(found, dict) else found)
    model._model, model._kept = decoder.decode(value["decision"]), decoder.decode(value["kept"])
    for method, requests in value["routing"].items():
        vars(model).setdefault(_ROUTING, model._get_metadata_request())
        for argument, request in requests.items():
            getattr(vars(model)[_ROUTING], method).add_request(param=argument, alias=request)
    check_state(model)
    return model


for _cls in ESTIMATORS.values():
    add_type(_cls, "estimator", _encode, _decode)
