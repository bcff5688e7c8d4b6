"""Where results go: made in a directory of their own and moved there when they are whole."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import cannot_write, flush_directory, unfinished_name
from mtclust.util.system import require

#: what ``mtclust fit`` writes
MODEL_FILE, LABELS_FILE, REPORT_FILE = "model.mtclust", "labels.csv", "report.html"
RESULT_FILES = (LABELS_FILE, MODEL_FILE, REPORT_FILE)
#: columns of labels.csv beside the keys, which cannot have their names
RESERVED = {"task", "cluster", "margin", "probability", "stability", "outlier", "alone"}


@contextmanager
def staged_directory(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """A directory to write results into that are in ``out`` at the end, or nowhere if anything goes wrong.

    Where there is no ``out`` it appears with all results at once. A directory that is there stays, with whatever else
    it holds, and gets the results one whole file after the other; earlier ones are replaced with ``overwrite`` only.
    Whether it can be written is checked before anything is computed. A process that is killed may leave a directory
    ``.mtclust-….tmp``, which can be deleted.
    """
    out = Path(os.path.realpath(out))  # a link stays a link
    if out.exists() and not out.is_dir():
        raise CommandError(f"--out {out} is a file; give the name of a directory.")
    if not overwrite and any(os.path.lexists(out / name) for name in RESULT_FILES):
        raise CommandError(
            f"--out {out} already holds results; choose another directory, or replace them with --overwrite."
        )
    new_parents = [parent for parent in out.parents if not parent.exists()]
    # inside a directory that is there, since a disk may be mounted on it, and files do not move from disk to disk
    stage = (out if out.is_dir() else out.parent) / unfinished_name()
    try:
        with written_to(out):
            stage.mkdir(parents=True)
        with written_to(out, stage):
            yield stage
            flush_directory(stage)
            if out.is_dir():
                for fresh in sorted(stage.iterdir()):
                    os.replace(fresh, out / fresh.name)
            else:
                stage.rename(out)
            flush_directory(out.parent)
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


def check_keys(keys: Sequence[str]) -> None:
    """Refuse key columns whose names the result needs itself."""
    clash = sorted(set(keys) & RESERVED)
    if clash:
        raise CommandError(f"--key {clash[0]!r} clashes with a column of labels.csv; rename it in the file.")


def labels_csv(
    table: Any, keys: Sequence[str], labels: Any, margins: Any, more: Mapping[str, Any] | None = None, *,
    numbered: bool = False,
) -> str:  # fmt: skip
    """What labels.csv holds: what names the row, its task, its cluster (number or name) and how clear that is.

    ``more`` are further columns; ``numbered`` rows, and those without a key, have their numbers first.
    """
    columns = {"row": table.row_numbers} if numbered or not keys else {}
    columns |= {key: table.strings(key) for key in keys}
    columns |= {"task": table.tasks, "cluster": labels, "margin": margins, **(more or {})}
    frame = require("pandas", "cli").DataFrame(columns)
    frame["margin"] = frame["margin"].replace(math.inf, math.nan)  # there is no other cluster
    return str(frame.to_csv(index=False, float_format="%.4f", lineterminator="\n"))
