"""The paper's cutting planes on pendigits: what stopped runs return, and what they cost.

    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py            all three tables, 3 draws (seeds 0 to 2)
    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py --quick    1 draw, DMTRC on Job 1
    MTCLUST_DATA=/path/to/data python benchmarks/cutting_plane.py --times "0.2.0"    times of another version, by name

RBF kernel of width 1/2, λ1 = λ2 = 2^-10, exact balance given, DMTFC with the 100 leading kernel PCA features.

table.md    NMI after 0, 5, 10 and 25 cuts, and of the start alone. A run of 25 cuts holds the shorter ones: they are
            its first cuts. "exchange" is the default solver at the same settings
times.md    Job 1, 25 cuts from k-means, CPU seconds: both ways to solve the reduced problem, and those of versions
            that were timed by the same command
grid.md     DMTRC, Job 1: other λ2, until all is zero or for 25 cuts

Every finished run is in runs.csv, times.csv and grid.csv; an interrupted command goes on where it was.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
import warnings
from itertools import product
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
REDUCED = ("quadratic", "level")
CUTS = (0, 5, 10, 25)
GRID_CUTS = (0, 1, 3, 5)
EXPONENTS = (-10, -6, -2)
#: cluster sizes are given exactly, as in the paper
SETTINGS = {"kernel": "rbf", "width": 0.5, "lambda1": 2.0**-10, "lambda2": 2.0**-10, "sizes": "balanced"}
COMMAND = "python " + " ".join(shlex.quote(word) for word in sys.argv)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3, help="draws of the tasks, seeds 0, 1, ... (default 3)")
    parser.add_argument("--out", type=Path, default=Path("results/cutting_plane"))
    parser.add_argument("--quick", action="store_true", help="1 draw, DMTRC on Job 1, into a directory of its own")
    parser.add_argument("--times", metavar="VERSION", help="only the times, of the version that is on the path")
    options = parser.parse_args()
    methods, jobs, draws = list(METHODS), JOBS, range(options.draws)
    if options.quick:
        methods, jobs, draws, options.out = ["DMTRC"], (1,), range(1), options.out / "quick"
    options.out.mkdir(parents=True, exist_ok=True)
    versions = [options.times] if options.times else REDUCED
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateSolutionWarning)  # it is what the tables are about
        fitted("DMTRC", 1, 0, {"max_cuts": 1})  # imports and compiled code
        times = every(options.out / "times.csv", timed, methods, versions, draws)
        (options.out / "times.md").write_text(times_table(times), encoding="utf-8")
        if options.times:
            return
        grid = every(options.out / "grid.csv", one_of_grid, EXPONENTS, STARTS, REDUCED, draws)
        (options.out / "grid.md").write_text(grid_table(grid), encoding="utf-8")
        runs = every(options.out / "runs.csv", run, methods, jobs, (*STARTS, "exchange"), draws)
        (options.out / "table.md").write_text(runs_table(runs), encoding="utf-8")


def every(file: Path, measure: Any, *parameters: Any) -> pd.DataFrame:
    """The lines of ``measure`` for all combinations; those in the file are not measured again."""
    lines = pd.read_csv(file) if file.exists() else pd.DataFrame()
    done = set(lines["of"]) if len(lines) else set()
    for values in product(*parameters):
        name = " ".join(map(str, values))
        if name not in done:
            new = pd.DataFrame(measure(*values)).assign(of=name)
            lines = pd.concat([lines, new], ignore_index=True)
            lines.to_csv(file, index=False, float_format="%.6g")
    print(f"{file} done", flush=True)
    return lines


def fitted(method: str, job: int, draw: int, solver_options: dict[str, Any] | None, **changed: Any) -> tuple[Any, Any]:
    """A fitted model, cutting planes where they have options, and what is common to its lines."""
    X, classes, tasks = fetch_pendigits_tasks(job=job, seed=draw).X_y_tasks
    estimator, own = METHODS[method]
    solver = {"solver": "cutting-plane", "solver_options": solver_options} if solver_options else {}
    model = estimator(5, random_state=draw, **(SETTINGS | own | solver | changed))
    began = time.process_time()
    model.fit(X, tasks=tasks)
    common = {"method": method, "job": job, "draw": draw, "seconds": time.process_time() - began}
    common["nmi"] = macro_nmi(classes, model.labels_, tasks)
    if solver:
        common["nmi of start"] = macro_nmi(classes, model.init_labels_, tasks)
        for entry in model.history_:
            entry["nmi"] = macro_nmi(classes, entry["labels"], tasks)
    return model, common


def timed(method: str, version: str, draw: int) -> list[dict[str, Any]]:
    own = {"reduced": version} if version in REDUCED else {}
    model, common = fitted(method, 1, draw, {"init": "k-means", "max_cuts": max(CUTS), "zero_tol": 0, **own})
    last = model.history_[-1]
    share = max((entry["objective"] - entry["pool_bound"]) / entry["objective"] for entry in model.history_)
    return [common | {"version": version, "objective": last["objective"], "gap": last["gap"], "pool gap": share}]


def one_of_grid(exponent: int, start: str, reduced: str, draw: int) -> list[dict[str, Any]]:
    model, common = fitted("DMTRC", 1, draw, {"init": start, "reduced": reduced}, lambda2=2.0**exponent)
    history = model.history_
    nmi = {str(cuts): history[min(cuts, len(history) - 1)]["nmi"] for cuts in GRID_CUTS}
    ends = {"cuts": len(history) - 1, "shrinkage": history[-1]["shrinkage"]}
    return [common | {"exponent": exponent, "start": start, "reduced": reduced} | nmi | ends]


def run(method: str, job: int, start: str, draw: int) -> list[dict[str, Any]]:
    """A line for every number of cuts, or one for the exchange solver."""
    cutting = None if start == "exchange" else {"init": start, "max_cuts": max(CUTS), "zero_tol": 0}
    model, common = fitted(method, job, draw, cutting)
    common["start"] = start
    if start == "exchange":
        return [common]
    keys = ("nmi", "objective", "lower_bound", "shrinkage", "level_steps")
    entries = [(cuts, model.history_[min(cuts, len(model.history_) - 1)]) for cuts in CUTS]
    return [common | {"cuts": cuts} | {key: entry[key] for key in keys} for cuts, entry in entries]


def markdown(about: str, columns: list[str], rows: list[list[str]]) -> str:
    table = [columns, ["---"] * len(columns), *rows]
    return "\n".join([f"`{COMMAND}`", "", about, "", *(f"| {' | '.join(row)} |" for row in table)]) + "\n"


def times_table(times: pd.DataFrame) -> str:
    mean = times.groupby(["method", "version"])[["seconds", "objective", "gap", "pool gap"]].mean()
    rows = [
        [*names, f"{m['seconds']:.2f}", f"{m['objective']:.3g}", f"{m['gap']:.3g}", f"{m['pool gap']:.1g}"]
        for names, m in mean.iterrows()
    ]
    about = (
        f"Job 1, 25 cuts from k-means labels, mean of {times['draw'].nunique()} draws: CPU seconds of the whole fit on "
        "one core; relaxed objective and its certified gap, which is all of it since the optimum is 0; the largest "
        "certified gap of the reduced problem over all cuts, as a share of the value (.001 is asked for)."
    )
    return markdown(about, ["", "reduced", "CPU s", "objective", "gap", "gap on the pools"], rows)


def grid_table(grid: pd.DataFrame) -> str:
    columns = ["nmi of start", *map(str, GRID_CUTS), "nmi", "cuts", "shrinkage", "seconds"]
    mean = grid.groupby(["exponent", "start", "reduced"])[columns].mean()
    rows = []
    for exponent, start, reduced in product(EXPONENTS, STARTS, REDUCED):
        m = mean.loc[(exponent, start, reduced)]
        nmi = [f"{m[column]:.3f}" for column in columns[:-3]]
        ends = [f"{m['cuts']:.0f}", f"{m['shrinkage']:.3f}", f"{m['seconds']:.1f}"]
        rows.append([f"2^{exponent}", start, reduced, *nmi, *ends])
    about = (
        f"DMTRC, Job 1, λ₁ = 2⁻¹⁰, mean over {grid['draw'].nunique()} draws of the per-task NMI; at the end: after 25 "
        "cuts, or where the value is below zero_tol; CPU seconds."
    )
    names = ["λ₂", "start", "reduced", "start only", *(f"{k} cut{'s' * (k != 1)}" for k in GRID_CUTS)]
    return markdown(about, [*names, "end", "cuts", "\\|Ỹ\\|/\\|Y\\|", "s"], rows)


def runs_table(runs: pd.DataFrame) -> str:
    keys, values = ["method", "job", "start", "cuts"], ["nmi", "nmi of start", "objective", "shrinkage", "seconds"]
    mean = runs.fillna({"cuts": -1}).groupby(keys)[values].mean()
    rows = []
    for method, job, start in product(METHODS, JOBS, STARTS):
        if (method, job, start, CUTS[-1]) in mean.index:
            last = mean.loc[(method, job, start, CUTS[-1])]
            nmi = [last["nmi of start"], *(mean.loc[(method, job, start, cuts), "nmi"] for cuts in CUTS)]
            default = mean.loc[(method, job, "exchange", -1), "nmi"]
            ends = [f"{last['shrinkage']:.3f}", f"{last['objective']:.2g}", f"{last['seconds']:.1f}", f"{default:.3f}"]
            rows.append([f"{method}, Job {job}", start, *(f"{x:.3f}" for x in nmi), *ends])
    about = (
        f"Mean over {runs['draw'].nunique()} draws of the per-task NMI; |Ỹ|/|Y| and the relaxed objective after 25 "
        "cuts; CPU seconds of one fit on one core."
    )
    names = ["", "start", "start only", *(f"{k} cuts" for k in CUTS)]
    return markdown(about, [*names, "\\|Ỹ\\|/\\|Y\\|", "objective", "s", "exchange"], rows)


if __name__ == "__main__":
    main()
