"""What an experiment is: cells to run, a function that runs one, and a report of the finished table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper.experiments.page import Section
from paper.experiments.runner import Cell, Execute


def _nothing(directory: Path, quick: bool) -> None:
    """Nothing to prepare."""


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes
    ----------
    name, title : str
    intro : str
        What is run and what differs from the paper, for the page.
    repeats : int
        Draws if the user gives no number.
    cells : callable
        ``cells(repeats, quick)``: all fits, in the order in which they are run.
    execute : callable
        Runs one cell.
    report : callable
        ``report(frame, directory)``: the sections of the page; figures are saved below the directory.
    prepare : callable
        ``prepare(directory, quick)``: keeps matrices that figures need and no cell gives.
    """

    name: str
    title: str
    intro: str
    repeats: int
    cells: Callable[[int, bool], list[Cell]]
    execute: Execute
    report: Callable[[Any, Path], Sequence[Section]]
    prepare: Callable[[Path, bool], None] = _nothing
