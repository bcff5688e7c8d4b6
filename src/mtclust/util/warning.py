"""Warnings that point at the line of the user's which led to them."""

from __future__ import annotations

import sys
import warnings
from typing import Any

#: packages whose lines are not the user's: our own, and those that stand between the user and us
_BETWEEN = {"mtclust", "importlib", "sklearn", "joblib", "numba", "dask", "distributed"}


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the place outside the library that called it, however deep the warning comes from.

    The package that calls this function is not the user's either.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("be careful", UserWarning)
    >>> "warning.py" in caught[0].filename
    False
    """
    frame = sys._getframe(1)
    passed = _BETWEEN | {_package(frame)}
    while _package(frame) in passed and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _package(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
