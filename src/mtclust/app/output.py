"""Where results go: made in a directory of their own and moved there when they are whole."""

from __future__ import annotations

import csv
import io
import itertools
import math
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import cannot_write, flush_directory, unfinished_name

#: what ``mtclust fit`` writes
MODEL_FILE, LABELS_FILE, REPORT_FILE = "model.mtclust", "labels.csv", "report.html"
RESULT_FILES = (LABELS_FILE, MODEL_FILE, REPORT_FILE)
#: what tells a result from a file of somebody else
_MARKS = {LABELS_FILE: b"cluster", REPORT_FILE: b"mtclust", MODEL_FILE: b"model.json"}
#: columns of labels.csv beside the keys
_ALWAYS = ("task", "cluster", "margin")
#: names that keys cannot have: these, and those that only rows which were clustered have
RESERVED = {*_ALWAYS, "probability", "stability", "outlier", "alone"}
#: a spreadsheet takes a cell that begins so for a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")


@contextmanager
def staged_directory(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A directory to write results into that are in ``out`` at the end, or nowhere if anything goes wrong.

    Where there is no ``out`` it appears with all results at once. A directory that is there stays, with its rights and
    whatever else it holds, and gets the results one whole file after the other; earlier ones are replaced with
    ``overwrite`` only. Whether it can be written is checked before anything is computed. A process that is killed
    may leave a directory ``.mtclust-….tmp``, which can be deleted.
    """
    out = Path(os.path.realpath(out))  # a link stays a link
    _check_free(out, overwrite)
    new_parents = [parent for parent in out.parents if not parent.exists()]
    # inside a directory that is there, since a disk may be mounted on it, and files do not move from disk to disk
    stage = (out if out.is_dir() else out.parent) / unfinished_name()
    try:
        with written_to(out):
            stage.mkdir(parents=True)
            if stage.parent == out:
                stage.chmod(stat.S_IMODE(out.stat().st_mode))  # what is private stays so while it is being made
        with written_to(out, stage):
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
    present = [out / name for name in RESULT_FILES if os.path.lexists(out / name)]
    for path in present:
        if path.is_symlink() or not path.is_file() or _MARKS[path.name] not in path.read_bytes():
            raise CommandError(
                f"--out {out} holds {path.name}, which is no result of mtclust fit; choose another directory."
            )
        if not os.access(path, os.W_OK):
            raise CommandError(
                f"--out {out} holds {path.name}, which may not be replaced (it is read-only); choose another directory."
            )
    if present and not overwrite:
        raise CommandError(
            f"--out {out} already holds results; choose another directory, or replace them with --overwrite."
        )


def _move_into_place(stage: Path, out: Path) -> None:
    flush_directory(stage)
    if not out.exists():
        stage.rename(out)
        flush_directory(out.parent)
        return
    interrupted: BaseException | None = None
    while fresh := sorted(stage.iterdir()):
        try:
            target = out / fresh[0].name  # with the rights of the file it replaces, and none that the directory lacks
            rights = stat.S_IMODE((target if target.exists() else fresh[0]).stat().st_mode)
            fresh[0].chmod(rights & (0o600 | stat.S_IMODE(out.stat().st_mode)))
            os.replace(fresh[0], target)
        except (KeyboardInterrupt, SystemExit) as error:  # all of the new results rather than some
            interrupted = error
    flush_directory(out)
    if interrupted is not None:
        raise interrupted


def defused(cell: Any) -> Any:
    """A string that a spreadsheet will show instead of executing it; numbers below 0 stay numbers."""
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


def check_keys(keys: Sequence[str]) -> None:
    """Refuse key columns whose names the result needs itself."""
    clash = sorted(set(keys) & RESERVED)
    if clash:
        raise CommandError(f"--key {clash[0]!r} clashes with a column of labels.csv; rename it in the file.")


def labels_csv(
    table: Any, keys: Sequence[str], labels: Any, margins: Any, more: Mapping[str, Any] | None = None, *, safe: bool,
    numbered: bool = False,
) -> str:  # fmt: skip
    """What labels.csv holds: what names the row, its task, its cluster (number or name) and how clear that is.

    ``more`` are further columns; ``numbered`` rows, and those without a key, have their numbers first.
    """
    names = [table.strings(key) for key in keys]
    header = [*keys, *_ALWAYS, *(more or {})]
    if numbered or not keys:
        names, header = [table.row_numbers.tolist(), *names], ["row", *header]
    columns = [*names, table.tasks, labels.tolist(), [_short(value) for value in margins]]
    for values in (more or {}).values():
        number = values.dtype.kind == "f"
        columns.append([_short(value) for value in values] if number else values.tolist())
    text = io.StringIO(newline="")
    write_csv(text, header, zip(*columns), safe=safe)
    return text.getvalue()


def _short(margin: float) -> str:
    """Four decimals; nothing where there is no other cluster to compare with."""
    return f"{margin:.4f}" if math.isfinite(margin) else ""
