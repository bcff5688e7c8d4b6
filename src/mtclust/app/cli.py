"""The command line, ``mtclust`` and ``python -m mtclust``: ``fit``, ``predict``, ``demo``, and how they end.

What is heavy is imported after the arguments were read.
"""

from __future__ import annotations

import argparse
import errno
import logging
import math
import os
import shlex
import shutil
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import mtclust
from mtclust.exceptions import CommandError, ModelFileError, TableWarning
from mtclust.persistence.atomic import atomic_write, cannot_write, flush_directory, unfinished_name
from mtclust.util.messages import on_command_line, phase
from mtclust.util.system import pandas, require

#: what ``mtclust fit`` writes
MODEL_FILE, LABELS_FILE, REPORT_FILE = "model.mtclust", "labels.csv", "report.html"
RESULT_FILES = (LABELS_FILE, MODEL_FILE, REPORT_FILE)
#: columns of labels.csv beside the keys, which cannot have their names
RESERVED = {"task", "cluster", "margin", "probability", "stability", "outlier", "alone"}
_EXIT_CODES = "exit codes: 0 done, 1 an error, which the message explains, 2 wrong usage, 130 interrupted with Ctrl-C."
_FIT_EXAMPLES = f"""examples:
  mtclust fit sales.csv --task-column shop --out result
  mtclust fit shop_a.csv shop_b.csv shop_c.csv --key customer --clusters 4 --out result
  mtclust fit reviews.csv --task-column product --text-column review --clusters 2-6 --out result
  mtclust fit patients.parquet --task-column hospital --columns age,bmi,sex --out result

DIR gets labels.csv, model.mtclust (for mtclust predict) and report.html; it appears only when all is done.
{_EXIT_CODES}"""
_METHOD = "learn how tasks are related (dmtrc, default), which features they share (dmtfc), or neither (dstc)"
_CENTER = (
    "not dstc: compare rows around the mean of their task (task), as they are (all), after each task was moved by an "
    "offset of its own (aligned), or what fits best (auto, default)"
)
_SIZES = "cluster sizes: auto (default), balanced, a number l from 0 (balanced) to 1 (free), or LOW,HIGH shares"
_KEY = (
    "columns that name a row: copied to labels.csv and not used for clustering (default: an id, if one is recognised)"
)
_PREDICT_EXAMPLES = f"""examples:
  mtclust predict result new_customers.csv --key customer --out clusters.csv
  mtclust predict result paris.csv --task paris
  mtclust predict result rome.csv --task rome --new-task      # a task the model has not seen

The result has the columns row, keys, task, cluster and margin, and goes to the standard output unless --out is given.
{_EXIT_CODES}"""
#: options of ``mtclust demo``: pixels share a scale, and sheets ask for digits equally often
DEMO_OPTIONS = ("--clusters", "10", "--sizes", "balanced", "--scale", "none")
#: first images of the sheets: every sheet asks for the same 130 digits, so that one begins where these begin anew
SHEETS = (0, 130, 256, 386, 516, 646, 776, 905, 1029, 1157, 1287, 1415, 1545, 1667)
_VERBOSE = "show what is under way, and the traceback of an error"
#: errors of the system when something cannot be written
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0 for success, 1 for an error, 2 for wrong usage, 130 for Ctrl-C, 141 if the reader of the output went away, 143 if
    the process was told to end.
    """
    return run_command(build_parser(), arguments)


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run what a parser reads and return the exit code; errors are reported in one line."""
    sys.stdout, sys.stderr = (stream or StringIO() for stream in (sys.stdout, sys.stderr))  # None: closed by the caller
    options = parser.parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    if options.verbose:
        logging.basicConfig(format="%(message)s", level=logging.INFO)
    try:
        with _tidy_termination(), on_command_line():
            code = options.run(options) or 0
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("mtclust: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard_output()  # as much as was wanted has been read
        return 141
    except Exception as error:
        if options.verbose:
            traceback.print_exc()
        print(f"mtclust: {_in_words(error)}", file=sys.stderr)
        if isinstance(error, OSError) and error.filename is None and error.errno in _OF_WRITING:
            _discard_output()
        return 1
    return int(code)


def _discard_output() -> None:
    """What is left of the output must not fail again when Python ends."""
    with suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _in_words(error: Exception) -> str:
    """What the user can mend is said as it is; anything else is our mistake."""
    if isinstance(error, OSError) and error.errno in _OF_WRITING:
        return f"{error.filename or 'the standard output'} cannot be written: {cannot_write(error)}"
    if isinstance(error, CommandError | ModelFileError | ImportError | OSError):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}. This should not happen; --verbose shows where it did."


@contextmanager
def _tidy_termination() -> Iterator[None]:
    """Let a request to end (SIGTERM) clear up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # only there signals can be handled
        yield
        return

    def end(*_: Any) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mtclust", description="Cluster several related data sets at once, and see how they are related."
    )
    parser.add_argument("--version", action="version", version=f"mtclust {mtclust.__version__}")
    parser.add_argument("--verbose", action="store_true", help=_VERBOSE)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    what = "cluster real handwriting and compare with k-means; nothing is downloaded"
    demo, usual = commands.add_parser("demo", help=what), Path("mtclust-demo")
    demo.add_argument("--out", type=place, metavar="DIR", default=usual, help="directory for table and results")
    demo.set_defaults(run=run_demo)
    _add_fit(commands)
    _add_predict(commands)
    return parser


def number_or_range(text: str) -> int | str | range:
    """A number of clusters, a range of them such as 2-8, or "auto"."""
    low, dash, high = text.partition("-")
    if dash:
        return range(int(low), int(high) + 1)
    return text if text == "auto" else int(text)


def place(text: str) -> Path:
    """Where to write, which is not the current directory unless it is named."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no name; the current directory is '.'")
    return Path(text)


def word_or_shares(text: str) -> Any:
    """A word, a number, or two numbers; the estimator says which are allowed."""
    try:
        shares = tuple(map(float, text.split(",")))
    except ValueError:
        return text
    return shares[0] if len(shares) == 1 else shares


def add_columns(parser: Any, name: str, words: str) -> None:
    """An option that takes names of columns, separated by commas, and may be given again."""

    def names(text: str) -> list[str]:
        return [name.strip() for name in text.split(",")]

    parser.add_argument(name, type=names, action="extend", default=[], metavar="COL,…", help=words)


def add_speech(parser: Any) -> None:
    parser.add_argument("--quiet", action="store_true", help="no summary, no notes")
    # before the name of the command it is that of build_parser
    parser.add_argument("--verbose", action="store_true", help=_VERBOSE, default=argparse.SUPPRESS)


def _add_fit(commands: Any) -> None:
    parser = commands.add_parser(
        "fit",
        help="cluster the tables of several tasks; writes labels, a model and a report",
        description="Cluster the rows of several related tables (tasks) at once. Cluster ids are matched between\n"
        "tasks as well as the data allow; the summary says where they may not mean the same. Numbers\n"
        "are standardised, categories and dates encoded, text weighted by tf-idf.",
        epilog=_FIT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    data = "CSV or TSV, also compressed, Parquet or Excel; several: one per task"
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help=data)
    parser.add_argument("--out", type=place, required=True, metavar="DIR", help="directory for the results")
    parser.add_argument("--task-column", metavar="COL", help="the column that says which task a row belongs to")
    add_columns(parser, "--key", _KEY)

    what = parser.add_argument_group("what to cluster by")
    either = what.add_mutually_exclusive_group()
    add_columns(either, "--columns", "use only these columns")
    either.add_argument("--text-column", metavar="COL", help="use the text in this column")
    add_columns(what, "--categories", "columns of numbers that are names, such as postcodes")
    scale = "numbers to standard deviation 1 (default), to the range 0 to 1, or as they are"
    what.add_argument("--scale", choices=("standard", "range", "none"), default="standard", help=scale)

    how = parser.add_argument_group("how to cluster")
    clusters = "a number, a range such as 2-8, or auto (2-12, the default)"
    how.add_argument("--clusters", type=number_or_range, default="auto", metavar="N", help=clusters)
    how.add_argument("--method", choices=("dmtrc", "dmtfc", "dstc"), default="dmtrc", help=_METHOD)
    kernel = "auto: linear and RBF kernels compete; linear for text"
    how.add_argument("--kernel", choices=("auto", "rbf", "linear"), default="auto", help=kernel)
    how.add_argument("--sizes", type=word_or_shares, default="auto", metavar="S", help=_SIZES)
    coupling = "dmtrc only: auto (default), full, none, or a strength from 0 to 1"
    how.add_argument("--coupling", type=word_or_shares, metavar="S", help=coupling)
    how.add_argument("--center", choices=("auto", "task", "all", "aligned"), help=_CENTER)
    stability = "cluster samples of the rows again to see what stays the same (default), or save the time"
    how.add_argument("--stability", action=argparse.BooleanOptionalAction, default=True, help=stability)
    how.add_argument("--seed", type=int, default=0, metavar="N", help="seed, used where --sizes are given (default 0)")

    files = parser.add_argument_group("how files are read")
    files.add_argument("--decimal", choices=("point", "comma"), help="decimal mark; recognised by default")
    files.add_argument("--date-format", metavar="FORMAT", help="such as %%d/%%m/%%Y; ISO and others are recognised")
    add_columns(files, "--missing", "further cells that mean 'not known', such as ?")
    written = parser.add_argument_group("what is written")
    written.add_argument("--overwrite", action="store_true", help="replace the results of an earlier run in DIR")
    show = "show the key columns in the report; otherwise it shows row numbers only"
    written.add_argument("--show-keys", action="store_true", help=show)
    add_speech(written)
    parser.set_defaults(run=run_fit)


def run_fit(options: argparse.Namespace) -> None:
    check_keys(options.key)
    further = {name: vars(options)[name] for name in ("coupling", "center") if vars(options)[name] is not None}
    with staged_directory(options.out, overwrite=options.overwrite) as stage:
        from mtclust.app.tables.table import read_file, read_tables

        with phase("reading"):
            read = [read_file(path) for path in options.data]
        table = read_tables(read, options.task_column)
        for name in ("text_column", "key", "columns", "categories"):  # typos, before anything heavy is imported
            table.require_columns(vars(options)[name] or [], "--" + name.replace("_", "-"))
        require("jinja2", "report")
        from mtclust.app.cluster import cluster

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # the summary says it
            found = cluster(
                table, n_clusters=options.clusters, columns=options.columns or None, text_column=options.text_column,
                keys=options.key, categories=options.categories, scale=options.scale,
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
        print(f"{found.summary()}\n\nWritten to {options.out}: {', '.join(RESULT_FILES)}")


def _write(stage: Path, found: Any, table: Any, options: argparse.Namespace) -> None:
    # without --key the first column that was recognised as naming the rows, unless its name is taken
    keys = options.key or [name for name in found.encoder.identifiers if name not in {"row", *RESERVED}][:1]
    found.save(stage / MODEL_FILE)
    labels, margins = found.named(found.model.labels_), found.rows("labels").margins
    text = labels_csv(table, keys, not options.key, cluster=labels, margin=margins, **found.row_columns())
    (stage / LABELS_FILE).write_text(text, encoding="utf-8", newline="")
    row_names = [f"row {number}" for number in table.row_numbers]
    if options.show_keys and options.key:
        row_names = [", ".join(cells) for cells in zip(*(table.strings(key) for key in options.key))]
    command = shlex.join(["mtclust", *options.arguments])
    found.report(stage / REPORT_FILE, row_names=row_names, command=command, stability=options.stability)


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser(
        "predict",
        help="assign further rows, or the rows of a new task, to the clusters",
        description="Give further rows the clusters of a fitted model. Columns are encoded exactly as in fit.",
        epilog=_PREDICT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="the directory that mtclust fit wrote, or its model")
    parser.add_argument("data", nargs="+", type=Path, metavar="DATA", help="files as for fit")
    parser.add_argument("--out", type=place, metavar="FILE", help="write here instead of to the standard output")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--task-column", metavar="COL", help="the column with the task; by default as in fit")
    which.add_argument("--task", metavar="NAME", help="the task of all rows")
    add_columns(parser, "--key", "columns that name a row: copied to the result")
    new = "cluster tasks that were not in fit as new tasks; else they are refused"
    parser.add_argument("--new-task", action="store_true", help=new)
    parser.add_argument("--overwrite", action="store_true", help="replace FILE")
    add_speech(parser)
    parser.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace) -> None:
    check_keys(options.key)
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise CommandError(
            f"--out {options.out} is already there; choose another name, or replace it with --overwrite."
        )
    model = options.model / MODEL_FILE if options.model.is_dir() else options.model
    if not model.exists():
        raise CommandError(f"{model}: there is no model; give the directory that mtclust fit wrote.")
    found = mtclust.load(model)
    if not isinstance(found, mtclust.Clustering):
        raise CommandError(
            f"{model} holds an estimator without a table; use a model of mtclust fit or mtclust.cluster."
        )
    from mtclust.app.tables.table import read_file, read_tables

    column = options.task_column or (found.encoder.task_column if options.task is None else None)
    table = read_tables([read_file(path) for path in options.data], column, file_is_task=True)
    if options.task is not None:
        table.tasks[:] = options.task
    table.require_columns(options.key, "--key")
    labels, margins, notes = found.assign(table, new_tasks=options.new_task)
    text = labels_csv(table, options.key, not options.key, cluster=found.named(labels), margin=margins)
    if options.out is None:
        sys.stdout.write(text)
    else:
        with written_to(options.out), atomic_write(options.out) as stream:
            stream.write(text.encode())
    if not options.quiet:
        for note in notes:
            print(note, file=sys.stderr)


def handwriting() -> Any:
    """1797 handwritten digits on 14 sheets: the sheet, the digit, and 64 pixels of every image."""
    import numpy as np
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True, as_frame=True)
    sheets = np.searchsorted(SHEETS, np.arange(len(digits)), side="right")
    names = {"sheet": [f"sheet {number}" for number in sheets], "digit": digits}
    return pandas.DataFrame(names).join(pixels.astype(int))


def run_demo(options: argparse.Namespace) -> int:
    """Write the table, run ``mtclust fit`` on it, and compare its clusters with those of k-means."""
    out: Path = options.out
    require("pandas", "cli")
    require("jinja2", "report")
    frame = handwriting()
    table, result = out / "handwriting.csv", out / "result"
    with written_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with atomic_write(table) as stream:
            stream.write(frame.to_csv(index=False).encode())
    command = ["fit", str(table), "--task-column", "sheet", "--key", "digit", "--show-keys", *DEMO_OPTIONS]
    command += ["--out", str(result), "--overwrite"]
    print(
        f"{len(frame):,} handwritten digits of 8 × 8 pixels, from scikit-learn, on {frame['sheet'].nunique()} sheets, "
        "each in\none hand: the sheets are the tasks. No method is given the digit that an image shows; the table\n"
        f"has it, so that the results can be judged.\n\n$ mtclust {shlex.join(command)}\n"
    )
    code = main(command)
    if code != 0:
        return code
    _compare(frame, result)
    print(f"\nOpen this page in a browser: {(result / 'report.html').resolve()}")
    return 0


def _compare(frame: Any, result: Path) -> None:
    """How many images are named right when clusters are named by their most frequent digit, beside k-means."""
    import numpy as np

    labels = pandas.read_csv(result / "labels.csv")
    found, alone = labels["cluster"].to_numpy(), labels["alone"].to_numpy()
    sheets, digits = frame["sheet"].to_numpy(), frame["digit"].to_numpy()
    X, n_clusters = frame.filter(like="pixel").to_numpy(dtype=float), len(np.unique(found))
    each = np.zeros(len(X), dtype=np.int64)
    for sheet in np.unique(sheets):
        each[sheets == sheet] = _kmeans(X[sheets == sheet], n_clusters)
    print(
        "\nSuppose that somebody names each cluster by its most frequent digit. How many images are then named\n"
        f"correctly? All methods saw the same pixels and were asked for {n_clusters} clusters; mtclust was also told\n"
        "that a sheet has every digit about equally often (--sizes balanced).\n\n"
        f"  {'':<32}{'one name per cluster':>22}{'named again on':>18}\n"
        f"  {'':<32}{'for all sheets':>22}{'every sheet':>18}"
    )
    rows = (
        ("k-means on all sheets at once", _kmeans(X, n_clusters)),
        ("k-means on each sheet", each),
        ("mtclust, each sheet alone", alone),
        ("mtclust", found),
    )
    everywhere = np.zeros(len(X))
    for name, labelled in rows:
        once, anew = (100 * _named_right(digits, labelled, groups) for groups in (everywhere, sheets))
        print(f"  {name:<32}{once:>20.1f} %{anew:>16.1f} %")
    print(
        "\nThe first column needs clusters that mean the same on every sheet; k-means on each sheet numbers\n"
        "them arbitrarily. The second requires a look at every cluster of every sheet. The kernel of 'each\n"
        "sheet alone' was selected for all sheets together, and need not suit a single one."
    )


def _kmeans(X: Any, n_clusters: int) -> Any:
    from sklearn.cluster import KMeans

    return KMeans(min(n_clusters, len(X)), n_init=10, random_state=0).fit_predict(X)


def _named_right(truth: Any, labels: Any, groups: Any) -> float:
    """Share of rows whose class is the most frequent one of their cluster within their group."""
    counts = pandas.crosstab([groups, labels], truth)
    return float(counts.max(axis=1).sum() / len(truth))


# -- where results go: made in a directory of their own and moved there when they are whole ----------------------------


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


def labels_csv(table: Any, keys: Sequence[str], numbered: bool, **columns: Any) -> str:
    """What labels.csv holds: what names the row, its task, its cluster (number or name), and how clear that is."""
    names = {"row": table.row_numbers} if numbered else {}
    names |= {key: table.strings(key) for key in keys}
    frame = pandas.DataFrame(names | {"task": table.tasks} | columns)
    frame["margin"] = frame["margin"].replace(math.inf, math.nan)  # there is no other cluster
    return str(frame.to_csv(index=False, float_format="%.4f", lineterminator="\n"))
