"""What is done with one chunk of rows, at the worker that has it. Pure functions: the same arguments, the same result.

Within a chunk rows are sorted by task, as everywhere in the library; a position counts the rows of a task over all
chunks, and ``base`` holds the position of the chunk's first row of every task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import offsets_of, tasks_of_rows
from mtclust.core.order import Content, Hashes, likely
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import Blocks, Moments, block_rows, raw_sums
from mtclust.rows.passes import scores_of
from mtclust.rows.source import MappedRows, TableRows

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

#: rows of a task in a chunk that are kept with their features for the rows near a boundary, at least
_FEWEST_KEPT = 256
#: values above this overflow when many squares are added
_LARGEST = 1e150
#: by this share of the gap clusters that were not sent are put outside it, so that no solution can use them unnoticed
_OUTSIDE = 1e-6


@dataclass(frozen=True)
class Reading:
    """How raw chunks become features.

    Attributes
    ----------
    n_tasks : int
        Of the numbers of tasks.
    dtype : dtype
    columns : list, optional
        Of frames.
    features : FeatureMap, optional
        None where chunks hold features already.
    shift : ndarray of shape (m, d), optional
        What is taken off the rows of a task before features are summed.
    moves : ndarray of shape (m, d), optional
        What is taken off the rows of a task before anything else, where tasks are aligned.
    one_task : bool
        Whether rows of all tasks are those of one.
    """

    n_tasks: int
    dtype: Any
    columns: list[Any] | None = None
    features: FeatureMap | None = None
    shift: NDArray[Any] | None = None
    moves: NDArray[Any] | None = None
    one_task: bool = False


def rows_of(raw: Any, reading: Reading) -> NDArray[Any]:
    """The rows of a chunk as an array, in the order of the input."""
    if reading.columns is not None:
        raw = raw[reading.columns].to_numpy(dtype=reading.dtype)
    return np.ascontiguousarray(raw, dtype=reading.dtype)


def by_task(task_numbers: NDArray[Any], reading: Reading) -> tuple[Positions, NDArray[np.int64]]:
    """The order that sorts the rows of a chunk by task, and where every task begins."""
    counts = np.bincount(task_numbers, minlength=reading.n_tasks)
    return np.argsort(task_numbers, kind="stable"), offsets_of(counts)


def source_of(raw: Any, task_numbers: NDArray[Any], reading: Reading) -> TableRows | MappedRows:
    """The rows of a chunk by task."""
    rows, features = rows_of(raw, reading), reading.features
    if reading.moves is not None:
        rows = rows - reading.moves[task_numbers]
    order, offsets = by_task(task_numbers, reading)
    own = None if np.all(task_numbers[1:] >= task_numbers[:-1]) else order
    offsets = offsets[[0, -1]] if reading.one_task else offsets
    if features is not None and features.projection is not None:
        return MappedRows(rows, offsets, features, own)
    return TableRows(rows, offsets, own, reading.shift)


def tasks_in(source: Blocks) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(source.offsets))


def pick(raw: Any, task_numbers: NDArray[Any], reading: Reading, where: Positions) -> NDArray[Any]:
    """Some rows of a chunk, by their places in the order of its tasks."""
    chosen = by_task(task_numbers, reading)[0][where]
    rows = rows_of(raw, reading)[chosen]
    return rows if reading.moves is None else rows - reading.moves[task_numbers[chosen]]


def over_blocks(raw: Any, task_numbers: NDArray[Any], reading: Reading, read: Any, merge: Any) -> Any:
    """What a function finds in blocks of rows and the numbers of their tasks, merged."""
    rows = rows_of(raw, reading)
    require_numbers(rows)
    numbers, step = task_numbers.astype(np.int64), block_rows(rows.shape[1], rows.dtype.itemsize)
    return merge([read(rows[a : a + step], numbers[a : a + step]) for a in range(0, len(rows), step)])


def hashes_of(raw: Any, reading: Reading, content: Content) -> Hashes:
    rows = rows_of(raw, reading)
    step = block_rows(rows.shape[1], rows.dtype.itemsize)
    return np.concatenate([content.hashes(rows[a : a + step]) for a in range(0, max(len(rows), 1), step)])


def likely_hashes(
    hashes: Hashes, task_numbers: NDArray[Any], reading: Reading, asked: dict[int, tuple[int, int]]
) -> dict[int, Hashes]:
    """For some tasks, of which the size and the leading zeros are given, the hashes that may come first."""
    order, offsets = by_task(task_numbers, reading)
    found = {}
    for task, (n, bits) in asked.items():
        own = hashes[order[offsets[task] : offsets[task + 1]]]
        if len(own):
            found[task] = likely(own, bits, n / len(own))[0]
    return found


def merge_hashes(parts: list[dict[int, Hashes]]) -> dict[int, Hashes]:
    tasks = {task for part in parts for task in part}
    return {task: np.unique(np.concatenate([part[task] for part in parts if task in part])) for task in tasks}


def count_hashes(
    hashes: Hashes, task_numbers: NDArray[Any], reading: Reading, asked: dict[int, Hashes]
) -> dict[int, NDArray[np.int64]]:
    """How many rows of some tasks have which hash."""
    order, offsets = by_task(task_numbers, reading)
    found = {}
    for task, these in asked.items():
        own = np.sort(hashes[order[offsets[task] : offsets[task + 1]]])
        found[task] = np.searchsorted(own, these, side="right") - np.searchsorted(own, these)
    return found


def merge_counts(parts: list[dict[int, NDArray[np.int64]]]) -> dict[int, NDArray[np.int64]]:
    return {task: np.sum([part[task] for part in parts], axis=0) for task in parts[0]}


def rows_with_hashes(
    raw: Any, task_numbers: NDArray[Any], hashes: Hashes, reading: Reading, content: Content, asked: dict[int, Hashes]
) -> dict[int, tuple[Hashes, Hashes, Positions]]:
    """For some tasks hashes, finer hashes and places of rows, no more of one hash than are asked for."""
    (order, offsets), rows = by_task(task_numbers, reading), rows_of(raw, reading)
    found = {}
    for task, sequence in asked.items():
        mine = order[offsets[task] : offsets[task + 1]]
        these, numbers = np.unique(sequence, return_counts=True)
        places = np.flatnonzero(np.isin(hashes[mine], these))
        h, fine = hashes[mine[places]], content.finer(rows[mine[places]])
        first = np.lexsort((fine, h))
        turn = np.arange(len(first)) - np.searchsorted(h[first], h[first])
        first = first[turn < numbers[np.searchsorted(these, h[first])]]
        found[task] = h[first], fine[first], places[first]
    return found


def features_of(raw: Any, task_numbers: NDArray[Any], reading: Reading, dtype: Any) -> NDArray[Any]:
    """Features of all rows of a chunk, in the order of the input."""
    source = source_of(raw, task_numbers, reading)
    order = by_task(task_numbers, reading)[0]
    result = np.empty((len(task_numbers), source.n_features), dtype=dtype)
    for task in tasks_in(source):
        first = int(source.offsets[task])
        for begin, end, block in source.blocks(int(task)):
            result[order[first + begin : first + end]] = block
    return result


def sums_of(raw: Any, task_numbers: NDArray[Any], reading: Reading) -> tuple[Array, Array, Array]:
    """Sums, Gram matrices and largest squared norms of the tasks."""
    source = source_of(raw, task_numbers, reading)
    require_numbers(source.table)
    return raw_sums(source, centre=False)[:3]


def require_numbers(rows: NDArray[Any], where: str = "") -> None:
    """Refuse rows that hold something else; ``where`` may say which chunk they are."""
    finite = np.isfinite(rows).all(axis=tuple(range(1, rows.ndim)))
    if not finite.all():
        place = f" ({where}, row {int(np.argmin(finite))} of it)" if where else ""
        raise ValueError(f"Input X contains NaN or infinity{place}; drop or fill these rows.")


def unusable(raw: Any, reading: Reading) -> str | None:
    """What is wrong with the rows of a chunk, None if nothing is."""
    rows = rows_of(raw, reading)
    wrong = int(np.count_nonzero(~np.isfinite(rows)))
    if wrong:
        return f"{wrong} values that are NaN or infinity"
    largest = float(np.abs(rows).max(initial=0.0))
    if largest > _LARGEST:
        return f"values up to {largest:g}, too large to be squared"
    return None


def merge_sums(parts: list[tuple[Array, Array, Array]]) -> tuple[Array, Array, Array]:
    sums, grams, largest = (part.copy() for part in parts[0])
    for more, squares, norms in parts[1:]:
        sums += more
        grams += squares
        np.maximum(largest, norms, out=largest)
    return sums, grams, largest


@dataclass(frozen=True)
class Models:
    """What a pass sends down.

    Attributes
    ----------
    moments : Moments
    W, prices : ndarray
        Models (m × r × C) and prices (m × C) of all tasks.
    steps : ndarray of shape (m,)
        Every how many rows of a task the gap is sent up.
    kept_share : float
        Share of the rows, those nearest to a boundary, whose scores and features are kept until the pass is over.
    """

    moments: Moments
    W: Array
    prices: Array
    steps: NDArray[np.int64]
    kept_share: float

    def weights(self, task: int) -> tuple[Array, Array]:
        """Weights of raw rows, and the constant that the task's centre adds to all scores."""
        return self.moments.on_raw(task, self.W[task])


def light_moments(own: Moments) -> Moments:
    """The moments without the Gram matrices, which no row needs."""
    return Moments(own.sizes, own.mean, own.total, np.zeros((own.n_tasks, 0, 0)), own.scale, own.largest, own.offset)


def scores(rows: NDArray[Any], tasks: NDArray[np.int64], reading: Reading, own: Moments, W: Array) -> Array:
    """Scores of some rows that were picked."""
    result = np.empty((len(rows), W.shape[2]))
    for task in np.unique(tasks).tolist():
        mine = np.flatnonzero(tasks == task)
        features = features_at(rows[mine], task, reading)
        result[mine] = own.centred(task, features) @ W[task]
    return result


def features_at(rows: NDArray[Any], task: int, reading: Reading) -> NDArray[Any]:
    """Features of some rows of a task that were picked."""
    if reading.features is not None and reading.features.projection is not None:
        return reading.features.of_task(rows, task)
    return rows if reading.shift is None else rows - reading.shift[task]


@dataclass(frozen=True)
class NearBoundary:
    """Rows of a task in a chunk with the smallest gaps, all of them up to the gap ``reach``.

    ``rows`` counts from the task's first row in the chunk; scores minus ``offsets`` are what is compared.
    """

    rows: Positions
    gaps: Array
    scores: Array
    offsets: Array
    features: NDArray[Any]
    reach: float


@dataclass(frozen=True)
class Proposed:
    """Labels of a chunk by prices alone, sorted by task, with what settling them takes."""

    offsets: NDArray[np.int64]
    labels: NDArray[Any]
    counts: NDArray[np.int64]
    sums: dict[int, Array]
    gaps: dict[int, Array]
    widest: dict[int, float]
    near: dict[int, NearBoundary]


def propose(raw: Any, task_numbers: NDArray[Any], base: Positions, reading: Reading, models: Models) -> Proposed:
    """Give every row the cluster of highest score − price."""
    from mtclust.core import compiled

    source = source_of(raw, task_numbers, reading)
    C = models.W.shape[2]
    labels = np.full(len(task_numbers), -1, dtype=np.int32)
    counts = np.zeros((len(models.W), C), dtype=np.int64)
    sums, looked_at, widest, near = {}, {}, {}, {}
    for task in tasks_in(source).tolist():
        weights, constant = models.weights(task)
        prices = models.prices[task] - constant
        part = labels[source.offsets[task] : source.offsets[task + 1]]
        gaps, sums[task] = np.empty(len(part)), np.zeros((C, source.n_features))
        for begin, end, block in source.blocks(task):
            none = np.full(end - begin, -1, dtype=np.int32)
            compiled.choose(scores_of(block, weights), prices, part[begin:end], gaps[begin:end], counts[task])
            compiled.move_sums(block, none, part[begin:end], sums[task])
        step = int(models.steps[task])
        looked_at[task], widest[task] = gaps[-int(base[task]) % step :: step].copy(), float(gaps.max())
        near[task] = _near_boundary(source, task, gaps, weights, prices, models.kept_share)
    return Proposed(source.offsets, _small(labels, C), counts, sums, looked_at, widest, near)


def _small(labels: NDArray[np.int32], n_clusters: int) -> NDArray[Any]:
    return labels.astype(np.min_scalar_type(-n_clusters))


def _near_boundary(
    source: Blocks, task: int, gaps: Array, weights: Array, offsets: Array, share: float
) -> NearBoundary:
    wanted = max(_FEWEST_KEPT, int(np.ceil(share * len(gaps))))
    reach = np.inf if wanted >= len(gaps) else float(np.partition(gaps, wanted)[wanted])
    rows = np.flatnonzero(gaps <= reach)
    features = source.take(task, rows)
    return NearBoundary(rows, gaps[rows], scores_of(features, weights), offsets, features, reach)


def overview(proposed: Proposed) -> tuple[NDArray[np.int64], dict[int, Array], dict[int, float]]:
    return proposed.counts, proposed.gaps, proposed.widest


@dataclass(frozen=True)
class Undecided:
    """Rows of a task with at most a certain gap, by position.

    ``scores`` (without the constant of the centre) are those of the clusters in ``within``, row by row: clusters that
    are worse than a row's best by more than the gap are out of the question as long as prices move by no more.
    """

    positions: NDArray[Any]
    labels: NDArray[Any]
    within: NDArray[Any]
    scores: Array

    def all_scores(self, offsets: Array, gap: float) -> Array:
        """Scores of all clusters; those that were not sent are put just outside the gap, which none of them exceeds.

        ``offsets`` are what was subtracted from the scores to compare them.
        """
        sent = np.unpackbits(self.within, axis=1, count=len(offsets)).astype(bool)
        scores = np.full(sent.shape, -np.inf)
        scores[sent] = self.scores
        best = (scores - offsets).max(axis=1, keepdims=True)
        outside = gap * (1 + _OUTSIDE) + np.finfo(float).tiny
        return np.where(sent, scores, best - outside + offsets)


def undecided(proposed: Proposed, base: Positions, gaps: dict[int, tuple[float, float]]) -> dict[int, Undecided] | None:
    """The rows within a gap, and their clusters within another, for some tasks; None if not all rows were kept."""
    result = {}
    for task, near in proposed.near.items():
        if task not in gaps:
            continue
        gap, reach = gaps[task]
        if gap > near.reach:
            return None
        chosen = np.flatnonzero(near.gaps <= gap)
        rows, scores = near.rows[chosen], near.scores[chosen]
        net = scores - near.offsets
        within = net.max(axis=1, keepdims=True) - net <= reach
        labels = proposed.labels[proposed.offsets[task] + rows]
        positions = base[task] + rows
        small = np.uint32 if positions.max(initial=0) < 2**32 else np.int64
        result[task] = Undecided(positions.astype(small), labels, np.packbits(within, axis=1), scores[within])
    return result


@dataclass(frozen=True)
class Changes:
    """New ids of the clusters of every task (m × C; None: as they are), then labels of some rows of a chunk.

    ``rows`` are places in the order of the chunk's tasks.
    """

    new_ids: NDArray[np.int64] | None
    rows: Positions
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class ChunkLabels:
    """Labels of a chunk, sorted by task, and their class sums."""

    offsets: NDArray[np.int64]
    labels: NDArray[Any]
    sums: dict[int, Array]

    def changed(self, changes: Changes) -> NDArray[np.int32]:
        """The labels after changes that were decided since."""
        labels = self.labels.astype(np.int32)
        if changes.new_ids is not None:
            labels = changes.new_ids[tasks_of_rows(self.offsets), labels].astype(np.int32)
        labels[changes.rows] = changes.labels
        return labels


def finish_labels(proposed: Proposed, changes: Changes) -> ChunkLabels:
    """The labels after the rows near a boundary were given theirs."""
    from mtclust.core import compiled

    labels, offsets = proposed.labels.astype(np.int32), proposed.offsets
    sums = {task: part.copy() for task, part in proposed.sums.items()}
    tasks = np.searchsorted(offsets, changes.rows, side="right") - 1
    for task in np.unique(tasks).tolist():
        mine = tasks == task
        rows, after, near = changes.rows[mine], changes.labels[mine].astype(np.int32), proposed.near[task]
        features = near.features[np.searchsorted(near.rows, rows - offsets[task])]
        compiled.move_sums(features, labels[rows], after, sums[task])
        labels[rows] = after
    return ChunkLabels(offsets, labels.astype(proposed.labels.dtype), sums)


def outcome(new: ChunkLabels, old: ChunkLabels | None, changes: Changes | None) -> tuple[dict[int, Array], int]:
    """Class sums, and how many labels differ from those before."""
    if old is None or changes is None:
        return new.sums, len(new.labels)
    return new.sums, int(np.count_nonzero(old.changed(changes) != new.labels))


def merge_outcomes(parts: list[tuple[dict[int, Array], int]]) -> tuple[dict[int, Array], int]:
    sums: dict[int, Array] = {}
    for part, _ in parts:
        for task, values in part.items():
            sums[task] = sums[task] + values if task in sums else values
    return sums, sum(changed for _, changed in parts)


def labels_at(labels: ChunkLabels, changes: Changes, where: Positions) -> NDArray[np.int32]:
    """Labels of some rows, by their places in the order of the chunk's tasks."""
    return labels.changed(changes)[where]


def in_input_order(labels: ChunkLabels, task_numbers: NDArray[Any], changes: Changes) -> NDArray[Any]:
    """Labels in the order of the input."""
    result = np.empty_like(labels.labels)
    result[np.argsort(task_numbers, kind="stable")] = labels.changed(changes)
    return result


def sizes_by_task(
    labels: ChunkLabels, task_numbers: NDArray[Any], changes: Changes, n_tasks: int, n_clusters: int
) -> NDArray[np.int64]:
    """Rows of every task (m) in every cluster (C)."""
    cells = np.sort(task_numbers, kind="stable").astype(np.int64) * n_clusters + labels.changed(changes)
    return np.bincount(cells, minlength=n_tasks * n_clusters).reshape(n_tasks, n_clusters)
