"""Rows at hand: dense and sparse tables and features of them, in memory, in a mapped file or computed block by block.

A new kind of rows inherits :class:`LocalRows` and says how many features there are, what a block is and how to take
some rows; every pass that a problem asks for is made of these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust import core
from mtclust.core import Array
from mtclust.rows.moments import Data, Moments, RowSource, block_rows, combine, far_from_zero, raw_sums
from mtclust.rows.passes import TaskLabels, first_prices, relabel

if TYPE_CHECKING:
    from mtclust.rows.features import FeatureMap


class LocalRows(RowSource):
    """Rows that are read here, block by block."""

    @abstractmethod
    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """Begin, end (within the task) and raw rows of one block after the other, each there until the next one."""

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        return combine(np.diff(self.offsets), *raw_sums(self), centre, scale, self.projection)

    def labelled(self, task: int, labels: NDArray[np.int32], n_clusters: int) -> TaskLabels:
        """Labels of a task with the sums of the raw rows of every cluster."""
        found = TaskLabels.none(len(labels), n_clusters, self.n_features)
        for begin, end, block in self.blocks(task):
            core.compiled.move_sums(block, found.labels[begin:end], labels[begin:end], found.sums)
        return replace(found, labels=labels, counts=np.bincount(labels, minlength=n_clusters))

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


def values_of(rows: Any, task: int, read: Any) -> NDArray[Any]:
    """Rows of a task, ``read`` as features or as columns less a shift."""
    if read.features is not None:
        return read.features.values(rows, task)
    if sp.issparse(rows):
        return rows.toarray()
    return rows if read.shift is None else rows - read.shift[task]


@dataclass(frozen=True)
class TableRows(LocalRows):
    """Rows of a table: its columns are the features, or kernel values with landmarks that are found block by block.

    ``order`` sorts the rows of ``table`` by task, None where they are sorted; ``shift`` (m × d) is subtracted from
    dense columns.
    """

    table: Any  # an array, rows that are moved when they are read, or a CSR matrix
    offsets: NDArray[np.int64]
    order: NDArray[np.int64] | None = None
    shift: NDArray[Any] | None = None
    features: FeatureMap | None = None  # with landmarks, None for the columns

    @property
    def n_features(self) -> int:
        return int(self.table.shape[1] if self.features is None else self.features.landmarks.shape[0])

    @property
    def projection(self) -> Any:
        return None if self.features is None else self.features.projection

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        begin, end = int(self.offsets[task]), int(self.offsets[task + 1])
        dense, kind = not sp.issparse(self.table), self.table.dtype
        step = block_rows(self.n_features, kind.itemsize)
        if self.features is not None or not dense:
            step = 2 * block_rows(self.n_features, 8)
        buffer = np.empty((min(step, end - begin) * dense, self.table.shape[1]), kind)  # one for all is quicker
        for a in range(begin, end, step):
            b = min(end, a + step)
            if self.order is None:
                rows = self.table[a:b]
            elif dense:  # "clip" spares numpy a buffer of its own
                rows = self.table.take(self.order[a:b], 0, buffer[: b - a], "clip")
            else:
                rows = self.table[self.order[a:b]]
            yield a - begin, b - begin, values_of(rows, task, self)

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        where = positions + self.offsets[task]
        return values_of(self.table[where if self.order is None else self.order[where]], task, self)

    def kept_near_zero(self) -> TableRows:
        """Shifted by roughly the means of the tasks if those lie far from 0, where squares would cancel."""
        means, spreads = np.zeros((2, len(self.offsets) - 1, self.n_features))
        for task in range(len(means)):
            _, _, block = next(self.blocks(task))
            rows = np.asarray(block, dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):
                means[task] = np.ones(len(rows)) @ rows / len(rows)
                spreads[task] = rows.std(axis=0)
        if not far_from_zero(means, spreads):
            return self
        return TableRows(self.table, self.offsets, self.order, means.astype(self.table.dtype))

    def projected(self) -> TableRows:
        """All rows, projected, as a table."""
        table = np.empty((int(self.offsets[-1]), self.projection.shape[1]))
        for task, first in enumerate(self.offsets[:-1].tolist()):
            for begin, end, block in self.blocks(task):
                table[first + begin : first + end] = block @ self.projection
        return TableRows(table, self.offsets)
