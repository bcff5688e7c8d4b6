"""A small set of times and scores, beside those of the last release: what became slower or worse?

    python benchmarks/watch.py                  compare; the exit code is 1 where something became slower or worse
    python benchmarks/watch.py --keep 0.2.0     keep the figures as those of a release

Times are in units of a fixed piece of work (k-means and eigenvalues) that is timed beside them, so that they mean the
same on fast and slow machines. One thread, compiled code warm, the fastest of three fits; scores are NMI, means over
tasks. Figures of releases are in results/watch/releases.csv.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

import _one_thread
from _scale_data import Cell, Mixture, draw
from _tables import markdown_table
from everyday import ESTIMATORS, digits, fit, timed
from mtclust.metrics import macro_nmi

FIELDS = ("release", "case", "time", "nmi")
#: a case is reported from here on: times vary by half between runs on a shared machine, scores hardly
SLOWER, WORSE = 2.0, 0.02
_REPEATS = 3


def cases() -> dict[str, tuple[str, Mixture]]:
    """Real and drawn data, equal and unequal sizes, few and many tasks, small and large."""
    data = {
        "digits": digits(12, 0),
        "digits of unequal sizes": digits((20, 16, 12, 8, 4), 0),
        "12 tasks × 12 rows": draw(Cell(144, 12, features=10, clusters=3), 0),
        "elongated clusters": draw(Cell(200, 3, family="elongated"), 0),
    }
    found = {f"{method}, {name}": (method, mixture) for name, mixture in data.items() for method in ESTIMATORS}
    return found | {"DMTRC, 30 000 rows": ("DMTRC", draw(Cell(30_000, 5), 0))}


def unit() -> float:
    """Seconds of the work that times are compared with."""
    rng = np.random.default_rng(0)
    rows, square = rng.standard_normal((4000, 20)), rng.standard_normal((300, 300))

    def work() -> None:
        KMeans(10, n_init=2, random_state=0).fit(rows)
        for _ in range(5):
            np.linalg.eigvalsh(square + square.T)

    return min(timed(work).cpu_seconds for _ in range(2 * _REPEATS))


def measure() -> dict[str, tuple[float, float]]:
    """Case → time in units, NMI."""
    found = {}
    for name, (method, data) in cases().items():
        runs = [timed(lambda method=method, data=data: fit(method, data, 0)) for _ in range(_REPEATS)]
        seconds = min(run.cpu_seconds for run in runs) / unit()
        found[name] = (seconds, macro_nmi(data.y, runs[0].result, data.tasks))
        print(f"{name}: {seconds:.1f}, {found[name][1]:.3f}", flush=True)
    return found


def last_release(path: Path) -> tuple[str, dict[str, tuple[float, float]]]:
    """Name and figures of the release that was kept last."""
    if not path.exists():
        return "none", {}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    release = rows[-1]["release"]
    return release, {row["case"]: (float(row["time"]), float(row["nmi"])) for row in rows if row["release"] == release}


def keep(path: Path, release: str, found: dict[str, tuple[float, float]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerows([release, name, f"{time:.2f}", f"{nmi:.4f}"] for name, (time, nmi) in found.items())


def compare(found: dict[str, tuple[float, float]], before: dict[str, tuple[float, float]], release: str) -> int:
    """Print both side by side; returns how many cases became slower or worse."""
    lines, bad = [], 0
    for name, (time, nmi) in found.items():
        old_time, old_nmi = before.get(name, (float("nan"), float("nan")))
        words = ["slower"] * (time > SLOWER * old_time) + ["worse"] * (nmi < old_nmi - WORSE)
        bad += bool(words)
        lines.append([name, f"{old_time:.1f}", f"{time:.1f}", f"{old_nmi:.3f}", f"{nmi:.3f}", " and ".join(words)])
    header = ["case", f"time, {release}", "time now", f"NMI, {release}", "NMI now", ""]
    print("\n".join(markdown_table(header, lines)))
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", metavar="RELEASE", help="keep the figures under this name")
    parser.add_argument("--file", type=Path, default=Path("results/watch/releases.csv"))
    options = parser.parse_args()
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    release, before = last_release(options.file)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure()
    bad = compare(found, before, release)
    if options.keep:
        keep(options.file, options.keep, found)
        return 0
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
