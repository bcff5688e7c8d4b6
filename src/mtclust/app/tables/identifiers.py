"""Columns that name rows instead of describing them: counters, numbers of accounts, postcodes, telephone numbers.

Clusters of such columns would be clusters of numbers that were handed out one after the other.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

Array = NDArray[np.float64]

#: last words of names of columns that hold identifiers, whatever the values are
_NAMES = {
    "id", "ids", "uid", "uuid", "guid", "pid", "postcode", "postcodes", "zip", "zipcode", "plz", "phone", "telephone",
    "mobile", "fax", "iban", "isbn", "ean", "sku", "barcode", "serial", "ssn",
}  # fmt: skip
#: last words that say so only where nearly every row has a value of its own
_WEAK_NAMES = {"no", "nr", "code", "key", "idx", "row", "account", "reference", "ref"}
#: fewer rows can differ from each other by chance
_FEW = 20
#: nearly every row: this share of them has a value of its own
_NEARLY = 0.9
#: numbers handed out at random lie evenly; below this chance they do not
_EVEN = 0.01


def identifier(name: str, values: Array, tasks: NDArray[np.str_]) -> str | None:
    """Why a column of numbers only names its rows, in words; None if it does not.

    Examples
    --------
    >>> import numpy as np
    >>> identifier("visit", np.tile(np.arange(1.0, 31), 2), np.repeat(["a", "b"], 30))
    'counts the rows of each task'
    >>> identifier("postcode", np.array([8001.0, 8002, 8001]), np.array(["a", "a", "b"]))
    'names rows or places, by its name'
    """
    known = ~np.isnan(values)
    numbers = values[known]
    if len(numbers) < 3 or np.any(numbers != np.rint(numbers)):
        return None
    if _counts(numbers, in_order=True):
        return "counts the rows"
    parts = [values[known & (tasks == task)] for task in np.unique(tasks)]
    if len(numbers) >= max(_FEW, 5 * len(parts)) and all(_counts(part) for part in parts):
        return "counts the rows of each task" if len(parts) > 1 else "counts the rows"
    last = last_word(name)
    if last in _NAMES:
        return "names rows or places, by its name"
    distinct = len(np.unique(numbers)) / len(numbers)
    if len(numbers) < _FEW or distinct < _NEARLY:
        return None
    if last in _WEAK_NAMES:
        return "a number of its own in nearly every row"
    even = kstest((numbers - numbers.min()) / (np.ptp(numbers) or 1.0), "uniform").pvalue > _EVEN
    return "a whole number of its own in every row, evenly spread" if distinct == 1 and even else None


def last_word(name: str) -> str:
    """The last word of the name of a column, in small letters.

    Examples
    --------
    >>> last_word("customer_id"), last_word("customerID"), last_word("Postcode (home)")
    ('id', 'id', 'home')
    """
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return words[-1].lower() if words else ""


def _counts(numbers: Array, *, in_order: bool = False) -> bool:
    """Whether numbers are consecutive, each once."""
    if len(numbers) == 0:
        return False
    steps = np.diff(numbers if in_order else np.sort(numbers))
    return bool(np.all(steps == 1))
