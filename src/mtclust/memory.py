"""How much memory there is, and a clear error before more is taken."""

from __future__ import annotations

import os
from pathlib import Path

#: limits that containers put on a process, in bytes or "max"
_CONTAINER_LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
#: share of the available memory that a fit may take
SHARE = 0.9


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
    for limit, usage in _CONTAINER_LIMITS:
        try:
            return int(Path(limit).read_text()) - int(Path(usage).read_text())
        except (OSError, ValueError):
            continue
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


def require_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Raise MemoryError if a fit would need more than there is, with the figure and what would make it fit."""
    available = available_memory()
    if available is not None and n_bytes > SHARE * available:
        raise MemoryError(
            f"{what} needs about {readable(n_bytes)}, but only {readable(available)} of memory are available. {way_out}"
        )
