"""What rows would look like without clusters, and whether columns depend on each other.

Two kinds of rows have no clusters of their own: Gaussian rows with the mean and covariance of every task (one
elliptical cloud), and rows whose columns are permuted within tasks (nothing but the marginals: a column with two humps,
or a few values only, looks like clusters there as well). Seeds are fixed: the same data give the same answer.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.stats import rankdata

from mtclust.choose._old.judge import Judge, noise_level
from mtclust.choose.views import KernelSpec, View
from mtclust.core.labels import tasks_of_rows

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: permutations that the dependence of columns is compared to, and columns that are looked at, those that vary most
_PERMUTATIONS = 199
_COLUMNS = 60
#: share of a column's values at either end that is pulled in
_FAR = 0.02
#: a column decides if it predicts the clusters nearly as well as all do, and the others without it far worse
_SUFFICIENT, _NEEDED = 0.9, 0.5
#: columns that are tried for that, and the correlation from which two are the same
_TRIED = 3
_SAME = 0.999


def gaussian_rows(rows: Array, offsets: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """As many Gaussian rows with the mean and covariance that every task has.

    R(X − x̄)/√(n−1) has the covariance of X for R of independent standard normal entries.
    """
    mixing = _mixing(offsets, rng)
    return np.concatenate([part @ rows[a:b] for part, a, b in zip(mixing, offsets[:-1], offsets[1:])])


def gaussian_kernel(kernel: Array, offsets: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """The linear kernel of such rows from that of the data: Gaussian rows mix the rows of their task."""
    mixing = sla.block_diag(*_mixing(offsets, rng))
    return mixing @ kernel @ mixing.T


def _mixing(offsets: NDArray[np.int64], rng: np.random.Generator) -> list[Array]:
    """1/n + R(I − 11ᵀ/n)/√(n−1) of every task."""
    parts = []
    for n in np.diff(offsets).tolist():
        R = rng.standard_normal((n, n))
        parts.append(1.0 / n + (R - R.mean(axis=1, keepdims=True)) / np.sqrt(max(n - 1, 1)))
    return parts


def columns_depend(rows: Array, offsets: NDArray[np.int64], level: float) -> bool:
    """Whether columns depend on each other within tasks: a test against columns that are permuted within tasks.

    Compared are correlations between the values of two columns, and between the squares of their ranks: a ring or two
    crossed lines have no correlation but that. Columns of one variable (:func:`variables_of`) count as one. At most
    ``level`` of tables with independent columns pass; a single variable, with nothing to compare it to, does.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).exponential(size=(100, 3))
    >>> columns_depend(rows, np.array([0, 100]), 0.02)
    False
    >>> columns_depend(np.column_stack([rows, rows[:, 0] ** 3]), np.array([0, 100]), 0.02)
    True
    """
    d = rows.shape[1]
    if d > _COLUMNS:
        rows = rows[:, np.sort(np.argsort(-rows.var(axis=0), kind="stable")[:_COLUMNS])]
    variables = variables_of(rows, offsets)
    if variables.max() == 0:
        return True
    scores = np.concatenate([_scores(rows[a:b]) for a, b in zip(offsets[:-1], offsets[1:])])  # (N, d, 2)
    rng = np.random.default_rng(0)
    observed = _dependence(scores, variables)
    null = np.empty((_PERMUTATIONS, 2))
    for draw in range(_PERMUTATIONS):
        permuted = np.empty_like(scores)
        for a, b in zip(offsets[:-1], offsets[1:]):
            # columns of one variable move together
            moved = rng.permuted(np.tile(np.arange(b - a)[:, None], (1, variables.max() + 1)), axis=0)[:, variables]
            permuted[a:b] = np.take_along_axis(scores[a:b], moved[:, :, None], axis=0)
        null[draw] = _dependence(permuted, variables)
    # one of two statistics must stand out: each is given half of the level
    above = (1 + np.sum(null >= observed, axis=0)) / (1 + _PERMUTATIONS)
    return bool(above.min() <= 0.5 * level)


def variables_of(rows: Array, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which variable every column belongs to: the levels of one category depend on each other, and so do copies.

    Levels are columns of two values that stand side by side, of which every row has exactly one at the upper value.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.array([[1.0, 0.0, 0.0, 3.0], [0.0, 1.0, 0.0, 5.0], [0.0, 0.0, 1.0, 4.0], [1.0, 0.0, 0.0, 1.0]])
    >>> variables_of(rows, np.array([0, 4])).tolist()
    [0, 0, 0, 1]
    """
    d = rows.shape[1]
    low, high = rows.min(axis=0), rows.max(axis=0)
    upper = rows == high
    upper[:, low == high] = False
    two_valued = np.all(upper | (rows == low), axis=0)
    first = np.arange(d)
    column = 0
    while column < d:
        on, end = np.zeros(len(rows), dtype=np.int64), column
        while end < d and two_valued[end] and on.max(initial=0) <= 1 and on.min(initial=1) < 1:
            on += upper[:, end]
            end += 1
        if end > column + 1 and np.all(on == 1):
            first[column:end] = column
            column = end
        else:
            column += 1
    centred = View(rows, offsets).centred_rows[0]
    norms = np.sqrt(np.einsum("nd,nd->d", centred, centred))
    unit = centred / np.where(norms > 0, norms, 1.0)
    for earlier, later in np.argwhere(np.triu(np.abs(unit.T @ unit) > _SAME, 1)):
        first[first == first[later]] = first[earlier]
    return np.unique(first, return_inverse=True)[1].ravel()


def _scores(rows: Array) -> Array:
    """Of every column of a task its values, far ones pulled in, and what the squares of its ranks add to its ranks.

    Centred and of variance 1; 0 for columns that are constant.
    """
    values = np.clip(rows, *np.quantile(rows, (_FAR, 1 - _FAR), axis=0))
    values = values - values.mean(axis=0)
    ranks = rankdata(rows, axis=0) / len(rows)
    ranks -= ranks.mean(axis=0)
    squares = ranks**2
    squares -= squares.mean(axis=0)
    spread = np.einsum("nd,nd->d", ranks, ranks)
    slope = np.divide(np.einsum("nd,nd->d", ranks, squares), spread, out=np.zeros_like(spread), where=spread > 0)
    both = np.stack([values, squares - slope * ranks], axis=2)
    norms = np.sqrt(np.mean(both**2, axis=0))
    least = 1e-9 * (1.0 + np.abs(rows).max(axis=0, initial=0.0))[:, None]
    return np.where(norms > least, both / np.where(norms > least, norms, 1.0), 0.0)


def _dependence(scores: Array, variables: NDArray[np.int64]) -> Array:
    """Sum and maximum of the squared correlations between scores of different variables."""
    n, d, kinds = scores.shape
    flat = scores.reshape(n, d * kinds)
    squared = ((flat.T @ flat / n) ** 2).reshape(d, kinds, d, kinds)
    squared *= (variables[:, None] != variables)[:, None, :, None]
    return np.array([squared.sum(), squared.max(initial=0.0)])


def deciding_column(rows: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int) -> int | None:
    """The column that alone decides the clusters, if one does.

    It predicts membership nearly as well as all columns do, and without it (and its copies) the others predict far
    worse.
    """
    d = rows.shape[1]
    centred = View(rows, offsets).centred_rows[0]
    spread = centred.std(axis=0)
    if d < 2 or not np.any(spread > 0):
        return None
    by_all = _predicted(rows, offsets, labels, n_clusters)
    if by_all <= 0:
        return None
    for column in np.argsort(-_between_clusters(centred, offsets, labels), kind="stable")[:_TRIED].tolist():
        if spread[column] == 0:
            continue
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = (centred.T @ centred[:, column]) / (len(rows) * spread * spread[column])
        others = np.flatnonzero(~(np.abs(correlation) > _SAME) & (spread > 0))
        if _predicted(rows[:, [column]], offsets, labels, n_clusters) < _SUFFICIENT * by_all:
            continue
        if not len(others) or _predicted(rows[:, others], offsets, labels, n_clusters) < _NEEDED * by_all:
            return int(column)
    return None


def _between_clusters(centred: Array, offsets: NDArray[np.int64], labels: Labels) -> Array:
    """Share of the variance of every column that lies between the clusters of its task."""
    tasks = tasks_of_rows(offsets)
    groups = np.unique(np.stack([tasks, labels]), axis=1, return_inverse=True)[1].ravel()
    counts = np.bincount(groups)
    total = np.einsum("nd,nd->d", centred, centred)
    sums = np.zeros((len(counts), centred.shape[1]))
    np.add.at(sums, groups, centred)
    return np.divide((sums**2 / counts[:, None]).sum(axis=0), total, out=np.zeros_like(total), where=total > 0)


def _predicted(rows: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int) -> float:
    """Macro leave-one-out R² of the labels by a narrow kernel of these columns."""
    judge = Judge.of(View(rows, offsets), (KernelSpec("rbf", 0.5),))
    noise = noise_level(n_clusters)
    return noise + (1.0 - noise) * judge(labels, n_clusters).separation
