"""Arguments that commands share: how they are written on the command line and what they mean."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from mtclust.app.tables.reading import ReadOptions, column_names, refuse_absent, refuse_single

#: what the names of separators mean
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
    if text == "auto":
        return text
    low, dash, high = text.partition("-")
    try:
        if not dash:
            if int(text) >= 1:
                return int(text)
        elif 2 <= int(low) <= int(high):
            return range(int(low), int(high) + 1)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is neither a number of at least 1, a range such as 2-8, nor auto")


def sizes_argument(text: str) -> str | float | tuple[float, float]:
    """Cluster sizes as the estimators take them.

    Examples
    --------
    >>> sizes_argument("balanced"), sizes_argument("0.1"), sizes_argument("0.05,0.5")
    ('balanced', 0.1, (0.05, 0.5))
    """
    shares = _shares(text)
    if text in ("auto", "balanced"):
        return text
    if len(shares) in (1, 2):
        return shares[0] if len(shares) == 1 else (shares[0], shares[1])
    raise argparse.ArgumentTypeError(f"{text!r} is neither auto, balanced, a number from 0 to 1, nor LOW,HIGH shares")


def coupling_argument(text: str) -> str | float:
    """How much the tasks are coupled.

    Examples
    --------
    >>> coupling_argument("full"), coupling_argument("0.5")
    ('full', 0.5)
    """
    shares = _shares(text)
    if text in ("auto", "full", "none"):
        return text
    if len(shares) == 1:
        return shares[0]
    raise argparse.ArgumentTypeError(f"{text!r} is neither auto, full, none, nor a number from 0 to 1")


def _shares(text: str) -> list[float]:
    """Numbers from 0 to 1, the smaller first; none where one is something else."""
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        return []
    return shares if all(0 <= low <= high <= 1 for low, high in zip(shares, shares[1:] or shares)) else []


def decimal_argument(text: str) -> str:
    marks = {"point": ".", ".": ".", "comma": ",", ",": ","}
    if text not in marks:
        raise argparse.ArgumentTypeError(f"{text!r} is neither point nor comma")
    return marks[text]


def separator_argument(text: str) -> str:
    separator = _SEPARATORS.get(text, text)
    if len(separator) != 1:
        known = ", ".join(_SEPARATORS)
        raise argparse.ArgumentTypeError(f"{text!r} is neither one character nor one of {known}")
    return separator


def add_columns_option(parser: Any, name: str, words: str, metavar: str = "A,B,…") -> None:
    """An option that takes names separated by commas, and may be given again."""
    parser.add_argument(name, type=comma_list, action="extend", default=[], metavar=metavar, help=words)


def add_choice(parser: Any, name: str, choices: tuple[str, ...], words: str) -> None:
    """An option that is one of a few words, the first unless it is given."""
    parser.add_argument(name, choices=choices, default=choices[0], help=words)


def add_switch(parser: Any, name: str, words: str) -> None:
    """An option that is on unless ``--no-…`` switches it off."""
    parser.add_argument(name, action=argparse.BooleanOptionalAction, default=True, help=words)


def add_verbose_option(parser: Any) -> None:
    """``--verbose`` after the name of the command; before it, it is that of :func:`mtclust.app.cli.build_parser`."""
    parser.add_argument(
        "--verbose", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )


def add_reading_options(parser: Any) -> None:
    """How files are read, where it cannot be recognised."""
    parser.add_argument(
        "--separator",
        type=separator_argument,
        metavar="SEP",
        help="between fields: comma, semicolon, tab, pipe or a character; recognised by default",
    )
    parser.add_argument("--encoding", metavar="NAME", help="such as cp1252 or latin-1; recognised by default")
    parser.add_argument("--sheet", metavar="NAME", help="of an Excel file; the first by default")


def read_options(options: argparse.Namespace) -> ReadOptions:
    """What :func:`mtclust.app.tables.table.read_tables` is told about files."""
    return ReadOptions(options.separator, options.encoding, options.sheet)


def check_columns(options: argparse.Namespace, named: Mapping[str, Sequence[str]]) -> None:
    """Refuse names that no file has, by the first lines of the files; ``named`` are those of each option."""
    headers = [column_names(path, read_options(options)) for path in options.data]
    columns = list(dict.fromkeys(name for header in headers for name in header or []))
    if None in headers:
        return
    if options.task_column is None and len(headers) == 1:
        refuse_single(options.data[0].name, columns)
    refuse_absent([options.task_column] * (options.task_column is not None), "--task-column", columns)
    for asked, names in named.items():
        refuse_absent(names, asked, columns, options.task_column)
