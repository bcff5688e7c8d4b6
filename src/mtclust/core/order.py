r"""An order of rows, columns and tasks that follows from their content: from no position, no name and no sign.

Column j, standardised to z_j, gets weights w_j from its fourth moment, its squared skewness and its correlations, and
a direction o_j = mean of z_j ‖z‖², which changes sign with the column. The *keys* of a row are Σ_j w_j z_ij² and
Σ_j w_j o_j z_ij: recoding a column of two values changes none of them, and since they are continuous in the data,
rounding and tiny noise reorder nothing but rows that are nearly equal. Rows are ordered by a hash of their coarsely
rounded keys, which looks random, so that the first rows of a task are a sample of it; tasks are ordered by the means of
their keys, columns by their weights.
"""

from __future__ import annotations

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
#: digits after which keys and weights of columns count as equal
_DIGITS = 9
#: columns of which correlations are taken, and cells that are held at once
_MOST_COLUMNS, _CELLS_AT_ONCE = 500, 250_000
#: cells of a sparse table that is made dense
LARGEST_DENSE = 2_000_000
#: deviations below this share of the largest one count for nothing; keys are no larger than this
_SMALLEST, _FARTHEST = 1e-6, 1e6
#: steps of a rounded value in its column's spread, which is taken as a power of two
_STEPS = 2.0**16
#: odd constants of a mixing function (splitmix64)
_STEP, _FIRST, _SECOND = (np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class ContentOrder:
    """Keys of rows, and an order of the columns.

    Attributes
    ----------
    keys : ndarray of shape (n, 4)
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
        return np.lexsort((*self.keys.T[::-1].round(_DIGITS), self.hashes, ranks))


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
    if sp.issparse(X) and np.prod(X.shape) <= LARGEST_DENSE:
        X = X.toarray()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # rows that cannot be squared are refused later
        weights, keys = _of_sparse(X) if sp.issparse(X) else _of_dense(np.asarray(X))
        spread = keys.std(axis=0)
        keys = (keys - keys.mean(axis=0)) / (spread + _SMALLEST * (spread.max() or 1.0))
    weights, keys = np.nan_to_num(weights), np.clip(np.nan_to_num(keys), -_FARTHEST, _FARTHEST)
    cells = np.floor(keys[:, :3] * _CELLS + 0.5).astype(np.int64).astype(np.uint64)
    hashes = _mixed(_mixed(_mixed(cells[:, 0]) + cells[:, 1]) + cells[:, 2])
    return ContentOrder(keys, hashes, np.lexsort(weights.round(_DIGITS).T))


def _of_dense(X: Array) -> tuple[Array, Array]:
    """Weights of the columns (d × 3) and keys of the rows (n × 4), block by block."""
    n, d = X.shape
    step = max(1, _CELLS_AT_ONCE // max(d, 1))
    mean = sum(X[a : a + step].sum(axis=0, dtype=np.float64) for a in range(0, n, step)) / n
    blocks = [slice(a, a + step) for a in range(0, n, step)]
    unit = np.max(
        [np.abs(X[rows] - mean).max(axis=0) for rows in blocks], axis=0
    )  # squares neither overflow nor vanish
    unit = np.where(unit >= np.finfo(float).tiny, unit, 1.0)
    scale = _scale(unit * np.sqrt(sum(np.sum(((X[rows] - mean) / unit) ** 2, axis=0) for rows in blocks) / n))
    third, fourth, products, odd = np.zeros(d), np.zeros(d), np.zeros((d, d) if d <= _MOST_COLUMNS else 0), np.zeros(d)
    for rows in blocks:
        z = (X[rows] - mean) / scale
        squares = z**2
        third += np.einsum("nd,nd->d", squares, z) / n
        fourth += np.einsum("nd,nd->d", squares, squares) / n
        odd += z.T @ squares.mean(axis=1) / n
        if d <= _MOST_COLUMNS:
            products += z.T @ z / n
    weights = _weights(third, fourth, np.sum(products**4, axis=1) if d <= _MOST_COLUMNS else np.zeros(d))
    keys = np.empty((n, 4))
    for rows in blocks:
        z = (X[rows] - mean) / scale
        keys[rows] = _keys(z**2 @ weights, z @ (weights * odd[:, None]), z @ weights[:, 0])
    return weights, keys


def _of_sparse(X: Any) -> tuple[Array, Array]:
    """The same without a dense copy, powers around the mean from powers around zero."""
    n, d = X.shape
    mean, second, cubes, fourths = (np.asarray(X.power(k).mean(axis=0), dtype=np.float64).ravel() for k in (1, 2, 3, 4))
    scale = _scale(np.sqrt(np.maximum(second - mean**2, 0.0)))
    third = (cubes - 3 * mean * second + 2 * mean**3) / scale**3
    fourth = (fourths - 4 * mean * cubes + 6 * mean**2 * second - 3 * mean**4) / scale**4
    weights = _weights(third, fourth, np.zeros(d))
    own = np.column_stack([weights, np.full(d, 1.0 / d)]) / scale[:, None] ** 2
    squares = X.power(2) @ own - 2 * (X @ (mean[:, None] * own)) + mean**2 @ own
    odd = X.T @ (squares[:, 3] - squares[:, 3].mean()) / n / scale
    linear = np.column_stack([weights * odd[:, None], weights[:, 0]]) / scale[:, None]
    sums = X @ linear - mean @ linear
    return weights, _keys(squares[:, :3], sums[:, :3], sums[:, 3])


def _scale(deviation: Array) -> Array:
    """Deviations, so that columns which hardly vary count for hardly anything."""
    return deviation + _SMALLEST * (deviation.max(initial=0.0) or 1.0)


def _weights(third: Array, fourth: Array, common: Array) -> Array:
    """Weights (d × 3) by statistics that a change of sign leaves as they are."""
    return np.sin(np.stack([np.log1p(third**2), np.log1p(np.abs(fourth)), common + 0.9], axis=1) @ _FREQUENCIES)


def _keys(squares: Array, directed: Array, plain: Array) -> Array:
    """One key of squares, one of directions, one of both; the last, which has a sign, only decides between equals."""
    return np.column_stack([squares[:, 0], directed[:, 1], squares[:, 2] + directed[:, 2], plain])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random and follow from the given ones alone."""
    mixed = (numbers + np.uint64(1)) * _STEP
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))


def on_a_grid(X: Array, tasks: Integers | None = None) -> Array:
    """Values rounded to steps of about 10⁻⁵ of the spread of their column, within tasks where these are given.

    Rows of few values have many equal distances between them. Rounding and noise that nobody sees would decide between
    them; on a grid they are equal again.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 0.1], [2.0, 0.3], [4.0, 0.1]])
    >>> bool(np.array_equal(on_a_grid(rows), on_a_grid(rows.astype(np.float32).astype(float))))
    True
    """
    around = X
    if tasks is not None and len(tasks) and tasks.max() > 0:
        sums = np.zeros((int(tasks.max()) + 1, X.shape[1]))
        np.add.at(sums, tasks, X)
        around = X - (sums / np.bincount(tasks)[:, None])[tasks]
    spread = around.std(axis=0)
    positive = np.where(spread > _SMALLEST * spread.max(initial=0.0), spread, 1.0)
    step = np.exp2(np.floor(np.log2(positive) + 0.3)) / _STEPS  # 0.3: columns of spread 1 all have one step
    return np.round(X / step) * step


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
