"""Which columns go together, within tasks: what columns have to do with each other is what makes kinds of rows.

A coin flip cuts every table into two neat halves and says nothing about its rows. So a category, a date, or a number
with few different values counts only if some other column goes with it: if rows that differ in it differ in the mean or
the spread of another feature, in all tasks alike or in each task in its own way. In tables of many numbers the same is
asked of every number with a single peak: a few that tell kinds of rows apart drown in hundreds that do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from mtclust.app.tables.columns import CategoryColumn, DateColumn, NumberColumn, TextColumn, centred
from mtclust.app.tables.kinds import Column
from mtclust.app.tables.parsing import Cells

Array = NDArray[np.float64]

#: why a column that goes with no other is left out
GOES_WITH_NONE = "goes with no other column, so that it says nothing about kinds of rows"
#: with fewer rows it cannot be told what goes together
_LEAST_ROWS = 100
#: rows that are looked at, and features; of more features nothing is said
_MOST_ROWS, _MOST_FEATURES = 5000, 500
#: from so many numbers on the same is asked of numbers
_MANY_NUMBERS = 20
#: bimodality coefficient, (skewness² + 1)/kurtosis, from which on a number may have two peaks: that of a flat one
_TWO_PEAKS = 5 / 9
#: columns go together if chance would make them do so less often than this, over all features that were looked at
_CHANCE = 0.05


def unrelated(columns: Sequence[Column], cells: Mapping[str, Cells], tasks: NDArray[np.str_]) -> list[str]:
    """Names of the columns that go with no other one and need to; none where that would leave nothing to cluster by."""
    if len(columns) < 2 or len(tasks) < _LEAST_ROWS or any(isinstance(column, TextColumn) for column in columns):
        return []
    blocks = []
    for column in columns:
        absent = cells[column.name].missing[:, None]  # which may inform, too
        block = column.transform(cells[column.name], tasks)
        blocks.append(np.column_stack([block, absent]) if absent.any() else block)
    numbers = sum(isinstance(column, NumberColumn) for column in columns)
    suspects = [_needs_company(column, block, numbers >= _MANY_NUMBERS) for column, block in zip(columns, blocks)]
    if not any(suspects) or sum(block.shape[1] for block in blocks) > _MOST_FEATURES:
        return []
    kept = np.arange(len(tasks))
    if len(kept) > _MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).choice(kept, _MOST_ROWS, replace=False))
    chances = chances_of_company([block[kept] for block in blocks], tasks[kept])
    found = []
    for column, asked, chance in zip(columns, suspects, chances):
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
    """Of every column, given by its features, how likely chance makes it go as closely with any other as it does.

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
