"""Columns and cells that should be looked at before clustering: each rule says in words what it found.

- *Identifiers* name rows instead of describing them: counters, account numbers, postcodes. They are ignored.
- *Association*: a coin flip cuts every table into two neat halves and says nothing about its rows. So a category, a
  date or a number with few different values is used only if some other column is associated with it: if rows that
  differ in it differ in the mean or the spread of another feature, in all tasks alike or in each task in its own way.
  In tables of many numbers the same is asked of every number with a single peak: the few that tell kinds of rows apart
  would drown.
- *Far values*, such as -999 for "not known" or a slipped decimal point, make the scale of a column so large that
  nothing else in it counts. They are never changed, but reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, erfc

from mtclust.app.tables.columns import CategoryColumn, Column, NumberColumn, centred
from mtclust.app.tables.values import Cells
from mtclust.util.messages import advice, how_many, option

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: last words of names of columns that hold identifiers, whatever the values are
_NAMES = {
    "id", "ids", "uid", "uuid", "guid", "pid", "postcode", "postcodes", "zip", "zipcode", "plz", "phone", "telephone",
    "mobile", "fax", "iban", "isbn", "ean", "sku", "barcode", "serial", "ssn",
}  # fmt: skip
#: last words that say so only where nearly every row has a value of its own
_WEAK_NAMES = {"no", "nr", "number", "code", "key", "idx", "row", "account", "reference", "ref"}
#: what holds for fewer rows (or different values) in all, or rows of a task on average, can come about by chance
LEAST_COUNT, LEAST_OF_TASK = 10, 5
#: fewer rows can differ from each other by chance, and do not say what is far; nearly every row is this share
_FEW, NEARLY = 20, 0.9
#: with fewer rows association cannot be told
_LEAST_ROWS = 100
#: from so many numbers on the same is asked of numbers
_MANY_NUMBERS = 20
#: what chance does less often than this, over everything that was looked at, is taken for true
CHANCE = 0.05

#: a gap so many times as wide as the values before it parts far values from the others; the second where a far value
#: stands there only once or twice, as the largest of skewed columns do
_GAP, _GAP_OF_FEW = 3.0, 10.0


# -- identifiers -------------------------------------------------------------------------------------------------------


def identifier(cells: Cells, values: Array | None, codes: Codes) -> str | None:
    """Why a column of numbers (``values``) or strings only names its rows, in words; None if it does not."""
    last = last_word(cells.name)
    if values is None:
        strings = cells.strings[~cells.missing]
        by_name = last in _NAMES and all(re.search(r"\d", cell) for cell in set(strings))
        return "named as an identifier" if by_name and cells.distinct > 2 else None
    known = ~np.isnan(values)
    numbers, codes = values[known], codes[known]
    n, m = len(numbers), len(np.unique(codes))
    if np.any(numbers != np.rint(numbers)):
        return None
    if n >= LEAST_COUNT and np.ptp(numbers) == n - 1 and cells.distinct == n:
        return "counts the rows"
    order = np.lexsort((numbers, codes))
    steps, same = np.diff(numbers[order]), np.diff(codes[order]) == 0
    if n >= max(_FEW, LEAST_OF_TASK * m) and np.all(steps[same] == 1):
        return "counts the rows of each task"
    if _begins_anew(numbers):
        return "counts rows, starting again several times"
    if last in _NAMES and cells.distinct > 2:
        return "named as an identifier"
    if n < _FEW or cells.distinct < NEARLY * n:
        return None
    if last in _WEAK_NAMES:
        return "a different number in nearly every row"
    ranks = (np.sort(numbers) - numbers.min()) / np.ptp(numbers)
    # numbers handed out at random are further from even ones once in a hundred times
    even = np.abs(ranks - np.linspace(0, 1, n)).max() < 1.63 / np.sqrt(n)
    return "a different whole number in every row, evenly spread" if cells.distinct == n and even else None


def _begins_anew(numbers: Array) -> bool:
    """Whether numbers are a few counts from 0 or 1 on, in any order of the rows.

    Then no number is more frequent than a smaller one: as often as n there are all the numbers below n.
    """
    low, high = int(numbers.min()), int(numbers.max())
    if low not in (0, 1) or high > len(numbers):
        return False
    counts = np.bincount((numbers - low).astype(np.int64))
    longer = np.maximum.accumulate(counts[::-1])[::-1]  # how many of the counts go so far
    # samples of a study: few counts, of which nearly all numbers are there
    return bool(longer[0] <= min(20, len(numbers) / _FEW) and len(numbers) >= 0.95 * longer.sum())


def last_word(name: str) -> str:
    """The last word of the name of a column, in small letters."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return words[-1].lower() if words else ""


# -- association -------------------------------------------------------------------------------------------------------


def unrelated(columns: Sequence[Column], cells: Sequence[Cells], tasks: Any) -> list[str]:
    """Names of the columns that need to be associated with another one and are not; none where all would be."""
    if len(columns) < 2 or len(tasks) < _LEAST_ROWS:
        return []
    blocks = []
    for column, own in zip(columns, cells):
        block, absent = column.transform(own, np.asarray(tasks)), own.missing[:, None]  # which may inform, too
        blocks.append(np.column_stack([block, absent]) if absent.any() else block)
    numbers = sum(column.kind == "number" for column in columns)
    suspects = [_needs_company(column, block, numbers >= _MANY_NUMBERS) for column, block in zip(columns, blocks)]
    if not any(suspects) or len(tasks) * (2 * sum(block.shape[1] for block in blocks)) ** 2 > 10**11:  # too long
        return []
    found = []
    for column, asked, chance in zip(columns, suspects, chances_of_company(blocks, np.asarray(tasks.codes))):
        of_many = isinstance(column, NumberColumn) and not column.few  # of many numbers some pair off by chance
        if asked and (numbers if of_many else 1) * chance >= CHANCE:
            found.append(column.name)
    return found if len(found) < len(columns) else []


def _needs_company(column: Column, block: Array, many: bool) -> bool:
    """Whether a column counts only together with others: of many numbers those with one peak.

    Their bimodality coefficient, (skewness² + 1)/kurtosis, is below that of a flat one, 5/9.
    """
    if not isinstance(column, NumberColumn) or column.few:
        return isinstance(column, CategoryColumn | NumberColumn)
    if not many:
        return False
    values = block[:, 0] - block[:, 0].mean()
    squares = values * values
    spread = float(squares.mean()) or 1.0
    skewness, kurtosis = (squares @ values) / len(values) / spread**1.5, (squares @ squares) / len(values) / spread**2
    return bool(skewness**2 + 1 < 5 / 9 * kurtosis)


def chances_of_company(blocks: Sequence[Array], codes: Codes) -> Array:
    """Of every column, given by its features, how likely chance makes it as closely associated with any other as it is.

    Features and their squares are correlated within tasks: over all tasks together, and in every task in its own way.
    """
    plain = centred(np.column_stack(blocks).astype(float), codes)
    features = np.column_stack([plain, centred(plain**2, codes)])
    owner = np.tile(np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks]), 2)
    order, starts = np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]
    together = len(codes) * _correlations(features) ** 2
    apart = np.zeros_like(together)
    for rows in np.split(features[order], starts):
        apart += len(rows) * _correlations(rows) ** 2
    found = np.ones(len(blocks))
    for column in range(len(blocks)):
        pairs = np.ix_(owner == column, owner != column)
        if together[pairs].size:
            best = min(erfc(np.sqrt(together[pairs].max() / 2)), chdtrc(len(starts) + 1, apart[pairs].max()))
            found[column] = min(1.0, 2 * together[pairs].size * best)  # two tests of every pair
    return found


def _correlations(features: Array) -> Array:
    """Between columns that have mean 0; 0 where one is flat."""
    length = np.linalg.norm(features, axis=0)
    flat = length <= 1e-12 * max(1.0, float(length.max(initial=0.0)))
    scaled = np.where(flat, 0.0, features / np.where(flat, 1.0, length))
    return scaled.T @ scaled


# -- far values --------------------------------------------------------------------------------------------------------


def far_values(values: Array) -> Array:
    """A few values, each once, that lie beyond a wide gap around the half of the values that is closest together."""
    known = np.sort(values[~np.isnan(values)])
    half = (len(known) + 1) // 2
    if len(known) < _FEW or np.count_nonzero(np.diff(known)) + 1 < LEAST_COUNT:
        return np.empty(0)
    first = int(np.argmin(known[half - 1 :] - known[: len(known) - half + 1]))
    low, high = known[first], known[first + half - 1]
    if low == high:
        return np.empty(0)
    above = _beyond(known[known > high], high, low)
    below = -_beyond(-known[known < low], -low, -high)
    return np.concatenate([below[::-1], above])


def _beyond(outside: Array, edge: float, begin: float) -> Array:
    """Different values behind the first wide gap, walking upwards from the edge of a range that begins at ``begin``."""
    different, counts = np.unique(outside, return_counts=True)
    edges = np.concatenate([[edge], different])[:-1]
    repeated = np.maximum.accumulate(counts[::-1])[::-1] > 2  # here or further out
    wide = different - edges > np.where(repeated, _GAP, _GAP_OF_FEW) * (edges - begin)
    far = different[np.argmax(wide) :] if wide.any() else np.empty(0)
    return far if len(far) <= 3 else np.empty(0)  # more are no codes or slips, but a kind of rows


def far_values_doubts(columns: Mapping[str, Array]) -> list[str]:
    """A sentence about the columns of numbers that hold far values, and the way out; none where none does."""
    shown, example = [], ""
    for name, values in columns.items():
        counts = {value: int(np.sum(values == value)) for value in far_values(values).tolist()}
        if counts:
            others = values[~np.isnan(values) & ~np.isin(values, list(counts))]
            told = ", ".join(f"{value:.6g} in {how_many(n, 'row')}" for value, n in counts.items())
            shown.append(f"{name} ({told}, the others {others.min():.4g} to {others.max():.4g})")
            example = example or f"{max(counts, key=lambda value: counts[value]):.15g}"
    if not shown:
        return []
    more = f"; and {how_many(len(shown) - 3, 'more column')}" if len(shown) > 3 else ""
    missing = option("missing", advice(f"[{example!r}]", example))
    return [
        f"Some values lie so far from all others that they alone set the scale of their column: "
        f"{'; '.join(shown[:3])}{more}. If they mean 'not known', say so ({missing}); if they are errors, correct "
        "them."
    ]
