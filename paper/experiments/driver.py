"""What an experiment is, and its way from cells to a page; or only the page again."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mtclust import __version__
from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import cannot_write
from paper.experiments.page import Picture, Section, draws_text, failures, write_page
from paper.experiments.protocols import with_names
from paper.experiments.runner import Cell, DataUnavailable, Outcome, run_cells
from paper.experiments.table import RunTable, as_frame, key_of, read_rows, replace_file

TABLE = "runs.csv"
#: which commands the directory is of
MARK = "run.json"
#: the two ways to run an experiment: nothing chosen with labels, or the letter of the paper
OURS, AS_PRINTED = "ours", "as printed"
#: draws of the latter, whose grids have thousands of points, if the user gives no number
PRINTED_REPEATS = 5


class Experiment(ABC):
    """One experiment of the paper."""

    name: str
    title: str
    intro: str  # what is run and what differs from the paper, for the page
    repeats: int  # draws if the user gives no number

    @abstractmethod
    def cells(self, repeats: int, quick: bool, protocol: str) -> list[Cell]:
        """All fits of a protocol, :data:`OURS` or :data:`AS_PRINTED`, in the order in which they are run."""

    @abstractmethod
    def execute(self, cell: Cell) -> Sequence[Outcome]:
        """Run one cell, perhaps in another process."""

    @abstractmethod
    def report(self, named: Any, directory: Path) -> Sequence[Section]:
        """The page about the finished rows, with the names of their methods; figures go below the directory."""


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
    most = 1 if quick else PRINTED_REPEATS if protocol == AS_PRINTED else experiment.repeats
    repeats = repeats or min(experiment.repeats, most)
    with _alone_in(directory):
        _claim(directory, quick, protocol, repeats)
        try:
            cells = experiment.cells(repeats, quick, protocol)
            run_cells(cells, experiment.execute, RunTable(directory / TABLE), n_jobs=n_jobs)
        except DataUnavailable as error:
            raise CommandError(
                f"the data of {experiment.name} are not at hand: {error} Finished rows are kept in {directory / TABLE}."
            ) from error
    return write_report(experiment, directory)


def write_report(experiment: Experiment, directory: Path) -> list[Picture]:
    """Figures and page from the table as it is; nothing is run. Returns the figures."""
    command = f"python -m paper reproduce {experiment.name}"
    again = f"run {command} first."
    if not (directory / MARK).exists():
        raise CommandError(f"{directory} holds no results; {again}")
    run = json.loads((directory / MARK).read_text())
    frame = read_frame(directory.parent, experiment.name)
    if frame.empty:
        raise CommandError(f"{directory / TABLE} has no finished rows yet; {again}")
    sections = [*experiment.report(with_names(frame), directory), *failures(frame)]
    intro = [state(experiment, directory), experiment.intro, f"{draws_text(frame)} All rows: `{TABLE}`."]
    quick = " --quick" if run["quick"] else ""
    made_by = "` and `".join(
        f"{command} --repeats {repeats}{quick}{' --as-printed' if protocol == AS_PRINTED else ''}"
        for protocol, repeats in run["repeats"].items()
    )
    write_page(directory / "page.md", experiment.title, made_by, "\n\n".join(intro), sections)
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
    cells = [cell for protocol, n in run["repeats"].items() for cell in experiment.cells(n, run["quick"], protocol)]
    present = {key_of(row) for row in rows}
    missing = Counter(cell.dataset for cell in cells if not present.issuperset(cell.keys()))
    text = f"Rows of mtclust {version}."
    if not missing:
        return text
    return (
        f"{text} **Not finished**: {missing.total()} of {len(cells)} fits of this command are still to be run (the "
        f"same command goes on with them), by data set: {'; '.join(f'{name}: {n}' for name, n in missing.items())}."
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
    """The rows of an experiment that a page may show, all of one version; none if it has not been run."""
    path = out / name / TABLE
    rows = read_rows(path) if path.exists() else []
    version = shown_version(rows)
    return as_frame([row for row in rows if row["version"] == version])


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


def _claim(directory: Path, quick: bool, protocol: str, repeats: int) -> None:
    """Note what the directory is for; refuse to mix the rows of a quick run and of a full one."""
    mark = directory / MARK
    run: dict[str, Any] = {"experiment": directory.name, "quick": quick, "repeats": {}}
    if mark.exists():
        run = json.loads(mark.read_text())
    if run["quick"] != quick:
        kind = "a quick" if run["quick"] else "a full"
        raise CommandError(f"{directory} holds {kind} run of {directory.name}; choose another --out, or delete it.")
    run["repeats"][protocol] = repeats
    replace_file(mark, json.dumps(run).encode())
