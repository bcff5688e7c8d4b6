"""What is done with one chunk of rows, at the worker that has it. Pure functions: the same arguments, the same result.

Within a chunk rows are sorted by task, as everywhere in the library; a position counts the rows of a task over all
chunks, and ``base`` holds the position of the chunk's first row of every task.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import offsets_of
from mtclust.primal.features import FeatureMap
from mtclust.primal.labelling import scores_of
from mtclust.primal.rows import Blocks, Moments, raw_sums
from mtclust.primal.sources import MappedRows, TableRows

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

    ``features`` is None where chunks hold features already; ``shift`` (m × d) is subtracted from the rows of a task.
    """

    n_tasks: int
    dtype: Any
    columns: list[Any] | None = None
    features: FeatureMap | None = None
    shift: NDArray[Any] | None = None


def rows_of(raw: Any, reading: Reading) -> NDArray[Any]:
    """The rows of a chunk as an array, in the order of the input."""
    if reading.columns is not None:
        raw = raw[reading.columns].to_numpy(dtype=reading.dtype)
    return np.ascontiguousarray(raw, dtype=reading.dtype)


def source_of(raw: Any, task_numbers: NDArray[Any], reading: Reading) -> TableRows | MappedRows:
    """The rows of a chunk by task."""
    rows = rows_of(raw, reading)
    counts = np.bincount(task_numbers, minlength=reading.n_tasks)
    offsets = offsets_of(counts)
    order = (
        None
        if np.all(task_numbers[1:] >= task_numbers[:-1])
        else np.argsort(task_numbers, kind="stable").astype(np.int64)
    )
    features = reading.features
    if features is not None and features.projection is not None:
        return MappedRows(rows, offsets, features, order)
    return TableRows(rows, offsets, order, reading.shift)


def tasks_in(source: Blocks) -> NDArray[np.int64]:
    return np.flatnonzero(np.diff(source.offsets))


def pick(
    raw: Any, task_numbers: NDArray[Any], reading: Reading, where: dict[int, Positions]
) -> dict[int, NDArray[Any]]:
    """Raw rows: for some tasks those at positions that count from the first row of the task in this chunk."""
    rows = rows_of(raw, reading)
    order = np.argsort(task_numbers, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(task_numbers, minlength=reading.n_tasks))])
    return {task: rows[order[first[task] + positions]] for task, positions in where.items()}


def features_of(raw: Any, task_numbers: NDArray[Any], reading: Reading, dtype: Any) -> NDArray[Any]:
    """Features of all rows of a chunk, in the order of the input."""
    source = source_of(raw, task_numbers, reading)
    order = np.argsort(task_numbers, kind="stable")
    result = np.empty((len(task_numbers), source.n_features), dtype=dtype)
    for task in tasks_in(source):
        first = int(source.offsets[task])
        for begin, end, block in source.blocks(int(task)):
            result[order[first + begin : first + end]] = block
    return result


def levels_of(
    raw: Any, task_numbers: NDArray[Any], reading: Reading, first: dict[int, int]
) -> dict[int, tuple[int, Array, Array]]:
    """Of so many first rows of some tasks the number, the mean and the sum of squares about it."""
    rows = pick(raw, task_numbers, reading, {task: np.arange(n) for task, n in first.items()})
    result = {}
    for task, part in rows.items():
        mean = part.mean(axis=0, dtype=np.float64)
        with np.errstate(over="ignore"):  # refused where they are put together
            result[task] = len(part), mean, np.sum((part - mean) ** 2, axis=0)
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


def scores(kept: dict[int, NDArray[Any]], reading: Reading, own: Moments, W: Array) -> dict[int, Array]:
    """Scores of some raw rows."""
    result = {}
    for task, rows in kept.items():
        if reading.features is not None and reading.features.projection is not None:
            features = reading.features.of_task(rows, task)
        else:
            features = rows if reading.shift is None else rows - reading.shift[task]
        result[task] = own.centred(task, features) @ W[task]
    return result


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
    counts = np.zeros((reading.n_tasks, C), dtype=np.int64)
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
    """New ids of all clusters of a task (None: as they are), then labels of some positions."""

    new_ids: NDArray[np.int64] | None
    positions: Positions
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class ChunkLabels:
    """Labels of a chunk, sorted by task, and their class sums."""

    offsets: NDArray[np.int64]
    labels: NDArray[Any]
    sums: dict[int, Array]

    def changed(self, base: Positions, changes: dict[int, Changes]) -> NDArray[np.int32]:
        """The labels after changes that were decided since."""
        labels = self.labels.astype(np.int32)
        for task, change in changes.items():
            part = labels[self.offsets[task] : self.offsets[task + 1]]
            if change.new_ids is not None:
                part[:] = change.new_ids[part]
            part[change.positions - base[task]] = change.labels
        return labels


def finish_labels(proposed: Proposed, base: Positions, changes: dict[int, Changes]) -> ChunkLabels:
    """The labels after the rows near a boundary were given theirs."""
    from mtclust.core import compiled

    labels = proposed.labels.astype(np.int32)
    sums = {task: part.copy() for task, part in proposed.sums.items()}
    for task, change in changes.items():
        near, rows = proposed.near[task], change.positions - base[task]
        features = near.features[np.searchsorted(near.rows, rows)]
        part = labels[proposed.offsets[task] : proposed.offsets[task + 1]]
        compiled.move_sums(features, part[rows], change.labels.astype(np.int32), sums[task])
        part[rows] = change.labels
    return ChunkLabels(proposed.offsets, labels.astype(proposed.labels.dtype), sums)


def outcome(
    new: ChunkLabels, base: Positions, old: ChunkLabels | None, changes: dict[int, Changes]
) -> tuple[dict[int, Array], int]:
    """Class sums, and how many labels differ from those before."""
    if old is None:
        return new.sums, len(new.labels)
    return new.sums, int(np.count_nonzero(old.changed(base, changes) != new.labels))


def merge_outcomes(parts: list[tuple[dict[int, Array], int]]) -> tuple[dict[int, Array], int]:
    sums: dict[int, Array] = {}
    for part, _ in parts:
        for task, values in part.items():
            sums[task] = sums[task] + values if task in sums else values
    return sums, sum(changed for _, changed in parts)


def labels_at(
    labels: ChunkLabels, base: Positions, changes: dict[int, Changes], where: dict[int, Positions]
) -> dict[int, NDArray[np.int32]]:
    """Labels of some rows, by positions within the task."""
    now = labels.changed(base, changes)
    return {task: now[labels.offsets[task] + rows - base[task]] for task, rows in where.items()}


def in_input_order(
    labels: ChunkLabels, task_numbers: NDArray[Any], base: Positions, changes: dict[int, Changes]
) -> NDArray[Any]:
    """Labels in the order of the input."""
    result = np.empty_like(labels.labels)
    result[np.argsort(task_numbers, kind="stable")] = labels.changed(base, changes)
    return result
