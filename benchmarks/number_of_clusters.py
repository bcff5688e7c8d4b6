"""How often the number of clusters is found without labels: DMTRC, candidates 2 to 8, truth 5.

    MTCLUST_DATA=/path/to/data python benchmarks/number_of_clusters.py        10 draws of pendigits Jobs 1, 2 and digits

Exact balance is given, as in the other pendigits benchmarks. Finished rows are kept; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTRC
from mtclust.datasets import fetch_pendigits_tasks, load_digits_tasks
from mtclust.selection import select_n_clusters

TRUTH = 5
DATA_SETS = {
    "pendigits Job 1": lambda seed: fetch_pendigits_tasks(1, seed),
    "pendigits Job 2": lambda seed: fetch_pendigits_tasks(2, seed),
    "digits, 3 tasks": lambda seed: load_digits_tasks(seed=seed),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("results/number_of_clusters"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", ["dataset", "draw"], ["chosen", "gaps", "seconds"])
    with threadpool_limits(1):
        for draw in range(options.draws):
            for name, load in DATA_SETS.items():
                if rows.has(dataset=name, draw=draw):
                    continue
                X, _, tasks = load(draw).X_y_tasks
                begin = time.process_time()
                choice = select_n_clusters(DMTRC(sizes="balanced"), X, tasks=tasks, random_state=draw)
                gaps = " ".join(f"{gap:.3f}" for gap in choice.gap)
                seconds = time.process_time() - begin
                rows.add(dataset=name, draw=draw, chosen=choice.n_clusters, gaps=gaps, seconds=seconds)
    lines = []
    for name in DATA_SETS:
        mine = [row for row in rows.read() if row["dataset"] == name]
        chosen = [int(row["chosen"]) for row in mine]
        gaps = np.mean([[float(gap) for gap in row["gaps"].split()] for row in mine], axis=0)
        seconds = np.median([float(row["seconds"]) for row in mine])
        right = sum(c == TRUTH for c in chosen)
        lines.append([name, f"{right} of {len(mine)}", chosen, " ".join(f"{g:.3f}" for g in gaps), f"{seconds:.1f}"])
    header = ["data set", "right", "chosen", "mean gap for 2 … 8 clusters", "seconds"]
    notes = "Seeds 0, 1, …; random_state is the draw's seed; CPU seconds on one core, median."
    write_markdown(options.out / "table.md", header, lines, notes)


if __name__ == "__main__":
    main()
