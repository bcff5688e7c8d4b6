"""Time, memory and quality from a thousand to a million rows, against scikit-learn's clusterers on the same data.

    python benchmarks/scale.py                                 all of it
    python benchmarks/scale.py --quick --out /tmp/scale        a look at everything in small
    python benchmarks/scale.py --parts grid --rows 1000000     one part, some sizes

One process and one thread. Everything that our models could choose is given. Every method is run once per draw of the
data, one after the other, and ratios are taken within a draw, so that other load on the machine meets all methods
alike; medians over draws. Finished fits are kept and an interrupted run goes on: remove runs.csv to measure anew.
Memory is measured where there is /proc. Writes runs.csv and table.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.metrics import pairwise_distances
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import _one_thread
from _measure import child, timed
from _scale_data import Cell, Mixture, draw
from _tables import Rows, write_markdown
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.metrics import macro_nmi

KEYS = ("part", "family", "rows", "tasks", "method", "draw")
VALUES = ("cpu_seconds", "nmi", "extra_mb", "detail")
PARTS = ("memory", "grid")
_TASKS_BY_ROWS = {10**3: (3, 10, 20), 5000: (3,), 10**4: (3, 20, 100), 10**5: (3, 10, 100), 10**6: (3, 10)}
_ELONGATED = ((10**3, 3), (10**4, 20), (10**5, 10), (10**6, 10))
GRID = [Cell(rows, tasks) for rows, numbers in _TASKS_BY_ROWS.items() for tasks in numbers]
GRID += [Cell(rows, tasks, family="elongated") for rows, tasks in _ELONGATED]
QUICK = [Cell(1000, 3), Cell(1000, 3, family="elongated")]
#: methods with n × n matrices, and RBF kernels, run at this many rows only
ROWS_OF_PAIRS = 5000
#: relative to the kernel, which the estimators scale to unit mean diagonal
LAMBDA = 2.0**-6
#: of the RBF kernels, ours and spectral clustering's, in units of the mean distance between two rows
WIDTH = 0.5
_DISTANCE_ROWS = 500
REFERENCE, SPECTRAL = "KMeans (n_init=1)", "SpectralClustering"
ESTIMATORS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}
OURS = (*(f"{name} (n_init=1)" for name in ESTIMATORS), *ESTIMATORS)
OURS_RBF = tuple(f"{name} RBF" for name in OURS)


def _ours(name: str, data: Mixture, seed: int) -> NDArray[np.int64]:
    """One of our three with everything fixed that could be chosen; ``name`` as in the table."""
    kind = name.split()[0]
    settings: dict[str, Any] = {"kernel": "rbf", "width": WIDTH} if "RBF" in name else {"kernel": "linear"}
    settings |= {"n_init": 1} if "n_init=1" in name else {}
    settings |= {"coupling": "full"} if kind == "DMTRC" else {}
    settings |= {"sizes": "balanced", "solver_options": {"form": "primal"}}
    model = ESTIMATORS[kind](data.n_clusters, lambda1=LAMBDA, lambda2=LAMBDA, random_state=seed, **settings)
    return model.fit(data.X, tasks=data.tasks).labels_


def _task_by_task(make: Callable[[int, int], Any], data: Mixture, seed: int) -> NDArray[np.int64]:
    return np.concatenate([make(data.n_clusters, seed).fit_predict(part) for part in data.parts])


def _spectral(data: Mixture, seed: int) -> NDArray[np.int64]:
    labels = []
    for part in data.parts:
        few = part[:: max(1, len(part) // _DISTANCE_ROWS)]
        sigma = WIDTH * pairwise_distances(few).sum() / (len(few) * (len(few) - 1))
        model = SpectralClustering(data.n_clusters, gamma=0.5 / sigma**2, random_state=seed)
        labels.append(model.fit_predict(part))
    return np.concatenate(labels)


METHODS: dict[str, Callable[[Mixture, int], NDArray[np.int64]]] = {
    REFERENCE: partial(_task_by_task, lambda C, seed: KMeans(C, n_init=1, random_state=seed)),
    **{name: partial(_ours, name) for name in (*OURS, *OURS_RBF)},
    "KMeans (n_init=10)": partial(_task_by_task, lambda C, seed: KMeans(C, n_init=10, random_state=seed)),
    "MiniBatchKMeans": partial(_task_by_task, lambda C, seed: MiniBatchKMeans(C, n_init=3, random_state=seed)),
    "GaussianMixture": partial(_task_by_task, lambda C, seed: GaussianMixture(C, random_state=seed)),
    SPECTRAL: _spectral,
}


def methods_for(cell: Cell) -> list[str]:
    few = cell.rows == ROWS_OF_PAIRS
    return [name for name in METHODS if few or name not in (*OURS_RBF, SPECTRAL)]


def missing(rows: Rows, part: str, cell: Cell, methods: list[str], seed: int) -> list[str]:
    size = {"family": cell.family, "rows": cell.rows, "tasks": cell.tasks}
    return [name for name in methods if not rows.has(part=part, method=name, draw=seed, **size)]


def add(rows: Rows, part: str, cell: Cell, method: str, seed: int, values: dict[str, Any]) -> None:
    size = {"family": cell.family, "rows": cell.rows, "tasks": cell.tasks}
    rows.add(**dict.fromkeys(VALUES, "") | {"part": part, **size, "method": method, "draw": seed} | values)


def measure_grid(rows: Rows, cells: list[Cell], repeats: int | None) -> None:
    for cell in cells:
        # short fits are measured more often, since they are the noisier ones
        for seed in range(repeats or (7 if cell.rows <= 10**4 else 5 if cell.rows <= 10**5 else 3)):
            names = missing(rows, "grid", cell, methods_for(cell), seed)
            data = draw(cell, seed) if names else None
            for name in names:
                try:
                    run = timed(lambda name=name, data=data, seed=seed: METHODS[name](data, seed))
                except Exception as error:  # what went wrong is a row, too
                    add(rows, "grid", cell, name, seed, {"detail": f"{type(error).__name__}: {error}"})
                    continue
                score = macro_nmi(data.y, run.result, data.tasks)
                values = {"cpu_seconds": run.cpu_seconds, "nmi": score, "detail": run.warned}
                add(rows, "grid", cell, name, seed, values)
            print(f"grid: {cell}, draw {seed}", flush=True)


def measure_memory(rows: Rows, cells: list[Cell], methods: list[str] | None = None) -> None:
    """Every method in a child that reads the data from a file, as making them would leave a peak behind."""
    for cell in cells:
        names = missing(rows, "memory", cell, ["nothing", *(methods or methods_for(cell))], 0)
        with tempfile.TemporaryDirectory() as directory:
            data = draw(cell, 0)
            for array in ("X", "y", "tasks", "offsets"):
                np.save(Path(directory) / f"{array}.npy", getattr(data, array))
            del data
            for name in names:
                add(rows, "memory", cell, name, 0, child("memory", name, directory))
        print(f"memory: {cell}", flush=True)


_NOTES = (
    f"Times are CPU seconds on one thread, medians over draws, relative to {REFERENCE} on the same draw; in brackets "
    "NMI within a task, mean over tasks and draws. d = 20, C = 5, rows sorted by task. Ours: linear kernel, λ₁ = λ₂ "
    f"= {LAMBDA:g}, balanced sizes, full coupling (DMTRC), n_init as said or the default; RBF: width {WIDTH:g}, "
    f"Nyström features of default rank. The others task by task, times summed; {SPECTRAL} with an RBF affinity of "
    "the same width. Isotropic mixtures of equal variance are what k-means assumes; in the elongated family one "
    "direction, shared by all clusters, has three times the spread and says nothing about them. Our methods are "
    "told that clusters are equally large. Memory: MB of peak resident memory less what is resident before the fit, "
    "when the data are read and a small fit has loaded libraries and compiled code; “nothing”: what is shown where "
    "no fit is run."
)


def write_report(rows: list[dict[str, str]], path: Path) -> None:
    """A line per part, size and method."""
    frame = pd.DataFrame(rows)
    numbers = ["rows", "tasks", "draw", "cpu_seconds", "nmi", "extra_mb"]
    frame[numbers] = frame[numbers].apply(pd.to_numeric)
    size = ["family", "rows", "tasks"]
    reference = frame[(frame["part"] == "grid") & (frame["method"] == REFERENCE)].set_index([*size, "draw"])
    frame = frame.join(reference["cpu_seconds"].rename("reference"), on=[*size, "draw"])
    frame["ratio"] = frame["cpu_seconds"] / frame["reference"]
    lines = []
    for (family, n, m, method), own in frame.groupby([*size, "method"], sort=False):
        time, ratio, extra = own["cpu_seconds"].median(), own["ratio"].median(), own["extra_mb"].median()
        cells = [f"{time:.3g}", f"{ratio:.2f} ({own['nmi'].mean():.3f})"] if time == time else ["", ""]
        memory = [f"{extra:.1f}", f"{extra / (n * 20 * 8 / 1e6):.2f}"] if extra == extra else ["", ""]
        failed = own["detail"][own["part"].eq("grid") & own["cpu_seconds"].isna()]
        lines.append([family, f"{n:,}", m, method, *cells, *memory, " ".join(failed)])
    header = ["family", "rows", "tasks", "method", "CPU s", "× k-means (NMI)", "extra MB", "× data", "failed"]
    write_markdown(path, header, lines, _NOTES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="everything in small")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, help="only the sizes with this many rows")
    parser.add_argument("--repeats", type=int, help="draws per size; by default 7, 5 or 3, fewer for larger data")
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    cells = [cell for cell in (QUICK if options.quick else GRID) if options.rows in (None, cell.rows)]
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        if "memory" in options.parts and Path("/proc/self/status").exists():  # while this process is small
            large = [cell for cell in GRID if cell in cells and cell.rows >= ROWS_OF_PAIRS and cell.rows != 10**4]
            measure_memory(rows, QUICK[:1] if options.quick else large, list(OURS[:1]) if options.quick else None)
        if "grid" in options.parts:
            for cell in () if options.quick else (Cell(1000, 3), Cell(31_000, 3)):
                for name in OURS[:3]:
                    METHODS[name](draw(cell, 0), 0)  # compiled code is loaded before the clock starts
            measure_grid(rows, cells, 1 if options.quick else options.repeats)
    write_report(rows.read(), options.out / "table.md")


if __name__ == "__main__":
    main()
