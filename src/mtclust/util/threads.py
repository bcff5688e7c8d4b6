"""One BLAS thread while we compute: the matrices are small, and results then do not depend on the number of cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _libraries() -> tuple[list[Any], list[Any]]:
    """The BLAS libraries whose number of threads is that of the process, and those where every thread has its own."""
    # looking the libraries up takes milliseconds, once is enough
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)

    found = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [library for library in found if getattr(library, "threading_layer", None) == "openmp"]
    return [library for library in found if library not in own], own


def _set(library: Any, n_threads: int) -> None:
    # newer versions of threadpoolctl let one Python thread change what is shared and ignore all others in silence
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


class _Shared:
    """What belongs to the process is set by whoever comes first, and restored by whoever leaves last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before: list[int] = []

    def enter(self, libraries: list[Any]) -> None:
        with self._lock:
            if self._inside == 0:
                self._before = _limited(libraries)
            self._inside += 1

    def leave(self, libraries: list[Any]) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _restore(libraries, self._before)


def _limited(libraries: list[Any]) -> list[int]:
    """Set one thread; the numbers there were before."""
    before = [library.get_num_threads() for library in libraries]
    for library in libraries:
        _set(library, 1)
    return before


def _restore(libraries: list[Any], before: list[int]) -> None:
    for library, n_threads in zip(libraries, before):
        _set(library, n_threads)


_SHARED = _Shared()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; contexts of several threads may overlap."""
    shared, own = _libraries()
    _SHARED.enter(shared)
    before = _limited(own)
    try:
        yield
    finally:
        _restore(own, before)
        _SHARED.leave(shared)
