"""numba's ``njit`` with a cache of compiled code that may be missing, read-only, full or damaged.

numba refuses to compile where it finds no place for its cache, and fails where a cache cannot be read or written; here
the code is compiled for this process alone then, with a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from mtclust.util.warning import warn_user

_noted = False


class CacheWarning(UserWarning):
    """Compiled code cannot be kept for the next process."""


def _note(reason: object) -> None:
    global _noted
    if not _noted:
        _noted = True
        warn_user(
            f"numba cannot keep compiled code ({reason}): every new process compiles it again, which takes some "
            "seconds. Set the environment variable NUMBA_CACHE_DIR to a directory that can be written.",
            CacheWarning,
        )


class _ForgivingCache(FunctionCache):
    """A cache whose failures cost time, not the result, and that knows the files of the functions called.

    numba compiles these in, but looks for changes in the file of the calling function alone: without this, code of an
    earlier version would be used where a file that it calls has been replaced.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        stamps = [getattr(getattr(item, "_cache", None), "stamp", None) for item in called]
        self.stamp = (self._impl.locator.get_source_stamp(), *(stamp for stamp in stamps if stamp is not None))
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path, filename_base=self._impl.filename_base, source_stamp=self.stamp
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file can fail in any way while it is unpickled
            _note(error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:
            _note(error)


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, without the interpreter's lock, and keep the result if possible."""
    compiled: Any = numba.njit(nogil=True)(function)
    if hasattr(compiled, "enable_caching"):  # not under NUMBA_DISABLE_JIT
        try:
            compiled._cache = _ForgivingCache(function)
        except RuntimeError as error:
            _note(error)
    return compiled
