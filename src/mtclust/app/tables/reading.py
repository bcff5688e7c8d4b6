"""Reading CSV, TSV and Parquet files as the command line needs them.

Text files are read as strings and nothing is guessed on the way: ``007`` stays ``007`` in a key column, and what is a
number, a date or a category is decided later, column by column (:mod:`mtclust.app.tables.encoding`).
"""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust._extras import require
from mtclust.exceptions import CommandError

#: separators that are looked for
SEPARATORS = (",", ";", "\t", "|")
#: what the names of separators on the command line mean
SEPARATOR_NAMES = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}
#: characters of a file that the separator is found from
_SNIFFED = 1 << 16
#: lines of a file that the separator is found from
_SNIFFED_LINES = 50
_PARQUET = (".parquet", ".pq")
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".xlsm")
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class ReadOptions:
    """How files are read; None is found out from the file.

    Attributes
    ----------
    separator : str or None
        Between two fields of a text file.
    encoding : str or None
        UTF-8 unless the file begins with the mark of another Unicode encoding.
    """

    separator: str | None = None
    encoding: str | None = None


@dataclass(frozen=True)
class Table:
    """The rows of all tasks, with the task of each.

    Attributes
    ----------
    frame : pandas.DataFrame
        All columns but the task column; strings where the file was a text file. Rows are numbered from 0.
    tasks : ndarray of str of shape (n,)
    row_numbers : ndarray of shape (n,)
        Number of the row in its file, from 1, the header not counted.
    files : tuple of str
        Names of the files.
    task_column : str or None
        None where every file is a task.
    """

    frame: Any
    tasks: NDArray[Any]
    row_numbers: NDArray[np.int64]
    files: tuple[str, ...]
    task_column: str | None

    def __len__(self) -> int:
        return len(self.tasks)

    def require_columns(self, names: Sequence[str], option: str) -> None:
        """Refuse names that are no columns, with the columns there are."""
        if self.task_column is not None and self.task_column in names:
            raise CommandError(f"{option} names {self.task_column!r}, which is the task column; leave it out.")
        unknown = [name for name in names if name not in self.frame.columns]
        if unknown:
            raise CommandError(_no_such_column(option, unknown, list(self.frame.columns)))


def read_tables(
    paths: Sequence[Path], task_column: str | None, options: ReadOptions, *, file_is_task: bool = False
) -> Table:
    """Read one file with a task column, or several files.

    Several files without a task column are one task each, named by the file; they must have the same columns. So is a
    single file with ``file_is_task``.
    """
    pandas = require("pandas", "cli")
    if task_column is None and len(paths) == 1 and not file_is_task:
        columns = list(read_frame(paths[0], options).columns)
        raise CommandError(
            f"--task-column is needed with a single file: the column that says which task a row belongs to. "
            f"{paths[0].name} has {_listing(columns)}. Or give several files, one per task."
        )
    frames = [read_frame(path, options) for path in paths]
    for path, frame in zip(paths[1:], frames[1:]):
        _require_same_columns(paths[0], list(frames[0].columns), path, list(frame.columns))
    frame = frames[0] if len(frames) == 1 else pandas.concat(frames, ignore_index=True)
    row_numbers = np.concatenate([np.arange(1, len(part) + 1) for part in frames])
    files = tuple(path.name for path in paths)
    if task_column is None:
        tasks = np.repeat(np.array(_task_names(paths), dtype=object), [len(part) for part in frames])
        return Table(frame, tasks, row_numbers, files, None)
    if task_column not in frame.columns:
        raise CommandError(_no_such_column("--task-column", [task_column], list(frame.columns)))
    tasks = column_strings(frame[task_column])
    empty = np.flatnonzero(tasks == "")
    if len(empty):
        raise CommandError(
            f"--task-column {task_column!r} is empty in {len(empty)} rows (first: row {row_numbers[empty[0]]}); "
            "every row needs a task. Fill it in or remove these rows."
        )
    return Table(frame.drop(columns=task_column), tasks, row_numbers, files, task_column)


def read_frame(path: Path, options: ReadOptions) -> Any:
    """One file as a data frame; errors name the file."""
    require("pandas", "cli")
    if not path.exists():
        raise CommandError(f"{path}: there is no such file; give a CSV, TSV or Parquet file.")
    if path.is_dir():
        raise CommandError(f"{path} is a directory; give a CSV, TSV or Parquet file.")
    suffix = path.suffix.lower()
    if suffix in _SPREADSHEETS:
        raise CommandError(f"{path.name} is a spreadsheet; save the sheet as CSV and give that file.")
    frame = _read_parquet(path) if suffix in _PARQUET else _read_text(path, options)
    if len(frame) == 0:
        raise CommandError(f"{path.name} has a header but no rows; give a table with some.")
    return frame


def column_strings(column: Any) -> NDArray[Any]:
    """A column as the strings a person would write; missing values are empty."""
    values = column.astype(object).to_numpy()
    missing = column.isna().to_numpy()
    if column.dtype.kind == "f":  # whole numbers that became floats because some are missing
        return np.array(["" if gone else format(value, ".15g") for value, gone in zip(values, missing)], dtype=object)
    return np.array(["" if gone else str(value) for value, gone in zip(values, missing)], dtype=object)


def _read_parquet(path: Path) -> Any:
    pandas = require("pandas", "cli")
    require("pyarrow", "cli")
    try:
        frame = pandas.read_parquet(path)
    except (ValueError, OSError) as error:
        raise CommandError(f"{path.name} cannot be read as Parquet: {error}. A table of text is CSV or TSV.") from error
    frame = frame.reset_index(drop=True) if frame.index.name is None else frame.reset_index()
    frame.columns = [str(name) for name in frame.columns]
    _refuse_duplicates(path, list(frame.columns))
    for name in frame.columns:
        kinds = {type(value).__name__ for value in frame[name].dropna().head(20)} if frame[name].dtype == object else ()
        nested = sorted(set(kinds) & {"ndarray", "list", "dict"})
        if nested:
            raise CommandError(f"{path.name}: column {name!r} holds lists or records; only plain columns can be used.")
    return frame


def _read_text(path: Path, options: ReadOptions) -> Any:
    pandas = require("pandas", "cli")
    with path.open("rb") as stream:
        head = stream.read(_SNIFFED)
    if not head.strip():
        raise CommandError(f"{path.name} is empty; give a table with a header and rows.")
    encoding = options.encoding or _encoding(head)
    try:
        beginning = codecs.getincrementaldecoder(encoding)().decode(head)
        separator = options.separator or ("\t" if path.suffix.lower() == ".tsv" else sniff_separator(beginning))
        _refuse_duplicates(path, next(csv.reader(beginning.splitlines(), delimiter=separator)))
        frame = pandas.read_csv(
            path, sep=separator, encoding=encoding, dtype=str, keep_default_na=False, na_filter=False, index_col=False
        )
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{path.name} is not {encoding} text (byte {error.start}: {error.object[error.start]:#04x}). Give its "
            "encoding, for example --encoding cp1252 (Windows) or --encoding latin-1."
        ) from error
    except LookupError as error:
        raise CommandError(f"--encoding {encoding!r} is not known; examples: utf-8, cp1252, latin-1.") from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise CommandError(
            f"{path.name} cannot be read as a table with separator {separator!r}: {reason}. "
            "Mend the file or give another --separator."
        ) from error
    frame.columns = [str(name).strip() for name in frame.columns]
    return frame.fillna("")


def _encoding(head: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    return "utf-8"


def sniff_separator(beginning: str) -> str:
    r"""The separator that cuts the first lines into the same number of fields, the more the better.

    Examples
    --------
    >>> sniff_separator("name;price\nPear;1,20\nPlum;3,10\n")
    ';'
    >>> sniff_separator('a,b\n"x;y",1\n')
    ','
    """
    lines = beginning.splitlines()
    if len(beginning) >= _SNIFFED and len(lines) > 1:
        lines = lines[:-1]  # the last one may be cut
    best, best_score = ",", (0.0, 0)
    for separator in SEPARATORS:
        counts = [len(row) for row in csv.reader(lines[:_SNIFFED_LINES], delimiter=separator) if row]
        fields, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        if fields > 1 and counts[0] == fields:
            score = (times / len(counts), fields)
            if score > best_score:
                best, best_score = separator, score
    return best


def _task_names(paths: Sequence[Path]) -> list[str]:
    names = [path.stem for path in paths]
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice:
        raise CommandError(
            f"Files are named {', '.join(twice)} more than once, and a file's name is the name of its task; "
            "rename them or use --task-column."
        )
    return names


def _require_same_columns(first: Path, expected: list[str], path: Path, columns: list[str]) -> None:
    missing, surplus = [c for c in expected if c not in columns], [c for c in columns if c not in expected]
    if missing or surplus:
        raise CommandError(
            f"{path.name} and {first.name} must have the same columns; {path.name} lacks {missing or 'none'} and has "
            f"in addition {surplus or 'none'}."
        )


def _refuse_duplicates(path: Path, columns: list[str]) -> None:
    twice = sorted(name for name, times in Counter(name.strip() for name in columns).items() if times > 1)
    if twice:
        shown = ", ".join(repr(name) if name else "'' (no name)" for name in twice)
        raise CommandError(f"{path.name} has more than one column named {shown}; rename them in the file's header.")


def _no_such_column(option: str, names: Sequence[str], columns: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names)
    return f"{option}: there is no column {shown}. The columns are {_listing(columns)}."


def _listing(columns: Sequence[str], most: int = 30) -> str:
    shown = ", ".join(repr(name) for name in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown
