"""The paper's cutting planes on pendigits, Jobs 1 to 3: NMI after 0, 5, 10 and 25 cuts, and of the start alone.

    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py            3 draws (seeds 0 to 2)
    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py --quick    1 draw, DMTRC on Job 1

RBF kernel of width 1/2, λ1 = λ2 = 2^-10, exact balance given, DMTFC with the 100 leading kernel PCA features. A run of
25 cuts holds the shorter ones: they are its first cuts. The line "exchange" is the default solver at the same settings.
Every finished run is in results/cutting_plane/runs.csv; an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits

import _one_thread  # noqa: F401
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.metrics import macro_nmi
from paper.datasets import fetch_pendigits_tasks

METHODS = {"DMTRC": (DMTRC, {"coupling": "full"}), "DMTFC": (DMTFC, {"n_components": 100}), "DSTC": (DSTC, {})}
JOBS = (1, 2, 3)
STARTS = ("k-means", "random")
CUTS = (0, 5, 10, 25)
#: cluster sizes are given exactly, as in the paper
SETTINGS = {"width": 0.5, "lambda1": 2.0**-10, "lambda2": 2.0**-10, "sizes": "balanced"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3, help="draws of the tasks, seeds 0, 1, ... (default 3)")
    parser.add_argument("--out", type=Path, default=Path("results/cutting_plane"))
    parser.add_argument("--quick", action="store_true", help="1 draw, DMTRC on Job 1, into a directory of its own")
    options = parser.parse_args()
    methods, jobs = list(METHODS), JOBS
    if options.quick:
        options.draws, options.out, methods, jobs = 1, options.out / "quick", ["DMTRC"], (1,)
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "runs.csv"
    runs = pd.read_csv(file) if file.exists() else pd.DataFrame()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)  # it is what the table is about
        for draw in range(options.draws):
            for method in methods:
                for job in jobs:
                    for start in (*STARTS, "exchange"):
                        if not already_in(runs, method, job, draw, start):
                            runs = pd.concat([runs, pd.DataFrame(run(method, job, draw, start))], ignore_index=True)
                            runs.to_csv(file, index=False, float_format="%.6g")
            print(f"draw {draw} done", flush=True)
    write_table(runs, options.out)


def already_in(runs: pd.DataFrame, method: str, job: int, draw: int, start: str) -> bool:
    if runs.empty:
        return False
    same = (runs["method"] == method) & (runs["job"] == job) & (runs["draw"] == draw) & (runs["start"] == start)
    return bool(same.any())


def run(method: str, job: int, draw: int, start: str) -> list[dict[str, Any]]:
    """One fit: a line for the start, one for every number of cuts, or one for the exchange solver."""
    X, classes, tasks = fetch_pendigits_tasks(job=job, seed=draw).X_y_tasks
    estimator, own = METHODS[method]
    cutting = {"solver": "cutting-plane", "solver_options": {"init": start, "max_cuts": max(CUTS), "zero_tol": 0}}
    model = estimator(5, random_state=draw, **SETTINGS, **own, **({} if start == "exchange" else cutting))
    began = time.perf_counter()
    model.fit(X, tasks=tasks)
    common = {"method": method, "job": job, "draw": draw, "start": start, "seconds": time.perf_counter() - began}
    if start == "exchange":
        return [common | {"cuts": "labels", "nmi": macro_nmi(classes, model.labels_, tasks)}]
    lines = [common | {"cuts": "start only", "nmi": macro_nmi(classes, model.init_labels_, tasks)}]
    for cuts in CUTS:
        entry = model.history_[min(cuts, len(model.history_) - 1)]
        lines.append(
            common
            | {"cuts": str(cuts), "nmi": macro_nmi(classes, entry["labels"], tasks)}
            | {key: entry[key] for key in ("objective", "lower_bound", "shrinkage", "level_steps")}
        )
    return lines


def write_table(runs: pd.DataFrame, out: Path) -> None:
    command = "python " + " ".join(shlex.quote(word) for word in sys.argv)
    mean = runs.groupby(["method", "job", "start", "cuts"])[["nmi", "objective", "shrinkage", "seconds"]].mean()
    with (out / "table.csv").open("w", newline="") as file:
        file.write(f"# {command}\n")
        mean.reset_index().to_csv(file, index=False, float_format="%.4g")
    text = markdown(runs, mean, command)
    (out / "table.md").write_text(text, encoding="utf-8")
    print(text)


def markdown(runs: pd.DataFrame, mean: pd.DataFrame, command: str) -> str:
    draws = sorted(runs["draw"].unique())
    columns = ["start only", *map(str, CUTS)]
    lines = [
        f"`{command}`",
        "",
        f"Mean over {len(draws)} draws (seeds {draws[0]} to {draws[-1]}) of the per-task NMI; |Ỹ|/|Y| and the relaxed "
        "objective after 25 cuts; seconds of one fit on one core, the comparison with single tasks included.",
        "",
        "| | start | start only | 0 cuts | 5 cuts | 10 cuts | 25 cuts | \\|Ỹ\\|/\\|Y\\| | objective | s | exchange |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        for job in JOBS:
            for start in STARTS:
                if (method, job, start, "25") not in mean.index:
                    continue
                nmi = [f"{mean.loc[(method, job, start, cuts), 'nmi']:.3f}" for cuts in columns]
                last = mean.loc[(method, job, start, "25")]
                default = mean.loc[(method, job, "exchange", "labels"), "nmi"]
                lines.append(
                    f"| {method}, Job {job} | {start} | {' | '.join(nmi)} | {last['shrinkage']:.3f} | "
                    f"{last['objective']:.2g} | {last['seconds']:.0f} | {default:.3f} |"
                )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
