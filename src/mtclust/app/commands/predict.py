"""``mtclust predict``: clusters of further rows, with a model of ``mtclust fit``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mtclust.app.commands.options import (
    EXIT_CODES,
    add_columns,
    add_common_options,
    add_flags,
    progress,
    read_options,
)
from mtclust.app.commands.output import MODEL_FILE, check_keys, labels_csv, written_to
from mtclust.exceptions import CommandError, ModelFileError
from mtclust.persistence.atomic import atomic_write
from mtclust.util.system import require

_EXAMPLES = f"""examples:
  mtclust predict result new_customers.csv --key customer --out clusters.csv
  mtclust predict result paris.csv --task paris
  mtclust predict result rome.csv --task rome --new-task      # a task the model has not seen

The result has the columns of labels.csv and goes to the standard output unless --out is given.
{EXIT_CODES}"""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="assign further rows, or the rows of a new task, to the clusters",
        description="Give further rows the clusters of a fitted model. Columns are encoded exactly as in fit.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="the directory that mtclust fit wrote, or its model")
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="files as for fit")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write here instead of to the standard output")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--task-column", metavar="COL", help="the column with the task; by default as in fit")
    which.add_argument("--task", metavar="NAME", help="the task of all rows")
    add_columns(parser, "--key", "columns that name a row: copied to the result", "COL,…")
    add_flags(
        parser,
        new_task="cluster tasks that were not in fit as new tasks; else they are refused",
        overwrite="replace FILE",
    )
    add_common_options(parser, parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    check_keys(options.key)
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise CommandError(
            f"--out {options.out} is already there; choose another name, or replace it with --overwrite."
        )
    if options.out is not None and not options.out.resolve().parent.is_dir():
        raise CommandError(f"--out {options.out}: there is no directory {options.out.resolve().parent}; make it first.")
    require("pandas", "cli")
    with progress(quiet=options.quiet):
        found = _load(options.model)
        table = _read(options, found.encoder)
        table.require_columns(options.key, "--key")
        labels, margins, notes = found.assign(table, new_tasks=options.new_task)
    text = labels_csv(table, options.key, found.named(labels), margins, safe=options.safe_csv)
    if options.out is None:
        sys.stdout.write(text)
    else:
        with written_to(options.out), atomic_write(options.out) as stream:
            stream.write(text.encode())
    if not options.quiet:
        for note in notes:
            print(note, file=sys.stderr)


def _load(path: Path) -> Any:
    """The saved clustering."""
    import mtclust

    file = path / MODEL_FILE if path.is_dir() else path
    if not file.exists():
        raise CommandError(f"{file}: there is no model; give the directory that mtclust fit wrote.")
    try:
        found = mtclust.load(file)
    except ModelFileError as error:
        raise CommandError(str(error)) from error
    if not isinstance(found, mtclust.Clustering):
        raise CommandError(f"{file} holds an estimator without a table; use a model of mtclust fit or mtclust.cluster.")
    return found


def _read(options: argparse.Namespace, encoder: Any) -> Any:
    """The table, with the tasks named in the way the user chose or the model suggests."""
    from dataclasses import replace

    import numpy as np

    from mtclust.app.tables.table import read_tables

    task_column = options.task_column
    if task_column is None and options.task is None:
        task_column = encoder.task_column
    try:
        table = read_tables(options.data, task_column, read_options(options), file_is_task=True)
    except CommandError as error:
        if options.task_column is None and task_column is not None and "--task-column" in str(error):
            raise CommandError(
                f"{error} (It was the task column of fit; --task NAME names one task for all rows.)"
            ) from error
        raise
    if options.task is None:
        return table
    return replace(table, tasks=np.full(len(table), options.task, dtype=object))
