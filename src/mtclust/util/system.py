"""What the machine gives: optional packages, memory, and one thread of BLAS while we compute."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

#: where the limits of control groups (containers, services, batch jobs) are, and which of them this process is in
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
#: n × n matrices that any fit with kernel matrices of n rows holds at once, at least: the kernel, its scaled copy and
#: the system
KERNEL_MATRICES = 3


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


def available_memory() -> int | None:
    """Bytes this process may still take; None where the system does not tell."""
    known = [left for left in (_left_in_system(), *map(_left_in_group, _own_groups())) if left is not None]
    return min(known, default=None)


def _left_in_system() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _own_groups() -> list[Path]:
    """The control group of this process and all those around it (version 2 of control groups)."""
    try:
        lines = _OWN_GROUPS.read_text().splitlines()
    except OSError:
        return [_GROUPS]
    # inside a container the path may be that of the world outside; then the root is the container's own group
    own = [_GROUPS / line[3:].strip("/") for line in lines if line.startswith("0::")]
    return [group for path in own for group in (path, *path.parents) if group.is_relative_to(_GROUPS)]


def _left_in_group(group: Path) -> int | None:
    """What a group may still take: files that are kept in memory give way."""
    try:
        left = int((group / "memory.max").read_text()) - int((group / "memory.current").read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, left + sum(int(statistics.get(name, 0)) for name in ("active_file", "inactive_file")))
    except (OSError, ValueError):  # no such group here, or "max": no limit
        return None


def readable(n_bytes: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> readable(2_500_000_000)
    '2.5 GB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"


def require_kernel_memory(n_rows: int, way_out: str) -> None:
    """Raise MemoryError if the kernel matrices of so many rows cannot fit, with the figure and the way out."""
    need, available = 8.0 * KERNEL_MATRICES * n_rows**2, available_memory()
    if available is not None and need > available:
        raise MemoryError(
            f"fit with kernel matrices of {n_rows} rows needs at least {readable(need)}, but only "
            f"{readable(available)} of memory are available. {way_out}"
        )


@contextmanager
def memory_named(what: str) -> Iterator[None]:
    """Say of a MemoryError of a library what was being done, and what would take less."""
    try:
        yield
    except MemoryError as error:
        if "available" in str(error):  # ours
            raise
        available = available_memory()
        left = "" if available is None else f" ({readable(available)} are available)"
        raise MemoryError(
            f"{what} ran out of memory{left}: {str(error) or 'no details are known'}. Use fewer rows or columns, a "
            "smaller n_components, or fewer tasks at a time."
        ) from error


class _OneThread:
    """One thread for some libraries, from the first context that is entered to the last that is left."""

    def __init__(self, libraries: list[Any]) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._inside: set[object] = set()
        self._before: list[int] = []

    def enter(self, context: object) -> None:
        with self._lock:
            if not self._inside:
                self._before = [library.get_num_threads() for library in self._libraries]
            self._inside.add(context)  # from here on there is something to leave
            for library in self._libraries:
                _set_threads(library, 1)

    def leave(self, context: object) -> None:
        with self._lock:
            if self._inside == {context}:
                for library, n_threads in zip(self._libraries, self._before):
                    _set_threads(library, n_threads)
            self._inside.discard(context)


def _set_threads(library: Any, n_threads: int) -> None:
    # newer versions of threadpoolctl let one Python thread change what is shared and ignore all others in silence
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


@lru_cache(maxsize=1)
def _limits() -> tuple[_OneThread, Any]:
    """For the BLAS libraries whose number of threads is that of the process, and those where every thread has its own.

    Looking the libraries up takes milliseconds, once is enough.
    """
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
    from threadpoolctl import ThreadpoolController

    blas = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
    own = [library for library in blas if getattr(library, "threading_layer", None) == "openmp"]

    class OfThread(threading.local):
        def __init__(self) -> None:
            self.limit = _OneThread(own)

    return _OneThread([library for library in blas if library not in own]), OfThread()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; contexts of several threads may overlap.

    The matrices are small, and results then do not depend on the number of cores. However an interrupt falls, also on
    the way in or out, BLAS has its threads back afterwards: leaving twice is leaving once.
    """
    process, thread = _limits()
    context, limits = object(), (process, thread.limit)
    try:
        for limit in limits:
            limit.enter(context)
        yield
    finally:
        try:
            for limit in limits:
                limit.leave(context)
        finally:
            for limit in limits:
                limit.leave(context)
