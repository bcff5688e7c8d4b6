"""Which row belongs to which task: checking, stacking and splitting.

Users hold either one stacked table with a task id per row, or a list of tables. Inside the library rows are always
sorted by task (:class:`TaskIndex`), so that a task is a slice.

Task ids are numbers, strings or times, all of one kind and none missing. Times are kept in microseconds, so that a day
is the same task whatever it is written in. Ids of any other type that can be hashed (UUID, periods, times with a zone)
count by the string that ``str`` makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mtclust.core import Integers
from mtclust.core.labels import offsets_of, rows_of_tasks
from mtclust.core.matching import best_renaming, pair_counts
from mtclust.core.order import Content, content_order, first_by_content
from mtclust.util.messages import listing

#: up to so many rows are put in the order of their content
ORDERED = 20_000


@dataclass(frozen=True)
class TaskIndex:
    """Rows grouped by task."""

    names: NDArray[Any]  # the distinct task ids, sorted (m,)
    task_numbers: NDArray[Any]  # position in ``names`` of each row's task, in the order of the input (n,)
    order: NDArray[Any]  # sorts the rows by task, within tasks as they came or by content (n,)
    offsets: Integers  # task i holds the sorted rows ``offsets[i]:offsets[i + 1]`` (m + 1,)
    is_sorted: bool = False  # whether the rows came sorted by task, so that ``order`` changes nothing
    content: Content | None = None  # what rows say of an order, once they were asked (:meth:`by_content`)
    ordered: bool = False  # whether the rows of every task come in that order

    @property
    def n_tasks(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Integers:
        return np.diff(self.offsets)

    @property
    def task_order(self) -> Integers:
        """The tasks in the order that follows from their rows, where it is known, whatever they are called (m,)."""
        return np.arange(self.n_tasks) if self.content is None else np.asarray(self.content.tasks)

    def slices(self) -> list[slice]:
        """One slice of the sorted rows per task."""
        return [slice(int(a), int(b)) for a, b in zip(self.offsets[:-1], self.offsets[1:])]

    #: whether the rows are at hand, or lie elsewhere
    in_memory = True

    def by_content(self, X: Any) -> TaskIndex:
        """The same tasks, the rows of each in an order that follows from their content (:mod:`mtclust.core.order`).

        Very many rows stay where they are, and only their hashes are kept: nothing but samples depends on their order.
        """
        content = content_order(X, self.task_numbers, len(self.names))
        if X.shape[0] > ORDERED:
            return replace(self, content=content)
        return replace(self, order=content.of_rows(self.task_numbers), is_sorted=False, content=content, ordered=True)

    def first_rows(self, tasks: Integers, numbers: Integers) -> list[Integers]:
        """Positions within tasks of as many rows of each as are asked for that come first in the order of content.

        Where that is not known they are evenly spread over the task.
        """
        if self.content is None:
            return [even_positions(int(self.sizes[task]), int(k)) for task, k in zip(tasks, numbers)]
        if self.ordered:
            return [np.arange(k) for k in numbers]
        rows = [self.order[self.offsets[task] : self.offsets[task + 1]] for task in tasks]
        hashes, finer = self.content.hashes, self.content.finer
        return [first_by_content(hashes[part], finer[part], int(k)) for part, k in zip(rows, numbers)]

    def as_one_task(self) -> TaskIndex:
        """The same rows, all of one task."""
        numbers = np.zeros_like(self.task_numbers)
        return replace(self, names=self.names[:1], task_numbers=numbers, offsets=self.offsets[[0, -1]], content=None)

    def even_rows(self, k: int, by_content: bool) -> Integers:
        """About k positions of the sorted rows, of every task its share, those that come first by content."""
        even = ((np.arange(k) + 0.5) * (int(self.offsets[-1]) / k)).astype(np.int64)
        if not by_content or self.content is None:
            return even
        tasks = self.task_order
        if self.ordered:
            return rows_of_tasks(self.offsets, tasks)[even]
        ends = np.cumsum(self.sizes[tasks])
        numbers = np.bincount(np.searchsorted(ends, even, side="right"), minlength=self.n_tasks)
        return np.concatenate([self.offsets[i] + part for i, part in zip(tasks, self.first_rows(tasks, numbers))])

    def input_rows(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Which rows of the input are at these positions of the sorted rows."""
        return self.order[positions]

    def to_input_order(self, sorted_values: Any, new_ids: Integers | None = None) -> Any:
        """Undo the sorting: values of the sorted rows, or labels under new ids, in the order the rows came in."""
        sorted_values = sorted_values if new_ids is None else new_ids[sorted_values]
        if self.is_sorted:
            return sorted_values
        values = np.empty_like(sorted_values)
        values[self.order] = sorted_values
        return values

    def with_plain_ids(self, labels: Any, single: Any, n_clusters: int, free: bool) -> tuple[Any, Any, Integers | None]:
        """Labels in the order of the input, clusters numbered by their sizes and first rows if ids are free.

        ``single`` are other labels of the rows; they are named to agree with these as often as possible. Returns both
        and the new ids, None if not free.
        """
        pairs, ids = pair_counts(single, labels, n_clusters), np.arange(n_clusters)
        if free:
            first = ids
            if self.ordered:  # else they keep the order of the sample
                places = rows_of_tasks(self.offsets, self.task_order)
                first = np.full(n_clusters, len(labels))
                clusters, first_places = np.unique(labels[places], return_index=True)
                first[clusters] = first_places
            ids = np.argsort(np.lexsort((first, -pairs.sum(axis=0))))
        single_ids = best_renaming(pairs[:, np.argsort(ids)])
        return self.to_input_order(labels, ids), self.to_input_order(single, single_ids), ids if free else None


@lru_cache(maxsize=64)
def even_positions(n: int, k: int) -> Integers:
    """Some (k) of n positions, evenly spread with jitter: plain strides miss clusters where rows come in a pattern."""
    if n <= k:
        return np.arange(n)
    return ((np.arange(k) + np.random.default_rng(0).random(k)) * (n / k)).astype(np.int64)


def task_ids(tasks: Any, n_samples: int, argument: str = "tasks") -> NDArray[Any]:
    """One task id per row from what the user gave: nothing, a scalar, or one id per row.

    ``argument`` is what an error calls them.
    """
    if tasks is None:
        return np.zeros(n_samples, dtype=np.int64)  # all rows are of one task, called 0
    ids, missing = plain_ids(tasks, argument)
    if ids.ndim == 0:
        ids, missing = np.repeat(ids, n_samples), np.repeat(missing, n_samples)
    elif ids.ndim == 2 and ids.shape[1] == 1:
        ids, missing = ids.reshape(-1), missing.reshape(-1)
    if ids.ndim != 1:
        raise ValueError(f"tasks must be one id per row or a single id; got an array of shape {ids.shape}.")
    if len(ids) != n_samples:
        raise ValueError(f"tasks has {len(ids)} entries but X has {n_samples} rows; give one task id per row.")
    if missing.any():
        raise ValueError(
            f"{argument} has {int(missing.sum())} missing values (first at row {int(np.argmax(missing))}); "
            "every row needs a task id."
        )
    return ids


def index_tasks(tasks: Any, n_samples: int) -> TaskIndex:
    """Group rows by task."""
    ids = task_ids(tasks, n_samples)
    n = len(ids)
    # of every run of rows with the same id one is looked at
    begins = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))[:n]
    lengths = np.diff(np.append(begins, n))
    names = np.unique(ids[begins])
    task_numbers = np.searchsorted(names, ids[begins])  # quicker than the inverse of np.unique, which sorts twice
    is_sorted = bool(np.all(task_numbers[1:] >= task_numbers[:-1]))
    offsets = offsets_of(np.bincount(task_numbers, weights=lengths, minlength=len(names)))
    integer = np.int32 if n < 2**31 else np.int64  # half the memory
    by_row = np.repeat(task_numbers.astype(integer), lengths)
    # numpy sorts 16-bit numbers by radix, in linear time
    narrow = by_row.astype(np.uint16) if len(names) < 2**16 else by_row
    return TaskIndex(names, by_row, np.argsort(narrow, kind="stable").astype(integer), offsets, is_sorted)


def numbers_of_known_tasks(tasks: Any, n_samples: int, known: NDArray[Any]) -> Integers:
    """Positions in ``known`` of each row's task; an id that was not in ``fit`` is an error.

    With a single known task ``tasks`` may be left out.
    """
    if tasks is None:
        if len(known) > 1:
            raise ValueError(
                f"tasks is required: the model was fitted on {len(known)} tasks ({names_of(known.tolist())}). "
                "Give one id per row, or a single id for all rows. Where something else, such as GridSearchCV, calls "
                "predict or score, keep the ids in a column of X and name it with task_column= in the constructor."
            )
        return np.zeros(n_samples, dtype=np.int64)
    ids = task_ids(tasks, n_samples).tolist()
    position = {name: i for i, name in enumerate(known.tolist())}
    task_numbers = np.array([position.get(name, -1) for name in ids], dtype=np.int64)
    if (task_numbers < 0).any():
        unknown = sorted({name for name in ids if name not in position})
        raise ValueError(
            f"tasks has ids that were not in fit: {names_of(unknown)}; known are {names_of(known.tolist())}. Use "
            "fit_task(X) to cluster rows of a new task, and ids of the same type as in fit."
        )
    return task_numbers


def names_of(names: Any) -> str:
    """Names as they are shown in messages, the first of many."""
    return listing([repr(name) for name in list(names)])


def stack_tasks(tables: Sequence[Any], names: ArrayLike | None = None) -> tuple[Any, NDArray[Any]]:
    """Stack one table per task into the ``X, tasks`` that ``fit`` takes.

    Parameters
    ----------
    tables : sequence of arrays, sparse matrices or data frames
        One table per task, all with the same columns; those of frames are matched by their names.
    names : sequence, optional
        Task ids; 0, 1, ... by default.

    Returns
    -------
    X : array, CSR matrix or data frame
        All rows, task after task; a frame if all tables are of pandas.
    tasks : ndarray of shape (n,)
        The task id of each row.

    Examples
    --------
    >>> import numpy as np
    >>> X, tasks = stack_tasks([np.zeros((2, 3)), np.ones((1, 3))], names=["paris", "rome"])
    >>> X.shape, tasks.tolist()
    ((3, 3), ['paris', 'paris', 'rome'])
    """
    tables = list(tables)
    if not tables:
        raise ValueError("tables is empty; give at least one table.")
    ids, missing = plain_ids(np.arange(len(tables)) if names is None else names, "names")
    if ids.shape != (len(tables),) or missing.any() or len(set(ids.tolist())) < len(ids):
        raise ValueError(
            f"names must give each of the {len(tables)} tables a name, none missing and no two the same; got {names!r}."
        )
    frames = all(hasattr(table, "iloc") for table in tables)
    arrays: list[Any] = [table if frames or sp.issparse(table) else np.asarray(table) for table in tables]
    columns = [list(getattr(table, "columns" if hasattr(table, "dtypes") else "column_names", ())) for table in tables]
    for k, (name, array) in enumerate(zip(ids.tolist(), arrays)):
        if array.ndim != 2 or array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"table {name!r} has shape {array.shape} but table {ids.tolist()[0]!r} has {arrays[0].shape}; all "
                "tables must have two dimensions and the same columns."
            )
        own, first = (columns[i] or list(range(array.shape[1])) for i in (k, 0))
        different = sorted(map(str, set(own) ^ set(first)))
        if different:
            raise ValueError(
                f"table {name!r} has other columns than table {ids.tolist()[0]!r} (different: {', '.join(different)}); "
                "all tables must have the same columns."
            )
        if not frames and own != first:
            arrays[k] = array[:, [own.index(column) for column in first]]
    if frames:
        import pandas as pd

        stacked: Any = pd.concat(arrays, ignore_index=True)
    else:
        stacked = sp.vstack(arrays, format="csr") if any(map(sp.issparse, arrays)) else np.concatenate(arrays)
    return stacked, np.repeat(ids, [array.shape[0] for array in arrays])


def split_by_task(values: Any, tasks: Any) -> dict[Any, Any]:
    """Split rows (a table, labels, ...) into a dictionary task id → rows of that task, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> parts = split_by_task(np.array([5, 6, 7]), ["b", "a", "b"])
    >>> parts["b"].tolist()
    [5, 7]
    """
    n_samples = values.shape[0] if hasattr(values, "shape") else len(values)
    index = index_tasks(tasks, n_samples)
    rows = values.tocsr() if sp.issparse(values) else getattr(values, "iloc", np.asarray(values))
    return {name: rows[index.order[part]] for name, part in zip(index.names.tolist(), index.slices())}


def plain_ids(ids: Any, argument: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Ids as numbers, strings, or times in microseconds, and which are missing; an error calls them ``argument``."""
    if np.ma.isMaskedArray(ids):
        masked, ids = np.ma.getmaskarray(ids), ids.data.astype(object)
        ids[masked] = None
    # numpy makes strings of whatever stands beside strings in a list: 1 and "1" would be one task, NaN a name
    array = np.asarray(ids) if hasattr(ids, "dtype") else np.asarray(ids, dtype=object)
    if array.dtype.kind in "biufU":
        return array, np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
    if array.dtype.kind in "Mm":
        return array.astype(f"{array.dtype.kind}8[us]"), np.isnat(array)
    values = array.astype(object).ravel().tolist()
    missing = np.zeros(len(values), dtype=bool)
    if not {type(value) for value in values} <= {str, int, bool}:
        missing[:] = [_is_missing(value) for value in values]
        values = [value for value, gone in zip(values, missing) if not gone]
    types = {type(value) for value in values}
    texts = sum(issubclass(kind, str) for kind in types)
    if 0 < texts < len(types) or any(kind.__hash__ is None for kind in types):
        kinds = ", ".join(sorted(kind.__name__ for kind in types))
        raise TypeError(f"{argument} has ids of types {kinds}; ids are numbers, strings or times, of one type for all.")
    found = np.empty(0, dtype=object)
    if all(issubclass(kind, bool | int | float | np.bool_ | np.integer | np.floating) for kind in types):
        found = np.array(values)
    elif all(isinstance(value, date | np.datetime64) and not getattr(value, "tzinfo", None) for value in values):
        found = np.array(values, dtype="datetime64[us]")
    if found.dtype.kind == "O":  # strings, other types, and integers of any length
        found = strings_of(values)
    plain = np.zeros(len(missing), dtype=found.dtype)
    plain[~missing] = found
    return plain.reshape(array.shape), missing.reshape(array.shape)


def strings_of(ids: Any) -> NDArray[Any]:
    """Ids as strings: of numpy's fixed length where all are short, otherwise as objects, which cost what they are."""
    strings = [str(value) for value in ids]
    # numpy's strings take as much as the longest, and lose a NUL at the end
    plain = all(len(string) <= 64 and string[-1:] != "\0" for string in strings)
    return np.array(strings, dtype=str if plain else object)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and what is masked differ from themselves; pandas.NA answers with itself
    equal = value == value
    return value is None or not (isinstance(equal, bool | np.bool_) and bool(equal))
