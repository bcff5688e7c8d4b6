"""What is done with one chunk of rows, at the worker that has it. Pure functions: the same arguments, the same result.

Labels of a chunk are sorted by task, as everywhere in the library, its rows stay as they came; a position counts the
rows of a task over all chunks, and ``base`` holds the position of the chunk's first row of every task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust import core
from mtclust.core import Array, Integers
from mtclust.core.labels import offsets_of, tasks_of_rows
from mtclust.core.order import Content, Hashes, joined, likely, over_blocks
from mtclust.rows.features import FeatureMap
from mtclust.rows.moments import raw_sums
from mtclust.rows.passes import scores_of
from mtclust.rows.source import TableRows

Positions = Integers


@dataclass(frozen=True)
class Reading:
    """How raw chunks become features."""

    n_columns: int
    dtype: Any  # float32 where all columns are, else float64
    columns: list[Any] | None = None  # the feature columns of frames
    n_tasks: int = 1
    features: FeatureMap | None = None  # with landmarks, None for the columns
    shift: NDArray[Any] | None = None  # m × d, taken off the rows of a task before features are summed
    moves: NDArray[Any] | None = None  # m × d, taken off them before anything else, where tasks are aligned
    one_task: bool = False  # whether rows of all tasks are those of one


def rows_of(raw: Any, reading: Reading) -> NDArray[Any]:
    """The rows of a chunk as an array, in the order of the input."""
    if reading.columns is not None:
        raw = raw[reading.columns].to_numpy(dtype=reading.dtype)
    return np.ascontiguousarray(raw, dtype=reading.dtype)


def by_task(task_numbers: NDArray[Any], reading: Reading) -> tuple[Positions, Integers]:
    """The order that sorts the rows of a chunk by task, and where every task begins."""
    counts = np.bincount(task_numbers, minlength=reading.n_tasks)
    return np.argsort(task_numbers, kind="stable"), offsets_of(counts)


def source_of_chunk(raw: Any, task_numbers: NDArray[Any], reading: Reading) -> TableRows:
    """The rows of a chunk by task."""
    rows = rows_of(raw, reading)
    if reading.moves is not None:
        rows = rows - reading.moves[task_numbers]
    order, offsets = by_task(task_numbers, reading)
    own = None if np.all(task_numbers[1:] >= task_numbers[:-1]) else order
    offsets = offsets[[0, -1]] if reading.one_task else offsets
    return TableRows(rows, offsets, own, reading.shift, reading.features)


def pick(raw: Any, task_numbers: NDArray[Any], reading: Reading, where: Positions) -> NDArray[Any]:
    """Some rows of a chunk, by their places in the order of its tasks."""
    chosen = by_task(task_numbers, reading)[0][where]
    rows = rows_of(raw, reading)[chosen]
    return rows if reading.moves is None else rows - reading.moves[task_numbers[chosen]]


def over_rows(raw: Any, task_numbers: NDArray[Any], reading: Reading, read: Any, merge: Any) -> Any:
    """What a function finds in blocks of rows and the numbers of their tasks, merged."""
    rows = rows_of(raw, reading)
    require_numbers(rows)
    return over_blocks(rows, task_numbers, read, merge)


def hashes_of(
    raw: Any, task_numbers: NDArray[Any], reading: Reading, content: Content, tasks: list[int]
) -> dict[int, tuple[Hashes, Positions]]:
    """Of the rows of some tasks, with the numbers that sort rows of one hash."""
    order, offsets = by_task(task_numbers, reading)
    hashes, finer = (own[order] for own in over_rows(raw, task_numbers, reading, content.both_hashes, joined))
    return {task: (hashes[a:b], finer[a:b]) for task, a, b in zip(tasks, offsets[tasks], offsets[1:][tasks])}


def likely_hashes(hashes: dict[int, tuple[Hashes, Positions]], asked: dict[int, tuple[int, int]]) -> dict[int, Hashes]:
    """For some tasks, of which the size and the leading zeros are given, the hashes that may come first."""
    return {i: likely(hashes[i][0], bits, n / max(len(hashes[i][0]), 1))[0] for i, (n, bits) in asked.items()}


def merge_hashes(parts: list[dict[int, Hashes]]) -> dict[int, Hashes]:
    return {task: np.unique(np.concatenate([part[task] for part in parts])) for task in parts[0]}


def rows_with_hashes(
    hashes: dict[int, tuple[Hashes, Positions]], base: Positions, asked: dict[int, Hashes], most: dict[int, int]
) -> dict[int, tuple[Positions, Hashes, Positions, Positions]]:
    """For some tasks how many rows have which hash; of ``most`` of each their hashes, finer numbers and positions."""
    found = {}
    for task, these in asked.items():
        own, finer = hashes[task]
        rows = np.flatnonzero(np.isin(own, these))
        rows = rows[np.lexsort((finer[rows], own[rows]))]
        counts = np.bincount(np.searchsorted(these, own[rows]), minlength=len(these))
        rows = rows[np.arange(len(rows)) - np.searchsorted(own[rows], own[rows]) < most[task]]
        found[task] = counts, own[rows], finer[rows], base[task] + rows
    return found


def sums_of(raw: Any, task_numbers: NDArray[Any], reading: Reading) -> tuple[Array, Array]:
    """Sums and Gram matrices of the tasks."""
    source = source_of_chunk(raw, task_numbers, reading)
    require_numbers(source.table)
    return raw_sums(source)


def require_numbers(rows: NDArray[Any]) -> None:
    """Refuse rows that hold something else."""
    if not np.isfinite(rows).all():
        raise ValueError("Input X contains NaN or infinity; drop or fill these rows.")


#: what a pass sends down: weights of raw rows (m × r × C) and prices (m × C) less the constants of the tasks
Models = tuple[Array, Array]


@dataclass(frozen=True)
class ChunkLabels:
    """Labels of a chunk, sorted by task, with class sums; until they are settled, also gaps and cluster sizes."""

    offsets: Integers
    labels: NDArray[Any]
    sums: Array  # m × C × r
    gaps: Array
    counts: Integers


def named(labels: ChunkLabels, new_ids: Integers) -> Integers:
    """The labels after clusters were given new ids (m × C)."""
    return new_ids[tasks_of_rows(labels.offsets), labels.labels]


def propose(raw: Any, task_numbers: NDArray[Any], reading: Reading, models: Models) -> ChunkLabels:
    """Give every row the cluster of highest score − price."""
    source, (weights, prices) = source_of_chunk(raw, task_numbers, reading), models
    m, r, C = weights.shape
    labels, gaps = np.full(len(task_numbers), -1, dtype=np.int32), np.empty(len(task_numbers))
    counts, sums = np.zeros((m, C), dtype=np.int64), np.zeros((m, C, r))
    for task in np.flatnonzero(np.diff(source.offsets)).tolist():
        first = int(source.offsets[task])
        for begin, end, block in source.blocks(task):
            rows = slice(first + begin, first + end)
            scores, none = scores_of(block, weights[task]), np.full(end - begin, -1, dtype=np.int32)
            core.compiled.choose(scores, prices[task], labels[rows], gaps[rows], counts[task])
            core.compiled.move_sums(block, none, labels[rows], sums[task])
    return ChunkLabels(source.offsets, labels.astype(np.min_scalar_type(-C)), sums, gaps, counts)


def overview(proposed: ChunkLabels, base: Positions, steps: Integers) -> tuple[Integers, dict[int, Array]]:
    """Cluster sizes, and some of the gaps of every task."""
    gaps = {}
    for task in np.flatnonzero(np.diff(proposed.offsets)).tolist():
        own = proposed.gaps[proposed.offsets[task] : proposed.offsets[task + 1]]
        gaps[task] = own[-int(base[task]) % int(steps[task]) :: int(steps[task])].copy()
    return proposed.counts, gaps


#: positions, labels and scores (without the constant of the centre) of some rows of a task
NearRows = tuple[Positions, NDArray[Any], Array]


def near(
    raw: Any, task_numbers: NDArray[Any], base: Positions, reading: Reading, models: Models, proposed: ChunkLabels,
    gaps: dict[int, float],
) -> dict[int, NearRows]:  # fmt: skip
    """The rows of some tasks up to a gap."""
    source = source_of_chunk(raw, task_numbers, reading)
    found = {}
    for task in set(np.flatnonzero(np.diff(source.offsets)).tolist()) & set(gaps):
        part = slice(int(source.offsets[task]), int(source.offsets[task + 1]))
        rows = np.flatnonzero(proposed.gaps[part] <= gaps[task])
        if len(rows):  # there is no kernel of no rows
            scores = scores_of(source.take(task, rows), models[0][task])
            found[task] = base[task] + rows, proposed.labels[part][rows], scores
    return found


def finish_labels(
    raw: Any, task_numbers: NDArray[Any], reading: Reading, proposed: ChunkLabels, changes: tuple[Positions, Positions]
) -> ChunkLabels:
    """The labels after some rows near a boundary, in the order of the chunk's tasks, were given theirs."""
    labels, offsets = proposed.labels.astype(np.int32), proposed.offsets
    sums = proposed.sums.copy()
    tasks = np.searchsorted(offsets, changes[0], side="right") - 1
    for task in np.unique(tasks).tolist():
        source, mine = source_of_chunk(raw, task_numbers, reading), tasks == task
        rows, after = changes[0][mine], changes[1][mine].astype(np.int32)
        core.compiled.move_sums(source.take(task, rows - offsets[task]), labels[rows], after, sums[task])
        labels[rows] = after
    return replace(proposed, labels=labels.astype(proposed.labels.dtype), sums=sums, gaps=np.empty(0))


def outcome(new: ChunkLabels, old: ChunkLabels | None, new_ids: Integers) -> tuple[Array, int]:
    """Class sums, and how many labels differ from those before."""
    if old is None:
        return new.sums, len(new.labels)
    return new.sums, int(np.count_nonzero(named(old, new_ids) != new.labels))


def in_input_order(labels: Integers, task_numbers: NDArray[Any], new_ids: Integers | None) -> Integers:
    """Labels that are sorted by task, or new ids of them, in the order of the input."""
    result = np.empty_like(labels)
    result[np.argsort(task_numbers, kind="stable")] = labels if new_ids is None else new_ids[labels]
    return result
