"""Single tables cut into tasks in several ways: should tasks be compared around their own means, or as they are?

    python benchmarks/frames.py

Every table is cut by a column that tells its classes apart (which is then left out), by one that hardly does, at
random, at random with a shift of every task, into tasks with different shares of classes, and into such tasks with a
smaller shift. For every cut: DMTRC with every task around its own mean, with one frame for all, and with the choice
left to it, beside k-means on all rows and in every task. Means over tables and draws, columns standardised, one thread.
The rule of mtclust.choose.frames was made with the first seven tables in view; nothing was decided on the other four.
Writes runs.csv and table.md.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.feature_selection import f_classif
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
import _tables_read as read
from _tables import Rows, write_markdown
from _tables_read import Table, some_rows, standardised
from mtclust import DMTRC
from mtclust.metrics import macro_nmi

METHODS = ("own frames", "one frame", "chosen", "k-means, pooled", "k-means, per task")
IN_VIEW = ("iris", "wine", "penguins", "wdbc", "segment", "penbased", "digits")
TABLES = (*IN_VIEW, "letter", "vowel", "saheart", "twonorm")
CUTS = {
    "telling column": "by thirds of the column that tells classes apart best",
    "other column": "by thirds of a column that hardly tells them apart",
    "shifted": "at random, every task and column moved by about one standard deviation",
    "shares": "shares of classes differ by task, some are absent",
    "shares, shifted": "the same, every task and column moved by about half a standard deviation",
    "random": "at random",
}
_ROWS = 600


def whole(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and classes of a table; the first classes of the larger ones."""
    if name in ("iris", "wine"):
        X, y = (load_iris if name == "iris" else load_wine)(return_X_y=True)
    elif name == "digits":
        X, y = load_digits(return_X_y=True)
        X, y = PCA(12, random_state=0).fit_transform(X[y < 6]), y[y < 6]
    else:
        table = read.penguin_numbers(None) if name == "penguins" else read.keel_numbers(name)
        X, y = table.X, table.y
    if name == "letter":
        X, y = X[(y >= "I") & (y <= "N")], y[(y >= "I") & (y <= "N")]
    elif name == "vowel":
        X = X[:, 3:]  # not the speaker
    y = np.unique(y, return_inverse=True)[1]
    few = y < {"penbased": 5, "vowel": 6}.get(name, len(y))
    X = X[few][:, X[few].std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), y[few]


def cut(name: str, kind: str, draw: int) -> Table:
    """A draw of a table cut into three or four tasks."""
    X, y = whole(name)
    rng = np.random.default_rng([draw, list(CUTS).index(kind)])
    C, d = int(y.max()) + 1, X.shape[1]
    if kind.endswith("column"):
        order = [k for k in np.argsort(np.nan_to_num(f_classif(X, y)[0])) if len(np.unique(X[:, k])) > 10]
        column = order[-1] if kind == "telling column" else order[len(order) // 3]
        tasks = np.searchsorted(np.quantile(X[:, column], [1 / 3, 2 / 3]), X[:, column])
        X = np.delete(X, column, axis=1)
    elif kind.startswith("shares"):
        places = rng.dirichlet(np.full(C, 0.7), size=4).T
        places /= places.sum(axis=1, keepdims=True)
        tasks = np.array([rng.choice(4, p=places[label]) for label in y])
        X = X + (0.5 * rng.normal(size=(4, d))[tasks] if kind.endswith("shifted") else 0.0)
        kept = np.bincount(tasks, minlength=4)[tasks] >= 10
        X, y, tasks = X[kept], y[kept], tasks[kept]
    else:
        tasks = rng.permutation(len(X)) % 3
        X = X + (rng.normal(size=(3, d))[tasks] if kind == "shifted" else 0.0)
    most = _ROWS // len(np.unique(tasks))
    return standardised(some_rows(Table(X, y, tasks, C), most, draw))


def labels_of(method: str, table: Table) -> np.ndarray:
    X, tasks, k = table.X, table.tasks, table.k
    if method == "k-means, pooled":
        return KMeans(k, n_init=10, random_state=0).fit_predict(X)
    if method == "k-means, per task":
        labels = np.empty(len(X), dtype=np.int64)
        for task in np.unique(tasks):
            own = tasks == task
            labels[own] = KMeans(min(k, own.sum()), n_init=10, random_state=0).fit_predict(X[own])
        return labels
    center = {"own frames": "task", "one frame": "all", "chosen": "auto"}[method]
    return DMTRC(k, center=center).fit(X, tasks=tasks).labels_


def measure(rows: Rows, tables: tuple[str, ...], draws: int) -> None:
    for name in tables:
        for kind in CUTS:
            for draw in range(1 if kind.endswith("column") else draws):
                table = cut(name, kind, draw)
                for method in METHODS:
                    if rows.has(table=name, cut=kind, draw=draw, method=method):
                        continue
                    labels = labels_of(method, table)
                    found = macro_nmi(table.y, labels, table.tasks), adjusted_rand_score(table.y, labels)
                    rows.add(table=name, cut=kind, draw=draw, method=method, nmi=found[0], pari=found[1])
        print(name, flush=True)


def report(rows: Rows, out: Path) -> None:
    found, lines = rows.read(), []
    seen = [row for row in found if row["table"] in IN_VIEW]
    others = [row for row in found if row["table"] not in IN_VIEW]
    parts = [(f"{kind}: {words}", [row for row in seen if row["cut"] == kind]) for kind, words in CUTS.items()]
    for words, rows_of_part in [*parts, ("**all**", seen), (f"**{', '.join(TABLES[len(IN_VIEW) :])}**", others)]:
        cells = []
        for method in METHODS:
            own = [row for row in rows_of_part if row["method"] == method]
            cells.append(" / ".join(f"{np.mean([float(row[value]) for row in own]):.3f}" for value in ("nmi", "pari")))
        lines.append([words, *cells])
    notes = "NMI, mean over tasks / ARI over the rows of all tasks (pARI). " + __doc__.split("\n\n")[2].replace(
        "\n", " "
    )
    write_markdown(out / "table.md", ["cut", *METHODS], lines, notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/frames"))
    given = parser.parse_args()
    rows = Rows(given.out / "runs.csv", ("table", "cut", "draw", "method"), ("nmi", "pari"))
    print("one thread:", *_one_thread.SETTINGS)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(rows, tuple(given.tables), given.draws)
    report(rows, given.out)


if __name__ == "__main__":
    main()
