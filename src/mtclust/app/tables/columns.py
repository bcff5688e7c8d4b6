"""How one column becomes features, learned once and repeated exactly: numbers, categories, dates, text.

Every kind has ``transform(cells)``, ``features`` (what its features are called and mean) and plain dictionaries to and
from which it is saved.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from mtclust.app.tables.parsing import Cells, read_dates, read_numbers
from mtclust.exceptions import CommandError
from mtclust.features import TaskTfidf

Array = NDArray[np.float64]

#: the level that ``--impute`` gives to a category that is missing
MISSING_LEVEL = "(missing)"
_DAYS_PER_YEAR = 365.2425


@dataclass(frozen=True)
class Feature:
    """One column of X: ``offset + factor · x`` is its value as it stands in the file.

    ``kind`` is "number", "category" (the value is 1 for rows of the level), "date" (days since 1970), "season" or
    "word".
    """

    name: str
    kind: str
    offset: float = 0.0
    factor: float = 1.0


@dataclass(frozen=True)
class NumberColumn:
    """(value − centre)/scale."""

    kind: ClassVar[str] = "number"
    name: str
    centre: float
    scale: float
    fill: float
    decimal: str

    @classmethod
    def learn(cls, cells: Cells, values: Array, decimal: str, scaling: str) -> NumberColumn:
        centre, scale = _location_and_scale(values, scaling)
        return cls(cells.name, centre, scale, float(np.nanmedian(values)), decimal)

    def transform(self, cells: Cells) -> Array:
        read = read_numbers(cells, self.decimal)
        if read is None and not cells.missing.all():
            raise CommandError(
                f"column {self.name!r} holds numbers in the model, but not in these data (first: "
                f"{cells.example(~cells.missing)}). Mend the column, or fit again with these data."
            )
        values = np.full(len(cells.missing), np.nan) if read is None else read[0]
        return ((np.where(cells.missing, self.fill, values) - self.centre) / self.scale)[:, None]

    @property
    def features(self) -> list[Feature]:
        return [Feature(self.name, self.kind, self.centre, self.scale)]


@dataclass(frozen=True)
class CategoryColumn:
    """One indicator per level, all divided by ``scale``, so that the column as a whole has variance 1."""

    kind: ClassVar[str] = "category"
    name: str
    levels: list[str]
    scale: float

    @classmethod
    def learn(cls, cells: Cells, scaling: str) -> CategoryColumn:
        values = _levels(cells)
        levels, counts = np.unique(values.astype(str), return_counts=True)
        shares = counts / counts.sum()
        variance = 1.0 - float(np.sum(shares**2))
        return cls(cells.name, levels.tolist(), 1.0 if scaling == "none" else float(np.sqrt(variance)))

    def transform(self, cells: Cells) -> Array:
        position = {level: k for k, level in enumerate(self.levels)}
        codes = np.array([position.get(value, -1) for value in _levels(cells)])
        indicators = np.zeros((len(codes), len(self.levels)))
        known = np.flatnonzero(codes >= 0)
        indicators[known, codes[known]] = 1.0 / self.scale
        return indicators

    def unknown(self, cells: Cells) -> list[str]:
        """Levels that were not there when the column was learned."""
        return sorted(set(_levels(cells).tolist()) - set(self.levels))

    @property
    def features(self) -> list[Feature]:
        return [Feature(f"{self.name} = {level}", self.kind, 0.0, self.scale) for level in self.levels]


@dataclass(frozen=True)
class DateColumn:
    """Days, centred and scaled as numbers are; over more than a year also the season as a point on a circle."""

    kind: ClassVar[str] = "date"
    name: str
    format: str
    centre: float
    scale: float
    fill: float
    season: bool

    @classmethod
    def learn(cls, cells: Cells, days: Array, date_format: str, scaling: str) -> DateColumn:
        centre, scale = _location_and_scale(days, scaling)
        season = bool(np.nanmax(days) - np.nanmin(days) > _DAYS_PER_YEAR)
        return cls(cells.name, date_format, centre, scale, float(np.nanmedian(days)), season)

    def transform(self, cells: Cells) -> Array:
        read = read_dates(cells, self.format)
        if read is None and not cells.missing.all():
            raise CommandError(
                f"column {self.name!r} holds dates in the model, but not in these data (first: "
                f"{cells.example(~cells.missing)}). Mend the column, or fit again with these data."
            )
        days = np.full(len(cells.missing), np.nan) if read is None else read[0]
        days = np.where(cells.missing, self.fill, days)
        position = ((days - self.centre) / self.scale)[:, None]
        if not self.season:
            return position
        angle = 2 * np.pi * days / _DAYS_PER_YEAR
        return np.column_stack([position, np.cos(angle), np.sin(angle)])

    @property
    def features(self) -> list[Feature]:
        found = [Feature(self.name, self.kind, self.centre, self.scale)]
        if self.season:
            found += [
                Feature(f"{self.name}: {part}", "season") for part in ("winter (−1: summer)", "spring (−1: autumn)")
            ]
        return found


@dataclass(frozen=True)
class TextColumn:
    """Sublinear tf × idf over all tasks, rows of length 1 (:class:`mtclust.features.TaskTfidf`)."""

    kind: ClassVar[str] = "text"
    name: str
    terms: list[str]
    idf: list[float]

    @classmethod
    def learn(cls, cells: Cells) -> TextColumn:
        try:
            weights = TaskTfidf().fit(cells.strings.tolist())
        except ValueError as error:
            raise CommandError(f"--text-column {cells.name!r} has no words to work with: {error}.") from error
        return cls(cells.name, weights.get_feature_names_out().tolist(), weights.idf_.tolist())

    def transform(self, cells: Cells) -> Any:
        counts = CountVectorizer(vocabulary=self.terms).transform(cells.strings.tolist())
        weights = TfidfTransformer(sublinear_tf=True, norm="l2")
        weights.idf_ = np.asarray(self.idf)
        return sp.csr_matrix(weights.transform(counts))

    @property
    def features(self) -> list[Feature]:
        return [Feature(term, "word") for term in self.terms]


Column = NumberColumn | CategoryColumn | DateColumn | TextColumn
_KINDS: dict[str, type[Column]] = {kind.kind: kind for kind in (NumberColumn, CategoryColumn, DateColumn, TextColumn)}


def column_to_dict(column: Column) -> dict[str, Any]:
    return {"kind": column.kind} | asdict(column)


def column_from_dict(saved: dict[str, Any]) -> Column:
    return _KINDS[saved["kind"]](**{key: value for key, value in saved.items() if key != "kind"})


def _levels(cells: Cells) -> NDArray[Any]:
    return np.where(cells.missing, MISSING_LEVEL, cells.strings)


def _location_and_scale(values: Array, scaling: str) -> tuple[float, float]:
    known = values[~np.isnan(values)]
    if scaling == "none":
        return 0.0, 1.0
    if scaling == "range":
        return float(known.min()), float(known.max() - known.min())
    return float(known.mean()), float(known.std())
