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
    from mtclust.distributed.source import ChunkedRows

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
Changes = dict[int, chunk.Changes]


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

    @property
    def changes(self) -> chunk.Changes | None:
        """What was decided since the last pass."""
        if self._new_ids is None and not self._changed:
            return None
        positions = np.array(sorted(self._changed), dtype=np.int64)
        labels = np.array([self._changed[position] for position in positions.tolist()], dtype=np.int64)
        return chunk.Changes(self._new_ids, positions, labels)

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> ChunkedLabels:
        own = chunked(tasks)
        assert own[0].by_chunk is not None
        return ChunkedLabels(own[0].source, own[0].by_chunk, changes_by_chunk(own))

    @classmethod
    def of_rows(cls, tasks: list[TaskLabels], positions: list[Positions]) -> list[NDArray[np.int32]]:
        labels = cls.joined(tasks)
        source = labels.source
        asked = source.layout.by_chunk(positions)
        chosen = [k for k, part in enumerate(asked) if part]
        found = source.engine.gather(
            [
                source.engine.step(
                    chunk.labels_at, labels.by_chunk[k], source.layout.base[k], labels.changes[k],
                    {task: positions[task][rows] for task, rows in asked[k].items()},
                )
                for k in chosen
            ]
        )  # fmt: skip
        result = [np.empty(len(where), dtype=np.int32) for where in positions]
        for k, part in zip(chosen, found):
            for task, values in part.items():
                result[task][asked[k][task]] = values
        return result


def chunked(tasks: list[TaskLabels]) -> list[ChunkedTaskLabels]:
    """Labels that a source of rows in chunks gave are labels in chunks, which only it knows."""
    return cast(list[ChunkedTaskLabels], tasks)


def changes_by_chunk(tasks: list[ChunkedTaskLabels]) -> list[Changes]:
    """What was decided since the last pass, for every chunk that it concerns."""
    layout = tasks[0].source.layout
    all_changes = [task.changes for task in tasks]
    none = np.empty(0, dtype=np.int64)
    places = layout.by_chunk([none if change is None else change.positions for change in all_changes])
    result: list[Changes] = []
    for k, where in enumerate(places):
        mine: Changes = {}
        for task, change in enumerate(all_changes):
            if change is None or not layout.counts[k, task] or (change.new_ids is None and task not in where):
                continue
            rows = where.get(task, slice(0, 0))
            mine[task] = chunk.Changes(change.new_ids, change.positions[rows], change.labels[rows])
        result.append(mine)
    return result


@dataclass(frozen=True)
class ChunkedLabels:
    """Labels of all rows as they were at one moment."""

    source: ChunkedRows
    by_chunk: list[Any]
    changes: list[Changes]

    def parts(self) -> list[Any]:
        """Labels of the chunks in the order of the input."""
        layout, step = self.source.layout, self.source.engine.step
        return self.source.engine.keep(
            [
                step(chunk.in_input_order, labels, task_numbers, base, changes)
                for labels, task_numbers, base, changes in zip(
                    self.by_chunk, layout.task_numbers, layout.base, self.changes
                )
            ]
        )

    def in_input_order(self) -> Any:
        """A Dask array."""
        return self.source.as_array(self.parts())

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
