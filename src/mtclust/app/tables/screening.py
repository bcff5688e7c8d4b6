"""Columns and cells that should be looked at before clustering: each rule says in words what it found.

- *Identifiers* name rows instead of describing them: counters, account numbers, postcodes. They are ignored.
- *Association*: a coin flip cuts every table into two neat halves and says nothing about its rows. So a category, a
  date or a number with few different values is used only if some other column is associated with it: if rows that
  differ in it differ in the mean or the spread of another feature, in all tasks alike or in each task in its own way.
  In tables of many numbers the same is asked of every number with a single peak: the few that tell kinds of rows apart
  would drown.
- *Missing values* are filled in from the rows of the same task. That a value is missing becomes a feature of its own
  only where it is associated with other columns (customers without a date of a last order have not ordered yet).
- *Far values*, such as -999 for "not known" or a slipped decimal point, make the scale of a column so large that
  nothing else in it counts. They are never changed, but reported.
- *Spelling*: New York, new york and Newyork are reported, never joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, kstest, norm

from mtclust.app.tables.columns import (
    CategoryColumn,
    Column,
    DateColumn,
    MissingColumn,
    NumberColumn,
    TextColumn,
    centred,
)
from mtclust.app.tables.values import Cells
from mtclust.exceptions import TableError
from mtclust.util.messages import advice, listing, option

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
#: fewer rows can differ from each other by chance; nearly every row is this share
_FEW, _NEARLY = 20, 0.9
#: numbers handed out at random lie evenly; below this chance they do not
_EVEN = 0.01

#: why a column that is associated with no other is ignored
UNASSOCIATED = "not associated with any other column, so that it tells nothing about kinds of rows"
#: with fewer rows association cannot be told; where so many products would have to be summed nothing is said
_LEAST_ROWS, _MOST_PRODUCTS = 100, 10**11
#: from so many numbers on the same is asked of numbers
_MANY_NUMBERS = 20
#: bimodality coefficient, (skewness² + 1)/kurtosis, from which on a number may have two peaks: that of a flat one
_TWO_PEAKS = 5 / 9
#: columns are associated if chance would make them so less often than this, over all features that were looked at
_CHANCE = 0.05

#: fewer missing values are never a feature
_LEAST_MISSING = 10
#: absence informs if its correlation with a feature of another column is so large, and so improbable by chance
_LEAST_CORRELATION, _IMPROBABLE = 0.15, 1e-3

#: columns with fewer known or different values say nothing about what is far
_LEAST_KNOWN, _LEAST_VALUES = 20, 10
#: a gap so many times as wide as the values before it parts far values from the others
_GAP = 3.0
#: and so many times where a far value stands there only once or twice, as the largest of skewed columns do
_GAP_OF_FEW, _ONCE_OR_TWICE = 10.0, 2
#: more different values far away are no codes or slips, but a kind of rows
_MOST_FAR = 3

#: columns, and tasks or groups of names, that a note shows
_NAMED, _SHOWN = 8, 3


# -- identifiers -------------------------------------------------------------------------------------------------------


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
    if np.all(np.diff(numbers) == 1):
        return "counts the rows"
    parts = [np.sort(values[known & (tasks == task)]) for task in np.unique(tasks)]
    if len(numbers) >= max(_FEW, 5 * len(parts)) and all(len(p) and np.all(np.diff(p) == 1) for p in parts):
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


# -- association -------------------------------------------------------------------------------------------------------


def unrelated(columns: Sequence[Column], cells: Mapping[str, Cells], tasks: NDArray[np.str_]) -> list[str]:
    """Names of the columns that need to be associated with another one and are not; none where all would be."""
    if len(columns) < 2 or len(tasks) < _LEAST_ROWS or any(isinstance(column, TextColumn) for column in columns):
        return []
    blocks = []
    for column in columns:
        absent = cells[column.name].missing[:, None]  # which may inform, too
        block = column.transform(cells[column.name], tasks)
        blocks.append(np.column_stack([block, absent]) if absent.any() else block)
    numbers = sum(isinstance(column, NumberColumn) for column in columns)
    suspects = [_needs_company(column, block, numbers >= _MANY_NUMBERS) for column, block in zip(columns, blocks)]
    if not any(suspects) or len(tasks) * (2 * sum(block.shape[1] for block in blocks)) ** 2 > _MOST_PRODUCTS:
        return []
    found = []
    for column, asked, chance in zip(columns, suspects, chances_of_company(blocks, tasks)):
        of_many = isinstance(column, NumberColumn) and not column.few  # of many numbers some pair off by chance
        if asked and (numbers if of_many else 1) * chance >= _CHANCE:
            found.append(column.name)
    return found if len(found) < len(columns) else []


def _needs_company(column: Column, block: Array, many: bool) -> bool:
    """Whether a column counts only together with others."""
    if not isinstance(column, NumberColumn) or column.few:
        return isinstance(column, CategoryColumn | DateColumn | NumberColumn)
    if not many:
        return False
    values = block[:, 0] - block[:, 0].mean()
    spread = float(np.mean(values**2)) or 1.0
    skewness, kurtosis = np.mean(values**3) / spread**1.5, np.mean(values**4) / spread**2
    return bool(skewness**2 + 1 < _TWO_PEAKS * kurtosis)


def chances_of_company(blocks: Sequence[Array], tasks: NDArray[np.str_]) -> Array:
    """Of every column, given by its features, how likely chance makes it as closely associated with any other as it is.

    Features and their squares are correlated within tasks: over all tasks together, and in every task in its own way.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coin, x, tasks = rng.integers(2, size=(200, 1)), rng.normal(size=(200, 1)), np.repeat(["a", "b"], 100)
    >>> [bool(chances_of_company([coin, y], tasks)[0] < 0.05) for y in (x, x + coin, x * (1 + 2 * coin))]
    [False, True, True]
    """
    plain = centred(np.column_stack(blocks).astype(float), tasks)
    features = np.column_stack([plain, centred(plain**2, tasks)])
    owner = np.tile(np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks]), 2)
    names, codes = np.unique(tasks, return_inverse=True)
    together = len(tasks) * _correlations(features) ** 2
    apart = np.zeros_like(together)
    for task in range(len(names)):
        rows = codes == task
        apart += rows.sum() * _correlations(features[rows]) ** 2
    found = np.ones(len(blocks))
    for column in range(len(blocks)):
        pairs = np.ix_(owner == column, owner != column)
        if together[pairs].size:
            best = min(2 * norm.sf(np.sqrt(together[pairs].max())), chi2.sf(apart[pairs].max(), len(names)))
            found[column] = min(1.0, 2 * together[pairs].size * best)  # two tests of every pair
    return found


def _correlations(features: Array) -> Array:
    """Between columns that have mean 0; 0 where one is flat."""
    length = np.linalg.norm(features, axis=0)
    flat = length <= 1e-12 * max(1.0, float(length.max(initial=0.0)))
    scaled = np.where(flat, 0.0, features / np.where(flat, 1.0, length))
    return scaled.T @ scaled


# -- missing values ----------------------------------------------------------------------------------------------------


def informative(
    columns: Sequence[Column], cells: Mapping[str, Cells], tasks: NDArray[np.str_], scaling: str
) -> tuple[list[Column], dict[str, str]]:
    """The columns with features for absence where it informs, and what that is associated with."""
    gone = [column for column in columns if cells[column.name].missing.sum() >= _LEAST_MISSING]
    if not gone or len(columns) < 2 or any(isinstance(column, TextColumn) for column in columns):
        return list(columns), {}
    blocks = [centred(column.transform(cells[column.name], tasks), tasks) for column in columns]
    found, goes_with = list(columns), {}
    for column in gone:
        absent = cells[column.name]
        partner = _partner(centred(absent.missing[:, None].astype(float), tasks), column, columns, blocks)
        if partner is None:
            continue
        goes_with[column.name] = partner
        if isinstance(column, CategoryColumn):
            found[found.index(column)] = CategoryColumn.learn(absent, scaling, tasks, missing_level=True)
        else:
            found.append(MissingColumn.learn(absent, scaling))
    return found, goes_with


def _partner(absence: Array, column: Column, columns: Sequence[Column], blocks: Sequence[Array]) -> str | None:
    """The other column that absence is associated with most, if it is so beyond chance."""
    others = [(other.name, block) for other, block in zip(columns, blocks) if other.name != column.name]
    names = [name for name, block in others for _ in range(block.shape[1])]
    features = np.column_stack([block for _, block in others])
    length = np.linalg.norm(features, axis=0) * np.linalg.norm(absence)
    correlation = np.abs(absence[:, 0] @ features) / np.where(length > 0, length, np.inf)
    best = int(np.argmax(correlation))
    chance = len(names) * 2 * norm.sf(correlation[best] * np.sqrt(len(absence)))
    return names[best] if correlation[best] >= _LEAST_CORRELATION and chance < _IMPROBABLE else None


def missing_notes(
    cells: Mapping[str, Cells], columns: Sequence[Column], goes_with: Mapping[str, str], tasks: NDArray[np.str_]
) -> list[str]:
    """What was done about missing values, in words."""
    kinds = {column.name: column for column in columns if not isinstance(column, MissingColumn)}
    said: dict[str, list[str]] = {}
    for name, column in kinds.items():
        count = int(cells[name].missing.sum())
        if not count:
            continue
        median, empty = "the median of the task", "no words"
        words = {"number": median, "date": median, "text": empty, "topics": empty}
        how = words.get(column.kind, "the shares of the task")
        unknown = sorted(set(tasks[cells[name].missing].tolist()) - set(getattr(column, "fills", tasks)))
        if isinstance(column, CategoryColumn) and name in goes_with:
            how, unknown = "a level of their own", []
        nowhere = f"; none is known in {listing(unknown, _SHOWN)}: there from all rows" if unknown else ""
        said.setdefault(how, []).append(f"{name} ({count}{nowhere})")
    if not said:
        return []
    filled = "; ".join(f"by {how}: {_some(names)}" for how, names in said.items())
    notes = [f"Missing values were filled in {filled}."]
    if goes_with:
        pairs = _some([f"{name} with {other}" for name, other in goes_with.items()])
        notes.append(f"Missing values that are associated with another column are used as information: {pairs}.")
    return notes


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more columns" if more > 0 else "")


def refuse_missing(incomplete: Sequence[Cells]) -> None:
    """Say which values are missing, where they are not to be filled in."""
    shown = ", ".join(f"{cells.name} ({int(cells.missing.sum())} rows)" for cells in incomplete)
    raise TableError(
        f"values are missing in: {shown}. Let them be filled in ({option('impute')}: numbers and dates by the median "
        f"of the task, categories by its shares, text as empty), or leave columns out ({option('columns')})."
    )


# -- far values --------------------------------------------------------------------------------------------------------


def far_values(values: Array) -> Array:
    """A few values, each once, that lie beyond a wide gap around the half of the values that is closest together.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.r_[np.arange(20.0, 60.0), -999, -999, -999]
    >>> far_values(ages).tolist(), far_values(ages[:-3]).tolist()
    ([-999.0], [])
    """
    known = np.sort(values[~np.isnan(values)])
    half = (len(known) + 1) // 2
    if len(known) < _LEAST_KNOWN or len(np.unique(known)) < _LEAST_VALUES:
        return np.empty(0)
    first = int(np.argmin(known[half - 1 :] - known[: len(known) - half + 1]))
    low, high = known[first], known[first + half - 1]
    if low == high:
        return np.empty(0)
    above = _beyond(known[known > high], high, low)
    below = -_beyond(-known[known < low][::-1], -low, -high)
    return np.concatenate([below[::-1], above])


def _beyond(outside: Array, edge: float, begin: float) -> Array:
    """Different values behind the first wide gap, walking upwards from the edge of a range that begins at ``begin``."""
    different, counts = np.unique(outside, return_counts=True)
    edges = np.concatenate([[edge], different])[:-1]
    repeated = np.maximum.accumulate(counts[::-1])[::-1] > _ONCE_OR_TWICE  # here or further out
    wide = different - edges > np.where(repeated, _GAP, _GAP_OF_FEW) * (edges - begin)
    far = different[np.argmax(wide) :] if wide.any() else np.empty(0)
    return far if len(far) <= _MOST_FAR else np.empty(0)


def far_values_doubts(columns: Mapping[str, Array]) -> list[str]:
    """A sentence about the columns of numbers that hold far values, and the way out; none where none does.

    Examples
    --------
    >>> import numpy as np
    >>> (doubt,) = far_values_doubts({"age": np.r_[np.arange(20.0, 60.0), -999, -999, -999]})
    >>> doubt.split("counts: ")[1].split(". If")[0]
    'age (-999 in 3 rows, the others 20 to 59)'
    """
    shown, example = [], ""
    for name, values in columns.items():
        counts = {value: int(np.sum(values == value)) for value in far_values(values).tolist()}
        if counts:
            others = values[~np.isnan(values) & ~np.isin(values, list(counts))]
            told = ", ".join(f"{value:.6g} in {n} row{'s' if n > 1 else ''}" for value, n in counts.items())
            shown.append(f"{name} ({told}, the others {others.min():.4g} to {others.max():.4g})")
            example = example or f"{max(counts, key=lambda value: counts[value]):.15g}"
    if not shown:
        return []
    more = f"; and {len(shown) - _NAMED} more columns" if len(shown) > _NAMED else ""
    missing = option("missing", advice(f"[{example!r}]", example))
    return [
        f"Values lie so far from all others that hardly anything else in their column counts: "
        f"{'; '.join(shown[:_NAMED])}{more}. If they mean 'not known', say so ({missing}); if they are errors, correct "
        "them."
    ]


# -- spelling ----------------------------------------------------------------------------------------------------------


def spelled_alike(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ in nothing but capitals and spaces.

    Examples
    --------
    >>> spelled_alike(["New York", "Oslo", "Newyork"])
    [['New York', 'Newyork']]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(set(map(str, names))):
        groups.setdefault("".join(name.split()).casefold(), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def task_notes(tasks: Iterable[str]) -> list[str]:
    """A note about tasks that may be one.

    Examples
    --------
    >>> task_notes(["Rome", "Oslo", "rome"])
    ["Tasks whose names differ only in capitals or spaces count as different tasks: 'Rome' and 'rome'."]
    """
    alike = spelled_alike(tasks)
    if not alike:
        return []
    return [f"Tasks whose names differ only in capitals or spaces count as different tasks: {_groups(alike)}."]


def level_notes(levels: Mapping[str, Sequence[str]]) -> list[str]:
    """A note about levels of categories that may be one; ``levels`` of every column.

    Examples
    --------
    >>> level_notes({"sex": ["F", "M", "f"], "city": ["Oslo"]})
    ["Levels that differ only in capitals or spaces count as different: sex ('F' and 'f')."]
    """
    alike = {column: found for column, own in levels.items() if (found := spelled_alike(own))}
    if not alike:
        return []
    shown = [f"{column} ({_groups(found)})" for column, found in list(alike.items())[:_SHOWN]]
    more = f" and {len(alike) - _SHOWN} more columns" if len(alike) > _SHOWN else ""
    return [f"Levels that differ only in capitals or spaces count as different: {', '.join(shown)}{more}."]


def _groups(alike: Sequence[Sequence[str]]) -> str:
    shown = [" and ".join(map(repr, group)) for group in alike[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(alike) - _SHOWN} more" if len(alike) > _SHOWN else "")
