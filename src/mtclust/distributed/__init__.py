"""Fitting rows that lie in a Dask collection: the steps that need every row run where the rows are.

``is_dask`` is all that estimators need at import; everything else here, and Dask itself, is imported on first use.
"""

from __future__ import annotations

from typing import Any

_PACKAGES = ("dask", "dask_expr")


def is_dask(*collections: Any) -> bool:
    """Whether any of these is a Dask array, data frame or series; does not import Dask.

    Examples
    --------
    >>> is_dask([1, 2], None)
    False
    """
    return any(type(item).__module__.partition(".")[0] in _PACKAGES for item in collections)
