"""What a solver gets and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.coupling import Conditioned
from mtclust.labels import SizeBounds
from mtclust.solvers.relaxation import Relaxation

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Rows sorted by task, seen through their centred and scaled kernel, with the sizes clusters may have."""

    kernel: Array
    offsets: NDArray[np.int64]
    bounds: SizeBounds
    lambda1: Array  # one value per task
    lambda2: float

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return self.bounds.n_clusters

    @property
    def ridge(self) -> Array:
        """λ₁ + mλ₂: the ridge of every task alone."""
        return self.lambda1 + self.n_tasks * self.lambda2

    def rows(self, task: int) -> slice:
        return slice(int(self.offsets[task]), int(self.offsets[task + 1]))

    def restrict(self, tasks: NDArray[np.int64]) -> Problem:
        """Some of the tasks, with λ₂ scaled by m/|tasks| so that the uncoupled model of each stays the same."""
        rows = np.concatenate([np.arange(self.offsets[i], self.offsets[i + 1]) for i in tasks])
        sizes = np.diff(self.offsets)[tasks]
        return Problem(
            np.ascontiguousarray(self.kernel[np.ix_(rows, rows)]),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            self.bounds.restrict(tasks),
            self.lambda1[tasks],
            self.lambda2 * self.n_tasks / len(tasks),
        )


@dataclass(frozen=True)
class SolverOptions:
    """How hard to search.

    Attributes
    ----------
    n_init : int
        Starts of the coupled search (labellings per task that enter it).
    single_task_n_init : int
        Random starts of every task alone.
    n_seeds : int
        Labellings per task that seed a restart of the others.
    """

    n_init: int = 8
    single_task_n_init: int = 40
    n_seeds: int = 4
    max_iter: int = 40
    tol: float = 1e-4
    n_jobs: int | None = None


@dataclass
class SolverResult:
    """Labels of the sorted rows, the coupling matrix, and how they were found."""

    labels: NDArray[np.int64]
    Z: Array
    state: Conditioned
    objective: float
    history: list[dict[str, Any]]
    converged: bool
    n_iter: int
    single_task_labels: NDArray[np.int64]
    similarity: Array
    groups: list[NDArray[np.int64]] = field(default_factory=list)
    model_codes: Array | None = None  # what the models are fitted to, where that is not the labels
    relaxation: Relaxation | None = None  # of the cutting-plane solver
