"""Fitted estimators in the format: their parameters, what ``fit`` has set, and the dataclasses that belong to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.estimators.large import LargeFit
from mtclust.estimators.preparation import Prepared
from mtclust.features import CentredKernel, EigenFeatures, Kernel
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.persistence.checks import check_state
from mtclust.persistence.codec import Decoder, Encoder, add_type, register
from mtclust.primal.features import FeatureMap
from mtclust.primal.rows import Moments
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
register(Moments)
register(FeatureMap)
register(LargeFit)
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
    check_state(model)
    return model


for _cls in ESTIMATORS.values():
    add_type(_cls, "estimator", _encode, _decode)
