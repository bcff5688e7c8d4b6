"""The command line: ``mtclust`` and ``python -m mtclust``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mtclust import __version__


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mtclust", description="Cluster several related data sets at once, and see how they are related."
    )
    parser.add_argument("--version", action="version", version=f"mtclust {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="cluster handwritten digits from several tasks; nothing is downloaded")
    demo.add_argument("--out", type=Path, metavar="DIR", help="save the picture of the task relationship here")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        from mtclust.demo import run_demo

        run_demo(options.out)
    except (ImportError, OSError) as error:
        print(f"mtclust: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("mtclust: interrupted", file=sys.stderr)
        return 130
    return 0
