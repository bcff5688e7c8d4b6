"""Labels that stay with the rows they belong to.

After a pass every chunk has its labels. What is decided later (clusters renamed, some rows exchanged) is remembered
here and applied wherever the labels are read.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import ids_by_size, names_by_agreement, pair_counts
from mtclust.distributed import chunk
from mtclust.rows.passes import TaskLabels

if TYPE_CHECKING:
    from mtclust.distributed.inputs import Layout
    from mtclust.distributed.source import ChunkedRows

Array = NDArray[np.float64]
Positions = NDArray[np.int64]


class ChunkedTaskLabels(TaskLabels):
    """Labels of one task over all chunks; ``by_chunk`` holds those of all tasks, chunk by chunk."""

    def __init__(self, source: ChunkedRows, prices: Array, n_features: int) -> None:
        super().__init__(np.empty(0, dtype=np.int32), prices, np.zeros((len(prices), n_features)))
        self.source = source
        self.by_chunk: list[Any] | None = None
        self._counts = np.zeros(len(prices), dtype=np.int64)
        self._forget_changes()

    def copy(self) -> ChunkedTaskLabels:
        other = copy(self)
        other._changed = dict(self._changed)
        return other

    def _forget_changes(self) -> None:
        self._new_ids: NDArray[np.int64] | None = None
        self._changed: dict[int, int] = {}

    def take_pass(self, by_chunk: list[Any], counts: NDArray[np.int64], sums: Array, prices: Array) -> None:
        """Take the labels of a pass."""
        self.by_chunk, self._counts, self.sums, self.prices = by_chunk, counts, sums, prices
        self._forget_changes()

    @property
    def counts(self) -> NDArray[np.int64]:
        return self._counts.copy()

    def put(self, positions: Positions, before: NDArray[np.int32], after: NDArray[np.int32]) -> None:
        C = len(self.prices)
        self._counts = self._counts + np.bincount(after, minlength=C) - np.bincount(before, minlength=C)
        moved = np.flatnonzero(before != after)
        self._changed.update(zip(positions[moved].tolist(), after[moved].tolist()))

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        self._new_ids = new_ids if self._new_ids is None else new_ids[self._new_ids]
        self._changed = {position: int(new_ids[label]) for position, label in self._changed.items()}
        counts = np.empty_like(self._counts)
        counts[new_ids] = self._counts
        self._counts = counts
        self._rename_clusters(new_ids)

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> ChunkedLabels:
        own = chunked(tasks)
        assert own[0].by_chunk is not None
        return ChunkedLabels(own[0].source, own[0].by_chunk, changes_by_chunk(own))


def chunked(tasks: list[TaskLabels]) -> list[ChunkedTaskLabels]:
    """Labels that a source of rows in chunks gave are labels in chunks, which only it knows."""
    return cast(list[ChunkedTaskLabels], tasks)


def changes_by_chunk(tasks: list[ChunkedTaskLabels]) -> list[chunk.Changes]:
    """What was decided since the last pass, for every chunk."""
    layout, C = tasks[0].source.layout, len(tasks[0].prices)
    moved = [(layout.offsets[i] + p, label) for i, task in enumerate(tasks) for p, label in task._changed.items()]
    new_ids = None
    if any(task._new_ids is not None for task in tasks):
        new_ids = np.stack([np.arange(C) if task._new_ids is None else task._new_ids for task in tasks])
    return split_by_chunk(layout, np.array(moved, dtype=np.int64).reshape(-1, 2), new_ids)


def split_by_chunk(
    layout: Layout, moved: NDArray[np.int64], new_ids: NDArray[np.int64] | None = None
) -> list[chunk.Changes]:
    """New ids of all chunks, and labels of the rows in each; ``moved`` has positions of all rows and labels."""
    where, none = layout.by_chunk(moved[:, 0]), np.empty(0, dtype=np.int64)
    result = []
    for k in range(len(layout.counts)):
        which, rows = where.get(k, (none, none))
        result.append(chunk.Changes(new_ids, rows, moved[which, 1]))
    return result


@dataclass(frozen=True)
class ChunkedLabels:
    """Labels of all rows as they were at one moment."""

    source: ChunkedRows
    by_chunk: list[Any]
    changes: list[chunk.Changes]

    def parts(self) -> list[Any]:
        """Labels of the chunks in the order of the input."""
        layout, step = self.source.layout, self.source.engine.step
        return self.source.engine.keep(
            [
                step(chunk.in_input_order, labels, task_numbers, changes)
                for labels, task_numbers, changes in zip(self.by_chunk, layout.task_numbers, self.changes)
            ]
        )

    def in_input_order(self) -> Any:
        """A Dask array."""
        return self.source.as_array(self.parts())

    def at(self, chunks: dict[int, tuple[Positions, Positions]], n: int) -> NDArray[np.int64]:
        """Labels of n rows: for some chunks which of these rows they have, and where."""
        step, result = self.source.engine.step, np.empty(n, dtype=np.int64)
        found = self.source.engine.gather(
            [step(chunk.labels_at, self.by_chunk[k], self.changes[k], rows) for k, (_, rows) in chunks.items()]
        )
        for (which, _), labels in zip(chunks.values(), found):
            result[which] = labels
        return result

    def counts_by_task(self, n_tasks: int, n_clusters: int) -> NDArray[np.int64]:
        """Rows of every task in every cluster, whatever tasks the models have."""
        step, numbers = self.source.engine.step, self.source.layout.task_numbers
        found = [
            step(chunk.sizes_by_task, labels, own, changes, n_tasks, n_clusters)
            for labels, own, changes in zip(self.by_chunk, numbers, self.changes)
        ]
        return np.asarray(np.sum(self.source.engine.gather(found), axis=0))

    def with_plain_ids(self, single: Any, n_clusters: int, free: bool) -> tuple[Any, Any, NDArray[np.int64] | None]:
        """These and the single-task labels in the order of the input, ids by size where they are free."""
        engine = self.source.engine
        own, alone = self.parts(), single.parts()
        seen = engine.gather([engine.step(_seen, a, b, n_clusters) for a, b in zip(own, alone)])
        new_ids = np.arange(n_clusters)
        if free:
            new_ids = ids_by_size(np.sum(seen, axis=(0, 1)))
        pairs = np.zeros((n_clusters, n_clusters), dtype=np.int64)
        pairs[:, new_ids] = np.sum(seen, axis=0)
        labels, others = (
            engine.keep([engine.step(_named, part, names) for part in parts])
            for parts, names in ((own, new_ids), (alone, names_by_agreement(pairs)))
        )
        source = self.source
        return source.as_array(labels), source.as_array(others), new_ids if free else None


def _seen(labels: NDArray[Any], single: NDArray[Any], n_clusters: int) -> NDArray[np.int64]:
    """How often which two labels meet in a chunk: single-task labels (rows) and labels (columns)."""
    return pair_counts(single.astype(np.int64), labels.astype(np.int64), n_clusters)


def _named(labels: NDArray[Any], names: NDArray[np.int64]) -> NDArray[Any]:
    return names.astype(labels.dtype)[labels]
