"""How one column becomes features, learned once and repeated exactly: numbers, categories, dates, text.

Every kind has ``transform(cells, tasks)``, ``features`` (what its features are called and mean) and plain dictionaries
to and from which it is saved. What is missing is filled in from the rows of the same task.

How much a column weighs: a number has standard deviation 1. A category as a whole, a date and a number with at most
five values (yes and no, a year of three, a rating) have ⅓, since every table can be cut neatly along them, whether or
not that says anything about the rows; where they go together with other columns, their clusters are found all the same
(``benchmarks/column_weights.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from mtclust.app.tables.values import Cells, NumberForm, read_dates, read_numbers
from mtclust.exceptions import TableError
from mtclust.text import TaskTfidf
from mtclust.util.messages import option

Array = NDArray[np.float64]
Tasks = NDArray[np.str_]

#: the level of a category that is missing, where its absence says something about the row
MISSING_LEVEL = "(missing)"
#: standard deviation of a category as a whole and of a date, where numbers have 1
CATEGORY_WEIGHT = 1 / 3
DATE_WEIGHT = 1 / 3
#: numbers with so few different values, each in so many rows on average, weigh as categories do
FEW_VALUES, ROWS_PER_VALUE = 5, 2
_DAYS_PER_YEAR = 365.2425
#: dates whose places on the circle of the year have a mean at least so long fall into one season (a month around a day)
ONE_SEASON = 0.9


@dataclass(frozen=True)
class Feature:
    """One column of X: ``offset + factor · x`` is its value as it stands in the table.

    ``kind`` is "number", "year", "category" (the value is 1 for rows of the level, or for rows whose value is missing),
    "date" (days since 1970), "season", "topic" or "word"; ``column`` is the column of the table that it comes from, and
    ``opposite`` what a category of two levels is called where it is not this one.
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
    """(value − centre)/scale; ``fills`` are the medians of the tasks, ``few`` says that different values are few."""

    kind: ClassVar[str] = "number"
    name: str
    centre: float
    scale: float
    fill: float
    fills: dict[str, float]
    form: dict[str, Any]
    year: bool = False
    few: bool = False

    @classmethod
    def learn(cls, cells: Cells, values: Array, form: NumberForm, scaling: str, tasks: Tasks) -> NumberColumn:
        centre, scale = _location_and_scale(values, scaling)
        known = values[~np.isnan(values)]
        year = bool(np.all(known == np.rint(known)) and known.min() >= 1500 and known.max() <= 2200)
        fill, fills = _medians(cells, values, tasks)
        distinct = len(np.unique(known))
        few = distinct <= FEW_VALUES and len(known) >= ROWS_PER_VALUE * distinct
        if scaling == "standard" and few:
            scale /= CATEGORY_WEIGHT
        return cls(cells.name, centre, scale, fill, fills, form.to_dict(), year, few)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        form = NumberForm(**self.form)
        read = read_numbers(cells, form)
        if read is None and not cells.missing.all():
            wrong = ~cells.missing & np.isnan([form.value(cell) for cell in cells.strings])
            raise TableError(
                f"column {self.name!r} holds numbers in the model, but not in all of these rows (first: "
                f"{cells.example(wrong)}). Correct the column, or fit again with these data."
            )
        values = np.full(len(cells.missing), np.nan) if read is None else read[0]
        return ((_filled(cells, values, tasks, self.fill, self.fills) - self.centre) / self.scale)[:, None]

    @property
    def features(self) -> list[Feature]:
        kind = "year" if self.year else self.kind
        return [Feature(self.name, kind, self.centre, self.scale, str(self.form["unit"]), self.name)]


@dataclass(frozen=True)
class CategoryColumn:
    """One indicator per level, of two levels only of the second; divided by ``scale``.

    A missing value is a level of its own where absence informs; elsewhere such a row gets the shares of its task, so
    that it is nearer to no level than the task is. ``fills`` are these shares.
    """

    kind: ClassVar[str] = "category"
    name: str
    levels: list[str]
    scale: float
    fill: list[float]
    fills: dict[str, list[float]]

    @classmethod
    def learn(cls, cells: Cells, scaling: str, tasks: Tasks, *, missing_level: bool = False) -> CategoryColumn:
        values = np.where(cells.missing, MISSING_LEVEL, cells.strings) if missing_level else cells.strings
        known = np.ones(len(values), dtype=bool) if missing_level else ~cells.missing
        levels, codes = np.unique(values[known].astype(str), return_inverse=True)
        indicators = np.eye(len(levels))[codes]
        shares = indicators.mean(axis=0)
        spread = float(np.sqrt((1.0 - np.sum(shares**2)) / (2 if len(levels) == 2 else 1)))
        scale = {"standard": spread / CATEGORY_WEIGHT, "range": 1.0 / CATEGORY_WEIGHT, "none": 1.0}[scaling]
        fills = {}
        for task in np.unique(tasks) if cells.missing.any() else ():
            own = indicators[tasks[known] == task]
            if len(own):
                fills[str(task)] = own.mean(axis=0).tolist()
        return cls(cells.name, levels.tolist(), scale or 1.0, shares.tolist(), fills)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        position = {level: k for k, level in enumerate(self.levels)}
        own_level = position.get(MISSING_LEVEL, -1)
        codes = np.array([position.get(value, -1) for value in cells.strings])
        codes[cells.missing] = own_level
        indicators = np.zeros((len(codes), len(self.levels)))
        known = np.flatnonzero(codes >= 0)
        indicators[known, codes[known]] = 1.0
        for row in np.flatnonzero(cells.missing) if own_level < 0 else ():
            indicators[row] = self.fills.get(str(tasks[row]), self.fill)
        return (indicators[:, 1:] if len(self.levels) == 2 else indicators) / self.scale

    def unknown(self, cells: Cells) -> list[str]:
        """Levels that were not there when the column was learned."""
        return sorted(set(cells.strings[~cells.missing].tolist()) - set(self.levels))

    @property
    def features(self) -> list[Feature]:
        shown = self.levels[1:] if len(self.levels) == 2 else self.levels
        opposite = f"{self.name} = {self.levels[0]}" if len(self.levels) == 2 else ""
        return [
            Feature(f"{self.name} = {level}", self.kind, 0.0, self.scale, "", self.name, opposite) for level in shown
        ]


@dataclass(frozen=True)
class MissingColumn:
    """Whether a value of a number or date is missing, where that says something about the row."""

    kind: ClassVar[str] = "missing"
    name: str
    scale: float

    @classmethod
    def learn(cls, cells: Cells, scaling: str) -> MissingColumn:
        share = float(cells.missing.mean())
        spread = float(np.sqrt(share * (1 - share)))
        return cls(cells.name, 1.0 if scaling == "none" else spread / CATEGORY_WEIGHT)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        return (cells.missing / self.scale)[:, None]

    @property
    def features(self) -> list[Feature]:
        return [Feature(f"{self.name} is missing", "category", 0.0, self.scale, "", self.name)]


@dataclass(frozen=True)
class DateColumn:
    """Days, centred and scaled as numbers are.

    Over more than a year, and unless all fall into one season, also the season as a point on a circle.
    """

    kind: ClassVar[str] = "date"
    name: str
    format: str
    centre: float
    scale: float
    fill: float
    fills: dict[str, float]
    season: bool

    @classmethod
    def learn(cls, cells: Cells, days: Array, date_format: str, scaling: str, tasks: Tasks) -> DateColumn:
        centre, scale = _location_and_scale(days, scaling)
        angle = 2 * np.pi * days[~np.isnan(days)] / _DAYS_PER_YEAR
        same = float(np.hypot(np.cos(angle).mean(), np.sin(angle).mean()))  # 1: all on one day of the year
        season = bool(np.nanmax(days) - np.nanmin(days) > _DAYS_PER_YEAR) and same < ONE_SEASON
        weight = 1.0 if scaling == "none" else DATE_WEIGHT
        return cls(cells.name, date_format, centre, scale / weight, *_medians(cells, days, tasks), season)

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        read = read_dates(cells, self.format)
        if read is None and not cells.missing.all():
            raise TableError(
                f"column {self.name!r} holds dates in the model, but not in these data (first: "
                f"{cells.example(~cells.missing)}). Correct the column, or fit again with these data."
            )
        days = np.full(len(cells.missing), np.nan) if read is None else read[0]
        days = _filled(cells, days, tasks, self.fill, self.fills)
        position = ((days - self.centre) / self.scale)[:, None]
        if not self.season:
            return position
        angle = 2 * np.pi * days / _DAYS_PER_YEAR
        return np.column_stack([position, DATE_WEIGHT * np.cos(angle), DATE_WEIGHT * np.sin(angle)])

    @property
    def features(self) -> list[Feature]:
        found = [Feature(self.name, self.kind, self.centre, self.scale, "", self.name)]
        if self.season:
            found += [
                Feature(f"{self.name}: {part}", "season", 0.0, 1.0 / DATE_WEIGHT, "", self.name)
                for part in ("winter ↔ summer", "spring ↔ autumn")
            ]
        return found


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
        counts = CountVectorizer(vocabulary=self.terms).transform(cells.strings.tolist())
        weights = TfidfTransformer(sublinear_tf=True, norm="l2")
        weights.idf_ = np.asarray(self.idf)
        return sp.csr_matrix(weights.transform(counts))

    @property
    def features(self) -> list[Feature]:
        return [Feature(term, "word", column=self.name) for term in self.terms]


def centred(block: Array, tasks: Tasks) -> Array:
    """Columns with mean 0 in every task."""
    _, codes = np.unique(tasks, return_inverse=True)
    counts = np.bincount(codes)
    means = np.stack([np.bincount(codes, column) / counts for column in block.T], axis=1)
    return block - means[codes]


def _medians(cells: Cells, values: Array, tasks: Tasks) -> tuple[float, dict[str, float]]:
    """The median of all rows, and where something is missing those of the tasks."""
    fills = {}
    for task in np.unique(tasks) if cells.missing.any() else ():
        own = values[(tasks == task) & ~np.isnan(values)]
        if len(own):
            fills[str(task)] = float(np.median(own))
    return float(np.nanmedian(values)), fills


def _filled(cells: Cells, values: Array, tasks: Tasks, fill: float, fills: Mapping[str, float]) -> Array:
    filled = values.copy()
    for row in np.flatnonzero(cells.missing):
        filled[row] = fills.get(str(tasks[row]), fill)
    return filled


def _location_and_scale(values: Array, scaling: str) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if scaling == "none":
        return 0.0, 1.0
    if scaling == "range":
        return float(known.min()), float(known.max() - known.min())
    return float(known.mean()), float(known.std())


#: rows whose squares sum to less than this about the means of their tasks are all the same
_FLAT = 1e-9
#: directions of a text, and words that name an end of each
TOPICS, _WORDS = 5, 3


@dataclass(frozen=True)
class TopicColumn:
    """Main directions of the word weights of a text within tasks, together with variance 1, as one number has.

    ``axes`` are the directions (one list of weights per topic, already divided by their common scale), ``centre`` what
    the mean of all texts has on them, ``names`` the words that tell most at either end.
    """

    kind: ClassVar[str] = "topics"
    name: str
    text: TextColumn
    axes: list[list[float]] = field(repr=False)
    centre: list[float] = field(repr=False)
    names: list[str]

    @classmethod
    def learn(cls, cells: Cells, tasks: Tasks) -> TopicColumn:
        text = TextColumn.learn(cells)
        weights = text.transform(cells, tasks)
        _, codes = np.unique(tasks, return_inverse=True)
        axes, _ = leading_axes(weights, codes, max(1, min(TOPICS, min(weights.shape) - 2)))
        places = np.asarray(weights @ axes.T)
        scale = float(np.sqrt(centred(places, tasks).var(axis=0).sum())) or 1.0
        names = [f"{cells.name}: {_words(axis, text.terms)} ↔ {_words(-axis, text.terms)}" for axis in axes]
        return cls(cells.name, text, (axes / scale).tolist(), (places.mean(axis=0) / scale).tolist(), names)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TopicColumn:
        return cls(**{**saved, "text": TextColumn(**saved["text"])})

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        weights = self.text.transform(cells, tasks)
        return np.asarray(weights @ np.asarray(self.axes).T) - np.asarray(self.centre)

    @property
    def features(self) -> list[Feature]:
        return [Feature(name, "topic", column=self.name) for name in self.names]


def leading_axes(rows: Any, tasks: NDArray[np.int64], k: int) -> tuple[Array, float]:
    """The k directions (k × d) in which rows of the same task differ most, and their share of all differences.

    The largest entry of every direction is positive, so that it does not depend on chance.
    """
    n, d = rows.shape
    rows_of = sp.csr_matrix((np.ones(n), (np.arange(n), tasks)))
    means = np.asarray((rows_of.T @ rows).todense() if sp.issparse(rows) else rows_of.T @ rows)
    means = means / np.maximum(np.bincount(tasks), 1)[:, None]
    squares = rows.multiply(rows).sum() if sp.issparse(rows) else np.sum(rows**2)
    total = float(squares - np.sum(np.bincount(tasks)[:, None] * means**2))
    if not sp.issparse(rows) or min(n, d) <= k + 1 or total <= _FLAT:
        dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        _, strength, axes = np.linalg.svd(dense - means[tasks], full_matrices=False)
        strength, axes = strength[:k], axes[:k]
    else:
        within = LinearOperator(
            (n, d), dtype=np.float64,
            matvec=lambda v: rows @ v - rows_of @ (means @ v),
            rmatvec=lambda u: rows.T @ u - means.T @ (rows_of.T @ u),
        )  # fmt: skip
        start = np.random.default_rng(0).normal(size=min(n, d))
        _, strength, axes = svds(within, k=k, v0=start, solver="arpack")
        order = np.argsort(-strength, kind="stable")
        strength, axes = strength[order], axes[order]
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    share = float(np.sum(strength**2)) / total if total > _FLAT else 0.0
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None], min(share, 1.0)


def _words(axis: Array, terms: list[str]) -> str:
    return ", ".join(terms[k] for k in np.argsort(-axis, kind="stable")[:_WORDS])


Column = NumberColumn | CategoryColumn | MissingColumn | DateColumn | TextColumn | TopicColumn
_KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (NumberColumn, CategoryColumn, MissingColumn, DateColumn, TextColumn, TopicColumn)
}


def column_to_dict(column: Column) -> dict[str, Any]:
    """A column in plain lists, numbers and strings."""
    return {"kind": column.kind} | asdict(column)


def column_from_dict(saved: dict[str, Any]) -> Column:
    """The column that :func:`column_to_dict` described."""
    values = {key: value for key, value in saved.items() if key != "kind"}
    kind = _KINDS[saved["kind"]]
    return TopicColumn.from_dict(values) if kind is TopicColumn else kind(**values)
