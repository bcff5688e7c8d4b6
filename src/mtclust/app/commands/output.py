"""Where results go: written beside their place and moved there whole, so that nothing half-written is ever seen."""

from __future__ import annotations

import csv
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from mtclust._atomic import cannot_write, exchange, flush_directory
from mtclust._in_use import fresh_mark, hold, marked_here, remove_abandoned
from mtclust.exceptions import CommandError

#: what ``mtclust fit`` writes
MODEL_FILE, LABELS_FILE, REPORT_FILE = "model.mtclust", "labels.csv", "report.html"
RESULT_FILES = (LABELS_FILE, MODEL_FILE, REPORT_FILE)
#: a spreadsheet takes a cell that begins so for a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


@contextmanager
def staged_directory(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A directory to write into that becomes ``out`` at the end, or vanishes if anything goes wrong.

    ``out`` must not exist, be empty, or, with ``overwrite``, hold nothing but results of an earlier run. A process that
    is killed leaves a directory ``.out.mtclust-…`` beside it, which the next run removes.
    """
    out = Path(os.path.realpath(out))  # a link stays a link
    _clear_up(out)
    _check_free(out, overwrite)
    new_parents = [parent for parent in out.parents if not parent.exists()]
    stage = out.parent / f".{out.name}{fresh_mark()}"
    try:
        with _made(stage, out), written_to(out, stage):
            yield stage
            _check_free(out, overwrite)  # a fit takes long enough for something to have appeared there
            _move_into_place(stage, out)
    finally:
        _remove(stage)
        for parent in new_parents:
            with suppress(OSError):  # it holds the results
                parent.rmdir()


@contextmanager
def written_to(out: Path, stage: Path | None = None) -> Iterator[None]:
    """Say of an error of the system that ``--out`` cannot be written, and why; with ``stage`` of errors there only."""
    try:
        yield
    except OSError as error:
        elsewhere = error.filename is not None and not str(error.filename).startswith(str(stage))
        if error.errno is None or (stage is not None and elsewhere):
            raise
        raise CommandError(f"--out {out} cannot be written: {cannot_write(error)}") from error


@contextmanager
def _made(stage: Path, out: Path) -> Iterator[None]:
    """Make a directory and hold it, so that no other run takes it for abandoned."""
    with written_to(out):
        stage.mkdir(parents=True)
    if os.name != "posix":
        yield
        return
    descriptor = os.open(stage, os.O_RDONLY)
    try:
        if hold(descriptor):
            yield
            return
    finally:
        os.close(descriptor)
    with _made(stage, out):  # another run was quicker to remove it than we to hold it
        yield


def _clear_up(out: Path) -> None:
    """Remove what killed runs have left; put results back that one of them had just moved aside."""
    earlier = _earlier(out)
    if earlier.is_dir() and not out.exists():
        earlier.rename(out)
    remove_abandoned(out.parent, re.compile(re.escape(f".{out.name}") + rf"({marked_here()}|\.mtclust-earlier)"))


def _earlier(out: Path) -> Path:
    return out.parent / f".{out.name}.mtclust-earlier"


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory, ignore_errors=True)
    except BaseException:  # Ctrl-C does not spare the rest
        shutil.rmtree(directory, ignore_errors=True)
        raise


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
    flush_directory(stage)
    if not out.exists():
        stage.rename(out)
    elif not exchange(stage, out):
        _replace_in_two_steps(stage, out)
    flush_directory(out.parent)


def _replace_in_two_steps(stage: Path, out: Path) -> None:
    """Where two directories cannot trade places: a kill between the steps is mended by the next run."""
    earlier = _earlier(out)
    try:
        out.rename(earlier)
        stage.rename(out)
    except BaseException:  # Ctrl-C between the two as well
        if earlier.exists() and not out.exists():
            earlier.rename(out)
        raise
    finally:
        if out.exists():
            _remove(earlier)


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
    """Write CSV; with ``safe`` no cell can be taken for a formula.

    All texts are quoted then: a spreadsheet that parts cells at semicolons must not find a cell within a cell.
    """
    plain = csv.writer(stream, lineterminator="\n")
    quoting = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    for row in itertools.chain([header], rows):
        if safe:
            quoting.writerow([defused(cell) for cell in row])
        else:
            # the writer does not know that a carriage return on its own ends a line for those who read it
            (quoting if any(isinstance(cell, str) and "\r" in cell for cell in row) else plain).writerow(row)
