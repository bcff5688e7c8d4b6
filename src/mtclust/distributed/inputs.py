"""Reading Dask arrays and data frames: one list of chunks, the task of every row, and where tasks lie in the chunks."""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, _check_n_features

from mtclust.core.labels import offsets_of
from mtclust.core.tasks import index_tasks, task_ids
from mtclust.core.validation import split_task_column
from mtclust.distributed import is_dask
from mtclust.distributed.engine import Engine

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


@dataclass(frozen=True)
class Table:
    """The chunks of X, and those of the task ids if these are a collection too."""

    parts: list[Any]  # delayed arrays or pandas frames
    columns: list[Any] | None  # the feature columns of the frames
    n_features: int
    dtype: Any  # float32 where all columns are, else float64
    lengths: list[int] | None  # rows of every part, None where not known yet
    ids: list[Any]


def read(engine: Engine, estimator: MultitaskClusterer, X: Any, tasks: Any, *, reset: bool) -> Table:
    """Check X and tasks; sets or checks ``n_features_in_`` and ``feature_names_in_`` as for data at hand."""
    column = estimator.task_column
    if column is not None and tasks is not None:
        raise ValueError("tasks and task_column were both given; use one of them.")
    if not is_dask(X):
        raise TypeError(
            f"tasks is a Dask collection but X is {type(X).__name__}; make X a Dask array or data frame too, "
            "or tasks an array (tasks.compute())."
        )
    if hasattr(X, "columns"):
        return _read_frame(engine, estimator, X, tasks, column, reset)
    if not hasattr(X, "chunks") or X.ndim != 2:
        raise ValueError(
            f"X is a Dask collection of type {type(X).__name__} with {getattr(X, 'ndim', '?')} dimensions; "
            "expected an array of shape (n, d) or a data frame."
        )
    _check_n_features(estimator, X, reset=reset)
    _check_feature_names(estimator, np.empty((0, X.shape[1])), reset=reset)
    if column is not None:
        X, tasks = split_task_column(X, column)
    if not isinstance(X._meta, np.ndarray) or X.dtype.kind not in "fiub":
        raise TypeError(
            f"X is a Dask array of {type(X._meta).__name__} chunks with dtype {X.dtype}; expected dense chunks of real "
            "numbers. Use X.map_blocks(lambda block: block.toarray()) for sparse chunks."
        )
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    lengths = None if np.isnan(X.shape[0]) else [int(n) for n in X.chunks[0]]
    parts = list(X.to_delayed().ravel())
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return _with_tasks(engine, Table(parts, None, X.shape[1], dtype, lengths, []), tasks)


def _read_frame(engine: Engine, estimator: MultitaskClusterer, X: Any, tasks: Any, column: Any, reset: bool) -> Table:
    _check_feature_names(estimator, X._meta, reset=reset)
    _check_n_features(estimator, X._meta, reset=reset)
    # ids and rows come from the same partitions: reading one column alone may be planned with other partitions
    parts, ids = list(X.to_delayed()), []
    if column is not None:
        X, _ = split_task_column(X, column)
        ids = [engine.step(operator.getitem, part, column) for part in parts]
    columns = list(X.columns)
    dtypes = [X.dtypes[name] for name in columns]
    wrong = [name for name, kind in zip(columns, dtypes) if getattr(kind, "kind", "O") not in "fiub"]
    if wrong or not columns:
        raise TypeError(
            f"X has columns that are not numbers: {wrong}. Encode or drop them; a column of task ids is named by "
            "task_column."
            if wrong
            else "X has no feature columns."
        )
    dtype = np.float32 if all(kind == np.float32 for kind in dtypes) else np.float64
    table = Table(parts, columns, len(columns), dtype, None, ids)
    return table if column is not None else _with_tasks(engine, table, tasks)


def _with_tasks(engine: Engine, table: Table, tasks: Any) -> Table:
    """The table with the task ids of its rows, cut into chunks as the rows are."""
    lengths = lengths_of(engine, table)
    if not is_dask(tasks):
        pieces = np.split(task_ids(tasks, sum(lengths)), np.cumsum(lengths)[:-1])
        return replace(table, lengths=lengths, ids=[engine.constant(piece) for piece in pieces])
    tasks = tasks.to_dask_array(lengths=True) if hasattr(tasks, "to_dask_array") else tasks.copy()
    if np.isnan(tasks.shape[0]):
        tasks.compute_chunk_sizes()
    if tasks.ndim == 2 and tasks.shape[1] == 1:
        tasks = tasks[:, 0]
    if tasks.ndim != 1:
        raise ValueError(f"tasks must be one id per row; got a Dask collection of {tasks.ndim} dimensions.")
    if len(tasks) != sum(lengths):
        raise ValueError(f"tasks has {len(tasks)} entries but X has {sum(lengths)} rows; give one task id per row.")
    ids = list(tasks.rechunk((tuple(lengths),)).to_delayed())
    return replace(table, lengths=lengths, ids=ids)


@dataclass(frozen=True)
class Layout:
    """Which rows of which task lie in which chunk."""

    names: NDArray[Any]
    task_numbers: list[Any]  # delayed: per chunk the task of every row as a position in ``names``
    counts: NDArray[np.int64]  # chunks × m, how many rows of a task a chunk has
    of_tasks: Layout | None = None  # by which rows are asked for, where those of all tasks are held as one

    @property
    def base(self) -> NDArray[np.int64]:
        """Chunks × m, the position within the task of the first of its rows in a chunk."""
        return np.cumsum(self.counts, axis=0) - self.counts

    @property
    def lengths(self) -> list[int]:
        return [int(n) for n in self.counts.sum(axis=1)]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return self.counts.sum(axis=0)

    @property
    def offsets(self) -> NDArray[np.int64]:
        return offsets_of(self.sizes)

    def by_chunk(self, positions: NDArray[np.int64]) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """For every chunk that has some rows, at positions of all rows sorted by task, which of them and where.

        Places within a chunk are those of its rows sorted by task.
        """
        tasks = np.searchsorted(self.offsets, positions, side="right") - 1
        within, base = positions - self.offsets[tasks], self.base
        chunks = np.empty(len(positions), dtype=np.int64)
        for task in np.unique(tasks):
            mine = tasks == task
            chunks[mine] = np.searchsorted(base[:, task], within[mine], side="right") - 1
        before = np.cumsum(self.counts, axis=1) - self.counts
        rows = before[chunks, tasks] + within - base[chunks, tasks]
        order = np.argsort(chunks, kind="stable")
        found, begins = np.unique(chunks[order], return_index=True)
        return {int(k): (which, rows[which]) for k, which in zip(found, np.split(order, begins[1:]))}

    def as_one_task(self) -> Layout:
        """The same rows as those of one task, chunk after chunk."""
        counts = self.counts.sum(axis=1, keepdims=True)
        return Layout(self.names[:1], self.task_numbers, counts, self)


def lengths_of(engine: Engine, table: Table) -> list[int]:
    """Rows of every chunk; reads the data where they are not known."""
    if table.lengths is not None:
        return table.lengths
    return [int(n) for n in engine.gather([engine.step(len, part) for part in table.parts])]


def lay_out(engine: Engine, table: Table) -> Layout:
    """Find the tasks; the task ids are encoded where they lie."""
    encoded = engine.keep([engine.step(_encode, part, f"chunk {k} of tasks") for k, part in enumerate(table.ids)])
    found = engine.gather([engine.step(operator.itemgetter(slice(2)), part) for part in encoded])
    if not any(len(values) for values, _ in found):
        raise ValueError("X has no rows; expected at least one per cluster.")
    ids = np.concatenate([values for values, _ in found if len(values)])
    names = index_tasks(ids, len(ids)).names
    counts, task_numbers = np.zeros((len(found), len(names)), dtype=np.int64), []
    for k, (values, sizes) in enumerate(found):
        places = np.searchsorted(names, values)
        counts[k, places] = sizes
        numbers = places.astype(np.min_scalar_type(len(names) - 1))
        task_numbers.append(engine.step(_recode, encoded[k], numbers))
    return Layout(names, engine.keep(task_numbers), counts)


def _encode(part: Any, argument: str) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[Any]]:
    """Distinct ids, how many rows have each, and which of them every row has."""
    index = index_tasks(task_ids(part, len(part), argument), len(part))
    return index.names, index.sizes, index.task_numbers


def _recode(encoded: tuple[Any, ...], places: NDArray[Any]) -> NDArray[Any]:
    return places[encoded[2]]
