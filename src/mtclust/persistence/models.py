"""``model.save`` and ``mtclust.load``.

The manifest of a file (format 4) has the version, ``model``, ``extra``, and the checksums of the arrays. ``model`` is
the class, its ``parameters``, the ``fitted`` attributes, and what ``predict`` (``decision``) and ``fit_task``
(``kept``) need. No matrix between rows is part of it. What all of it must be like: :mod:`mtclust.persistence.schema`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import mtclust
from mtclust import estimators
from mtclust.choose.record import Selection
from mtclust.exceptions import ModelFileError
from mtclust.persistence.atomic import atomic_write
from mtclust.persistence.format import CHECKSUMS, Arrays, arrays_of, decode, encode, opened, write
from mtclust.persistence.schema import FITTED, check_model

#: what the manifest begins with
FORMAT = "mtclust model"
#: raised when older versions of mtclust could not read a new file correctly; 2 knew no aligned tasks, 2 and 3 no
#: checksums
FORMAT_VERSION = 4
#: options of solvers that are no more
_GONE = ("refine", "single_tasks", "single_task_n_init", "n_seeds")
ESTIMATORS: dict[str, Any] = {name: getattr(estimators, name) for name in estimators.__all__}


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model; see :meth:`mtclust.DMTRC.save`.

    A model with a callable kernel cannot be saved, since a function is code. A RandomState as ``random_state`` is
    None in the file.
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
    arrays: Arrays = {}
    header = {"format": FORMAT, "version": FORMAT_VERSION, "mtclust": mtclust.__version__}
    try:
        content = {"model": _content(model, arrays), "extra": encode(extra, "extra", arrays)}
    except RecursionError:
        raise ValueError("a value in extra cannot be saved: it is nested too deeply or holds itself.") from None
    with atomic_write(path) as stream:
        write(stream, header | content, arrays)


def _content(model: Any, arrays: Arrays) -> dict[str, Any]:
    put = partial(encode, arrays=arrays)
    parameters = model.get_params(deep=False)
    if isinstance(model.random_state, np.random.RandomState):  # which the fit has moved on
        parameters["random_state"] = None
    every = model.__getstate__()  # with what is found when it is first read
    fitted = {name: value for name, value in every.items() if name.endswith("_") and name not in parameters}
    unknown = sorted(name for name in fitted if not name.startswith("_") and name not in FITTED)
    if unknown:
        raise TypeError(f"{unknown[0]} cannot be saved: it has no line in mtclust.persistence.schema.")
    fitted["selection_"] = model.selection_.to_dict()
    return {
        "class": type(model).__name__,
        "parameters": {name: put(value, name) for name, value in parameters.items()},
        "fitted": {name: put(value, name) for name, value in fitted.items()},
        "decision": put(model._model, "decision"),
        "kept": put(model._kept, "kept"),
    }


def load(path: str | os.PathLike[str], made: Callable[[Any, Any], Any] = lambda *both: both) -> Any:
    """What is ``made`` of the model of a file and what was saved as ``extra``: both; see :func:`mtclust.load`."""
    name = repr(os.fspath(path))
    foreign = f"{name} is not a model saved by mtclust (model.save)"
    with open(path, "rb") as stream:
        start = stream.read(4)
        if start != b"PK\x03\x04":
            raise ModelFileError(f"{foreign}: it is {'not a zip file' if start else 'empty'}.")
        try:
            archive, manifest = opened(stream)
        except Exception as error:
            raise ModelFileError(f"{foreign}, or it is damaged: {_words(error)}.") from error
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"{foreign}.")
        version, reads = manifest.get("version"), range(2, FORMAT_VERSION + 1)
        if version not in reads:
            raise ModelFileError(
                f"{name} was saved by mtclust {manifest.get('mtclust')} in format {version!r}; this is mtclust "
                f"{mtclust.__version__}, which reads formats {reads[0]} to {reads[-1]}. Load it with the version that "
                "saved it, or fit the model again."
            )
        try:
            arrays = arrays_of(archive, manifest[CHECKSUMS] if version == FORMAT_VERSION else None)
            model = _decoded(manifest["model"], arrays)
            return made(model, decode(manifest["extra"], arrays))
        except Exception as error:  # whatever zipfile, json or numpy say about bytes that are not what they should be
            raise ModelFileError(f"{name} is damaged and was not loaded: {_words(error)}.") from error


def _words(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error).rstrip(".") or type(error).__name__


def _decoded(saved: dict[str, Any], arrays: Arrays) -> Any:
    cls = ESTIMATORS.get(saved["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {saved['class']!r:.40}")
    parameters = {name: decode(item, arrays) for name, item in saved["parameters"].items()}
    if isinstance(parameters.get("solver_options"), dict):
        parameters["solver_options"] = {k: v for k, v in parameters["solver_options"].items() if k not in _GONE}
    model = cls(**parameters)
    for name, item in saved["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        if name not in FITTED:
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        setattr(model, name, decode(item, arrays))
    model._model, model._kept = decode(saved["decision"], arrays), decode(saved["kept"], arrays)
    chosen, sizes = model.selection_, model.selection_["sizes"]
    if isinstance(sizes, dict) and "chosen" in sizes:  # in earlier formats they were a choice
        chosen = chosen | {"sizes": sizes["chosen"]}
    model.selection_ = Selection.of(chosen)
    check_model(model)
    return model
