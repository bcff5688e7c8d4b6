"""What the cells of a column are: numbers, dates or plain strings, and which of them are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust._extras import require
from mtclust.app.tables.reading import column_strings
from mtclust.exceptions import CommandError

Array = NDArray[np.float64]

#: cells that mean "not known"; of text columns only the empty one
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "<NA>")
#: a column is called one of numbers or dates with some wrong cells if at least this share of its cells can be read
_MOSTLY = 0.5
#: formats of dates besides ISO 8601
_DATE_FORMATS = ("%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d")
#: a number with a decimal comma; points may part thousands
_COMMA_NUMBER = r"[+-]?(\d+|\d{1,3}(\.\d{3})+)?(,\d+)?([eE][+-]?\d+)?"
#: a number whose commas part thousands
_COMMA_THOUSANDS = r"[+-]?[1-9]\d{0,2}(,\d{3})+"
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
    strings : ndarray of str of shape (n,)
        Empty where missing.
    missing : ndarray of bool of shape (n,)
    row_numbers : ndarray of shape (n,)
        For messages.
    typed : pandas.Series or None
        The column itself where the file says what it holds (Parquet), and it is not strings.
    """

    name: str
    strings: NDArray[Any]
    missing: NDArray[np.bool_]
    row_numbers: NDArray[np.int64]
    typed: Any = None

    @property
    def distinct(self) -> int:
        return len(set(self.strings[~self.missing].tolist()))

    def example(self, wrong: NDArray[np.bool_]) -> str:
        """The first of some cells, for messages."""
        first = int(np.argmax(wrong))
        return f"{self.strings[first][:40]!r} in row {self.row_numbers[first]}"


def read_cells(frame: Any, name: str, row_numbers: NDArray[np.int64], missing: Sequence[str] = MISSING) -> Cells:
    """The cells of a column of a table."""
    column = frame[name]
    if column.dtype.kind in "iufM":
        gone = column.isna().to_numpy()
        return Cells(name, column_strings(column), gone, row_numbers, column)
    strings = np.array([value.strip() for value in column_strings(column)], dtype=object)
    gone = np.isin(strings, list(missing)) | (strings == "")
    return Cells(name, np.where(gone, "", strings), gone, row_numbers)


def read_numbers(cells: Cells, decimal: str | None = None) -> tuple[Array, str] | None:
    """The numbers of a column (NaN where missing) and their decimal mark; None if it does not hold numbers.

    With ``decimal=None`` a comma is tried where a point does not do.
    """
    pandas = require("pandas", "cli")
    if cells.typed is not None:
        return (cells.typed.to_numpy(np.float64, na_value=np.nan), ".") if cells.typed.dtype.kind in "iuf" else None
    if cells.missing.all():
        return None
    for mark in (".", ",") if decimal is None else (decimal,):
        strings = pandas.Series(np.where(cells.missing, "nan", cells.strings), dtype=object)
        if mark == ",":
            if decimal is None and not any("," in value for value in cells.strings):
                return None  # already read with a point
            _refuse_ambiguous(cells, decimal)
            if not strings[~cells.missing].str.fullmatch(_COMMA_NUMBER).all():
                return None
            strings = strings.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        values = pandas.to_numeric(strings, errors="coerce").to_numpy(np.float64)
        if not np.any(np.isnan(values) & ~cells.missing):
            _refuse_infinite(cells, values)
            return values, mark
    return None


def _refuse_ambiguous(cells: Cells, decimal: str | None) -> None:
    """Refuse numbers such as 1,234 where every comma could part thousands, unless the user said what it means."""
    with_comma = [value for value in cells.strings[~cells.missing] if "," in value]
    if decimal is None and with_comma and all(re.fullmatch(_COMMA_THOUSANDS, value) for value in with_comma):
        raise CommandError(
            f"column {cells.name!r} has numbers such as {with_comma[0]!r}, whose comma may part thousands or decimals. "
            "Say --decimal comma if it is the decimal mark, or remove the commas from the file."
        )


def _refuse_infinite(cells: Cells, values: Array) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        raise CommandError(
            f"column {cells.name!r} has infinite values ({cells.example(infinite)}); mend them or leave the column out."
        )


def refuse_mixed(cells: Cells) -> None:
    """Refuse a column that is mostly numbers, naming the first cell that is not."""
    pandas = require("pandas", "cli")
    numbers = pandas.to_numeric(pandas.Series(cells.strings, dtype=object), errors="coerce").notna().to_numpy()
    wrong = ~numbers & ~cells.missing
    if wrong.any() and numbers.sum() >= _MOSTLY * (~cells.missing).sum():
        raise CommandError(
            f"column {cells.name!r} holds numbers, but {int(wrong.sum())} cells are something else (first: "
            f"{cells.example(wrong)}). Mend them, declare them missing with --missing and use --impute, declare the "
            "column with --categories, or leave it out with --columns."
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
            raise CommandError(
                f"column {cells.name!r} holds dates, but {int(wrong.sum())} cells cannot be read as such (first: "
                f"{cells.example(wrong)}). Mend them, give --date-format, or leave the column out with --columns."
            )
        return None
    first, *others = found
    if any(not np.array_equal(found[first], found[other], equal_nan=True) for other in others):
        raise CommandError(
            f"column {cells.name!r} holds dates that can be read in more than one way ({' or '.join(found)}; first: "
            f"{cells.example(known)}). Say which with --date-format."
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
