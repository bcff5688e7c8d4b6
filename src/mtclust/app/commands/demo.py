"""``mtclust demo``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_parser(commands: Any) -> None:
    parser = commands.add_parser("demo", help="cluster handwritten digits from several tasks; nothing is downloaded")
    parser.add_argument("--out", type=Path, metavar="DIR", help="save the picture of the task relationship here")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    from mtclust.app.demo import run_demo

    run_demo(options.out)
