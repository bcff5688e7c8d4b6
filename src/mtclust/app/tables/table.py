"""The rows of all tasks as one table, from files or from data frames."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.tables.reading import (
    COMPRESSED,
    FileTable,
    named_columns,
    read_file,
    refuse_absent,
    shown_columns,
)
from mtclust.app.tables.values import Cells, column_strings, counted, written
from mtclust.exceptions import TableError
from mtclust.util.messages import option
from mtclust.util.system import require


@dataclass(frozen=True)
class Table:
    """The rows of all tasks, with the task of each."""

    #: all columns but the task column; strings where the file was a text file. Rows are numbered from 0
    frame: Any
    tasks: NDArray[Any]
    #: in their files, from 1, the header not counted
    row_numbers: NDArray[np.int64]
    files: tuple[str, ...]
    #: None where every file is a task
    task_column: str | None
    #: of the data frame that was given
    index: Any = None
    #: what had to be guessed
    notes: tuple[str, ...] = ()
    _cells: dict[Any, Cells] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.tasks)

    def cells(self, name: str, missing: tuple[str, ...]) -> Cells:
        """The cells of a column, read once; ``missing`` are those that mean "not known"."""
        if (name, missing) not in self._cells:
            self._cells[name, missing] = Cells(self.frame[name], self.row_numbers, missing)
        return self._cells[name, missing]

    def strings(self, name: str) -> NDArray[Any]:
        """The cells of a column as a person would write them."""
        return column_strings(self.frame[name])

    def require_columns(self, names: Sequence[str], asked: str) -> None:
        """Refuse names that are no columns, with the columns there are."""
        if self.task_column is not None and self.task_column in names:
            raise TableError(f"{asked} names {self.task_column!r}, which is the task column; leave it out.")
        refuse_absent(names, asked, list(self.frame.columns))


def read_any(table: Any, task: Any) -> Table:
    """The rows of files or data frames as one table."""
    if isinstance(table, Table):
        return table
    if isinstance(table, str | os.PathLike):
        table = [table]
    if isinstance(table, Sequence):
        other = next((part for part in table if not isinstance(part, str | os.PathLike)), None)
        if other is not None:
            raise TableError(
                f"table is a list that holds a {type(other).__name__}; a list holds paths of files. Give data frames "
                'as a mapping from tasks to them, such as {"Oslo": oslo, "Rome": rome}.'
            )
        if task is not None and not isinstance(task, str):
            raise TableError("task must name a column where the table is a file; give its name.")
        return read_tables([read_file(path) for path in table], task)
    return table_of_frames(table, task)


def read_tables(read: Sequence[FileTable], task_column: str | None, *, file_is_task: bool = False) -> Table:
    """One table of one file with a task column, or of several files.

    Several files without a task column are one task each, named by the file. A single file is a task with
    ``file_is_task``.
    """
    if task_column is None and len(read) == 1 and not file_is_task:
        raise TableError(
            f"{option('task')} is needed with a single file: the column that says which task a row belongs to. "
            f"{read[0].name} has {shown_columns(list(read[0].frame.columns))}. Or give several files, one per task."
            f"{''.join(f' ({note})' for note in read[0].notes)}"
        )
    table = _stacked(read)
    if task_column is not None:
        return _with_task_column(table, task_column)
    return replace(table, tasks=np.repeat(np.array(_task_names(read), dtype=object), [len(f.frame) for f in read]))


def table_of_frames(given: Any, task: Any) -> Table:
    """A table of one data frame and its task column (or one task per row), or of a mapping from tasks to frames."""
    pandas = require("pandas", "cli")
    if isinstance(given, Mapping):
        if task is not None and not isinstance(task, str):
            raise TableError("task is for a single table; the tasks are the keys of the mapping. Leave it out.")
        if not given:
            raise TableError("the mapping of tables is empty; give at least one task.")
        frames = {written(name): as_pandas(frame) for name, frame in given.items()}
        if len(frames) < len(given):
            raise TableError(f"keys of the mapping are the same task ({shown_columns(list(frames))}); rename them.")
        read = [FileTable(name, named_columns(name, frame)) for name, frame in frames.items()]
        tasks = np.repeat(np.array(list(frames), dtype=object), [len(frame) for frame in frames.values()])
        rows = [row for frame in frames.values() for row in frame.index]
        index = pandas.MultiIndex.from_arrays([tasks, pandas.Index(rows, tupleize_cols=False)], names=["task", "row"])
        return replace(_stacked(read), tasks=tasks, files=(), index=index)
    frame = as_pandas(given)
    table = replace(
        _stacked([FileTable("the table", named_columns("the table", frame))]),
        files=(),
        index=frame.index,
    )
    if len(frame) == 0:
        raise TableError("the table has no rows; give a table with some.")
    if task is None:
        raise TableError(
            f"{option('task')} is needed: the column that says which task a row belongs to. The columns are "
            f"{shown_columns(table.frame.columns.tolist())}. Or give a mapping from the names of tasks to their tables."
        )
    if isinstance(task, Iterable) and not isinstance(task, str):  # one task per row
        return _with_tasks(table, _aligned(task, frame.index), "task is missing in")
    return _with_task_column(table, str(task))  # not all names of columns are strings


def as_pandas(given: Any) -> Any:
    """A pandas or polars data frame as one of pandas."""
    pandas = require("pandas", "cli")
    if isinstance(given, pandas.DataFrame):
        return given
    if type(given).__module__.startswith("polars"):
        require("pyarrow", "cli")
        return (given.collect() if hasattr(given, "collect") else given).to_pandas()
    raise TableError(
        f"table is of type {type(given).__name__}; give a pandas or polars data frame, a mapping from tasks to data "
        "frames, or the path of a file."
    )


def _stacked(read: Sequence[FileTable]) -> Table:
    """One table of all files with the columns that all of them have; their tasks are not known yet."""
    pandas = require("pandas", "cli")
    frames, notes = [found.frame for found in read], [note for found in read for note in found.notes]
    common = [c for c in frames[0].columns if all(c in frame.columns for frame in frames)]
    dropped = sorted({c for frame in frames for c in frame.columns} - set(common))
    if not common:
        raise TableError("the tables have no column in common; rename the columns that mean the same.")
    if dropped:
        notes.append(f"Columns that only some of the tables have were left out: {shown_columns(dropped)}.")
        frames = [frame[common] for frame in frames]
    frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
    row_numbers = np.concatenate([np.arange(1, len(part) + 1) for part in frames])
    tasks = np.full(len(frame), "", dtype=object)
    return Table(frame, tasks, row_numbers, tuple(found.name for found in read), None, None, tuple(notes))


def _with_task_column(table: Table, task_column: str) -> Table:
    table.require_columns([task_column], option("task"))
    asked = option("task", repr(task_column))
    table = _with_tasks(table, table.frame[task_column], f"{asked} is empty in")
    return replace(table, frame=table.frame.drop(columns=task_column), task_column=task_column)


def _with_tasks(table: Table, column: Any, empty: str) -> Table:
    """The table with one task per row; spaces around names are no part of them."""
    pandas = require("pandas", "cli")
    codes, different = pandas.factorize(column)  # rows of one task share its name, which may be long
    names = [*(name.strip() for name in column_strings(pandas.Series(different))), ""]
    tasks = np.array(names, dtype=object)[codes]
    missing = np.flatnonzero(tasks == "")
    if len(missing):
        raise TableError(
            f"{empty} {counted(len(missing), 'row')} (first: row {table.row_numbers[missing[0]]}); every row needs a "
            "task. Fill it in or remove these rows."
        )
    return replace(table, tasks=tasks)


def _aligned(task: Any, index: Any) -> Any:
    """One task per row as a series; one with an index is matched by it."""
    pandas = require("pandas", "cli")
    if isinstance(task, pandas.Series) and not task.index.equals(index):
        if not (task.index.is_unique and index.is_unique and len(task) == len(index) and index.isin(task.index).all()):
            raise TableError("task is a series with another index than the table; give one task per row of the table.")
        task = task.reindex(index)
    values = pandas.Series(list(task) if not isinstance(task, pandas.Series) else task.to_numpy())
    if len(values) != len(index):
        raise TableError(f"task has {len(values)} entries but the table has {len(index)} rows; give one per row.")
    return values


def _task_names(read: Sequence[FileTable]) -> list[str]:
    paths = [Path(found.name) for found in read]
    names = [Path(path.stem).stem if path.suffix in COMPRESSED else path.stem for path in paths]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise TableError(
            f"Files are named {', '.join(twice)} more than once, and a file's name is the name of its task; "
            f"rename them or use {option('task')}."
        )
    return names
