"""Data of the benchmarks of time: Gaussian mixtures in several related tasks, of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: mean distance between two cluster centres, in standard deviations of the noise
_SEPARATION = 4.2
#: how far the centres of a task are from the shared ones, relative to the distance between them
_TASK_DIFFERENCE = 0.3
#: elongated clusters: standard deviation along the one direction in which all clusters of all tasks are long
_LENGTH = 3.0


@dataclass(frozen=True)
class Cell:
    """One size of the problem."""

    rows: int
    tasks: int
    features: int = 20
    clusters: int = 5
    family: str = "isotropic"

    def __str__(self) -> str:
        return f"{self.family}, {self.rows} rows, {self.tasks} tasks, d = {self.features}, C = {self.clusters}"


@dataclass(frozen=True)
class Mixture:
    """Rows sorted by task; ``offsets`` says where each task begins."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    tasks: NDArray[np.int64]
    offsets: NDArray[np.int64]
    n_clusters: int

    @property
    def parts(self) -> list[NDArray[np.float64]]:
        """The rows of each task, without a copy."""
        return [self.X[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:])]


def draw(cell: Cell, seed: int) -> Mixture:
    """Clusters of equal size around centres that the tasks share up to small differences; tasks shifted at random.

    "isotropic": noise of variance 1 in all directions, for which k-means is the right model. "elongated": the same, but
    in one direction, the same in all clusters and tasks, the noise is three times as wide.
    """
    rng = np.random.default_rng([seed, cell.rows, cell.tasks, cell.features, cell.clusters])
    n, m, d, C = cell.rows, cell.tasks, cell.features, cell.clusters
    centres = rng.standard_normal((C, d))
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)[np.triu_indices(C, 1)].mean()
    centres *= _SEPARATION / apart
    X = rng.standard_normal((n, d))
    if cell.family == "elongated":
        direction = rng.standard_normal(d)
        direction /= np.linalg.norm(direction)
        X += np.outer(X @ direction, (_LENGTH - 1) * direction)
    offsets = np.linspace(0, n, m + 1).astype(np.int64)
    y, tasks = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        y[a:b], tasks[a:b] = np.arange(b - a) % C, i
        own = rng.standard_normal((C, d)) * _TASK_DIFFERENCE * _SEPARATION / np.sqrt(2 * d)
        X[a:b] += (centres + own + rng.standard_normal(d))[y[a:b]]
    return Mixture(X, y, tasks, offsets, C)
