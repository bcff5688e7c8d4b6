"""``mtclust demo``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="cluster real handwriting: labels, model, report, k-means beside it; nothing is downloaded"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("mtclust-demo"), help="directory for table and results"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from mtclust.app.cli import main
    from mtclust.app.demo import run_demo

    return run_demo(options.out, main)
