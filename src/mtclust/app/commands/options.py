"""What commands share: how arguments are written and what they mean, and what is under way while a command runs."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mtclust.app.tables.reading import ReadOptions
from mtclust.util.messages import LOGGER

EXIT_CODES = "exit codes: 0 done, 1 an error, which the message explains, 2 wrong usage, 130 interrupted with Ctrl-C."
#: what names of separators mean
_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


def comma_list(text: str) -> list[str]:
    """Names of columns, separated by commas.

    Examples
    --------
    >>> comma_list("age, height")
    ['age', 'height']
    """
    names = [name.strip() for name in text.split(",")]
    if "" in names:
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name; write A,B,…")
    return names


def clusters_argument(text: str) -> int | str | range:
    """A number of clusters, a range of them or "auto".

    Examples
    --------
    >>> clusters_argument("5"), clusters_argument("2-4"), clusters_argument("auto")
    (5, range(2, 5), 'auto')
    """
    low, dash, high = text.partition("-")
    if text == "auto":
        return text
    if low.isdecimal() and not dash and int(low) >= 1:
        return int(low)
    if low.isdecimal() and high.isdecimal() and 2 <= int(low) <= int(high):
        return range(int(low), int(high) + 1)
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number of at least 1, a range such as 2-8, nor auto")


def shares_argument(words: Sequence[str], most: int, allowed: str) -> Callable[[str], Any]:
    """Reads one of some words, or up to so many numbers from 0 to 1, the smaller first.

    Examples
    --------
    >>> sizes = shares_argument(["auto", "balanced"], 2, "")
    >>> sizes("balanced"), sizes("0.1"), sizes("0.05,0.5")
    ('balanced', 0.1, (0.05, 0.5))
    """

    def read(text: str) -> Any:
        if text in words:
            return text
        try:
            shares = tuple(map(float, text.split(",")))
        except ValueError:
            shares = ()
        if not 0 < len(shares) <= most or any(not a <= b for a, b in zip((0.0, *shares), (*shares, 1.0))):
            raise argparse.ArgumentTypeError(f"{text!r} is neither {', '.join(words)}, {allowed}")
        return shares[0] if len(shares) == 1 else shares

    return read


def separator_argument(text: str) -> str:
    separator = _SEPARATORS.get(text, text)
    if len(separator) != 1:
        known = ", ".join(_SEPARATORS)
        raise argparse.ArgumentTypeError(f"{text!r} is neither one character nor one of {known}")
    return separator


def add_columns(parser: Any, name: str, words: str, metavar: str = "A,B,…") -> None:
    """An option that takes names separated by commas, and may be given again."""
    parser.add_argument(name, type=comma_list, action="extend", default=[], metavar=metavar, help=words)


def add_flags(parser: Any, **flags: str) -> None:
    """Options that are given or not, and what they do."""
    for name, words in flags.items():
        parser.add_argument("--" + name.replace("_", "-"), action="store_true", help=words)


def add_common_options(parser: Any, files: Any) -> None:
    """What every command about tables has: how files are read where it cannot be recognised, and how it speaks."""
    known = "between fields: comma, semicolon, tab, pipe or a character; recognised by default"
    files.add_argument("--separator", type=separator_argument, metavar="SEP", help=known)
    files.add_argument("--encoding", metavar="NAME", help="such as cp1252 or latin-1; recognised by default")
    files.add_argument("--sheet", metavar="NAME", help="of an Excel file; the first by default")
    add_flags(
        parser,
        safe_csv="put ' before cells of the result that a spreadsheet would execute (= + - @)",
        quiet="no progress, no summary, no notes",
    )
    # before the name of the command it is that of mtclust.app.cli.build_parser
    words = "show the traceback of an error"
    parser.add_argument("--verbose", action="store_true", default=argparse.SUPPRESS, help=words)


def read_options(options: argparse.Namespace) -> ReadOptions:
    """What :func:`mtclust.app.tables.table.read_tables` is told about files."""
    return ReadOptions(options.separator, options.encoding, options.sheet)


@contextmanager
def progress(*, quiet: bool) -> Iterator[None]:
    """On a terminal, show what the library logs in one line of the standard error, and nothing at the end."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    handler, level = logging.StreamHandler(sys.stderr), LOGGER.level
    handler.setFormatter(logging.Formatter("\r\x1b[K%(message).78s"))
    handler.terminator = ""
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.setLevel(level)
        LOGGER.removeHandler(handler)
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
