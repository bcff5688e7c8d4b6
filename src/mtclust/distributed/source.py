"""Rows in chunks as a source for the primal form: every pass over them runs where they lie.

A pass sends models and prices down. The chunks answer with cluster sizes and a sample of the gaps between the best and
the second best cluster; then with the scores of the few rows whose gap is small enough to be undecided; then, told the
labels of these, with class sums. Rows and labels stay where they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.kernels import require_finite
from mtclust.distributed import chunk, polish
from mtclust.distributed.engine import Engine
from mtclust.distributed.inputs import Layout
from mtclust.distributed.labels import ChunkedTaskLabels, changes_by_chunk, chunked
from mtclust.rows.boundary import assign_near_boundary, first_gap_rank, gap_of_rank, gap_step, sizes_fit
from mtclust.rows.moments import Data, Labelled, Moments, NearRows, RawSums, combine
from mtclust.rows.passes import TaskLabels, first_rows, move_sums, prices_from
from mtclust.util.system import require

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

#: share of the rows of a chunk, those nearest to a boundary, whose scores and features are kept during a pass, and by
#: how much it grows where that was not enough
_KEPT_SHARE = 0.1
_KEPT_AT_FIRST = 0.25
_MORE = 4.0


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
        self._reading = self.engine.keep([self.engine.constant(self.reading)])[0]
        other = self.part_reading
        self._part_reading = self._reading if other is None else self.engine.constant(other)
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
        homes = self.engine.homes(self.parts)
        return [
            self.engine.step(
                function,
                part,
                task_numbers,
                *(item[k] if isinstance(item, list) else item for item in arguments),
                at=homes[k],
            )
            for k, (part, task_numbers) in enumerate(zip(self.parts, self.layout.task_numbers))
        ]

    def _bases(self) -> list[Any]:
        return list(self.layout.base)

    # -- rows and moments ----------------------------------------------------------------------------------------

    def take(self, task: int, positions: Positions) -> NDArray[Any]:
        none = np.empty(0, dtype=np.int64)
        return self.take_all([positions if i == task else none for i in range(len(self.offsets) - 1)])[task]

    def take_all(self, positions: list[Positions]) -> list[NDArray[Any]]:
        rows = picked(self.engine, self.layout, self.raw, self._reading, self.reading, positions)
        features, shift = self.reading.features, self.reading.shift
        if features is not None and features.projection is not None:
            none = np.empty((0, self.width))
            return [features.of_task(part, task) if len(part) else none for task, part in enumerate(rows)]
        return rows if shift is None else [part - shift[task] for task, part in enumerate(rows)]

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        begin = time.perf_counter()
        steps = self._over_chunks(chunk.sums_of, self._part_reading)
        sums, grams, largest = self.engine.gather([self.engine.merged(steps, chunk.merge_sums)])[0]
        require_finite(grams)
        self._say(f"sums and Gram matrices of {self.offsets[-1]} rows in {len(self.parts)} chunks", begin)
        return combine(self.layout.sizes, RawSums(sums, grams, largest), centre, scale)

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
        positions = [first_rows(int(n)) for n in own.sizes]
        if not any(len(where) for where in positions):
            return [np.empty((0, W.shape[2]))] * len(positions)
        if self._first is None:
            self._first = self.engine.keep(
                _picking(self.engine, self.layout, self.raw, self._reading, positions, self.layout.by_chunk(positions))
            )
        light, models = self.engine.constant(chunk.light_moments(own)), self.engine.constant(W)
        found = self.engine.gather(
            [self.engine.step(chunk.scores, rows, self._reading, light, models) for rows in self._first]
        )
        none = np.empty((0, W.shape[2]))
        return [np.concatenate([none, *(part[i] for part in found if i in part)]) for i in range(len(positions))]

    def relabel(self, data: Data, W: Array, labels: list[TaskLabels], tasks: list[int]) -> int:
        assert len(tasks) == len(labels), "a pass over the chunks labels all tasks"
        return self._relabel(data, W, chunked(labels))

    def _relabel(self, data: Data, W: Array, tasks: list[ChunkedTaskLabels]) -> int:
        start = time.perf_counter()
        prices = np.stack([task.prices for task in tasks])
        share = _KEPT_AT_FIRST if tasks[0].by_chunk is None else _KEPT_SHARE
        proposed = self._proposed(data, W, prices, share)
        boundaries, counts = self._overview(proposed, data, W, prices)
        lower, upper = data.bounds.lower, data.bounds.upper
        open_tasks = [i for i in range(len(tasks)) if not sizes_fit(prices[i], counts[i], lower[i], upper[i])]
        ask = {i: boundaries[i].gap_of_rank(first_gap_rank(counts[i], lower[i], upper[i])) for i in open_tasks}
        proposal = _Proposal(self, proposed, lambda share: self._proposed(data, W, prices, share), share)
        for i, rows in proposal.undecided({i: boundaries[i].question(gap) for i, gap in ask.items()}).items():
            boundaries[i].remember(ask[i], rows)
        changes: dict[int, chunk.Changes] = {}
        n_near = 0
        for i in open_tasks:
            boundaries[i].fetch = lambda question, i=i: proposal.undecided({i: question})[i]
            positions, labels, prices[i] = assign_near_boundary(boundaries[i], counts[i], lower[i], upper[i], prices[i])
            before = boundaries[i].labels
            counts[i] += np.bincount(labels, minlength=len(counts[i])) - np.bincount(before, minlength=len(counts[i]))
            moved = np.flatnonzero(labels != before)
            changes[i] = chunk.Changes(None, positions[moved], labels[moved])
            n_near += len(positions)
        changed = self._finish(proposal.steps, changes, tasks, counts, prices)
        self.n_passes += 1
        self._say(f"pass {self.n_passes}: {changed} labels changed, {n_near} rows near a boundary", start)
        return changed

    def _proposed(self, data: Data, W: Array, prices: Array, share: float) -> list[Any]:
        steps = np.array([gap_step(int(n)) for n in data.moments.sizes])
        models = self.engine.constant(chunk.Models(chunk.light_moments(data.moments), W, prices.copy(), steps, share))
        return self.engine.keep(self._over_chunks(chunk.propose, self._bases(), self._part_reading, models))

    def _overview(
        self, proposed: list[Any], data: Data, W: Array, prices: Array
    ) -> tuple[list[_Boundary], NDArray[np.int64]]:
        found = self.engine.gather([self.engine.step(chunk.overview, part) for part in proposed])
        counts = np.sum([part for part, _, _ in found], axis=0)
        own, boundaries = data.moments, []
        for i, n in enumerate(own.sizes):
            gaps = np.concatenate([looked_at[i] for _, looked_at, _ in found if i in looked_at])
            widest = max(most[i] for _, _, most in found if i in most)
            constant = -(own.mean[i] @ W[i]) / own.root_scale
            boundaries.append(_Boundary(int(n), gaps, widest, constant, prices[i].copy()))
        return boundaries, counts

    def _finish(
        self, proposed: list[Any], changes: dict[int, chunk.Changes], tasks: list[ChunkedTaskLabels],
        counts: NDArray[np.int64], prices: Array,
    ) -> int:  # fmt: skip
        """Send the labels of undecided rows, bring class sums back, and remember where labels are."""
        layout, engine, bases = self.layout, self.engine, self._bases()
        none = np.empty(0, dtype=np.int64)
        places = layout.by_chunk([changes[i].positions if i in changes else none for i in range(len(tasks))])
        own = [
            {i: chunk.Changes(None, changes[i].positions[rows], changes[i].labels[rows]) for i, rows in where.items()}
            for where in places
        ]
        finished = engine.keep(
            [engine.step(chunk.finish_labels, part, bases[k], own[k]) for k, part in enumerate(proposed)]
        )
        before = tasks[0].by_chunk
        old: list[Any] = [None] * len(finished) if before is None else before
        since = changes_by_chunk(tasks)
        steps = [
            engine.step(chunk.outcome, new, bases[k], old[k], since[k] if old[k] is not None else {})
            for k, new in enumerate(finished)
        ]
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


def picked(
    engine: Engine, layout: Layout, raw: list[Any], reading: Any, here: chunk.Reading, positions: list[Positions]
) -> list[NDArray[Any]]:
    """Raw rows at ascending positions of every task, brought here."""
    asked = layout.by_chunk(positions)
    chosen = [k for k, part in enumerate(asked) if part]
    steps = _picking(engine, layout, raw, reading, positions, asked)
    found = engine.gather([steps[k] for k in chosen])
    width = next((rows.shape[1] for part in found for rows in part.values()), 0)
    result = [np.empty((len(where), width), dtype=here.dtype) for where in positions]
    for k, part in zip(chosen, found):
        for task, rows in part.items():
            result[task][asked[k][task]] = rows
    for part in result:
        chunk.require_numbers(part)
    return result


def _picking(
    engine: Engine, layout: Layout, raw: list[Any], reading: Any, positions: list[Positions],
    asked: list[dict[int, slice]],
) -> list[Any]:  # fmt: skip
    return [
        engine.step(
            chunk.pick, part, task_numbers, reading,
            {task: positions[task][rows] - layout.base[k, task] for task, rows in asked[k].items()},
        )
        for k, (part, task_numbers) in enumerate(zip(raw, layout.task_numbers))
    ]  # fmt: skip


@dataclass
class _Boundary:
    """Rows of a task near a boundary, fetched as far as they are asked for; ``prices`` are those of the pass."""

    n_rows: int
    gaps: Array
    widest: float
    constant: Array
    prices: Array
    fetch: Callable[[tuple[float, float]], chunk.Undecided] | None = None
    _gap: float = -np.inf
    _rows: chunk.Undecided | None = None

    @property
    def labels(self) -> NDArray[np.int64]:
        assert self._rows is not None
        return self._rows.labels

    def question(self, gap: float) -> tuple[float, float]:
        """Up to which gap rows, and clusters of these rows, are asked for: all clusters if all rows are."""
        return gap, np.inf if gap >= self.widest else gap

    def remember(self, gap: float, rows: chunk.Undecided) -> None:
        self._gap, self._rows = gap, rows

    def gap_of_rank(self, rank: int) -> float:
        return self.widest if rank >= self.n_rows else gap_of_rank(self.gaps, self.n_rows, rank)

    def within(self, gap: float) -> tuple[Positions, NDArray[Any]]:
        if gap != self._gap:
            assert self.fetch is not None
            self.remember(gap, self.fetch(self.question(gap)))
        assert self._rows is not None
        return self._rows.positions, self._rows.labels

    def cost_of(self, positions: Positions) -> Array:
        assert self._rows is not None
        return -self.constant - self._rows.all_scores(self.prices - self.constant, self._gap)


@dataclass
class _Proposal:
    """The chunks' answers to one pass; asked again, with more rows kept, if too few were."""

    source: ChunkedRows
    steps: list[Any]
    again: Callable[[float], list[Any]]
    share: float

    def undecided(self, gaps: dict[int, tuple[float, float]]) -> dict[int, chunk.Undecided]:
        """The rows of some tasks within the given gaps, with their clusters within others."""
        if not gaps:
            return {}
        engine, layout = self.source.engine, self.source.layout
        concerned = np.flatnonzero(layout.counts[:, list(gaps)].any(axis=1))
        while True:
            found = engine.gather(
                [engine.step(chunk.undecided, self.steps[k], layout.base[k], gaps) for k in concerned]
            )
            if all(part is not None for part in found):
                break
            self.share = min(1.0, _MORE * self.share)
            self.steps = self.again(self.share)
        return {i: _joined([part[i] for part in found if i in part]) for i in gaps}


def _joined(parts: list[chunk.Undecided]) -> chunk.Undecided:
    positions, labels, within, scores = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("positions", "labels", "within", "scores")
    )
    return chunk.Undecided(positions.astype(np.int64), labels.astype(np.int64), within, scores)
