"""Measuring: CPU and wall time in this process, memory and first fits in children that do nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from _scale_data import Mixture
from _tables import Rows

KEYS = ("part", "family", "rows", "tasks", "features", "clusters", "method", "repeat")
VALUES = ("cpu_seconds", "wall_seconds", "nmi", "objective", "extra_mb", "detail")
#: passes of which the median is taken: one alone is too short for the clock
_PASSES = 7


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


def one_pass(data: Mixture) -> Timed:
    """ΦW of all rows, the floor of every method that looks at the data once."""
    W = np.random.default_rng(0).standard_normal((data.X.shape[1], data.n_clusters))
    passes = [timed(lambda: [part @ W for part in data.parts] and None) for _ in range(_PASSES)]
    return Timed(
        None, *(float(np.median([getattr(p, t) for p in passes])) for t in ("cpu_seconds", "wall_seconds")), ""
    )


def child(*arguments: str, file: str = "_scale_child.py", **environment: str) -> dict[str, Any]:
    """What a script of this directory measured in a process of its own, bytecode kept as Python does by itself."""
    script = Path(__file__).with_name(file)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "mtclust-bytecode"))}
    result = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **kept, **environment},
    )  # fmt: skip
    if result.returncode:
        raise RuntimeError(f"{script.name} {' '.join(arguments)} failed:\n{result.stderr[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


class Runs:
    """Rows of all parts; a repeat is written when all its methods are done, so that ratios are taken side by side."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, KEYS, VALUES)

    def missing(self, part: str, key: dict[str, Any], methods: Iterable[str], repeat: int) -> bool:
        """Whether this repeat has still to be run."""
        wanted = {name: str(value) for name, value in {"part": part, **key, "repeat": repeat}.items()}
        mine = [row for row in self._rows.read() if all(row[name] == value for name, value in wanted.items())]
        return not set(methods) <= {row["method"] for row in mine}

    def add(self, part: str, key: dict[str, Any], repeat: int, found: dict[str, dict[str, Any]]) -> None:
        for method, values in found.items():
            row: dict[str, Any] = dict.fromkeys((*KEYS, *VALUES), "")
            self._rows.add(**row | {"part": part, **key, "method": method, "repeat": repeat} | values)

    def read(self) -> list[dict[str, str]]:
        """The last row of every key: an interruption between two rows of a repeat has it run again."""
        return list({tuple(row[name] for name in KEYS): row for row in self._rows.read()}.values())
