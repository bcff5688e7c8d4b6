"""``model.save`` and ``mtclust.load``."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from mtclust.exceptions import ModelFileError
from mtclust.persistence.archive import ArchiveReader, ArchiveWriter
from mtclust.persistence.atomic import atomic_write
from mtclust.persistence.codec import Decoder, Encoder
from mtclust.persistence.fitted import ESTIMATORS

#: what the manifest begins with
FORMAT = "mtclust model"
#: raised when older versions of mtclust could not read a new file correctly
FORMAT_VERSION = 3
#: formats that are read: 2 knew no aligned tasks
_READ = (2, FORMAT_VERSION)


def save(model: Any, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
    """Write a fitted model to a file that :func:`mtclust.load` reads; the same as ``model.save(path)``.

    The file is a zip of arrays (``.npy``) and one JSON text, without code. It holds the rows of ``fit`` where
    ``predict`` or ``fit_task`` need them: whoever gets the file gets these data. An earlier file of that name is
    replaced, but only once the new one is complete.

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
        encoder = Encoder(archive.add)
        content = {"model": _encoded(model, "model", encoder), "extra": _encoded(extra, "extra", encoder)}
        archive.finish(_header() | content)


def _header() -> dict[str, Any]:
    libraries = {module.__name__: module.__version__ for module in (np, scipy, sklearn)}
    return {"format": FORMAT, "version": FORMAT_VERSION, "mtclust": _own_version(), "libraries": libraries}


def _own_version() -> str:
    from mtclust import __version__

    return __version__


def _encoded(value: Any, where: str, encoder: Encoder) -> Any:
    try:
        return encoder.encode(value, where)
    except RecursionError:
        raise ValueError(f"{where} cannot be saved: a value is nested too deeply or holds itself.") from None


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
        It predicts, clusters new tasks and shows itself as the one that was saved; scores may differ by rounding.
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
            model = decoder.decode(archive.manifest["model"])
            if type(model).__name__ not in ESTIMATORS:
                raise ValueError(f"it holds a {type(model).__name__} in the place of a model")
            extra = decoder.decode(archive.manifest["extra"])
        except ImportError:  # a task id of a type that a library brings which is not there
            raise
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
    if found == 1:
        raise ModelFileError(
            f"{os.fspath(path)!r} was saved by an earlier version of mtclust, whose files held its internals; fit the "
            "model again and save it."
        )
    if found not in _READ:
        raise ModelFileError(
            f"{os.fspath(path)!r} was saved by mtclust {manifest.get('mtclust')} in format {found!r}; this is mtclust "
            f"{_own_version()}, which reads formats up to {FORMAT_VERSION}. Load it with the version that saved it, or "
            "newer."
        )


def _words(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error).rstrip(".") or type(error).__name__
