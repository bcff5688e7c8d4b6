"""Dates as people write them: ISO 8601, 31.12.2024, 31 Dec 2024, 12/31/2024 11:59 PM."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.tables.parsing import MOSTLY, Cells
from mtclust.app.wording import option
from mtclust.exceptions import TableError
from mtclust.util.extras import require

Array = NDArray[np.float64]

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
