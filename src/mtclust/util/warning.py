"""Warnings that point at the line of the user's which led to them."""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from importlib.util import find_spec

#: packages whose lines are not the user's: our own, and those that stand between the user and us
_BETWEEN = ("mtclust", "sklearn", "joblib", "numba", "dask", "distributed")


@cache
def _not_the_users() -> tuple[str, ...]:
    origins = [spec.origin for spec in map(find_spec, _BETWEEN) if spec is not None and spec.origin is not None]
    return ("<frozen importlib", *(os.path.dirname(origin) + os.sep for origin in origins))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn with the place outside the library that called it, however deep the warning comes from.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("be careful", UserWarning)
    >>> "_warnings.py" in caught[0].filename
    False
    """
    frame = sys._getframe()
    while frame.f_code.co_filename.startswith(_not_the_users()) and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        message,
        category,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
