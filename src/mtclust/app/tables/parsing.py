"""What the cells of a column are: numbers, dates or plain strings, and which of them are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust._extras import require
from mtclust.app.tables.numbers import NumberForm, find_form, is_number
from mtclust.app.wording import option
from mtclust.exceptions import TableError

Array = NDArray[np.float64]

#: cells that mean "not known"; of text columns only the empty one
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "<NA>")
#: a column is called one of numbers or dates with some wrong cells if at least this share of its cells can be read
_MOSTLY = 0.5
#: formats of dates besides ISO 8601
_DATE_FORMATS = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
#: cells that a format of dates is tried on before the whole column
_TRIED = 100
#: days are counted from here
_EPOCH = "1970-01-01"


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
    return np.array(["" if gone else str(value) for value, gone in zip(values, missing)], dtype=object)


def read_cells(frame: Any, name: str, row_numbers: NDArray[np.int64], missing: Sequence[str] = MISSING) -> Cells:
    """The cells of a column of a table."""
    column = frame[name]
    if column.dtype.kind in "iufM":
        gone = column.isna().to_numpy()
        return Cells(name, gone, row_numbers, typed=column)
    strings = np.array([value.strip() for value in column_strings(column)], dtype=object)
    gone = np.isin(strings, list(missing)) | (strings == "")
    return Cells(name, gone, row_numbers, np.where(gone, "", strings))


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


def refuse_mixed(cells: Cells) -> None:
    """Refuse a column that is mostly numbers, naming the first cell that is not."""
    numbers = np.array([not gone and is_number(cell) for cell, gone in zip(cells.strings, cells.missing)])
    wrong = ~numbers & ~cells.missing
    if wrong.any() and numbers.sum() >= _MOSTLY * (~cells.missing).sum():
        raise TableError(
            f"column {cells.name!r} holds numbers, but {int(wrong.sum())} cells are something else (first: "
            f"{cells.example(wrong)}). Mend them, declare them missing ({option('missing')}), declare the column as "
            f"categories ({option('categories')}), or leave it out ({option('columns')})."
        )


def read_dates(cells: Cells, date_format: str | None = None) -> tuple[Array, str] | None:
    """Days since 1970 (NaN where missing) and the format that was read; None if the column does not hold dates."""
    pandas = require("pandas", "cli")
    if cells.typed is not None:
        return (_days(pandas.to_datetime(cells.typed, utc=True)), "typed") if cells.typed.dtype.kind == "M" else None
    known = ~cells.missing
    if not known.any() or not any(character.isdigit() for character in cells.strings[np.argmax(known)]):
        return None
    strings = pandas.Series(cells.strings, dtype=object).mask(cells.missing)
    formats = ("ISO8601", *_DATE_FORMATS) if date_format in (None, "typed") else (date_format,)
    found: dict[str, Array] = {}
    best, wrong = 0.0, known
    first_cells = strings[known].head(_TRIED)
    for candidate in formats:
        if pandas.to_datetime(first_cells, format=candidate, errors="coerce", utc=True).isna().all():
            continue
        days = _days(pandas.to_datetime(strings, format=candidate, errors="coerce", utc=True))
        read = ~np.isnan(days)
        if read.sum() == known.sum():
            found[str(candidate)] = days
        elif read.sum() > best:
            best, wrong = float(read.sum()), known & ~read
    if not found:
        if best >= _MOSTLY * known.sum():
            raise TableError(
                f"column {cells.name!r} holds dates, but {int(wrong.sum())} cells cannot be read as such (first: "
                f"{cells.example(wrong)}). Mend them, give {option('date_format')}, or leave the column out "
                f"({option('columns')})."
            )
        return None
    first, *others = found
    if any(not np.array_equal(found[first], found[other], equal_nan=True) for other in others):
        raise TableError(
            f"column {cells.name!r} holds dates that can be read in more than one way ({' or '.join(found)}; first: "
            f"{cells.example(known)}). Say which with {option('date_format')}."
        )
    return found[first], first


def _days(times: Any) -> Array:
    pandas = require("pandas", "cli")
    elapsed = times - pandas.Timestamp(_EPOCH, tz="UTC")
    return (elapsed / pandas.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)


def date_of_days(days: float) -> str:
    """The day as people write it.

    Examples
    --------
    >>> date_of_days(0.2), date_of_days(365.0)
    ('1970-01-01', '1971-01-01')
    """
    return str(np.datetime64(_EPOCH) + np.timedelta64(int(np.floor(days)), "D"))
