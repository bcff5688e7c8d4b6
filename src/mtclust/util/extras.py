"""Optional dependencies: a missing one is named together with the extra that brings it."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra, or say how to install it.

    Examples
    --------
    >>> require("a_module_that_is_not_there", "plot")
    Traceback (most recent call last):
        ...
    ImportError: a_module_that_is_not_there is needed here; in a clone of mtclust: pip install ".[plot]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        message = f'{package} is needed here; in a clone of mtclust: pip install ".[{extra}]"'
        raise ImportError(message) from error
