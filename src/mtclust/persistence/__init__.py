"""Saving and loading fitted models: a zip of one JSON manifest and plain arrays; loading executes nothing."""

from typing import Any

__all__ = ["load", "save"]


def __getattr__(name: str) -> Any:
    """``load`` and ``save``, imported when they are asked for: the archive itself needs no estimators."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from mtclust.persistence import models

    return getattr(models, name)
