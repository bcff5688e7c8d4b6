"""One BLAS thread while we compute: the matrices are small, and results then do not depend on the number of cores."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # looking the libraries up takes milliseconds, once is enough
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

    return ThreadpoolController()


def one_blas_thread() -> Any:
    """A context in which BLAS uses one thread."""
    return _controller().limit(limits=1, user_api="blas")
