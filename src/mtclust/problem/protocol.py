"""The questions a search asks: a problem is rows sorted by task, the sizes clusters may have, and a coupling.

Everything above :meth:`Problem.descend` is one recipe (:mod:`mtclust.search.recipe`); below it kernel matrices and
explicit features differ for good reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtclust.core.class_means import ClassMeans
from mtclust.core.labels import SizeBounds
from mtclust.core.model import DecisionModel

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: how tasks are coupled, a key of :data:`mtclust.core.coupling.COUPLINGS`: "relationship" (by Ω, DMTRC), "features"
#: (by D, DMTFC) or "independent"
Method = str


@dataclass
class Point:
    """Where a search stands.

    Attributes
    ----------
    fit : object
        What the problem keeps of it; has ``labels`` (of all rows, sorted by task) and the coupling matrix ``Z``.
    value : float
        Of the criterion; lower is better.
    history : list of dict
        Stage, step and objective.
    converged : bool
        Whether the last descent ended because a round gained less than ``tol``.
    n_iter : int
        Rounds of all descents that led here.
    certified : bool
        Whether no exchange of two rows is left that would improve.
    """

    fit: Any
    value: float
    history: list[dict[str, Any]] = field(default_factory=list)
    converged: bool = False
    n_iter: int = 0
    certified: bool = False

    @property
    def labels(self) -> Any:
        return self.fit.labels

    @property
    def Z(self) -> Array:
        return self.fit.Z

    def following(self, earlier: Point) -> Point:
        """This point, which goes on from an earlier one: its history and rounds are taken over."""
        self.history, self.n_iter = list(earlier.history), earlier.n_iter
        return self

    def record(self, stage: str, step: str) -> None:
        self.history.append({"stage": stage, "step": step, "objective": self.value})


@dataclass(frozen=True)
class Start:
    """What a search can begin with in one task: labels of its rows, or a model, or both.

    Attributes
    ----------
    labels : ndarray of shape (n,) or None
    value : float
        Of the task alone; lower is better.
    model : ndarray of shape (r, C) or None
        In explicit features.
    prices : ndarray of shape (C,) or None
        Class prices that go with the model.
    """

    labels: Labels | None
    value: float = float("nan")
    model: Array | None = None
    prices: Array | None = None

    def renamed(self, new_ids: Labels) -> Start:
        """The same with other names of the clusters."""
        model, prices = self.model, self.prices
        if model is not None:
            model = np.empty_like(model)
            model[:, new_ids] = self.model
        if prices is not None:
            prices = np.empty_like(prices)
            prices[new_ids] = self.prices
        return replace(self, labels=None if self.labels is None else new_ids[self.labels], model=model, prices=prices)


@dataclass(frozen=True)
class Effort:
    """How far one descent goes.

    Attributes
    ----------
    stage : str
        Its name in the history.
    max_iter : int
        Rounds at most.
    tol : float
        It ends when a round lowers the value by less than this share.
    learn : bool
        Whether the coupling may change.
    tasks : sequence of int, optional
        The tasks whose labels may change; all by default.
    exact : bool
        Whether single exchanges are tried where a pass moves many rows at once.
    last : bool
        Whether nothing follows: then it is carried further.
    """

    stage: str
    max_iter: int = 40
    tol: float = 1e-4
    learn: bool = True
    tasks: Sequence[int] | None = None
    exact: bool = True
    last: bool = False


@dataclass(frozen=True)
class SearchOptions:
    """How hard to search.

    Attributes
    ----------
    n_init : int
        Labellings of every task that enter the coupled search; 1 stands for no restarts.
    single_task_n_init : int, optional
        Random starts of every task alone; by default what suits the problem.
    n_seeds : int
        Labellings per task that seed a restart of the others.
    max_iter, tol
        Of one descent.
    n_jobs : int, optional
        Threads for starts and restarts.
    polish : bool
        Whether the last descent goes further than ``tol``.
    """

    n_init: int = 8
    single_task_n_init: int | None = None
    n_seeds: int = 4
    max_iter: int = 40
    tol: float = 1e-4
    n_jobs: int | None = None
    polish: bool = True

    def effort(self, stage: str, **changes: Any) -> Effort:
        """A descent as far as the options say."""
        return replace(Effort(stage, self.max_iter, self.tol), **changes)


class Problem(Protocol):
    """Rows of m tasks, sorted by task, with size bounds and a coupling."""

    @property
    def bounds(self) -> SizeBounds: ...

    @property
    def method(self) -> Method: ...

    @property
    def coupling(self) -> Any:
        """How tasks are coupled (:class:`mtclust.core.coupling.BaseCoupling`)."""

    @property
    def lambda1(self) -> Array: ...

    @property
    def lambda2(self) -> float: ...

    @property
    def n_tasks(self) -> int: ...

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Task i holds rows ``offsets[i]:offsets[i + 1]``."""

    @property
    def couples_labels(self) -> bool:
        """Whether the value depends on which cluster of one task has the name of which cluster of another."""

    @property
    def exact_search(self) -> bool:
        """Whether the descents before the last try single exchanges: not where it is run on some of the rows."""

    def uncoupled(self) -> Array:
        """The coupling matrix of tasks that have nothing in common."""

    def alone(self) -> Problem:
        """The same rows, every task by itself with the ridge λ₁ + mλ₂."""

    def restrict(self, tasks: NDArray[np.int64]) -> Problem:
        """Some of the tasks, λ₂ scaled by m over their number so that the uncoupled model of each stays the same."""

    def with_bounds(self, bounds: SizeBounds) -> Problem: ...

    def few(self, rng: np.random.Generator) -> Problem:
        """The rows that the search runs on; the problem itself where these are all."""

    def carried(self, few: Any, point: Point) -> Point:
        """The point on all rows that continues one on ``few``."""

    def starts(self, options: SearchOptions, rng: np.random.Generator, Z: Array | None = None) -> list[list[Start]]:
        """For every task what it can begin with, best first; under a coupling Z, or every task alone."""

    def proposing(self, starts: list[list[Start]]) -> Problem:
        """The same problem, whose descents try these labellings of whole tasks."""

    def point_of(self, starts: Sequence[Start], Z: Array) -> Point:
        """The point of one start per task under a coupling matrix."""

    def continued(self, point: Point, Z: Array) -> Point:
        """The labels of a point, which is not changed, under the bounds of this problem and a coupling matrix."""

    def seeded(self, task: int, start: Start, Z: Array) -> Point:
        """The point in which all tasks are labelled through the model of one."""

    def starts_of(self, point: Point) -> list[Start]:
        """What every task has at a point."""

    def descend(self, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
        """Improve labels and coupling in place; the value never rises."""

    def class_means(self, point: Point) -> ClassMeans: ...

    def renamed(self, point: Point, new_ids: NDArray[np.int64]) -> Point:
        """Other names (m × C) of the clusters of every task, the value unchanged; the point given is used up."""

    def leave_one_out(self, point: Point) -> Array:
        """Scores (N × C) of all rows, each from models that were fitted without it; −∞ for absent clusters."""

    def decision(self, point: Point) -> DecisionModel:
        """The model that scores new rows."""

    def class_counts(self, point: Point) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""

    def kept(self, point: Point) -> Kept:
        """What a fitted model keeps."""


class Kept(Protocol):
    """What a fitted model keeps for later tasks and for files."""

    @property
    def n_columns(self) -> int:
        """Columns that rows of a new task must have."""

    def starts(self) -> list[Start]:
        """The known tasks."""

    def with_task(self, rows: Any, bounds: SizeBounds) -> tuple[Problem, Problem]:
        """All tasks with the new one as the last, and the new one alone; ``bounds`` are those of the new task."""
