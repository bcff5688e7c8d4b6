"""Sparse tables with very many columns (text): the search on some rows as a kernel matrix, all rows matrix-free.

The few rows of a search have an exact kernel matrix; their models then label all rows, and labels, models and Ω are
improved on all of them together without making anything dense.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import offsets_of, proportional
from mtclust.primal.labelling import TaskLabels
from mtclust.primal.matrix_free import MatrixFreeSystem, SparseTable
from mtclust.primal.rows import Data
from mtclust.primal.systems import System
from mtclust.problem.couplings import COUPLINGS
from mtclust.problem.feature_descent import best_labels, class_vectors, point_of_labels
from mtclust.problem.features import FeatureProblem
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Effort, Point

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WideSparseProblem(FeatureProblem):
    """Rows of a wide sparse table.

    Attributes
    ----------
    sample : KernelProblem
        The rows of the search.
    positions : list of ndarrays
        Which rows of every task these are.
    """

    sample: KernelProblem | None = None
    positions: list[NDArray[np.int64]] | None = None

    #: leave-one-out and the coupling test need blocks of an inverse, which only the few rows have
    judged_on_few = True

    @property
    def couples_labels(self) -> bool:
        return COUPLINGS[self.method].couples_labels

    @cached_property
    def system(self) -> System:
        assert isinstance(self.data.source, SparseTable)
        # every task alone is Ω = I/m: G = 1/(λ₁ + mλ₂)
        return MatrixFreeSystem(self.data.source, self.data.moments, self.lambda1, self.lambda2)

    def few(self, rng: np.random.Generator) -> Any:
        assert self.sample is not None
        bounds = proportional(self.bounds, self.data.moments.sizes, np.diff(self.sample.offsets))
        return replace(self.sample, method=self.method, bounds=bounds)

    def carried(self, few: Any, point: Point) -> Point:
        if not isinstance(few, KernelProblem):
            return point
        found = best_labels(self.data, self._models_of(point.labels, point.Z))
        other = point_of_labels(self.data, self.at(point.Z), found)
        other.n_iter = point.n_iter
        return other

    def carried_labels(self, positions: list[NDArray[np.int64]], labels: NDArray[np.int64], Z: Array) -> Point:
        found = best_labels(self.data, self._models_of(labels, Z))
        return point_of_labels(self.data, self.at(Z), found)

    def _models_of(self, labels: NDArray[np.int64], Z: Array) -> Array:
        """Models of the labels of the few rows in the columns of the table."""
        source, moments = self.data.source, self.data.moments
        assert isinstance(source, SparseTable)
        assert self.positions is not None
        sizes = [len(part) for part in self.positions]
        offsets = offsets_of(sizes)
        rows = SparseTable([source.take(i, part) for i, part in enumerate(self.positions)], offsets)
        few = Data(rows, rows.moments(bool(np.any(moments.mean)), moments.scale), self.bounds)
        tasks = []
        for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
            own = labels[a:b].astype(np.int32)
            tasks.append(TaskLabels(own, np.zeros(self.n_clusters), rows.class_sums(i, own, self.n_clusters)))
        system = MatrixFreeSystem(rows, few.moments, self.lambda1, self.lambda2)
        return system.condition(Z).models(class_vectors(few.moments, list(range(len(tasks))), tasks))

    def descend(self, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
        return super().descend(point, rng, replace(effort, exact=False))

    def leave_one_out(self, point: Point) -> Array:
        from mtclust.problem.leave_one_out import scores_matrix_free

        return scores_matrix_free(self, point)
