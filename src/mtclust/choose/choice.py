"""The choice of labels where sizes are open, and of the kernel where they are given.

1. cheap candidates: labels of standard methods in every frame (:mod:`mtclust.choose.candidates`)
2. expensive ones: the best of these descended under E, every task alone, and the paper's J with balanced sizes, which
   are then released; labels stand undescended as well, for a descent can leave a right answer
3. one score (:mod:`mtclust.choose.judge`) picks the labels
4. the frame is that of the shortest description of the rows with these labels (:mod:`mtclust.choose.frames`), the
   kernel the one that predicts them best for rows that are left out

Nothing is drawn at random, and ``random_state`` plays no part: the same data give the same choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.choose import candidates, frames
from mtclust.choose.candidates import IN_FRAME, Candidate
from mtclust.choose.frames import Frame
from mtclust.choose.judge import Judge
from mtclust.choose.record import Tried
from mtclust.choose.views import KernelSpec, View, is_wide
from mtclust.core import Array, Labels
from mtclust.core.coupling import COUPLINGS
from mtclust.core.criterion import CRITERIA
from mtclust.core.hints import NO_HINTS, Hints
from mtclust.core.kernels import KERNELS, eigen_features
from mtclust.core.labels import (
    SizeBounds,
    counts_by_task,
    free_bounds,
    neutral_bounds,
    offsets_of,
    parse_sizes,
    rows_of_tasks,
    tasks_of_rows,
)
from mtclust.core.order import information, on_a_grid
from mtclust.search.problem import Method, Point, Problem, SearchOptions
from mtclust.search.recipe import LEADING, ROUGH, Outcome, first_relationship, solve
from mtclust.util.messages import phase

#: the ridge λ₁ + mλ₂ of a task alone, where it is not given: for E and for linear kernels, and for J with the others
RIDGE, NARROW_RIDGE = 0.125, 2.0**-8


@dataclass(frozen=True)
class Question:
    """What is to be chosen, and on which rows."""

    view: View
    kernels: tuple[KernelSpec, ...]  # that models may have: of :data:`KERNELS`, or one that is not
    clusters: NDArray[np.int64]  # their number in every task
    method: Method
    sizes: Any = "auto"  # the argument of the estimator
    sizes_open: bool = True
    lambdas: tuple[Array, float] | None = None  # λ₁ by task and λ₂, where they are given
    frames: tuple[Frame, ...] = ("task", "all", "aligned")
    n_components: int | None = None  # rank of the features that D weighs
    names: NDArray[Any] | None = None  # of the tasks, for tables of sizes
    hints: Hints = NO_HINTS  # what is known of these rows
    coupling_open: bool = True  # whether labels of tasks alone compete with those of all tasks
    many_directions: bool = False  # :func:`mtclust.choose.views.in_many_directions`

    @property
    def n_clusters(self) -> int:
        return int(self.clusters.max())

    @cached_property
    def tasks(self) -> Labels:
        """Number of the task of every row."""
        return tasks_of_rows(self.view.offsets)

    @cached_property
    def rows_as_they_are(self) -> Array:
        """The rows in the order of their columns' content; leading directions where only a kernel of them is known."""
        rows = self.view.rows
        if self.kernels[0].kind not in KERNELS or is_wide(rows):
            matrix = self.view.as_one_task().through(self.kernels[0]).centred.matrix
            return eigen_features(matrix, LEADING).values
        rows = rows.toarray() if sp.issparse(rows) else rows
        rows = rows[:, self.view.columns] if self.view.columns is not None else rows
        return on_a_grid(np.asarray(rows, dtype=np.float64), self.tasks)

    @cached_property
    def X(self) -> Array:
        """The same, columns weighed by what their values say."""
        rows, columns = self.rows_as_they_are, self.kernels[0].kind in KERNELS and not is_wide(self.view.rows)
        return rows * information(rows) if columns else rows

    def of_tasks(self, tasks: Labels) -> tuple[Question, Labels]:
        """The same question with its tasks in another order, and which of these rows its rows are."""
        rows, sizes = rows_of_tasks(self.view.offsets, tasks), np.diff(self.view.offsets)[tasks]
        view = replace(self.view, rows=self.view.rows[rows], offsets=offsets_of(sizes))
        lambdas = None if self.lambdas is None else (self.lambdas[0][tasks], self.lambdas[1])
        names = None if self.names is None else self.names[tasks]
        hints = self.hints.of_rows(rows, len(rows))
        return replace(
            self, view=view, clusters=self.clusters[tasks], lambdas=lambdas, names=names, hints=hints
        ), rows  # fmt: skip

    def in_frame(self, frame: Frame, moves: Array | None = None) -> Question:
        """The same question of all rows as one task; the ridge of a task alone stays as it is."""
        if frame == "task":
            return self
        lambdas = None
        if self.lambdas is not None:
            lambdas = self.lambdas[0].mean(keepdims=True), len(self.clusters) * self.lambdas[1]
        return replace(
            self, view=self.view.as_one_task(moves), clusters=self.clusters[:1], lambdas=lambdas, frames=(frame,),
            names=None, method=self.method if COUPLINGS[self.method].of_features else "independent",
        )  # fmt: skip

    def problem(self, spec: KernelSpec, criterion: str, labels: Labels | None = None) -> Problem:
        """The problem of these rows through one kernel; with labels, clusters are where these have them."""
        origin, offsets, sizes = self.view.through(spec), self.view.offsets, np.diff(self.view.offsets)
        if labels is not None:
            bounds = bounds_of_labels(sizes, counts_by_task(labels, offsets, self.n_clusters), self.clusters)
        elif not CRITERIA[criterion].exchanges:
            bounds = neutral_bounds(sizes, self.clusters)
        else:
            bounds = parse_sizes("balanced" if self.sizes_open else self.sizes, sizes, self.clusters, self.names)
        lambda1, lambda2 = self.lambdas or constant_lambdas(len(self.clusters), spec, criterion)
        features = None
        if COUPLINGS[self.method].of_features:
            features = eigen_features(origin.centred.matrix, self.n_components or LEADING)
        return Problem(
            origin.centred.matrix, offsets, bounds, lambda1, lambda2, self.method, features, CRITERIA[criterion](),
            origin=origin,
        )  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What was chosen or given, and all that was tried."""

    question: Question  # of the rows that were looked at, tasks in their own frames
    spec: KernelSpec
    criterion: str  # "E" where sizes are to be chosen, or else "J"
    seen: Question  # the same rows in the frame that was chosen
    frame: Frame = "task"
    outcome: Outcome | None = None  # models of the labels on these rows; None where nothing was open
    tried: Sequence[Tried] = ()  # the one taken, then the others by falling score
    alone: Labels | None = None  # the best of tasks that are clustered alone
    lead: float | None = None  # of the score of these over the best of all tasks together, where both were open
    moves: Array | None = None  # how far tasks are moved where they are aligned (m × d)

    @property
    def reason(self) -> str | None:
        """Why the labels were taken, in words."""
        if not self.tried:
            return None
        best, *others = self.tried
        if not others:
            return f"{best.name} is the only candidate"
        lead = f"{others[0].score - best.score:+z.2f}".replace("-", "−")
        return f"{best.name} has the highest score of {len(self.tried)} candidates (next: {others[0].name}, {lead})"


def constant_lambdas(n_tasks: int, spec: KernelSpec, criterion: str, share: float = 1.0) -> tuple[Array, float]:
    """λ₁ by task and λ₂ where they are not given: constants, never a draw.

    The ridge of a task alone is λ₁ + m·share·λ₂.
    """
    ridge = NARROW_RIDGE if CRITERIA[criterion].exchanges and spec.kind != "linear" else RIDGE
    value = ridge / (1.0 + n_tasks * share)
    return np.full(n_tasks, value), value


def bounds_of_labels(sizes: NDArray[np.int64], counts: NDArray[np.int64], clusters: NDArray[np.int64]) -> SizeBounds:
    """No cluster that a task has loses its last row; one that it lacks may only come where rows are too few."""
    few = (sizes < clusters)[:, None] & (np.ptp(clusters) == 0)
    return SizeBounds((counts > 0).astype(np.int64), np.where((counts > 0) | few, sizes[:, None], 0))


def choose_kernel(question: Question, options: SearchOptions) -> Choice:
    """With sizes given: J under every kernel that is open, and the labels of the highest score."""
    ends: dict[str, tuple[KernelSpec, Outcome]] = {}
    for spec in question.kernels:
        with phase(f"choosing: J, {spec.name}"):
            ends[f"J, {spec.name}"] = spec, solve(question.problem(spec, "J"), options, np.random.default_rng(0))
    judge = Judge(question.X, question.tasks, question.n_clusters)
    found = [Candidate(name, None, outcome.point.labels) for name, (_, outcome) in ends.items()]
    tried = [own for own, _ in _judged(question, judge, found)]
    spec, outcome = ends[tried[0].name]
    return Choice(question, spec, "J", question, outcome=outcome, tried=tried)


def choose_labels(question: Question, options: SearchOptions, tasks: Labels | None = None) -> Choice:
    """With sizes open: the labels of the highest score, and models of them.

    Nothing that is chosen depends on what tasks are called: they are looked at in the order ``tasks``.
    """
    asked, rows = question.of_tasks(np.arange(len(question.clusters)) if tasks is None else tasks)
    found, judge = labellings(asked, options)
    back = np.argsort(rows)
    ranked = [(tried, labels[back]) for tried, labels in _judged(asked, judge, found)]
    one_number = np.ptp(question.clusters) == 0
    open_to_both = question.coupling_open and one_number
    first = {tried.frame == "alone": k for k, (tried, _) in reversed(list(enumerate(ranked)))}
    best_alone = ranked[first[True]][1] if True in first else None
    lead = ranked[first.get(True, 0)][0].score - ranked[first.get(False, 0)][0].score
    best, labels = ranked[0]
    # the frame of the shortest description of the rows with these labels
    free = len(question.clusters) > 1 and one_number and best.frame != "alone"
    X, numbers, C, frame, moves = question.X, question.tasks, question.n_clusters, question.frames[0], None
    if not free:
        frame = "task"
    elif len(question.frames) > 1:
        length = frames.lengths(*frames.directions(X, numbers, information(X)), numbers, labels, C)
        frame = min(question.frames, key=lambda name: round(length[name], 6))
    if frame == "aligned":
        moves = frames.moves_of_tasks(question.view.as_one_task().centred_rows[0], numbers, labels, C)
    seen = question.in_frame(frame, moves)
    # the kernel under which membership of left-out rows is predicted best
    alone = replace(seen, method="independent")
    problems = [alone.problem(spec, "E", labels) for spec in seen.kernels]
    values = [problem.point(labels, problem.coupling.uncoupled()).value for problem in problems]
    k = int(np.round(values, 6).argmin())
    seen, spec = alone if best.frame == "alone" and open_to_both else seen, seen.kernels[k]
    outcome = modelled(seen, spec, labels, options, problems[k])
    if best_alone is not None and frame == "task" and COUPLINGS[question.method].learns:
        single = modelled(replace(question, method="independent"), spec, best_alone, options)
        outcome = replace(outcome, single=single.point)
    return Choice(question, spec, "E", seen, frame, outcome, [tried for tried, _ in ranked], best_alone, lead, moves)


def labellings(question: Question, options: SearchOptions) -> tuple[list[Candidate], Judge]:
    """All candidates: cheap ones, and what descents make of the best; and their judge."""
    X, tasks, several = question.X, question.tasks, len(question.clusters) > 1
    coupled = COUPLINGS[question.method].learns
    wanted = {*question.frames, *(["alone"] if "task" in question.frames else [])}
    if np.ptp(question.clusters) > 0 or (several and not coupled):
        wanted = {"alone"}
    with phase("choosing: standard methods"):
        found, aligned = candidates.propose(X, tasks, question.clusters, wanted)
    judge = Judge(X, tasks, question.n_clusters, aligned)
    if several and not wanted & {"task", "alone"}:  # tasks have no frames of their own
        return found, judge
    score, _ = judge.of(np.stack([own.labels for own in found]))
    ranked = [found[k] for k in np.argsort(-score.round(6), kind="stable")]
    start = next(own.labels for own in ranked if own.frame in (None, "task", "alone"))
    # what E makes of labels in every task alone, and what J finds, in tasks' own frames
    weighed = question
    if question.kernels[0].kind in KERNELS:
        weighed = replace(question, view=View(X, question.view.offsets))
    rough = replace(options, n_init=1, starts=4, max_iter=2, tol=ROUGH * options.tol, polish=False)
    spec = next((own for own in question.kernels if own.width is not None), question.kernels[0])
    ends = dict[str, Point]()
    with phase("choosing: descents"):
        if not question.many_directions:  # where E fits too well, whatever the labels are
            problem = replace(weighed, method="independent").problem(spec, "E", start)
            begun = problem.point(start, problem.coupling.uncoupled())
            ends["E"] = problem.descend(begun, np.random.default_rng(0), rough.effort("from candidates"))
        lambdas = weighed.lambdas
        if lambdas is None and spec.kind != "linear":  # λ of one task, whatever their number: less detail
            lambdas = np.full(len(question.clusters), NARROW_RIDGE / 2), NARROW_RIDGE / 2
        outcome = solve(replace(weighed, lambdas=lambdas).problem(spec, "J"), rough, np.random.default_rng(0))
        ends["J"], problem = outcome.point, outcome.problem
        # then rows are free to move; the search has decided which clusters a task has
        free = problem.with_bounds(free_bounds(np.diff(problem.offsets), problem.bounds.present))
        begun, effort = free.continued(outcome.point, outcome.point.Z), rough.effort("released from balance")
        ends["J released"] = free.descend(begun, np.random.default_rng(0), effort)
    frame = None if not several else "task" if coupled else "alone"
    return found + [Candidate(name, frame, point.labels) for name, point in ends.items()], judge


def modelled(
    question: Question, spec: KernelSpec, labels: Labels, options: SearchOptions, alone: Problem | None = None
) -> Outcome:
    """Models of labels that stay as they are, with the coupling learned; ``alone`` is the problem of tasks alone."""
    learns = COUPLINGS[question.method].learns
    problem = question.problem(spec, "E", labels) if learns or alone is None else alone
    alone = problem.alone if alone is None else alone
    single = alone.point(labels, alone.coupling.uncoupled())
    similarity = alone.matched(single)[1]
    Z = first_relationship(similarity) if problem.coupling.couples_labels else problem.coupling.uncoupled()
    effort = options.effort("models of the labels", tasks=())
    point = problem.descend(problem.point(labels, Z), np.random.default_rng(0), effort)
    return Outcome(problem, point, single if learns else point, similarity)


def _judged(question: Question, judge: Judge, found: Sequence[Candidate]) -> list[tuple[Tried, Labels]]:
    """Candidates with different labels, highest score first."""
    first: dict[bytes, Candidate] = {}
    for own in found:
        first.setdefault(own.labels.tobytes(), own)
    labels = np.stack([own.labels for own in first.values()])
    score, terms = judge.of(labels)
    score = score + [question.hints.agreement(own, question.n_clusters) for own in labels]
    tried = [
        Tried(own.method + IN_FRAME[own.frame], float(score[k]), float(terms["separation"][k]), own.frame)
        for k, own in enumerate(first.values())
    ]
    return [(tried[k], labels[k]) for k in np.argsort(-score.round(6), kind="stable")]
