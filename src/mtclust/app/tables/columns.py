"""How one column becomes features, learned once and repeated exactly: numbers, categories, dates, text.

Every kind has ``transform(cells, tasks)``, ``features`` (what its features are called and mean) and plain dictionaries
to and from which it is saved. What is missing is filled in from the rows of the same task.

How much a column weighs: a number has standard deviation 1. A category as a whole, a date and a number with at most
five values (yes and no, a year of three, a rating) have ⅓, since every table can be cut neatly along them, whether or
not that says anything about the rows; where they go together with other columns, their clusters are found all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from mtclust.app.tables.values import Cells, NumberForm
from mtclust.core import Array
from mtclust.exceptions import TableError
from mtclust.text import TaskTfidf
from mtclust.util.messages import option
from mtclust.util.system import pandas

Tasks = NDArray[np.str_]

#: standard deviation of a category as a whole and of a date, where numbers have 1
CATEGORY_WEIGHT = 1 / 3
#: numbers with so few different values, each in so many rows on average, weigh as categories do
FEW_VALUES, ROWS_PER_VALUE = 5, 2


@dataclass(frozen=True)
class Feature:
    """One column of X: ``offset + factor · x`` is its value as it stands in the table.

    ``kind`` is "number", "year", "category" (the value is 1 for rows of the level), "date" (days since 1970), "topic"
    or "word"; ``column`` is the column of the table that it comes from, and ``opposite`` what a category of two
    levels is called where it is not this one.
    """

    name: str
    kind: str
    offset: float = 0.0
    factor: float = 1.0
    unit: str = ""
    column: str = ""
    opposite: str = ""


@dataclass(frozen=True)
class NumberColumn:
    """(value − centre)/scale; ``fills`` are the medians of the tasks, ``few`` says that different values are few.

    The values of a date are days, and its ``form`` is a format of dates.
    """

    name: str
    centre: float
    scale: float
    fill: float
    fills: dict[str, float]
    form: NumberForm | str
    year: bool = False
    few: bool = False

    @classmethod
    def learn(cls, cells: Cells, values: Array, form: NumberForm | str, scaling: str, tasks: Any) -> NumberColumn:
        """Values are summed in the order of their size, so that the order of the rows changes no digit."""
        known = np.sort(values[~cells.missing])
        centre, scale = 0.0, 1.0
        if scaling == "range":
            centre, scale = float(known[0]), float(known[-1] - known[0])
        elif scaling == "standard":
            centre = float(known.mean())
            far = max(known[-1] - centre, centre - known[0])  # whose square may be too large or too small
            scale = float(far * np.sqrt(np.mean(((known - centre) / far) ** 2)))
        fills: dict[str, float] = {}
        if cells.missing.any():
            medians = pandas.Series(values).groupby(tasks, observed=True).median().dropna()
            fills = {str(task): float(median) for task, median in medians.items()}
        fill = float(np.median(known))
        if isinstance(form, str):  # of dates
            light = CATEGORY_WEIGHT if scaling != "none" else 1.0
            return cls(cells.name, centre, scale / light, fill, fills, form, few=True)
        year = bool(np.all(known == np.rint(known)) and known[0] >= 1500 and known[-1] <= 2200)
        few = cells.distinct <= FEW_VALUES and len(known) >= ROWS_PER_VALUE * cells.distinct
        light = CATEGORY_WEIGHT if few and scaling == "standard" else 1.0
        return cls(cells.name, centre, scale / light, fill, fills, form, year, few)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        """What the cells hold, and the medians of the tasks where it is missing; refused if it is not as in ``fit``."""
        values = np.full(len(cells.missing), np.nan)
        if not cells.missing.all():
            read = cells.dates(self.form) if isinstance(self.form, str) else cells.numbers(self.form)
            if read is None:
                wrong = ~cells.missing if isinstance(self.form, str) else cells.no_numbers(self.form)
                raise TableError(
                    f"column {self.name!r} holds {self.kind}s in the model, but not in all of these rows (first: "
                    f"{cells.example(wrong)}). Correct the column, or fit again with these data."
                )
            values = read[0].copy()
        values[cells.missing] = [self.fills.get(str(task), self.fill) for task in tasks[cells.missing]]
        return ((values - self.centre) / self.scale)[:, None]

    @property
    def kind(self) -> str:
        return "date" if isinstance(self.form, str) else "number"

    @property
    def features(self) -> list[Feature]:
        kind, unit = "year" if self.year else self.kind, "" if isinstance(self.form, str) else self.form.unit
        return [Feature(self.name, kind, self.centre, self.scale, unit, self.name)]


@dataclass(frozen=True)
class CategoryColumn:
    """One indicator per level, of two levels only of the second; divided by ``scale``.

    A row whose value is missing gets the shares of its task (``fills``), so that it is nearer to no level than the task
    is. So does one of neither of two levels; of more levels it has none.
    """

    kind: ClassVar[str] = "category"
    name: str
    levels: list[str]
    scale: float
    fill: list[float]
    fills: dict[str, list[float]]

    @classmethod
    def learn(cls, cells: Cells, scaling: str, tasks: Any) -> CategoryColumn:
        counts = pandas.crosstab(np.asarray(tasks)[~cells.missing], cells.strings[~cells.missing])
        shares = counts.sum().to_numpy() / counts.to_numpy().sum()
        spread = float(np.sqrt((1.0 - np.sum(shares**2)) / (2 if len(shares) == 2 else 1)))
        scale = {"standard": spread / CATEGORY_WEIGHT, "range": 1.0 / CATEGORY_WEIGHT, "none": 1.0}[scaling]
        of_tasks = counts.div(counts.sum(axis=1), axis=0) if cells.missing.any() else counts[:0]
        fills = {str(task): own.tolist() for task, own in zip(of_tasks.index, of_tasks.to_numpy())}
        return cls(cells.name, [str(level) for level in counts.columns], scale, shares.tolist(), fills)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        codes = pandas.Index(self.levels).get_indexer(cells.strings)
        indicators = np.vstack([np.eye(len(self.levels)), np.zeros(len(self.levels))])[codes]
        absent = cells.missing | (codes < 0) if len(self.levels) == 2 else cells.missing
        if absent.any():
            indicators[absent] = [self.fills.get(str(task), self.fill) for task in tasks[absent]]
        return (indicators[:, 1:] if len(self.levels) == 2 else indicators) / self.scale

    @property
    def features(self) -> list[Feature]:
        names = [f"{self.name} = {level}" for level in self.levels]
        shown, opposite = (names[1:], names[0]) if len(names) == 2 else (names, "")
        return [Feature(name, self.kind, 0.0, self.scale, "", self.name, opposite) for name in shown]


@dataclass(frozen=True)
class TextColumn:
    """Sublinear tf × idf over all tasks, rows of length 1 (:class:`mtclust.text.TaskTfidf`)."""

    kind: ClassVar[str] = "text"
    name: str
    terms: list[str] = field(repr=False)
    idf: list[float] = field(repr=False)

    @classmethod
    def learn(cls, cells: Cells) -> TextColumn:
        try:
            weights = TaskTfidf().fit(cells.strings.tolist())
        except ValueError as error:
            asked = option("text_column", repr(cells.name))
            raise TableError(f"{asked} has no words to work with: {error}.") from error
        return cls(cells.name, weights.get_feature_names_out().tolist(), weights.idf_.tolist())

    def transform(self, cells: Cells, tasks: Tasks) -> Any:
        weights = TaskTfidf(vocabulary=self.terms)
        weights.idf_ = np.asarray(self.idf)
        return sp.csr_matrix(weights.transform(cells.strings.tolist()))

    @property
    def features(self) -> list[Feature]:
        return [Feature(term, "word", column=self.name) for term in self.terms]


def centred(block: Array, codes: NDArray[Any]) -> Array:
    """Columns with mean 0 in every task."""
    counts = np.maximum(np.bincount(codes), 1)
    means = np.stack([np.bincount(codes, column) / counts for column in block.T], axis=1)
    return block - means[codes]


#: directions of a text
TOPICS = 5


@dataclass(frozen=True)
class TopicColumn(TextColumn):
    """Main directions of the word weights of a text within tasks, together with variance 1, as one number has.

    ``axes`` are the directions (one list of weights per topic, already divided by their common scale), ``centre`` what
    the mean of all texts has on them, ``names`` the words that tell most at either end.
    """

    kind: ClassVar[str] = "topics"
    axes: list[list[float]] = field(repr=False)
    centre: list[float] = field(repr=False)
    names: list[str]

    @classmethod
    def learn_topics(cls, cells: Cells, tasks: Any) -> TopicColumn:
        text = TextColumn.learn(cells)
        rows = list(zip(cells.strings, tasks.codes))
        order = sorted(range(len(rows)), key=rows.__getitem__)  # that of the table changes no digit
        weights, codes = text.transform(cells, tasks)[order], np.asarray(tasks.codes)[order]
        axes = leading_axes(weights, codes, max(1, min(TOPICS, min(weights.shape) - 2)))
        places = np.asarray(weights @ axes.T)
        scale = float(np.sqrt(centred(places, codes).var(axis=0).sum())) or 1.0
        ends = [[", ".join(text.terms[k] for k in np.argsort(-end, kind="stable")[:3]) for end in (axis, -axis)]
                for axis in axes]  # fmt: skip
        names = [f"{cells.name}: {one} ↔ {other}" for one, other in ends]
        mean = (places.mean(axis=0) / scale).tolist()
        return cls(cells.name, text.terms, text.idf, (axes / scale).tolist(), mean, names)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        return np.asarray(super().transform(cells, tasks) @ np.asarray(self.axes).T) - np.asarray(self.centre)

    @property
    def features(self) -> list[Feature]:
        return [Feature(name, "topic", column=self.name) for name in self.names]


def leading_axes(rows: Any, tasks: NDArray[np.int64], k: int) -> Array:
    """The k directions (k × d) in which rows of the same task differ most, their largest entries positive."""
    n, d = rows.shape
    few = k + 1 if sp.issparse(rows) else 500
    rows = sp.csr_matrix(rows)
    rows_of = sp.csr_matrix((np.ones(n), (np.arange(n), tasks)))
    means = (rows_of.T @ rows).toarray() / np.maximum(np.bincount(tasks), 1)[:, None]
    squares = rows.multiply(rows).sum() - np.sum(np.bincount(tasks)[:, None] * means**2)
    if squares <= 1e-9 or min(n, d) <= few:  # 0 where the rows of a task are all the same
        axes = np.linalg.svd(rows.toarray() - means[tasks], full_matrices=False)[2][:k]
    else:
        within = LinearOperator(
            (n, d), dtype=np.float64,
            matvec=lambda v: rows @ v - rows_of @ (means @ v),
            rmatvec=lambda u: rows.T @ u - means.T @ (rows_of.T @ u),
        )  # fmt: skip
        start = np.random.default_rng(0).normal(size=min(n, d))
        _, strength, axes = svds(within, k=k, v0=start, solver="arpack")
        axes = axes[np.argsort(-strength, kind="stable")]
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None]


def plane(rows: Any, tasks: NDArray[np.int64], sample: NDArray[np.int64]) -> Array:
    """Two coordinates of all rows, on the main directions within tasks of a sample of them."""
    axes = np.zeros((2, rows.shape[1]))
    leading = leading_axes(rows[sample], tasks[sample], min(axes.shape))
    axes[: len(leading)] = leading
    return centred(np.asarray(rows @ axes.T), tasks)


Column = NumberColumn | CategoryColumn | TextColumn | TopicColumn
_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (CategoryColumn, TextColumn, TopicColumn)}
_KINDS |= {"number": NumberColumn, "date": NumberColumn}


def column_from_dict(saved: dict[str, Any]) -> Column:
    """The column of a saved encoding, also of one by version 0.2."""
    values = saved | saved.get("text", {})
    if values.pop("season", False) or values.get("form") == "mixed":
        raise TableError(f"column {values['name']!r} holds dates as this version no longer reads them; fit again.")
    if isinstance(values.get("form"), dict):
        values["form"] = NumberForm(**values["form"])
    return _KINDS[values.pop("kind")](**{name: value for name, value in values.items() if name != "text"})
