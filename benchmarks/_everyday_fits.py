"""Data and methods of the everyday benchmark: the sizes people have, and everything left to the model but k."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from _scale_data import Cell, Mixture, draw
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks

ESTIMATORS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}
#: as scikit-learn gives it, task by task
REFERENCE = "KMeans()"
METHODS = (REFERENCE, *ESTIMATORS)
CELLS = {
    "300 rows, 3 tasks": Cell(300, 3),
    "1 000 rows, 3 tasks": Cell(1000, 3),
    "1 000 rows, 10 tasks": Cell(1000, 10),
    "2 000 rows, 3 tasks": Cell(2000, 3),
    "2 000 rows, 30 tasks": Cell(2000, 30),
    "30 tasks × 12 rows": Cell(360, 30, features=10, clusters=3),
}
QUICK_CELL = "90 rows, 3 tasks"
QUICK_CELLS = {QUICK_CELL: Cell(90, 3, features=5, clusters=3)}
#: rows of each digit in a task: real data beside the mixtures
DIGITS = {"digits, 300 rows, 3 tasks": 20, "digits, 870 rows, 3 tasks": 58}
#: on both sides of every size at which something in the library could change
GROWTH_ROWS = (100, 200, 400, 700, 1000, 1400, 1900, 2100, 3000, 10**4, 30_000, 10**5, 300_000, 10**6)


def growth_cell(rows: int) -> Cell:
    return Cell(rows, 5 if rows < 1000 else 10)


def load(name: str, seed: int) -> Mixture:
    """A draw of one of the sizes, or of the digits."""
    if name in DIGITS:
        return digits(DIGITS[name], seed)
    return draw((CELLS | QUICK_CELLS)[name], seed)


def digits(rows_per_class: int | tuple[int, ...], seed: int) -> Mixture:
    """Three tasks of five digits."""
    X, y, tasks = load_digits_tasks(rows_per_class=rows_per_class, seed=seed).X_y_tasks
    tasks = np.asarray(tasks)
    offsets = np.flatnonzero(np.r_[True, tasks[1:] != tasks[:-1], True])
    return Mixture(np.asarray(X, float), np.asarray(y), tasks, offsets, len(np.unique(y)))


def fit(method: str, data: Mixture, seed: int) -> NDArray[Any]:
    """Labels; only the number of clusters is given."""
    if method == REFERENCE:
        return np.concatenate([KMeans(data.n_clusters, random_state=seed).fit_predict(part) for part in data.parts])
    return ESTIMATORS[method](data.n_clusters, random_state=seed).fit(data.X, tasks=data.tasks).labels_
