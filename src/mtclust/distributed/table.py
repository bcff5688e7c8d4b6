"""Dask arrays and data frames as one list of chunks, in which the task of every row is known."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, _check_n_features

from mtclust.core.order import Content, bits_of, first_hashes, in_sequence
from mtclust.core.tasks import index_tasks, task_ids
from mtclust.core.validation import split_task_column
from mtclust.distributed import chunk, is_dask
from mtclust.distributed.chunk import Positions
from mtclust.distributed.engine import Engine

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer

#: for some chunks which of the rows that were asked for they have, and where these are in the order of their tasks
Places = dict[int, tuple[Positions, Positions]]


def read(
    engine: Engine, estimator: MultitaskClusterer, X: Any, tasks: Any, *, reset: bool
) -> tuple[list[Any], list[Any], list[int] | None, chunk.Reading]:
    """Check X and tasks: the chunks, the task ids of their rows, their lengths where known, and how they are read.

    Sets or checks ``n_features_in_`` and ``feature_names_in_`` as for data at hand.
    """
    column = estimator.task_column
    if column is not None and tasks is not None:
        raise ValueError("tasks and task_column were both given; use one of them.")
    if not is_dask(X):
        raise TypeError(
            f"tasks is a Dask collection but X is {type(X).__name__}; make X a Dask array or data frame too, "
            "or tasks an array (tasks.compute())."
        )
    is_frame = hasattr(X, "columns")
    if not is_frame and (not hasattr(X, "chunks") or X.ndim != 2):
        raise ValueError(
            f"X is a Dask collection of type {type(X).__name__} with {getattr(X, 'ndim', '?')} dimensions; "
            "expected an array of shape (n, d) or a data frame."
        )
    described = X._meta if is_frame else np.empty((0, X.shape[1]))
    _check_feature_names(estimator, described, reset=reset)
    _check_n_features(estimator, described, reset=reset)
    whole, ids, lengths, columns = X, None, None, None
    if column is not None:
        X, tasks = split_task_column(X, column)
    if is_frame:
        parts, columns = list(whole.to_delayed()), list(X.columns)
        if column is not None:  # from the same partitions: reading one column alone may be planned with other ones
            ids = [engine.step(operator.getitem, part, column) for part in parts]
        dtypes = [X.dtypes[name] for name in columns]
        wrong = [name for name, kind in zip(columns, dtypes) if getattr(kind, "kind", "O") not in "fiub"]
        if wrong or not columns:
            raise TypeError(
                f"X has columns that are not numbers: {wrong}. Encode or drop them; a column of task ids is named by "
                "task_column."
                if wrong
                else "X has no feature columns."
            )
    else:
        if not isinstance(X._meta, np.ndarray) or X.dtype.kind not in "fiub":
            raise TypeError(
                f"X is a Dask array of {type(X._meta).__name__} chunks with dtype {X.dtype}; expected dense chunks of "
                "real numbers. Use X.map_blocks(lambda block: block.toarray()) for sparse chunks."
            )
        X, dtypes = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X, [X.dtype]
        lengths = None if np.isnan(X.shape[0]) else [int(n) for n in X.chunks[0]]
        parts = list(X.to_delayed().ravel())
    if ids is None:
        lengths = lengths_of(engine, parts, lengths)
        ids = _cut(engine, tasks, lengths)
    dtype = np.float32 if all(kind == np.float32 for kind in dtypes) else np.float64
    return parts, ids, lengths, chunk.Reading(X.shape[1], dtype, columns)


def lengths_of(engine: Engine, parts: list[Any], known: list[int] | None) -> list[int]:
    """Rows of every chunk; reads the data where they are not known."""
    return known or [int(n) for n in engine.gather([engine.step(len, part) for part in parts])]


def _cut(engine: Engine, tasks: Any, lengths: list[int]) -> list[Any]:
    """Task ids of all rows, cut into chunks as the rows are."""
    if not is_dask(tasks):
        pieces = np.split(task_ids(tasks, sum(lengths)), np.cumsum(lengths)[:-1])
        return [engine.constant(piece) for piece in pieces]
    tasks = tasks.to_dask_array(lengths=True) if hasattr(tasks, "to_dask_array") else tasks.copy()
    if np.isnan(tasks.shape[0]):
        tasks.compute_chunk_sizes()
    if tasks.ndim == 2 and tasks.shape[1] == 1:
        tasks = tasks[:, 0]
    if tasks.ndim != 1:
        raise ValueError(f"tasks must be one id per row; got a Dask collection of {tasks.ndim} dimensions.")
    if len(tasks) != sum(lengths):
        raise ValueError(f"tasks has {len(tasks)} entries but X has {sum(lengths)} rows; give one task id per row.")
    return list(tasks.rechunk((tuple(lengths),)).to_delayed())


@dataclass(frozen=True)
class ChunkedTable:
    """The rows of X in chunks, indexed by their positions in the order of the tasks."""

    engine: Engine
    parts: list[Any]  # delayed arrays or pandas frames
    reading: chunk.Reading
    names: NDArray[Any]  # of the tasks
    task_numbers: list[Any]  # delayed: per chunk the task of every row as a position in ``names``
    counts: NDArray[np.int64]  # chunks × m, how many rows of a task a chunk has

    @classmethod
    def of(cls, engine: Engine, parts: list[Any], ids: list[Any], reading: chunk.Reading) -> ChunkedTable:
        """Find the tasks; their ids are encoded where they lie."""
        encoded = engine.keep([engine.step(_encode, part, f"chunk {k} of tasks") for k, part in enumerate(ids)])
        found = engine.gather([engine.step(operator.itemgetter(slice(2)), part) for part in encoded])
        if not any(len(values) for values, _ in found):
            raise ValueError("X has no rows; expected at least one per cluster.")
        distinct = np.concatenate([values for values, _ in found if len(values)])
        names = index_tasks(distinct, len(distinct)).names
        counts, task_numbers = np.zeros((len(found), len(names)), dtype=np.int64), []
        for k, (values, sizes) in enumerate(found):
            numbers = np.searchsorted(names, values)
            counts[k, numbers] = sizes
            small = numbers.astype(np.min_scalar_type(len(names) - 1))
            task_numbers.append(engine.step(lambda found, numbers: numbers[found[2]], encoded[k], small))
        reading = replace(reading, n_tasks=len(names))
        return cls(engine, parts, reading, names, engine.keep(task_numbers), counts)

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.counts.sum()), self.reading.n_columns

    @property
    def dtype(self) -> Any:
        return self.reading.dtype

    def __getitem__(self, positions: Positions) -> NDArray[Any]:
        """Rows at some positions, brought here."""
        where = places(self.counts, positions)
        reading = self.engine.constant(self.reading)
        steps = [
            self.engine.step(chunk.pick, self.parts[k], self.task_numbers[k], reading, rows)
            for k, (_, rows) in where.items()
        ]
        found = in_turn(where, self.engine.gather(steps))
        chunk.require_numbers(found)
        return found

    def steps(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """One step per chunk, where it lies; arguments that are lists have one entry per chunk."""
        return [
            self.engine.step(
                function, part, numbers, *(item[k] if isinstance(item, list) else item for item in arguments), at=home
            )
            for k, (part, numbers, home) in enumerate(
                zip(self.parts, self.task_numbers, self.engine.homes(self.parts))
            )
        ]  # fmt: skip

    def over(self, read: Callable[..., Any], merge: Callable[[list[Any]], Any]) -> Any:
        """What a function of rows and numbers of tasks finds in all blocks of all chunks, merged on the way here."""
        steps = self.steps(chunk.over_rows, self.engine.constant(self.reading), self.engine.constant(read), merge)
        steps = [step for step, n in zip(steps, self.counts.sum(axis=1)) if n]
        return self.engine.gather([self.engine.merged(steps, merge)])[0]

    def as_one_task(self, moves: NDArray[Any] | None) -> ChunkedTable:
        """The same rows as those of one task, after ``moves`` were taken off the rows of every task."""
        moves = None if moves is None else moves.astype(self.dtype)
        return replace(self, reading=replace(self.reading, moves=moves, one_task=True))

    def first_rows(self, content: Content, numbers: dict[int, int]) -> dict[int, Positions]:
        """Positions within some tasks of as many rows as are asked for, which come first in the order of content.

        Chunks tell which hashes may come first; told these of all chunks, how many rows have them, and which.
        """
        engine, sizes = self.engine, self.counts.sum(axis=0)
        constants = map(engine.constant, (self.reading, content, list(numbers)))
        hashes = engine.keep(self.steps(chunk.hashes_of, *constants))
        zeros = {task: list(bits_of(int(sizes[task]), k)) for task, k in numbers.items()}
        result: dict[int, Positions] = {}
        while len(result) < len(numbers):
            bits = {task: zeros[task].pop(0) for task in numbers if task not in result}
            asked = {task: (int(sizes[task]), own) for task, own in bits.items()}
            steps = [engine.step(chunk.likely_hashes, part, asked) for part in hashes]
            found = engine.keep([engine.merged(steps, chunk.merge_hashes)])[0]
            pairs = zip(hashes, before(self.counts))
            steps = [engine.step(chunk.rows_with_hashes, part, base, found, numbers) for part, base in pairs]
            likely, *parts = engine.gather([found, *steps])
            for task, own in bits.items():
                fields = list(zip(*[part[task] for part in parts]))
                sequence = first_hashes(likely[task], np.sum(fields[0], axis=0), own, numbers[task])
                if sequence is not None:
                    hashed, finer, positions = map(np.concatenate, fields[1:])
                    result[task] = in_sequence(hashed, finer, positions, sequence)
        return result


def before(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of every task the chunks before have (chunks × m)."""
    return np.cumsum(counts, axis=0) - counts


def places(counts: NDArray[np.int64], positions: Positions) -> Places:
    """Where rows are, given by their positions in the order of the tasks, of which chunks have so many rows."""
    sizes = counts.T.ravel()  # of the pieces into which chunks cut the tasks
    ends = np.cumsum(sizes)
    pieces = np.searchsorted(ends, positions, side="right")
    tasks, chunks = np.divmod(pieces, len(counts))
    rows = (np.cumsum(counts, axis=1) - counts)[chunks, tasks] + positions - (ends - sizes)[pieces]
    order = np.argsort(chunks, kind="stable")
    found, begins = np.unique(chunks[order], return_index=True)
    return {int(k): (which, rows[which]) for k, which in zip(found, np.split(order, begins[1:]))}


def in_turn(where: Places, found: list[NDArray[Any]]) -> NDArray[Any]:
    """What chunks have sent of some rows, in the order in which these were asked for."""
    asked = np.concatenate([which for which, _ in where.values()])
    return np.concatenate(found)[np.argsort(asked)]


def _encode(part: Any, argument: str) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
    """Distinct ids, how many rows have each, and which of them every row has."""
    index = index_tasks(task_ids(part, len(part), argument), len(part))
    return index.names, index.sizes, index.task_numbers
