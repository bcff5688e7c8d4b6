"""``model.save`` and ``mtclust.load``.

The manifest of a file (format 4) has the class of the model, its ``parameters``, the ``fitted`` attributes, the
``state`` that ``predict`` (``decision``) and ``fit_task`` (``kept``) need, what it was told about metadata ``routing``,
``extra``, and the checksums of the arrays. The fields of the state are flat: ``"kept.kernel": "Kernel"``,
``"kept.kernel.kind": "rbf"``. No matrix between rows is part of it. What all of it must be like:
:mod:`mtclust.persistence.schema`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

import mtclust
from mtclust import estimators
from mtclust.choose.record import Selection
from mtclust.exceptions import ModelFileError
from mtclust.persistence.atomic import atomic_write
from mtclust.persistence.format import ArchiveReader, ArchiveWriter, decode, encode
from mtclust.persistence.schema import FITTED, STATES, check_model

#: what the manifest begins with
FORMAT = "mtclust model"
#: raised when older versions of mtclust could not read a new file correctly
FORMAT_VERSION = 4
#: formats that are read as well: 2 knew no aligned tasks, and both nested the state
_EARLIER = (2, 3)
#: fields that files have and models do not any more
_GONE = {"Moments": {"largest"}}
ESTIMATORS: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__}
#: where scikit-learn keeps what ``set_fit_request`` and its like were told
_ROUTING = "_metadata_request"


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model; see :meth:`mtclust.DMTRC.save`.

    A model with a callable kernel cannot be saved, since a function is code. Task ids that are dates, Decimal, UUID, or
    times, periods and intervals of pandas (as objects) are strings in the file, and a RandomState as
    ``random_state`` is None.
    """
    cls: Any = type(model)
    name = cls.__name__
    if ESTIMATORS.get(name) is not cls:
        raise TypeError(f"model is of type {name}; only {', '.join(ESTIMATORS)} can be saved.")
    check_is_fitted(model, "labels_")
    if callable(model.kernel):
        raise TypeError(
            f"kernel={model.kernel!r} is a function, and functions are not saved: loading a model must not execute "
            'code. Fit with kernel="precomputed" on the matrix it gives, or use joblib and trust the file.'
        )
    if extra is not None and type(extra) is not dict:
        raise TypeError(f"extra must be a dict; got {type(extra).__name__}.")
    with atomic_write(path) as stream, ArchiveWriter(stream) as archive:

        def put(value: Any, where: str) -> Any:
            try:
                return encode(value, where, archive.add, ids=where != "extra")
            except RecursionError:
                raise ValueError(f"{where} cannot be saved: a value is nested too deeply or holds itself.") from None

        libraries = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
        header = {"format": FORMAT, "version": FORMAT_VERSION, "mtclust": mtclust.__version__, "libraries": libraries}
        archive.finish(header | _content(model, put) | {"extra": put(extra, "extra")})


def _content(model: Any, put: Callable[[Any, str], Any]) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    if isinstance(model.random_state, np.random.RandomState):  # which the fit has moved on
        parameters["random_state"] = None
    every = model.__getstate__()  # with what is found when it is first read
    fitted = {name: value for name, value in every.items() if name.endswith("_") and name not in parameters}
    unknown = sorted(name for name in fitted if not name.startswith("_") and name not in FITTED)
    if unknown:
        raise TypeError(f"{unknown[0]} cannot be saved: it has no line in mtclust.persistence.schema.FITTED.")
    state: dict[str, Any] = {}

    def flatten(name: str, value: Any) -> None:
        state[name] = type(value).__name__
        for field in fields(value):
            item = getattr(value, field.name)
            if type(item).__name__ in STATES:
                flatten(f"{name}.{field.name}", item)
            else:
                state[f"{name}.{field.name}"] = put(item, f"{name}.{field.name}")

    flatten("decision", model._model)
    flatten("kept", model._kept)
    if fitted.get("stability_") is not None:
        flatten("stability_", fitted.pop("stability_"))
    fitted["selection_"] = model.selection_.to_dict()
    return {
        "class": type(model).__name__,
        "parameters": {name: put(value, name) for name, value in parameters.items()},
        "fitted": {name: put(value, name) for name, value in fitted.items()},
        "state": state,
        "routing": {
            method: requests.requests
            for method, requests in vars(vars(model).get(_ROUTING, object)).items()
            if hasattr(requests, "requests")
        },
    }


def load(path: str | os.PathLike[str]) -> tuple[Any, Any]:
    """The model of a file and what was saved as ``extra``; see :func:`mtclust.load`."""
    with open(path, "rb") as stream:
        archive = _opened(stream, path)
        _check_format(archive.manifest, path)
        try:
            if archive.manifest["version"] in _EARLIER:
                model = _decoded(_flattened(archive.manifest), archive)
            else:
                archive.check_arrays()
                model = _decoded(archive.manifest, archive)
            extra = decode(archive.manifest["extra"], archive.fetch)
        except Exception as error:  # whatever zipfile, json or numpy say about bytes that are not what they should be
            raise ModelFileError(f"{os.fspath(path)!r} is damaged and was not loaded: {_words(error)}.") from error
    return model, extra


def _decoded(manifest: dict[str, Any], archive: ArchiveReader) -> Any:
    cls = ESTIMATORS.get(manifest["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {manifest['class']!r:.40}")
    model = cls(**{name: decode(item, archive.fetch) for name, item in manifest["parameters"].items()})
    for name, item in manifest["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        if name not in FITTED:
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        setattr(model, name, decode(item, archive.fetch))
    state = manifest["state"]

    def unflatten(name: str) -> Any:
        if state[name] not in STATES:
            raise ValueError(f"its {name} is of unknown class {state[name]!r:.40}")
        within = {key[len(name) + 1 :] for key in state if key.startswith(f"{name}.")} - _GONE.get(state[name], set())
        known = {field.name for field in fields(STATES[state[name]])}
        unknown = sorted(within - known - {key for key in within if key.partition(".")[0] in known})
        if unknown:
            raise ValueError(f"its {state[name]} has unknown fields {unknown}")
        parts = {
            key: unflatten(f"{name}.{key}")
            if any(other.startswith(f"{key}.") for other in within)
            else decode(state[f"{name}.{key}"], archive.fetch)
            for key in within & known
        }
        return STATES[state[name]](**parts)

    model._model, model._kept = unflatten("decision"), unflatten("kept")
    if "stability_" in state:
        model.stability_ = unflatten("stability_")
    model.selection_ = Selection.of(_as_of_now(model.selection_))
    for method, requests in manifest["routing"].items():
        vars(model).setdefault(_ROUTING, model._get_metadata_request())
        for argument, request in requests.items():
            getattr(vars(model)[_ROUTING], method).add_request(param=argument, alias=request)
    check_model(model)
    return model


def _as_of_now(selection: Any) -> Any:
    """``selection_`` of a file without what choices of version 0.2 have said and those of this do not."""
    if not isinstance(selection, dict):
        return selection
    selection = _without(selection, "certified")
    sizes, tried = selection.get("sizes"), selection.get("candidates")
    if isinstance(sizes, dict) and "chosen" in sizes:
        selection = selection | {"sizes": _without(sizes, "scores")}
    if isinstance(tried, list):
        gone = ("kernel", "criterion", "sizes", "center")
        selection = selection | {"candidates": [_without(one, *gone) for one in tried]}
    return selection


def _without(entries: Any, *gone: str) -> Any:
    return {name: entries[name] for name in entries if name not in gone} if isinstance(entries, dict) else entries


def _flattened(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest of an earlier format as one of this."""
    old, state = manifest["model"], {}

    def flatten(name: str, value: Any) -> None:
        nested = isinstance(value, dict) and value.get("type") == "dataclass"
        state[name] = value["name"] if nested else value
        for field, item in value["fields"].items() if nested else ():
            flatten(f"{name}.{field}", item)

    flatten("decision", old["decision"])
    flatten("kept", old["kept"])
    fitted = dict(old["fitted"])
    if fitted.get("stability_") is not None:
        flatten("stability_", fitted.pop("stability_"))
    return {name: old[name] for name in ("class", "parameters", "routing")} | {"fitted": fitted, "state": state}


def _opened(stream: Any, path: str | os.PathLike[str]) -> ArchiveReader:
    foreign = f"{os.fspath(path)!r} is not a model saved by mtclust (model.save)"
    start = stream.read(4)
    if start != b"PK\x03\x04":
        raise ModelFileError(f"{foreign}: it is {'not a zip file' if start else 'empty'}.")
    try:
        return ArchiveReader(stream)
    except Exception as error:
        raise ModelFileError(f"{foreign}, or it is damaged: {_words(error)}.") from error


def _check_format(manifest: Any, path: str | os.PathLike[str]) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ModelFileError(f"{os.fspath(path)!r} is not a model saved by mtclust (model.save).")
    found = manifest.get("version")
    if found == 1:
        raise ModelFileError(
            f"{os.fspath(path)!r} was saved by an earlier version of mtclust, whose files held its internals; fit the "
            "model again and save it."
        )
    if found not in (*_EARLIER, FORMAT_VERSION):
        raise ModelFileError(
            f"{os.fspath(path)!r} was saved by mtclust {manifest.get('mtclust')} in format {found!r}; this is mtclust "
            f"{mtclust.__version__}, which reads formats up to {FORMAT_VERSION}. Load it with the version that saved "
            "it, or newer."
        )


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).rstrip(".") or type(error).__name__
