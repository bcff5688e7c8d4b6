"""What the paper's cutting planes cost on pendigits, Job 1: the two ways to find the weights of the pools.

    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py            3 draws (seeds 0 to 2)
    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py --times "0.2.0"    of another version, by name

RBF kernel of width 1/2, λ1 = λ2 = 2^-10, exact balance given, DMTFC with the 100 leading kernel PCA features, 25 cuts
from k-means labels. What stopped runs return is on the page of ``python -m paper reproduce pendigits --as-printed``.

Every finished run is in times.csv; an interrupted command goes on where it was. The table is times.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

import _one_thread  # noqa: F401
from _tables import Rows, write_markdown
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import DegenerateSolutionWarning
from paper.datasets import fetch_pendigits_tasks

METHODS = {"DMTRC": (DMTRC, {"coupling": "full"}), "DMTFC": (DMTFC, {"n_components": 100}), "DSTC": (DSTC, {})}
REDUCED = ("quadratic", "level")
CUTS = 25
#: cluster sizes are given exactly, as in the paper
SETTINGS = {"kernel": "rbf", "width": 0.5, "lambda1": 2.0**-10, "lambda2": 2.0**-10, "sizes": "balanced"}
KEYS, VALUES = ("method", "version", "draw"), ("seconds", "objective", "gap", "pool gap")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3, help="draws of the tasks, seeds 0, 1, ... (default 3)")
    parser.add_argument("--out", type=Path, default=Path("results/cutting_plane"))
    parser.add_argument("--times", metavar="VERSION", help="of the version that is on the path")
    options = parser.parse_args()
    rows = Rows(options.out / "times.csv", KEYS, VALUES)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)
        timed("DMTRC", "quadratic", 0)  # imports and compiled code
        for values in product(METHODS, [options.times] if options.times else REDUCED, range(options.draws)):
            key = dict(zip(KEYS, values))
            if not rows.has(**key):
                rows.add(**key, **timed(*values))
    write_report(pd.read_csv(rows.path), options.out / "times.md")


def timed(method: str, version: str, draw: int) -> dict[str, float]:
    X, _, tasks = fetch_pendigits_tasks(job=1, seed=draw).X_y_tasks
    estimator, own = METHODS[method]
    cuts = {"init": "k-means", "max_cuts": CUTS, "zero_tol": 0} | ({"reduced": version} if version in REDUCED else {})
    model = estimator(5, random_state=draw, solver="cutting-plane", solver_options=cuts, **SETTINGS, **own)
    began = time.process_time()
    model.fit(X, tasks=tasks)
    seconds, last = time.process_time() - began, model.history_[-1]
    share = max((entry["objective"] - entry["pool_bound"]) / entry["objective"] for entry in model.history_)
    return {"seconds": seconds, "objective": last["objective"], "gap": last["gap"], "pool gap": share}


def write_report(times: pd.DataFrame, path: Path) -> None:
    mean = times.groupby(["method", "version"])[["seconds", "objective", "gap", "pool gap"]].mean()
    lines = [
        [*names, f"{m['seconds']:.2f}", f"{m['objective']:.3g}", f"{m['gap']:.3g}", f"{m['pool gap']:.1g}"]
        for names, m in mean.iterrows()
    ]
    notes = (
        f"Job 1, 25 cuts from k-means labels, mean of {times['draw'].nunique()} draws: CPU seconds of the whole fit on "
        "one core; relaxed objective and its certified gap, which is all of it since the optimum is 0; the largest "
        "certified gap of the reduced problem over all cuts, as a share of the value (.001 is asked for)."
    )
    write_markdown(path, ["", "reduced", "CPU s", "objective", "gap", "gap on the pools"], lines, notes)


if __name__ == "__main__":
    main()
