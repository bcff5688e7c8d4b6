"""Reading one file: CSV, TSV, JSON, Parquet or Excel, compressed or not, or the standard input.

Text files are read as strings and nothing is guessed on the way: ``007`` stays ``007`` in a key column, and what is a
number, a date or a category is decided later, column by column (:mod:`mtclust.app.tables.encoding`). Where the encoding
or the separator had to be guessed, a note says so.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import sys
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

from mtclust.exceptions import TableError
from mtclust.util.messages import option
from mtclust.util.system import require

#: separators that are looked for
SEPARATORS = (",", ";", "\t", "|")
#: what can be read, for messages
FORMATS = "CSV, TSV, JSON, Parquet or Excel"
#: the name under which the standard input is given
STANDARD_INPUT = "-"
#: characters of a file that the separator is found from
_SNIFFED = 1 << 16
#: lines of a file that the separator is found from
_SNIFFED_LINES = 50
_PARQUET = (".parquet", ".pq")
_EXCEL = (".xlsx", ".xlsm")
_OTHER_SPREADSHEETS = (".xls", ".ods", ".numbers")
_JSON = (".json", ".jsonl", ".ndjson")
#: endings of compressed files
COMPRESSED = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: what to do where the first line of a table does not name its columns
_ABOVE = " If the header is not in the first line, remove what stands above it."
#: what text is taken for that is not Unicode: Windows in Western Europe and America, and what can hold any byte
_GUESSED = ("cp1252", "latin-1")


@dataclass(frozen=True)
class ReadOptions:
    """How files are read: separator and encoding of text files, the sheet of an Excel file; None is found out."""

    separator: str | None = None
    encoding: str | None = None
    sheet: str | None = None


@dataclass
class FileTable:
    """What a file holds, strings where it was a text file, and notes on what had to be guessed."""

    name: str
    frame: Any
    notes: list[str] = field(default_factory=list)


def read_file(path: str | Path, options: ReadOptions) -> FileTable:
    """One file as a data frame; errors name the file."""
    require("pandas", "cli")
    content, name, suffix = _content(Path(path))
    if suffix in _OTHER_SPREADSHEETS:
        raise TableError(f"{name} is a spreadsheet of another kind than .xlsx; save the sheet as CSV or .xlsx.")
    if not content.strip():
        raise TableError(f"{name} is empty; give a table with a header and rows.")
    found = FileTable(name, None)
    if suffix in _PARQUET or content.startswith(b"PAR1"):
        found.frame = _read_parquet(name, content)
    elif suffix in _EXCEL:
        found.frame = _read_excel(found, content, options)
    else:
        text = _decoded(found, content, options)
        is_json = suffix in _JSON or (suffix == "" and text.lstrip()[:1] in ("{", "["))
        found.frame = _read_json(name, text) if is_json else _read_text(found, text, suffix, options)
    found.frame = _without_empty_end(found, checked_columns(name, found.frame))
    if len(found.frame) == 0:
        raise TableError(f"{name} has a header but no rows; give a table with some.")
    return found


def column_names(path: str | Path, options: ReadOptions) -> list[str] | None:
    """The names in the first line of a text file, without reading the rest; None where they are not as they should."""
    path = Path(path)
    known = (".csv", ".tsv", ".txt", ".gz", ".bz2", ".xz")
    if str(path) == STANDARD_INPUT or not path.is_file() or path.suffix.lower() not in known:
        return None
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    try:
        with opened(path, "rb") as stream:
            beginning = stream.read(_SNIFFED)
        text = codecs.getincrementaldecoder(options.encoding or _marked(beginning))().decode(beginning)
        suffix = PurePath(path.stem).suffix.lower() if opened is not open else path.suffix.lower()
        separator = options.separator or ("\t" if suffix == ".tsv" else sniff_separator(text))
        header, row = islice(csv.reader(text.splitlines(), delimiter=separator), 2)
        names = [name.strip() for name in header]
        return names if len(row) == len(names) == len({*names, ""}) - 1 else None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, LookupError, csv.Error):
        return None


def _without_empty_end(found: FileTable, frame: Any) -> Any:
    """The table without the empty rows that spreadsheets leave at its end."""
    end = len(frame)
    while end and not any(str(value) for value in frame.iloc[end - 1].dropna()):
        end -= 1
    if end < len(frame):
        many = len(frame) - end
        found.notes.append(f"{found.name}: {many} empty row{'s' if many > 1 else ''} at the end left out.")
    return frame.iloc[:end]


def _content(path: Path) -> tuple[bytes, str, str]:
    """The bytes of a file, unpacked; its name and what the name ends with, without the ending of the compression."""
    if str(path) == STANDARD_INPUT:
        content, name, suffix = sys.stdin.buffer.read(), "the standard input", ""
    elif not path.exists():
        raise TableError(f"{path}: there is no such file; give a table as {FORMATS}.")
    elif path.is_dir():
        raise TableError(f"{path} is a directory; give a table as {FORMATS}.")
    else:
        content, name, suffix = path.read_bytes(), path.name, path.suffix.lower()
    packed = suffix if suffix in COMPRESSED else next((end for m, end in _MAGIC.items() if content.startswith(m)), "")
    try:
        if packed:
            content = COMPRESSED[packed](content)
            suffix = PurePath(PurePath(name).stem).suffix.lower() if suffix == packed else suffix
        elif suffix not in _EXCEL and content.startswith(b"PK\x03\x04"):
            content, suffix = _from_zip(name, content)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise TableError(f"{name} is damaged: it cannot be unpacked ({error}). Copy or download it anew.") from error
    return content, name, suffix


def _from_zip(name: str, content: bytes) -> tuple[bytes, str]:
    """The one file of an archive; an Excel file under another name is one, too."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [entry for entry in archive.namelist() if not entry.endswith("/") and "__MACOSX" not in entry]
        if "xl/workbook.xml" in members:
            return content, ".xlsx"
        if len(members) != 1:
            raise TableError(f"{name} holds {len(members)} files; unpack it and give the tables.")
        return archive.read(members[0]), PurePath(members[0]).suffix.lower()


def _read_parquet(name: str, content: bytes) -> Any:
    pandas = require("pandas", "cli")
    require("pyarrow", "cli")
    try:
        frame = pandas.read_parquet(io.BytesIO(content))
    except (ValueError, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}. A table of text is CSV or TSV.") from error
    return frame.reset_index(drop=True) if frame.index.name is None else frame.reset_index()


def _read_excel(found: FileTable, content: bytes, options: ReadOptions) -> Any:
    pandas = require("pandas", "cli")
    require("openpyxl", "cli")
    try:
        with pandas.ExcelFile(io.BytesIO(content), engine="openpyxl") as book:
            sheets = list(book.sheet_names)
            sheet = sheets[0] if options.sheet is None else options.sheet
            if sheet not in sheets:
                shown = ", ".join(map(repr, sheets))
                raise TableError(f"{option('sheet', repr(sheet))}: {found.name} has the sheets {shown}.")
            frame = pandas.read_excel(book, sheet_name=sheet)
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{found.name} cannot be read as Excel: {error}. Save the sheet as CSV.") from error
    if len(sheets) > 1 and options.sheet is None:
        others = ", ".join(map(repr, sheets[1:]))
        found.notes.append(f"{found.name}: the sheet {sheet!r} was read, not {others} ({option('sheet')}).")
    return frame


def _read_json(name: str, text: str) -> Any:
    """A list of records, or one record per line."""
    pandas = require("pandas", "cli")
    try:
        records = json.loads(text) if text.lstrip().startswith("[") else None
        if records is None:
            records = [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise TableError(f"{name} cannot be read as JSON: {error}. Give a list of records, or one per line.") from error
    if not all(isinstance(record, dict) for record in records):
        raise TableError(f"{name} holds JSON that is no table; give a list of records, or one record per line.")
    return pandas.DataFrame(records)


def _marked(content: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS.items() if content.startswith(mark)), "utf-8")


def _decoded(found: FileTable, content: bytes, options: ReadOptions) -> str:
    """The text of a file; what is no Unicode is guessed, and said."""
    marked = _marked(content)
    encoding = options.encoding or marked
    try:
        return content.decode(encoding)
    except LookupError as error:
        asked = option("encoding", repr(encoding))
        raise TableError(f"{asked} is not known; examples: utf-8, cp1252, latin-1.") from error
    except UnicodeDecodeError as error:
        if options.encoding or marked != "utf-8":
            raise TableError(
                f"{found.name} is not {encoding} text (byte {error.start}: {content[error.start]:#04x}). Give its "
                f"encoding, for example {option('encoding', 'cp1252')} (Windows) or {option('encoding', 'latin-1')}."
            ) from error
    if b"\x00" in content[:_SNIFFED]:
        raise TableError(f"{found.name} is no text; give a table as {FORMATS}.")
    for guess in _GUESSED:
        try:
            text = content.decode(guess)
        except UnicodeDecodeError:
            continue
        found.notes.append(
            f"{found.name} is not UTF-8; it was read as {guess}. If letters look wrong, say {option('encoding')}."
        )
        break
    return text


def _read_text(found: FileTable, text: str, suffix: str, options: ReadOptions) -> Any:
    pandas = require("pandas", "cli")
    separator = options.separator or ("\t" if suffix == ".tsv" else sniff_separator(text[:_SNIFFED]))
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
            f"{text.splitlines()[0][:60]!r}. Remove what stands above the header, correct the rows, or give another "
            f"{option('separator')}."
        ) from error
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError, csv.Error, StopIteration) as error:
        reason = str(error).replace("Error tokenizing data. C error: ", "").strip()
        raise TableError(
            f"{found.name} cannot be read as a table with separator {separator!r}: {reason}. "
            f"Correct the file or give another {option('separator')}."
        ) from error
    if options.separator is None and separator not in (",", "\t"):
        found.notes.append(f"{found.name}: the separator is {separator!r}.")
    return frame.fillna("")


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


def refuse_duplicates(name: str, columns: Sequence[str]) -> None:
    """Refuse a table two of whose columns have one name."""
    twice = sorted(column for column, times in Counter(column.strip() for column in columns).items() if times > 1)
    if twice:
        shown = ", ".join(repr(column) if column else "'' (no name)" for column in twice)
        above = _ABOVE if "" in twice else ""
        raise TableError(f"{name} has more than one column named {shown}; rename them in the header.{above}")


def checked_columns(name: str, frame: Any) -> Any:
    """A table whose columns are named by strings, each another; lists and records in its cells are refused."""
    frame = frame.set_axis([str(column).strip() for column in frame.columns], axis=1)
    refuse_duplicates(name, list(frame.columns))
    for column in frame.columns:
        if frame[column].dtype == object:
            kinds = {type(value).__name__ for value in frame[column].dropna().head(20)}
            if kinds & {"ndarray", "list", "dict"}:
                raise TableError(f"{name}: column {column!r} holds lists or records; only plain columns can be used.")
    return frame


def refuse_single(name: str, columns: Sequence[str], notes: Sequence[str] = ()) -> None:
    """Refuse a single file without a task column."""
    raise TableError(
        f"{option('task')} is needed with a single file: the column that says which task a row belongs to. "
        f"{name} has {shown_columns(columns)}. Or give several files, one per task."
        f"{''.join(f' ({note})' for note in notes)}"
    )


def refuse_absent(names: Sequence[str], asked: str, columns: Sequence[str], task_column: str | None = None) -> None:
    """Refuse names that are no columns, with the columns there are."""
    if task_column is not None and task_column in names:
        raise TableError(f"{asked} names {task_column!r}, which is the task column; leave it out.")
    absent = ", ".join(repr(name) for name in names if name not in columns)
    if absent:
        above = _ABOVE if sum(column.startswith("Unnamed: ") for column in columns) > 1 else ""
        raise TableError(f"{asked}: there is no column {absent}. The columns are {shown_columns(columns)}.{above}")


def shown_columns(columns: Sequence[str], most: int = 30) -> str:
    """Names of columns in a message."""
    shown = ", ".join(repr(name) for name in columns[:most])
    return f"{shown} and {len(columns) - most} more" if len(columns) > most else shown
