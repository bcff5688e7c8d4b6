"""What the cells of a column are: numbers, dates or plain strings, and which of them are missing.

Numbers are read as people write them: 1,234.50, 1.234,50, 68%, €2,134, 1.2k, 12 kg, <5. A column is read in one form
(decimal mark, what parts thousands, unit), found from all its cells; what could mean two things is refused with both.
Where a few cells only give a bound, as laboratories write <5 for what they cannot measure, the bound is taken. Dates
are ISO 8601, 31.12.2024, 31 Dec 2024, 12/31/2024 11:59 PM and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.exceptions import TableError
from mtclust.util.messages import option
from mtclust.util.system import require

Array = NDArray[np.float64]

_CURRENCY = r"[€$£¥₹₽₩]|EUR|USD|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|CAD|AUD|INR|BRL"
#: what stands behind a number and multiplies it
_MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "Mio": 1e6, "bn": 1e9}
#: units of which a column may mix two, such as kg and g; other letters behind numbers may be codes, such as 10A and 10B
_UNITS = re.compile(
    r"t|[kmµun]?g|lbs?|oz|[kcmµ]?m|mi|ft|in|yd|[dcmµ]?[lL]|h|hrs?|min|sec|m?s|d|days?|yrs?|years?|°[CF]|"
    r"[mµun]?g/d?[lL]|ng/m[lL]|[mµun]?mol(/[lL])?|km/h|m/s|mph|[kMG]?Hz|[kM]?Wh?|k?J|kcal|[kh]?Pa|m?bar|psi|mmHg"
)
#: what stands before a number that is only a bound, or about right
BOUNDS = "<>≤≥~≈"
#: bounds are read as numbers beside so many different plain numbers; fewer are names, such as <=50K and >50K
_LEAST_PLAIN = 5
_PARTS = "'’ \u00a0\u202f"
_NUMBER = re.compile(
    rf"(?P<bound>[{BOUNDS}]=?)?\s*(?P<first_sign>[+\-−]?)\s*(?P<before>{_CURRENCY})?\s*(?P<sign>[+\-−]?)\s*"
    rf"(?P<body>(?:\d{{1,3}}(?:[{_PARTS}]\d{{3}})+|\d{{1,3}}(?:,\d{{3}})+|\d{{1,3}}(?:\.\d{{3}})+|\d+)(?:[.,]\d+)?|[.,]\d+)"
    rf"(?P<exponent>[eE][+-]?\d+)?\s*"
    rf"(?P<magnitude>(?:k|K|Mio|M|bn)(?![A-Za-z]))?\s*(?P<after>%|{_CURRENCY}|[A-Za-zµ°/²³]{{1,6}})?"
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}([.,])\d{3}")


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written.

    Attributes
    ----------
    decimal : str
        "." or ",".
    unit : str
        What stands before or behind them all, such as "€", "%" or "kg".
    written_out : bool
        Whether anything but digits, sign and decimal point has to be read.
    """

    decimal: str = "."
    unit: str = ""
    written_out: bool = False

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def value(self, cell: str) -> float:
        """The number in a cell; NaN where there is none, or one in another unit."""
        found = _NUMBER.fullmatch(cell)
        if found is None or _unit(found) not in ("", self.unit):
            return np.nan
        body = found["body"]
        for mark in (*_PARTS, "," if self.decimal == "." else "."):
            body = body.replace(mark, "")
        try:
            value = float(body.replace(self.decimal, ".") + (found["exponent"] or ""))
        except ValueError:  # more than one decimal mark
            return np.nan
        negative = (found["first_sign"] + found["sign"]) in ("-", "−")
        return (-value if negative else value) * _MAGNITUDES.get(found["magnitude"] or "", 1.0)


def find_form(name: str, cells: Iterable[str], decimal: str | None) -> NumberForm | None:
    """The form in which all cells are numbers; None if some are none.

    Examples
    --------
    >>> find_form("price", ["€2,134", "€15"], None)
    NumberForm(decimal='.', unit='€', written_out=True)
    >>> find_form("share", ["6,8 %", "12 %"], None)
    NumberForm(decimal=',', unit='%', written_out=True)
    >>> find_form("size", ["small", "12"], None) is None
    True
    >>> find_form("crp", ["<5", "12", "80", "7", "31", "9"], None).value("<5")
    5.0
    >>> find_form("income", ["<=50K", ">50K"], None) is None
    True
    """
    matches = []
    for cell in cells:
        found = _NUMBER.fullmatch(cell)
        if found is None:
            return None
        matches.append(found)
    bounds, plain = ({found[0] for found in matches if bool(found["bound"]) == bound} for bound in (True, False))
    if bounds and len(plain) < max(_LEAST_PLAIN, len(bounds) + 1):
        return None
    units = {_unit(found) for found in matches} - {""}
    money = {unit for unit in units if re.fullmatch(_CURRENCY, unit)}
    if len(units) > 1:
        if not _measured(units - money - {"%"}):
            return None  # codes such as 10A and 10B
        raise TableError(
            f"column {name!r} mixes numbers in {' and '.join(sorted(units))}; convert them to one unit, or leave the "
            f"column out ({option('keys')})."
        )
    bare = any(_unit(found) == "" for found in matches)
    if units and bare and not money:
        if not _measured(units - {"%"}):
            return None
        raise TableError(
            f"column {name!r} has numbers with and without {units.pop()}; write all of them the same way, or leave the "
            f"column out ({option('keys')})."
        )
    mark = decimal or _decimal_mark(name, [found["body"] for found in matches], bool(money))
    return NumberForm(mark, units.pop() if units else "", True)


def is_number(cell: str) -> bool:
    """Whether a cell is a number in some form."""
    found = _NUMBER.fullmatch(cell)
    return found is not None and not found["bound"] and (not found["after"] or not found["after"].isalpha())


def _measured(units: set[str]) -> bool:
    """Whether all of these are units of measurement, and one has more than a letter: 7g and 7h may be classes."""
    return not units or (all(map(_UNITS.fullmatch, units)) and any(len(unit) > 1 for unit in units))


def _unit(found: re.Match[str]) -> str:
    return str(found["before"] or found["after"] or "")


def _decimal_mark(name: str, bodies: list[str], money: bool) -> str:
    """Point or comma, from all cells of a column."""
    last = {body[max(body.rfind("."), body.rfind(","))] for body in bodies if "." in body and "," in body}
    repeated = {mark for mark in ".," for body in bodies if body.count(mark) > 1}
    # a mark that parts thousands somewhere is not the decimal mark
    marks = (last or set(".,")) - (repeated - last)
    single = [body for body in bodies if sum(map(body.count, ".,")) == 1]
    undecided = [body for body in single if _THOUSANDS.fullmatch(body)]
    decided = {re.sub(r"[^.,]", "", body) for body in single if not _THOUSANDS.fullmatch(body)}
    if len(decided) > 1 or (decided and not decided <= marks):
        first = {mark: next(body for body in bodies if mark in body) for mark in ".,"}
        raise TableError(
            f"column {name!r} has numbers with a decimal point and with a decimal comma ({first['.']!r}, "
            f"{first[',']!r}); write all of them the same way, or leave the column out ({option('keys')})."
        )
    if decided:
        return decided.pop()
    if len(marks) == 1:
        return marks.pop()
    commas = [body for body in undecided if "," in body]
    if not undecided or money:  # nobody writes money with three decimals
        return "," if any("." in body for body in undecided) else "."
    if commas:
        raise TableError(
            f"column {name!r} has numbers such as {commas[0]!r}, whose comma may part thousands or decimals. "
            f"Say {option('decimal', 'comma')} if it is the decimal mark, {option('decimal', 'point')} if it parts "
            "thousands."
        )
    return "."


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
            f"column {cells.name!r} has infinite values ({cells.example(infinite)}); correct them, or leave it out."
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


#: formats in which a day can be written in one way only, so that a column may mix them
_CLEAR = (
    "ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S",
    "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d/%b/%Y", "%b %d %Y", "%b %d, %Y", "%B %d %Y", "%B %d, %Y",
)  # fmt: skip
#: formats that may take the day for the month; a column has one of them
_TWO_WAYS = tuple(
    day + time for day in ("%d/%m/%Y", "%m/%d/%Y") for time in ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
)
#: what a column that mixes clear formats is said to have
MIXED = "mixed"
#: cells that a format is tried on before the whole column
_TRIED = 100
#: days are counted from here
_EPOCH = "1970-01-01"


def read_dates(cells: Cells, date_format: str | None = None) -> tuple[Array, str] | None:
    """Days since 1970 (NaN where missing) and the format that was read; None if the column does not hold dates."""
    pandas = require("pandas", "cli")
    if cells.typed is not None:
        return (_days(pandas.to_datetime(cells.typed, utc=True)), "typed") if cells.typed.dtype.kind == "M" else None
    known = ~cells.missing
    if not known.any() or not any(character.isdigit() for character in cells.strings[np.argmax(known)]):
        return None
    strings = pandas.Series(cells.strings, dtype=object).mask(cells.missing)
    formats = (*_CLEAR, *_TWO_WAYS) if date_format in (None, "typed", MIXED) else (date_format,)
    read: dict[str, Array] = {}
    first_cells = strings[known].head(_TRIED)
    for candidate in formats:
        if pandas.to_datetime(first_cells, format=candidate, errors="coerce", utc=True).notna().any():
            read[str(candidate)] = _days(pandas.to_datetime(strings, format=candidate, errors="coerce", utc=True))
    whole = {name: days for name, days in read.items() if not np.any(np.isnan(days) & known)}
    if not whole and len(formats) > 1:
        whole = _mixed(read, known)
    if not whole:
        _refuse_some(cells, read)
        return None
    first, *others = whole
    if any(not np.array_equal(whole[first], whole[other], equal_nan=True) for other in others):
        raise TableError(
            f"column {cells.name!r} holds dates that can be read in more than one way ({' or '.join(whole)}; first: "
            f"{cells.example(known)}). Say which with {option('date_format')}."
        )
    return whole[first], first


def _mixed(read: dict[str, Array], known: NDArray[np.bool_]) -> dict[str, Array]:
    """The days of a column whose cells are in several clear formats; nothing where some are in none."""
    clear = [days for name, days in read.items() if name in _CLEAR]
    if not clear:
        return {}
    days = clear[0].copy()
    for other in clear[1:]:
        days = np.where(np.isnan(days), other, days)
    return {} if np.any(np.isnan(days) & known) else {MIXED: days}


def _refuse_some(cells: Cells, read: dict[str, Array]) -> None:
    """Refuse a column that is mostly dates, naming the first cell that is none."""
    known = ~cells.missing
    counts = {name: int(np.sum(~np.isnan(days))) for name, days in read.items()}
    best = max(counts, key=lambda name: counts[name], default="")
    if best and counts[best] >= MOSTLY * known.sum():
        wrong = known & np.isnan(read[best])
        many = "1 cell" if wrong.sum() == 1 else f"{int(wrong.sum())} cells"
        raise TableError(
            f"column {cells.name!r} holds dates, but {many} cannot be read as such (first: "
            f"{cells.example(wrong)}; most are {best}). Correct them, declare them missing ({option('missing')}), give "
            f"{option('date_format')}, or leave the column out ({option('keys')})."
        )


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
