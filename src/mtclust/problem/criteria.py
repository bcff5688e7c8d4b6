r"""What labels are judged by when tasks are held as kernel matrices.

A search moves labels only through a :class:`Criterion`: it says what a labelling is worth under one coupling, how the
labels of one task are refined while those of the others stay, and what its tasks can begin with.
:class:`PaperObjective` is the paper's J, whose labels change by exchanges within the cluster sizes. Values are to be
lowered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Conditioned
from mtclust.core.labels import label_codes
from mtclust.problem.pool import exchange_rows, task_pool
from mtclust.problem.protocol import Start

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


class TaskTerm(Protocol):
    """A criterion as a function of the labels of one task, those of the others fixed."""

    @property
    def linear_term(self) -> Array | None:
        """L_i, what the other tasks say; None where they say nothing."""

    def value(self, labels: Labels) -> float: ...

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        """Improve labels within the sizes, in place, until nothing does; the value and how often they changed.

        Only the rows ``free`` may move; all by default.
        """

    def cost_of_names(self, labels: Labels) -> Array:
        """What naming cluster c (row) as d (column) adds to the value, up to a constant."""


class Criterion(Protocol):
    """Judges labels under one coupling."""

    @property
    def name(self) -> str:
        """One letter, J or E."""

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        """The targets (n × C) that models are fitted to."""

    def value(self, at: Conditioned, codes: Array) -> float:
        """Of all tasks; lower is better."""

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        """The criterion seen by one task; ``codes`` are those of all rows, ``alpha`` is M·codes where it is known."""

    def closed_form(self, at: Conditioned, codes: Array) -> Array:
        """The coupling matrix to try next for these labels."""

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        """Scale and offset (m × C each) that turn models into scores of clusters; None where models are scores."""

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Start]:
        """Distinct good labellings of one task alone, best first."""


@dataclass(frozen=True)
class _QuadraticTerm:
    """½⟨Y, MY⟩ + ⟨Y, L⟩ of one task."""

    M: Array
    linear_term: Array | None
    n_clusters: int

    def value(self, labels: Labels) -> float:
        Y = label_codes(labels, self.n_clusters)
        linear = 0.0 if self.linear_term is None else float(np.vdot(Y, self.linear_term))
        return 0.5 * float(np.vdot(Y, self.M @ Y)) + linear

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        if free is None or len(free) == len(labels):
            return exchange_rows(self.M, self.linear_term, labels, lower, upper, seed)
        # the same form in the codes of the other rows, to which known ones add a linear term
        known = np.setdiff1d(np.arange(len(labels)), free)
        L = self.M[np.ix_(free, known)] @ label_codes(labels[known], self.n_clusters)
        L = L if self.linear_term is None else L + self.linear_term[free]
        own = labels[free]
        counts = np.bincount(labels[known], minlength=self.n_clusters)
        low, high = np.maximum(lower - counts, 0), np.maximum(upper - counts, 0)
        part = np.ascontiguousarray(self.M[np.ix_(free, free)])
        _, moves = exchange_rows(part, L, own, low, high, seed) if len(free) else (0.0, 0)
        labels[free] = own
        return self.value(labels), moves

    def cost_of_names(self, labels: Labels) -> Array:
        if self.linear_term is None:
            return np.zeros((self.n_clusters, self.n_clusters))
        return label_codes(labels, self.n_clusters).T @ self.linear_term


@dataclass(frozen=True)
class PaperObjective:
    """J = ½⟨Y, MY⟩ (paper, eq. 20 with W eliminated): labels are exchanged within the cluster sizes."""

    name: str = "J"

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        return label_codes(labels, n_clusters)

    def value(self, at: Conditioned, codes: Array) -> float:
        return at.objective(codes)

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        L = at.linear_term(task, codes, alpha) if at.coupling.couples_labels else None
        return _QuadraticTerm(at.block(task), L, codes.shape[1])

    def closed_form(self, at: Conditioned, codes: Array) -> Array:
        return at.closed_form(codes)

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        return None

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Start]:
        pool = task_pool(kernel, ridge, lower, upper, n_init, seed)
        return [Start(labels, float(value)) for labels, value in zip(pool.labels, pool.objectives)]
