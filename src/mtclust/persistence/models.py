"""``model.save`` and ``mtclust.load``."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from mtclust._atomic import atomic_write
from mtclust.estimators import DMTFC, DMTRC, DSTC
from mtclust.estimators.preparation import Prepared
from mtclust.exceptions import ModelFileError
from mtclust.features import CentredKernel, EigenFeatures, Kernel
from mtclust.labels import SizeBounds
from mtclust.model import DecisionModel
from mtclust.persistence.archive import ArchiveReader, ArchiveWriter
from mtclust.persistence.codec import Decoder, Encoder, register
from mtclust.solvers.problem import Problem
from mtclust.tasks import TaskIndex

#: what the manifest begins with
FORMAT = "mtclust model"
#: raised when older versions of mtclust could not read a new file correctly
FORMAT_VERSION = 1

#: where scikit-learn keeps what ``set_fit_request`` and its like were told
_ROUTING = "_metadata_request"

_ESTIMATORS: dict[str, type] = {cls.__name__: cls for cls in (DMTRC, DMTFC, DSTC)}


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


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model to a file that :func:`mtclust.load` reads; the same as ``model.save(path)``.

    The file is a zip of arrays (``.npy``) and one JSON text, without code; it holds the rows of ``fit`` unless the
    kernel was precomputed. An earlier file of that name is replaced, but only once the new one is complete.

    Parameters
    ----------
    model : DMTRC, DMTFC or DSTC
        A fitted model. One with a callable kernel cannot be saved, since a function is code.
    path : str or path
        Any name; no ending is added.
    extra : dict, optional
        Anything small that belongs to the model, for instance how its columns were encoded: None, numbers, strings,
        lists, tuples, dicts, arrays, CSR matrices. ``load(path, return_extra=True)`` gives it back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mtclust
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(30, centers=3, random_state=0)
    >>> model = mtclust.DSTC(n_clusters=3, kernel="linear", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "blobs.mtclust"
    ...     model.save(path, extra={"columns": ["width", "height"]})
    ...     loaded, extra = mtclust.load(path, return_extra=True)
    >>> bool((loaded.predict(X) == model.predict(X)).all()), extra
    (True, {'columns': ['width', 'height']})
    """
    cls: Any = type(model)
    name = cls.__name__
    if _ESTIMATORS.get(name) is not cls:
        raise TypeError(f"model is of type {name}; only {', '.join(_ESTIMATORS)} can be saved.")
    check_is_fitted(model, "labels_")
    if callable(model.kernel):
        raise TypeError(
            f"kernel={model.kernel!r} is a function, and functions are not saved: loading a model must not execute "
            'code. Fit with kernel="precomputed" on the matrix it gives, or use joblib and trust the file.'
        )
    if extra is not None and type(extra) is not dict:
        raise TypeError(f"extra must be a dict; got {type(extra).__name__}.")
    with atomic_write(path) as stream, ArchiveWriter(stream) as archive:
        archive.finish(_header() | _described(model, extra, Encoder(archive.add)))


def _header() -> dict[str, Any]:
    libraries = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"format": FORMAT, "version": FORMAT_VERSION, "mtclust": _own_version(), "libraries": libraries}


def _own_version() -> str:
    from mtclust import __version__

    return __version__


def _described(model: Any, extra: dict[str, Any] | None, encoder: Encoder) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    fitted = {name: value for name, value in vars(model).items() if name not in parameters and name != _ROUTING}
    try:
        return {
            "class": type(model).__name__,
            "parameters": {name: encoder.encode(value, name) for name, value in parameters.items()},
            "fitted": {name: encoder.encode(value, name) for name, value in fitted.items()},
            "routing": {
                method: requests.requests
                for method, requests in vars(vars(model).get(_ROUTING, object)).items()
                if hasattr(requests, "requests")
            },
            "extra": encoder.encode(extra, "extra"),
        }
    except RecursionError:
        raise ValueError("the model or extra cannot be saved: a value is nested too deeply or holds itself.") from None


def load(path: str | os.PathLike[str], *, return_extra: bool = False) -> Any:
    """Read a model that :meth:`DMTRC.save` wrote; nothing in the file is executed, whoever made it.

    Parameters
    ----------
    path : str or path
    return_extra : bool, default=False
        Also return what was saved as ``extra`` (None if nothing was).

    Returns
    -------
    model : DMTRC, DMTFC or DSTC
        It predicts, clusters new tasks and shows itself exactly as the one that was saved.
    extra : dict or None
        Only with ``return_extra=True``.

    Raises
    ------
    mtclust.exceptions.ModelFileError
        If the file is no saved model, is damaged, or was written in a format that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mtclust
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "notes.txt"
    ...     _ = path.write_text("not a model")
    ...     mtclust.load(path)
    Traceback (most recent call last):
        ...
    mtclust.exceptions.ModelFileError: ... is not a model saved by mtclust (model.save): it is not a zip file.
    """
    with open(path, "rb") as stream:
        archive = _opened(stream, path)
        _check_format(archive.manifest, path)
        try:
            archive.check_members()
            decoder = Decoder(archive.fetch)
            model = _restored(archive.manifest, decoder)
            extra = decoder.decode(archive.manifest["extra"])
        except Exception as error:  # whatever zipfile, json or numpy say about bytes that are not what they should be
            raise ModelFileError(f"{os.fspath(path)!r} is damaged and was not loaded: {_words(error)}.") from error
    return (model, extra) if return_extra else model


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
    if found != FORMAT_VERSION:
        raise ModelFileError(
            f"{os.fspath(path)!r} was saved by mtclust {manifest.get('mtclust')} in format {found!r}; this is mtclust "
            f"{_own_version()}, which reads format {FORMAT_VERSION}. Load it with the version that saved it, or newer."
        )


def _restored(manifest: dict[str, Any], decoder: Decoder) -> Any:
    cls = _ESTIMATORS.get(manifest["class"])
    if cls is None:
        raise ValueError(f"it holds a model of unknown class {manifest['class']!r}")
    model = cls(**{name: decoder.decode(value) for name, value in manifest["parameters"].items()})
    for name, value in manifest["fitted"].items():
        # data only, and only where fit would put it: never in the place of a method
        fitted = name.endswith("_") or name.startswith("_")
        if not fitted or name.startswith("__") or hasattr(cls, name):
            raise ValueError(f"{name!r} is no attribute of a fitted {cls.__name__}")
        setattr(model, name, decoder.decode(value))
    for method, requests in manifest["routing"].items():
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


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).rstrip(".") or type(error).__name__
