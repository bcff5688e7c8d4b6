"""Rows in chunks as a source for the primal form: every pass over them runs where they lie.

A pass sends models and prices down. The chunks answer with cluster sizes and a sample of the gaps between the best and
the second best cluster; then with the scores of the few rows whose gap is small enough to be undecided; then, given the
labels of these, with class sums. Rows and labels stay where they are; new ids of clusters are remembered here and
applied wherever labels are read.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core import Array
from mtclust.core.kernels import require_finite
from mtclust.core.labels import counts_by_task, offsets_of
from mtclust.core.matching import pair_counts
from mtclust.core.order import added
from mtclust.distributed import chunk
from mtclust.distributed.table import ChunkedTable, Positions, before, in_turn, places
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Data, Moments, RowSource, combine, far_from_zero
from mtclust.rows.passes import TaskLabels, first_gap, first_prices, gap_step, settle, sizes_fit
from mtclust.rows.source import values_of
from mtclust.util.messages import phase
from mtclust.util.system import require


class ChunkedRows(RowSource):
    """Rows in chunks as features."""

    def __init__(self, table: ChunkedTable, features: FeatureMap) -> None:
        self.table, self.engine, self.projection = table, table.engine, features.projection
        self.n_features = table.shape[1] if features.landmarks is None else len(features.landmarks)
        #: chunks × m, rows of the tasks that models have
        self.counts = table.counts.sum(axis=1, keepdims=True) if table.reading.one_task else table.counts
        self.offsets, self.n_passes = offsets_of(self.counts.sum(axis=0)), 0
        self._read_as(replace(table.reading, features=None if features.landmarks is None else features))

    def _read_as(self, reading: chunk.Reading) -> None:
        self.reading, self.shift = reading, reading.shift
        self._reading = self.engine.keep([self.engine.constant(reading)])[0]

    # -- rows and moments ----------------------------------------------------------------------------------------

    def take(self, task: int, positions: Positions) -> NDArray[Any]:
        return values_of(self.table[self.offsets[task] + positions], task, self.reading)

    def take_all(self, positions: list[Positions]) -> list[NDArray[Any]]:
        rows = self.table[np.concatenate([a + part for a, part in zip(self.offsets, positions)])]
        ends = np.cumsum([len(part) for part in positions])
        return [values_of(part, task, self.reading) for task, part in enumerate(np.split(rows, ends[:-1]))]

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        sizes = np.diff(self.offsets)
        steps = self.table.steps(chunk.sums_of, self._reading)
        with phase(f"sums of {self.offsets[-1]} rows in {len(steps)} chunks"):
            sums, grams = self.engine.gather([self.engine.merged(steps, added)])[0]
        require_finite(grams)
        means = sums / sizes[:, None]
        spreads = np.sqrt(np.maximum(np.einsum("irr->ir", grams) / sizes[:, None] - means**2, 0.0))
        if centre and self.shift is None and self.projection is None and far_from_zero(means, spreads):
            self._read_as(replace(self.reading, shift=means.astype(self.reading.dtype)))  # or squares would cancel
            return self.moments(centre, scale)
        return combine(sizes, sums, grams, centre, scale, self.projection)

    # -- the batch step ------------------------------------------------------------------------------------------

    def best_labels(self, data: Data, W: Array) -> list[TaskLabels]:
        none = np.zeros(data.bounds.n_clusters)
        prices = [first_prices(self, data, i, W[i], none.copy()) for i in range(len(W))]
        tasks: list[TaskLabels] = [ChunkedTaskLabels(self, own) for own in prices]
        self.relabel(data, W, tasks, list(range(len(W))))
        return tasks

    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        """The best labels under models W, in place; a pass over the chunks labels all tasks."""
        self.n_passes += 1
        with phase(f"pass {self.n_passes}"):
            own, sizes = cast(list[ChunkedTaskLabels], labels), data.moments.sizes
            prices = np.stack([task.prices for task in own])
            weights, constants = map(np.stack, zip(*[data.on_raw(i, W[i]) for i in range(len(W))]))
            models = self.engine.constant((weights, prices - constants))
            proposed = self.engine.keep(self.table.steps(chunk.propose, self._reading, models))
            counts, gaps = self._overview(proposed, np.array([gap_step(int(n)) for n in sizes]))
            lower, upper = data.bounds.lower, data.bounds.upper
            open_tasks = [i for i in tasks if not sizes_fit(prices[i], counts[i], lower[i], upper[i])]
            first = {i: first_gap(gaps[i], counts[i], lower[i], upper[i]) for i in open_tasks}
            first_rows = self._near(proposed, models, first) if first else {}
            changes = [np.empty((0, 2), dtype=np.int64)]
            for i in open_tasks:

                def near(gap: float, i: int = i) -> chunk.NearRows:
                    found = first_rows if gap == first[i] else self._near(proposed, models, {i: gap})
                    positions, labels, scores = found[i]
                    return positions, labels, -constants[i] - scores

                rows, at_first, after, prices[i] = settle(near, gaps[i], counts[i], lower[i], upper[i], prices[i])
                counts[i] += np.bincount(after, minlength=W.shape[2]) - np.bincount(at_first, minlength=W.shape[2])
                moved = np.flatnonzero(after != at_first)
                changes.append(np.stack([self.offsets[i] + rows[moved], after[moved]], axis=1))
            return self._finish(proposed, np.concatenate(changes), own, counts, prices)

    def _overview(self, proposed: list[Any], steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, Array]]:
        """Cluster sizes (m × C) and some gaps of every task."""
        parts = zip(proposed, before(self.counts))
        found = self.engine.gather([self.engine.step(chunk.overview, part, base, steps) for part, base in parts])
        gaps = {i: np.concatenate([own[i] for _, own in found if i in own]) for i in range(len(steps))}
        return np.sum([counts for counts, _ in found], axis=0), gaps

    def _near(self, proposed: list[Any], models: Any, gaps: dict[int, float]) -> dict[int, chunk.NearRows]:
        """The rows of some tasks up to a gap, from all chunks that have any."""
        concerned = np.flatnonzero(self.counts[:, list(gaps)].any(axis=1))
        steps = self.table.steps(chunk.near, list(before(self.counts)), self._reading, models, proposed, gaps)
        found = self.engine.gather([steps[k] for k in concerned])
        joined = {i: zip(*(part[i] for part in found if i in part)) for i in gaps}
        return {i: cast(chunk.NearRows, tuple(map(np.concatenate, fields))) for i, fields in joined.items()}

    def _finish(
        self, proposed: list[Any], changes: NDArray[np.int64], tasks: list[ChunkedTaskLabels],
        counts: NDArray[np.int64], prices: Array,
    ) -> int:  # fmt: skip
        """Send the labels of undecided rows, bring class sums back, and remember where labels are."""
        engine, old, finished = self.engine, tasks[0].by_chunk, proposed
        if len(changes):
            none = np.empty(0, dtype=np.int64)
            own: list[Any] = [(none, none)] * len(proposed)
            for k, (which, rows) in places(self.counts, changes[:, 0]).items():
                own[k] = rows, changes[which, 1]
            finished = engine.keep(self.table.steps(chunk.finish_labels, self._reading, proposed, own))
        new_ids = np.stack([task.new_ids for task in tasks])
        steps = [engine.step(chunk.outcome, *pair, new_ids) for pair in zip(finished, old or [None] * len(finished))]
        sums, changed = engine.gather([engine.merged(steps, added)])[0]
        for i, task in enumerate(tasks):
            task.by_chunk, task.new_ids = finished, np.arange(len(prices[i]))
            task.counts, task.sums, task.prices = counts[i], sums[i], prices[i].copy()
        return int(changed)


class ChunkedTaskLabels(TaskLabels):
    """Labels of one task over all chunks; ``by_chunk`` holds those of all tasks, chunk by chunk, before ``new_ids``."""

    def __init__(self, source: ChunkedRows, prices: Array) -> None:
        C = len(prices)
        sums, counts = np.zeros((C, source.n_features)), np.zeros(C, dtype=np.int64)
        super().__init__(np.empty(0, dtype=np.int32), prices, sums, counts)
        self.table = source.table
        self.by_chunk: list[Any] = []
        self.new_ids = np.arange(C)

    def copy(self) -> ChunkedTaskLabels:
        return copy(self)

    def rename(self, new_ids: NDArray[np.int64]) -> None:
        self.new_ids = new_ids[self.new_ids]
        super().rename(new_ids)

    @classmethod
    def joined(cls, tasks: list[TaskLabels]) -> ChunkedLabels:
        own = cast(list[ChunkedTaskLabels], tasks)
        table, new_ids = own[0].table, np.stack([task.new_ids for task in own])
        return ChunkedLabels(table, [table.engine.step(chunk.named, part, new_ids) for part in own[0].by_chunk])


@dataclass(frozen=True)
class ChunkedLabels:
    """Labels of all rows as they were at one moment."""

    table: ChunkedTable
    parts: list[Any]  # delayed: those of every chunk, sorted by task

    def in_input_order(self, new_ids: NDArray[np.int64] | None) -> Any:
        """A Dask array."""
        da, lengths = require("dask.array", "dask"), self.table.counts.sum(axis=1).tolist()
        pairs = zip(self.parts, self.table.task_numbers)
        steps = [self.table.engine.step(chunk.in_input_order, *pair, new_ids) for pair in pairs]
        arrays = [
            da.from_delayed(part, (n,), dtype=np.int64, meta=np.empty(0, dtype=np.int64))
            for part, n in zip(self.table.engine.keep(steps), lengths)
        ]
        return da.concatenate(arrays)

    def __getitem__(self, positions: Positions) -> NDArray[np.int64]:
        """Labels of some of the sorted rows."""
        where, step = places(self.table.counts, positions), self.table.engine.step
        steps = [step(operator.getitem, self.parts[k], rows) for k, (_, rows) in where.items()]
        return in_turn(where, self.table.engine.gather(steps))

    def counts_by_task(self, n_clusters: int) -> NDArray[np.int64]:
        """Rows of every task in every cluster, whatever tasks the models have."""
        return self._summed(counts_by_task, map(offsets_of, self.table.counts), n_clusters)

    def pair_counts(self, others: ChunkedLabels, n_clusters: int) -> NDArray[np.int64]:
        """How many rows have which two labels, here and there."""
        return self._summed(pair_counts, others.parts, n_clusters)

    def _summed(self, count: Any, others: Iterable[Any], n_clusters: int) -> NDArray[np.int64]:
        steps = [self.table.engine.step(count, *pair, n_clusters) for pair in zip(self.parts, others)]
        return np.asarray(np.sum(self.table.engine.gather(steps), axis=0))
