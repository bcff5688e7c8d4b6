"""Rows in chunks as a source for the primal form: every pass over them runs where they lie.

A pass sends models and prices down. The chunks answer with cluster sizes and a sample of the gaps between the best and
the second best cluster; then with the scores of the few rows whose gap is small enough to be undecided; then, told the
labels of these, with class sums. Rows and labels stay where they are; new ids of clusters are remembered here and
applied wherever labels are read.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.kernels import require_finite
from mtclust.core.matching import best_relabelling, ids_by_size
from mtclust.core.order import added
from mtclust.distributed import chunk
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Layout
from mtclust.rows.moments import Data, Moments, RowSource, combine, far_from_zero
from mtclust.rows.passes import TaskLabels, first_gap, first_prices, gap_step, settle, sizes_fit
from mtclust.util.messages import phase
from mtclust.util.system import require

Array = NDArray[np.float64]
Positions = NDArray[np.int64]


@dataclass
class ChunkedRows(RowSource):
    """Rows in chunks as features."""

    engine: Engine
    layout: Layout
    parts: list[Any]
    reading: chunk.Reading
    n_features: int
    n_passes: int = 0

    def __post_init__(self) -> None:
        self.offsets = self.layout.offsets
        self.projection = None if self.reading.features is None else self.reading.features.projection
        self._read_as(self.reading)

    def _over_chunks(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """One step per chunk; arguments that are lists have one entry per chunk."""
        return over_chunks(self.engine, self.parts, self.layout.task_numbers, function, *arguments)

    # -- rows and moments ----------------------------------------------------------------------------------------

    def take(self, task: int, positions: Positions) -> NDArray[Any]:
        none = np.empty(0, dtype=np.int64)
        return self.take_all([positions if i == task else none for i in range(len(self.offsets) - 1)])[task]

    def take_all(self, positions: list[Positions]) -> list[NDArray[Any]]:
        everywhere = np.concatenate([a + part for a, part in zip(self.offsets, positions)])
        rows = picked(self.engine, self.layout, self.parts, self._reading, everywhere)
        ends = np.cumsum([len(part) for part in positions])
        none = np.empty((0, self.n_features))
        return [
            chunk.values_at(part, task, self.reading) if len(part) else none
            for task, part in enumerate(np.split(rows, ends[:-1]))
        ]

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        sizes = self.layout.sizes
        steps = self._over_chunks(chunk.sums_of, self._reading)
        with phase(f"sums of {self.offsets[-1]} rows in {len(self.parts)} chunks"):
            sums, grams = self.engine.gather([self.engine.merged(steps, added)])[0]
        require_finite(grams)
        means = sums / sizes[:, None]
        spreads = np.sqrt(np.maximum(np.einsum("irr->ir", grams) / sizes[:, None] - means**2, 0.0))
        if centre and self.shift is None and self.projection is None and far_from_zero(means, spreads):
            self._read_as(replace(self.reading, shift=means.astype(self.reading.dtype)))  # or squares would cancel
            return self.moments(centre, scale)
        return combine(sizes, sums, grams, centre, scale, self.projection)

    def _read_as(self, reading: chunk.Reading) -> None:
        self.reading, self.shift = reading, reading.shift
        self._reading = self.engine.keep([self.engine.constant(reading)])[0]

    # -- the batch step ------------------------------------------------------------------------------------------

    def best_labels(self, data: Data, W: Array) -> list[TaskLabels]:
        none = np.zeros(data.bounds.n_clusters)
        warm = [first_prices(self, data, i, W[i], none.copy()) for i in range(data.n_tasks)]
        tasks: list[TaskLabels] = [ChunkedTaskLabels(self, own, self.n_features) for own in warm]
        self.relabel(data, W, tasks, list(range(data.n_tasks)))
        return tasks

    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        assert len(tasks) == len(labels), "a pass over the chunks labels all tasks"
        self.n_passes += 1
        with phase(f"pass {self.n_passes}"):
            return self._relabel(data, W, cast(list[ChunkedTaskLabels], labels), tasks)

    def _relabel(self, data: Data, W: Array, own: list[ChunkedTaskLabels], tasks: list[int]) -> int:
        engine, sizes = self.engine, data.moments.sizes
        prices = np.stack([task.prices for task in own])
        steps = np.array([gap_step(int(n)) for n in sizes])
        weights, constants = map(np.stack, zip(*[data.on_raw(i, W[i]) for i in range(data.n_tasks)]))
        models = engine.constant(chunk.Models(weights, prices - constants))
        proposed = engine.keep(self._over_chunks(chunk.propose, self._reading, models))
        counts, gaps = self._overview(proposed, steps)
        lower, upper = data.bounds.lower, data.bounds.upper
        open_tasks = [i for i in tasks if not sizes_fit(prices[i], counts[i], lower[i], upper[i])]
        first = {i: first_gap(gaps[i], counts[i], lower[i], upper[i]) for i in open_tasks}
        first_rows = self._near(proposed, models, first) if first else {}
        changes = [np.empty((0, 2), dtype=np.int64)]
        for i in open_tasks:

            def near(gap: float, i: int = i) -> chunk.NearRows:
                rows = first_rows if gap == first[i] else self._near(proposed, models, {i: gap})
                positions, before, scores = rows[i]
                return positions, before, -constants[i] - scores

            rows, before, after, prices[i] = settle(
                near, first[i], gaps[i], counts[i], lower[i], upper[i], prices[i]
            )  # fmt: skip
            counts[i] += np.bincount(after, minlength=W.shape[2]) - np.bincount(before, minlength=W.shape[2])
            moved = np.flatnonzero(after != before)
            changes.append(np.stack([self.offsets[i] + rows[moved], after[moved]], axis=1))
        return self._finish(proposed, np.concatenate(changes), own, counts, prices)

    def _overview(self, proposed: list[Any], steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, Array]]:
        """Cluster sizes (m × C) and some gaps of every task."""
        parts = zip(proposed, self.layout.base)
        found = self.engine.gather([self.engine.step(chunk.overview, part, base, steps) for part, base in parts])
        gaps = {i: np.concatenate([own[i] for _, own in found if i in own]) for i in range(len(steps))}
        return np.sum([counts for counts, _ in found], axis=0), gaps

    def _near(self, proposed: list[Any], models: Any, gaps: dict[int, float]) -> dict[int, chunk.NearRows]:
        """The rows of some tasks up to a gap, from all chunks that have any."""
        concerned = np.flatnonzero(self.layout.counts[:, list(gaps)].any(axis=1))
        steps = self._over_chunks(chunk.near, list(self.layout.base), self._reading, models, proposed, gaps)
        found = self.engine.gather([steps[k] for k in concerned])
        joined = {i: zip(*(part[i] for part in found if i in part)) for i in gaps}
        return {i: cast(chunk.NearRows, tuple(map(np.concatenate, fields))) for i, fields in joined.items()}

    def _finish(
        self, proposed: list[Any], changes: NDArray[np.int64], tasks: list[ChunkedTaskLabels],
        counts: NDArray[np.int64], prices: Array,
    ) -> int:  # fmt: skip
        """Send the labels of undecided rows, bring class sums back, and remember where labels are."""
        engine, old = self.engine, tasks[0].by_chunk
        where, none = self.layout.by_chunk(changes[:, 0]), np.empty(0, dtype=np.int64)
        own: list[Any] = [(none, none)] * len(proposed)
        for k, (which, rows) in where.items():
            own[k] = rows, changes[which, 1]
        finished = proposed
        if len(changes):
            finished = engine.keep(self._over_chunks(chunk.finish_labels, self._reading, proposed, own))
        new_ids = np.stack([task.new_ids for task in tasks])
        pairs = zip(finished, [None] * len(finished) if old is None else old)
        steps = [engine.step(chunk.outcome, new, before, new_ids) for new, before in pairs]
        sums, changed = engine.gather([engine.merged(steps, chunk.merge_outcomes)])[0]
        for i, task in enumerate(tasks):
            task.by_chunk, task.new_ids = finished, np.arange(len(prices[i]))
            task.counts, task.sums, task.prices = counts[i], sums[i], prices[i].copy()
        return changed


def over_chunks(
    engine: Engine, parts: list[Any], task_numbers: list[Any], function: Callable[..., Any], *arguments: Any
) -> list[Any]:
    """One step per chunk, where it lies; arguments that are lists have one entry per chunk."""
    return [
        engine.step(
            function, part, numbers, *(item[k] if isinstance(item, list) else item for item in arguments), at=home
        )
        for k, (part, numbers, home) in enumerate(zip(parts, task_numbers, engine.homes(parts)))
    ]  # fmt: skip


def picked(engine: Engine, layout: Layout, raw: list[Any], reading: Any, positions: Positions) -> NDArray[Any]:
    """Rows at some positions of all rows sorted by task, brought here."""
    where, numbers = (layout.of_tasks or layout).by_chunk(positions), layout.task_numbers
    steps = [engine.step(chunk.pick, raw[k], numbers[k], reading, rows) for k, (_, rows) in where.items()]
    found = _put_together(where, engine.gather(steps), len(positions))
    chunk.require_numbers(found)
    return found


def _put_together(where: dict[int, tuple[Positions, Positions]], found: list[NDArray[Any]], n: int) -> NDArray[Any]:
    """What chunks have sent of n rows, in the order in which they were asked for."""
    result = np.empty((n, found[0].shape[1]), dtype=found[0].dtype)
    for (which, _), values in zip(where.values(), found):
        result[which] = values
    return result


class ChunkedTaskLabels(TaskLabels):
    """Labels of one task over all chunks; ``by_chunk`` holds those of all tasks, chunk by chunk, before ``new_ids``."""

    def __init__(self, source: ChunkedRows, prices: Array, n_features: int) -> None:
        C = len(prices)
        super().__init__(np.empty(0, dtype=np.int32), prices, np.zeros((C, n_features)), np.zeros(C, dtype=np.int64))
        self.source = source
        self.by_chunk: list[Any] | None = None
        self.new_ids = np.arange(len(prices))

    def copy(self) -> ChunkedTaskLabels:
        return copy(self)

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        self.new_ids = new_ids[self.new_ids]
        super().rename(new_ids)

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> ChunkedLabels:
        own = cast(list[ChunkedTaskLabels], tasks)
        assert own[0].by_chunk is not None
        return ChunkedLabels(own[0].source, own[0].by_chunk, np.stack([task.new_ids for task in own]))


@dataclass(frozen=True)
class ChunkedLabels:
    """Labels of all rows as they were at one moment: those of the chunks, with new ids of every task (m × C)."""

    source: ChunkedRows
    by_chunk: list[Any]
    new_ids: NDArray[np.int64]

    def in_input_order(self, new_ids: NDArray[np.int64] | None = None) -> Any:
        """A Dask array, ids renamed where new ones are given."""
        ids = self.new_ids if new_ids is None else new_ids[self.new_ids]
        parts, da = self.source.engine.keep(self._steps(chunk.in_input_order, ids)), require("dask.array", "dask")
        arrays = [
            da.from_delayed(part, (n,), dtype=np.int64, meta=np.empty(0, dtype=np.int64))
            for part, n in zip(parts, self.source.layout.lengths)
        ]
        return da.concatenate(arrays)

    def at(self, where: dict[int, tuple[Positions, Positions]], n: int) -> NDArray[np.int64]:
        """Labels of n rows: for some chunks which of these rows they have, and where."""
        step = self.source.engine.step
        steps = [step(chunk.labels_at, self.by_chunk[k], self.new_ids, rows) for k, (_, rows) in where.items()]
        return _put_together(where, self.source.engine.gather(steps), n)[:, 0]

    def counts_by_task(self, n_tasks: int, n_clusters: int) -> NDArray[np.int64]:
        """Rows of every task in every cluster, whatever tasks the models have."""
        found = self.source.engine.gather(self._steps(chunk.sizes_by_task, self.new_ids, n_tasks, n_clusters))
        return np.asarray(np.sum(found, axis=0))

    def with_plain_ids(
        self, single: ChunkedLabels, n_clusters: int, free: bool
    ) -> tuple[Any, Any, NDArray[np.int64] | None]:
        """These and the single-task labels in the order of the input, ids by size where they are free."""
        seen = self.source.engine.gather(
            self._steps(chunk.pairs, self.new_ids, single.by_chunk, single.new_ids, n_clusters)
        )
        new_ids = ids_by_size(np.sum(seen, axis=(0, 1))) if free else np.arange(n_clusters)
        pairs = np.zeros((n_clusters, n_clusters), dtype=np.int64)
        pairs[:, new_ids] = np.sum(seen, axis=0)
        labels, others = self.in_input_order(new_ids), single.in_input_order(best_relabelling(pairs))
        return labels, others, new_ids if free else None

    def _steps(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return over_chunks(self.source.engine, self.by_chunk, self.source.layout.task_numbers, function, *arguments)
