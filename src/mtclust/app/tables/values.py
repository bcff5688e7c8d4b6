"""What the cells of a column are: numbers, dates or plain strings, and which of them are missing.

Numbers are read as people write them: 1,234.50, 1.234,50, 68%, €2,134, 1.2k, 12 kg. A column is read in one form
(decimal mark, what parts thousands, unit), found from all its cells; what could mean two things is refused with both.
Dates are ISO 8601, 31.12.2024, 31 Dec 2024, 12/31/2024 11:59 PM and the like.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core import Array
from mtclust.exceptions import TableError
from mtclust.util.messages import advice, how_many, option
from mtclust.util.system import pandas

Mask = NDArray[np.bool_]

#: cells that mean "not known"; of text columns only the empty one
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "<NA>")
#: most is at least this share: a column is called one of numbers or dates with some wrong cells if most can be read
MOSTLY = 0.5
#: and one of numbers also with so many different ones, and so many times as many as there are different other cells
_MANY_NUMBERS, _TIMES_OTHERS = 10, 3


# -- cells -------------------------------------------------------------------------------------------------------------


class Cells:
    """The cells of one column, read once; what they are is found when it is asked for, and kept.

    ``row_numbers`` are for messages; ``tokens`` are cells that mean "not known", beside empty ones.
    """

    def __init__(self, column: Any, row_numbers: NDArray[np.int64], tokens: Sequence[str] = MISSING) -> None:
        self.name, self.row_numbers = str(column.name), row_numbers
        self.typed = column.dtype.kind if column.dtype.kind in "iufM" else ""
        self._codes, different = pandas.factorize(column if self.typed else column_strings(column))
        self._different = pandas.Series(different)
        further = pandas.Series([token for token in tokens if token not in MISSING], dtype=object)
        numbers = np.full(len(different), np.nan)
        if self.typed == "M":
            days = pandas.to_datetime(further, format="ISO8601", errors="coerce", utc=True).dropna()
            absent = pandas.to_datetime(self._different, utc=True).isin(days).to_numpy()
        else:
            declared = pandas.to_numeric(further, errors="coerce").dropna().to_numpy(np.float64)
            read = pandas.to_numeric(self._different, errors="coerce")
            numbers = read.to_numpy(np.float64, na_value=np.nan, copy=True)
            absent = np.isin(numbers, declared)  # -999, also where it reads -999.0
            if not self.typed:
                absent |= self._different.str.strip().isin([*tokens, ""]).to_numpy(bool)
        numbers[absent] = np.nan
        plain = self.typed != "M" and not absent.all() and not np.isnan(numbers[~absent]).any()
        # missing cells have the code -1
        self._absent, numbers = np.append(absent, True), np.append(numbers, np.nan)
        self.missing = self._absent[self._codes]
        self._numbers: Array | None = numbers[self._codes] if plain else None
        self.distinct = len(np.unique(numbers[~self._absent])) if plain else len(set(self._strings) - {""})

    @cached_property
    def _strings(self) -> NDArray[Any]:
        strings = np.array([*(value.strip() for value in column_strings(self._different)), ""], dtype=object)
        strings[self._absent] = ""
        return strings

    @property
    def strings(self) -> NDArray[Any]:
        """What a person would write, without spaces around it; empty where missing."""
        return np.asarray(self._strings[self._codes])

    @property
    def known(self) -> NDArray[Any]:
        """The values that are not missing: numbers where all are, else strings."""
        return (self.strings if self._numbers is None else self._numbers)[~self.missing]

    def example(self, wrong: Mask) -> str:
        """The first of some cells, for messages."""
        first = int(np.argmax(wrong))
        return f"{self.strings[first][:40]!r} in row {self.row_numbers[first]}"

    @cached_property
    def _parts(self) -> Any:
        """The parts of every cell that is a number in some form, by column; nothing where it is none."""
        parts = pandas.Series(self._strings, dtype=object).str.extract(rf"^(?:{_NUMBER})$")
        unit = parts["before"].fillna(parts["after"]).fillna("")
        parts = parts.fillna("").assign(number=parts["body"].notna(), unit=unit)
        return parts.iloc[self._codes].reset_index(drop=True)

    def numbers(self, form: NumberForm | str | None = None) -> tuple[Array, NumberForm] | None:
        """The numbers of a column (NaN where missing) and how they are written; None if it does not hold numbers.

        ``form`` is how they were written in ``fit``, or the decimal mark, or None to find it out.
        """
        plain = form in (None, ".") or (isinstance(form, NumberForm) and not form.written_out)
        if self.typed == "M":
            return None
        if self._numbers is not None and (self.typed or plain):
            values, form = self._numbers, NumberForm()
        else:
            form = form if isinstance(form, NumberForm) else self._form(form)
            if form is None:
                return None
            values = form.values(self._parts)
            if np.any(np.isnan(values) & ~self.missing):
                return None
        infinite = np.isinf(values)
        if infinite.any():
            raise TableError(
                f"column {self.name!r} has infinite values ({self.example(infinite)}); correct them, or leave it out."
            )
        return values, form

    def _form(self, decimal: str | None) -> NumberForm | None:
        """The form in which all cells are numbers of one unit; None if some are none, or of another unit."""
        parts = self._parts[~self.missing]
        units = set(parts["unit"])
        if any(re.fullmatch(_CURRENCY, unit) for unit in units):
            units -= {""}  # money may lack its sign
        if not parts["number"].all() or (len(units) > 1 and any(map(str.isalpha, units))):
            return None  # 10A and 10B may be codes
        if len(units) > 1:
            mixed = " and ".join(sorted(unit or "no unit" for unit in units))
            raise TableError(
                f"column {self.name!r} mixes numbers in {mixed}; convert them to one unit, or leave the column out "
                f"({option('keys')})."
            )
        unit = units.pop()
        return NumberForm(_decimal_mark(self.name, list(parts["body"].unique()), unit, decimal), unit, True)

    def no_numbers(self, form: NumberForm) -> Mask:
        """Which cells are no numbers in some form."""
        return ~self.missing & np.isnan(form.values(self._parts))

    def odd_among_numbers(self) -> str:
        """Where a column holds a few whole numbers and something else, what that is (4, 6, 8, rotary); else nothing.

        A column that is mostly numbers, or many numbers and a few words, is refused with the first cell that is none.
        """
        numbers = (self._parts["number"] & ~self._parts["after"].str.isalpha()).to_numpy(bool)
        wrong = ~numbers & ~self.missing
        if not wrong.any():
            return ""
        different = set(self.strings[numbers])
        many = len(different) >= max(_MANY_NUMBERS, _TIMES_OTHERS * len(set(self.strings[wrong])))
        if not many and numbers.sum() < MOSTLY * (~self.missing).sum():
            return ""
        if len(different) < _MANY_NUMBERS and all(value.isdecimal() for value in different):
            return self.example(wrong)
        raise self._mixed("numbers", wrong, f"declare the column as categories ({option('categories')})")

    def _mixed(self, kind: str, wrong: Mask, way_out: str) -> TableError:
        return TableError(
            f"column {self.name!r} holds {kind}, but {how_many(wrong.sum(), 'cell is', 'cells are')} something else "
            f"(first: {self.example(wrong)}). Correct them, declare them missing ({option('missing')}), {way_out}, "
            f"or leave the column out ({option('keys')})."
        )

    def dates(self, date_format: str | None = None) -> tuple[Array, str] | None:
        """Days since 1970 (NaN where missing) and the format that was read; None if the column does not hold dates."""
        if self.typed == "M":
            days = pandas.to_datetime(self._different.mask(self._absent[:-1]), utc=True)
            return np.append(_days(days), np.nan)[self._codes], "typed"
        known, different = ~self.missing, pandas.Series(self._strings, dtype=object).mask(self._absent)
        if self.typed or not known.any() or not any(map(str.isdigit, different.dropna().iloc[0])):
            return None
        formats = _DATES if date_format in (None, "typed") else (date_format,)
        read: dict[str, Array] = {}
        first = different.dropna().head(100)
        for candidate in formats:
            if pandas.to_datetime(first, format=candidate, errors="coerce", utc=True).notna().any():
                days = pandas.to_datetime(different, format=candidate, errors="coerce", utc=True)
                read[str(candidate)] = _days(days)[self._codes]
        whole = {name: days for name, days in read.items() if not np.any(np.isnan(days) & known)}
        one = next(iter(whole), "")
        if any(not np.array_equal(whole[one], days, equal_nan=True) for days in whole.values()):
            raise TableError(
                f"column {self.name!r} holds dates that can be read in more than one way ({' or '.join(whole)}; first: "
                f"{self.example(known)}). Say which with {option('date_format')}."
            )
        if whole:
            return whole[one], one
        most = max(read, key=lambda name: int(np.sum(~np.isnan(read[name]))), default="")
        wrong = known & np.isnan(read[most]) if most else known
        if wrong.sum() <= (1 - MOSTLY) * known.sum():
            raise self._mixed("dates", wrong, f"give {option('date_format')} (most are {most})")
        return None


def column_strings(column: Any, digits: int = 15) -> NDArray[Any]:
    """A column as the strings a person would write: missing values empty, of a day no hours, of 2.0 no decimals."""
    shown = f"{{:.{digits}g}}".format if column.dtype.kind == "f" else written
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    return np.array(["" if gone else shown(value) for value, gone in zip(values, missing)], dtype=object)


def written(value: Any) -> str:
    """A value as a person would write it: of a day no hours."""
    return str(value).removesuffix(" 00:00:00") if isinstance(value, datetime) else str(value)


# -- numbers -----------------------------------------------------------------------------------------------------------

_CURRENCY = r"[€$£¥₹₽₩]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|CAD|AUD|INR|BRL"
#: what stands behind a number and multiplies it
_MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "Mio": 1e6, "bn": 1e9}
_PARTS = "'’ \u00a0\u202f"
_NUMBER = (
    rf"(?P<first_sign>[+\-−]?)\s*(?P<before>{_CURRENCY})?\s*(?P<sign>[+\-−]?)\s*"
    rf"(?P<body>(?:\d{{1,3}}(?:[{_PARTS}]\d{{3}})+|\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:[.,]\d+)?|[.,]\d+)"
    rf"(?P<exponent>[eE][+-]?\d+)?\s*"
    rf"(?P<magnitude>(?:k|K|Mio|M|bn)(?![A-Za-z]))?\s*(?P<after>%|{_CURRENCY}|[A-Za-zµ°/²³]{{1,6}})?"
)
#: numbers with each decimal mark, where the other may part thousands; 0,500 parts none
_WITH_DECIMAL = {
    mark: rf"(?:[1-9]\d{{0,2}}(?:[{_PARTS}{other}]\d{{3}})+|\d+)?(?:[{mark}]\d+)?" for mark, other in (".,", ",.")
}


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written: the decimal mark, and what stands before or behind all of them (€, kg).

    ``written_out`` is False where nothing but digits, sign and decimal point has to be read.
    """

    decimal: str = "."
    unit: str = ""
    written_out: bool = False

    def values(self, parts: Any) -> Array:
        """The numbers; NaN where there is none, or one in another unit or with another decimal mark."""
        other = "," if self.decimal == "." else "."
        body = parts["body"].str.replace(f"[{_PARTS}{other}]", "", regex=True).str.replace(self.decimal, ".")
        values = pandas.to_numeric(body + parts["exponent"], errors="coerce")  # not with more than one decimal mark
        values *= parts["magnitude"].map(_MAGNITUDES).fillna(1.0)
        negative = (parts["first_sign"] + parts["sign"]).isin(["-", "−"])
        whole = parts["body"].str.fullmatch(_WITH_DECIMAL[self.decimal])
        read = parts["number"] & parts["unit"].isin(["", self.unit]) & whole
        return np.asarray(values.where(~negative, -values).where(read), dtype=np.float64)


def _decimal_mark(name: str, bodies: list[str], unit: str, given: str | None) -> str:
    """Point or comma, given or from all cells of a column: the one with which all of them are numbers."""
    others = {mark: [body for body in bodies if not re.fullmatch(_WITH_DECIMAL[mark], body)] for mark in ".,"}
    marks = [mark for mark in given or ".," if not others[mark]]
    if not marks:
        raise TableError(
            f"column {name!r} has numbers such as {others[given or '.'][0]!r}, which are none with the decimal mark of "
            f"the others ({option('decimal')}); write all of them the same way, or leave the column out "
            f"({option('keys')})."
        )
    if len(marks) == 1:
        return marks[0]
    commas, money = [body for body in bodies if "," in body], re.fullmatch(_CURRENCY, unit)
    if commas and not money:  # in every cell the mark may part thousands, as in 1,234
        raise TableError(
            f"column {name!r} has numbers such as {commas[0]!r}, whose comma may part thousands or decimals. "
            f"Say {option('decimal', advice(repr(','), 'comma'))} if it is the decimal mark, "
            f"{option('decimal', advice(repr('.'), 'point'))} if it parts thousands."
        )
    # nobody writes money with three decimals
    return "," if money and any("." in body for body in bodies) else "."


# -- dates -------------------------------------------------------------------------------------------------------------

#: formats of dates; a column has one of them, and is refused where it could have two that take the day for the month
_DATES = (
    "ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S",
    "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%b %d %Y", "%b %d, %Y", "%B %d %Y", "%B %d, %Y",
    "%d/%m/%Y", "%d/%m/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %I:%M %p", "%d/%m/%Y %I:%M:%S %p",
    "%m/%d/%Y", "%m/%d/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p",
)  # fmt: skip
#: days are counted from here
_EPOCH = "1970-01-01"


def _days(times: Any) -> Array:
    elapsed = times - pandas.Timestamp(_EPOCH, tz="UTC")
    return (elapsed / pandas.Timedelta(days=1)).to_numpy(np.float64, na_value=np.nan)


def date_of_days(days: float) -> str:
    """The day as people write it."""
    return str(np.datetime64(_EPOCH) + np.timedelta64(int(np.floor(days)), "D"))
