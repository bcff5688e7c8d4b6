"""Runs the cells of an experiment: in any order, on any number of processes, interrupted and resumed.

A *cell* is one fit: a data set, a draw, a method and a setting. It may give several rows (DMTRC gives the labels it
returns, the fully coupled ones and those of every task alone); they are written together, when the cell is finished. A
cell whose rows are all in the table, without an error and computed by this version of the library, is not run again;
rows of a cell that was cut short are dropped.
"""

from __future__ import annotations

import io
import os
import platform
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from mtclust import __version__
from paper.experiments.table import KEYS, Key, Row, RunTable, as_row, key_of, replace_file


class DataUnavailable(Exception):
    """The data of a cell could not be had: the run ends, for no method of the cell can be blamed."""


@dataclass(frozen=True)
class Outcome:
    """What a fit leaves behind: the values of one row."""

    method: str
    nmi: float | None = None
    nmi_of_starts: float | None = None
    nmi_per_task: Mapping[str, float] = field(default_factory=dict)
    objective: float | None = None
    seconds: float | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    arrays: Mapping[str, Any] = field(default_factory=dict)  # name → matrix, kept beside the table for the figures


@dataclass(frozen=True)
class Cell:
    """One fit of an experiment."""

    experiment: str
    dataset: str
    draw: int
    methods: tuple[str, ...]  # of every row the cell gives: more than one if a fit answers several questions
    kernel: str = ""
    solver: str = ""
    protocol: str = "no labels"
    setting: Mapping[str, Any] = field(default_factory=dict)  # what distinguishes the cell besides
    seed: int = 0

    def row(self, method: str, **values: Any) -> Row:
        """A row of the cell: its key, and these values."""
        own = {name: getattr(self, name) for name in KEYS if name not in ("method", "version")}
        return as_row(**own, method=method, version=__version__, **values)

    def keys(self) -> list[Key]:
        """The keys of all of its rows."""
        return [key_of(self.row(method)) for method in self.methods]


Execute = Callable[[Cell], Sequence[Outcome]]
_Finished = tuple[list[Row], dict[str, Any]]


def run_cells(cells: Sequence[Cell], execute: Execute, table: RunTable, *, n_jobs: int = 1) -> None:
    """Run the cells that are not in the table yet, in ``n_jobs`` processes, and put its rows into canonical order.

    ``execute(cell)`` returns one :class:`Outcome` per method of the cell and is importable by name, so that it can run
    in another process. What it raises becomes the ``error`` of the cell's rows; an ``OSError`` or ``ImportError`` means
    that its data cannot be had and ends the run with :class:`DataUnavailable`.
    """
    pending = _pending(cells, table)
    failed = 0
    with tqdm(total=len(cells), initial=len(cells) - len(pending), unit="cell") as progress:
        for rows, arrays in _finished(pending, execute, n_jobs):
            # first the matrices, then the rows: a cell that counts as finished has both
            for name, array in arrays.items():
                save_array(table.path.parent, name, array, __version__)
            table.append(rows)
            failed += bool(rows[0]["error"])
            what = f"{rows[0]['dataset']}, draw {rows[0]['draw']}, {rows[0]['method']}"
            progress.set_postfix_str(f"{failed} failed, last: {what}" if failed else f"last: {what}", refresh=False)
            progress.update()
    table.rewrite(table.read())


def _pending(cells: Sequence[Cell], table: RunTable) -> list[Cell]:
    rows = {key_of(row): row for row in table.read()}
    done = {key for key, row in rows.items() if not row["error"]}
    pending = [cell for cell in cells if not done.issuperset(cell.keys())]
    again = set().union(*map(Cell.keys, pending))
    table.rewrite(row for key, row in rows.items() if key not in again)
    return pending


def _finished(cells: Sequence[Cell], execute: Execute, n_jobs: int) -> Iterator[_Finished]:
    with warnings.catch_warnings():
        # joblib's comment on a run that was interrupted: the cells it names are run when the command is given again
        warnings.filterwarnings("ignore", message="[0-9]+ tasks which were still being processed")
        parallel = Parallel(n_jobs, return_as="generator_unordered", initializer=_end_with, initargs=(os.getpid(),))
        yield from parallel(delayed(_rows_of)(cell, execute) for cell in cells)


def _end_with(master: int) -> None:
    """Let this worker end with the process that started it, also when that is killed, and not finish its cell first."""

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(1)
        os._exit(1)

    if os.getpid() != master:  # not with a single job, which has no process of its own
        threading.Thread(target=watch, daemon=True).start()


def _rows_of(cell: Cell, execute: Execute) -> _Finished:
    begin = time.process_time()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # what the warnings say is in the table: coupling refused, relaxation collapsed, search stopped
        warnings.simplefilter("ignore")
        try:
            outcomes = {outcome.method: outcome for outcome in execute(cell)}
            if set(outcomes) != set(cell.methods):
                raise RuntimeError(f"the cell gave rows for {sorted(outcomes)}, not for {sorted(cell.methods)}")
        except (OSError, ImportError) as error:
            raise DataUnavailable(str(error)) from error
        except Exception as error:
            seconds, text = time.process_time() - begin, f"{type(error).__name__}: {error}"
            outcomes = {method: Outcome(method, seconds=seconds, error=text) for method in cell.methods}
    rows: list[Row] = []
    arrays: dict[str, Any] = {}
    for method in cell.methods:
        values = dict(vars(outcomes[method]))
        arrays |= values.pop("arrays")
        rows.append(cell.row(**values, versions=versions()))
    return rows, arrays


def save_array(directory: Path, name: str, array: Any, version_: str) -> None:
    """Keep a matrix in ``arrays/`` beside the table, in half precision: it is drawn, not computed with."""
    content = io.BytesIO()
    np.save(content, np.asarray(array, dtype=np.float16))
    replace_file(directory / "arrays" / version_ / f"{name}.npy", content.getvalue())


def load_array(directory: Path, name: str, version_: str) -> Any:
    """A matrix that a version of the library has left, or None if there is none of that name."""
    path = directory / "arrays" / version_ / f"{name}.npy"
    return np.load(path, allow_pickle=False).astype(np.float64) if path.exists() else None


@cache
def versions() -> str:
    """Versions of Python and the packages that compute, for the table."""
    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba")]
    return "; ".join([f"python {platform.python_version()}", f"mtclust {__version__}", *packages])
