"""What a search runs on: rows sorted by task, the sizes clusters may have, λ, a coupling and a criterion.

:class:`Problem` holds the rows as one kernel matrix and tries every exchange of labels: exact, for as many rows as that
matrix can be inverted for. More rows are searched by a sample, whose end :class:`mtclust.search.all_rows.AllRows`
carries to all of them. Both descend in labels and coupling by one loop (:mod:`mtclust.search.descent`).
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mtclust.core import Array, Labels
from mtclust.core.assignment import assign
from mtclust.core.coupling import COUPLINGS, Conditioned
from mtclust.core.criterion import PaperObjective
from mtclust.core.kernels import ROUNDING, EigenFeatures
from mtclust.core.labels import SizeBounds, counts_by_task, offsets_of, rows_of_tasks, tasks_of_rows
from mtclust.core.matching import class_mean_products, match_means
from mtclust.core.model import DecisionModel, KernelOrigin, build_model, left_out
from mtclust.search.descent import ExactLabels, descend
from mtclust.util.messages import counted

#: how tasks are coupled, a key of :data:`mtclust.core.coupling.COUPLINGS`: "relationship" (by Ω, DMTRC), "features"
#: (by D, DMTFC) or "independent"
Method = str

#: digits of a kernel that tell tasks apart
_DIGITS = 6
#: D is given in the coordinates of X (linear kernel) up to this many columns; beyond, in those of the eigen-features
LARGEST_FEATURE_COVARIANCE = 2000


@dataclass
class Point:
    """Where a search stands."""

    # has ``labels`` of all rows, sorted by task, their ``counts``, and ``at``, what is factorised for the matrix ``Z``
    fit: Any
    value: float  # of the criterion; lower is better
    history: list[dict[str, Any]] = field(default_factory=list)  # stage, step and objective
    converged: bool = False  # whether the last descent ended because a round gained less than ``tol``
    n_iter: int = 0  # rounds of all descents that led here
    codes: Array | None = None  # what the models are fitted to, where that is not the labels (N × C)

    @property
    def labels(self) -> Any:
        return self.fit.labels

    @property
    def Z(self) -> Array:
        return self.fit.at.Z

    def record(self, stage: str, step: str) -> None:
        self.history.append({"stage": stage, "step": step, "objective": self.value})


@dataclass(frozen=True)
class Effort:
    """How far one descent goes."""

    stage: str  # its name in the history
    max_iter: int = 40  # rounds at most
    tol: float = 1e-4  # it ends when a round lowers the value by less than this share
    learn: bool = True  # whether the coupling may change
    tasks: Sequence[int] | None = None  # the tasks whose labels may change; all by default
    last: bool = False  # whether nothing follows: then it is carried further


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search."""

    n_init: int = 8  # labellings of every task that enter the coupled search; 1 stands for no restarts
    starts: int = 40  # random labels that every task alone begins with
    max_iter: int = 40  # of one descent
    tol: float = 1e-4  # of one descent
    n_jobs: int | None = None  # threads for starts and restarts
    polish: bool = True  # whether the last descent goes further than ``tol``

    def effort(self, stage: str, **changes: Any) -> Effort:
        """A descent as far as the options say."""
        return replace(Effort(stage, self.max_iter, self.tol), **changes)


class Coupled(ABC):
    """Rows of m tasks, sorted by task, with size bounds, λ, a coupling and a criterion."""

    offsets: Any  # task i holds rows offsets[i]:offsets[i + 1]
    bounds: Any
    method: Method
    lambda1: Array
    lambda2: float
    coupling: Any  # a :class:`mtclust.core.coupling.BaseCoupling` of these rows
    label_step: Any  # the class whose objects improve labels (:class:`mtclust.search.descent.ExactLabels`)
    descend = descend  # improves labels and coupling in place

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return self.bounds.n_clusters

    @cached_property
    def alone(self) -> Any:
        """The same rows, every task by itself with the ridge λ₁ + mλ₂."""
        return replace(cast(Any, self), method="independent") if self.coupling.learns else self

    def labels_of(self, point: Point) -> list[Labels]:
        """What every task has at a point."""
        labels = np.asarray(point.labels, dtype=np.int64)
        return [labels[rows] for rows in self.coupling.slices]

    def in_input_coordinates(self, D: Array) -> Array:
        """D as it is given to users: of the columns of X, where the features are not they."""
        return D

    @abstractmethod
    def class_means(self, point: Point) -> Array:
        """Class means of all tasks: inner products (m, m, C, C) or coordinates (m, C, r)."""

    @abstractmethod
    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        """Other names (m × C) of the clusters of every task, the value unchanged; the point given is used up."""

    def matched(self, point: Point, task: int | None = None) -> tuple[Point, Array]:
        """The point with cluster ids that mean the same in all tasks, those of one ``task`` or of all being renamed.

        Also returns the similarity of the tasks.
        """
        new_ids, similarity = match_means(self.class_means(point), point.fit.counts, self.bounds, task)
        return self.renamed(point, new_ids), similarity


@dataclass
class Fit:
    """Labels with the problem of one coupling matrix.

    ``bounds`` are those of the problem, with each task's clusters where the labels have them.
    """

    labels: Labels
    at: Conditioned
    bounds: SizeBounds

    @property
    def counts(self) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""
        return counts_by_task(self.labels, self.at.coupling.offsets, self.bounds.n_clusters)


@dataclass(frozen=True)
class Problem(Coupled):
    """Rows sorted by task, seen through their centred and scaled kernel."""

    kernel: Array  # (N × N)
    offsets: NDArray[np.int64]  # (m + 1,)
    bounds: SizeBounds
    lambda1: Array  # (m,)
    lambda2: float
    method: Method = "relationship"
    features: EigenFeatures | None = None  # of the kernel, where D is learned
    criterion: PaperObjective = field(default_factory=PaperObjective)  # what labels are judged by
    proposed: list[list[Labels]] | None = None  # labellings of every task that a descent tries
    origin: KernelOrigin | None = None  # only needed for :meth:`decision`
    held: NDArray[np.bool_] | None = None  # True for rows whose labels stay: their clusters are known (N,)
    _last: list[Conditioned] = field(default_factory=list, init=False, repr=False, compare=False)

    label_step = ExactLabels

    @cached_property
    def coupling(self) -> Any:
        """How the tasks are coupled, for every Z."""
        kind = COUPLINGS[self.method]
        rows = self.features if kind.of_features else self.kernel
        return kind(rows, self.offsets, self.lambda1, self.lambda2)

    def at(self, Z: Array) -> Conditioned:
        """The quadratic problem for one coupling matrix; the last one is kept, for restarts share it."""
        last = self._last[0] if self._last else None
        if last is None or not np.array_equal(last.Z, Z):
            last = self.coupling.condition(Z)
            self._last[:] = [last]
        return last

    @cached_property
    def free(self) -> list[Labels | None]:
        """The rows of every task whose labels may change; None where these are all."""
        if self.held is None:
            return [None] * self.n_tasks
        parts = [self.held[rows] for rows in self.coupling.slices]
        return [np.flatnonzero(~held) if held.any() else None for held in parts]

    def codes(self, labels: Labels) -> Array:
        return self.criterion.codes(labels, self.n_clusters)

    # -- other problems ------------------------------------------------------------------------------------------

    def with_bounds(self, bounds: SizeBounds) -> Problem:
        other = replace(self, bounds=bounds)
        other.__dict__["coupling"] = self.coupling  # what is factorised does not depend on sizes
        other._last[:] = self._last
        return other

    def of_tasks(self, tasks: NDArray[np.int64]) -> Problem:
        """Some of the tasks alone: their share of the trace of Ω is theirs, so that λ₂ counts m/|tasks| times."""
        rows = rows_of_tasks(self.offsets, tasks)
        return replace(
            self, kernel=self.kernel[np.ix_(rows, rows)], offsets=offsets_of(np.diff(self.offsets)[tasks]),
            bounds=self.bounds.restrict(tasks), lambda1=self.lambda1[tasks],
            lambda2=self.lambda2 * self.n_tasks / len(tasks), proposed=None, origin=None,
            held=None if self.held is None else self.held[rows],
        )  # fmt: skip

    # -- points --------------------------------------------------------------------------------------------------

    def starts(self, options: SearchOptions, rng: np.random.Generator, Z: Array | None = None) -> list[list[Labels]]:
        """For every task labels that it can begin with, best first; under a coupling Z, or every task alone."""
        first = int(rng.integers(2**31))
        # a seed follows from the rows of a task, not from its name or place
        parts = [self.kernel[rows, rows] for rows in self.coupling.slices]
        kernels, ridge, n_init = parts, self.coupling.ridge, options.starts
        if Z is not None:
            kernels, ridge = [K for _, K in self.coupling.kernels(Z)], np.ones(self.n_tasks)
            n_init = options.n_init
        told = [np.array([len(own), np.abs(own).sum().round(_DIGITS)]) for own in parts]
        seeds = [zlib.crc32(own.tobytes(), first) for own in told]
        jobs = (
            delayed(self.criterion.starts_of_task)(
                kernel, float(ridge[i]), self.bounds.lower[i], self.bounds.upper[i], n_init, seeds[i]
            )
            for i, kernel in enumerate(kernels)
        )
        reported = counted(jobs, "clustering alone: task", self.n_tasks)
        return list(Parallel(n_jobs=options.n_jobs, prefer="threads")(reported))

    def point(self, labels: Labels, Z: Array) -> Point:
        """Evaluate labels under a coupling matrix."""
        # which clusters a coupled task has was decided by their means; the objective confuses neighbours more often
        counts = counts_by_task(labels, self.offsets, self.n_clusters)
        bounds = self.bounds.fitted(counts, fixed=self.coupling.couples_labels)
        at = self.at(Z)
        return Point(Fit(labels.copy(), at, bounds), self.criterion.value(at, self.codes(labels)))

    def continued(self, point: Point, Z: Array) -> Point:
        """The labels of a point, which is not changed, under the bounds of this problem and a coupling matrix."""
        if point.fit.at.coupling is self.coupling:  # of other bounds only: it may be factorised already
            self._last[:] = [point.fit.at]
        return self.point(point.labels, Z)

    def seeded(self, task: int, start: Labels, Z: Array) -> Point:
        """The point in which all tasks are labelled through the model of one."""
        alone, slices = self.alone, self.coupling.slices
        alpha = alone.at(alone.coupling.uncoupled()).block(task) @ self.codes(start)
        labels = np.empty(len(self.kernel), dtype=np.int64)
        for rows, lower, upper in zip(slices, self.bounds.lower, self.bounds.upper):
            labels[rows] = assign(-(self.kernel[rows, slices[task]] @ alpha), lower, upper)
        labels[slices[task]] = start
        return self.point(labels, Z)

    def closed_form(self, point: Point) -> Array:
        """The coupling matrix to try next for these labels."""
        return self.coupling.closed_form_of_rows(point.fit.at, self.codes(point.labels))

    def take(self, point: Point, Z: Array) -> bool:
        """Move to another coupling matrix if that lowers the value."""
        at = self.coupling.condition(Z)
        value = self.criterion.value(at, self.codes(point.labels))
        if value > point.value - ROUNDING * abs(point.value):
            return False
        point.fit.at, point.value = at, value
        return True

    def class_means(self, point: Point) -> Array:
        return class_mean_products(self.kernel, self.offsets, point.labels, self.n_clusters)

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        labels = new_ids[tasks_of_rows(self.offsets), point.labels]
        bounds = self.bounds.fitted(counts_by_task(labels, self.offsets, self.n_clusters))
        return replace(point, fit=Fit(labels, point.fit.at, bounds))

    # -- what is kept --------------------------------------------------------------------------------------------

    def decision(self, point: Point) -> DecisionModel:
        """The model that scores new rows."""
        assert self.origin is not None
        (codes, present), at = self._fitted_to(point), point.fit.at
        scale, constants = self.criterion.decision_weights(at, codes)
        model = build_model(self.origin, at.coupling.predictors(at, codes) * scale[:, None, :], present)
        return replace(model, intercept=model.intercept + constants)

    def _fitted_to(self, point: Point) -> tuple[Array, NDArray[np.bool_]]:
        """What models are fitted to, and which clusters every task has.

        Labels that follow from the model, and not it from them, may be of any cluster.
        """
        present = self.bounds.fitted(point.fit.counts).present
        return (self.codes(point.labels), present) if point.codes is None else (point.codes, np.ones_like(present))

    def in_input_coordinates(self, D: Array) -> Array:
        """V D Vᵀ, where V holds the directions of the eigen-features in the space of X."""
        if self.origin is None or self.origin.kernel.kind != "linear" or not self.coupling.of_features:
            return D
        assert self.features is not None
        rows, centred = self.origin.rows, self.origin.centred
        if rows.shape[1] > LARGEST_FEATURE_COVARIANCE or centred.scale == 0:
            return D
        V = rows.T @ self.features.projection / np.sqrt(centred.scale)
        return np.asarray(V @ D @ V.T)

    def leave_one_out(self, point: Point) -> Array:
        """Scores (N × C) of all rows, each from models that were fitted without it; −∞ for absent clusters."""
        assert self.origin is not None
        (codes, present), at, task_of = self._fitted_to(point), point.fit.at, tasks_of_rows(self.offsets)
        scale, constants = self.criterion.decision_weights(at, codes)
        result = predictions_left_out(at, codes, self.origin.centred.centred) * scale[task_of] + constants[task_of]
        return np.where(present[task_of], result, -np.inf)


def predictions_left_out(at: Conditioned, codes: Array, centred: bool) -> Array:
    """What models of given codes (N × C) predict for every row that is left out; with the task's centre, if centred.

    Ridge regression leaves a row out in closed form: its residual is divided by 1 − h_j, or by 1 − h_j − 1/n_i where
    the task's mean is taken off the features and goes without the row as well; h_j = 1 − (n_i/2)M_jj.
    """
    alpha, diagonal = at.alpha(codes), at.diagonal()
    result = np.empty_like(codes)
    for rows, n in zip(at.coupling.slices, at.coupling.sizes):
        fitted = codes[rows] - 0.5 * n * alpha[rows]
        mean = codes[rows].mean(axis=0) if centred else None
        result[rows] = left_out(codes[rows], fitted, 1.0 - 0.5 * n * diagonal[rows], mean, n)
    return result
