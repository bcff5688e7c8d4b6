r"""An order of rows, columns and tasks that follows from their content: from no position and from no name.

Every column j, standardised to z_j, gets weights w_j that follow from its third and fourth moments and from how it
correlates with the other columns; three such weighted sums k = Σ_j w_j z_ij are the *keys* of a row. They change
continuously with the data, so that rounding and tiny noise reorder nothing but rows that are nearly equal. Rows are
ordered by a hash of their coarsely rounded keys, which looks random, so that the first rows of a task are a sample of
it; tasks are ordered by the means of their keys, columns by their weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: frequencies by which statistics of a column become its weights; cells of a key in a standard deviation
_FREQUENCIES = np.array([[3.0, 1.7, 2.3], [1.9, 2.9, 1.3], [2.7, 1.1, 3.1]])
_CELLS = 64.0
#: digits after which keys of tasks and weights of columns count as equal
_DIGITS = 9
#: columns of which correlations are taken
_MOST_COLUMNS = 500
#: values of a table that are looked at together
_CELLS_AT_ONCE = 250_000
#: odd constants of a mixing function (splitmix64)
_STEP, _FIRST, _SECOND = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class ContentOrder:
    """Keys of rows, and an order of the columns.

    Attributes
    ----------
    keys : ndarray of shape (n, 3)
    hashes : ndarray of shape (n,)
    columns : ndarray of shape (d,)
    """

    keys: Array
    hashes: NDArray[np.uint64]
    columns: Integers

    def of_tasks(self, task_numbers: Integers, n_tasks: int) -> Integers:
        """The tasks in the order of the means of their keys; smaller tasks first where these are equal."""
        sizes = np.bincount(task_numbers, minlength=n_tasks)
        order = np.lexsort((self.hashes, task_numbers))  # sums of the same numbers in the same order
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        means = np.add.reduceat(self.keys[order], begins, axis=0) / sizes[:, None]
        return np.lexsort((sizes, *means.round(_DIGITS).T[::-1]))

    def of_rows(self, ranks: Integers) -> Integers:
        """Rows by the rank of their task, then by their hash; rows of equal hashes by their keys."""
        return np.lexsort((*self.keys.T, self.hashes, ranks))


def content_order(X: Any) -> ContentOrder:
    """The order of a dense or sparse table.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> turned = np.random.default_rng(1).permutation(50)
    >>> first, second = content_order(X), content_order(X[turned][:, [2, 0, 1]])
    >>> rows = np.zeros(50, dtype=int)
    >>> bool(np.array_equal(X[first.of_rows(rows)], X[turned][second.of_rows(rows)]))
    True
    """
    with np.errstate(over="ignore", invalid="ignore"):  # rows that cannot be squared are refused by the fit
        mean, deviation, statistics = _statistics(X)
        weights = np.nan_to_num(np.sin(statistics @ _FREQUENCIES))  # (d, 3)
        if sp.issparse(X):
            keys = np.asarray(X @ (weights / deviation[:, None]) - mean / deviation @ weights)
        else:
            keys = np.concatenate([block @ weights for block in _blocks(X, mean, deviation)])
        spread = keys.std(axis=0)
        keys = np.nan_to_num(keys / np.where(spread > 0, spread, 1.0))
    cells = np.floor(keys * _CELLS + 0.5).astype(np.int64).astype(np.uint64)
    hashes = _mixed(_mixed(_mixed(cells[:, 0]) + cells[:, 1]) + cells[:, 2])
    columns = np.lexsort(weights.round(_DIGITS).T)
    return ContentOrder(keys, hashes, columns)


def _statistics(X: Any) -> tuple[Array, Array, Array]:
    """Mean and deviation of every column (1 where it is constant), and three numbers (d × 3) that tell columns apart.

    Powers are taken of values in units of the largest, which neither overflow nor vanish.
    """
    n, d = X.shape
    common = np.zeros(d)
    if sp.issparse(X) and d > _MOST_COLUMNS:
        unit = _or_one(abs(X).max(axis=0).toarray().ravel().astype(np.float64))
        scaled = X @ sp.diags(1 / unit)
        mean = np.asarray(scaled.mean(axis=0), dtype=np.float64).ravel()
        powers = [np.asarray(scaled.power(k).mean(axis=0), dtype=np.float64).ravel() for k in (2, 3, 4)]
        spread = _or_one(np.sqrt(np.maximum(powers[0] - mean**2, 0.0)))
        third = powers[1] - 3 * mean * powers[0] + 2 * mean**3
        fourth = powers[2] - 4 * mean * powers[1] + 6 * mean**2 * powers[0] - 3 * mean**4
        mean = mean * unit
    else:
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        mean = X.mean(axis=0, dtype=np.float64)
        unit = _or_one(np.max([np.abs(block).max(axis=0) for block in _blocks(X, mean, np.ones(d))], axis=0))
        squares, third, fourth = np.zeros((3, d))
        products = np.zeros((d, d) if d <= _MOST_COLUMNS else (0, 0))
        for block in _blocks(X, mean, unit):
            square = block**2
            squares += square.sum(axis=0) / n
            third += np.einsum("nd,nd->d", square, block) / n
            fourth += np.einsum("nd,nd->d", square, square) / n
            if d <= _MOST_COLUMNS:
                products += block.T @ block / n
        spread = _or_one(np.sqrt(squares))
        if d <= _MOST_COLUMNS:
            common = np.sum((products / np.outer(spread, spread)) ** 3, axis=1)
    return mean, unit * spread, np.stack([third / spread**3 + 0.3, fourth / spread**4 + 0.7, common + 0.9], axis=1)


def _blocks(X: NDArray[Any], mean: Array, scale: Array) -> Iterator[Array]:
    """Some rows at a time, around the mean and in units of the scale; all would be a copy of the table."""
    step = max(1, _CELLS_AT_ONCE // max(X.shape[1], 1))
    for begin in range(0, X.shape[0], step):
        yield (X[begin : begin + step] - mean) / scale


def _or_one(values: Array) -> Array:
    """Values that may be divided by."""
    return np.where(values >= np.finfo(float).tiny, values, 1.0)


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random and follow from the given ones alone."""
    mixed = (numbers + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def information(X: Array) -> Array:
    r"""How much the values of every column say of a normal variable that was cut into them, in (0, 1].

    A column of few values is perfectly predictable, and would decide alone for that reason. If its values are intervals
    (a_v, b_v) of a standard normal with their shares p_v as probabilities, the mean of value v explains the share

    .. math:: g^2 = \sum_v \frac{(\varphi(a_v) - \varphi(b_v))^2}{p_v}

    of the variance; the rest is an error that nobody sees. Multiplied by g, a column counts for what it says: ½ yes and
    ½ no .80, one yes in a hundred .27, and many different values 1, with no limit in between.

    Examples
    --------
    >>> import numpy as np
    >>> information(np.c_[np.arange(100) % 2, np.arange(100), np.arange(100) == 0]).round(2).tolist()
    [0.8, 1.0, 0.27]
    """
    from scipy.special import ndtri

    n, found = len(X), np.ones(X.shape[1])
    for j, column in enumerate(X.T):
        spread = column.std()
        if spread == 0 or n < 2:
            continue
        _, counts = np.unique((column / spread).round(6), return_counts=True)
        if len(counts) == n:
            continue
        edges = ndtri(np.concatenate([[0.0], np.cumsum(counts) / n])[1:-1])
        density = np.concatenate([[0.0], np.exp(-0.5 * edges**2) / np.sqrt(2 * np.pi), [0.0]])
        found[j] = np.sqrt(np.sum(np.diff(density) ** 2 * n / counts))
    return found
