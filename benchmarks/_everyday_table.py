"""From a table to its report in a new process: ``mtclust fit``, nothing said but the task column."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from _tables import Rows

#: the table of MTCLUST_DATA that is taken
NAME, TASK = "customers.csv", "shop"


def _made(path: Path) -> Path:
    """A small table, where a look is enough."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=120)
    lines = [f"{'abc'[k % 3]},{5 * kind[k] + rng.normal():.3f},{rng.normal():.3f}" for k in range(120)]
    path.write_text("\n".join(["shop,spent,age", *lines]) + "\n", encoding="utf-8")
    return path


def measure_report(rows: Rows, repeats: int, *, quick: bool) -> None:
    """Wall and CPU seconds of the command, the report written; once before, so that compiled code is there."""
    home = os.environ.get("MTCLUST_DATA")
    if home is None and not quick:
        print("report: MTCLUST_DATA does not say where the tables are; left out")
        return
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        table = _made(place / "made.csv") if quick else Path(str(home)) / "tables" / NAME
        for repeat in range(0 if quick else -1, repeats):
            if rows.has(part="report", case=table.name, draw=max(repeat, 0)):
                continue
            command = [sys.executable, "-m", "mtclust", "fit", str(table), "--task-column", TASK]
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*command, "--out", str(place / f"out{repeat}")], check=True, capture_output=True)
            wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            if repeat >= 0:
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                rows.add(
                    part="report", case=table.name, method="mtclust fit", draw=repeat, cpu_seconds=cpu,
                    wall_seconds=wall, nmi="", detail="",
                )  # fmt: skip
                print(f"report: {table.name}, {wall:.1f} s", flush=True)
