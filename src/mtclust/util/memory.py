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


#: k × k matrices that are held where the settings of k rows are chosen and sizes are open: kernels, and the problem of
#: every candidate with its system. Some, so many more per kernel that competes, and per kernel so many that the tasks
#: share: (constant, per kernel, per kernel and 1/m)
_SIZES_OPEN = {"relationship": (42.0, 7.0, 0.0), "features": (41.0, 0.7, 4.6), "independent": (7.0, 0.3, 9.0)}
#: and where D is learned of several tasks, which are then searched as one as well
_AS_ONE_TASK = {"relationship": 0.0, "features": 17.0, "independent": 0.0}
#: where only the kernel is open, and where nothing is: the judge's kernels, and one search. DMTFC holds more where it
#: has as many features as rows
_KERNEL_OPEN = {"relationship": 20.5, "features": 6.0, "independent": 7.5}
_GIVEN = {"relationship": 10.5, "features": 7.3, "independent": 7.5}
_BY_RANK = 27.0
#: matrices of all rows where labels of those that settings were chosen on are carried to them
_CARRIED = 3.0
#: what of the choice is held to the end
_KEPT = 0.65
#: Gram matrices per task, matrices of the system of all tasks, and bytes per row for labels and orders
_GRAMS, _SYSTEMS, _PER_ROW = 10.0, 2.0, 48.0
#: up to this many rows a fit keeps the probabilities and outlier scores of its rows, which take so many bytes each
STORED_ROWS, _STORED_PER_ROW = 20_000, 450.0
#: largest system that is solved directly; rows in a block of a pass, in bytes; what every fit takes
_LARGEST_SYSTEM, _BLOCK, _ALWAYS = 1000, 16e6, 3e6


def _choosing(k: int, m: int, method: str, n_kernels: int, sizes_open: bool, rank: int) -> float:
    """Peak of choosing settings on k rows of m tasks, and of what is held of them."""
    if sizes_open:
        constant, each, shared = _SIZES_OPEN[method]
        return 8.0 * k * k * (constant + n_kernels * (each + shared / m) + _AS_ONE_TASK[method] * (m > 1))
    matrices = (_KERNEL_OPEN if n_kernels > 1 else _GIVEN)[method]
    if method == "features":
        matrices += (_BY_RANK + (m if n_kernels > 1 else 0)) * min(1.0, rank / k)
    return 8.0 * k * k * matrices


def bytes_with_kernels(
    n: int, m: int, method: str, *, n_kernels: int, rank: int, sizes_open: bool, chosen_on: int
) -> float:
    """Peak of a fit with kernel matrices beside X; found by measuring (``tests/test_memory.py``).

    ``method`` is "relationship", "features" or "independent", ``n_kernels`` how many kernels compete, ``rank`` the
    number of features that DMTFC uses, ``chosen_on`` the rows that settings are chosen on. Below about 10 MB libraries
    take more than the matrices do, and what is said is too much.
    """
    carried = 8.0 * _CARRIED * n * n if chosen_on < n else 0.0
    return _choosing(chosen_on, m, method, n_kernels, sizes_open, rank) + carried + _ALWAYS


def bytes_with_features(
    n: int, m: int, r: int, method: str, *, sampled: int, held: float, chosen_on: int, n_kernels: int, sizes_open: bool
) -> float:
    """Peak of a fit with r explicit features beside X; found by measuring.

    ``sampled`` rows are gathered to be searched on, 0 if the search takes all rows or only those that settings are
    chosen on (``chosen_on``); ``held`` are the bytes of features that are kept, ``n`` the rows that are here and not
    with the workers of a cluster, ``n_kernels`` how many kernels compete.
    """
    choosing = _choosing(chosen_on, m, method, n_kernels, sizes_open, min(r, chosen_on))
    system = 0 if method in ("features", "independent") else min(m * r, _LARGEST_SYSTEM)
    per_row = _PER_ROW + (_STORED_PER_ROW if n <= STORED_ROWS else 0.0)
    passes = held + 16.0 * sampled * r + min(_BLOCK, 2.0 * n * r) + 8.0 * (_GRAMS * m * r * r + _SYSTEMS * system**2)
    return max(choosing, _KEPT * choosing + passes + per_row * n) + _ALWAYS


def require_memory(n_bytes: float, what: str, way_out: str) -> None:
    """Raise MemoryError if a fit would need more than there is, with the figure and what would make it fit."""
    available = available_memory()
    if available is not None and n_bytes > SHARE * available:
        raise MemoryError(
            f"{what} needs about {readable(n_bytes)}, but only {readable(available)} of memory are available. {way_out}"
        )
