"""What the arguments of an estimator leave open, chosen in one place for every form of the data.

Everything is chosen on few rows, held as kernel matrices: all of them where there are few, or else a sample that does
not depend on chance. With nothing left open only the judge is made ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.choose.candidates import Choice, Question, choose, constant_lambdas
from mtclust.choose.judge import Judge
from mtclust.choose.views import Frame, KernelSpec, View, candidate_kernels, is_wide, judging_kernels
from mtclust.features import Kernel
from mtclust.labels import same_for_all_clusters
from mtclust.problem.protocol import Point, SearchOptions
from mtclust.tasks import TaskIndex

Array = NDArray[np.float64]

#: rows that settings are chosen on: so many for every cluster of every task, within these bounds; the fewest of a task
_ROWS_PER_CLUSTER = 12
FEWEST, MOST = 360, 600
_LEAST_ROWS = 15
#: tasks that a sample takes rows of, the largest first
_TASKS = 100
#: from so many rows on the linear kernel is taken where it falls behind by no more than this
_VERY_MANY, _LINEAR_LEAD = 20_000, 0.02
#: candidates are searched with this share of ``n_init``
_EFFORT = 4


@dataclass(frozen=True)
class Sample:
    """The rows that settings are chosen on, sorted by task.

    Attributes
    ----------
    rows : array or CSR matrix
    index : TaskIndex
        Of these rows; tasks may come in another order than in the index of all rows.
    tasks : ndarray
        Which tasks these are.
    positions : list of ndarrays
        Which rows of each of these tasks, in the order of the task.
    order : ndarray
        Which rows of the input these are.
    complete : bool
        Whether these are all rows.
    """

    rows: Any
    index: TaskIndex
    tasks: NDArray[np.int64]
    positions: list[NDArray[np.int64]]
    order: NDArray[Any]
    complete: bool

    @property
    def in_order(self) -> bool:
        """Whether these are all rows of all tasks in the order of their index."""
        return self.complete and bool(np.all(np.diff(self.tasks) > 0))

    def labels_of(self, point: Point, index: TaskIndex) -> NDArray[np.int64]:
        """Labels of these rows at a point of all rows, whose index is given."""
        if index.in_memory:
            begins = index.offsets[self.tasks]
            where = np.concatenate([a + part for a, part in zip(begins, self.positions)])
            return np.asarray(point.labels, dtype=np.int64)[where]
        tasks, asked = point.fit.tasks, [np.empty(0, dtype=np.int64)] * index.n_tasks
        for task, part in zip(self.tasks, self.positions):
            asked[task] = part
        found = type(tasks[0]).of_rows(tasks, asked)
        return np.concatenate([found[task] for task in self.tasks]).astype(np.int64)

    def by_task(self, labels: NDArray[np.int64]) -> tuple[list[NDArray[np.int64]], NDArray[np.int64], Any]:
        """For labels of these rows of all tasks: positions and labels in the order of the index of all rows.

        The last is that order: entry k says which of these tasks is task k.
        """
        place = np.argsort(self.tasks)
        offsets = self.index.offsets
        return (
            [self.positions[k] for k in place],
            np.concatenate([labels[offsets[k] : offsets[k + 1]] for k in place]),
            place,
        )


@dataclass(frozen=True)
class Settings:
    """What was chosen, and from what.

    Attributes
    ----------
    spec : KernelSpec
    kernel : Kernel
    frame : {"task", "all"}
    criterion : {"J", "E"}
    sizes : {"given", "balanced", "released", "free"}
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    view : View
        Of the sample.
    judge : Judge
        Of the sample.
    choice : Choice or None
        None where nothing was open.
    selection : dict
        For ``selection_``.
    """

    spec: KernelSpec
    kernel: Kernel
    frame: Frame
    criterion: str
    sizes: str
    lambda1: Array
    lambda2: float
    view: View
    judge: Judge
    choice: Choice | None
    selection: dict[str, Any]


def all_rows(X: Any, index: TaskIndex, tasks: NDArray[np.int64] | None = None) -> Sample:
    """Every row, as float64, the tasks in the order given."""
    tasks = np.arange(index.n_tasks) if tasks is None else tasks
    return _taken(X, index, tasks, [np.arange(n) for n in index.sizes[tasks]], complete=True)


def _taken(
    X: Any, index: TaskIndex, tasks: NDArray[np.int64], positions: list[NDArray[np.int64]], complete: bool
) -> Sample:
    order = index.input_rows(np.concatenate([index.offsets[i] + part for i, part in zip(tasks, positions)]))
    rows = X[order]
    rows = rows.astype(np.float64, copy=False) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
    sizes = np.array([len(part) for part in positions])
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    own = TaskIndex(index.names[tasks], np.repeat(np.arange(len(tasks)), sizes), np.arange(len(order)), offsets, True)
    return Sample(rows, own, tasks, positions, order, complete)


def rows_to_choose_on(clusters: NDArray[np.int64]) -> int:
    """How many rows settings are chosen on, from the number of clusters of every task.

    Examples
    --------
    >>> import numpy as np
    >>> rows_to_choose_on(np.array([3, 3])), rows_to_choose_on(np.full(8, 5)), rows_to_choose_on(np.full(20, 10))
    (360, 480, 600)
    """
    return int(np.clip(_ROWS_PER_CLUSTER * clusters.sum(), FEWEST, MOST))


def sample_rows(
    X: Any, index: TaskIndex, most: int, tasks: NDArray[np.int64] | None = None, *,
    most_tasks: int = _TASKS, least: int = _LEAST_ROWS,
) -> Sample:  # fmt: skip
    """About ``most`` rows, as many of every task, at least ``least``; of the largest tasks where there are very many.

    The same ones every time; every k-th row would follow cycles in the order of rows.
    """
    rng = np.random.default_rng(0)
    tasks = np.arange(index.n_tasks) if tasks is None else tasks
    if len(tasks) > most_tasks:
        tasks = tasks[np.sort(np.argsort(-index.sizes[tasks], kind="stable")[:most_tasks])]
    wanted = np.minimum(index.sizes[tasks], max(least, most // len(tasks)))
    positions = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(index.sizes[tasks], wanted)]
    return _taken(X, index, tasks, positions, complete=False)


def choose_settings(
    estimator: Any, sample: Sample, index: TaskIndex, clusters: NDArray[np.int64], options: SearchOptions,
    known: NDArray[np.int64] | None = None,
) -> Settings:  # fmt: skip
    """Choose what the estimator's arguments leave open; only its parameters are read.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
    sample : Sample
        The rows to choose on.
    index : TaskIndex
        Of all rows.
    clusters : ndarray of shape (m,)
        Number of clusters of every task.
    options : SearchOptions
    known : ndarray of shape (n,), optional
        Clusters of all rows, sorted by task, −1 where unknown.
    """
    m = index.n_tasks
    view = View(sample.rows, sample.index.offsets, sample.order, estimator.fit_intercept)
    given = given_lambdas(estimator, index)
    frames = estimator._frames(sample.index.n_tasks, clusters)
    if "all" in frames and (not index.in_memory or is_wide(sample.rows)):
        if frames == ("all",):
            raise ValueError(
                'center="all" needs rows in memory, dense or of at most 2 million cells; use center="task".'
            )
        frames = ("task",)
    question = replace(
        _question(estimator, view, sample, clusters, given, frames, int(index.sizes.sum())),
        known=_of_sample(known, sample, index),
    )
    choice = None
    if _is_open(question) and _varies(question):
        choice = choose(question, replace(options, n_init=max(1, options.n_init // _EFFORT)))
        best = choice.best
        spec = next(spec for spec in question.kernels if spec.name == best.kernel)
        frame, criterion, sizes = best.frame, best.criterion, best.sizes
    else:
        spec, frame, criterion = question.kernels[0], question.frames[0], question.criteria[0]
        sizes = "free" if criterion == "E" else "balanced" if question.sizes_open else "given"
    share = estimator._lambda2_share(m)
    lambda1, lambda2 = given or constant_lambdas(m, spec, criterion, share)
    kernel = view.through(spec, frame).kernel
    selection = _words(estimator, question, choice, spec, frame, criterion, sizes)
    by_task = isinstance(estimator.lambda1, Mapping)
    selection["lambda1"] = dict(zip(index.names.tolist(), lambda1.tolist())) if by_task else float(lambda1[0])
    selection["lambda2"] = lambda2
    if not sample.complete:
        selection["chosen_on"] = f"{sample.rows.shape[0]} rows of {sample.index.n_tasks} tasks"
    return Settings(
        spec, kernel, frame, criterion, sizes, lambda1, lambda2 * share, view, question.judge, choice, selection
    )


def _of_sample(known: NDArray[np.int64] | None, sample: Sample, index: TaskIndex) -> NDArray[np.int64] | None:
    """Known clusters of the rows of a sample; None where none of them is known."""
    if known is not None:
        known = np.concatenate([known[index.offsets[i] + part] for i, part in zip(sample.tasks, sample.positions)])
    return None if known is None or np.all(known < 0) else known


def _question(
    estimator: Any, view: View, sample: Sample, clusters: NDArray[np.int64], given: tuple[Array, float] | None,
    frames: tuple[Frame, ...], n_rows: int,
) -> Question:  # fmt: skip
    method, left_open = estimator._method(sample.index.n_tasks), sizes_left_open(estimator)
    centred = view if view.centre else View(view.rows, view.offsets, view.order)
    specs = judging_kernels(estimator.kernel, is_wide(view.rows))
    judge = Judge({spec.name: centred.through(spec, "task").centred.matrix for spec in specs}, view.offsets)
    own = clusters[sample.tasks]
    lambdas = None
    if given is not None:
        m, few = len(given[0]), len(sample.tasks)
        lambdas = given[0][sample.tasks], given[1] * estimator._lambda2_share(m) * m / few
    return Question(
        view, candidate_kernels(estimator.kernel, estimator.width, is_wide(view.rows)), judge, own, method,
        estimator.sizes if sample.complete or same_for_all_clusters(estimator.sizes) else "balanced", lambdas,
        frames, estimator.n_components,
        ("E", "J") if left_open and not is_wide(view.rows) else ("J",), left_open, sample.index.names,
        _LINEAR_LEAD if n_rows > _VERY_MANY else 0.0,
    )  # fmt: skip


def sizes_left_open(estimator: Any) -> bool:
    """Whether sizes are to be chosen: without centring one big cluster would be best."""
    left_open = isinstance(estimator.sizes, str) and estimator.sizes == "auto"
    return bool(left_open and estimator.fit_intercept and estimator.solver == "exchange")


def _is_open(question: Question) -> bool:
    return question.sizes_open or len(question.kernels) > 1 or len(question.frames) > 1


def _varies(question: Question) -> bool:
    """With one cluster, or rows that do not differ, there is nothing to choose from."""
    if question.n_clusters == 1:
        return False
    return any(question.view.through(spec, question.frames[0]).centred.scale > 0 for spec in question.kernels)


def given_lambdas(estimator: Any, index: TaskIndex) -> tuple[Array, float] | None:
    """λ₁ by task and λ₂ as they are given; where one is, the other is the same."""
    lambda1 = given_lambda1(estimator.lambda1, index)
    lambda2 = None if estimator.lambda2 == "auto" else float(estimator.lambda2)
    if lambda1 is None and lambda2 is None:
        return None
    lambda1 = np.full(index.n_tasks, lambda2) if lambda1 is None else lambda1
    return lambda1, float(lambda1.mean()) if lambda2 is None else lambda2


def given_lambda1(lambda1: Any, index: TaskIndex) -> Array | None:
    """One λ₁ per task from a number or a mapping; None for "auto"."""
    if not isinstance(lambda1, Mapping):
        return None if lambda1 == "auto" else np.full(index.n_tasks, float(lambda1))
    names = index.names.tolist()
    missing, surplus = [n for n in names if n not in lambda1], [n for n in lambda1 if n not in names]
    if missing or surplus:
        raise ValueError(
            f"lambda1 must have one entry per task; missing: {missing or 'none'}, not a task: {surplus or 'none'}."
        )
    values = np.array([float(lambda1[name]) for name in names])
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"lambda1 must hold numbers >= 0; got {dict(lambda1)}.")
    return values


def _words(
    estimator: Any,
    question: Question,
    choice: Choice | None,
    spec: KernelSpec,
    frame: Frame,
    criterion: str,
    sizes: str,
) -> dict[str, Any]:
    """What ``selection_`` says."""
    selection: dict[str, Any] = {"kernel": spec.name, "criterion": criterion, "center": frame, "sizes": estimator.sizes}
    if spec.width is not None:
        selection["width"] = spec.width
    if question.sizes_open:
        selection["sizes"] = {"chosen": sizes, "reason": _SIZES_IN_WORDS[sizes]}
    if choice is not None:
        selection["reason"] = choice.reason
        if question.sizes_open:
            own = [candidate for candidate in choice.tried if candidate.frame == frame]
            selection["sizes"]["scores"] = {c.sizes: c.verdict.score for c in reversed(own)}
        selection["candidates"] = [
            {
                "name": candidate.name, "kernel": candidate.kernel, "criterion": candidate.criterion,
                "sizes": candidate.sizes, "center": candidate.frame, "score": candidate.verdict.score,
                "separation": candidate.verdict.separation,
            }
            for candidate in choice.tried
        ]  # fmt: skip
        if len({candidate.frame for candidate in choice.tried}) > 1:
            selection["frame"] = _FRAME_IN_WORDS[frame]
    return selection


_SIZES_IN_WORDS = {
    "free": "found with sizes left free, by how well membership is predicted",
    "balanced": "clusters of equal size separate best",
    "released": "found with equal sizes, which rows could then leave",
    "given": "set by the user",
}
_FRAME_IN_WORDS = {
    "task": "every task around its own centre: tasks may be shifted against each other, and have all clusters",
    "all": "all tasks in one frame: the levels of the tasks count, and a task may lack clusters",
}
