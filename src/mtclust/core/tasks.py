"""Which row belongs to which task: checking, stacking and splitting.

Users hold either one stacked table with a task id per row, or a list of tables. Inside the library rows are always
sorted by task (:class:`TaskIndex`), so that a task is a slice.

Task ids are made plain: one type per table, none missing, none that could not be saved. They become an array of
numbers, strings, bytes or times, or an array of objects of the types below. Times of numpy are kept in microseconds
where these hold them, so that a day is the same task whatever unit it is given in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from mtclust.core.labels import offsets_of, rows_of_tasks
from mtclust.core.matching import best_relabelling, ids_by_size, pair_counts
from mtclust.core.order import Over, content_order, first_by_content, over_blocks
from mtclust.util.messages import listing

#: more tasks than this with fewer rows than this each, on average, are taken for ids of rows
_FEW_TASKS, _LEAST_ROWS = 20, 2

#: up to so many rows are put in the order of their content
ORDERED = 20_000
#: types of ids that stand in arrays of objects; subclasses of the first row are made plain
_BASIC = (str, bytes, bool, int, float)
_KEPT = (datetime, date, timedelta, Decimal, UUID, tuple)
#: the same of pandas, and what it calls missing
_OF_PANDAS = ("Timestamp", "Timedelta", "Period", "Interval")
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")
#: characters of ids that are held in numpy's strings, where all take as much as the longest; and of any id
_SHORT, _LONGEST = 64, 10_000
_ALLOWED = (
    "allowed are numbers, strings, bytes, dates and times, tuples, Decimal, UUID, and periods and intervals of pandas"
)


@dataclass(frozen=True)
class TaskIndex:
    """Rows grouped by task."""

    names: NDArray[Any]  # the distinct task ids, sorted (m,)
    task_numbers: NDArray[Any]  # position in ``names`` of each row's task, in the order of the input (n,)
    order: NDArray[Any]  # stable permutation that sorts the rows by task (n,)
    offsets: NDArray[np.int64]  # task i holds the sorted rows ``offsets[i]:offsets[i + 1]`` (m + 1,)
    is_sorted: bool = False  # whether the rows came sorted by task, so that ``order`` changes nothing
    # the tasks in an order that follows from their rows, whatever they are called (:meth:`by_content`) (m,)
    by_rows: NDArray[np.int64] | None = None
    columns: NDArray[np.int64] | None = None  # an order of the columns that follows from their content (d,)
    content: Any = None  # where rows are so many, or so far, that they do not come in the order of their content

    @property
    def n_tasks(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

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
            return replace(self, by_rows=content.tasks, columns=content.columns, content=content)
        order = content.of_rows(self.task_numbers)
        return replace(self, order=order, is_sorted=False, by_rows=content.tasks, columns=content.columns)

    def first_rows(self, tasks: NDArray[np.int64], numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Positions within tasks of as many rows of each as are asked for that come first in the order of content.

        Where that is not known they are evenly spread over the task.
        """
        if self.by_rows is None:
            return [even_positions(int(self.sizes[task]), int(k)) for task, k in zip(tasks, numbers)]
        if self.content is None:
            return [np.arange(k) for k in numbers]
        rows = [self.order[self.offsets[task] : self.offsets[task + 1]] for task in tasks]
        hashes, finer = self.content.hashes, self.content.finer
        return [first_by_content(hashes[part], finer[part], int(k)) for part, k in zip(rows, numbers)]

    def as_one_task(self) -> TaskIndex:
        """The same rows, all of one task."""
        numbers, one = np.zeros_like(self.task_numbers), np.zeros(1, dtype=np.int64)
        return replace(self, names=self.names[:1], task_numbers=numbers, offsets=self.offsets[[0, -1]], by_rows=one)

    def even_rows(self, k: int, by_content: bool) -> NDArray[np.int64]:
        """About k positions of the sorted rows, of every task its share, those that come first by content."""
        even = ((np.arange(k) + 0.5) * (int(self.offsets[-1]) / k)).astype(np.int64)
        if not by_content or self.by_rows is None:
            return even
        if self.content is None:
            return rows_of_tasks(self.offsets, self.by_rows)[even]
        ends = np.cumsum(self.sizes[self.by_rows])
        numbers = np.bincount(np.searchsorted(ends, even, side="right"), minlength=self.n_tasks)
        first = self.first_rows(self.by_rows, numbers)
        return np.concatenate([self.offsets[i] + part for i, part in zip(self.by_rows, first)])

    def over(self, X: Any) -> Over:
        """Passes over blocks of a dense table and the numbers of their tasks."""
        return partial(over_blocks, X, self.task_numbers)

    def labels_at(self, labels: Any, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Labels of rows at some positions of the sorted rows."""
        return np.asarray(labels, dtype=np.int64)[positions]

    def input_rows(self, positions: NDArray[Any]) -> NDArray[Any]:
        """Which rows of the input are at these positions of the sorted rows."""
        return self.order[positions]

    def to_input_order(self, sorted_values: NDArray[Any]) -> NDArray[Any]:
        """Undo the sorting: values of the sorted rows in the order the rows came in."""
        if self.is_sorted:
            return sorted_values
        values = np.empty_like(sorted_values)
        values[self.order] = sorted_values
        return values

    def with_plain_ids(
        self, labels: Any, single: Any, n_clusters: int, free: bool
    ) -> tuple[Any, Any, NDArray[np.int64] | None]:
        """Labels in the order of the input, clusters numbered by their sizes if ids are free.

        ``single`` are other labels of the rows; they are named to agree with these as often as possible. Returns both
        and the new ids, None if not free.
        """
        ids, counts = np.arange(n_clusters), np.bincount(labels, minlength=n_clusters)
        if free:
            first, tied = None, len(np.unique(counts)) < n_clusters
            if tied and self.by_rows is not None and self.content is None:  # else they keep the order of the sample
                places = rows_of_tasks(self.offsets, self.by_rows)
                first = np.full(n_clusters, len(labels))
                clusters, first_places = np.unique(labels[places], return_index=True)
                first[clusters] = first_places
            ids = ids_by_size(counts, first)
        pairs = np.empty((n_clusters, n_clusters), dtype=np.int64)
        pairs[:, ids] = pair_counts(single, labels, n_clusters)
        names = best_relabelling(pairs)
        return self.to_input_order(ids[labels]), self.to_input_order(names[single]), ids if free else None


@lru_cache(maxsize=64)
def even_positions(n: int, k: int) -> NDArray[np.int64]:
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
    # not of a list, of which numpy would make an array to answer
    if isinstance(tasks, str | bytes) or (not isinstance(tasks, list | tuple) and np.ndim(tasks) == 0):
        one: Any = np.ma.atleast_1d(tasks) if tasks is np.ma.masked else [tasks]
        ids = np.repeat(plain_ids(one, argument), n_samples)
    else:
        ids = plain_ids(tasks, argument)
    if ids.ndim == 2 and ids.shape[-1] == 1:
        ids = ids.reshape(-1)
    if ids.ndim != 1:
        raise ValueError(f"tasks must be one id per row or a single id; got an array of shape {ids.shape}.")
    if len(ids) != n_samples:
        raise ValueError(f"tasks has {len(ids)} entries but X has {n_samples} rows; give one task id per row.")
    missing = missing_ids(ids)
    if missing.any():
        raise ValueError(
            f"{argument} has {int(missing.sum())} missing values (first at row {int(np.argmax(missing))}); "
            "every row needs a task id."
        )
    return ids


def index_tasks(tasks: Any, n_samples: int) -> TaskIndex:
    """Group rows by task.

    Examples
    --------
    >>> index = index_tasks(["b", "a", "b"], 3)
    >>> [str(name) for name in index.names], index.sizes.tolist()
    (['a', 'b'], [1, 2])
    """
    ids = task_ids(tasks, n_samples)
    n, begins = len(ids), np.arange(len(ids))
    if n and ids.dtype.kind != "O":  # of every run of rows with the same id one is looked at
        begins = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    lengths = np.diff(np.append(begins, n))
    try:
        names, task_numbers = np.unique(ids[begins], return_inverse=True)
    except (TypeError, ValueError) as error:  # the latter from periods of different lengths
        raise _mixed("tasks", ids) from error
    task_numbers = task_numbers.reshape(-1)
    is_sorted = bool(np.all(task_numbers[1:] >= task_numbers[:-1]))
    sizes = np.bincount(task_numbers, weights=lengths, minlength=len(names))
    offsets = offsets_of(sizes)
    integer = np.int32 if n < 2**31 else np.int64  # half the memory
    by_row = np.repeat(task_numbers.astype(integer), lengths)
    if is_sorted:
        return TaskIndex(names, by_row, np.arange(n, dtype=integer), offsets, True)
    # numpy sorts 16-bit numbers by radix, in linear time
    narrow = by_row.astype(np.uint16) if len(names) < 2**16 else by_row
    return TaskIndex(names, by_row, np.argsort(narrow, kind="stable").astype(integer), offsets, False)


def _mixed(argument: str, ids: NDArray[Any]) -> TypeError:
    kinds = sorted({type(value).__name__ for value in ids})
    return TypeError(f"{argument} mixes ids of types {', '.join(kinds)}; use one type for all.")


def refuse_rows_as_tasks(index: TaskIndex) -> None:
    """Refuse very many tasks that hardly have more than a row each: an id of rows was given."""
    n, m = int(index.offsets[-1]), index.n_tasks
    if m > _FEW_TASKS and n < _LEAST_ROWS * m:
        raise ValueError(
            f"tasks has {m} different ids for {n} rows, {int(np.sum(index.sizes == 1))} of them with one row only: "
            "they name rows, not tasks. A task is a group of rows that is clustered together; give one id per group, "
            "or leave tasks out if all rows are of one task."
        )


def numbers_of_known_tasks(tasks: Any, n_samples: int, known: NDArray[Any]) -> NDArray[np.int64]:
    """Positions in ``known`` of each row's task; an id that was not in ``fit`` is an error.

    With a single known task ``tasks`` may be left out.
    """
    if tasks is None:
        if len(known) > 1:
            raise ValueError(
                f"tasks is required: the model was fitted on {len(known)} tasks ({_listing(known)}). "
                "Give one id per row, or a single id for all rows. Where something else, such as GridSearchCV, calls "
                "predict or score, keep the ids in a column of X and name it with task_column= in the constructor."
            )
        return np.zeros(n_samples, dtype=np.int64)
    ids = task_ids(tasks, n_samples)
    position = {key: i for i, key in enumerate(keys(known))}
    task_numbers = np.array([position.get(key, -1) for key in keys(ids)], dtype=np.int64)
    for row in np.flatnonzero(task_numbers < 0) if ids.dtype.kind == "O" else ():
        if not isinstance(ids[row], str | bytes | int | float):  # a saved model has dates and the like as strings
            task_numbers[row] = position.get(str(ids[row]), -1)
    if (task_numbers < 0).any():
        strangers = ids[task_numbers < 0].tolist()
        unknown = np.array(sorted({str(name) for name in strangers}), dtype=object)
        if set(unknown.tolist()) <= {str(name) for name in known.tolist()}:
            kinds = ", ".join(sorted({type(name).__name__ for name in strangers}))
            raise ValueError(
                f"tasks has ids of type {kinds}, but those in fit were of type {type(known.tolist()[0]).__name__}: "
                f"{_listing(unknown)} against {_listing(known)}. Give them as in fit."
            )
        raise ValueError(
            f"tasks has ids that were not in fit: {_listing(unknown)}; known are {_listing(known)}. "
            "Use fit_task(X) to cluster rows of a new task."
        )
    return task_numbers


def _listing(names: NDArray[Any]) -> str:
    return listing([repr(name) for name in names.tolist()])


def stack_tasks(tables: Sequence[Any], names: ArrayLike | None = None) -> tuple[Any, NDArray[Any]]:
    """Stack one table per task into the ``X, tasks`` that ``fit`` takes.

    Parameters
    ----------
    tables : sequence of arrays, sparse matrices or pandas frames
        One table per task, all with the same columns.
    names : sequence, optional
        Task ids; 0, 1, ... by default.

    Returns
    -------
    X : array, CSR matrix or data frame
        All rows, task after task.
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
    ids = np.arange(len(tables)) if names is None else _table_names(names)
    if len(ids) != len(tables):
        raise ValueError(f"names has {len(ids)} entries but there are {len(tables)} tables; give one name per table.")
    if len(set(ids.tolist())) != len(ids):
        twice = next(name for name in ids.tolist() if ids.tolist().count(name) > 1)
        raise ValueError(
            f"names must differ from each other, but {twice!r} occurs more than once; two tables with one name would "
            "become one task. Give each table a name of its own."
        )
    frames = [hasattr(table, "iloc") for table in tables]
    if all(frames):
        return _stack_frames(tables, ids)
    arrays = [table if sp.issparse(table) else np.asarray(table) for table in tables]
    for name, array in zip(ids.tolist(), arrays):
        if array.ndim != 2:
            raise ValueError(f"table {name!r} has shape {array.shape}; expected two dimensions.")
        if array.shape[1] != arrays[0].shape[1]:
            raise ValueError(
                f"table {name!r} has {array.shape[1]} columns but table {ids.tolist()[0]!r} has {arrays[0].shape[1]}; "
                "all tasks must share the same features."
            )
    stacked = sp.vstack(arrays, format="csr") if any(map(sp.issparse, arrays)) else np.concatenate(arrays)
    return stacked, np.repeat(ids, [array.shape[0] for array in arrays])


def _table_names(names: Any) -> NDArray[Any]:
    ids = plain_ids(names, "names")
    missing = missing_ids(ids)
    if missing.any():
        raise ValueError(
            f"names has {int(missing.sum())} missing values (first at place {int(np.argmax(missing))}); every table "
            "needs a name."
        )
    try:
        np.sort(ids)
    except (TypeError, ValueError) as error:
        raise _mixed("names", ids) from error
    return ids


def _stack_frames(frames: list[Any], ids: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    import pandas as pd

    first = list(frames[0].columns)
    for name, frame in zip(ids.tolist(), frames):
        if set(frame.columns) != set(first) or len(frame.columns) != len(first):
            different = sorted(map(str, set(frame.columns) ^ set(first)))
            raise ValueError(
                f"table {name!r} has other columns than table {ids.tolist()[0]!r} "
                f"(different: {', '.join(different) or 'repeated names'}); all tasks must share the same features."
            )
    stacked = pd.concat([frame[first] for frame in frames], ignore_index=True)
    return stacked, np.repeat(ids, [len(frame) for frame in frames])


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
    if hasattr(values, "iloc"):
        return {name: values.iloc[index.order[part]] for name, part in zip(index.names.tolist(), index.slices())}
    rows: Any = values.tocsr() if sp.issparse(values) else np.asarray(values)
    return {name: rows[index.order[part]] for name, part in zip(index.names.tolist(), index.slices())}


def plain_ids(ids: Any, argument: str) -> NDArray[Any]:
    """Ids as an array; those that are missing are None, NaN or NaT in it. ``argument`` is what an error calls them."""
    array: NDArray[Any]
    if np.ma.isMaskedArray(ids) and np.ma.is_masked(ids):
        array = np.array(ids.data, dtype=object)
        array[np.ma.getmaskarray(ids)] = None
    elif hasattr(ids, "dtype"):
        array = np.asarray(ids)
    else:
        # numpy makes strings of whatever stands beside strings: 1 and "1" would be one task, NaN a name
        array = np.asarray(ids, dtype=object)
        types = {type(value) for value in array.flat}
        if not any(issubclass(kind, str | bytes) for kind in types):
            array = np.asarray(ids)
        elif types == {str}:
            array = strings_of(array)
    if array.dtype.kind in "OUS":
        _refuse_long(array, argument)
    if array.dtype.kind == "T":  # strings of any length, with an object of the user's for missing ones
        array = array.astype(object)
    if array.dtype.kind in "Mm":
        converted = array.astype(f"{array.dtype.kind}8[us]")
        same = (converted.astype(array.dtype) == array) | np.isnat(array)
        return converted if same.all() else array
    if array.dtype.kind == "O":
        return _plain_objects(array, argument)
    if array.dtype.kind not in "biufUS":
        raise TypeError(f"{argument} has ids of type {array.dtype}; {_ALLOWED}.")
    return array


def strings_of(ids: NDArray[Any]) -> NDArray[Any]:
    """Ids as strings: of numpy's fixed length where all are short, otherwise as objects, which cost what they are.

    Examples
    --------
    >>> strings_of(np.array(["a", 1], dtype=object)), strings_of(np.array(["a", "b" * 100], dtype=object)).dtype
    (array(['a', '1'], dtype='<U1'), dtype('O'))
    """
    if ids.dtype.kind == "U":
        return ids
    strings = [str(value) for value in ids.flat]
    # a fixed length loses zeros at the end
    if max(map(len, strings), default=0) <= _SHORT and not any(value.endswith("\0") for value in strings):
        return np.array(strings, dtype=str).reshape(ids.shape)
    objects = np.empty(len(strings), dtype=object)
    objects[:] = strings
    return objects.reshape(ids.shape)


def _refuse_long(ids: NDArray[Any], argument: str) -> None:
    if ids.dtype.kind == "O":
        longest = max((len(value) for value in ids.flat if isinstance(value, str | bytes)), default=0)
    else:
        longest = ids.dtype.itemsize // (4 if ids.dtype.kind == "U" else 1)
    if longest > _LONGEST:
        raise ValueError(
            f"{argument} has an id of {longest} characters, but ids have up to {_LONGEST}: this looks like a column of "
            "texts. Give short names of the tasks."
        )


def _plain_objects(array: NDArray[Any], argument: str) -> NDArray[Any]:
    types = {type(value) for value in array.flat}
    if types <= set(_BASIC):
        return array
    refused = [kind for kind in types if not _is_kept(kind)]
    if refused:
        raise TypeError(f"{argument} has ids of type {refused[0].__name__}; {_ALLOWED}.")
    if not any(issubclass(kind, _BASIC) and kind not in _BASIC for kind in types):
        return array
    plain = np.empty(array.shape, dtype=object)
    for place, value in enumerate(array.flat):
        plain.flat[place] = _basic(value)
    return plain


def _is_kept(kind: type) -> bool:
    if kind.__name__ in _MISSING or issubclass(kind, (*_BASIC, *_KEPT)):
        return True
    if issubclass(kind, np.generic):
        return np.dtype(kind).kind in "biufMmUS"
    return kind.__name__ in _OF_PANDAS and kind.__module__.split(".")[0] == "pandas"


def _basic(value: Any) -> Any:
    """A member of an enumeration, or of another class that is a string or a number, as that."""
    for kind in _BASIC:
        if isinstance(value, kind) and not isinstance(value, np.generic):
            return str.__str__(value) if kind is str else kind(value)  # type: ignore[arg-type]
    return value


def missing_ids(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of plain ids are missing."""
    if ids.dtype.kind == "f":
        return np.isnan(ids)
    if ids.dtype.kind in "Mm":
        return np.isnat(ids)
    if ids.dtype.kind == "O":
        if {type(value) for value in ids.flat} <= {str, int, bool, bytes}:
            return np.zeros(ids.shape, dtype=bool)
        return np.array([_is_missing(value) for value in ids.flat], dtype=bool).reshape(ids.shape)
    return np.zeros(ids.shape, dtype=bool)


def _is_missing(value: Any) -> bool:
    # NaN, NaT and what is masked differ from themselves; pandas.NA answers with itself
    equal = value == value
    return value is None or not (isinstance(equal, bool | np.bool_) and bool(equal))


def keys(ids: NDArray[Any]) -> list[Any]:
    """What tells plain ids apart: the same for the same time as ``datetime64``, ``Timestamp``, date or datetime."""
    if ids.dtype.kind in "Mm":
        converted = ids.astype(f"{ids.dtype.kind}8[us]")
        exact = converted.astype(ids.dtype) == ids
        return [key if same else str(value).rstrip("0") for key, same, value in zip(converted.tolist(), exact, ids)]
    if ids.dtype.kind == "O":
        return [_key(value) for value in ids.tolist()]
    return ids.tolist()


def _key(value: Any) -> Any:
    if type(value) is date:
        return datetime.combine(value, time())
    if isinstance(value, np.datetime64 | np.timedelta64):
        return keys(np.array([value]))[0]
    return value
