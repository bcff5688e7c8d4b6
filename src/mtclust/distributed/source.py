"""Rows in chunks as a source for the primal form: every pass over them runs where they lie.

A pass sends models and prices down. The chunks answer with cluster sizes and a sample of the gaps between the best and
the second best cluster; then with the scores of the few rows whose gap is small enough to be undecided; then, told the
labels of these, with class sums. Rows and labels stay where they are; what is decided after a pass (clusters renamed,
some rows exchanged) is remembered here and applied wherever labels are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import ids_by_size, names_by_agreement, pair_counts
from mtclust.core.kernels import require_finite
from mtclust.distributed import chunk, polish
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Layout
from mtclust.rows.boundary import (
    HeldBoundary,
    TooFew,
    assign_near_boundary,
    first_gap_rank,
    gap_of_rank,
    gap_step,
    sizes_fit,
)
from mtclust.rows.moments import Data, Labelled, Moments, NearRows, RawSums, combine, far_from_zero
from mtclust.rows.passes import TaskLabels, first_rows, move_sums, prices_from
from mtclust.util.system import require

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

#: how many times the rows that are tried first are fetched at first, and by how much more where these do not do
_MORE = 2


@dataclass
class ChunkedRows:
    """Features of the rows in chunks, a :class:`mtclust.rows.moments.RowSource`."""

    engine: Engine
    layout: Layout
    raw: list[Any]
    reading: chunk.Reading
    width: int
    parts: list[Any] = field(default_factory=list)  # features where these are held, else raw
    part_reading: chunk.Reading | None = None
    offsets: NDArray[np.int64] = field(init=False)
    n_passes: int = 0

    def __post_init__(self) -> None:
        self.offsets = self.layout.offsets
        self.parts = self.parts or self.raw
        self._read_as(self.reading)
        if self.part_reading is not None:
            self._part_reading = self.engine.constant(self.part_reading)
        self._first: list[Any] | None = None

    @property
    def n_features(self) -> int:
        return self.width

    @property
    def shift(self) -> NDArray[Any] | None:
        return self.reading.shift

    def as_array(self, parts: list[Any]) -> Any:
        """A Dask array of integers from one part per chunk."""
        da = require("dask.array", "dask")
        arrays = [
            da.from_delayed(part, (n,), dtype=np.int64, meta=np.empty(0, dtype=np.int64))
            for part, n in zip(_as_integers(self.engine, parts), self.layout.lengths)
        ]
        return da.concatenate(arrays)

    def _over_chunks(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """One step per chunk on its features; arguments that are lists have one entry per chunk."""
        return over_chunks(
            self.engine, self.parts, self.layout.task_numbers, function, *arguments, homes=self.engine.homes(self.parts)
        )

    def _bases(self) -> list[Any]:
        return list(self.layout.base)

    # -- rows and moments ----------------------------------------------------------------------------------------

    def take(self, task: int, positions: Positions) -> NDArray[Any]:
        none = np.empty(0, dtype=np.int64)
        return self.take_all([positions if i == task else none for i in range(len(self.offsets) - 1)])[task]

    def take_all(self, positions: list[Positions]) -> list[NDArray[Any]]:
        everywhere = np.concatenate([a + part for a, part in zip(self.offsets, positions)])
        rows = picked(self.engine, self.layout, self.raw, self._reading, everywhere)
        ends = np.cumsum([len(part) for part in positions])
        none = np.empty((0, self.width))
        return [
            chunk.features_at(part, task, self.reading) if len(part) else none
            for task, part in enumerate(np.split(rows, ends[:-1]))
        ]

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        begin, sizes = time.perf_counter(), self.layout.sizes
        steps = self._over_chunks(chunk.sums_of, self._part_reading)
        sums, grams, largest = self.engine.gather([self.engine.merged(steps, chunk.merge_sums)])[0]
        require_finite(grams)
        self._say(f"sums and Gram matrices of {self.offsets[-1]} rows in {len(self.parts)} chunks", begin)
        means = sums / sizes[:, None]
        spreads = np.sqrt(np.maximum(np.einsum("irr->ir", grams) / sizes[:, None] - means**2, 0.0))
        if centre and self.shift is None and self.parts is self.raw and far_from_zero(means, spreads):
            self._read_as(replace(self.reading, shift=means.astype(self.reading.dtype)))  # or squares would cancel
            return self.moments(centre, scale)
        return combine(sizes, RawSums(sums, grams, largest), centre, scale)

    def _read_as(self, reading: chunk.Reading) -> None:
        self.reading = reading
        self._reading = self._part_reading = self.engine.keep([self.engine.constant(reading)])[0]

    def class_sums(self, task: int, labels: NDArray[np.int32], n_clusters: int) -> Array:
        rows = self.take(task, np.arange(len(labels)))
        sums = np.zeros((n_clusters, self.width))
        move_sums(rows, np.full(len(labels), -1, dtype=np.int32), labels, sums)
        return sums

    def _say(self, what: str, begin: float) -> None:
        self.engine.report(f"{what}: {time.perf_counter() - begin:.1f} s")

    # -- the batch step ------------------------------------------------------------------------------------------

    def best_labels(self, data: Data, W: Array, prices: list[Array] | None = None) -> list[TaskLabels]:
        C, own = data.bounds.n_clusters, data.moments
        warm = [np.zeros(C) if prices is None else prices[i].copy() for i in range(data.n_tasks)]
        tasks: list[TaskLabels] = [ChunkedTaskLabels(self, warm[i], self.width) for i in range(data.n_tasks)]
        for i, scores in enumerate(self._first_scores(own, W)):
            if len(scores):
                lower, upper = data.bounds.lower[i], data.bounds.upper[i]
                tasks[i].prices = prices_from(scores, int(own.sizes[i]), warm[i], lower, upper)
        self.relabel(data, W, tasks, list(range(data.n_tasks)))
        return tasks

    def _first_scores(self, own: Moments, W: Array) -> list[Array]:
        """Scores of the rows that first prices come from; these rows are picked once."""
        positions, none = [first_rows(int(n)) for n in own.sizes], np.empty((0, W.shape[2]))
        everywhere = np.concatenate([a + part for a, part in zip(self.offsets, positions)])
        if not len(everywhere):
            return [none] * len(positions)
        where = self.layout.by_chunk(everywhere)
        if self._first is None:
            self._first = self.engine.keep(_picking(self.engine, self.layout, self.raw, self._reading, where))
        light, models = self.engine.constant(chunk.light_moments(own)), self.engine.constant(W)
        tasks = np.repeat(np.arange(len(positions)), [len(part) for part in positions])
        found = self.engine.gather(
            [
                self.engine.step(chunk.scores, rows, tasks[which], self._reading, light, models)
                for rows, (which, _) in zip(self._first, where.values())
            ]
        )
        scores = _put_together(where, found, len(everywhere))
        return np.split(scores, np.cumsum([len(part) for part in positions])[:-1])

    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        assert len(tasks) == len(labels), "a pass over the chunks labels all tasks"
        start, own, engine, sizes = time.perf_counter(), chunked(labels), self.engine, data.moments.sizes
        prices = np.stack([task.prices for task in own])
        steps = np.array([gap_step(int(n)) for n in sizes])
        models = engine.constant(chunk.Models(chunk.light_moments(data.moments), W, prices.copy(), steps))
        proposed = engine.keep(self._over_chunks(chunk.propose, self._part_reading, models))
        counts, gaps = self._overview(proposed, steps)
        lower, upper = data.bounds.lower, data.bounds.upper
        open_tasks = [i for i in tasks if not sizes_fit(prices[i], counts[i], lower[i], upper[i])]
        ranks = {i: _MORE * first_gap_rank(counts[i], lower[i], upper[i]) for i in open_tasks}
        changes, n_near = [np.empty((0, 2), dtype=np.int64)], 0
        near: dict[int, chunk.NearRows] = {}
        for i in open_tasks:
            while True:
                margins = {k: _margin(gaps[k], int(sizes[k]), ranks[k]) for k in open_tasks if k not in near}
                if margins:
                    near |= self._near(proposed, models, margins)
                positions, before, own_gaps, scores = near[i]
                costs, n = -data.moments.on_raw(i, W[i])[1] - scores, int(sizes[i])
                complete = len(positions) == n
                boundary = HeldBoundary(
                    n, before, own_gaps, costs.__getitem__, None if complete else positions,
                    np.inf if complete else _margin(gaps[i], n, ranks[i]),
                )  # fmt: skip
                try:
                    found, after, prices[i] = assign_near_boundary(boundary, counts[i], lower[i], upper[i], prices[i])
                    break
                except TooFew:
                    ranks[i] *= _MORE
                    del near[i]
            before = before[np.searchsorted(positions, found)]
            counts[i] += np.bincount(after, minlength=W.shape[2]) - np.bincount(before, minlength=W.shape[2])
            moved = np.flatnonzero(after != before)
            changes.append(np.stack([self.offsets[i] + found[moved], after[moved]], axis=1))
            n_near += len(found)
        changed = self._finish(proposed, np.concatenate(changes), own, counts, prices)
        self.n_passes += 1
        self._say(f"pass {self.n_passes}: {changed} labels changed, {n_near} rows near a boundary", start)
        return changed

    def _overview(self, proposed: list[Any], steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[int, Array]]:
        """Cluster sizes (m × C) and some gaps of every task."""
        parts = zip(proposed, self._bases())
        found = self.engine.gather([self.engine.step(chunk.overview, part, base, steps) for part, base in parts])
        return np.sum([counts for counts, _ in found], axis=0), _joined([own for _, own in found])

    def _near(self, proposed: list[Any], models: Any, margins: dict[int, float]) -> dict[int, chunk.NearRows]:
        """The rows of some tasks within margins, from all chunks that have any."""
        concerned = np.flatnonzero(self.layout.counts[:, list(margins)].any(axis=1))
        steps = self._over_chunks(chunk.near, self._bases(), self._part_reading, models, proposed, margins)
        found = self.engine.gather([steps[k] for k in concerned])
        joined = {i: zip(*(part[i] for part in found if i in part)) for i in margins}
        return {i: cast(chunk.NearRows, tuple(map(np.concatenate, fields))) for i, fields in joined.items()}

    def _finish(
        self, proposed: list[Any], changes: NDArray[np.int64], tasks: list[ChunkedTaskLabels],
        counts: NDArray[np.int64], prices: Array,
    ) -> int:  # fmt: skip
        """Send the labels of undecided rows, bring class sums back, and remember where labels are."""
        engine, own = self.engine, split_by_chunk(self.layout, changes)
        if len(changes):
            finished = engine.keep(self._over_chunks(chunk.finish_labels, self._part_reading, proposed, own))
        else:  # without reading the rows again
            finished = engine.keep(
                [engine.step(chunk.finish_labels, None, None, None, part, mine) for part, mine in zip(proposed, own)]
            )
        old: list[Any] = tasks[0].by_chunk or [None] * len(finished)
        steps = [engine.step(chunk.outcome, *parts) for parts in zip(finished, old, changes_by_chunk(tasks))]
        sums, changed = engine.gather([engine.merged(steps, chunk.merge_outcomes)])[0]
        for i, task in enumerate(tasks):
            task.take_pass(finished, counts[i], sums[i], prices[i].copy())
        return changed

    # -- the polish ----------------------------------------------------------------------------------------------

    def near_boundary(self, data: Data, fit: Labelled, factors: dict[int, Array]) -> Callable[[int], NearRows]:
        light = chunk.light_moments(data.moments)

        def ask(tasks: list[int]) -> tuple[polish.Question, dict[int, polish.Eager]]:
            start = time.perf_counter()
            prices = np.stack([task.prices for task in fit.tasks])
            mine = {i: factors[i] for i in tasks}
            question = polish.Question(light, tasks, fit.W.copy(), prices, mine)
            found = self._most_eager(question, chunked(fit.tasks))
            self._say(f"polish: {sum(len(part.positions) for part in found.values())} rows", start)
            return question, found

        answer = ask(list(factors))

        def near_rows(task: int) -> NearRows:
            nonlocal answer
            rows = polish.near_rows(answer[0], task, answer[1][task], fit.W[task])
            if rows is None:  # exchanges in other tasks have changed this task's model too much
                answer = ask([other for other in factors if other >= task])
                rows = polish.near_rows(answer[0], task, answer[1][task], fit.W[task])
                assert rows is not None
            return rows

        return near_rows

    def _most_eager(self, question: polish.Question, tasks: list[ChunkedTaskLabels]) -> dict[int, polish.Eager]:
        engine = self.engine
        concerned = self.layout.counts[:, question.tasks].sum(axis=1)
        steps = self._over_chunks(
            polish.most_eager, self._bases(), self._part_reading, engine.constant(question), tasks[0].by_chunk,
            changes_by_chunk(tasks),
        )  # fmt: skip
        found = engine.keep([step for step, mine in zip(steps, concerned) if mine])
        levels = engine.gather(
            [engine.merged([engine.step(polish.levels, part) for part in found], polish.merge_levels)]
        )[0]
        cuts = {i: (polish.cut_of(values, rest, self.width), norm) for i, (values, rest, norm) in levels.items()}
        parts = engine.gather([engine.step(polish.above, part, cuts) for part in found])
        return {i: polish.joined([part[i] for part in parts if i in part]) for i in question.tasks}


def _as_integers(engine: Engine, parts: list[Any]) -> list[Any]:
    return [engine.step(np.asarray, part, np.int64) for part in parts]


def over_chunks(
    engine: Engine, parts: list[Any], task_numbers: list[Any], function: Callable[..., Any], *arguments: Any,
    homes: Sequence[tuple[str, ...]] = (),
) -> list[Any]:  # fmt: skip
    """One step per chunk, where it lies; arguments that are lists have one entry per chunk."""
    return [
        engine.step(
            function, part, numbers, *(item[k] if isinstance(item, list) else item for item in arguments),
            at=homes[k] if homes else (),
        )
        for k, (part, numbers) in enumerate(zip(parts, task_numbers))
    ]  # fmt: skip


def picked(engine: Engine, layout: Layout, raw: list[Any], reading: Any, positions: Positions) -> NDArray[Any]:
    """Rows at some positions of all rows sorted by task, brought here."""
    where = layout.by_chunk(positions)
    rows = _put_together(where, engine.gather(_picking(engine, layout, raw, reading, where)), len(positions))
    chunk.require_numbers(rows)
    return rows


def _picking(
    engine: Engine, layout: Layout, raw: list[Any], reading: Any, where: dict[int, tuple[Positions, Positions]]
) -> list[Any]:
    return [engine.step(chunk.pick, raw[k], layout.task_numbers[k], reading, rows) for k, (_, rows) in where.items()]


def _put_together(where: dict[int, tuple[Positions, Positions]], found: list[NDArray[Any]], n: int) -> NDArray[Any]:
    """What chunks have sent of n rows, in the order in which they were asked for."""
    result = np.empty((n, found[0].shape[1]), dtype=found[0].dtype)
    for (which, _), values in zip(where.values(), found):
        result[which] = values
    return result


def _margin(gaps: Array, n: int, rank: int) -> float:
    """A gap that about so many of n rows do not exceed, from some of their gaps."""
    return np.inf if rank >= n else gap_of_rank(gaps, n, rank)


def _joined(parts: list[dict[int, Array]]) -> dict[int, Array]:
    tasks = {task for part in parts for task in part}
    return {task: np.concatenate([part[task] for part in parts if task in part]) for task in tasks}


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
