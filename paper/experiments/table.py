"""The tidy table of an experiment: a CSV file that grows row by row and survives being killed.

One row per data set, draw, method, protocol, setting and version of the library. The columns are

==================  ================================================================================================
experiment          name of the experiment
dataset, draw       which data, and the number of the draw
seed                ``random_state`` of the method; draws are made with the number of the draw
method, kernel      the paper's name; ``linear``, ``rbf`` or empty
solver              ``exchange`` or ``cutting-plane`` for our models, empty for the others
protocol            ``no labels`` (nothing chosen with labels), ``grid`` (one point of a grid from which
                    :mod:`paper.experiments.protocols` takes the oracle), ``as printed`` (a point of the paper's grid
                    with the paper's own solver), ``given`` (fixed in advance) or ``labels given`` (supervised)
setting             JSON: what distinguishes the row besides the columns above
version             of mtclust: a row of another version is another row, and no page shows two of them
nmi                 macro NMI of the labels the method returns
nmi_of_starts       mean of the macro NMI over random starts, as the paper reports its competitors; empty for ours
nmi_per_task        JSON: task → NMI
objective           what the method minimises, at the labels it returns
seconds             CPU seconds of the fit, choosing included
chosen              JSON: hyper-parameters used
details             JSON: further figures of the row (Ω, for instance)
versions            of Python and the packages that computed the row
error               empty, or the error that the method ended with
==================  ================================================================================================

The columns down to ``version`` are the key. ``seconds`` is the only column that differs between two runs.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import atomic_write

KEYS = ("experiment", "dataset", "draw", "seed", "method", "kernel", "solver", "protocol", "setting", "version")
VALUES = ("nmi", "nmi_of_starts", "nmi_per_task", "objective", "seconds", "chosen", "details", "versions", "error")
COLUMNS = KEYS + VALUES
COUNTED = ("draw", "seed")
#: what a text of the file stands for, where it is not a text
_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(COUNTED, lambda text: int(text or 0)),
    **dict.fromkeys(("nmi", "nmi_of_starts", "objective", "seconds"), lambda text: float(text or "nan")),
    **dict.fromkeys(("setting", "nmi_per_task", "chosen", "details"), lambda text: json.loads(text or "{}")),
}

Row = dict[str, str]
Key = tuple[str, ...]


def as_json(mapping: Mapping[str, Any]) -> str:
    """Compact JSON with sorted keys, so that equal mappings are equal texts.

    Examples
    --------
    >>> as_json({"b": 0.1 + 0.2, "a": [1, 2]})
    '{"a":[1,2],"b":0.3}'
    """
    exact = json.dumps(dict(mapping), default=lambda number: number.item())
    rounded = json.loads(exact, parse_float=lambda text: float(f"{float(text):.6g}"))
    return json.dumps(rounded, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def as_row(**cells: Any) -> Row:
    """A row of texts from values, numbers with six significant digits; what is not given is empty."""
    row = dict.fromkeys(COLUMNS, "")
    for name, value in cells.items():
        if isinstance(value, Mapping):
            row[name] = as_json(value)
        elif isinstance(value, float):
            row[name] = f"{value:.6g}"
        elif value is not None:
            row[name] = " ".join(str(value).split())
    return row


def key_of(row: Mapping[str, str]) -> Key:
    return tuple(row[name] for name in KEYS)


class RunTable:
    """The file of an experiment.

    Rows are appended in one write and forced to the disk; a line that a kill left unfinished is dropped when the file
    is read again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rewrite(self.read() if path.exists() else [])

    def read(self) -> list[Row]:
        """All finished rows."""
        return read_rows(self.path)

    def append(self, rows: Iterable[Row]) -> None:
        """Add rows at once; they are on the disk when this returns."""
        text = _as_csv(rows)
        with self.path.open("ab", buffering=0) as file:
            length = file.tell()
            try:
                while text:  # all at once, unless the disk is full: then the next attempt says so
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
            except OSError as error:
                with suppress(OSError):
                    file.truncate(length)
                raise OSError(error.errno, error.strerror, str(self.path)) from error

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Replace the content by these rows in canonical order, or leave the file as it is if nothing changes."""
        in_order = sorted(rows, key=lambda row: [int(row[key] or 0) if key in COUNTED else row[key] for key in KEYS])
        content = _as_csv([dict(zip(COLUMNS, COLUMNS)), *in_order])
        if not self.path.exists() or self.path.read_bytes() != content:
            replace_file(self.path, content)


def read_rows(path: Path) -> list[Row]:
    """All finished rows of a file, which is not touched."""
    text = path.read_bytes().decode("utf-8", errors="replace")
    finished = text[: text.rfind("\n") + 1]
    lines = csv.reader(io.StringIO(finished, newline=""))
    header = next(lines, None)
    if header is not None and tuple(header) != COLUMNS:
        raise CommandError(
            f"{path} has the columns {', '.join(header)}, not those of this version; "
            "move it away or choose another --out."
        )
    return [dict(zip(COLUMNS, line)) for line in lines if len(line) == len(COLUMNS)]


def as_frame(rows: list[Row]) -> Any:
    """A data frame of rows: numbers as numbers (nan where empty), JSON columns as dictionaries."""
    return pd.DataFrame({name: [_READERS.get(name, str)(row[name]) for row in rows] for name in COLUMNS})


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that at any moment either the old or the new content is there; its directory is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as stream:
        stream.write(content)


def _as_csv(rows: Iterable[Mapping[str, str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
