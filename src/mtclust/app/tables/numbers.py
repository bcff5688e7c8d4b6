"""Numbers as people write them: 1,234.50, 1.234,50, 68%, €2,134, 1.2k, 12 kg, <5.

A column is read in one form (decimal mark, what parts thousands, unit), found from all its cells; what could mean two
things is refused with both. Where a few cells only give a bound, as laboratories write <5 for what they cannot measure,
the bound is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.wording import option
from mtclust.exceptions import TableError

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
