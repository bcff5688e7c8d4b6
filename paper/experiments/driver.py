"""What an experiment is, and its way from cells to a page; or only the page again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtclust import __version__
from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import cannot_write
from paper.experiments.page import Picture, Section, write_page
from paper.experiments.runner import Cell, DataUnavailable, Execute, run_cells
from paper.experiments.sections import draws_text
from paper.experiments.table import RunTable, as_frame, key_of, read_rows, replace_file

TABLE = "runs.csv"
#: which commands the directory is of
MARK = "run.json"
#: the two ways to run an experiment: nothing chosen with labels, or the letter of the paper
OURS, AS_PRINTED = "ours", "as printed"
#: draws of the latter, whose grids have thousands of points, if the user gives no number
PRINTED_REPEATS = 5


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper."""

    name: str
    title: str
    intro: str  # what is run and what differs from the paper, for the page
    repeats: int  # draws if the user gives no number
    cells: Callable[[int, bool], list[Cell]]  # of (repeats, quick): all fits, in the order in which they are run
    execute: Execute  # runs one cell
    report: Callable[[Any, Path], Sequence[Section]]  # of (frame, directory): the page; figures go below the directory
    printed: Callable[[int, bool], list[Cell]] | None = None  # the cells of ``--as-printed``, where they differ

    def cells_of(self, protocol: str, repeats: int, quick: bool) -> list[Cell]:
        """The fits of one protocol."""
        wanted = self.printed if protocol == AS_PRINTED and self.printed is not None else self.cells
        return wanted(repeats, quick)


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    repeats: int | None = None,
    quick: bool = False,
    protocol: str = OURS,
    n_jobs: int = 1,
) -> list[Picture]:
    """Run what is missing, then write the page; returns the figures on it."""
    directory = out / experiment.name
    usual = min(experiment.repeats, PRINTED_REPEATS) if protocol == AS_PRINTED else experiment.repeats
    wanted = repeats if repeats is not None else (1 if quick else usual)
    with _alone_in(directory):
        _claim(directory, experiment.name, quick, protocol, wanted)
        table = RunTable(directory / TABLE)
        try:
            cells = experiment.cells_of(protocol, wanted, quick)
            run_cells(cells, experiment.execute, table, n_jobs=n_jobs)
        except DataUnavailable as error:
            raise CommandError(
                f"the data of {experiment.name} are not at hand: {error} Finished rows are kept in {table.path}."
            ) from error
    return write_report(experiment, directory)


def write_report(experiment: Experiment, directory: Path) -> list[Picture]:
    """Figures and page from the table as it is; nothing is run. Returns the figures."""
    mark = directory / MARK
    if not mark.exists():
        raise CommandError(f"{directory} holds no results; run python -m paper reproduce {experiment.name} first.")
    run = json.loads(mark.read_text())
    frame = read_frame(directory.parent, experiment.name)
    if frame is None or frame.empty:
        raise CommandError(
            f"{directory / TABLE} has no finished rows yet; run python -m paper reproduce {experiment.name} first."
        )
    sections = experiment.report(frame, directory)
    parts = [state(experiment, directory), experiment.intro, f"{draws_text(frame)} All rows: `{TABLE}`."]
    made_by = [command(experiment.name, repeats, run["quick"], name) for name, repeats in run["repeats"].items()]
    write_page(directory / "page.md", experiment.title, "` and `".join(made_by), "\n\n".join(parts), sections)
    return [picture for section in sections for picture in section.pictures]


def state(experiment: Experiment, directory: Path) -> str:
    """A paragraph: which version made the rows of the page, and which fits have none yet."""
    rows = read_rows(directory / TABLE)
    version = shown_version(rows)
    if version != __version__:
        return (
            f"**Rows of mtclust {version}**, not of this version ({__version__}), which has not been run here: the "
            "same command runs it. The text below describes what this version runs; those rows may be of fewer draws, "
            "starts and data sets, and our models may have been given other sizes."
        )
    run = json.loads((directory / MARK).read_text())
    cells = [
        cell
        for protocol, repeats in run["repeats"].items()
        for cell in experiment.cells_of(protocol, repeats, run["quick"])
    ]
    present = {key_of(row) for row in rows}
    missing = [cell for cell in cells if not present.issuperset(cell.keys())]
    text = f"Rows of mtclust {version}."
    if not missing:
        return text
    what = "; ".join(f"{name}: {count}" for name, count in Counter(cell.dataset for cell in missing).items())
    return (
        f"{text} **Not finished**: {len(missing)} of {len(cells)} fits of this command are still to be run (the same "
        f"command goes on with them), by data set: {what}."
    )


def shown_version(rows: Sequence[dict[str, str]]) -> str:
    """The version whose rows a page shows: this one if it has any, otherwise the newest.

    Examples
    --------
    >>> shown_version([{"version": "0.0.9"}, {"version": "0.0.10"}])
    '0.0.10'
    """
    versions = {row["version"] for row in rows}
    if __version__ in versions or not versions:
        return __version__
    return max(versions, key=lambda version: [int(number) for number in re.findall(r"\d+", version)])


def read_frame(out: Path, name: str) -> Any:
    """The rows of an experiment that a page may show, all of one version; None if it has not been run."""
    path = out / name / TABLE
    if not path.exists():
        return None
    rows = read_rows(path)
    version = shown_version(rows)
    return as_frame([row for row in rows if row["version"] == version])


def command(name: str, repeats: int, quick: bool, protocol: str = OURS) -> str:
    """The command line that makes these results."""
    words = [f"python -m paper reproduce {name} --repeats {repeats}", *(["--quick"] if quick else [])]
    return " ".join([*words, *(["--as-printed"] if protocol == AS_PRINTED else [])])


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep a second run out of the directory; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / ".lock").open("w")
    except OSError as error:
        raise CommandError(f"--out {directory.parent} cannot be written: {cannot_write(error)}") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError(
                f"another command is writing into {directory}; wait for it or choose another --out."
            ) from error
        yield


def _claim(directory: Path, name: str, quick: bool, protocol: str, repeats: int) -> None:
    """Note what the directory is for; refuse to mix the rows of a quick run and of a full one."""
    mark = directory / MARK
    before: dict[str, int] = {}
    if mark.exists():
        found = json.loads(mark.read_text())
        if found["quick"] != quick:
            kind = "a quick" if found["quick"] else "a full"
            raise CommandError(f"{directory} holds {kind} run of {name}; choose another --out, or delete it.")
        before = found["repeats"]
    run = {"experiment": name, "quick": quick, "repeats": before | {protocol: repeats}}
    replace_file(mark, json.dumps(run).encode())
