"""From a table to the matrix that is clustered, and the same again for other rows.

Which columns are used, what each of them holds and how it is scaled is learned by ``fit``, kept as plain JSON and
repeated exactly by ``transform``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from mtclust.app.tables.columns import (
    MISSING_LEVEL,
    CategoryColumn,
    Column,
    DateColumn,
    Feature,
    NumberColumn,
    TextColumn,
    column_from_dict,
    column_to_dict,
)
from mtclust.app.tables.parsing import MISSING, Cells, read_cells, read_dates, read_numbers, refuse_mixed
from mtclust.app.tables.reading import Table
from mtclust.exceptions import CommandError

#: version of the saved form
FORMAT = 1
#: a column of strings with more distinct values is no category but a name or free text
MOST_LEVELS = 50
#: words per cell from which on a column is called free text
_TEXT_WORDS = 3


@dataclass(frozen=True)
class EncodingOptions:
    """What the user says about the columns.

    Attributes
    ----------
    columns : sequence of str or None
        The columns to use; None for all that can be.
    text_column : str or None
        The one column of text to use.
    keys : sequence of str
        Columns that name a row and are not used.
    categories : sequence of str
        Columns of numbers that are names, such as postcodes.
    impute : bool
        Fill missing values instead of refusing them.
    scaling : {"standard", "range", "none"}
    missing : sequence of str
        Cells that mean "not known".
    decimal, date_format : str or None
        None is found out.
    """

    columns: Sequence[str] | None = None
    text_column: str | None = None
    keys: Sequence[str] = ()
    categories: Sequence[str] = ()
    impute: bool = False
    scaling: str = "standard"
    missing: Sequence[str] = MISSING
    decimal: str | None = None
    date_format: str | None = None


@dataclass
class TableEncoder:
    """The learned encoding of a table.

    Attributes
    ----------
    columns : list
        How each column becomes features.
    impute : bool
    missing : list of str
    task_column : str or None
    notes : list of str
        What the user should know: columns left out, values filled in.
    """

    columns: list[Column]
    impute: bool = False
    missing: list[str] = field(default_factory=lambda: list(MISSING))
    task_column: str | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def fit(cls, table: Table, options: EncodingOptions) -> TableEncoder:
        """Decide what each column holds and learn how it becomes features."""
        encoder = cls([], options.impute, list(options.missing), table.task_column)
        named = _named_columns(table, options)
        left_out: list[str] = []
        incomplete: list[Cells] = []
        for name in named if named is not None else [c for c in table.frame.columns if c not in options.keys]:
            text = name == options.text_column
            cells = read_cells(table.frame, name, table.row_numbers, ("",) if text else options.missing)
            learned = TextColumn.learn(cells) if text else _learn(cells, options, asked_for=named is not None)
            if isinstance(learned, str):
                left_out.append(f"{name} ({learned})")
                continue
            encoder.columns.append(learned)
            if cells.missing.any():
                incomplete.append(cells)
        if not encoder.columns:
            raise CommandError(f"no column is left to cluster by: {'; '.join(left_out) or 'the table has none'}.")
        if left_out:
            encoder.notes.append(f"Columns left out: {'; '.join(left_out)}.")
        encoder.notes += _missing_notes(incomplete, options.impute)
        return encoder

    def transform(self, table: Table, *, impute: bool | None = None) -> tuple[Any, list[str]]:
        """The matrix of a table's rows, and notes on values that had to be filled in or are not known."""
        absent = [column.name for column in self.columns if column.name not in table.frame.columns]
        if absent:
            raise CommandError(
                f"the model needs columns that are not there: {', '.join(map(repr, absent))}. The columns are "
                f"{', '.join(map(repr, table.frame.columns))}."
            )
        notes: list[str] = []
        blocks, incomplete = [], []
        for column in self.columns:
            tokens = ("",) if isinstance(column, TextColumn) else self.missing
            cells = read_cells(table.frame, column.name, table.row_numbers, tokens)
            if cells.missing.any():
                incomplete.append(cells)
            if isinstance(column, CategoryColumn):
                unknown = [level for level in column.unknown(cells) if level != MISSING_LEVEL]
                if unknown:
                    notes.append(
                        f"Column {column.name} has values that were not there in fit ({_some(unknown)}); "
                        "they count as none of the known ones."
                    )
            blocks.append(column.transform(cells))
        notes += _missing_notes(incomplete, self.impute if impute is None else impute)
        if any(sp.issparse(block) for block in blocks):
            return sp.csr_matrix(sp.hstack(blocks)), notes
        return np.column_stack(blocks), notes

    @property
    def features(self) -> list[Feature]:
        """What the columns of the matrix mean."""
        return [feature for column in self.columns for feature in column.features]

    @property
    def is_text(self) -> bool:
        return any(isinstance(column, TextColumn) for column in self.columns)

    def describe(self) -> str:
        """The columns by kind, in words."""
        parts = []
        for kind, one, many in (
            ("number", "number", "numbers"), ("category", "category", "categories"),
            ("date", "date", "dates"), ("text", "text column", "text columns"),
        ):  # fmt: skip
            count = sum(column.kind == kind for column in self.columns)
            if count:
                parts.append(f"{count} {one if count == 1 else many}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Everything that :meth:`transform` needs, in plain lists, numbers and strings."""
        return {
            "format": FORMAT,
            "impute": self.impute,
            "missing": self.missing,
            "task_column": self.task_column,
            "columns": [column_to_dict(column) for column in self.columns],
        }

    @classmethod
    def from_dict(cls, saved: Any) -> TableEncoder:
        """The encoder that :meth:`to_dict` described."""
        if not isinstance(saved, dict) or "format" not in saved:
            raise CommandError("the model does not say how its table was encoded; it was not made by mtclust fit.")
        if saved["format"] != FORMAT:
            raise CommandError(
                f"the model's table was encoded in format {saved['format']!r}; this version of mtclust reads {FORMAT}. "
                "Use the version that fitted it, or fit again."
            )
        try:
            columns = [column_from_dict(column) for column in saved["columns"]]
            return cls(columns, bool(saved["impute"]), list(saved["missing"]), saved["task_column"])
        except (KeyError, TypeError) as error:
            raise CommandError(
                f"the model's encoding is damaged ({error}); copy the file anew or fit again."
            ) from error


def _named_columns(table: Table, options: EncodingOptions) -> list[str] | None:
    """The columns the user asked for, checked; None where they are left to us."""
    table.require_columns(list(options.keys), "--key")
    table.require_columns(list(options.categories), "--categories")
    if options.text_column is not None:
        table.require_columns([options.text_column], "--text-column")
        return [options.text_column]
    if options.columns is None:
        return None
    table.require_columns(list(options.columns), "--columns")
    return list(dict.fromkeys(options.columns))


def _learn(cells: Cells, options: EncodingOptions, *, asked_for: bool) -> Column | str:
    """How a column becomes features, or in words why it is left out."""
    if cells.missing.all():
        return "empty in every row"
    if cells.distinct == 1 and not cells.missing.any():
        return "the same in every row"
    if cells.name not in options.categories:
        numbers = read_numbers(cells, options.decimal)
        if numbers is not None:
            if cells.distinct == 1:
                return "the same in every row where it is known"
            if not asked_for and _counts_rows(numbers[0]):
                return "counts the rows"
            return NumberColumn.learn(cells, *numbers, options.scaling)
        dates = read_dates(cells, options.date_format)
        if dates is not None:
            return DateColumn.learn(cells, *dates, options.scaling)
        if cells.distinct > MOST_LEVELS:
            refuse_mixed(cells)
    if cells.distinct <= MOST_LEVELS or cells.name in options.categories:
        return CategoryColumn.learn(cells, options.scaling)
    words = float(np.mean([len(value.split()) for value in cells.strings[~cells.missing]]))
    hint = (
        f"free text? --text-column {cells.name}" if words >= _TEXT_WORDS else "a name? --key; a category? --categories"
    )
    reason = f"{cells.distinct} distinct values; {hint}"
    if asked_for:
        raise CommandError(f"--columns names {cells.name!r}, which is neither numbers nor dates and has {reason}.")
    return reason


def _counts_rows(values: Any) -> bool:
    """Whether a column of numbers only numbers the rows."""
    return len(values) > 2 and bool(np.all(np.diff(values) == 1))


def _missing_notes(incomplete: list[Cells], impute: bool) -> list[str]:
    """Refuse missing values, or say that they were filled in."""
    if not incomplete:
        return []
    shown = ", ".join(f"{cells.name} ({int(cells.missing.sum())} rows)" for cells in incomplete)
    if not impute:
        raise CommandError(
            f"values are missing in: {shown}. Use --impute to fill them in (numbers and dates by the median, "
            "categories as a level of their own, text as empty), or leave columns out with --columns."
        )
    return [f"Missing values were filled in: {shown}."]


def _some(values: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(values[:most])
    return f"{shown} and {len(values) - most} more" if len(values) > most else shown
