"""The rows near a boundary that the polish exchanges, from chunks of rows.

An exchange of two rows gains at most e_j + e_k, e = (how much better another cluster is for the row) + 2a‖ψ‖²: only
rows with e + max e > 0 matter, and of these the first thousand. Every chunk therefore keeps its rows of highest e; one
merged list of the values tells where the cut is over all chunks, and only rows above it are sent, with some to spare:
exchanges within one task change the models of the others a little. Whether the rows to spare were enough is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.distributed.chunk import Changes, ChunkLabels, Reading, source_of, tasks_in
from mtclust.rows.moments import Moments, NearRows
from mtclust.rows.passes import FEW_ROWS, MOST_CANDIDATES, largest_pull, pulls_of, scores_of, wants_of

Array = NDArray[np.float64]
Positions = NDArray[np.int64]

#: rows beyond the cut that are sent too: so many bytes of features per task, within these numbers of rows
_SPARE_BYTES = 2**18
_SPARE_ROWS = (100, 1500)


def _spare(n_features: int) -> int:
    low, high = _SPARE_ROWS
    return min(high, max(low, _SPARE_BYTES // (8 * n_features)))


@dataclass(frozen=True)
class Question:
    """Models, prices and whitening factors of the tasks that are asked for."""

    moments: Moments
    tasks: list[int]
    W: Array
    prices: Array
    factors: dict[int, Array]

    @property
    def n_clusters(self) -> int:
        return self.W.shape[2]

    def eagerness(self, task: int, rows: NDArray[Any], labels: NDArray[np.int32], W: Array) -> tuple[Array, Array]:
        """How much better another cluster is for some rows, without and with their pull on the model."""
        n = len(rows)
        if int(self.moments.sizes[task]) <= FEW_ROWS:  # these are exchanged whole
            wants = np.full(n, np.inf)
        else:
            from mtclust.core import compiled

            (weights, constant), wants = self.moments.on_raw(task, W), np.empty(n)
            compiled.eagerness(scores_of(rows, weights), self.prices[task] - constant, labels, wants)
        pulls = pulls_of(self.moments, task, self.factors[task], rows, self.n_clusters)
        return wants, wants + pulls


@dataclass(frozen=True)
class Eager:
    """The rows of a task in a chunk with the highest e.

    Every other row of the chunk has at most ``rest``, and no ‖φ‖ is larger than ``norm``.
    """

    positions: Positions
    eager: Array
    rows: NDArray[Any]
    labels: NDArray[np.int32]
    rest: float
    norm: float


def most_eager(
    raw: Any, task_numbers: NDArray[Any], base: Positions, reading: Reading, question: Question,
    labels: ChunkLabels, changes: Changes,
) -> dict[int, Eager]:  # fmt: skip
    """Every chunk's rows of highest e."""
    source, now = source_of(raw, task_numbers, reading), labels.changed(changes)
    most = MOST_CANDIDATES + _spare(source.n_features) + 1
    result = {}
    for task in sorted(set(tasks_in(source).tolist()) & set(question.tasks)):
        mine = now[source.offsets[task] : source.offsets[task + 1]]
        own, C = question.moments, question.n_clusters
        factor = question.factors[task]
        wants = wants_of(source, task, own, question.W[task], question.prices[task], mine)
        near, rest = np.arange(len(wants)), -np.inf
        if len(wants) > most:
            # a row outside has a lower e than each of the rows that want another cluster most
            least = float(-np.partition(-wants, most - 1)[most - 1])
            near = np.flatnonzero(wants >= least - largest_pull(own, task, factor, C))
        rows = source.take(task, near)
        eager = question.eagerness(task, rows, mine[near], question.W[task])[1]
        if len(near) > most:
            kept = np.sort(np.argpartition(-eager, most - 1)[:most])
            near, rows, eager = near[kept], rows[kept], eager[kept]
        if len(wants) > most:
            rest = float(eager.min())
        norm = max(float(np.linalg.norm(own.centred(task, block), axis=1).max()) for _, _, block in source.blocks(task))
        result[task] = Eager(base[task] + near, eager, rows, mine[near].copy(), rest, norm)
    return result


Levels = dict[int, tuple[Array, float, float]]


def levels(found: dict[int, Eager]) -> Levels:
    """The values of e by task, in descending order, the most that any other row has, and the largest norm."""
    return {task: (-np.sort(-part.eager), part.rest, part.norm) for task, part in found.items()}


def merge_levels(parts: list[Levels]) -> Levels:
    result: Levels = {}
    most = MOST_CANDIDATES + _SPARE_ROWS[1] + 1
    for part in parts:
        for task, (values, rest, norm) in part.items():
            if task in result:
                values = -np.sort(-np.concatenate([result[task][0], values]))[:most]
                rest, norm = max(rest, result[task][1]), max(norm, result[task][2])
            result[task] = values, rest, norm
    return result


def cut_of(values: Array, rest: float, n_features: int) -> float:
    """Rows are sent down to this e: the candidates and some to spare."""
    last = min(int(np.count_nonzero(values + values[0] > 0)), MOST_CANDIDATES) + _spare(n_features)
    return max(rest, float(values[last])) if last < len(values) else rest


def above(found: dict[int, Eager], cuts: dict[int, tuple[float, float]]) -> dict[int, Eager]:
    """The rows above the cuts, which come with the largest norm of all chunks."""
    result = {}
    for task, part in found.items():
        kept = np.flatnonzero(part.eager >= cuts[task][0])
        rows = part.positions[kept], part.eager[kept], part.rows[kept], part.labels[kept]
        result[task] = Eager(*rows, *cuts[task])
    return result


def joined(parts: list[Eager]) -> Eager:
    """The rows of a task from all chunks."""
    positions, eager, rows, labels = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("positions", "eager", "rows", "labels")
    )
    return Eager(positions, eager, rows, labels, parts[0].rest, parts[0].norm)


def near_rows(question: Question, task: int, found: Eager, W: Array) -> NearRows | None:
    """The rows under the models of now; None if rows that were not sent could matter by now."""
    wants, eager = question.eagerness(task, found.rows, found.labels, W)
    if np.isfinite(found.rest):
        most = float(eager.max())
        needed = -most
        if np.count_nonzero(eager + most > 0) > MOST_CANDIDATES:
            needed = max(needed, float(-np.partition(-eager, MOST_CANDIDATES - 1)[MOST_CANDIDATES - 1]))
        moved = W - question.W[task]
        between = np.linalg.norm(moved[:, :, None] - moved[:, None, :], axis=0).max()
        if found.rest + between * found.norm > needed:
            return None
    return NearRows(found.positions, wants, found.rows, found.labels, complete=True)
