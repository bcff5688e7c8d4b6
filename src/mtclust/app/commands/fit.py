"""``mtclust fit``: from tables to labels, a model and a report."""

from __future__ import annotations

import argparse
import shlex
import warnings
from pathlib import Path
from typing import Any

from mtclust.app.commands.options import (
    EXIT_CODES,
    add_columns,
    add_common_options,
    add_flags,
    clusters_argument,
    progress,
    read_options,
    shares_argument,
)
from mtclust.app.commands.output import (
    LABELS_FILE,
    MODEL_FILE,
    REPORT_FILE,
    RESERVED,
    check_keys,
    labels_csv,
    staged_directory,
)
from mtclust.app.tables.reading import refuse_typos
from mtclust.exceptions import CommandError, TableWarning
from mtclust.persistence.atomic import atomic_write
from mtclust.util.messages import phase
from mtclust.util.system import require

_EXAMPLES = f"""examples:
  mtclust fit sales.csv --task-column shop --out result
  mtclust fit shop_a.csv shop_b.csv shop_c.csv --key customer --clusters 4 --out result
  mtclust fit reviews.csv --task-column product --text-column review --clusters 2-6 --out result
  mtclust fit patients.parquet --task-column hospital --columns age,bmi,sex --out result

DIR gets labels.csv, model.mtclust (for mtclust predict) and report.html; it appears only when all is done.
{EXIT_CODES}"""
_METHOD = "learn how tasks are related (dmtrc, default), which features they share (dmtfc), or neither (dstc)"
_CENTER = (
    "not dstc: compare rows around the mean of their task (task), as they are (all), after each task was moved by an "
    "offset of its own (aligned), or what fits best (auto, default)"
)
_SIZES = "cluster sizes: auto (default), balanced, a number l from 0 (balanced) to 1 (free), or LOW,HIGH shares"
_KEY = (
    "columns that name a row: copied to labels.csv and not used for clustering (default: an id, if one is recognised)"
)
#: how --sizes and --coupling are read
sizes_argument = shares_argument(["auto", "balanced"], 2, "a number from 0 to 1, nor LOW,HIGH shares")
coupling_argument = shares_argument(["auto", "full", "none"], 1, "nor a number from 0 to 1")


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="cluster the tables of several tasks; writes labels, a model and a report",
        description="Cluster the rows of several related tables (tasks) at once. Cluster ids are matched between\n"
        "tasks as well as the data allow; the summary says where they may not mean the same. Numbers\n"
        "are standardised, categories and dates encoded, text weighted by tf-idf.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = "CSV or TSV, also compressed, Parquet or Excel; several: one per task"
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help=data)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="directory for the results")
    parser.add_argument("--task-column", metavar="COL", help="the column that says which task a row belongs to")
    add_columns(parser, "--key", _KEY, "COL,…")

    what, switch = parser.add_argument_group("what to cluster by"), argparse.BooleanOptionalAction
    either = what.add_mutually_exclusive_group()
    add_columns(either, "--columns", "use only these columns")
    either.add_argument("--text-column", metavar="COL", help="use the text in this column")
    add_columns(what, "--categories", "columns of numbers that are names, such as postcodes")
    scale = "numbers to standard deviation 1 (default), to the range 0 to 1, or as they are"
    what.add_argument("--scale", choices=("standard", "range", "none"), default="standard", help=scale)
    impute = "fill in missing values from the rows of the same task (default), or refuse them"
    what.add_argument("--impute", action=switch, default=True, help=impute)

    how = parser.add_argument_group("how to cluster")
    clusters = "a number, a range such as 2-8, or auto (2-12, the default)"
    how.add_argument("--clusters", type=clusters_argument, default="auto", metavar="N", help=clusters)
    how.add_argument("--method", choices=("dmtrc", "dmtfc", "dstc"), default="dmtrc", help=_METHOD)
    kernel = "auto: linear and RBF kernels compete; linear for text"
    how.add_argument("--kernel", choices=("auto", "rbf", "linear"), default="auto", help=kernel)
    how.add_argument("--sizes", type=sizes_argument, default="auto", metavar="S", help=_SIZES)
    coupling = "dmtrc only: auto (default), full, none, or a strength from 0 to 1"
    how.add_argument("--coupling", type=coupling_argument, metavar="S", help=coupling)
    how.add_argument("--center", choices=("auto", "task", "all", "aligned"), help=_CENTER)
    stability = "cluster samples of the rows again to see what stays the same (default), or save the time"
    how.add_argument("--stability", action=switch, default=True, help=stability)
    how.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the random numbers (default 0)")

    files = parser.add_argument_group("how files are read")
    add_flags(files, common_columns="of several files with different columns use those that all have")
    files.add_argument("--decimal", choices=("point", "comma"), help="decimal mark; recognised by default")
    files.add_argument("--date-format", metavar="FORMAT", help="such as %%d/%%m/%%Y; ISO and others are recognised")
    add_columns(files, "--missing", "further cells that mean 'not known', such as ?")
    written = parser.add_argument_group("what is written")
    add_flags(
        written,
        overwrite="replace the results of an earlier run in DIR",
        show_keys="show the key columns in the report; otherwise it shows row numbers only",
    )
    add_common_options(written, files)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read, cluster, write; what is heavy is imported after the arguments were checked: a typo is answered at once."""
    check_keys(options.key)
    further = {}
    for name, methods in (("coupling", ("dmtrc",)), ("center", ("dmtrc", "dmtfc"))):
        if getattr(options, name) is not None:
            further[name] = getattr(options, name)
            if options.method not in methods:
                allowed = " or ".join(methods)
                raise CommandError(f"--{name} is for --method {allowed}; got --method {options.method}. Leave it out.")
    named = {"--task-column": options.task_column, "--text-column": options.text_column}
    refuse_typos(
        options.data, read_options(options), {name: [column] for name, column in named.items() if column is not None}
        | {"--key": options.key, "--columns": options.columns, "--categories": options.categories},
    )  # fmt: skip
    with progress(quiet=options.quiet), staged_directory(options.out, overwrite=options.overwrite) as stage:
        require("pandas", "cli")
        require("jinja2", "report")
        from mtclust.app.cluster import cluster
        from mtclust.app.tables.table import read_tables

        with phase("reading"):
            table = read_tables(
                options.data, options.task_column, read_options(options), common_columns=options.common_columns
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # the summary says it
            found = cluster(
                table, n_clusters=options.clusters, columns=options.columns or None, text_column=options.text_column,
                keys=options.key, categories=options.categories, impute=options.impute, scale=options.scale,
                missing=options.missing, decimal={"point": ".", "comma": ","}.get(options.decimal),
                date_format=options.date_format, method=options.method, kernel=options.kernel, sizes=options.sizes,
                random_state=options.seed, **further,
            )  # fmt: skip
        if options.stability:
            with phase("clustering samples of the rows"):
                found.stability()
        with phase("writing"):
            _write(stage, found, table, options)
    if not options.quiet:
        print(f"{found.summary()}\n\nWritten to {options.out}: {LABELS_FILE}, {MODEL_FILE}, {REPORT_FILE}")


def _write(stage: Path, found: Any, table: Any, options: argparse.Namespace) -> None:
    from mtclust.app.tables.values import column_strings

    # without --key the first column that was recognised as naming the rows, unless its name is taken
    keys = options.key or [name for name in found.encoder.identifiers if name not in {"row", *RESERVED}][:1]
    found.save(stage / MODEL_FILE)
    labels = labels_csv(
        table, keys, found.labels, found.margins.to_numpy(), found.row_columns(), safe=options.safe_csv,
        numbered=not options.key,
    )  # fmt: skip
    with atomic_write(stage / LABELS_FILE) as stream:
        stream.write(labels.encode())
    row_names = [f"row {number}" for number in table.row_numbers]
    if options.show_keys and options.key:
        row_names = [", ".join(cells) for cells in zip(*(column_strings(table.frame[key]) for key in options.key))]
    command = shlex.join(["mtclust", *options.arguments])
    found.report(stage / REPORT_FILE, row_names=row_names, command=command, stability=options.stability)
