"""Ordinary tables, single ones and ones of several tasks: our defaults against what a user has instead.

    MTCLUST_DATA=/path/to/data python benchmarks/tables.py --group decided     sets that decisions may look at
    MTCLUST_DATA=/path/to/data python benchmarks/tables.py --group held-out    once, when everything is decided
    python benchmarks/tables.py --sets iris penguins_year --methods DMTRC "k-means, pooled" --draws 1 --out /tmp/quick

Needs `pip install "mtclust[benchmarks]"`. Every method is told the number of clusters and nothing else. Sets that lie
under MTCLUST_DATA are left out without it. One thread; finished fits are kept and an interrupted run goes on: remove
runs.csv to measure anew. Writes runs.csv and table.md.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
from _tables import Rows
from _tables_methods import METHODS
from _tables_read import Table, data_home
from _tables_report import write_report
from _tables_sets import GROUPS, SETS
from mtclust.metrics import macro_nmi, per_task

KEYS = ("set", "draw", "method")
VALUES = ("nmi", "ari", "pari", "seconds", "rows", "tasks", "chosen")


def scores(table: Table, labels: Any) -> dict[str, float]:
    """Means over tasks, and the agreement over all rows at once: do ids mean the same everywhere?"""
    return {
        "nmi": macro_nmi(table.y, labels, table.tasks),
        "ari": float(np.mean(list(per_task(adjusted_rand_score, table.y, labels, table.tasks).values()))),
        "pari": float(adjusted_rand_score(table.y, labels)),
    }


def run(name: str, seed: int, methods: list[str], rows: Rows) -> None:
    """Every method that is still missing on one draw of a set."""
    kind = SETS[name].kind
    missing = [
        method
        for method in methods
        if (kind == "multi" or METHODS[method].single) and not rows.has(set=name, draw=seed, method=method)
    ]
    if not missing:
        return
    table = SETS[name].load(seed)
    for method in missing:
        begin = time.process_time()
        answer = METHODS[method].run(table, seed)
        seconds = time.process_time() - begin
        size = {"rows": len(table.y), "tasks": len(np.unique(table.tasks))}
        rows.add(
            set=name, draw=seed, method=method, seconds=seconds, chosen=answer.chosen,
            **scores(table, answer.labels), **size,
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=tuple(GROUPS), default="decided")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), metavar="SET", help="these, whatever their group")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), metavar="METHOD", default=tuple(METHODS))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/tables"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        for name in options.sets or GROUPS[options.group]:
            if SETS[name].files and data_home() is None:
                print(f"{name} is left out: MTCLUST_DATA is not set", flush=True)
                continue
            for seed in range(options.draws):
                run(name, seed, list(options.methods), rows)
            print(name, flush=True)
    write_report(rows.read(), options.out / "table.md")


if __name__ == "__main__":
    main()
