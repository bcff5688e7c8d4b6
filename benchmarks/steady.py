"""What should change nothing: twenty tables in other orders, other names, other storage, another coding.

    MTCLUST_DATA=/path/to/data python benchmarks/steady.py                        all tables
    python benchmarks/steady.py --tables iris wine --out /tmp/quick               some of them

Every table is fitted once as it is and once after every change: rows, columns and tasks in another order, tasks with
other names, all of these at once, CSR, float32, pandas or polars, another ``random_state``, two threads, a column of
two values coded the other way round, and noise of 1e-10. A cell is the ARI between both fits, and in brackets the
share of rows with the same cluster id where that is not 1. Arrays through ``DMTRC`` with the number of clusters given,
four of them with it open too and through ``fit_task``; files through ``mtclust.cluster`` with the number open.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
import mtclust
from _tables import made_by, markdown_table
from _tables_read import data_home, frame_of
from mtclust import DMTRC

#: files: the column with the task, and columns that are left out
FILES = {
    "penguins": ("island", ["species"]),
    "chile": ("region", ["vote"]),
    "mpg": ("manufacturer", []),
    "cars": ("Origin", []),
    "heart": ("hospital", ["disease"]),
    "ais": ("sport", ["rownames"]),
    "customers": ("shop", ["segment"]),
    "nostructure": ("shop", []),
}
#: arrays whose number of clusters is left open as well, and whose last task is clustered by fit_task
MORE = ("diabetes", "few values", "wine", "heavy tails")
#: rows of a file at most
_MOST_ROWS = 1000
CHANGES = ("rows", "columns", "tasks", "names", "all", "csr", "float32", "frame", "seed", "threads", "recoded", "noise")


def _standardised(X: Any) -> Any:
    return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)


def _clusters(rows: int, n_tasks: int, d: int, k: int, shift: float = 0.0, spread: float = 1.0) -> tuple[Any, Any, int]:
    rng = np.random.default_rng(0)
    y, tasks = rng.integers(k, size=rows), np.arange(rows) % n_tasks
    moved = shift * rng.normal(size=(n_tasks, d))[tasks]
    return 2.0 * rng.normal(size=(k, d))[y] + spread * rng.normal(size=(rows, d)) + moved, tasks, k


def _few_values(rows: int, levels: int, again: int = 0) -> tuple[Any, Any, int]:
    X, tasks, k = _clusters(rows, 3, 5, 3)
    X = np.clip(np.round(X / 2), 0, levels - 1)
    return np.r_[X, X[:again]], np.r_[tasks, tasks[:again]], k


def _mixed() -> tuple[Any, Any, int]:
    """Numbers, a rare yes, counts and steps, as in tables of houses."""
    X, tasks, k = _clusters(300, 4, 8, 3)
    X[:, 5], X[:, 6], X[:, 7] = X[:, 5] > 3, np.round(np.abs(X[:, 6])), np.clip(np.round(X[:, 7]), -1, 1)
    return _standardised(X), tasks, k


def _tiny_tasks() -> tuple[Any, Any, int]:
    X, _, k = _clusters(400, 1, 5, 3)
    return X, np.r_[np.zeros(200, dtype=int), np.repeat(np.arange(1, 41), 5)], k


def _bunch(load: Callable[[], Any], n_tasks: int, k: int, step: int = 1) -> tuple[Any, Any, int]:
    X = _standardised(load().data[::step])
    return X, np.arange(len(X)) % n_tasks, k


def _diabetes() -> tuple[Any, Any, int]:
    X = load_diabetes(scaled=False).data
    return _standardised(X), np.arange(len(X)) % 2, 3


def _diabetes_by_age() -> tuple[Any, Any, int]:
    X = load_diabetes(scaled=False).data
    return _standardised(X[:, 1:]), np.searchsorted([40, 55], X[:, 0], side="right"), 3


def _equal_columns() -> tuple[Any, Any, int]:
    X, tasks, k = _diabetes()
    return X[:, [2, 3, 4, 5, 2, 3]], tasks, k


ARRAYS: dict[str, Callable[[], tuple[Any, Any, int]]] = {
    "iris": lambda: _bunch(load_iris, 3, 3),
    "wine": lambda: _bunch(load_wine, 2, 3),
    "digits": lambda: _bunch(load_digits, 3, 10, step=4),
    "diabetes": _diabetes,
    "diabetes by age": _diabetes_by_age,
    "two values": lambda: _few_values(160, 2),
    "few values": lambda: _few_values(240, 3),
    "repeated rows": lambda: _few_values(150, 4, again=120),
    "equal columns": _equal_columns,
    "mixed": _mixed,
    "tiny tasks": _tiny_tasks,
    "heavy tails": lambda: (np.random.default_rng(2).standard_t(2, size=(300, 5)), np.arange(300) % 3, 2),
    "shifted": lambda: _clusters(1500, 5, 6, 4, shift=1.0),
}


def of_arrays(X: Any, tasks: Any, fit: Callable[..., Any]) -> dict[str, str]:
    """Agreement of a fit with itself after every change."""
    rng, same, (n, d) = np.random.default_rng(1), np.arange(len(X)), X.shape
    rows, columns, names = rng.permutation(n), rng.permutation(d), rng.permutation(tasks.max() + 1)[tasks]
    by_task = np.argsort(-tasks, kind="stable")
    changed = {
        "rows": (X[rows], tasks[rows], rows, {}),
        "columns": (X[:, columns], tasks, same, {}),
        "tasks": (X[by_task], tasks[by_task], by_task, {}),
        "names": (X, names, same, {}),
        "all": (X[rows][:, columns], names[rows], rows, {}),
        "csr": (sp.csr_matrix(X), tasks, same, {}),
        "float32": (X.astype(np.float32), tasks, same, {}),
        "frame": (pd.DataFrame(X, columns=[f"x{j}" for j in range(d)]), tasks, same, {}),
        "seed": (X, tasks, same, {"random_state": 7}),
        "threads": (X, tasks, same, {"n_jobs": 2}),
        "noise": (X + 1e-10 * rng.normal(size=X.shape), tasks, same, {}),
    }
    two = [j for j in range(d) if len(np.unique(X[:, j])) == 2]
    if two:
        recoded = X.copy()
        recoded[:, two[0]] *= -1
        changed["recoded"] = recoded, tasks, same, {}
    labels = fit(X, tasks)
    return {
        name: _agreement(labels[order], fit(own, ids, **parameters))
        for name, (own, ids, order, parameters) in changed.items()
    }


def of_new_task(X: Any, tasks: Any, k: int) -> dict[str, str]:
    """The same of ``fit_task``: the last task in other orders, after a fit of the others."""
    new, others = X[tasks == tasks.max()], tasks != tasks.max()
    rng = np.random.default_rng(1)
    order, columns = rng.permutation(len(new)), rng.permutation(X.shape[1])
    model = DMTRC(k, center="task").fit(X[others], tasks=tasks[others])
    turned = DMTRC(k, center="task", random_state=7).fit(X[others][:, columns], tasks=-tasks[others])
    labels = model.fit_task(new).labels_
    found = {
        "rows": (labels[order], model.fit_task(new[order])),
        "csr": (labels, model.fit_task(sp.csr_matrix(new))),
        "all": (labels[order], turned.fit_task(new[order][:, columns])),
        "noise": (labels, model.fit_task(new + 1e-10 * rng.normal(size=new.shape))),
    }
    return {name: _agreement(one, other.labels_) for name, (one, other) in found.items()}


def of_file(name: str) -> dict[str, str]:
    """The same of a file through ``mtclust.cluster``."""
    task, left_out = FILES[name]
    frame = frame_of(f"{name}.csv").drop(columns=left_out)
    frame = frame.iloc[:: -(-len(frame) // _MOST_ROWS)].reset_index(drop=True)
    rng, same = np.random.default_rng(1), np.arange(len(frame))
    rows, columns, known = rng.permutation(len(frame)), rng.permutation(frame.columns), frame[task].unique()
    renamed = frame.assign(**{task: frame[task].map(dict(zip(known, rng.permutation(len(known)) + 100)))})
    by_task = np.argsort(frame[task].astype(str).to_numpy(), kind="stable")[::-1]
    changed = {
        "rows": (frame.iloc[rows].reset_index(drop=True), rows),
        "columns": (frame[columns], same),
        "tasks": (frame.iloc[by_task].reset_index(drop=True), by_task),
        "names": (renamed, same),
        "all": (renamed[columns].iloc[rows].reset_index(drop=True), rows),
        "frame": (pl.from_pandas(frame), same),
    }
    two = [column for column in frame.columns if column != task and frame[column].nunique() == 2]
    if two:
        one, other = sorted(frame[two[0]].dropna().unique())
        changed["recoded"] = frame.assign(**{two[0]: frame[two[0]].map({one: other, other: one})}), same
    labels = np.asarray(mtclust.cluster(frame, task).labels)
    return {
        change: _agreement(labels[order], np.asarray(mtclust.cluster(own, task).labels))
        for change, (own, order) in changed.items()
    }


def _agreement(one: Any, other: Any) -> str:
    ids = float(np.mean(one == other))
    return f"{adjusted_rand_score(one, other):.3f}" + (f" ({ids:.2f})" if ids < 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=(*ARRAYS, *FILES), default=(*ARRAYS, *FILES))
    parser.add_argument("--out", type=Path, default=Path("results/steady"))
    options = parser.parse_args()
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    found: dict[str, dict[str, str]] = {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in options.tables:
            if name in FILES:
                if data_home() is not None:
                    found[f"{name}, cluster"] = of_file(name)
            else:
                X, tasks, k = ARRAYS[name]()
                numbers = (k, "auto") if name in MORE else (k,)
                for number in numbers:
                    found[f"{name}, {number}"] = of_arrays(
                        X, tasks, lambda own, ids, n=number, **given: DMTRC(n, **given).fit(own, tasks=ids).labels_
                    )
                if name in MORE:
                    found[f"{name}, fit_task"] = of_new_task(X, tasks, k)
            print(name, list(found.values())[-1:], flush=True)
    lines = [[name, *(cells.get(change, "") for change in CHANGES)] for name, cells in found.items()]
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table.md").write_text("\n".join([made_by(), "", *markdown_table(["table", *CHANGES], lines), ""]))


if __name__ == "__main__":
    main()
