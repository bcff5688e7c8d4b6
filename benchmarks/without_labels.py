"""What choosing without labels costs: DSTC, full coupling, auto and the oracle on one row per data set.

    MTCLUST_DATA=/path/to/data python benchmarks/without_labels.py                 30 draws of pendigits
    python benchmarks/without_labels.py --draws 2 --no-oracle --out /tmp/quick     a quick look

One fit of DMTRC with everything "auto" gives three labellings: its own, the coupled one and the single-task one (DSTC,
40 starts). The oracle is the width and λ whose coupled labels agree best with the classes, on average over the draws of
a data set: chosen with labels, as in the paper. Finished rows are kept; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTRC
from mtclust.datasets import (
    fetch_newsgroups_tasks,
    fetch_pendigits_tasks,
    fetch_sentiment_tasks,
    load_digits_tasks,
    make_related_tasks,
)
from mtclust.exceptions import SearchWarning, UncoupledWarning
from mtclust.metrics import macro_nmi

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
LAMBDAS = tuple(2.0**-k for k in (2, 4, 6, 8, 10))
SIZE_SETTINGS = {"equal": 20, "mild": (28, 24, 20, 16, 12), "skewed": (35, 25, 20, 12, 8)}
RULES = ("DSTC", "full", "auto")


@dataclass(frozen=True)
class DataSet:
    """One row of the table: where draws come from, and what is known about them."""

    load: Callable[[int], Any]
    kernel: str
    sizes: str
    draws: int
    first_seed: int = 0
    oracle_draws: int = 0


def data_sets(draws: int) -> dict[str, DataSet]:
    few, five, oracle = (min(draws, number) for number in (10, 5, 3))
    table = {}
    for job in (1, 2, 3):
        load = lambda seed, job=job: fetch_pendigits_tasks(job, seed)  # noqa: E731
        table[f"pendigits Job {job}"] = DataSet(
            load, "rbf", "balanced", draws, oracle_draws=min(draws, 5 if job == 3 else 10)
        )
    for group in (1, 2):
        for name, rows in SIZE_SETTINGS.items():
            load = lambda seed, group=group, rows=rows: fetch_pendigits_tasks(group, seed, rows_per_class=rows)  # noqa: E731
            table[f"pendigits group {group}, {name} sizes"] = DataSet(load, "rbf", "auto", few, 200)
    table["digits, 3 tasks"] = DataSet(lambda seed: load_digits_tasks(seed=seed), "rbf", "auto", few, 0, oracle)
    other = (1, 2, 4, 5, 7)
    table["digits, 2 × 3 tasks"] = DataSet(lambda s: load_digits_tasks(seed=s, unrelated=other), "rbf", "auto", five)
    table["newsgroups 5 %"] = DataSet(lambda seed: fetch_newsgroups_tasks(0.05, seed), "linear", "balanced", five)
    table["newsgroups 10 %"] = DataSet(
        lambda seed: fetch_newsgroups_tasks(0.1, seed), "linear", "balanced", min(draws, 3)
    )
    table["sentiment 10 %"] = DataSet(lambda seed: fetch_sentiment_tasks(0.1, seed), "linear", "balanced", five)
    for kind in ("related", "unrelated", "reversed", "outlier"):
        load = lambda s, kind=kind: make_related_tasks(4, task_covariance=kind, separation=3.0, random_state=s)  # noqa: E731
        table[f"synthetic, {kind}"] = DataSet(load, "linear", "auto", few, 0, oracle)
    return table


def n_classes(y: np.ndarray, tasks: np.ndarray) -> int:
    return max(len(np.unique(y[tasks == task])) for task in np.unique(tasks))


def run(name: str, data_set: DataSet, seed: int, rows: Rows) -> None:
    """One fit with everything chosen by the model."""
    if rows.has(dataset=name, draw=seed, rule="auto"):
        return
    X, y, tasks = data_set.load(seed).X_y_tasks
    y, tasks = np.asarray(y), np.asarray(tasks)
    begin = time.process_time()
    model = DMTRC(n_classes(y, tasks), kernel=data_set.kernel, sizes=data_set.sizes, random_state=seed)
    model.fit(X, tasks=tasks)
    seconds = time.process_time() - begin
    choice = model.selection_["coupling"]
    labels = {"DSTC": model.single_task_labels_, "full": choice["coupled_labels"], "auto": model.labels_}
    detail = {"Z": round(choice["statistic"], 4), "V": round(choice["similarity"], 4)}
    detail |= {"width": model.selection_.get("width"), "lambda": model.selection_["lambda2"]}
    if isinstance(model.selection_["sizes"], dict):
        sizes = model.selection_["sizes"]
        detail["sizes"] = sizes["chosen"]
        for candidate, found in sizes["labels"].items():
            detail[f"score {candidate}"] = round(sizes["scores"][candidate], 5)
            detail[f"nmi {candidate}"] = round(macro_nmi(y, found, tasks), 5)
    detail["gaps"] = [
        [row["width"], row["lambda"], round(row["gap"], 5)] for row in model.selection_.get("candidates", [])
    ]
    for rule in RULES:
        score = macro_nmi(y, labels[rule], tasks)
        rows.add(dataset=name, draw=seed, rule=rule, nmi=score, seconds=seconds, detail=json.dumps(detail))


def run_oracle(name: str, data_set: DataSet, seed: int, rows: Rows) -> None:
    """Full coupling at every width and λ of the paper's grid."""
    X, y, tasks = data_set.load(seed).X_y_tasks
    y, tasks = np.asarray(y), np.asarray(tasks)
    for width in WIDTHS if data_set.kernel == "rbf" else (1.0,):
        for lambda_ in LAMBDAS:
            rule = f"width {width:g} lambda {lambda_:g}"
            if rows.has(dataset=name, draw=seed, rule=rule):
                continue
            model = DMTRC(
                n_classes(y, tasks), kernel=data_set.kernel, width=width, lambda1=lambda_, lambda2=lambda_,
                sizes=data_set.sizes, coupling="full", random_state=seed,
            )  # fmt: skip
            begin = time.process_time()
            score = macro_nmi(y, model.fit(X, tasks=tasks).labels_, tasks)
            rows.add(dataset=name, draw=seed, rule=rule, nmi=score, seconds=time.process_time() - begin, detail="")


def summarise(rows: Rows, out: Path) -> None:
    table = pd.DataFrame(rows.read()).astype({"nmi": float, "seconds": float})
    lines = []
    for name, part in table.groupby("dataset", sort=False):
        by_rule = part.groupby("rule")["nmi"].mean()
        auto = part[part["rule"] == "auto"]
        grid = part[part["rule"].str.startswith("width")]
        cells = [name, len(auto), *(f"{by_rule[rule]:.3f}" for rule in RULES)]
        cells.append(f"{by_rule['auto'] - by_rule['DSTC']:+.3f}")
        if len(grid):
            means = grid.groupby("rule")["nmi"].mean()
            same = auto[auto["draw"].isin(grid["draw"])]["nmi"].mean()
            cells += [
                f"{means.max():.3f} ({means.idxmax()}; {grid['draw'].nunique()} draws)",
                f"{same - means.max():+.3f}",
            ]
        else:
            cells += ["", ""]
        lines.append([*cells, f"{auto['seconds'].median():.2f}"])
    header = ["data set", "draws", *RULES, "auto − DSTC", "oracle", "auto − oracle", "seconds"]
    sized = table[(table["rule"] == "auto") & table["dataset"].str.contains("sizes")]
    mean = sized.groupby("dataset")["nmi"].mean().mean() if len(sized) else float("nan")
    notes = (
        f"NMI (geometric, mean over tasks), mean over draws. Mean of auto over the six size settings: {mean:.3f}. "
        "Oracle: width and λ chosen with labels, on average over its draws, full coupling. random_state is the draw's "
        "seed; CPU seconds of the auto fit on one core, median."
    )
    write_markdown(out / "table.md", header, lines, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=30, help="draws of the pendigits jobs; at most 10 of the others")
    parser.add_argument("--no-oracle", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("results/without_labels"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", ["dataset", "draw", "rule"], ["nmi", "seconds", "detail"])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        warnings.simplefilter("ignore", SearchWarning)
        for name, data_set in data_sets(options.draws).items():
            for seed in range(data_set.first_seed, data_set.first_seed + data_set.draws):
                run(name, data_set, seed, rows)
            print(name, flush=True)
        if not options.no_oracle:
            for name, data_set in data_sets(options.draws).items():
                for seed in range(data_set.first_seed, data_set.first_seed + data_set.oracle_draws):
                    run_oracle(name, data_set, seed, rows)
                print(name, "oracle", flush=True)
    summarise(rows, options.out)


if __name__ == "__main__":
    main()
