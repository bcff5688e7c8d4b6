"""Where results go: written beside their place and moved there whole, so that nothing half-written is ever seen."""

from __future__ import annotations

import csv
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from mtclust.exceptions import CommandError

#: what ``mtclust fit`` writes
MODEL_FILE, LABELS_FILE, REPORT_FILE = "model.mtclust", "labels.csv", "report.html"
RESULT_FILES = (LABELS_FILE, MODEL_FILE, REPORT_FILE)
#: a spreadsheet takes a cell that begins so for a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


@contextmanager
def staged_directory(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A directory to write into that becomes ``out`` at the end, or vanishes if anything goes wrong.

    ``out`` must not exist, be empty, or, with ``overwrite``, hold nothing but results of an earlier run.
    """
    out = Path(os.path.realpath(out))  # a link stays a link
    _check_free(out, overwrite)
    new_parents = [parent for parent in out.parents if not parent.exists()]
    stage = _neighbour(out)
    try:
        stage.mkdir(parents=True)
    except OSError as error:  # name the directory that was meant, not its temporary neighbour
        raise CommandError(f"--out {out} cannot be written: {error.strerror}. Choose another directory.") from error
    try:
        yield stage
        _check_free(out, overwrite)  # a fit takes long enough for something to have appeared there
        _move_into_place(stage, out)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        for parent in new_parents:
            with suppress(OSError):  # it holds the results
                parent.rmdir()


def _neighbour(out: Path) -> Path:
    return out.parent / f".{out.name}.mtclust-{secrets.token_hex(4)}"


def _check_free(out: Path, overwrite: bool) -> None:
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir():
        raise CommandError(f"--out {out} is a file; give the name of a directory.")
    present = sorted(entry.name for entry in out.iterdir())
    foreign = [name for name in present if name not in RESULT_FILES]
    if foreign:
        raise CommandError(
            f"--out {out} holds files that are not results of mtclust fit ({', '.join(foreign[:3])}"
            f"{', …' if len(foreign) > 3 else ''}); choose another directory."
        )
    if present and not overwrite:
        raise CommandError(
            f"--out {out} already holds results; choose another directory, or replace them with --overwrite."
        )


def _move_into_place(stage: Path, out: Path) -> None:
    if not out.exists():
        stage.rename(out)
        return
    earlier = _neighbour(out)
    try:
        out.rename(earlier)
        stage.rename(out)
    except BaseException:  # Ctrl-C between the two as well
        if earlier.exists() and not out.exists():
            earlier.rename(out)
        raise
    shutil.rmtree(earlier)


def defused(cell: Any) -> Any:
    """A string that a spreadsheet will show instead of executing it.

    Examples
    --------
    >>> defused("=HYPERLINK(0)"), defused("-12.5"), defused("Zoë")
    ("'=HYPERLINK(0)", '-12.5', 'Zoë')
    """
    if isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell):
        return "'" + cell
    return cell


def write_csv(stream: TextIO, header: Sequence[str], rows: Iterable[Sequence[Any]], *, safe: bool) -> None:
    """Write CSV; with ``safe`` no cell can be taken for a formula."""
    writer = csv.writer(stream, lineterminator="\n")
    for row in itertools.chain([header], rows):
        writer.writerow([defused(cell) for cell in row] if safe else row)
