"""How much memory there is, and a clear error before more is taken."""

from __future__ import annotations

import os
from pathlib import Path

#: where the limits of control groups (containers, services, batch jobs) are, and which of them this process is in
_GROUPS = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")
#: names of limit, use and the entries of memory.stat that can be had back (files kept in memory), by version
_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_active_file", "total_inactive_file"))
_VERSION_2 = ("memory.max", "memory.current", ("active_file", "inactive_file"))
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


#: N × N matrices that the search holds for tasks alone, for shared features (and as many more where there are as many
#: features as rows), and for related tasks, beside one per task
_ALONE, _SHARED, _SHARED_BY_RANK, _RELATED = 3.0, 6.0, 12.0, 7.0
#: how many more are held while cluster sizes are chosen
_RELATED_SIZES_OPEN = 8.0
_SIZES_OPEN = {"independent": 0.0, "features": 4.0}
#: Gram matrices per task, matrices of the system of all tasks, and bytes per row for labels and orders
_GRAMS, _SYSTEMS, _PER_ROW = 10.0, 2.0, 48.0
#: largest system that is solved directly; rows in a block of a pass, in bytes; what every fit takes
_LARGEST_SYSTEM, _BLOCK, _ALWAYS = 1000, 16e6, 4e6
#: kernel matrices of the rows that settings are chosen on, and of all rows where labels of these are carried to them
_CHOOSING, _CARRIED = 8.0, 7.0


def bytes_with_kernels(
    n: int, m: int, method: str, *, n_kernels: int, rank: int, sizes_open: bool, chosen_on: int
) -> float:
    """Peak of a fit with kernel matrices beside X; found by measuring (``tests/test_memory.py``).

    ``method`` is "relationship", "features" or "independent", ``n_kernels`` the candidate widths, ``rank`` the number
    of features that DMTFC uses, ``chosen_on`` the rows that settings are chosen on.
    """
    if chosen_on < n:
        return 8.0 * (_CARRIED * n * n + _CHOOSING * chosen_on**2) + _ALWAYS
    search = {"independent": _ALONE, "features": _SHARED + _SHARED_BY_RANK * min(1.0, rank / n)}
    matrices = search.get(method, _RELATED + m) + (_SIZES_OPEN.get(method, _RELATED_SIZES_OPEN) if sizes_open else 0.0)
    return 8.0 * n * n * max(matrices, n_kernels + _ALONE - 1) + _ALWAYS


def bytes_with_features(n: int, m: int, r: int, method: str, *, sampled: int, held: float, chosen_on: int) -> float:
    """Peak of a fit with r explicit features beside X; found by measuring.

    ``sampled`` rows are gathered to be searched on, 0 if the search takes all rows or only those that settings are
    chosen on (``chosen_on``); ``held`` are the bytes of features that are kept, and ``n`` the rows that are here and
    not with the workers of a cluster.
    """
    system = 0 if method in ("features", "independent") else min(m * r, _LARGEST_SYSTEM)
    matrices = 8.0 * (_GRAMS * m * r * r + _SYSTEMS * system**2 + _CHOOSING * chosen_on**2)
    return held + 16.0 * sampled * r + min(_BLOCK, 2.0 * n * r) + matrices + _PER_ROW * n + _ALWAYS


def require_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Raise MemoryError if a fit would need more than there is, with the figure and what would make it fit."""
    available = available_memory()
    if available is not None and n_bytes > SHARE * available:
        raise MemoryError(
            f"{what} needs about {readable(n_bytes)}, but only {readable(available)} of memory are available. {way_out}"
        )
