"""What the machine gives: optional packages, memory, and one thread of BLAS while we compute."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

#: where the limits of control groups (containers, services, batch jobs) are, and which of them this process is in
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")
#: n × n matrices that any fit with kernel matrices of n rows holds at once, at least: the kernel, its scaled copy and
#: the system
KERNEL_MATRICES = 3


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        needed = module.partition(".")[0]
        raise ImportError(f'{needed} is needed here; in a clone of mtclust: pip install ".[{extra}]"') from error


class _Later:
    """A package of an optional extra, imported when something of it is first used."""

    def __init__(self, module: str, extra: str) -> None:
        self._needed = module, extra

    def __getattr__(self, name: str) -> Any:
        return getattr(require(*self._needed), name)


#: tables are made of it, and models need none
pandas: Any = _Later("pandas", "cli")


def available_memory() -> int | None:
    """Bytes this process may still take; None where the system does not tell."""
    left, own = [], _GROUPS
    with suppress(OSError, KeyError):
        system = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
        left.append(1024 * int(system["MemAvailable:"]))
    with suppress(OSError):  # its group, and all those around it, in version 2 of control groups
        own = _GROUPS / _OWN_GROUP.read_text().rpartition("::")[2].strip().strip("/")
    for group in (own, *own.parents):
        with suppress(OSError, ValueError):  # no such group here, or "max": no limit
            limit, used = (int((group / name).read_text()) for name in ("memory.max", "memory.current"))
            held = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            # files that are kept in memory give way
            left.append(max(0, limit - used + sum(int(held.get(f"{kind}_file", 0)) for kind in ("active", "inactive"))))
    return min(left, default=None)


def require_kernel_memory(n_rows: int) -> None:
    """Raise MemoryError if the kernel matrices of so many rows cannot fit, with the figure and the way out."""
    need, available = 8.0 * KERNEL_MATRICES * n_rows**2, available_memory()
    if available is not None and need > available:
        raise MemoryError(
            f"fit with kernel matrices of {n_rows} rows needs at least {need / 1e9:.3g} GB, but only "
            f"{available / 1e9:.3g} GB of memory are available. Use fewer rows or, with rows to make features "
            'of, solver_options={"form": "primal"}.'
        )


@contextmanager
def memory_named(what: str) -> Iterator[None]:
    """Say of a MemoryError of a library what was being done, and what would take less."""
    try:
        yield
    except MemoryError as error:
        if "available" in str(error):  # ours
            raise
        raise MemoryError(
            f"{what} ran out of memory: {str(error) or 'no details are known'}. Use fewer rows or columns, a smaller "
            "n_components, or fewer tasks at a time."
        ) from error


_LOCK = threading.Lock()
#: contexts that are entered, and the number of threads of every library before the first of them
_inside: set[object] = set()
_before: list[int] = []


@lru_cache(maxsize=1)
def _blas() -> list[Any]:
    """The BLAS libraries; looking them up takes milliseconds."""
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be found)
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


def _set_threads(numbers: list[int]) -> None:
    for library, n_threads in zip(_blas(), numbers):
        # newer versions of threadpoolctl let one Python thread change what is shared and ignore all others in silence
        release = getattr(library, "clear_controlling_thread", lambda force: None)
        release(force=True)
        library.set_num_threads(n_threads)
        release(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread; contexts of several threads may overlap.

    The matrices are small, and results then do not depend on the number of cores.
    """
    context = object()
    try:
        with _LOCK:
            if not _inside:
                _before[:] = [library.get_num_threads() for library in _blas()]
            _inside.add(context)
            _set_threads([1] * len(_before))
        yield
    finally:
        with _LOCK:
            _inside.discard(context)
            if not _inside:
                _set_threads(_before)
