"""Generated tables as people have them: columns of every kind, tasks in a column, beside it, as frames or as files."""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import polars
from hypothesis import strategies as st

#: tasks as they are called, two or three of a kind
TASKS = (["a", "b"], ["Zürich", "東京", "O'Brien, <b>"], [2023, 2024], ["1", "01"], [True, False], ["=1+1", "x\u202ey"])
WORDS = ["stock", "price", "market", "bank", "trade", "goal", "match", "team", "player", "league"]


def _numbers(rng, n):
    return rng.normal(size=n) + 4.0 * rng.integers(2, size=n)


#: what a column may hold beside two plain numbers
COLUMNS = {
    "category": lambda rng, n: rng.choice(["red", "green", "blue"], n),
    "category of pandas": lambda rng, n: pd.Categorical(rng.choice(["u", "v"], n)),
    "boolean": lambda rng, n: rng.random(n) < 0.5,
    "yes and no": lambda rng, n: rng.choice(["yes", "no"], n),
    "whole numbers": lambda rng, n: rng.integers(0, 40, n),
    "small float": lambda rng, n: _numbers(rng, n).astype(np.float32),
    "very large": lambda rng, n: 1e12 * _numbers(rng, n),
    "very small": lambda rng, n: 1e-12 * _numbers(rng, n),
    "with holes": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, _numbers(rng, n)),
    "Int64 with holes": lambda rng, n: pd.array([None if v < 5 else v for v in rng.integers(0, 40, n)], dtype="Int64"),
    "words with holes": lambda rng, n: rng.choice(np.array(["x", "y", None], dtype=object), n),
    "per cent": lambda rng, n: [f"{v:.1f}%" for v in 10 * _numbers(rng, n)],
    "money": lambda rng, n: [f"€{v:,.2f}" for v in 1000 + 100 * np.abs(_numbers(rng, n))],
    "with a unit": lambda rng, n: [f"{v:.2f} kg" for v in _numbers(rng, n)],
    "numbers as text": lambda rng, n: [f"{v:.3f}" for v in _numbers(rng, n)],
    "date": lambda rng, n: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D"),
    "date as text": lambda rng, n: [f"2024-{m:02d}-{d:02d}" for m, d in rng.integers(1, 13, size=(n, 2))],
    "year": lambda rng, n: rng.integers(1990, 2024, n),
    "constant": lambda rng, n: np.full(n, 7),
    "empty": lambda rng, n: np.full(n, None, dtype=object),
    "name of the row": lambda rng, n: [f"customer {i}" for i in rng.permutation(n)],
    "text": lambda rng, n: [" ".join(rng.choice(WORDS, 9)) for _ in range(n)],
}
CONTAINERS = ("pandas", "odd index", "polars", "mapping", "series", "csv", "files")


@dataclass(frozen=True)
class TableUse:
    """A table, and what :func:`mtclust.cluster` is told of it."""

    frame: pd.DataFrame = field(repr=False)
    names: list
    columns: tuple
    container: str
    options: dict
    seed: int

    def table(self, folder, which=slice(None)):
        """The table as the user holds it, and ``task``."""
        frame = self.frame.iloc[which].reset_index(drop=True)
        if self.container == "odd index":
            return frame.set_index(pd.Index([f"row {i}" for i in range(len(frame))][::-1])), "task"
        if self.container == "polars":
            return polars.from_pandas(frame), "task"
        if self.container == "series":
            return frame.drop(columns="task"), frame["task"]
        if self.container == "mapping":
            return {name: part.drop(columns="task") for name, part in frame.groupby("task")}, None
        if self.container == "csv":
            frame.to_csv(folder / "table.csv", index=False)
            return folder / "table.csv", "task"
        if self.container == "files":
            return [self._file(folder, k, part) for k, (_, part) in enumerate(frame.groupby("task"))], None
        return frame, "task"

    def further(self, folder):
        """Twelve rows to predict, and ``task``; of files the tasks are the names."""
        if self.container != "files":
            return self.table(folder, slice(12))
        rows = self.frame.iloc[:12]
        places = {name: k for k, name in enumerate(sorted(self.names))}
        return rows.drop(columns="task"), [f"task {places[name]}" for name in rows["task"]]

    @staticmethod
    def _file(folder, number, part):
        path = folder / f"task {number}.csv"
        part.drop(columns="task").to_csv(path, index=False)
        return path


@st.composite
def table_uses(draw):
    """A use that is allowed: any error is a failure."""
    seed = draw(st.integers(0, 2**31))
    rng = np.random.default_rng(seed)
    names = draw(st.sampled_from(TASKS))
    n = draw(st.integers(24, 40))
    columns = tuple(draw(st.lists(st.sampled_from(sorted(COLUMNS)), max_size=4, unique=True)))
    held = {"width": _numbers(rng, n), "height, cm": _numbers(rng, n)}
    held |= {name: COLUMNS[name](rng, n) for name in columns}
    frame = pd.DataFrame(held)
    frame.insert(int(rng.integers(len(held))), "task", [names[i % len(names)] for i in range(n)])
    options = {
        "n_clusters": draw(st.sampled_from([2] * 6 + [3, 3, range(2, 4), "auto"])),
        "method": draw(st.sampled_from(["dmtrc", "dmtrc", "dmtfc", "dstc"])),
        "kernel": draw(st.sampled_from(["auto", "linear", "rbf"])),
        "scale": draw(st.sampled_from(["standard", "range"])),
        "sizes": draw(st.sampled_from(["auto", "auto", "balanced", 0.5])),
        "random_state": draw(st.sampled_from([0, None])),
    }
    return TableUse(frame, names, columns, draw(st.sampled_from(CONTAINERS)), options, seed)
