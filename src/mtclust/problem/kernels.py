"""Rows held as one kernel matrix: exact, for as many rows as that matrix can be inverted for."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mtclust.core.alignment import class_mean_products
from mtclust.core.assignment import assign
from mtclust.core.class_means import ClassMeans
from mtclust.core.coupling import COUPLINGS, Conditioned, SharedFeatures
from mtclust.core.kernels import EigenFeatures
from mtclust.core.labels import SizeBounds, counts_by_task, offsets_of, rows_of_tasks
from mtclust.core.model import DecisionModel, KernelOrigin, build_model
from mtclust.problem.criteria import Criterion, PaperObjective
from mtclust.problem.kernel_descent import ROUNDING, ExactLabels, KernelFit
from mtclust.problem.protocol import BaseProblem, Method, Point, SearchOptions, Start
from mtclust.util.messages import counted

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: random starts of every task alone, where the options do not say how many
SINGLE_TASK_STARTS = 40
#: up to so many rows N × N is factorised as quickly as anything smaller
_FACTORISED = 250
#: digits of a kernel that tell tasks apart
_DIGITS = 6


@dataclass(frozen=True)
class KernelProblem(BaseProblem):
    """Rows sorted by task, seen through their centred and scaled kernel.

    Attributes
    ----------
    kernel : ndarray of shape (N, N)
    offsets : ndarray of shape (m + 1,)
    bounds : SizeBounds
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    method : {"relationship", "features", "independent"}
    features : EigenFeatures, optional
        Of the kernel, where D is learned.
    criterion : Criterion
        What labels are judged by.
    proposed : list of lists of labels, optional
        Labellings of every task that a descent tries.
    origin : KernelOrigin, optional
        Only needed for :meth:`decision`.
    held : ndarray of shape (N,), optional
        True for rows whose labels stay: their clusters are known.
    """

    kernel: Array
    offsets: NDArray[np.int64]
    bounds: SizeBounds
    lambda1: Array
    lambda2: float
    method: Method = "relationship"
    features: EigenFeatures | None = None
    criterion: Criterion = field(default_factory=PaperObjective)
    proposed: list[list[Labels]] | None = None
    origin: KernelOrigin | None = None
    held: NDArray[np.bool_] | None = None
    _last: list[Conditioned] = field(default_factory=list, init=False, repr=False, compare=False)

    #: labels are improved by single exchanges and moves
    label_step = ExactLabels

    @cached_property
    def coupling(self) -> Any:
        """How the tasks are coupled, for every Z."""
        kind, rows = COUPLINGS[self.method], self.kernel if self.features is None else self.features
        table = self._table() if len(self.kernel) > _FACTORISED else None
        return kind.of(rows, self.offsets, self.lambda1, self.lambda2, table)

    def _table(self) -> Array | None:
        """Explicit features of the rows of a linear kernel, where mr < N."""
        origin = self.origin
        if origin is None or origin.centred.matrix is not self.kernel or origin.kernel.kind != "linear":
            return None
        rows, scale = origin.rows, origin.centred.scale
        if sp.issparse(rows) or self.n_tasks * rows.shape[1] >= len(rows) or not scale > 0:
            return None
        if origin.centred.centred:
            sizes = np.diff(self.offsets)
            rows = rows - np.repeat(np.add.reduceat(rows, self.offsets[:-1]) / sizes[:, None], sizes, axis=0)
        return np.asarray(rows / np.sqrt(scale))

    def at(self, Z: Array) -> Conditioned:
        """The quadratic problem for one coupling matrix; the last one is kept, for restarts share it."""
        last = self._last[0] if self._last else None
        if last is None or not np.array_equal(last.Z, Z):
            last = self.coupling.condition(Z)
            self._last[:] = [last]
        return last

    def rows(self, task: int) -> slice:
        return slice(int(self.offsets[task]), int(self.offsets[task + 1]))

    @cached_property
    def free(self) -> list[Labels | None]:
        """The rows of every task whose labels may change; None where these are all."""
        if self.held is None:
            return [None] * self.n_tasks
        parts = [self.held[self.rows(task)] for task in range(self.n_tasks)]
        return [np.flatnonzero(~held) if held.any() else None for held in parts]

    def codes(self, labels: Labels) -> Array:
        return self.criterion.codes(labels, self.n_clusters)

    # -- other problems ------------------------------------------------------------------------------------------

    def alone(self) -> KernelProblem:
        """The same rows, every task by itself with the ridge λ₁ + mλ₂."""
        return self._alone if self.coupling.learns else self

    @cached_property
    def _alone(self) -> KernelProblem:
        return replace(self, method="independent", features=None, proposed=None)

    def restrict(self, tasks: NDArray[np.int64]) -> KernelProblem:
        """Some of the tasks, λ₂ scaled by m over their number so that the uncoupled model of each stays the same."""
        rows = rows_of_tasks(self.offsets, tasks)
        sizes = np.diff(self.offsets)[tasks]
        return replace(
            self,
            kernel=np.ascontiguousarray(self.kernel[np.ix_(rows, rows)]),
            offsets=offsets_of(sizes),
            bounds=self.bounds.restrict(tasks),
            lambda1=self.lambda1[tasks],
            lambda2=self.lambda2 * self.n_tasks / len(tasks),
            proposed=None if self.proposed is None else [self.proposed[i] for i in tasks],
        )

    def with_bounds(self, bounds: SizeBounds) -> KernelProblem:
        return replace(self, bounds=bounds)

    def few(self, rng: np.random.Generator) -> KernelProblem:
        """The rows that the search runs on: all."""
        return self

    def carried(self, few: Any, point: Point) -> Point:
        """The point on all rows that continues one on ``few``."""
        return point

    def carried_labels(self, positions: list[NDArray[np.int64]], labels: Labels, Z: Array) -> Point:
        """The point on all rows that continues labels of some rows of every task: the others follow their models."""
        known = np.concatenate([a + part for a, part in zip(self.offsets, positions)])
        sizes = [len(part) for part in positions]
        few = replace(
            self if self.couples_labels else self.alone(),  # D of other rows is in other coordinates
            kernel=np.ascontiguousarray(self.kernel[np.ix_(known, known)]),
            offsets=offsets_of(sizes),
        )
        at, codes = few.at(Z if self.couples_labels else few.uncoupled()), few.codes(labels)
        predictors, weights = at.predictors(codes), few.criterion.decision_weights(at, codes)
        everywhere = np.empty(len(self.kernel), dtype=np.int64)
        for task in range(self.n_tasks):
            rows = self.rows(task)
            scores = self.kernel[rows, known] @ predictors[task]
            if weights is not None:
                scores = scores * weights[0][task] + weights[1][task]
            everywhere[rows] = assign(-scores, self.bounds.lower[task], self.bounds.upper[task])
        everywhere[known] = labels
        return self.point(everywhere, Z if self.couples_labels else self.uncoupled())

    def proposing(self, starts: list[list[Start]]) -> KernelProblem:
        """The same problem, whose descents try these labellings of whole tasks."""
        return replace(self, proposed=[[start.labels for start in task if start.labels is not None] for task in starts])

    # -- points --------------------------------------------------------------------------------------------------

    def starts(self, options: SearchOptions, rng: np.random.Generator, Z: Array | None = None) -> list[list[Start]]:
        """For every task what it can begin with, best first; under a coupling Z, or every task alone."""
        first = int(rng.integers(2**31))
        if Z is None:
            kernel, ridge, n_init = self.kernel, self.ridge, options.single_task_n_init or SINGLE_TASK_STARTS
        else:
            assert isinstance(self.coupling, SharedFeatures)
            kernel, ridge, n_init = self.coupling.gain_kernel(Z), np.ones(self.n_tasks), options.n_init
        seeds = [_seed_of(self.kernel[a:b, a:b], first) for a, b in zip(self.offsets[:-1], self.offsets[1:])]
        jobs = (
            delayed(self.criterion.starts_of_task)(
                kernel[a:b, a:b], float(ridge[i]), self.bounds.lower[i], self.bounds.upper[i], n_init, seeds[i]
            )
            for i, (a, b) in enumerate(zip(self.offsets[:-1], self.offsets[1:]))
        )
        reported = counted(jobs, "clustering alone: task", self.n_tasks)
        return list(Parallel(n_jobs=options.n_jobs, prefer="threads")(reported))

    def point(self, labels: Labels, Z: Array) -> Point:
        """Evaluate labels under a coupling matrix."""
        at = self.at(Z)
        bounds = self.bounds.fitted(labels, self.offsets)
        if self.couples_labels:
            # which clusters a task has was decided by their means; the objective confuses neighbours more often
            bounds = bounds.fixed()
        return Point(KernelFit(labels.copy(), at, bounds), self.criterion.value(at, self.codes(labels)))

    def continued(self, point: Point, Z: Array) -> Point:
        """The labels of a point, which is not changed, under the bounds of this problem and a coupling matrix."""
        return self.point(point.labels, Z)

    def point_of(self, starts: Sequence[Start], Z: Array) -> Point:
        """The point of one start per task under a coupling matrix."""
        return self.point(np.concatenate([start.labels for start in starts]), Z)

    def seeded(self, task: int, start: Start, Z: Array) -> Point:
        """The point in which all tasks are labelled through the model of one."""
        assert start.labels is not None
        rows = self.rows(task)
        alone = self.alone()
        alpha = alone.at(alone.uncoupled()).block(task) @ self.codes(start.labels)
        labels = np.empty(len(self.kernel), dtype=np.int64)
        for other in range(self.n_tasks):
            if other == task:
                labels[rows] = start.labels
                continue
            scores = self.kernel[self.rows(other), rows] @ alpha
            labels[self.rows(other)] = assign(-scores, self.bounds.lower[other], self.bounds.upper[other])
        return self.point(labels, Z)

    def starts_of(self, point: Point) -> list[Start]:
        """What every task has at a point."""
        return [Start(point.labels[self.rows(task)]) for task in range(self.n_tasks)]

    def closed_form(self, point: Point) -> Array:
        """The coupling matrix to try next for these labels."""
        return point.fit.at.closed_form(self.codes(point.labels))

    def take(self, point: Point, Z: Array) -> bool:
        """Move to another coupling matrix if that lowers the value."""
        at = self.coupling.condition(Z)
        value = self.criterion.value(at, self.codes(point.labels))
        if value > point.value - ROUNDING * abs(point.value):
            return False
        point.fit.at, point.value = at, value
        return True

    def class_counts(self, point: Point) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""
        return counts_by_task(point.labels, self.offsets, self.n_clusters)

    def class_means(self, point: Point) -> ClassMeans:
        return ClassMeans(
            self.class_counts(point), class_mean_products(self.kernel, self.offsets, point.labels, self.n_clusters)
        )

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        """Other names (m × C) of the clusters of every task, the value unchanged; the point given is used up."""
        labels = np.concatenate([ids[point.labels[self.rows(i)]] for i, ids in enumerate(new_ids)])
        fit = KernelFit(labels, point.fit.at, self.bounds.fitted(labels, self.offsets))
        return replace(point, fit=fit)

    # -- what is kept --------------------------------------------------------------------------------------------

    def decision(self, point: Point, codes: Array | None = None) -> DecisionModel:
        """The model that scores new rows; ``codes`` are what it is fitted to, where these are not the labels.

        Labels that follow from the model, and not it from them, may be of any cluster.
        """
        assert self.origin is not None
        present = self.bounds.fitted(point.labels, self.offsets).present
        if codes is None:
            codes = self.codes(point.labels)
        else:
            present = np.ones_like(present)
        predictors = point.fit.at.predictors(codes)
        weights = self.criterion.decision_weights(point.fit.at, codes)
        if weights is not None:
            predictors = predictors * weights[0][:, None, :]
        model = build_model(self.origin, predictors, present)
        return model if weights is None else replace(model, intercept=model.intercept + weights[1])

    def leave_one_out(self, point: Point, codes: Array | None = None) -> Array:
        """Scores (N × C) of all rows, each from models that were fitted without it; −∞ for absent clusters."""
        from mtclust.problem.leave_one_out import scores_with_kernels

        return scores_with_kernels(self, point, codes)

    def kept(self, point: Point) -> Any:
        from mtclust.problem.kept import KernelKept

        assert self.origin is not None
        origin, centred = self.origin, self.origin.centred
        return KernelKept(
            origin.kernel, None if origin.kernel.kind == "precomputed" else origin.rows, self.offsets, centred.scale,
            centred.centred, point.labels, self.bounds.fitted(point.labels, self.offsets), self.method, self.lambda1,
            self.lambda2, None if self.features is None else self.features.rank, origin.centres is not None,
            self.criterion.name,
        )  # fmt: skip


def _seed_of(kernel: Array, first: int) -> int:
    """A seed for the starts of a task that follows from its rows, not from its name or place."""
    return zlib.crc32(np.array([len(kernel), np.abs(kernel).sum().round(_DIGITS)]).tobytes(), first)
