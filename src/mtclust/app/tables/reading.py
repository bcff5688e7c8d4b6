"""Reading one file: CSV or TSV, also compressed, Parquet or Excel.

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
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from mtclust.exceptions import TableError
from mtclust.util.system import require

#: what can be read, for messages
FORMATS = "CSV, TSV, Parquet or Excel"
#: characters of a file that the separator is found from
_SNIFFED = 1 << 16
#: endings of compressed files
COMPRESSED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
#: what to do where the first line of a table does not name its columns
_ABOVE = " If the header is not in the first line, remove what stands above it."


@dataclass
class FileTable:
    """What a file holds, strings where it was a text file, and notes on what had to be guessed."""

    name: str
    frame: Any
    notes: list[str] = field(default_factory=list)


def read_file(path: str | Path) -> FileTable:
    """One file as a data frame; errors name the file."""
    require("pandas", "cli")
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
    found = FileTable(name, None)
    if suffix in (".parquet", ".pq"):
        found.frame = _read_parquet(name, content)
    elif suffix in (".xlsx", ".xlsm"):
        found.frame = _read_excel(found, content)
    else:
        found.frame = _read_text(found, _decoded(found, content), suffix)
    frame = named_columns(name, found.frame)
    empty = int((frame.isna() | (frame == "")).all(axis=1).to_numpy()[::-1].cumprod().sum())  # left by spreadsheets
    if empty:
        found.notes.append(f"{name}: {empty} empty row{'s' if empty > 1 else ''} at the end left out.")
    found.frame = frame.iloc[: len(frame) - empty]
    if len(found.frame) == 0:
        raise TableError(f"{name} has a header but no rows; give a table with some.")
    return found


def _read_parquet(name: str, content: bytes) -> Any:
    pandas = require("pandas", "cli")
    require("pyarrow", "cli")
    try:
        frame = pandas.read_parquet(io.BytesIO(content))
    except (ValueError, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}. A table of text is CSV or TSV.") from error
    return frame.reset_index(drop=True) if frame.index.name is None else frame.reset_index()


def _read_excel(found: FileTable, content: bytes) -> Any:
    """The first sheet."""
    pandas = require("pandas", "cli")
    require("openpyxl", "cli")
    try:
        with pandas.ExcelFile(io.BytesIO(content), engine="openpyxl") as book:
            sheet, *others = book.sheet_names
            frame = pandas.read_excel(book)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise TableError(f"{found.name} cannot be read as Excel: {error}. Save the sheet as CSV.") from error
    if others:
        found.notes.append(
            f"{found.name}: the sheet {sheet!r} was read, not {', '.join(map(repr, others))}; save another one as CSV."
        )
    return frame


def _decoded(found: FileTable, content: bytes) -> str:
    """The text of a file; what is no Unicode is taken for that of Windows in Western Europe and America, and said."""
    unicode = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    text = ""
    for encoding in (unicode, "cp1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "cp1252":
            found.notes.append(
                f"{found.name} is not UTF-8; it was read as cp1252. If letters look wrong, save it as UTF-8."
            )
        break
    if not text or "\x00" in text[:_SNIFFED]:
        raise TableError(f"{found.name} is no text; give a table as {FORMATS}. If it is text, save it as UTF-8.")
    return text


def _read_text(found: FileTable, text: str, suffix: str) -> Any:
    pandas = require("pandas", "cli")
    separator = "\t" if suffix == ".tsv" else sniff_separator(text[:_SNIFFED])
    try:
        header = next(csv.reader(text[:_SNIFFED].splitlines(), delimiter=separator))
        refuse_duplicates(found.name, header)
        with warnings.catch_warnings():
            warnings.simplefilter("error", pandas.errors.ParserWarning)  # fields without a header would be lost
            frame = pandas.read_csv(
                io.StringIO(text), sep=separator, dtype=str, keep_default_na=False, na_filter=False, index_col=False
            )
    except pandas.errors.ParserWarning as error:
        raise TableError(
            f"{found.name}: rows have more fields than the first line, which should name the columns and reads "
            f"{text.splitlines()[0][:60]!r}. Remove what stands above the header, or correct the rows."
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error, StopIteration) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise TableError(
            f"{found.name} cannot be read as a table with separator {separator!r}: {reason}. Correct the file."
        ) from error
    if separator not in (",", "\t"):
        found.notes.append(f"{found.name}: the separator is {separator!r}.")
    return frame.fillna("")


def refuse_absent(names: Sequence[str], asked: str, columns: Sequence[str]) -> None:
    """Refuse names that are no columns, with the columns there are."""
    absent = ", ".join(repr(name) for name in names if name not in columns)
    if absent:
        above = _ABOVE if sum(column.startswith("Unnamed: ") for column in columns) > 1 else ""
        raise TableError(f"{asked}: there is no column {absent}. The columns are {shown_columns(columns)}.{above}")


def sniff_separator(beginning: str) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    lines = beginning.splitlines()
    if len(beginning) >= _SNIFFED and len(lines) > 1:
        lines = lines[:-1]  # the last one may be cut
    best, best_score = ",", (0.0, 0)
    for separator in (",", ";", "\t", "|"):
        counts = [len(row) for row in csv.reader(lines[:50], delimiter=separator) if row]
        fields, times = Counter(counts).most_common(1)[0] if counts else (1, 0)
        if fields > 1 and counts[0] == fields:
            score = (times / len(counts), fields)
            if score > best_score:
                best, best_score = separator, score
    return best


def refuse_duplicates(name: str, columns: Sequence[str]) -> None:
    """Refuse a table two of whose columns have one name."""
    twice = sorted(column for column, times in Counter(column.strip() for column in columns).items() if times > 1)
    if twice:
        shown = ", ".join(repr(column) if column else "'' (no name)" for column in twice)
        above = _ABOVE if "" in twice else ""
        raise TableError(f"{name} has more than one column named {shown}; rename them in the header.{above}")


def named_columns(name: str, frame: Any) -> Any:
    """A table whose rows are numbered from 0 and whose columns are named by strings, each another."""
    frame = frame.reset_index(drop=True).set_axis([str(column).strip() for column in frame.columns], axis=1)
    refuse_duplicates(name, list(frame.columns))
    return frame


def shown_columns(columns: Sequence[str], most: int = 30) -> str:
    """Names of columns in a message."""
    shown = ", ".join(repr(name) for name in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown
