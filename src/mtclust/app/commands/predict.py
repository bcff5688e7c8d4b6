"""``mtclust predict``: clusters of further rows, with a model of ``mtclust fit``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mtclust._atomic import atomic_write
from mtclust.app.commands.labels import check_keys, labels_csv, row_margins
from mtclust.app.commands.options import add_reading_options, add_verbose_option, comma_list, read_options
from mtclust.app.commands.output import MODEL_FILE, written_to
from mtclust.app.commands.progress import Progress
from mtclust.exceptions import CommandError, ModelFileError

_EXAMPLES = """examples:
  mtclust predict result new_customers.csv --key customer --out clusters.csv
  mtclust predict result paris.csv --task paris
  mtclust predict result rome.csv --task rome --new-task      # a task the model has not seen

The result has the columns of labels.csv and goes to the standard output unless --out is given.
exit codes: 0 done, 1 an error that is named, 2 wrong usage, 130 interrupted with Ctrl-C."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="clusters of further rows, also of a new task",
        description="Give further rows the clusters of a fitted model. Columns are encoded exactly as in fit.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="the directory that mtclust fit wrote, or its model")
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="CSV, TSV or Parquet")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write here instead of to the standard output")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--task-column", metavar="COL", help="the column with the task; by default as in fit")
    which.add_argument("--task", metavar="NAME", help="the task of all rows")
    parser.add_argument(
        "--new-task", action="store_true", help="cluster tasks that were not in fit as new tasks; else they are refused"
    )
    parser.add_argument(
        "--key",
        type=comma_list,
        action="extend",
        default=[],
        metavar="COL,…",
        help="columns that name a row: copied to the result",
    )
    parser.add_argument("--impute", action="store_true", help="fill in missing values, as fit --impute does")
    add_reading_options(parser)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    parser.add_argument(
        "--safe-csv", action="store_true", help="put ' before cells that a spreadsheet would execute (= + - @)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress, no notes")
    add_verbose_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from mtclust._extras import require

    require("pandas", "cli")
    check_keys(options.key)
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise CommandError(
            f"--out {options.out} is already there; choose another name, or replace it with --overwrite."
        )
    if options.out is not None and not options.out.resolve().parent.is_dir():
        raise CommandError(f"--out {options.out}: there is no directory {options.out.resolve().parent}; make it first.")
    progress = Progress(quiet=options.quiet)
    with progress.step("Reading"):
        model, encoder = _load(options.model)
        table = _read(options, encoder)
        table.require_columns(options.key, "--key")
        X, notes = encoder.transform(table, impute=encoder.impute or options.impute)
    labels, margins, found = _clusters(model, X, table.tasks.astype(str), options.new_task, progress)
    text = labels_csv(table, options.key, labels, margins, safe=options.safe_csv)
    if options.out is None:
        sys.stdout.write(text)
    else:
        with written_to(options.out), atomic_write(options.out) as stream:
            stream.write(text.encode())
    if not options.quiet:
        for note in [*notes, *found]:
            print(note, file=sys.stderr)


def _load(path: Path) -> tuple[Any, Any]:
    """The model and how its table was encoded."""
    import mtclust
    from mtclust.app.tables import TableEncoder

    file = path / MODEL_FILE if path.is_dir() else path
    if not file.exists():
        raise CommandError(f"{file}: there is no model; give the directory that mtclust fit wrote.")
    try:
        model, extra = mtclust.load(file, return_extra=True)
    except ModelFileError as error:
        raise CommandError(str(error)) from error
    return model, TableEncoder.from_dict((extra or {}).get("table"))


def _read(options: argparse.Namespace, encoder: Any) -> Any:
    """The table, with the tasks named in the way the user chose or the model suggests."""
    from dataclasses import replace

    from mtclust.app.tables import read_tables

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


def _clusters(model: Any, X: Any, tasks: Any, new_task: bool, progress: Progress) -> tuple[Any, Any, list[str]]:
    """Labels and margins of all rows, and what was found out about new tasks."""
    known = np.isin(tasks, model.tasks_)
    unknown = sorted(set(tasks[~known].tolist()))
    if unknown and not new_task:
        raise CommandError(
            f"the model has no task {', '.join(map(repr, unknown[:5]))}{' …' if len(unknown) > 5 else ''}; it knows "
            f"{', '.join(map(repr, model.tasks_.tolist()[:10]))}{' …' if len(model.tasks_) > 10 else ''}. Cluster "
            "new tasks with --new-task, or name the task of all rows with --task."
        )
    labels = np.zeros(len(tasks), dtype=np.int64)
    margins = np.zeros(len(tasks))
    found = []
    if known.any():
        scores = model.decision_function(X[known], tasks=tasks[known])
        labels[known] = scores.argmax(axis=1)
        margins[known] = row_margins(scores, labels[known])
    for name in unknown:
        rows = tasks == name
        with progress.step(f"Clustering the new task {name}"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                new = model.fit_task(X[rows])
            except ValueError as error:
                raise CommandError(f"task {name!r} cannot be clustered: {error}") from error
        found += [str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
        labels[rows] = new.labels_
        margins[rows] = row_margins(new.decision_function(X[rows]), new.labels_)
        found.append(_describe_new(name, new, model.tasks_))
    return labels, margins, found


def _describe_new(name: str, new: Any, known: Any) -> str:
    sizes = ", ".join(f"{c}: {n}" for c, n in zip(*np.unique(new.labels_, return_counts=True)))
    text = f"New task {name}: {len(new.labels_)} rows (cluster {sizes})"
    if new.task_correlation_ is None:
        return text + "."
    nearest = int(np.argmax(new.task_correlation_[:-1]))
    return f"{text}; closest to {known[nearest]} (correlation {new.task_correlation_[nearest]:.2f})."
