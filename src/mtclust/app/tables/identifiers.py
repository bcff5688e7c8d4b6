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
_WEAK_NAMES = {"no", "nr", "number", "code", "key", "idx", "row", "account", "reference", "ref"}
#: numbers that begin anew (samples of a study) count at most so many times, at least so far on average, and this share
#: of them is there
_MOST_RUNS, _LEAST_RUN, _COMPLETE = 20, 20, 0.95
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
    if _begins_anew(numbers):
        return "counts rows, beginning anew several times"
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


def _begins_anew(numbers: Array) -> bool:
    """Whether numbers are a few counts from 0 or 1 on, in any order of the rows.

    Then no number is more frequent than a smaller one: as often as n there are all the numbers below n.

    Examples
    --------
    >>> import numpy as np
    >>> _begins_anew(np.r_[1:69, 1:125, 1:153]), _begins_anew(np.random.default_rng(0).integers(1, 100, 300))
    (True, False)
    """
    low, high = int(numbers.min()), int(numbers.max())
    if low not in (0, 1) or high > len(numbers):
        return False
    counts = np.bincount((numbers - low).astype(np.int64))
    longer = np.maximum.accumulate(counts[::-1])[::-1]  # how many of the counts go so far
    return bool(longer[0] <= min(_MOST_RUNS, len(numbers) / _LEAST_RUN) and len(numbers) >= _COMPLETE * longer.sum())


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
