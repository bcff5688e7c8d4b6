"""The mathematics: plain functions and small classes on arrays, in the paper's letters."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: real numbers; whole ones, such as sizes and positions; and those that are the clusters of rows
Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Labels = Integers


def __getattr__(name: str) -> Any:
    """``core.compiled``, imported when it is first needed: importing numba takes a while."""
    if name != "compiled":
        raise AttributeError(f"module 'mtclust.core' has no attribute {name!r}")
    return import_module("mtclust.core.compiled")
