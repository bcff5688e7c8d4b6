"""What the cells of a column are: numbers or plain strings, and which of them are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.tables.numbers import NumberForm, find_form, is_number
from mtclust.app.wording import option
from mtclust.exceptions import TableError
from mtclust.util.extras import require

Array = NDArray[np.float64]

#: cells that mean "not known"; of text columns only the empty one
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "<NA>")
#: a column is called one of numbers or dates with some wrong cells if at least this share of its cells can be read
MOSTLY = 0.5
#: and one of numbers also with so many different ones, and so many times as many as there are different other cells
_MANY_NUMBERS, _TIMES_OTHERS = 10, 3


@dataclass(frozen=True)
class Cells:
    """The cells of one column.

    Attributes
    ----------
    name : str
    missing : ndarray of bool of shape (n,)
    row_numbers : ndarray of shape (n,)
        For messages.
    text : ndarray of str of shape (n,) or None
        Empty where missing; None where ``typed`` says it all.
    typed : pandas.Series or None
        The column itself where the table says what it holds, and it is not strings.
    """

    name: str
    missing: NDArray[np.bool_]
    row_numbers: NDArray[np.int64]
    text: NDArray[Any] | None = None
    typed: Any = None

    @cached_property
    def strings(self) -> NDArray[Any]:
        """What a person would write; empty where missing."""
        return column_strings(self.typed) if self.text is None else self.text

    @cached_property
    def distinct(self) -> int:
        """How many different values there are."""
        return len(set(self.strings[~self.missing].tolist())) if self.typed is None else int(self.typed.nunique())

    def example(self, wrong: NDArray[np.bool_]) -> str:
        """The first of some cells, for messages."""
        first = int(np.argmax(wrong))
        return f"{self.strings[first][:40]!r} in row {self.row_numbers[first]}"


def column_strings(column: Any) -> NDArray[Any]:
    """A column as the strings a person would write; missing values are empty."""
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    if column.dtype.kind == "f":  # whole numbers that became floats because some are missing
        return np.array(["" if gone else format(value, ".15g") for value, gone in zip(values, missing)], dtype=object)
    return np.array(["" if gone else written(value) for value, gone in zip(values, missing)], dtype=object)


def stripped(strings: NDArray[Any]) -> NDArray[Any]:
    """Strings without the spaces around them."""
    return np.array([value.strip() for value in strings], dtype=object)


def written(value: Any) -> str:
    """A value as a person would write it: of a day no hours.

    Examples
    --------
    >>> import pandas as pd
    >>> written(pd.Timestamp("2024-03-01")), written(pd.Timestamp("2024-03-01 12:30")), written(7)
    ('2024-03-01', '2024-03-01 12:30:00', '7')
    """
    shown = str(value)
    return shown.removesuffix(" 00:00:00") if isinstance(value, datetime) else shown


def read_cells(frame: Any, name: str, row_numbers: NDArray[np.int64], missing: Sequence[str] = MISSING) -> Cells:
    """The cells of a column of a table."""
    pandas = require("pandas", "cli")
    column = frame[name]
    if column.dtype.kind in "iufM":
        gone = column.isna().to_numpy() | _declared_missing(column, missing)
        return Cells(name, gone, row_numbers, typed=column.mask(gone))
    strings = stripped(column_strings(column))
    gone = np.isin(strings, list(missing)) | (strings == "") | _declared_missing(pandas.Series(strings), missing)
    return Cells(name, gone, row_numbers, np.where(gone, "", strings))


def _declared_missing(column: Any, missing: Sequence[str]) -> NDArray[np.bool_]:
    """Numbers and dates that were declared to mean "not known": -999, also where it reads -999.0, or 1900-01-01."""
    pandas = require("pandas", "cli")
    further = pandas.Series([token for token in missing if token not in MISSING], dtype=object)
    if column.dtype.kind == "M":
        tokens = pandas.to_datetime(further, format="ISO8601", errors="coerce", utc=True).dropna()
        return np.asarray(pandas.to_datetime(column, utc=True).isin(tokens), dtype=bool)
    tokens = pandas.to_numeric(further, errors="coerce").dropna().to_numpy(np.float64)
    if not len(tokens):
        return np.zeros(len(column), dtype=bool)
    return np.isin(pandas.to_numeric(column, errors="coerce").to_numpy(np.float64, na_value=np.nan), tokens)


def read_numbers(cells: Cells, form: NumberForm | str | None = None) -> tuple[Array, NumberForm] | None:
    """The numbers of a column (NaN where missing) and how they are written; None if it does not hold numbers.

    ``form`` is how they were written in ``fit``, or the decimal mark, or None to find it out.
    """
    pandas = require("pandas", "cli")
    if cells.typed is not None:
        numeric = cells.typed.dtype.kind in "iuf"
        return (_finite(cells, cells.typed.to_numpy(np.float64, na_value=np.nan)), NumberForm()) if numeric else None
    if cells.missing.all():
        return None
    if form is None or form == "." or (isinstance(form, NumberForm) and not form.written_out):
        strings = pandas.Series(np.where(cells.missing, "nan", cells.strings), dtype=object)
        values = pandas.to_numeric(strings, errors="coerce").to_numpy(np.float64)
        if not np.any(np.isnan(values) & ~cells.missing):
            return _finite(cells, values), NumberForm()
    if not isinstance(form, NumberForm):
        form = find_form(cells.name, cells.strings[~cells.missing], form)
        if form is None:
            return None
    values = np.array([np.nan if gone else form.value(cell) for cell, gone in zip(cells.strings, cells.missing)])
    return None if np.any(np.isnan(values) & ~cells.missing) else (_finite(cells, values), form)


def _finite(cells: Cells, values: Array) -> Array:
    infinite = np.isinf(values)
    if infinite.any():
        raise TableError(
            f"column {cells.name!r} has infinite values ({cells.example(infinite)}); mend them or leave the column out."
        )
    return values


def odd_among_numbers(cells: Cells) -> str:
    """Where a column holds a few whole numbers and something else, what that is (4, 6, 8, rotary); else nothing.

    A column that is mostly numbers, or many numbers and a few words, is refused with the first cell that is none.
    """
    numbers = np.array([not gone and is_number(cell) for cell, gone in zip(cells.strings, cells.missing)])
    wrong = ~numbers & ~cells.missing
    if not wrong.any():
        return ""
    different = set(cells.strings[numbers])
    many = len(different) >= max(_MANY_NUMBERS, _TIMES_OTHERS * len(set(cells.strings[wrong])))
    if not many and numbers.sum() < MOSTLY * (~cells.missing).sum():
        return ""
    if len(different) < _MANY_NUMBERS and all(value.isdecimal() for value in different):
        return cells.example(wrong)
    raise TableError(
        f"column {cells.name!r} holds numbers, but {_cells(wrong)} something else (first: {cells.example(wrong)}). "
        f"Correct them, declare them missing ({option('missing')}), declare the column as categories "
        f"({option('categories')}), or leave it out ({option('keys')})."
    )


def _cells(wrong: NDArray[np.bool_]) -> str:
    return "1 cell is" if wrong.sum() == 1 else f"{int(wrong.sum())} cells are"
