"""What the scale benchmark measures, part by part; each adds the rows that are not there yet."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg as sla

from _scale_data import Cell, Mixture, draw
from _scale_measure import Runs, child, one_pass, timed
from _scale_methods import LAMBDA, METHODS, OURS_ONCE, REFERENCE, WIDTH, estimator, methods_for
from mtclust.choose.views import mean_distance_within
from mtclust.core.coupling import gain_matrix
from mtclust.core.kernels import Kernel, centre_kernel, squared_distances
from mtclust.core.labels import label_codes
from mtclust.metrics import macro_nmi

_TASKS_BY_ROWS = {10**3: (3, 10, 20), 5000: (3,), 10**4: (3, 20, 100), 10**5: (3, 10, 100), 10**6: (3, 10)}
GRID = [Cell(rows, tasks) for rows, numbers in _TASKS_BY_ROWS.items() for tasks in numbers]
ELONGATED = [
    Cell(rows, tasks, family="elongated") for rows, tasks in ((10**3, 3), (10**4, 20), (10**5, 10), (10**6, 10))
]
#: cells whose memory is measured: the large ones, and the one with spectral clustering
MEMORY = [cell for cell in GRID if cell.rows >= 10**5 or cell.rows == 5000]
_BASE = Cell(10**5, 10)
GROWTH = {
    "rows": [_BASE.with_size(rows=n) for n in (1000, 3000, 10**4, 30_000, 10**5, 300_000, 10**6)],
    "features": [_BASE.with_size(features=d) for d in (5, 10, 20, 50, 100, 200)],
    "tasks": [_BASE.with_size(tasks=m) for m in (1, 3, 10, 30, 100, 300, 1000)],
    "clusters": [_BASE.with_size(clusters=C) for C in (2, 5, 10, 20, 50)],
}
RANKS = (25, 50, 100, 200, 400, 800)
NYSTROEM = Cell(1500, 3)
FIRST_FITS = {
    "exact form, 1000 rows": ("dual", "1000"),
    "primal form, 1000 rows": ("primal", "1000"),
    "primal form, 40 000 rows": ("primal", "40000"),
}
IMPORTS = ("sklearn.cluster", "mtclust.estimators")
CORPORA = ("newsgroups", "sentiment")
NO_SIZE: dict[str, Any] = {"family": "", "rows": "", "tasks": "", "features": "", "clusters": ""}


def repeats_for(cell: Cell, repeats: int | None) -> int:
    """Short fits are measured more often, since they are the noisier ones."""
    return repeats or (7 if cell.rows <= 10**4 else 5 if cell.rows <= 10**5 else 3)


def warm_up(cells: Iterable[Cell] = (Cell(1000, 3), Cell(31_000, 3))) -> None:
    """Compile and load what the timed fits need: by default the search on all rows and the one on a sample."""
    for cell in cells:
        data = draw(cell, 0)
        for name in OURS_ONCE:
            METHODS[name](data, 0)


def time_cells(
    runs: Runs, part: str, cells: Iterable[Cell], methods: tuple[str, ...] | None, repeats: int | None
) -> None:
    """Every method once per draw, one after the other, so that load on the machine meets all of them alike."""
    for cell in cells:
        names = methods or tuple(methods_for(cell))
        for repeat in range(repeats_for(cell, repeats)):
            if not runs.missing(part, cell.key, names, repeat):
                continue
            data = draw(cell, repeat)
            floor = one_pass(data)
            found = {"one pass": {"cpu_seconds": floor.cpu_seconds, "wall_seconds": floor.wall_seconds}}
            for name in names:
                found[name] = _time(name, data, repeat)
            runs.add(part, cell.key, repeat, found)
            print(f"{part}: {cell}, draw {repeat}", flush=True)


def _time(name: str, data: Mixture, seed: int) -> dict[str, Any]:
    """Times and NMI, or what went wrong."""
    try:
        run = timed(lambda: METHODS[name](data, seed))
    except Exception as error:
        return {"detail": f"{type(error).__name__}: {error}"}
    score = macro_nmi(data.y, run.result, data.tasks)
    return {"cpu_seconds": run.cpu_seconds, "wall_seconds": run.wall_seconds, "nmi": score, "detail": run.warned}


def time_growth(runs: Runs, growth: dict[str, list[Cell]], repeats: int | None) -> None:
    cells = dict.fromkeys(cell for cells in growth.values() for cell in cells)
    time_cells(runs, "growth", cells, (REFERENCE, *OURS_ONCE), repeats or 3)


def measure_memory(runs: Runs, cells: Iterable[Cell], methods: tuple[str, ...] | None = None) -> None:
    """Every method in a child that reads the data from a file, as making them would leave a peak behind."""
    for cell in cells:
        wanted = ("nothing", *(methods or methods_for(cell)))
        names = [name for name in wanted if runs.missing("memory", cell.key, [name], 0)]
        if not names:
            continue
        with tempfile.TemporaryDirectory() as directory:
            data = draw(cell, 0)
            for array in ("X", "y", "tasks", "offsets"):
                np.save(Path(directory) / f"{array}.npy", getattr(data, array))
            del data
            for name in names:
                runs.add("memory", cell.key, 0, {name: child("memory", name, directory)})
        print(f"memory: {cell}", flush=True)


def measure_nystroem(runs: Runs, cell: Cell, ranks: Iterable[int], repeats: int) -> None:
    """DMTRC with an RBF kernel: Nyström features of several ranks against the exact kernel."""
    names = {"exact": None, **{f"rank {rank}": rank for rank in ranks}}
    for repeat in range(repeats):
        if not runs.missing("nystroem", cell.key, names, repeat):
            continue
        data = draw(cell, repeat)
        squared = squared_distances(data.X)
        K = Kernel("rbf", WIDTH * mean_distance_within(squared, np.array([0, len(squared)])))(data.X, data.X)
        centred = centre_kernel(K, data.offsets, centre=True).matrix
        found = {}
        for name, rank in names.items():
            form = "dual" if rank is None else "primal"
            model = estimator("DMTRC RBF", data.n_clusters, repeat, form, n_components=rank)
            run = timed(partial(model.fit, data.X, tasks=data.tasks))
            detail = ""
            if rank is not None:
                features = model._kept.features
                exact, phi = features.kernel(data.X, data.X), features(data.X)
                detail = f"{np.linalg.norm(phi @ phi.T - exact) / np.linalg.norm(exact):.6g}"
            found[name] = {
                "cpu_seconds": run.cpu_seconds, "wall_seconds": run.wall_seconds, "detail": detail,
                "nmi": macro_nmi(data.y, model.labels_, data.tasks),
                "objective": exact_objective(centred, data, model.labels_, model.task_covariance_),
            }  # fmt: skip
        runs.add("nystroem", cell.key, repeat, found)
        print(f"nystroem: draw {repeat}", flush=True)


def exact_objective(K: np.ndarray, data: Mixture, labels: np.ndarray, Omega: np.ndarray) -> float:
    """J of labels and Ω under the exact kernel: ½ tr(Yᵀ(K_Ω + Λ/2)⁻¹Y)."""
    gains = gain_matrix(Omega, LAMBDA, LAMBDA)[np.ix_(data.tasks, data.tasks)]
    codes = label_codes(labels, data.n_clusters)
    sizes = np.diff(data.offsets)[data.tasks]
    return 0.5 * float(np.sum(codes * sla.solve(gains * K + np.diag(sizes / 2), codes, assume_a="pos")))


def measure_starts(runs: Runs, repeats: int, fits: Iterable[str] = FIRST_FITS, cold: bool = True) -> None:
    """Imports, and the first fit of a process: with nothing compiled yet, and with what an earlier one has left."""
    for repeat in range(repeats):
        if runs.missing("import", NO_SIZE, IMPORTS, repeat):
            runs.add("import", NO_SIZE, repeat, {module: child("import", module) for module in IMPORTS})
        for name in fits:
            ways = [f"{way}: {name}" for way in (("cold", "warm") if cold else ("warm",))]
            if not runs.missing("first fit", NO_SIZE, ways, repeat):
                continue
            with tempfile.TemporaryDirectory() as directory:
                cache = {"NUMBA_CACHE_DIR": directory} if cold else {}
                runs.add(
                    "first fit", NO_SIZE, repeat, {way: child("first", *FIRST_FITS[name], **cache) for way in ways}
                )
            print(f"first fit: {name}, repeat {repeat}", flush=True)


def measure_text(runs: Runs, repeats: int) -> None:
    """Whole corpora, if they are at hand: each fit in a child, for its memory."""
    if not os.environ.get("MTCLUST_DATA"):
        print("text: skipped, MTCLUST_DATA is not set")
        return
    for repeat in range(repeats):
        for corpus in CORPORA:
            names = ("KMeans (n_init=1)", "DSTC", "DMTRC")
            key = {**NO_SIZE, "family": corpus}
            if not runs.missing("text", key, names, repeat):
                continue
            found = {name: child("text", corpus, name) for name in names}
            runs.add("text", key, repeat, found)
            print(f"text: {corpus}, repeat {repeat}", flush=True)
