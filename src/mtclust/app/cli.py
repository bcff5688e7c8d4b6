"""The command line: ``mtclust`` and ``python -m mtclust``."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from typing import Any

from mtclust import __version__
from mtclust.app import commands
from mtclust.exceptions import CommandError, ModelFileError
from mtclust.util.messages import on_command_line

#: what the system says when something cannot be written
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mtclust", description="Cluster several related data sets at once, and see how they are related."
    )
    parser.add_argument("--version", action="version", version=f"mtclust {__version__}")
    parser.add_argument("--verbose", action="store_true", help="show what is under way, and the traceback of an error")
    commands.add_parser(parser.add_subparsers(dest="command", required=True, metavar="COMMAND"))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    0 for success, 1 for an error, 2 for wrong usage, 130 for Ctrl-C, 141 if the reader of the output went away, 143 if
    the process was told to end.
    """
    return run_command(build_parser(), arguments)


def run_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> int:
    """Run what a parser reads and return the exit code; errors are told in one line."""
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
        from mtclust.persistence.atomic import cannot_write

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
