"""Tables with columns of few values (yes or no): spread before the search, as they are, and k-means.

    python benchmarks/few_values.py

Made tables have three clusters in measurements and in answers that are wrong with a given probability, one half of
which are coins; real sets get coins as further columns. NMI with the clusters or classes, and of the labels with the
coin that they agree with most; means over draws, columns standardised, one thread. Real sets are those of
benchmarks/tables.py that come with dependencies. Writes runs.csv and table.md.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import normalized_mutual_info_score as nmi
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import _one_thread
from _tables import Rows, write_markdown
from mtclust import DSTC

METHODS = ("spread", "as they are", "k-means")
#: measurements, answers, probability that an answer is wrong, coins
MADE = {
    "4 measurements, 4 answers, .1": (4, 4, 0.1, 0), "4 measurements, 4 answers, .2": (4, 4, 0.2, 0),
    "6 measurements, 3 coins": (6, 0, 0.0, 3), "6 measurements, 1 coin": (6, 0, 0.0, 1),
    "12 answers, .1": (0, 12, 0.1, 0), "12 answers, .2": (0, 12, 0.2, 0),
}  # fmt: skip
REAL = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
COINS = (0, 1, 3)


def made(name: str, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table, its clusters and its coins."""
    measured, answers, wrong, coins = MADE[name]
    rng = np.random.default_rng(draw)
    y = rng.integers(3, size=300)
    X = 1.7 * rng.normal(size=(3, measured))[y] + rng.normal(size=(300, measured))
    right = rng.integers(2, size=(3, answers))[y]
    answered = np.where(rng.random((300, answers)) < wrong, 1 - right, right)
    tossed = rng.integers(2, size=(300, coins))
    return _standardised(np.c_[X, answered, tossed]), y, tossed


def with_coins(name: str, coins: int, draw: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = REAL[name](return_X_y=True)
    rng = np.random.default_rng(draw)
    tossed = rng.random((len(X), coins)) < rng.uniform(0.3, 0.7, coins)
    return _standardised(np.c_[X, tossed]), y, tossed


def _standardised(X: np.ndarray) -> np.ndarray:
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])


def labels_of(method: str, X: np.ndarray, k: int) -> np.ndarray:
    if method == "k-means":
        return KMeans(k, n_init=10, random_state=0).fit_predict(X)
    if method == "spread":
        return DSTC(k).fit(X).labels_
    with mock.patch("mtclust.choose.settings.few_valued", return_value=np.empty(0, dtype=np.int64)):
        return DSTC(k).fit(X).labels_


def measure(rows: Rows, draws: int) -> None:
    cases = [(name, lambda draw, name=name: made(name, draw)) for name in MADE]
    cases += [
        (f"{name}, coins: {coins}", lambda draw, name=name, coins=coins: with_coins(name, coins, draw))
        for name in REAL
        for coins in COINS
    ]
    for name, load in cases:
        for draw in range(draws):
            X, y, coins = load(draw)
            for method in METHODS:
                if rows.has(table=name, draw=draw, method=method):
                    continue
                labels = labels_of(method, X, len(np.unique(y)))
                coin = max((nmi(column, labels) for column in coins.T), default=0.0)
                rows.add(table=name, draw=draw, method=method, nmi=nmi(y, labels), coin=coin)
        print(name, flush=True)


def report(rows: Rows, out: Path, draws: int) -> None:
    found = rows.read()
    head = ["table", *(f"{method}, NMI" for method in METHODS), *(f"{method}, coin" for method in METHODS)]
    lines = []
    for name in dict.fromkeys(row["table"] for row in found):
        cells = []
        for value in ("nmi", "coin"):
            for method in METHODS:
                own = [float(row[value]) for row in found if row["table"] == name and row["method"] == method]
                cells.append(f"{np.mean(own):.3f}")
        lines.append([name, *cells])
    notes = f"DSTC with columns of few values spread, and with all as they are; means over {draws} draws."
    write_markdown(out / "table.md", head, lines, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("results/few_values"))
    given = parser.parse_args()
    rows = Rows(given.out / "runs.csv", ("table", "draw", "method"), ("nmi", "coin"))
    print("one thread:", *_one_thread.SETTINGS)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(rows, given.draws)
    report(rows, given.out, given.draws)


if __name__ == "__main__":
    main()
