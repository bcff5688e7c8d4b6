"""How often the words of a summary are wrong: rows "fall into" clusters, "a test does not confirm" them, and others.

    MTCLUST_DATA=/path/to/data python benchmarks/sentences.py

Tables with classes come from scikit-learn, from MTCLUST_DATA and from :func:`mtclust.datasets.make_related_tasks`;
tables without clusters are one Gaussian, uniform, skewed or heavy-tailed cloud, rows along a curve, and the real tables
with every column permuted. Each is clustered with the number of clusters open and given; then the ids of two clusters
are exchanged in one task. Seeds are fixed; finished rows are kept, and an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import mtclust
from _tables import Rows, made_by, markdown_table
from _tables_read import data_home
from mtclust.datasets import load_digits_tasks, make_related_tasks
from number_of_clusters import NOTHING, nothing

#: files under MTCLUST_DATA/tables, their task column, their classes, and columns that tell the classes
FILES = {
    "ais.csv": ("sport", "sex", ["rownames"]),
    "cars.csv": ("Origin", "Cylinders", ["Name"]),
    "cell_lines.csv.gz": ("batch", "cell_line", []),
    "customers.csv": ("shop", "segment", []),
    "forty.csv": ("shop", "truth", []),
    "gas.csv.gz": ("batch", "gas", []),
    "heart.csv": ("hospital", "disease", []),
    "mice.csv.gz": ("task", "Behavior", []),
    "penguins.csv": ("island", "species", []),
    "penguins_raw.csv": ("Island", "Species", []),
    "sixty.csv": ("hospital", "truth", []),
    "wide.csv": ("lab", "truth", []),
}
#: rows of a table at most
ROWS = 600
#: clusters that are asked for where there are no classes
GIVEN = 3
#: adjusted Rand index within tasks from which clusters are the classes, and over all rows from which their ids are, too
RIGHT, MATCHED = 0.5, 0.8
KEYS = ("table", "number")
VALUES = (
    "classes", "rows", "tasks", "clusters", "decided", "structure", "separation", "stability", "standing", "right",
    "matched", "cells", "doubted", "exchanged", "noticed",
)  # fmt: skip


class Told(NamedTuple):
    """A table with its task column, and the classes of its rows where it has any."""

    frame: pd.DataFrame
    truth: NDArray[Any] | None


def bunch(load: Callable[[], Any], n_tasks: int) -> Told:
    """A table of scikit-learn, its rows dealt to tasks that are shifted a little."""
    data = load()
    rng = np.random.default_rng(0)
    X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    tasks = rng.permutation(np.arange(len(X)) % n_tasks)
    X = X + 0.3 * rng.normal(size=(n_tasks, X.shape[1]))[tasks]
    return Told(pd.DataFrame(X).add_prefix("x").assign(task=[f"t{task}" for task in tasks]), data.target)


def arrays(load: Callable[[], Any]) -> Told:
    X, y, tasks = load().X_y_tasks
    return Told(pd.DataFrame(X).add_prefix("x").assign(task=[f"t{task}" for task in tasks]), y)


def file(name: str) -> Told:
    task, truth, left_out = FILES[name]
    home = data_home()
    if home is None:
        raise SystemExit("MTCLUST_DATA must name the directory of the real data")
    frame = pd.read_csv(home / "tables" / name)
    if len(frame) > ROWS:
        frame = frame.sample(ROWS, random_state=0).reset_index(drop=True)
    frame = frame[frame.groupby(task)[task].transform("size") > 1].reset_index(drop=True)
    return Told(frame.drop(columns=[truth, *left_out]).rename(columns={task: "task"}), frame[truth].to_numpy())


def permuted(load: Callable[[], Told]) -> Told:
    """The same columns, each permuted by itself: what is left is the columns one by one."""
    frame, rng = load().frame, np.random.default_rng(0)
    for column in frame.columns.drop("task"):
        frame[column] = frame[column].to_numpy()[rng.permutation(len(frame))]
    return Told(frame, None)


def without(kind: str, seed: int) -> Told:
    X, tasks = nothing(kind, seed)
    return Told(pd.DataFrame(X).add_prefix("x").assign(task=[f"t{task}" for task in tasks]), None)


CONTINUA = ("curve", "size", "growth")


def continuum(kind: str, seed: int) -> Told:
    """Rows along a curve, of one kind in all sizes, or at all stages of a growth: columns depend, without clusters."""
    rng = np.random.default_rng([seed, CONTINUA.index(kind)])
    m, n, d = 2 + seed % 3, 100, 4 + seed % 3
    t = rng.normal(size=(m * n, 1))
    if kind == "curve":
        X = rng.normal(size=d) * t + rng.normal(size=d) * t**2 + 0.4 * rng.normal(size=(m * n, d))
    elif kind == "size":
        X = np.exp(0.4 * t * rng.uniform(0.5, 2.0, size=d) + 0.1 * rng.normal(size=(m * n, d)))
    else:
        X = 1 / (1 + np.exp(-2 * (t - rng.normal(size=d)))) + 0.1 * rng.normal(size=(m * n, d))
    tasks = np.repeat(np.arange(m), n)
    X = X + 0.3 * X.std(axis=0) * rng.normal(size=(m, d))[tasks]
    return Told(pd.DataFrame(X).add_prefix("x").assign(task=[f"t{task}" for task in tasks]), None)


def tables() -> dict[str, Callable[[], Told]]:
    """All tables by name."""
    classes: dict[str, Callable[[], Told]] = {
        "iris": partial(bunch, load_iris, 3), "wine": partial(bunch, load_wine, 3),
        "breast cancer": partial(bunch, load_breast_cancer, 4), "digits": partial(arrays, load_digits_tasks),
    }  # fmt: skip
    classes |= {name.partition(".")[0]: partial(file, name) for name in FILES}
    found = classes | {f"{name}, permuted": partial(permuted, load) for name, load in classes.items()}
    for seed in range(30):
        make = partial(
            make_related_tasks, 2 + seed % 4, n_clusters=2 + seed % 3, n_samples=(40, 80, 120)[seed % 3], n_features=16,
            separation=(3.0, 4.0, 5.0, 6.0)[seed % 4], random_state=seed,
        )  # fmt: skip
        found[f"made {seed}"] = partial(arrays, make)
    found |= {f"{kind} {seed}": partial(without, kind, seed) for seed in range(4) for kind in NOTHING}
    return found | {f"{kind} {seed}": partial(continuum, kind, seed) for seed in range(6) for kind in CONTINUA}


def within_tasks(a: NDArray[Any], b: NDArray[Any], tasks: NDArray[Any]) -> float:
    """Mean adjusted Rand index of two clusterings within tasks."""
    return float(np.mean([adjusted_rand_score(a[tasks == task], b[tasks == task]) for task in np.unique(tasks)]))


def refitted(found: mtclust.Clustering) -> Any:
    """What refits on subsamples say, which the summary then speaks of; None for one cluster."""
    if found.n_clusters == 1:
        return None
    rows = found.rows("stability")
    return found.model.stability(rows.X, tasks=found.model.tasks_[rows.task_numbers])


def ids(found: Any) -> dict[str, int]:
    """Cells that are compared and doubted, and those that are noticed once two ids are exchanged in one task."""
    model, findings = found.model, found.findings
    known, doubted = np.isfinite(findings.agreement), findings.differs
    sizes = np.asarray(model.cluster_sizes_)
    result = {"cells": int(known.sum()), "doubted": int(doubted.sum()), "exchanged": 0, "noticed": 0}
    seconds = np.sort(sizes, axis=1)[:, -2]
    task = int(seconds.argmax())
    if len(sizes) < 3 or seconds[task] < 10:  # two tasks: nobody can say in which of them ids are wrong
        return result
    a, b = np.argsort(-sizes[task], kind="stable")[:2]
    names = np.arange(sizes.shape[1])
    names[[a, b]] = b, a
    rows = found.rows("ids").task_numbers == task
    labels = np.where(rows, names[model.labels_], model.labels_)
    kept, model.labels_ = model.labels_, labels
    wrong = mtclust.Clustering(model, found.encoder, _rows=found.rows("ids")).findings
    model.labels_ = kept
    known = np.isfinite(wrong.agreement[task, [a, b]])
    return result | {"exchanged": int(known.any()), "noticed": int(wrong.differs[task, [a, b]].any())}


def measure(rows: Rows) -> None:
    for name, load in tables().items():
        for number in ("auto", "given"):
            if rows.has(table=name, number=number):
                continue
            told = load()
            classes = 0 if told.truth is None else len(np.unique(told.truth))
            wanted = number if number == "auto" else (classes or GIVEN)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = mtclust.cluster(told.frame, "task", wanted)
                refits = refitted(found)
                labels, tasks = found.labels.to_numpy(), told.frame["task"].to_numpy()
                right = matched = float("nan")
                if told.truth is not None:
                    right = within_tasks(told.truth, labels, tasks)
                    matched = float(adjusted_rand_score(told.truth, labels))
                facts = found.facts
                compared = ids(found) if classes else dict.fromkeys(VALUES[-4:], 0)
            rows.add(
                table=name, number=number, classes=classes, rows=len(labels), tasks=len(found.model.tasks_),
                clusters=found.n_clusters, decided=facts.decided, structure=facts.structure == "clusters",
                separation=facts.separation, stability=float("nan") if refits is None else refits.overall,
                standing=facts.standing, right=right, matched=matched, **compared,
            )  # fmt: skip


def rates(found: list[dict[str, str]]) -> Iterator[list[Any]]:
    """Of every word: when it is wrong, how often it is said, how often that is wrong, how often it is missing."""

    def line(word: str, wrong_if: str, said: list[bool], wrong: list[bool]) -> list[Any]:
        count, bad = sum(said), sum(a and b for a, b in zip(said, wrong))
        missing = sum(not a and not b for a, b in zip(said, wrong))
        share = f"{bad / count:.3f}" if count else "–"
        return [word, wrong_if, len(said), count, bad, share, missing]

    for number in ("auto", "given"):
        mine = [row for row in found if row["number"] == number]
        none = [int(row["classes"]) == 0 for row in mine]
        right = [float(row["right"]) >= RIGHT for row in mine]
        yield line(
            f'"fall into", number {number}', "the table has no clusters", [r["standing"] == "apart" for r in mine], none
        )
        yield line(
            f'"a test does not confirm", number {number}', "the clusters are the classes",
            [r["standing"] == "none" for r in mine], right,
        )  # fmt: skip
        doubtful = [r["standing"] == "doubtful" for r in mine]
        may = line(f'"may not be distinct groups", number {number}', "never", doubtful, [False] * len(mine))
        yield [*may[:-1], "–"]
    good = [row for row in found if float(row["matched"]) >= MATCHED and row["number"] == "given" and int(row["cells"])]
    cells, doubted = (sum(int(row[name]) for row in good) for name in ("cells", "doubted"))
    tables = sum(int(row["doubted"]) > 0 for row in good)
    exchanged, noticed = (sum(int(row[name]) for row in good) for name in ("exchanged", "noticed"))
    for by, all_of, wrong in (("cell", cells, doubted), ("table", len(good), tables)):
        said = f'"may not mean the same", by {by}'
        yield [said, "ids are matched", all_of, wrong, wrong, f"{wrong / all_of:.3f}", 0]
    yield ['"may not mean the same", ids exchanged', "never", exchanged, noticed, 0, "0.000", exchanged - noticed]


HEADER = ("word", "wrong if", "looked at", "said", "said wrongly", "share of wrong ones", "not said where it is true")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/sentences"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    measure(rows)
    found = rows.read()
    several = [int(row["classes"]) > 0 for row in found if row["number"] == "auto"]
    notes = (
        f"{len(several)} tables, {sum(several)} with classes and {len(several) - sum(several)} without clusters. "
        f"Clusters are the classes from an adjusted Rand index of {RIGHT} within tasks, and their ids are matched from "
        f"{MATCHED} over all rows."
    )
    doubtful = [row for row in found if row["standing"] == "doubtful"]
    right = sum(float(row["right"]) >= RIGHT for row in doubtful)
    notes += f" Of the {len(doubtful)} clusterings that may not be distinct groups, {right} are the classes."
    each = [[row[name] for name in KEYS + VALUES] for row in found]
    parts = [
        made_by(),
        "",
        "<!-- rates -->",
        "",
        *markdown_table(HEADER, rates(found)),
        "",
        notes,
        "",
        "<!-- tables -->",
    ]
    (options.out / "table.md").write_text("\n".join([*parts, "", *markdown_table(KEYS + VALUES, each), ""]))
    print("\n".join(parts))


if __name__ == "__main__":
    main()
