"""Columns with few different values, such as yes and no, spread so that nothing is separated by their gaps alone.

Membership of "the rows with a 1" is predicted without an error, as that of no cluster of measurements is: a search
would find such columns, one by one, instead of what several columns have in common. So rows that share a value get the
normal scores of ranks within it, in an order that says nothing. The column then tells as much about other columns as
before, and is a bell without gaps by itself. Its mean and its standard deviation stay, so that models that are fitted
to spread columns score rows as they are.

The order of rows that share a value follows from the content of the table alone: not from the order of its rows or
columns, nor from their units.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri

Columns = NDArray[np.int64]

#: different values of a column, at most
MOST_VALUES = 5
#: rows that a table must have
LEAST_ROWS = 50
#: rows that are looked at first
_LOOKED_AT = 1000
#: odd constants of the mixing function (splitmix64)
_STEP, _FIRST, _SECOND = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def few_valued(rows: Any) -> Columns:
    """Columns of a dense table in memory that have two to five different values; none of a table with few rows.

    Examples
    --------
    >>> import numpy as np
    >>> few_valued(np.c_[np.arange(60) % 2, np.arange(60), np.ones(60)]).tolist()
    [0]
    """
    if not isinstance(rows, np.ndarray) or isinstance(rows, np.memmap) or len(rows) < LEAST_ROWS:
        return np.empty(0, dtype=np.int64)
    few = [k for k in range(rows.shape[1]) if len(np.unique(rows[:_LOOKED_AT, k])) <= MOST_VALUES]
    return np.array([k for k in few if 1 < len(np.unique(rows[:, k])) <= MOST_VALUES], dtype=np.int64)


def spread(rows: Any, columns: Columns) -> Any:
    """A table with some columns spread; the table itself where there are none, or a single row. Sparse ones get dense.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0])).round(2).ravel().tolist()
    [0.31, -0.18, 1.18, 0.69]
    """
    n = rows.shape[0]
    if not len(columns) or n < 2:
        return rows
    rows = rows.toarray() if sp.issparse(rows) else rows
    ranks = np.stack([np.unique(column, return_inverse=True)[1] for column in rows.T], axis=1).astype(np.uint64)
    mixed = _mix(ranks)
    of_row = mixed.sum(axis=1, dtype=np.uint64)
    of_row = _mix(of_row + _occurrence(of_row))  # equal rows are spread apart
    scores = ndtri((np.arange(n) + 0.5) / n)
    scores /= scores.std()
    result = rows.copy()
    for k in columns.tolist():
        # equal columns are spread alike, others independently of each other
        noise = _mix(of_row + mixed[:, k].sum(dtype=np.uint64))
        order = np.lexsort((noise, ranks[:, k]))
        column = rows[:, k].astype(np.float64)
        result[order, k] = column.mean() + column.std() * scores
    return result


def _occurrence(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """How many equal numbers come before each."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    found = np.empty(len(numbers), dtype=np.uint64)
    found[order] = np.arange(len(numbers)) - np.repeat(begins, np.diff(np.r_[begins, len(numbers)]))
    return found


def _mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random and follow from the given ones alone."""
    mixed = (numbers + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def columns_to_spread(estimator, rows):  # type: ignore[no-untyped-def]
    from mtclust.choose.settings import by_rows, sizes_left_open

    return few_valued(rows) if by_rows(estimator) and sizes_left_open(estimator) else np.empty(0, dtype=np.int64)


def judging_kernels(kernel, wide=False):  # type: ignore[no-untyped-def]
    from mtclust.choose.views import KernelSpec, candidate_kernels

    if wide and kernel in ("auto", "linear"):
        return (KernelSpec("linear"),)
    if not isinstance(kernel, str) or kernel == "precomputed":
        return candidate_kernels(kernel, "auto")
    return (KernelSpec("linear"), *(KernelSpec("rbf", w) for w in (0.5, 1.0, 2.0)))
