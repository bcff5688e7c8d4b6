"""Measuring: CPU and wall time in this process; memory, imports and first fits in children that do nothing else.

_measure.py import MODULE                   seconds of an import
_measure.py first ESTIMATOR CELL            seconds of the first fit of a process, everything chosen by the model
_measure.py memory METHOD DIRECTORY         peak memory of a fit above the data, which lie in the directory
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Timed:
    """What a call returned, how long it took, and what it warned of."""

    result: Any
    cpu_seconds: float
    wall_seconds: float
    warned: str


def timed(call: Callable[[], Any]) -> Timed:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wall, cpu = time.perf_counter(), time.process_time()
        result = call()
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Timed(result, cpu, wall, " ".join(sorted({warning.category.__name__ for warning in caught})))


def child(*arguments: str) -> dict[str, Any]:
    """What this file measured as a process of its own, bytecode kept as Python does by itself."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "mtclust-bytecode"))}
    command = [sys.executable, __file__, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **kept})
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def _import(module: str) -> dict[str, Any]:
    found = timed(lambda: importlib.import_module(module))
    return {"cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds}


def _first(estimator: str, cell: str) -> dict[str, Any]:
    from _everyday_fits import fit, load

    data = load(cell, 0)
    found = timed(lambda: fit(estimator, data, 0))
    return {"cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds}


def _memory(method: str, directory: str) -> dict[str, Any]:
    import resource

    import numpy as np

    from _scale_data import Cell, Mixture, draw
    from scale import METHODS

    if method != "nothing":
        METHODS[method](draw(Cell(1000, 3), 0), 0)  # libraries and compiled code are no memory of the fit
    X, y, tasks, offsets = (np.load(Path(directory) / f"{name}.npy") for name in ("X", "y", "tasks", "offsets"))
    data = Mixture(X, y, tasks, offsets, int(y.max()) + 1)
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    if method != "nothing":
        METHODS[method](data, 0)
    # not ru_maxrss, which starts at the peak of the parent
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    return {"extra_mb": (peak - before) / 1e6}


if __name__ == "__main__":
    print(json.dumps({"import": _import, "first": _first, "memory": _memory}[sys.argv[1]](*sys.argv[2:])))
