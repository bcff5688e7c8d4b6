"""The command line: ``mtclust`` and ``python -m mtclust``."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence

from mtclust import __version__
from mtclust.commands import demo, fit, predict, reproduce
from mtclust.exceptions import CommandError

_COMMANDS = (demo, fit, predict, reproduce)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mtclust", description="Cluster several related data sets at once, and see how they are related."
    )
    parser.add_argument("--version", action="version", version=f"mtclust {__version__}")
    parser.add_argument("--verbose", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code: 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
    options = build_parser().parse_args(arguments)
    options.arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options.run(options)
    except (CommandError, ImportError, OSError) as error:
        if options.verbose:
            traceback.print_exc()
        print(f"mtclust: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mtclust: interrupted", file=sys.stderr)
        return 130
    return 0
