"""``mtclust fit``: from tables to labels, a model and a report."""

from __future__ import annotations

import argparse
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtclust._atomic import atomic_write
from mtclust.commands.labels import check_keys, labels_csv, row_margins
from mtclust.commands.options import (
    add_reading_options,
    add_verbose_option,
    clusters_argument,
    comma_list,
    coupling_argument,
    decimal_argument,
    read_options,
    sizes_argument,
)
from mtclust.commands.output import LABELS_FILE, MODEL_FILE, REPORT_FILE, staged_directory
from mtclust.commands.progress import Progress
from mtclust.exceptions import CommandError

#: above this many rows ``--kernel auto`` is linear
RBF_ROWS = 5000

_EXAMPLES = """examples:
  mtclust fit sales.csv --task-column shop --out result
  mtclust fit shop_a.csv shop_b.csv shop_c.csv --key customer --clusters 4 --out result
  mtclust fit reviews.csv --task-column product --text-column review --clusters 2-6 --out result
  mtclust fit patients.parquet --task-column hospital --columns age,bmi,sex --impute --out result

DIR gets labels.csv, model.mtclust (for mtclust predict) and report.html; it appears only when all is done.
exit codes: 0 done, 1 an error that is named, 2 wrong usage, 130 interrupted with Ctrl-C."""


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="cluster the tables of several tasks: labels, model, report",
        description="Cluster the rows of several related tables (tasks) at once. Cluster ids mean the same in\n"
        "every task. Numbers are standardised, categories and dates encoded, text weighted by tf-idf.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="CSV, TSV or Parquet; several: one per task")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory for the results")
    parser.add_argument("--task-column", metavar="COL", help="the column that says which task a row belongs to")
    parser.add_argument(
        "--key",
        type=comma_list,
        action="extend",
        default=[],
        metavar="COL,…",
        help="columns that name a row: copied to labels.csv, not used for clustering",
    )

    what = parser.add_argument_group("what to cluster by")
    either = what.add_mutually_exclusive_group()
    either.add_argument("--columns", type=comma_list, action="extend", metavar="A,B,…", help="use only these columns")
    either.add_argument("--text-column", metavar="COL", help="use the text in this column")
    what.add_argument(
        "--categories",
        type=comma_list,
        action="extend",
        default=[],
        metavar="A,B,…",
        help="columns of numbers that are names, such as postcodes",
    )
    what.add_argument(
        "--scale",
        choices=("standard", "range", "none"),
        default="standard",
        help="numbers to standard deviation 1 (default), to the range 0 to 1, or as they are",
    )
    what.add_argument(
        "--impute",
        action="store_true",
        help="fill in missing values (median, a level of its own, empty text); without, they are refused",
    )

    how = parser.add_argument_group("how to cluster")
    how.add_argument(
        "--clusters",
        type=clusters_argument,
        default="auto",
        metavar="N",
        help="a number, a range such as 2-8, or auto (2-8, the default)",
    )
    how.add_argument(
        "--method",
        choices=("dmtrc", "dmtfc", "dstc"),
        default="dmtrc",
        help="learn how tasks are related (dmtrc, default), which features they share (dmtfc), or "
        "cluster each task alone (dstc)",
    )
    how.add_argument(
        "--kernel",
        choices=("auto", "rbf", "linear"),
        default="auto",
        help=f"auto: linear for text and for more than {RBF_ROWS} rows, else rbf",
    )
    how.add_argument(
        "--sizes",
        type=sizes_argument,
        default="auto",
        metavar="S",
        help="cluster sizes: auto (default), balanced, a number l from 0 (balanced) to 1 (free), or LOW,HIGH as "
        "shares of a task",
    )
    how.add_argument(
        "--coupling",
        type=coupling_argument,
        metavar="S",
        help="dmtrc only: auto (default), full, none, or a strength from 0 to 1",
    )
    how.add_argument("--seed", type=int, default=0, metavar="N", help="random numbers; same seed, same result (0)")

    files = parser.add_argument_group("how files are read")
    add_reading_options(files)
    files.add_argument("--decimal", type=decimal_argument, metavar="MARK", help="decimal mark: point or comma")
    files.add_argument("--date-format", metavar="FORMAT", help="such as %%d/%%m/%%Y; ISO and others are recognised")
    files.add_argument(
        "--missing",
        type=comma_list,
        action="extend",
        metavar="A,B,…",
        help="further cells that mean 'not known', such as ?",
    )
    written = parser.add_argument_group("what is written")
    written.add_argument("--overwrite", action="store_true", help="replace the results of an earlier run in DIR")
    written.add_argument(
        "--safe-csv",
        action="store_true",
        help="put ' before cells of labels.csv that a spreadsheet would execute (= + - @)",
    )
    written.add_argument(
        "--show-keys",
        action="store_true",
        help="show the key columns in the report; without, it knows rows by their numbers only",
    )
    written.add_argument("--quiet", action="store_true", help="no progress, no summary")
    add_verbose_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from mtclust._extras import require
    from mtclust.tables import EncodingOptions, TableEncoder, read_tables
    from mtclust.tables.parsing import MISSING

    require("pandas", "cli")
    require("jinja2", "report")
    if options.coupling is not None and options.method != "dmtrc":
        raise CommandError(f"--coupling is for --method dmtrc; got --method {options.method}. Leave it out.")
    check_keys(options.key)
    progress = Progress(quiet=options.quiet)
    with staged_directory(options.out, overwrite=options.overwrite) as stage:
        with progress.step("Reading"):
            table = read_tables(options.data, options.task_column, read_options(options))
            encoder = TableEncoder.fit(
                table,
                EncodingOptions(
                    columns=options.columns,
                    text_column=options.text_column,
                    keys=options.key,
                    categories=options.categories,
                    impute=options.impute,
                    scaling=options.scale,
                    missing=(*MISSING, *(options.missing or ())),
                    decimal=options.decimal,
                    date_format=options.date_format,
                ),
            )
            X, _ = encoder.transform(table)
        fitted = _fit(options, encoder, X, table.tasks.astype(str), progress)
        with progress.step("Saving"):
            fitted.model.save(stage / MODEL_FILE, extra={"table": encoder.to_dict()})
            labels = labels_csv(table, options.key, fitted.model.labels_, fitted.margins, safe=options.safe_csv)
            with atomic_write(stage / LABELS_FILE) as stream:
                stream.write(labels.encode())
        with progress.step("Writing the report"):
            _write_report(stage / REPORT_FILE, options, table, encoder, X, fitted)
    if not options.quiet:
        from mtclust.commands.summary import print_summary

        print_summary(options.out, table, encoder, fitted)


@dataclass(frozen=True)
class Fitted:
    """A fitted model and what the user should hear about it.

    Attributes
    ----------
    model : DMTRC, DMTFC or DSTC
    margins : ndarray of shape (n,)
    choice : ClusterNumberChoice or None
        How the number of clusters was chosen, if it was.
    notes : list of str
        What was done with the table, and what was chosen by itself.
    warned : list of warnings
        Of the library.
    """

    model: Any
    margins: Any
    choice: Any
    notes: list[str]
    warned: list[Any]


def _fit(options: argparse.Namespace, encoder: Any, X: Any, tasks: Any, progress: Progress) -> Fitted:
    from mtclust import DMTFC, DMTRC, DSTC

    notes = list(encoder.notes)
    kernel = options.kernel
    if kernel == "auto":
        kernel = "linear" if encoder.is_text or len(tasks) > RBF_ROWS else "rbf"
        if not encoder.is_text and kernel == "linear":
            notes.append(f"The kernel is linear, since there are more than {RBF_ROWS} rows (--kernel rbf is slower).")
    arguments: dict[str, Any] = {"kernel": kernel, "sizes": options.sizes, "random_state": options.seed}
    if options.coupling is not None:
        arguments["coupling"] = options.coupling
    estimator = {"dmtrc": DMTRC, "dmtfc": DMTFC, "dstc": DSTC}[options.method](**arguments)
    choice = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if not isinstance(options.clusters, int):
                with progress.step("Choosing the number of clusters"):
                    choice = _choose_clusters(estimator, options, X, tasks, notes)
                estimator.set_params(n_clusters=choice.n_clusters)
            else:
                estimator.set_params(n_clusters=options.clusters)
            with progress.step(f"Clustering {len(tasks)} rows into {estimator.n_clusters} clusters"):
                model = estimator.fit(X, tasks=tasks)
                margins = row_margins(model.decision_function(X, tasks=tasks), model.labels_)
        except ValueError as error:  # what the library refuses, the user can mend: rows, clusters, sizes
            raise CommandError(str(error)) from error
        except MemoryError as error:
            raise CommandError(
                f"there is not enough memory for {len(tasks)} rows with --kernel {kernel}"
                f"; {'try --kernel linear' if kernel == 'rbf' else 'use fewer rows or columns'}."
            ) from error
    warned = [entry.message for entry in caught if issubclass(entry.category, UserWarning)]
    return Fitted(model, margins, choice, notes, warned)


def _choose_clusters(estimator: Any, options: argparse.Namespace, X: Any, tasks: Any, notes: list[str]) -> Any:
    """The number of clusters among the candidates."""
    from mtclust.choose.n_clusters import CANDIDATES, select_n_clusters
    from mtclust.choose.number_choice import warn_of_choice

    wanted = CANDIDATES if options.clusters == "auto" else options.clusters
    candidates = [c for c in wanted if c <= len(tasks)]
    if not candidates:
        raise CommandError(
            f"--clusters asks for {min(wanted)} or more, but there are only {len(tasks)} rows; ask for fewer clusters."
        )
    choice = select_n_clusters(estimator, X, tasks=tasks, candidates=candidates)
    notes.append(f"Number of clusters: {choice.answer}.")
    warn_of_choice(choice)
    return choice


def _write_report(path: Path, options: argparse.Namespace, table: Any, encoder: Any, X: Any, fitted: Fitted) -> None:
    from mtclust.report import ReportInput, write_report
    from mtclust.tables.reading import column_strings

    row_names = [f"row {number}" for number in table.row_numbers]
    if options.show_keys and options.key:
        columns = [column_strings(table.frame[key]) for key in options.key]
        row_names = [", ".join(str(cell) for cell in cells) for cells in zip(*columns)]
    write_report(
        ReportInput(
            model=fitted.model,
            X=X,
            tasks=table.tasks.astype(str),
            features=encoder.features,
            margins=fitted.margins,
            row_names=row_names,
            source=", ".join(table.files),
            command=shlex.join(["mtclust", *options.arguments]),
            columns=encoder.describe(),
            notes=fitted.notes,
            warned=fitted.warned,
            cluster_number=fitted.choice,
        ),
        path,
    )
