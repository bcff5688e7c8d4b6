r"""Rows of explicit features, read task by task in blocks.

A source of rows yields blocks of raw features z; what the model sees is

.. math:: \phi(x) = (z(x) - \mu_i)/\sqrt s

with the mean μ_i of the row's task (0 without centring) and one scale s, the mean of ‖z − μ_i‖² over all rows. Neither
is ever applied to stored data: scores and sums are corrected instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtclust.features import SMALLEST_LEVEL, Kernel, require_finite
from mtclust.labels import SizeBounds

if TYPE_CHECKING:
    from mtclust.primal.labelling import TaskLabels

Array = NDArray[np.float64]

#: bytes of a block: it stays in the cache between its scores and its class sums
_BLOCK_BYTES = 2**19
_FEWEST_ROWS = 256
#: tasks whose mean is this many standard deviations away from 0 are shifted before anything is squared or summed
_FAR = 10.0
#: the largest norms are bounds, also for what rows in single precision stand for
_ROUNDED_UP = 1.0 + 1e-6
#: a mean diagonal below this share of the uncentred one is rounding: the rows do not differ within tasks
_CONSTANT = 1e-14


@dataclass(frozen=True)
class Data:
    """Rows, their moments, and the sizes their clusters may have."""

    source: Source
    moments: Moments
    bounds: SizeBounds

    @property
    def n_tasks(self) -> int:
        return self.moments.n_tasks


@dataclass(frozen=True)
class NearRows:
    """Rows of a task that a gainful exchange could involve.

    Attributes
    ----------
    positions : ndarray of shape (k,)
        In ascending order.
    wants : ndarray of shape (k,)
        How much better the best other cluster is for the row than its own.
    rows : ndarray of shape (k, r)
        Raw features.
    labels : ndarray of shape (k,)
    complete : bool
        Whether these are all of them.
    """

    positions: NDArray[np.int64]
    wants: Array
    rows: NDArray[Any]
    labels: NDArray[np.int32]
    complete: bool


class Source(Protocol):
    """Raw features of the rows, sorted by task."""

    @property
    def offsets(self) -> NDArray[np.int64]: ...

    @property
    def n_features(self) -> int: ...

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Begin, end (within the task) and features of one block after the other."""

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Features of some rows of a task."""

    def whole(self, task: int) -> NDArray[Any] | None:
        """All rows of a task where they lie together in memory as they are; None elsewhere."""


class RemoteSource(ABC):
    """Rows that lie elsewhere: what needs all of them is done there, for all tasks in one go."""

    offsets: NDArray[np.int64]

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        raise TypeError("rows that lie elsewhere are never read here block by block")

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        none = np.empty(0, dtype=np.int64)
        return self.take_all([positions if i == task else none for i in range(len(self.offsets) - 1)])[task]

    def whole(self, task: int) -> None:
        return None

    @abstractmethod
    def take_all(self, positions: list[NDArray[np.int64]]) -> list[NDArray[Any]]:
        """Features of some rows of every task."""

    @abstractmethod
    def moments(self, centre: bool, scale: float | None) -> Moments: ...

    @abstractmethod
    def best_labels(self, data: Data, W: Array, prices: list[Array] | None) -> list[TaskLabels]:
        """The best labels under models W."""

    @abstractmethod
    def relabel(self, data: Data, W: Array, tasks: list[TaskLabels]) -> int:
        """The best labels under models W, in place; returns how many changed."""

    @abstractmethod
    def nearest_counts(self, own: Moments, centres: list[Array]) -> list[NDArray[np.int64]]:
        """How many rows of every task are nearest to each of its centres."""

    @abstractmethod
    def near(self, data: Data, fit: Any) -> Callable[[int], NearRows]:
        """For every task, in turn, the rows that a gainful exchange could involve."""


class RemoteTable(ABC):
    """A table whose rows lie elsewhere, indexed by their positions in the order of the tasks."""

    shape: tuple[int, int]

    @abstractmethod
    def __getitem__(self, positions: NDArray[np.int64]) -> NDArray[Any]: ...

    @abstractmethod
    def source(self, features: Any, centre: bool) -> RemoteSource:
        """The rows as a source of these features, which may be shifted if they are to be centred."""


def take_all(source: Source, positions: list[NDArray[np.int64]]) -> list[NDArray[Any]]:
    """Features of some rows of every task, in one go where the rows lie elsewhere."""
    if isinstance(source, RemoteSource):
        return source.take_all(positions)
    return [source.take(task, where) for task, where in enumerate(positions)]


@dataclass(frozen=True)
class TableRows:
    """The columns of a dense table are the features.

    ``order`` sorts the rows of ``table`` by task, None where they are sorted; ``shift`` (m × d) is subtracted.
    """

    table: NDArray[Any]
    offsets: NDArray[np.int64]
    order: NDArray[np.int64] | None = None
    shift: NDArray[Any] | None = None

    @property
    def n_features(self) -> int:
        return self.table.shape[1]

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, end = int(self.offsets[task]), int(self.offsets[task + 1])
        step = block_rows(self.table.shape[1], self.table.dtype.itemsize)
        for a in range(begin, end, step):
            b = min(end, a + step)
            rows = self.table[a:b] if self.order is None else self.table[self.order[a:b]]
            yield a - begin, b - begin, self._shifted(task, rows)

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        where = positions + self.offsets[task]
        return self._shifted(task, self.table.take(where if self.order is None else self.order[where], axis=0))

    def whole(self, task: int) -> NDArray[Any] | None:
        if self.order is not None or self.shift is not None:
            return None
        return self.table[int(self.offsets[task]) : int(self.offsets[task + 1])]

    def _shifted(self, task: int, rows: NDArray[Any]) -> NDArray[Any]:
        return rows if self.shift is None else rows - self.shift[task]

    def kept_near_zero(self) -> TableRows:
        """Shifted by roughly the means of the tasks if those lie far from 0, where squares would cancel."""
        means, spreads = np.zeros((2, len(self.offsets) - 1, self.n_features))
        for task in range(len(means)):
            _, _, block = next(self.blocks(task))
            rows = np.asarray(block, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                means[task] = np.ones(len(rows)) @ rows / len(rows)
                # roughly, where means are large: then the rows are shifted in any case
                squares = np.einsum("ij,ij->j", rows, rows) / len(rows)
                spreads[task] = np.sqrt(np.maximum(squares - means[task] ** 2, 0.0))
        if not far_from_zero(means, spreads):
            return self
        return TableRows(self.table, self.offsets, self.order, means.astype(self.table.dtype))


def far_from_zero(means: Array, spreads: Array) -> bool:
    """Whether the mean of any task is so far from 0 that squares would cancel; from means and deviations (m × d)."""
    return bool(np.any(np.abs(means).max(axis=1) > _FAR * spreads.max(axis=1)))


@dataclass(frozen=True)
class KernelRows:
    """Nyström features k(x, landmarks)·projection, computed block by block."""

    rows: Any
    offsets: NDArray[np.int64]
    kernel: Kernel
    landmarks: Any
    projection: Array
    order: NDArray[np.int64] | None = None

    @property
    def n_features(self) -> int:
        return self.projection.shape[1]

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, end = int(self.offsets[task]), int(self.offsets[task + 1])
        step = block_rows(max(self.n_features, self.projection.shape[0]), 8) * 4
        for a in range(begin, end, step):
            b = min(end, a + step)
            yield a - begin, b - begin, self._features(np.arange(a, b))

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        return self._features(positions + self.offsets[task])

    def whole(self, task: int) -> None:
        return None

    def _features(self, where: NDArray[np.int64]) -> Array:
        rows = self.rows[where if self.order is None else self.order[where]]
        return self.kernel(rows, self.landmarks) @ self.projection


def block_rows(n_features: int, itemsize: int) -> int:
    return max(_FEWEST_ROWS, _BLOCK_BYTES // max(1, n_features * itemsize))


def held_in_memory(source: Source, dtype: Any = np.float64) -> TableRows:
    """All features of a source as a table."""
    table = np.empty((int(source.offsets[-1]), source.n_features), dtype=dtype)
    for task in range(len(source.offsets) - 1):
        first = int(source.offsets[task])
        for begin, end, block in source.blocks(task):
            table[first + begin : first + end] = block
    return TableRows(table, source.offsets)


@dataclass(frozen=True)
class Moments:
    """What one pass over the raw features leaves of every task.

    Attributes
    ----------
    sizes : ndarray of shape (m,)
    mean : ndarray of shape (m, r)
        μ_i, zeros without centring.
    total : ndarray of shape (m, r)
        Σ φ over the rows of the task: zeros with centring.
    gram : ndarray of shape (m, r, r)
        S_i = Φ_iᵀΦ_i of the centred, scaled features.
    scale : float
        s; 0 where the rows of no task differ.
    largest : ndarray of shape (m,)
        A bound of ‖φ‖² over the rows of the task.
    """

    sizes: NDArray[np.int64]
    mean: Array
    total: Array
    gram: Array
    scale: float
    largest: Array

    @property
    def n_tasks(self) -> int:
        return len(self.sizes)

    @property
    def n_features(self) -> int:
        return self.mean.shape[1]

    @property
    def normalised_gram(self) -> Array:
        """2S_i/n_i."""
        return self.gram * (2.0 / self.sizes)[:, None, None]

    @property
    def root_scale(self) -> float:
        return float(np.sqrt(self.scale)) if self.scale > 0 else 1.0

    def on_raw(self, task: int, W: Array) -> tuple[Array, Array]:
        """Weights and constant with which raw rows z of a task score as φ does with W: φᵀW = zᵀ·weights + constant."""
        return W / self.root_scale, -(self.mean[task] @ W) / self.root_scale

    def centred(self, task: int, block: NDArray[Any]) -> Array:
        """φ of raw rows of a task."""
        return (np.asarray(block, dtype=np.float64) - self.mean[task]) / self.root_scale


def moments(source: Source, centre: bool, scale: float | None = None) -> Moments:
    """Means, Gram matrices and the scale of the features, in one pass."""
    if isinstance(source, RemoteSource):
        return source.moments(centre, scale)
    sums, grams, largest, around = raw_sums(source, centre)
    return combine(np.diff(source.offsets), sums, grams, largest, centre, scale, around)


def raw_sums(source: Source, centre: bool) -> tuple[Array, Array, Array, Array]:
    """Sums and Gram matrices of the raw features of every task, and the largest ‖z − z₀‖² with z₀ itself.

    With centring z₀ is the mean of the first rows of the task, or else 0.
    """
    m, r = len(source.offsets) - 1, source.n_features
    sums, grams, largest, around = np.zeros((m, r)), np.zeros((m, r, r)), np.zeros(m), np.zeros((m, r))
    with np.errstate(over="ignore", invalid="ignore"):
        for task in range(m):
            for begin, end, block in source.blocks(task):
                rows = np.asarray(block, dtype=np.float64)
                total = np.ones(len(rows)) @ rows  # quicker than sum(axis=0)
                sums[task] += total
                grams[task] += rows.T @ rows
                if centre and begin == 0 and np.all(np.isfinite(total)):
                    around[task] = total / end
                squares = np.einsum("ij,ij->i", rows, rows)
                if centre:  # ‖z − z₀‖², without a copy of the rows
                    squares += around[task] @ around[task] - 2.0 * (rows @ around[task])
                largest[task] = max(largest[task], float(squares.max()))
    require_finite(grams)
    return sums, grams, largest * _ROUNDED_UP, around


def combine(
    sizes: NDArray[np.int64], sums: Array, grams: Array, largest: Array, centre: bool, scale: float | None = None,
    around: Array | float = 0.0,
) -> Moments:  # fmt: skip
    """Moments from raw sums, raw Gram matrices and the largest ‖z − z₀‖² of every task (``around`` holds z₀)."""
    raw_level = float(np.einsum("irr->", grams)) / sizes.sum()
    mean = sums / sizes[:, None] if centre else np.zeros_like(sums)
    total = np.zeros_like(sums) if centre else sums
    if centre:
        grams = grams - np.einsum("ir,is->irs", mean, mean) * sizes[:, None, None]
        largest = (np.sqrt(largest) + np.linalg.norm(mean - around, axis=1)) ** 2
    if scale is None:
        scale = float(np.einsum("irr->", grams)) / sizes.sum()
    if not scale > _CONSTANT * max(raw_level, SMALLEST_LEVEL):
        return Moments(sizes, mean, total, np.zeros_like(grams), 0.0, np.zeros_like(largest))
    return Moments(sizes, mean, total / np.sqrt(scale), grams / scale, scale, largest / scale)


def nearest_counts(source: Source, own: Moments, task: int, centres: Array) -> NDArray[np.int64]:
    """How many rows of a task are nearest to each centre."""
    counts = np.zeros(len(centres), dtype=np.int64)
    for _, _, block in source.blocks(task):
        nearness = own.centred(task, block) @ centres.T - 0.5 * np.sum(centres**2, axis=1)
        counts += np.bincount(nearness.argmax(axis=1), minlength=len(centres))
    return counts
