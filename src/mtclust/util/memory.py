"""How much memory there is, and a clear error before more is taken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: where the limits of control groups (containers, services, batch jobs) are, and which of them this process is in
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
#: names of limit, use and the entries of memory.stat that can be had back (files kept in memory), by version
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_VERSION_2 = ("memory.max", "memory.current", ("active_file", "inactive_file"))
#: n × n matrices that any fit with kernel matrices of n rows holds at once, at least: the kernel, its scaled copy and
#: the system
KERNEL_MATRICES = 3


def available_memory() -> int | None:
    """Bytes this process may still take; None where the system does not tell."""
    found = [value for value in (_system_memory(), _container_memory()) if value is not None]
    return min(found) if found else None


def _system_memory() -> int | None:
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


def _container_memory() -> int | None:
    """The least that the control group of this process and all those around it leave."""
    try:
        entries = [line.split(":", 2) for line in _OWN_GROUPS.read_text().splitlines()]
    except OSError:
        entries = [["0", "", "/"]]
    found = []
    for _, controllers, path in entries:
        if controllers == "":
            root, names = _GROUPS, _VERSION_2
        elif "memory" in controllers.split(","):
            root, names = _GROUPS / "memory", _VERSION_1
        else:
            continue
        # inside a container the path may be that of the world outside; then the root is the container's own group
        own = root / path.strip("/")
        found += [_left_in(group, *names) for group in (own, *own.parents) if group.is_relative_to(root)]
    known = [left for left in found if left is not None]
    return min(known) if known else None


def _left_in(group: Path, limit: str, use: str, files: tuple[str, ...]) -> int | None:
    """What a group may still take: files that are kept in memory give way."""
    try:
        left = int((group / limit).read_text()) - int((group / use).read_text())
        statistics = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return max(0, left + sum(int(statistics.get(name, 0)) for name in files))
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
