"""Two-dimensional views of every task: principal components of all tasks together, and of the task's own rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.app.tables.columns import leading_axes

Array = NDArray[np.float64]

#: points of all tasks together, and of one task
MOST_POINTS, MOST_PER_TASK, LEAST_PER_TASK = 6000, 1500, 60
#: rows that the components are computed from
_ROWS = 4000
#: coordinates are rounded to whole numbers up to this
SIDE = 1000


@dataclass(frozen=True)
class View:
    """The points of one task.

    Attributes
    ----------
    task : int
    rows : ndarray
        The rows drawn; a sample where there are many.
    n_rows : int
        Of the task.
    common, own : ndarray of shape (len(rows), 2)
        Positions from 0 to ``SIDE`` on the components of all tasks (one scale for all) and of the task's own rows.
    explained : float
        Share of the task's variance that its own two components show.
    """

    task: int
    rows: NDArray[np.int64]
    n_rows: int
    common: NDArray[np.int64]
    own: NDArray[np.int64]
    explained: float


def task_views(X: Any, task_numbers: NDArray[np.int64], tasks: list[int], seed: int = 0) -> list[View]:
    """Views of some tasks; rows are drawn at random where there are more than can be shown."""
    rng = np.random.default_rng(seed)
    limit = int(np.clip(MOST_POINTS // max(len(tasks), 1), LEAST_PER_TASK, MOST_PER_TASK))
    members = {task: np.flatnonzero(task_numbers == task) for task in tasks}
    drawn = {task: _sample(rows, limit, rng) for task, rows in members.items()}
    # the components of all tasks: of rows centred within their tasks, every task with the same say
    share = max(2, _ROWS // max(len(tasks), 1))
    centres = {task: _mean(X[rows]) for task, rows in members.items()}
    basis = {task: _sample(rows, share, rng) for task, rows in members.items()}
    common_axes = _components([X[basis[t]] for t in tasks])[0]
    positions = {task: _project(X[drawn[task]], centres[task], common_axes) for task in tasks}
    frame = _frame(np.concatenate(list(positions.values())))
    views = []
    for task in tasks:
        axes, explained = _components([X[_sample(members[task], _ROWS, rng)]])
        own = _project(X[drawn[task]], centres[task], axes)
        views.append(
            View(
                task, drawn[task], len(members[task]), _to_grid(positions[task], *frame),
                _to_grid(own, *_frame(own)), explained,
            )
        )  # fmt: skip
    return views


def _sample(rows: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _mean(rows: Any) -> Array:
    return np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()


def _components(parts: list[Any]) -> tuple[Array, float]:
    """Two leading principal axes (d × 2) of rows that are centred part by part, and the share of variance they show."""
    rows: Any = sp.vstack(parts, format="csr").astype(np.float64) if sp.issparse(parts[0]) else np.concatenate(parts)
    axes, share = leading_axes(rows, np.repeat(np.arange(len(parts)), [part.shape[0] for part in parts]), 2)
    two = np.zeros((rows.shape[1], 2))
    two[:, : len(axes)] = axes.T
    return two, share


def _project(rows: Any, centre: Array, axes: Array) -> Array:
    return np.asarray(rows @ axes) - centre @ axes


def _frame(positions: Array) -> tuple[Array, float]:
    """Middle and half side of the square that holds all positions."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    return (low + high) / 2, float((high - low).max()) / 2


def _to_grid(positions: Array, middle: Array, reach: float) -> NDArray[np.int64]:
    scaled = (positions - middle) / reach if reach > 0 else np.zeros_like(positions)
    return np.rint((scaled + 1) / 2 * SIDE).astype(np.int64)
