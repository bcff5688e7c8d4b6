"""One way to cluster what is left open: a kernel, a criterion, a frame and what the search begins with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.judge import Judge, Verdict
from mtclust.choose.mixture import mixture_labels
from mtclust.choose.quadratic import directions_of
from mtclust.choose.views import Frame, KernelSpec, View
from mtclust.core.hints import NO_HINTS, Hints
from mtclust.core.kernels import eigen_features
from mtclust.core.labels import neutral_bounds, parse_sizes
from mtclust.problem.criteria import criterion_named
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Method, Point, SearchOptions, Start
from mtclust.search.outcome import Outcome, released
from mtclust.search.recipe import solve

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: the ridge λ₁ + mλ₂ of a task alone, where it is not given: for E and for linear kernels, and 2λ for J with the others
RIDGE = 0.125
NARROW_LAMBDA = 2.0**-9
#: weight of Ω = 11ᵀ/m, one model for all tasks, where clusters of all rows together are coupled at once
NEARLY_SAME = 0.9
#: leading directions that D weighs in a candidate: its steps cost their cube
DIRECTIONS_OF_D = 100
#: what the name of a candidate says of its start and frame
_START_IN_WORDS = {
    "random": "", "mixture": ", from a Gaussian mixture", "together": ", from all rows together",
    "description": ", from the shortest description",
}  # fmt: skip
_FRAME_IN_WORDS = {"task": "", "all": ", common frame", "aligned": ", aligned tasks"}


@dataclass(frozen=True)
class Candidate:
    """One way to cluster, what it found and what the judge says of that.

    Attributes
    ----------
    criterion : {"E", "J"}
    sizes : {"free", "balanced", "released", "given"}
    kernel : str
        Name of the kernel it was searched with.
    frame : {"task", "all", "aligned"}
    outcome : Outcome
    verdict : Verdict
        By the rows of its frame: within tasks, or as one task.
    coupled : bool
    start : {"random", "mixture", "together", "description"}
    agreement : float
        What known rows and pairs add to its score.
    """

    criterion: str
    sizes: str
    kernel: str
    frame: Frame
    outcome: Outcome
    verdict: Verdict
    coupled: bool
    start: str = "random"
    agreement: float = 0.0

    @property
    def labels(self) -> Labels:
        return np.asarray(self.outcome.point.labels)

    @property
    def name(self) -> str:
        """In words, the same for the same settings."""
        how = _START_IN_WORDS[self.start] + _FRAME_IN_WORDS[self.frame]
        return f"{self.criterion}, {self.kernel}, {self.sizes} sizes{how}"


@dataclass(frozen=True)
class Question:
    """What is to be chosen, and on which rows.

    Attributes
    ----------
    view : View
        Rows sorted by task.
    kernels : tuple of KernelSpec
        That a search may take.
    judge : Judge
        Of labels of the rows.
    clusters : ndarray of shape (m,)
        Number of clusters of every task.
    method : {"relationship", "features", "independent"}
    sizes : object
        The argument of the estimator.
    lambdas : tuple of (ndarray of shape (m,), float), optional
        λ₁ by task and λ₂, where they are given.
    frames : tuple of {"task", "all", "aligned"}
    n_components : int, optional
        Rank of the features that D weighs.
    criteria : tuple of {"E", "J"}
    sizes_open : bool
        Then J is searched with balanced sizes, which are released.
    names : ndarray of shape (m,), optional
        Of the tasks, for tables of sizes.
    linear_lead : float
        What the linear kernel may fall behind and still be taken: with very many rows it is far cheaper.
    hints : Hints
        What is known of these rows.
    judging : tuple of KernelSpec
        The kernels of the judge.
    """

    view: View
    kernels: tuple[KernelSpec, ...]
    judge: Judge
    clusters: NDArray[np.int64]
    method: Method
    sizes: Any = "auto"
    lambdas: tuple[Array, float] | None = None
    frames: tuple[Frame, ...] = ("task", "all", "aligned")
    n_components: int | None = None
    criteria: tuple[str, ...] = ("E", "J")
    sizes_open: bool = True
    names: NDArray[Any] | None = None
    linear_lead: float = 0.0
    hints: Hints = NO_HINTS
    judging: tuple[KernelSpec, ...] = ()

    @property
    def n_tasks(self) -> int:
        return len(self.view.offsets) - 1

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max())

    @property
    def by_rows(self) -> bool:
        """Whether rows are known, not only a kernel of them."""
        return all(spec.kind in ("linear", "rbf") for spec in self.kernels)

    @cached_property
    def directions(self) -> Array:
        """Rows in the leading directions within tasks, so that a shift of tasks does not hide what is in them.

        Those of a kernel over all tasks where rows are only known through it.
        """
        if not self.by_rows:
            return directions_of(self.view.through(self.kernels[0], "all").centred.matrix, self.n_clusters)
        seen = self.view.through(KernelSpec("linear"), "task")
        centred = directions_of(seen.centred.matrix, self.n_clusters)
        if seen.centred.scale == 0:  # rows that do not differ within tasks
            return centred
        axes = seen.rows.T @ (centred / np.einsum("nr,nr->r", centred, centred)) / np.sqrt(seen.centred.scale)
        return np.asarray(self.view.in_one_frame.centred_rows[0] @ axes / np.sqrt(seen.centred.scale))

    @cached_property
    def in_one_frame(self) -> Question:
        """The same question of all rows as one task."""
        return self._of_one_task(self.view.in_one_frame, "all")

    @cached_property
    def around_means(self) -> Question:
        """The same question of all rows as one task, each row around the mean of its own."""
        return self._of_one_task(self.view.around_means, "all")

    def aligned(self, moves: Array) -> Question:
        """The same question of all rows as one task, those of every task moved back by its own of ``moves`` (m × d)."""
        return self._of_one_task(self.view.aligned(moves), "aligned")

    def _of_one_task(self, view: View, frame: Frame) -> Question:
        """The ridge of a task alone stays as it is."""
        lambdas = None
        if self.lambdas is not None:
            lambdas = self.lambdas[0].mean(keepdims=True), self.n_tasks * self.lambdas[1]
        return replace(
            self, view=view, judge=Judge.of(view, self.judging), clusters=self.clusters[:1],
            method="features" if self.method == "features" else "independent", lambdas=lambdas, frames=(frame,),
            names=None,
        )  # fmt: skip

    def mixture(self) -> Labels | None:
        """Clusters of a Gaussian mixture; None where E is not searched, or rows are only known through a kernel."""
        return mixture_labels(self.view, self.clusters) if self.by_rows and "E" in self.criteria else None


class Way:
    """One kernel and criterion to search with, and what the tasks alone begin with.

    Parameters
    ----------
    question : Question
    spec : KernelSpec
    criterion : {"E", "J"}
    options : SearchOptions
    begun : ndarray of shape (N,), optional
        Clusters to begin with; random labels otherwise.
    start : {"random", "mixture", "description"}
        What these are.
    """

    def __init__(
        self, question: Question, spec: KernelSpec, criterion: str, options: SearchOptions,
        begun: Labels | None = None, start: str = "random",
    ) -> None:  # fmt: skip
        self.question, self.spec, self.criterion, self.begun, self.start = question, spec, criterion, begun, start
        self.name = f"{criterion}, {spec.name}{_START_IN_WORDS[start]}"
        self.name += "" if "task" in question.frames else ", all rows as one task"
        self._options = options

    @cached_property
    def _problem(self) -> KernelProblem:
        return own_frame_problem(self.question, self.spec, self.criterion)

    @cached_property
    def _starts(self) -> list[list[Start]]:
        if self.begun is not None:
            return starts_from(self._problem, self.begun, self._options)
        return self._problem.alone().starts(self._options, np.random.default_rng(0))

    def candidates(self, options: SearchOptions, coupled: bool) -> list[Candidate]:
        """What a search finds, every task alone or coupled; J has two candidates where sizes are open."""
        problem, rng = self._problem if coupled else self._problem.alone(), np.random.default_rng(0)
        outcome = solve(problem, options, rng, self._starts)
        if self.criterion == "E":
            return [self._judged(outcome, "free", coupled)]
        if not self.question.sizes_open:
            return [self._judged(outcome, "given", coupled)]
        free = released(outcome, options, rng)
        return [self._judged(outcome, "balanced", coupled), self._judged(free, "released", coupled)]

    def from_together(self, labels: Labels, beside: Outcome, options: SearchOptions) -> Candidate:
        """What a search finds that begins with clusters of all rows together; the tasks alone are as ``beside``."""
        point = coupled_at_once(self._problem, labels, options)
        outcome = replace(beside, problem=self._problem, point=point, few=self._problem, few_point=point)
        return replace(self._judged(outcome, "free", coupled=True), start="together")

    def _judged(self, outcome: Outcome, sizes: str, coupled: bool) -> Candidate:
        question, labels = self.question, np.asarray(outcome.point.labels, dtype=np.int64)
        frame = "task" if "task" in question.frames else question.frames[0]
        verdict = question.judge(labels, question.n_clusters)
        agreement = question.hints.agreement(labels, question.n_clusters)
        return Candidate(self.criterion, sizes, self.spec.name, frame, outcome, verdict, coupled, self.start, agreement)


def starts_from(problem: KernelProblem, labels: Labels, options: SearchOptions) -> list[list[Start]]:
    """One start of every task: where clusters end that are improved in each task alone."""
    alone = problem.alone()
    begun = alone.point(labels, alone.uncoupled())
    point = alone.descend(begun, np.random.default_rng(0), options.effort("from given clusters"))
    return [[start] for start in alone.starts_of(point)]


def coupled_at_once(problem: KernelProblem, labels: Labels, options: SearchOptions) -> Point:
    """Where clusters of all rows together end, from tasks that are nearly the same; no task is searched alone."""
    m, Z = problem.n_tasks, problem.uncoupled()
    if problem.couples_labels:
        Z = (1.0 - NEARLY_SAME) * Z + NEARLY_SAME * np.full((m, m), 1.0 / m)
    begun = problem.point(labels, Z)
    return problem.descend(begun, np.random.default_rng(0), options.effort("from all rows together"))


def own_frame_problem(question: Question, spec: KernelSpec, criterion: str) -> KernelProblem:
    """The problem of one kernel and criterion, every task in its own frame."""
    seen, offsets = question.view.through(spec, "task"), question.view.offsets
    if criterion == "E":
        bounds = neutral_bounds(np.diff(offsets), question.clusters)
    else:
        rule = "balanced" if question.sizes_open else question.sizes
        bounds = parse_sizes(rule, np.diff(offsets), question.clusters, question.names)
    lambda1, lambda2 = question.lambdas or constant_lambdas(question.n_tasks, spec, criterion)
    features = None
    if question.method == "features":
        features = eigen_features(seen.centred.matrix, question.n_components or DIRECTIONS_OF_D)
    return KernelProblem(
        seen.centred.matrix, offsets, bounds, lambda1, lambda2, question.method, features, criterion_named(criterion),
        origin=seen.origin(question.view.order),
    )  # fmt: skip


def constant_lambdas(n_tasks: int, spec: KernelSpec, criterion: str, share: float = 1.0) -> tuple[Array, float]:
    """λ₁ by task and λ₂ where they are not given: constants, never a draw.

    The ridge of a task alone is λ₁ + m·share·λ₂.
    """
    value = RIDGE / (1.0 + n_tasks * share) if criterion == "E" or spec.kind == "linear" else NARROW_LAMBDA
    return np.full(n_tasks, value), value
