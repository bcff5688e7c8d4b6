"""Rows at hand: dense and sparse tables and features of them, in memory, in a mapped file or computed block by block.

A new kind of rows inherits :class:`LocalRows` and says how many features there are, what a block is and how to take
some rows; every pass that a problem asks for is made of these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.rows.moments import Data, Moments, RowSource, block_rows, combine, far_from_zero, raw_sums
from mtclust.rows.passes import TaskLabels, first_prices, relabel

if TYPE_CHECKING:
    from mtclust.rows.features import FeatureMap

Array = NDArray[np.float64]


class LocalRows(RowSource):
    """Rows that are read here, block by block."""

    @abstractmethod
    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Begin, end (within the task) and raw rows of one block after the other, each there until the next one."""

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        return combine(np.diff(self.offsets), *raw_sums(self), centre, scale, self.projection)

    def class_sums(self, task: int, labels: NDArray[np.int32], n_clusters: int) -> Array:
        """Sums of the raw rows of every cluster of a task (C × r)."""
        from mtclust.core import compiled

        sums, none = np.zeros((n_clusters, self.n_features)), np.full(len(labels), -1, dtype=np.int32)
        for begin, end, block in self.blocks(task):
            compiled.move_sums(block, none[begin:end], labels[begin:end], sums)
        return sums

    def best_labels(self, data: Data, W: Array) -> list[TaskLabels]:
        tasks = [TaskLabels.none(int(n), data.bounds.n_clusters, self.n_features) for n in data.moments.sizes]
        for i, task in enumerate(tasks):
            task.prices = first_prices(self, data, i, W[i], task.prices)
        self.relabel(data, W, tasks, list(range(len(tasks))))
        return tasks

    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        return sum(relabel(self, data, i, W[i], labels[i]) for i in tasks)


@dataclass(frozen=True)
class MovedRows:
    """A dense table, indexed by rows, from which the offset of their task is taken when they are read."""

    table: NDArray[Any]
    moves: NDArray[Any]  # (m × d)
    tasks: NDArray[Any]  # of every row

    @property
    def shape(self) -> tuple[int, ...]:
        return self.table.shape

    @property
    def dtype(self) -> Any:
        return self.table.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        return self.table[rows] - self.moves.take(self.tasks[rows], axis=0)

    def take(self, rows: NDArray[Any], *how: Any, **others: Any) -> NDArray[Any]:
        return self.table.take(rows, *how, **others) - self.moves.take(self.tasks[rows], axis=0)


@dataclass(frozen=True)
class TableRows(LocalRows):
    """The columns of a dense table are the features.

    ``order`` sorts the rows of ``table`` by task, None where they are sorted; ``shift`` (m × d) is subtracted.
    """

    table: Any  # an array, or rows that are moved when they are read
    offsets: NDArray[np.int64]
    order: NDArray[np.int64] | None = None
    shift: NDArray[Any] | None = None

    @property
    def n_features(self) -> int:
        return self.table.shape[1]

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, end = int(self.offsets[task]), int(self.offsets[task + 1])
        step = block_rows(self.table.shape[1], self.table.dtype.itemsize)
        buffer = np.empty((min(step, end - begin), self.table.shape[1]), self.table.dtype)  # one for all is quicker
        for a in range(begin, end, step):
            b = min(end, a + step)
            if self.order is None:
                rows = self.table[a:b]
            else:  # "clip" spares numpy a buffer of its own
                rows = self.table.take(self.order[a:b], 0, buffer[: b - a], "clip")
            yield a - begin, b - begin, self._shifted(task, rows)

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        where = positions + self.offsets[task]
        return self._shifted(task, self.table.take(where if self.order is None else self.order[where], axis=0))

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


@dataclass(frozen=True)
class MappedRows(LocalRows):
    """Rows that a map changes block by block: to kernel values with landmarks, or from sparse to dense."""

    table: Any
    offsets: NDArray[np.int64]
    features: FeatureMap
    order: NDArray[np.int64] | None = None

    @property
    def n_features(self) -> int:
        landmarks = self.features.landmarks
        return int((self.table if landmarks is None else landmarks.T).shape[1])

    @property
    def projection(self) -> Array | None:
        return self.features.projection

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, end = int(self.offsets[task]), int(self.offsets[task + 1])
        step = block_rows(self.n_features, 8) * 2
        for a in range(begin, end, step):
            b = min(end, a + step)
            yield a - begin, b - begin, self._values(task, np.arange(a, b))

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        return self._values(task, positions + self.offsets[task])

    def _values(self, task: int, where: NDArray[np.int64]) -> Array:
        return self.features.values(self.table[where if self.order is None else self.order[where]], task)

    def projected(self) -> TableRows:
        """All rows, projected, as a table."""
        assert self.projection is not None
        table = np.empty((int(self.offsets[-1]), self.projection.shape[1]))
        for task, first in enumerate(self.offsets[:-1].tolist()):
            for begin, end, block in self.blocks(task):
                table[first + begin : first + end] = block @ self.projection
        return TableRows(table, self.offsets)
