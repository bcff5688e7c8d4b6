"""The rows of all tasks as one table, from files (CSV or TSV, also compressed, Parquet or Excel) or from data frames.

Text files are read as strings and nothing is guessed on the way: ``007`` stays ``007`` in a key column, and what is a
number, a date or a category is decided later, column by column (:mod:`mtclust.app.tables.encoding`). Where the encoding
or the separator had to be guessed, a note says so.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.tables.values import Cells, column_strings, written
from mtclust.exceptions import TableError
from mtclust.util.messages import how_many, option
from mtclust.util.system import pandas, require

#: what can be read, for messages
FORMATS = "CSV, TSV, Parquet or Excel"
#: characters of a file that the separator is found from
_SNIFFED = 1 << 16
#: endings of compressed files
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: what to do where the first line of a table does not name its columns
_ABOVE = " If the header is not in the first line, remove what stands above it."


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

    def cells(self, name: str, missing: tuple[str, ...]) -> Cells:
        """The cells of a column, read once; ``missing`` are those that mean "not known"."""
        if (name, missing) not in self._cells:
            self._cells[name, missing] = Cells(self.frame[name], self.row_numbers, missing)
        return self._cells[name, missing]

    def strings(self, name: str) -> NDArray[Any]:
        """The cells of a column as a person would write them."""
        return column_strings(self.frame[name])

    def require_columns(self, names: str | Sequence[str], asked: str) -> None:
        """Refuse names that are no columns, with the columns there are."""
        names = [names] if isinstance(names, str) else names
        if self.task_column is not None and self.task_column in names:
            raise TableError(f"{asked} names {self.task_column!r}, which is the task column; leave it out.")
        columns = self.frame.columns.tolist()
        absent = ", ".join(repr(name) for name in names if name not in columns)
        if absent:
            above = _ABOVE if sum(column.startswith("Unnamed: ") for column in columns) > 1 else ""
            raise TableError(f"{asked}: there is no column {absent}. The columns are {shown_columns(columns)}.{above}")


def read_any(table: Any, task: Any) -> Table:
    """The rows of files or data frames as one table."""
    if isinstance(table, Table):
        return table
    if isinstance(table, str | os.PathLike):
        table = [table]
    if not isinstance(table, Sequence):
        return table_of_frames(table, task)
    other = next((part for part in table if not isinstance(part, str | os.PathLike)), None)
    if other is not None:
        raise TableError(
            f"table is a list that holds a {type(other).__name__}; a list holds paths of files. Give data frames "
            'as a mapping from tasks to them, such as {"Oslo": oslo, "Rome": rome}.'
        )
    if task is not None and not isinstance(task, str):
        raise TableError("task must name a column where the table is a file; give its name.")
    return read_tables([read_file(path) for path in table], task)


def read_tables(read: Sequence[Table], task_column: str | None, *, file_is_task: bool = False) -> Table:
    """One table of one file with a task column, or of several files, which without a task column are one task each.

    A single file is a task with ``file_is_task``.
    """
    if task_column is not None:
        return _with_task_column(_stacked(read), task_column)
    if len(read) == 1 and not file_is_task:
        raise TableError(
            f"{option('task')} is needed with a single file: the column that says which task a row belongs to. "
            f"{read[0].files[0]} has {shown_columns(list(read[0].frame.columns))}. Or give several files, one per task."
            f"{''.join(f' ({note})' for note in read[0].notes)}"
        )
    twice = sorted(name for name, times in Counter(found.tasks[0] for found in read).items() if times > 1)
    if twice:
        raise TableError(
            f"Files are named {', '.join(twice)} more than once, and a file's name is the name of its task; "
            f"rename them or use {option('task')}."
        )
    return _stacked(read)


def table_of_frames(given: Any, task: Any) -> Table:
    """A table of one data frame and its task column (or one task per row), or of a mapping from tasks to frames."""
    if isinstance(given, Mapping):
        if task is not None and not isinstance(task, str):
            raise TableError("task is for a single table; the tasks are the keys of the mapping. Leave it out.")
        if not given:
            raise TableError("the mapping of tables is empty; give at least one task.")
        frames = {written(name): as_pandas(frame) for name, frame in given.items()}
        if len(frames) < len(given):
            raise TableError(f"keys of the mapping are the same task ({shown_columns(list(frames))}); rename them.")
        table = _stacked([_one_table(name, name, frame) for name, frame in frames.items()])
        rows = pandas.Index([row for frame in frames.values() for row in frame.index], tupleize_cols=False)
        index = pandas.MultiIndex.from_arrays([table.tasks, rows], names=["task", "row"])
        return replace(table, files=(), index=index)
    frame = as_pandas(given)
    table = replace(_one_table("the table", "", frame), files=(), index=frame.index)
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
    if isinstance(given, pandas.DataFrame):
        return given
    if type(given).__module__.startswith("polars"):
        require("pyarrow", "cli")
        return (given.collect() if hasattr(given, "collect") else given).to_pandas()
    raise TableError(
        f"table is of type {type(given).__name__}; give a pandas or polars data frame, a mapping from tasks to data "
        "frames, or the path of a file."
    )


def _one_table(name: str, task: str, frame: Any, notes: Sequence[str] = ()) -> Table:
    """One file or data frame, for now one task: its columns are named by strings, each another."""
    frame = frame.reset_index(drop=True).set_axis([str(column).strip() for column in frame.columns], axis=1)
    refuse_duplicates(name, list(frame.columns))
    tasks = np.full(len(frame), task, dtype=object)
    return Table(frame, tasks, np.arange(1, len(frame) + 1), (name,), None, notes=tuple(notes))


def _stacked(read: Sequence[Table]) -> Table:
    """One table of several, with the columns that all of them have."""
    frames, notes = [found.frame for found in read], [note for found in read for note in found.notes]
    common = [c for c in frames[0].columns if all(c in frame.columns for frame in frames)]
    dropped = sorted({c for frame in frames for c in frame.columns} - set(common))
    if not common:
        raise TableError("the tables have no column in common; rename the columns that mean the same.")
    if dropped:
        notes.append(f"Columns that only some of the tables have were left out: {shown_columns(dropped)}.")
        frames = [frame[common] for frame in frames]
    frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
    tasks, row_numbers = (np.concatenate([getattr(found, of) for found in read]) for of in ("tasks", "row_numbers"))
    return Table(frame, tasks, row_numbers, tuple(found.files[0] for found in read), None, notes=tuple(notes))


def _with_task_column(table: Table, task_column: str) -> Table:
    table.require_columns(task_column, option("task"))
    asked = option("task", repr(task_column))
    table = _with_tasks(table, table.frame[task_column], f"{asked} is empty in")
    return replace(table, frame=table.frame.drop(columns=task_column), task_column=task_column)


def _with_tasks(table: Table, column: Any, empty: str) -> Table:
    """The table with one task per row; spaces around names are no part of them."""
    codes, different = pandas.factorize(column)  # rows of one task share its name, which may be long
    names = [*(name.strip() for name in column_strings(pandas.Series(different))), ""]
    tasks = np.array(names, dtype=object)[codes]
    missing = np.flatnonzero(tasks == "")
    if len(missing):
        raise TableError(
            f"{empty} {how_many(len(missing), 'row')} (first: row {table.row_numbers[missing[0]]}); every row needs a "
            "task. Fill it in or remove these rows."
        )
    return replace(table, tasks=tasks)


def _aligned(task: Any, index: Any) -> Any:
    """One task per row as a series; one with an index is matched by it."""
    given = task if isinstance(task, pandas.Series) else pandas.Series(list(task))
    if len(given) != len(index):
        raise TableError(f"task has {len(given)} entries but the table has {len(index)} rows; give one per row.")
    if given is task and not task.index.equals(index):
        if not (task.index.is_unique and index.is_unique and index.isin(task.index).all()):
            raise TableError("task is a series with another index than the table; give one task per row of the table.")
        given = task.reindex(index)
    return given


# -- files -------------------------------------------------------------------------------------------------------------


def read_file(path: str | Path) -> Table:
    """One file as a table, its name as the task; errors name the file."""
    path = Path(path)
    if not path.exists() or path.is_dir():
        what = " is a directory" if path.is_dir() else ": there is no such file"
        raise TableError(f"{path}{what}; give a table as {FORMATS}.")
    name, unpack = path.name, COMPRESSED.get(path.suffix.lower(), open)
    suffix = PurePath(name if unpack is open else path.stem).suffix.lower()
    try:
        with unpack(path, "rb") as stream:
            content = stream.read()
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if unpack is open:
            raise
        raise TableError(f"{name} is damaged: it cannot be unpacked ({error}). Copy or download it anew.") from error
    if not content.strip():
        raise TableError(f"{name} is empty; give a table with a header and rows.")
    notes: list[str] = []
    if suffix in (".parquet", ".pq"):
        frame = _read_parquet(name, content)
    elif suffix in (".xlsx", ".xlsm"):
        frame = _read_excel(name, content, notes)
    else:
        frame = _read_text(name, _decoded(name, content, notes), suffix, notes)
    empty = int((frame.isna() | (frame == "")).all(axis=1).to_numpy()[::-1].cumprod().sum())  # left by spreadsheets
    if empty:
        notes.append(f"{name}: {how_many(empty, 'empty row')} at the end left out.")
    task = Path(path.stem).stem if path.suffix in COMPRESSED else path.stem
    table = _one_table(name, task, frame.iloc[: len(frame) - empty], notes)
    if len(table.tasks) == 0:
        raise TableError(f"{name} has a header but no rows; give a table with some.")
    return table


def _read_parquet(name: str, content: bytes) -> Any:
    require("pyarrow", "cli")
    try:
        frame = pandas.read_parquet(io.BytesIO(content))
    except (ValueError, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}. A table of text is CSV or TSV.") from error
    return frame.reset_index(drop=True) if frame.index.name is None else frame.reset_index()


def _read_excel(name: str, content: bytes, notes: list[str]) -> Any:
    """The first sheet."""
    require("openpyxl", "cli")
    try:
        with pandas.ExcelFile(io.BytesIO(content), engine="openpyxl") as book:
            sheet, *others = book.sheet_names
            frame = pandas.read_excel(book)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise TableError(f"{name} cannot be read as Excel: {error}. Save the sheet as CSV.") from error
    if others:
        others = ", ".join(map(repr, others))
        notes.append(f"{name}: the sheet {sheet!r} was read, not {others}; save another one as CSV.")
    return frame


def _decoded(name: str, content: bytes, notes: list[str]) -> str:
    """The text of a file; what is no Unicode is taken for that of Windows in Western Europe and America, and said."""
    unicode = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = ""
    for encoding in (unicode, "cp1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "cp1252":
            notes.append(f"{name} is not UTF-8; it was read as cp1252. If letters look wrong, save it as UTF-8.")
        break
    if not text or "\x00" in text[:_SNIFFED]:
        raise TableError(f"{name} is no text; give a table as {FORMATS}. If it is text, save it as UTF-8.")
    return text


def _read_text(name: str, text: str, suffix: str, notes: list[str]) -> Any:
    separator = "\t" if suffix == ".tsv" else sniff_separator(text[:_SNIFFED])
    try:  # without a header, so that no row has more fields than it
        rows = pandas.read_csv(io.StringIO(text), sep=separator, header=None, dtype=str, na_filter=False)
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise TableError(
            f"{name} cannot be read as a table with separator {separator!r}: {reason}. The first line, which should "
            f"name the columns, reads {text.splitlines()[0][:60]!r}. Remove what stands above the header, or correct "
            "the rows."
        ) from error
    if separator not in (",", "\t"):
        notes.append(f"{name}: the separator is {separator!r}.")
    header = rows.iloc[0].tolist()
    refuse_duplicates(name, header)
    return rows[1:].set_axis([column or f"Unnamed: {k}" for k, column in enumerate(header)], axis=1)


def sniff_separator(beginning: str) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    whole, scores = beginning.rpartition("\n")[0] or beginning, {}  # the last line may be cut
    for separator in (",", ";", "\t", "|"):
        counts = [len(row) for row in csv.reader(whole.splitlines()[:50], delimiter=separator) if row]
        fields, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        if fields > 1 and counts[0] == fields:
            scores[separator] = (times / len(counts), fields)
    return max(scores, key=scores.__getitem__, default=",")


def refuse_duplicates(name: str, columns: Sequence[str]) -> None:
    """Refuse a table two of whose columns have one name."""
    twice = sorted(column for column, times in Counter(column.strip() for column in columns).items() if times > 1)
    if twice:
        shown = ", ".join(repr(column) if column else "'' (no name)" for column in twice)
        above = _ABOVE if "" in twice else ""
        raise TableError(f"{name} has more than one column named {shown}; rename them in the header.{above}")


def shown_columns(columns: Sequence[str], most: int = 30) -> str:
    """Names of columns in a message."""
    shown = ", ".join(repr(name) for name in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown
