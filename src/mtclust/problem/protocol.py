"""A problem is rows sorted by task, the sizes clusters may have, λ, a coupling and a criterion; and how far to search.

Everything above the label step is one recipe (:mod:`mtclust.search.recipe`) and one descent
(:mod:`mtclust.problem.descent`); below it kernel matrices and explicit features differ for good reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import COUPLINGS

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


class BaseProblem:
    """Rows of m tasks, sorted by task, with size bounds, λ, a coupling and a criterion: what a search runs on.

    :class:`~mtclust.problem.kernels.KernelProblem` holds the rows as a kernel matrix and tries every exchange of
    labels, :class:`~mtclust.problem.features.FeatureProblem` reads explicit features in passes; both answer the same
    questions.
    """

    offsets: Any  # task i holds rows offsets[i]:offsets[i + 1]
    bounds: Any
    method: Method
    lambda1: Array
    lambda2: float
    coupling: Any
    exact_search = True

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

    @property
    def couples_labels(self) -> bool:
        """Whether the value depends on which cluster of one task has the name of which cluster of another."""
        return COUPLINGS[self.method].couples_labels

    def uncoupled(self) -> Array:
        """The coupling matrix of tasks that have nothing in common."""
        return self.coupling.uncoupled()

    def descend(self, point: Point, rng: np.random.Generator, effort: Effort) -> Point:
        """Improve labels and coupling in place; the value never rises."""
        from mtclust.problem.descent import descend

        return descend(self, point, rng, effort)


if TYPE_CHECKING:
    from mtclust.problem.features import FeatureProblem
    from mtclust.problem.kept import FeatureKept, KernelKept
    from mtclust.problem.kernels import KernelProblem

    Problem: TypeAlias = "KernelProblem | FeatureProblem"
    Kept: TypeAlias = "KernelKept | FeatureKept"
