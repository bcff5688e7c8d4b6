"""The paper's toy tasks from UCI pendigits: two groups of digits, three small draws of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.datasets.tasks import TaskData, one_per
from paper.datasets.files import DataFile, check_content, obtain, scale_columns

#: the digits of tasks 1 to 3 and of tasks 4 to 6
DIGIT_GROUPS = ((0, 3, 6, 8, 9), (1, 2, 4, 5, 7))
#: draws of each group
TASKS_PER_GROUP = 3
#: the tasks of each job, numbered as in the paper
JOBS = {1: (1, 2, 3), 2: (4, 5, 6), 3: (1, 2, 3, 4, 5, 6)}

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/pendigits"
_TRAIN, _TEST = (
    DataFile(f"pendigits/{name}", sha256, f"{_UCI}/{name}")
    for name, sha256 in {
        "pendigits.tra": "e2b9eb9f0d0467e2b64a4816a3420edf2b8043447576f4b84337aba44a9f97d3",
        "pendigits.tes": "8bd03229c5c5291fefe43e45465dd948d2645bf23328b9d993e0b777666b2015",
    }.items()
)
#: of the rows, one byte per number, training file before test file
_CONTENT = "167121c34cccba273b4a2de0e2a152ae98aa4f80ce582ec37ef82dac0eab4eaf"
#: two coordinates of eight points, to which a pen stroke is resampled
_N_FEATURES = 16
_NAMES = tuple(map(str, range(10)))


def fetch_pendigits() -> TaskData:
    """All 10 992 rows of pendigits in their canonical order, as one task: raw integers, ``target`` is the digit.

    The order is pendigits.tra followed by pendigits.tes: the order the row numbers in :attr:`TaskData.rows` count in.
    """
    table = _read_table()
    tasks, rows = np.zeros(len(table), dtype=np.int64), np.arange(len(table))
    return TaskData(table[:, :_N_FEATURES], table[:, _N_FEATURES], tasks, _NAMES, None, rows)


def fetch_pendigits_tasks(job: int = 1, seed: int = 0, *, rows_per_class: int | Sequence[int] = 20) -> TaskData:
    """The paper's jobs on pendigits: tasks 1 to 3 hold the digits 0, 3, 6, 8, 9, tasks 4 to 6 the digits 1, 2, 4, 5, 7.

    All six tasks are drawn once per seed, so that the jobs of one seed are paired: Job 3 holds the rows of Jobs 1 and
    2. Rows within a task are distinct; two tasks of one group are separate draws and may share a row.

    ``seed`` says which draw, the same whatever the source of the files; ``rows_per_class`` the rows of each digit in a
    task, or one number per digit of the group (in increasing order). Each feature is mapped to [0, 1] over the rows of
    the job, as in the paper. ``tasks`` has the paper's task numbers, ``rows`` those of :func:`fetch_pendigits`.
    """
    if job not in JOBS:
        raise ValueError(f"job must be 1, 2 or 3; got {job!r}.")
    table = _read_table()
    digits = table[:, _N_FEATURES]
    sizes = one_per("rows_per_class", rows_per_class, "classes", len(DIGIT_GROUPS[0]), 1)
    drawn = _draw_six_tasks(digits, seed, sizes)
    rows = np.concatenate([drawn[task - 1] for task in JOBS[job]])
    data, tasks = scale_columns(table[rows, :_N_FEATURES]), np.repeat(JOBS[job], sum(sizes))
    return TaskData(data, digits[rows], tasks, _NAMES, None, rows)


def _draw_six_tasks(digits: NDArray[Any], seed: int, sizes: Sequence[int]) -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    tasks = []
    for group in DIGIT_GROUPS:
        pools = [np.flatnonzero(digits == digit) for digit in group]
        for digit, pool, size in zip(group, pools, sizes):
            if size > len(pool):
                raise ValueError(
                    f"rows_per_class asks for {size} rows of digit {digit}, but there are {len(pool)}; ask for fewer."
                )
        for _ in range(TASKS_PER_GROUP):
            tasks.append(np.concatenate([rng.choice(pool, size, replace=False) for pool, size in zip(pools, sizes)]))
    return tasks


def _read_table() -> NDArray[np.int64]:
    table = np.concatenate([obtain([file], _parse) for file in (_TRAIN, _TEST)])
    check_content([[table.astype(np.uint8).tobytes()]], _CONTENT, "pendigits", "its two files")
    return table


def _parse(path: Path) -> NDArray[np.int64]:
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.int64, ndmin=2)
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path.name} is not a table of integers separated by commas: {error}") from error
    if table.shape[1] != _N_FEATURES + 1:
        raise ValueError(f"{path.name} has {table.shape[1]} columns; expected {_N_FEATURES} features and the digit.")
    return table
