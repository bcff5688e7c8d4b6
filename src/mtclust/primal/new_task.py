"""A task that was not in a fit at scale, from what that fit kept: moments and class vectors of the known tasks.

As in :mod:`mtclust.new_task` the labels of the new task and the enlarged coupling are found together, everything else
held fixed, with λ₂ scaled by m/(m+1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.alignment import align_task_means, products_of_means
from mtclust.labels import SizeBounds
from mtclust.primal.labelling import TaskLabels
from mtclust.primal.rows import Moments, Source, TableRows, moments
from mtclust.primal.search import Data, State, begin, class_vector, code_scale, descend
from mtclust.primal.solve import PrimalOptions, PrimalProblem
from mtclust.primal.starts import first_models
from mtclust.primal.systems import objective
from mtclust.solvers.exchange import first_relationship

Array = NDArray[np.float64]


@dataclass(frozen=True)
class _LastTask:
    """A source whose last task has rows; those of the others are gone."""

    rows: TableRows
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def blocks(self, task: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        assert task == len(self.offsets) - 2
        return self.rows.blocks(0)

    def take(self, task: int, positions: NDArray[np.int64]) -> NDArray[Any]:
        assert task == len(self.offsets) - 2
        return self.rows.take(0, positions)

    def whole(self, task: int) -> NDArray[Any] | None:
        return self.rows.whole(0)


@dataclass(frozen=True)
class Known:
    """What is known of the fitted tasks."""

    moments: Moments
    b: Array
    counts: NDArray[np.int64]
    bounds: SizeBounds


def cluster_new_task(
    known: Known, method: str, table: NDArray[Any], bounds: SizeBounds, lambda1: Array, lambda2: float, centre: bool,
    options: PrimalOptions, rng: np.random.Generator,
) -> tuple[State, Data, NDArray[Any] | None]:  # fmt: skip
    """Labels of the rows in ``table`` (raw features) as one more task; ``bounds`` are theirs.

    Returns the state, the data of all tasks, and what the raw rows were shifted by.
    """
    m, n = known.moments.n_tasks, len(table)
    rows = TableRows(table, np.array([0, n]))
    rows = rows.kept_near_zero() if centre else rows
    own = moments(rows, centre, scale=known.moments.scale or None)
    alone = PrimalProblem(Data(rows, own, bounds), "independent", lambda1.mean(keepdims=True), m * lambda2)
    first = begin(
        alone.data, alone.alone(), np.eye(1), first_models(alone.ridge, alone.data, options.n_init, rng)[0][0][None]
    )
    first = descend(
        alone.data, alone.alone(), first, rng, max_rounds=options.max_iter, tol=options.tol, stage="new task alone",
        learn=False,
    )  # fmt: skip
    both = _joined(known.moments, own)
    everything = SizeBounds(
        np.vstack([known.bounds.lower, bounds.lower]), np.vstack([known.bounds.upper, bounds.upper])
    )
    data = Data(_last_of(rows, both), both, everything)
    task = first.tasks[0]
    similarity = _take_known_ids(known, data, task)
    shrunk = lambda2 * m / (m + 1)
    problem = PrimalProblem(data, method, np.append(lambda1, lambda1.mean()), shrunk)
    system = problem.system()
    Z = first_relationship(similarity) if method == "relationship" else system.uncoupled()
    solver = system.condition(Z)
    b = np.concatenate([known.b, class_vector(both, m, task)[None]])
    W = solver.models(b)
    nothing = TaskLabels.none(0, data.bounds.n_clusters, both.n_features)
    state = State([nothing] * m + [task], solver, b, W, objective(b, W))
    learn = method != "independent"
    state = descend(
        data, system, state, rng, max_rounds=options.max_iter, tol=options.tol, stage="new task", active=[m],
        learn=learn,
    )  # fmt: skip
    shift = None if rows.shift is None else np.vstack([np.zeros((m, both.n_features)), rows.shift])
    return state, data, shift


def _joined(known: Moments, own: Moments) -> Moments:
    return Moments(
        np.append(known.sizes, own.sizes),
        np.vstack([known.mean, own.mean]),
        np.vstack([known.total, own.total]),
        np.concatenate([known.gram, own.gram]),
        known.scale,
        np.append(known.largest, own.largest),
    )


def _last_of(rows: TableRows, both: Moments) -> Source:
    return _LastTask(rows, np.concatenate([[0], np.cumsum(both.sizes)]).astype(np.int64))


def _take_known_ids(known: Known, data: Data, task: TaskLabels) -> Array:
    """Name the clusters of the new task like those of the known ones; returns the similarity of all tasks."""
    m, C = known.counts.shape
    a, rest = code_scale(C)
    new = class_vector(data.moments, m, task)
    b = np.concatenate([known.b, new[None]])
    counts = np.vstack([known.counts, task.counts])
    # b = (2/n)(a·class sums − rest·total): back to class means
    scaled = 0.5 * data.moments.sizes[:, None, None] * b
    means = (scaled + rest * data.moments.total[:, :, None]) / (a * np.maximum(counts, 1))[:, None, :]
    products = products_of_means(means.transpose(0, 2, 1))
    new_ids, similarity = align_task_means(products, counts, data.bounds, m)
    task.rename(new_ids)
    return similarity
