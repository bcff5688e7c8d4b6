"""How much a category and a date should weigh beside a number, judged by clusters whose number is given.

    MTCLUST_DATA=/path/to/data python benchmarks/column_weights.py

A category as a whole, a number with few values and a date get the variance on top of each column, where a number has 1.
The last column is what ``mtclust.cluster`` does: its variance, and categories, dates and numbers with few values that
go with no other column left out. Judges are k-means on all rows, k-means on rows centred by task, and DMTRC. On tables
with classes the figure is the adjusted Rand index; on the table of independent columns it is the NMI with its two coin
flips, which should be 0. Finished rows are kept; an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTRC
from mtclust.app.tables import columns as kinds
from mtclust.app.tables import screening
from mtclust.app.tables.encoding import EncodingOptions, TableEncoder
from mtclust.app.tables.table import table_of_frames

VARIANCES = (1.0, 0.5, 0.25, 0.1, 0.05, 0.0001)
#: what is done: this variance, and what goes with no other column is left out
AS_IT_IS, CHOSEN, LEAVE_OUT = "as it is", kinds.CATEGORY_WEIGHT**2, screening.unrelated


def informative(seed: int = 0) -> pd.DataFrame:
    """Three clusters told by three categories, three of four cells of which are right, and weakly by two numbers."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=600)
    levels = np.array(["red", "green", "blue"])
    told = {f"told {k}": levels[np.where(rng.random(600) < 0.75, truth, rng.integers(3, size=600))] for k in range(3)}
    frame = pd.DataFrame({"task": np.repeat(["a", "b", "c"], 200), **told, "truth": truth})
    frame[["x", "y"]] = rng.normal(size=(600, 2)) + np.stack([truth == 0, truth == 1], axis=1)
    return frame


def tables() -> dict[str, tuple[pd.DataFrame, str, str, int]]:
    """Each with its task column, its classes and how many clusters there are."""
    home = Path(os.environ["MTCLUST_DATA"]) / "tables"
    read = {name: pd.read_csv(home / f"{name}.csv") for name in ("customers", "penguins", "nostructure")}
    coins = read["nostructure"]["newsletter"] + read["nostructure"]["gender"]
    return {
        "customers": (read["customers"], "shop", "segment", 4),
        "penguins by island": (read["penguins"], "island", "species", 3),
        "penguins by year": (read["penguins"], "year", "species", 3),
        "categories that inform (made)": (informative(), "task", "truth", 3),
        "independent columns": (read["nostructure"].assign(coins=coins), "shop", "coins", 4),
    }


def encoded(frame: pd.DataFrame, task: str, variance: float | str) -> np.ndarray:
    kinds.CATEGORY_WEIGHT = float(np.sqrt(CHOSEN if variance == AS_IT_IS else variance))
    screening.unrelated = LEAVE_OUT if variance == AS_IT_IS else lambda *_: []
    table = table_of_frames(frame, task)
    return TableEncoder.fit(table, EncodingOptions()).transform(table)[0]


def judged(X: np.ndarray, tasks: np.ndarray, n_clusters: int) -> dict[str, np.ndarray]:
    """Labels by judge."""
    centred = X - pd.DataFrame(X).groupby(tasks).transform("mean").to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "k-means": KMeans(n_clusters, n_init=10, random_state=0).fit_predict(X),
            "k-means centred": KMeans(n_clusters, n_init=10, random_state=0).fit_predict(centred),
            "DMTRC": DMTRC(n_clusters, random_state=0).fit(X, tasks=tasks).labels_,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/column_weights"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", ["table", "variance", "judge"], ["score"])
    with threadpool_limits(1):
        for name, (frame, task, classes, n_clusters) in tables().items():
            score = normalized_mutual_info_score if classes == "coins" else adjusted_rand_score
            for variance in (*VARIANCES, AS_IT_IS):
                if rows.has(table=name, variance=variance, judge="DMTRC"):
                    continue
                X = encoded(frame.drop(columns=classes), task, variance)
                for judge, labels in judged(X, frame[task].astype(str).to_numpy(), n_clusters).items():
                    rows.add(table=name, variance=variance, judge=judge, score=score(frame[classes], labels))
    found = {(row["table"], row["judge"], row["variance"]): float(row["score"]) for row in rows.read()}
    lines = [
        [name, judge, *(f"{found[name, judge, str(variance)]:.2f}" for variance in (*VARIANCES, AS_IT_IS))]
        for name in tables()
        for judge in ("k-means", "k-means centred", "DMTRC")
    ]
    header = ["table", "judge", *(f"{variance:g}" for variance in VARIANCES), AS_IT_IS]
    notes = (
        "Columns: variance of a category as a whole, of a number with few values and of a date; as it is: "
        f"{CHOSEN:.2g}, and what goes with no other column left out. ARI; for the independent columns NMI with the "
        "coin flips."
    )
    write_markdown(options.out / "table.md", header, lines, notes)


if __name__ == "__main__":
    main()
