"""What a fit costs: everyday tables, growth to a million rows, everything given, memory, a new process, a report.

    python benchmarks/everyday.py                                     all of it
    python benchmarks/everyday.py --parts sizes given --draws 1       some parts, one draw
    python benchmarks/everyday.py --most-rows 3000                    no larger tables
    python benchmarks/everyday.py --parts growth --case 1000000       one table (or all whose name has these words)
    MTCLUST_DATA=… python benchmarks/everyday.py --parts report       from customers.csv to its report
    python benchmarks/everyday.py --quick --out /tmp/everyday         a look at everything in small

One process and one thread, compiled code warm; methods run one after the other on the same draw, medians over draws. In
"sizes", "growth" and "tasks" only the number of clusters is given, in "given" and "memory" everything: linear kernel,
λ, sizes, coupling. "growth" and "tasks" have sizes 10 % below and above those at which something changes in the fit.
Other methods run task by task. Memory is the peak above what is resident before the fit; it is measured where there
is /proc. Finished fits are kept and an interrupted run goes on: remove runs.csv to measure anew.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import _one_thread
from _scale_data import Cell, Mixture, draw
from _tables import Rows, made_by, markdown_table
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks
from mtclust.metrics import macro_nmi

PARTS = ("starts", "report", "sizes", "growth", "tasks", "given", "memory")
KEYS = ("part", "case", "method", "draw")
VALUES = ("cpu_seconds", "wall_seconds", "nmi", "detail")
ESTIMATORS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}
CELLS = {
    "300 rows, 3 tasks": Cell(300, 3),
    "1 000 rows, 3 tasks": Cell(1000, 3),
    "1 000 rows, 10 tasks, elongated, d = 50": Cell(1000, 10, features=50, family="elongated"),
    "10 000 rows, 10 tasks, elongated, d = 50": Cell(10_000, 10, features=50, family="elongated"),
}
OTHERS: dict[str, Callable[..., Any]] = {
    "KMeans()": KMeans,
    "KMeans(n_init=1)": partial(KMeans, n_init=1),
    "KMeans(n_init=10)": partial(KMeans, n_init=10),
    "GaussianMixture()": GaussianMixture,
    "SpectralClustering()": partial(SpectralClustering, affinity="nearest_neighbors"),
}
QUICK = {"90 rows, 3 tasks": Cell(90, 3, features=5, clusters=3)}
#: rows of each digit in a task: real data beside the mixtures
DIGITS = {"digits, 300 rows, 3 tasks": 20, "digits, 870 rows, 3 tasks": 58}
GROWTH = {
    str(rows): Cell(rows, 10)
    for rows in (120, 300, 540, 660, 800, 1000, 1350, 1650, 10**4, 18_000, 22_000, 10**5, 10**6)
}
MANY = {
    f"{m} tasks × {rows} rows": Cell(m * rows, m, features=10, clusters=3)
    for m, rows in ((30, 12), (36, 25), (44, 25), (90, 20), (110, 20), (300, 30), (2000, 10))
}
GIVEN = {str(cell): cell for rows, m in ((10**3, 3), (10**4, 20), (10**5, 10), (10**6, 10))
         for cell in (Cell(rows, m), Cell(rows, m, family="elongated"))}  # fmt: skip
#: what can be given: λ relative to the kernel, which the estimators scale to unit mean diagonal
SETTINGS = {"kernel": "linear", "lambda1": 2.0**-6, "lambda2": 2.0**-6, "sizes": "balanced", "n_init": 1}
#: the table of MTCLUST_DATA whose report is made
REPORTED, TASK = "customers.csv", "shop"


def digits(rows_per_class: int | tuple[int, ...], seed: int) -> Mixture:
    """Three tasks of five digits."""
    X, y, tasks = load_digits_tasks(rows_per_class=rows_per_class, seed=seed).X_y_tasks
    offsets = np.searchsorted(tasks, np.arange(4))
    return Mixture(X, y, tasks, offsets, len(np.unique(y)))


def load(case: str, seed: int) -> Mixture:
    """A draw of one of the sizes, or of the digits."""
    return digits(DIGITS[case], seed) if case in DIGITS else draw((CELLS | QUICK | GROWTH | MANY | GIVEN)[case], seed)


def fit(method: str, data: Mixture, seed: int) -> NDArray[Any]:
    """Labels by an estimator with nothing but the number of clusters, one that is given everything, or KMeans."""
    if method in OTHERS:
        return np.concatenate([OTHERS[method](data.n_clusters, random_state=seed).fit_predict(x) for x in data.parts])
    name, _, given = method.partition(", ")
    settings: dict[str, Any] = dict(SETTINGS) if given else {}
    settings |= {"coupling": "full"} if given and name == "DMTRC" else {}
    return ESTIMATORS[name](data.n_clusters, random_state=seed, **settings).fit(data.X, tasks=data.tasks).labels_


class Timed(NamedTuple):
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


def memory_of(method: str, case: str) -> float:
    """MB of peak resident memory above what is resident before the fit; libraries and compiled code are no part."""
    fit(method, draw(Cell(1000, 3), 0), 0)
    data = load(case, 0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    fit(method, data, 0)
    return (int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024 - before) / 1e6


def child(code: str) -> float:
    """The number that some lines print in a new process, bytecode kept as Python does by itself."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "mtclust-bytecode"))}
    command = [sys.executable, "-c", f"import sys, time\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{code}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **kept})
    return float(done.stdout.splitlines()[-1])


def clocked(line: str, before: str = "") -> str:
    return f"{before}\nbegun = time.perf_counter()\n{line}\nprint(time.perf_counter() - begun)"


def starts(case: str) -> dict[str, Callable[[], dict[str, Any]]]:
    """Imports, and the first fit of a new process with what earlier ones have compiled."""
    first = clocked(f"fit('DMTRC', load({case!r}, 0), 0)", "from everyday import fit, load")
    codes = {f"import {name}": clocked(f"import {name}") for name in ("sklearn.cluster", "mtclust.estimators")}
    codes["first fit"] = first
    return {name: lambda code=code: {"wall_seconds": child(code)} for name, code in codes.items()}


def reported(table: Path) -> dict[str, Any]:
    """The command on a table, the report written."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "mtclust", "fit", str(table), "--task-column", TASK, "--out", f"{out}/out"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall = timed(lambda: subprocess.run(command, check=True, capture_output=True)).wall_seconds
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "wall_seconds": wall}


def fitted(method: str, case: str, seed: int) -> dict[str, Any]:
    data = load(case, seed)
    found = timed(lambda: fit(method, data, seed))
    values = {"cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds, "detail": found.warned}
    return values | {"nmi": macro_nmi(data.y, found.result, data.tasks)}


def plan(quick: bool, most_rows: int, draws: int) -> dict[tuple[str, str, str, int], Callable[[], dict[str, Any]]]:
    """Part, case, method and draw → how it is measured."""
    found: dict[tuple[str, str, str, int], Callable[[], dict[str, Any]]] = {}
    own, case = tuple(f"{name}, all given" for name in ESTIMATORS), next(iter(QUICK if quick else CELLS))
    parts = {
        "sizes": ([*CELLS, *DIGITS], ("KMeans()", "GaussianMixture()", "SpectralClustering()", *ESTIMATORS)),
        "growth": ([*GROWTH], ("KMeans()", "KMeans(n_init=10)", "GaussianMixture()", "DMTRC")),
        "tasks": ([*MANY], ("KMeans()", "KMeans(n_init=10)", "DMTRC", "DMTFC", "DSTC")),
        "given": ([*GIVEN], ("KMeans(n_init=1)", "KMeans(n_init=10)", *own)),
    }
    for name, measure in starts(case).items():
        found |= {("starts", name, "", k): measure for k in range(draws)}
    home = os.environ.get("MTCLUST_DATA")
    if home is not None and not quick:
        table = Path(home) / "tables" / REPORTED
        found |= {("report", table.name, "mtclust fit", k): partial(reported, table) for k in range(draws)}
    for part, (cases, methods) in parts.items():
        kept = [*QUICK] if quick else [name for name in cases if name in DIGITS or rows_of(name) <= most_rows]
        found |= {
            (part, name, method, seed): partial(fitted, method, name, seed)
            for name in kept for seed in range(draws) for method in methods
        }  # fmt: skip
    for name in [*QUICK] if quick else [name for name in GIVEN if 10**5 <= rows_of(name) <= most_rows]:
        for method in ("KMeans(n_init=1)", "DMTRC", own[0]) if Path("/proc/self/clear_refs").exists() else ():
            code = f"from everyday import memory_of\nprint(memory_of({method!r}, {name!r}))"
            found["memory", name, method, 0] = lambda code=code: {"detail": child(code)}
    return found


def rows_of(case: str) -> int:
    return (CELLS | GROWTH | MANY | GIVEN)[case].rows


def write_report(rows: list[dict[str, str]], out: Path) -> None:
    """A table per part: seconds and NMI of every method, medians over draws."""
    frame = pd.DataFrame(rows).replace("", np.nan)
    page = [made_by(), "", (__doc__ or "").split("\n\n")[2].replace("\n", " "), ""]
    for part, own in frame.groupby("part", sort=False):
        names = list(dict.fromkeys(own["method"].fillna("")))
        lines = []
        for case, mine in own.groupby("case", sort=False):
            cells = [_cell(part, mine[mine["method"].fillna("") == name]) for name in names]
            lines.append([case, str(mine["draw"].nunique()), *cells])
        page += [f"## {str(part).capitalize()}", "", *markdown_table(["case", "draws", *names], lines), ""]
    (out / "table.md").write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    print((out / "table.md").read_text(encoding="utf-8"))


def _cell(part: Any, own: pd.DataFrame) -> str:
    if part == "memory":
        return f"{own['detail'].astype(float).median():.1f} MB"
    cpu, wall, nmi = (own[name].astype(float).median() for name in ("cpu_seconds", "wall_seconds", "nmi"))
    return f"{wall:.2f} s wall" if part in ("starts", "report") else f"{cpu:.3f} s, NMI {nmi:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="everything in small")
    parser.add_argument("--parts", nargs="+", choices=PARTS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=10**6)
    parser.add_argument("--case", default="")
    parser.add_argument("--out", type=Path, default=Path("results/everyday"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        for cell in () if options.quick else (Cell(100, 2), Cell(3000, 2)):
            for method in ESTIMATORS:
                fit(method, draw(cell, 0), 0)  # compiled code is loaded before the clock starts
        for key, measure in plan(options.quick, options.most_rows, 1 if options.quick else options.draws).items():
            named = dict(zip(KEYS, key))
            if key[0] in (options.parts or key) and options.case in key[1] and not rows.has(**named):
                rows.add(**dict.fromkeys(VALUES, "") | named | measure())
                print(*key, flush=True)
    write_report(rows.read(), options.out)


if __name__ == "__main__":
    main()
