r"""An order of rows, columns and tasks that follows from their content: from no position, no name and no sign.

Column j, standardised to z_j, gets weights w_j from its fourth moment, its squared skewness and its correlations, and
a direction o_j = mean of z_j ‖z‖², which changes sign with the column. The *keys* of a row are Σ_j w_j z_ij² and
Σ_j w_j o_j z_ij: recoding a column of two values changes none of them, and since they are continuous in the data,
rounding and tiny noise reorder nothing but rows that are nearly equal. Rows are ordered by a hash of their coarsely
rounded keys, which looks random, so that the first rows of a task are a sample of it; tasks are ordered by the means of
their keys, columns by their weights. Rows with equal keys, as those of balanced columns, are ordered by their cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core import Array, Integers

Hashes = NDArray[np.uint64]

#: frequencies by which statistics of a column become its weights; cells of a key in a standard deviation
_FREQUENCIES = np.array([[3.0, 1.7, 2.3], [1.9, 2.9, 1.3], [2.7, 1.1, 3.1]])
_CELLS = 64.0
#: digits after which keys and weights of columns count as equal
_DIGITS = 9
#: cells that are held at once; of more columns than have so many correlations none are taken
_CELLS_AT_ONCE = 250_000
#: cells of a sparse table that is made dense
LARGEST_DENSE = 2_000_000
#: deviations below this share of the largest one count for nothing; keys are no larger than its inverse
_SMALLEST = 1e-6
#: odd constants of a mixing function (splitmix64): its step and its two factors
MIXING = tuple(np.uint64(k) for k in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


Merge = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class Content:
    """What all rows together say of the columns: enough to find the hash of a row wherever it lies."""

    mean: Array  # (d,)
    scale: Array  # (d,)
    weights: Array  # (d × 3)
    directed: Array  # w·o, and the first w (d × 4)
    level: Any = 0.0  # mean of the keys (4,), once it is known
    spread: Any = 1.0  # and their deviation (4,)
    tasks: Any = None  # the tasks in the order of the means of their keys; smaller tasks first where these are equal
    columns: Any = None  # the columns in the order of their weights (d,)
    hashes: Any = None  # of the rows, where these are in memory (n,)
    finer: Any = None  # numbers that sort rows of one hash (n,)

    @classmethod
    def of(cls, over: Callable[..., Any], n_tasks: int, powers: tuple[Any, ...] | None = None) -> Content:
        """In three passes ``over`` the blocks of a dense table: sums go up, means and weights down.

        Where the ``powers`` of the columns are known there is one pass, over keys.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what cannot be squared is refused later
            if powers is None:
                n, mean, deviation = over(_levels, _merged_levels)
                scale = deviation + _SMALLEST * (deviation.max(initial=0.0) or 1.0)  # hardly varies, hardly counts
                powers = n, mean, scale, *over(partial(_powers, mean, scale), added)
            n, mean, scale, third, fourth, odd, products = powers
            # statistics that a change of sign leaves as they are
            common = np.sum((products / n) ** 4, axis=1) + 0.9
            even = np.stack([np.log1p((third / n) ** 2), np.log1p(np.abs(fourth / n)), common], axis=1)
            weights = np.sin(even @ _FREQUENCIES)
            directed = np.column_stack([weights * odd[:, None] / n, weights[:, 0]])
            begun = cls(mean, scale, weights, directed)
            sums, squares, sizes = over(partial(_by_task, begun, n_tasks), added)
            level = sums.sum(axis=0) / sizes.sum()
            deviation = np.sqrt(np.maximum(squares / sizes.sum() - level**2, 0.0))
            spread = deviation + _SMALLEST * max(float(deviation.max()), 1.0)  # keys of standardised values
            means = np.nan_to_num((sums / np.maximum(sizes, 1)[:, None] - level) / spread)
        tasks = np.lexsort((sizes, *means.round(_DIGITS).T[::-1]))
        weights = np.nan_to_num(begun.weights)
        columns = np.lexsort(weights.round(_DIGITS).T)
        return replace(begun, weights=weights, level=level, spread=spread, tasks=tasks, columns=columns)

    def keys(self, rows: Any) -> Array:
        """One key of squares, one of directions, one of both; the last has a sign, and only decides between equals."""
        with np.errstate(over="ignore", invalid="ignore"):
            if sp.issparse(rows):
                own, linear = self.weights / self.scale[:, None] ** 2, self.directed / self.scale[:, None]
                squares = rows.power(2) @ own - 2 * (rows @ (self.mean[:, None] * own)) + self.mean**2 @ own
                sums = rows @ linear - self.mean @ linear
            else:
                z = (rows - self.mean) / self.scale
                squares, sums = z**2 @ self.weights, z @ self.directed
            keys = np.column_stack([squares[:, 0], sums[:, 1], squares[:, 2] + sums[:, 2], sums[:, 3]])
            return np.clip(np.nan_to_num((keys - self.level) / self.spread), -1 / _SMALLEST, 1 / _SMALLEST)

    def of_rows(self, ranks: Integers) -> Integers:
        """Rows by the rank of their task, then by their hash.

        Of c rows with equal hashes h the first comes at h, the others at h ⊕ 1, …, c − 1 with their bits reversed:
        evenly spread, so that the first rows of a task have every row in its share, however often it occurs.
        """
        order = np.lexsort((self.finer, self.hashes, ranks))
        h, ranks = self.hashes[order], ranks[order]
        new = np.concatenate([[True], (h[1:] != h[:-1]) | (ranks[1:] != ranks[:-1])])[: len(h)]
        if new.all():
            return order
        group = np.cumsum(new) - 1
        slots = h ^ _reversed_bits(np.arange(len(h)) - np.flatnonzero(new)[group])
        slots = slots[np.lexsort((slots, group))]  # the first of equal rows come first
        return order[np.lexsort((slots, ranks))]

    def both_hashes(self, rows: Any, tasks: Any) -> tuple[Hashes, Integers]:
        """Hashes of rows by their coarsely rounded keys; rows of one cell are sorted by numbers that grow with keys."""
        keys = self.keys(rows)
        hashes = np.zeros(len(keys), dtype=np.uint64)
        for column in np.floor(keys[:, :3] * _CELLS + 0.5).astype(np.int64).astype(np.uint64).T:
            hashes += column + np.uint64(1)  # numbers that look random (splitmix64)
            hashes *= MIXING[0]
            for shift, factor in ((30, MIXING[1]), (27, MIXING[2]), (31, np.uint64(1))):
                hashes ^= hashes >> np.uint64(shift)
                hashes *= factor
        return hashes, np.rint((keys[:, :3].sum(axis=1) + _SMALLEST * keys[:, 3]) * 10.0**_DIGITS).astype(np.int64)


def content_order(X: Any, tasks: Integers | None = None, n_tasks: int = 1) -> Content:
    """What a dense or sparse table, whose rows belong to numbered tasks, says of their order."""
    tasks = np.zeros(X.shape[0], dtype=np.int64) if tasks is None else tasks
    if sp.issparse(X) and np.prod(X.shape) <= LARGEST_DENSE:
        X = X.toarray()
    X, powers = (X, _powers_of_sparse(X)) if sp.issparse(X) else (np.asarray(X), None)
    over = partial(over_blocks, X, tasks)
    content = Content.of(over, n_tasks, powers)
    hashes, finer = over(content.both_hashes, joined)
    both = hashes ^ (finer.astype(np.uint64) * MIXING[0])
    found = np.sort(both)
    twice = found[1:][found[1:] == found[:-1]]
    if not sp.issparse(X) and len(twice):
        tied = np.flatnonzero(twice[np.minimum(np.searchsorted(twice, both), len(twice) - 1)] == both)
        _, first, group = np.unique(both[tied], return_index=True, return_inverse=True)
        other, step = tied[first][group], max(1, _CELLS_AT_ONCE // X.shape[1])
        parts = (slice(k, k + step) for k in range(0, len(tied), step))
        apart = tied[np.concatenate([np.any(X[tied[part]] != X[other[part]], axis=1) for part in parts])]
        # rows of balanced columns: their keys are equal, their cells are not
        order = np.flatnonzero(np.isin(hashes, hashes[apart])) if len(apart) else apart
        for j in content.columns[::-1]:
            with np.errstate(over="ignore", invalid="ignore"):
                cells = np.rint((X[order, j] - content.mean[j]) / content.scale[j] / _SMALLEST)
            order = order[np.argsort(cells, kind="stable")]
        finer[order[np.lexsort((finer[order], hashes[order]))]] = np.arange(len(order))
    return replace(content, hashes=hashes, finer=finer)


def over_blocks(X: Any, tasks: Integers, read: Callable[[Any, Integers], Any], merge: Merge) -> Any:
    """What a function finds in the blocks of a table and the numbers of their tasks, merged; a sparse one is one."""
    if hasattr(X, "over"):  # its rows lie elsewhere
        return X.over(read, merge)
    step = X.shape[0] if sp.issparse(X) else max(1, _CELLS_AT_ONCE // max(X.shape[1], 1))
    found = [read(X[a : a + step], tasks[a : a + step]) for a in range(0, max(X.shape[0], 1), step)]
    return merge(found) if len(found) > 1 else found[0]


def first_by_content(hashes: Hashes, finer: Integers, k: int) -> Integers:
    """Which k rows of a task come first: those of ``Content.of_rows``, without an order of the others."""
    if k == 0:
        return np.arange(0)
    found = (first_hashes(*likely(hashes, bits), bits, k) for bits in bits_of(len(hashes), k))
    sequence = next(own for own in found if own is not None)
    wanted = np.unique(sequence)  # np.isin would sort all hashes
    rows = np.flatnonzero(wanted[np.searchsorted(wanted[:-1], hashes)] == hashes)
    return in_sequence(hashes[rows], finer[rows], rows, sequence)


def bits_of(n: int, k: int) -> range:
    """Numbers of leading zeros of a hash to try, one after the other, for the k first of n rows."""
    return range(max(0, int(np.log2(max(n, 1) / (2 * max(k, 1))))), -1, -1)


def likely(hashes: Hashes, bits: int, share: float = 1.0) -> tuple[Hashes, Integers]:
    """Hashes of which any row comes before 2^(64 − bits), and how many rows have them.

    Where these rows are a part of a task, which has up to ``share`` times as many rows of a hash, those are returned of
    which the task may have one: all of them, if every part is asked.
    """
    found, counts = np.unique(hashes, return_counts=True)
    keep = _first_slots(found, bits) < np.ceil(counts * share).astype(np.uint64)
    return found[keep], counts[keep]


def first_hashes(hashes: Hashes, counts: Integers, bits: int, k: int) -> Hashes | None:
    """The hashes of the k first rows in their order, from how many rows have which hash; None where these do not do."""
    first, step = _first_slots(hashes, bits).astype(np.int64), 1 << bits
    each = np.maximum(counts - first - 1 + step, 0) // step
    place = np.repeat(np.arange(len(hashes)), each)
    turn = np.arange(len(place)) - np.repeat(np.cumsum(each) - each, each)
    slots = hashes[place] ^ _reversed_bits(first[place] + step * turn)
    return hashes[place[np.argsort(slots, kind="stable")[:k]]] if len(slots) >= k else None


def in_sequence(hashes: Hashes, finer: Integers, positions: Integers, sequence: Hashes) -> Integers:
    """Positions of rows with these hashes in this order; of rows with equal ones the first by ``finer``."""
    order = np.lexsort((positions, finer, hashes))
    turn = np.argsort(sequence, kind="stable")
    hashes, wanted = hashes[order], sequence[turn]
    result = np.empty(len(sequence), dtype=np.int64)
    result[turn] = positions[
        order[np.searchsorted(hashes, wanted) + np.arange(len(wanted)) - np.searchsorted(wanted, wanted)]
    ]
    return result


def _first_slots(hashes: Hashes, bits: int) -> Hashes:
    """The least t for which h ⊕ reversed(t) has that many leading zeros; the others are 2^bits apart."""
    return _reversed_bits(hashes) & np.uint64((1 << bits) - 1)


def _reversed_bits(numbers: NDArray[Any]) -> Hashes:
    octets = np.ascontiguousarray(numbers, dtype="<u8").view(np.uint8).reshape(-1, 8)
    return np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1).view(">u8").ravel().astype(np.uint64)


def _levels(rows: NDArray[Any], tasks: Integers) -> tuple[int, Array, Array]:
    """Number, mean and deviation of rows; squares neither overflow nor vanish."""
    mean = rows.mean(axis=0, dtype=np.float64)
    apart = rows - mean
    unit = np.abs(apart).max(axis=0)
    unit = np.where(unit >= np.finfo(float).tiny, unit, 1.0)
    apart /= unit
    return len(rows), mean, unit * np.sqrt(np.einsum("nd,nd->d", apart, apart) / len(rows))


def _merged_levels(parts: list[tuple[int, Array, Array]]) -> tuple[int, Array, Array]:
    shares = np.array([n for n, _, _ in parts], dtype=float)[:, None]
    n = shares.sum()
    means, deviations = (np.stack([part[k] for part in parts]) for k in (1, 2))
    mean = (shares * means).sum(axis=0) / n
    unit = np.maximum(deviations, np.abs(means - mean)).max(axis=0)
    unit = np.where(unit >= np.finfo(float).tiny, unit, 1.0)
    squares = (deviations / unit) ** 2 + ((means - mean) / unit) ** 2
    return int(n), mean, unit * np.sqrt((shares * squares).sum(axis=0) / n)


def _powers(mean: Array, scale: Array, rows: NDArray[Any], tasks: Integers) -> tuple[Array, ...]:
    """Sums of third and fourth powers, of z ‖z‖² and of products."""
    z = (rows - mean) / scale
    squares, d = z**2, z.shape[1]
    return (
        np.einsum("nd,nd->d", squares, z),
        np.einsum("nd,nd->d", squares, squares),
        z.T @ squares.mean(axis=1),
        z.T @ z if d * d <= _CELLS_AT_ONCE else np.zeros((d, 1)),
    )


def added(parts: list[tuple[Array, ...]]) -> tuple[Array, ...]:
    """Sums of what was found in several blocks."""
    return tuple([np.sum(group, axis=0) for group in zip(*parts)])


def joined(parts: list[tuple[NDArray[Any], ...]]) -> list[NDArray[Any]]:
    """What was found in several blocks, one after the other."""
    return [np.concatenate(group) for group in zip(*parts)]


def _by_task(content: Content, n_tasks: int, rows: Any, tasks: Integers) -> tuple[Any, ...]:
    """Sums of the keys of every task, sums of squares of all keys, and sizes of the tasks."""
    keys = content.keys(rows)
    sums = np.stack([np.bincount(tasks, column, n_tasks) for column in keys.T], axis=1).astype(np.float64)
    return sums, np.einsum("nk,nk->k", keys, keys), np.bincount(tasks, minlength=n_tasks)


def _powers_of_sparse(X: Any) -> tuple[Any, ...]:
    """Levels and powers of a row on average without a dense copy, powers around the mean from powers around zero."""
    n, d = X.shape
    mean, second, cubes, fourths = (np.asarray(X.power(k).mean(axis=0), dtype=np.float64).ravel() for k in (1, 2, 3, 4))
    deviation = np.sqrt(np.maximum(second - mean**2, 0.0))
    scale = deviation + _SMALLEST * (deviation.max(initial=0.0) or 1.0)
    third = (cubes - 3 * mean * second + 2 * mean**3) / scale**3
    fourth = (fourths - 4 * mean * cubes + 6 * mean**2 * second - 3 * mean**4) / scale**4
    squares = X.power(2) @ scale**-2 - 2 * (X @ (mean / scale**2)) + np.sum((mean / scale) ** 2)
    odd = X.T @ (squares - squares.mean()) / (n * d) / scale
    return 1, mean, scale, third, fourth, odd, np.zeros((d, 1))


def on_a_grid(X: Array, tasks: Integers) -> Array:
    """Values rounded to steps of about 10⁻⁵ of the spread of their column within tasks.

    Rows of few values have many equal distances between them. Rounding and noise that nobody sees would decide between
    them; on a grid they are equal again.
    """
    around = X
    if tasks.max(initial=0) > 0:
        sums = np.zeros((int(tasks.max()) + 1, X.shape[1]))
        np.add.at(sums, tasks, X)
        around = X - (sums / np.bincount(tasks)[:, None])[tasks]
    spread = around.std(axis=0)
    positive = np.where(spread > _SMALLEST * spread.max(initial=0.0), spread, 1.0)
    # a power of two, 2⁻¹⁶ of the spread; 0.3: columns of spread 1 all have one step
    step = np.exp2(np.floor(np.log2(positive) + 0.3) - 16)
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
