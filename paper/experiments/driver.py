"""Runs an experiment from cells to page, or only draws the page again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from mtclust.exceptions import CommandError
from mtclust.persistence.atomic import cannot_write
from paper.experiments.base import Experiment
from paper.experiments.page import Page, Picture, write_page
from paper.experiments.runner import DataUnavailable, run_cells
from paper.experiments.sections import draws_text
from paper.experiments.table import RunTable, as_frame, key_of, read_rows, replace_file

TABLE = "runs.csv"
#: which command the directory is of
MARK = "run.json"
#: the figures of the page with their captions, for the page of all experiments
PICTURES = "pictures.json"


def run_experiment(
    experiment: Experiment,
    out: Path,
    *,
    repeats: int | None = None,
    quick: bool = False,
    n_jobs: int = 1,
    retry_failed: bool = False,
) -> Path:
    """Run what is missing, then write the page; returns the directory of the experiment."""
    directory = out / experiment.name
    wanted = repeats if repeats is not None else (1 if quick else experiment.repeats)
    with _alone_in(directory):
        _claim(directory, experiment.name, quick, wanted, command(experiment.name, repeats, quick))
        table = RunTable(directory / TABLE)
        try:
            experiment.prepare(directory, quick)
            cells = experiment.cells(wanted, quick)
            run_cells(cells, experiment.execute, table, n_jobs=n_jobs, retry_failed=retry_failed)
        except DataUnavailable as error:
            raise CommandError(
                f"the data of {experiment.name} are not at hand: {error} Finished rows are kept in {table.path}."
            ) from error
    write_report(experiment, directory)
    return directory


def write_report(experiment: Experiment, directory: Path) -> None:
    """Figures and page from the table as it is; nothing is run."""
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
    intro = f"{experiment.intro}\n\n{draws_text(frame)} All rows: `{TABLE}`."
    missing = unfinished(experiment, directory)
    intro += f"\n\n{missing}" if missing else ""
    write_page(Page(experiment.title, run["command"], intro, sections), directory)
    found = [vars(picture) for section in sections for picture in section.pictures]
    replace_file(directory / PICTURES, json.dumps(found, indent=1, ensure_ascii=False).encode())


def unfinished(experiment: Experiment, directory: Path) -> str:
    """A paragraph on the cells that have no rows yet; empty if all have."""
    run = json.loads((directory / MARK).read_text())
    cells = experiment.cells(run["repeats"], run["quick"])
    present = {key_of(row) for row in read_rows(directory / TABLE)}
    missing = [cell for cell in cells if not present.issuperset(cell.keys())]
    if not missing:
        return ""
    counts = Counter(cell.dataset for cell in missing)
    what = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return (
        f"**Not finished**: {len(missing)} of {len(cells)} fits of this command are still to be run (the same "
        f"command goes on with them), by data set: {what}."
    )


def read_pictures(out: Path, name: str) -> list[Picture]:
    """The figures on the page of an experiment, as seen from ``out``."""
    path = out / name / PICTURES
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return [Picture(**(entry | {"folder": name})) for entry in found]


def read_frame(out: Path, name: str) -> Any:
    """The table of an experiment, or None if it has not been run."""
    path = out / name / TABLE
    return as_frame(read_rows(path)) if path.exists() else None


def command(name: str, repeats: int | None, quick: bool) -> str:
    """The command line that makes these results."""
    words: Sequence[str] = ["mtclust", "reproduce", name]
    words = [*words, *(["--repeats", str(repeats)] if repeats is not None else []), *(["--quick"] if quick else [])]
    return " ".join(words)


@contextmanager
def _alone_in(directory: Path) -> Iterator[None]:
    """Keep a second run out of the directory; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        yield
        return
    with _opened(directory / ".lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CommandError(
                f"another command is writing into {directory}; wait for it or choose another --out."
            ) from error
        yield


def _opened(lock: Path) -> TextIO:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        return lock.open("w")
    except OSError as error:
        raise CommandError(f"--out {lock.parents[1]} cannot be written: {cannot_write(error)}") from error


def _claim(directory: Path, name: str, quick: bool, repeats: int, made_by: str) -> None:
    """Note what the directory is for; refuse to mix the rows of a quick run and of a full one."""
    mark = directory / MARK
    if mark.exists():
        found = json.loads(mark.read_text())
        if found["quick"] != quick:
            kind = "a quick" if found["quick"] else "a full"
            raise CommandError(f"{directory} holds {kind} run of {name}; choose another --out, or delete it.")
    run = {"experiment": name, "quick": quick, "repeats": repeats, "command": made_by}
    replace_file(mark, json.dumps(run).encode())
