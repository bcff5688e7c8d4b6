"""What the arguments of an estimator leave open, chosen in one place for every form of the data.

Everything is chosen on few rows, held as kernel matrices: all of them where there are few, or else a sample that does
not depend on chance. With nothing left open only the judge is made ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.choose.choice import Choice, Question, choose_kernel, choose_labels, constant_lambdas
from mtclust.choose.frames import Frame
from mtclust.choose.views import KernelSpec, View, candidate_kernels, is_wide
from mtclust.core.hints import NO_HINTS, Hints
from mtclust.core.kernels import Kernel
from mtclust.core.labels import offsets_of, one_per_task, same_for_all_clusters
from mtclust.core.tasks import ORDERED, TaskIndex, index_tasks
from mtclust.search.problem import Point, SearchOptions

Array = NDArray[np.float64]

#: rows that settings are chosen on: so many for every cluster of every task, within these bounds; the fewest of a task
_ROWS_PER_CLUSTER = 12
FEWEST, MOST = 360, 600
_LEAST_ROWS = 15
#: tasks that a sample takes rows of, the largest first: all up to so many, of more as have the fewest rows that
#: settings are chosen on, and so many at least
_TASKS, _FEWEST_TASKS = 100, 60
#: candidates are searched with this share of ``n_init``
EFFORT = 4


@dataclass(frozen=True)
class Input:
    """What a fit is given to cluster.

    Attributes
    ----------
    rows : array, CSR matrix or another table that numbers of rows index
    index : TaskIndex
    clusters : ndarray of shape (m,)
        Number of clusters of every task.
    hints : Hints
        What is known of rows sorted by task.
    """

    rows: Any
    index: TaskIndex
    clusters: NDArray[np.int64]
    hints: Hints = NO_HINTS

    @property
    def n_rows(self) -> int:
        return int(self.index.offsets[-1])

    def as_one_task(self, moves: Array | None = None) -> Input:
        """The same rows, all of one task; ``moves`` are taken off the rows of every task."""
        rows = self.rows
        if moves is not None:
            rows = rows.toarray() if sp.issparse(rows) else rows
            rows = rows - moves.astype(rows.dtype)[self.index.task_numbers]
        return replace(self, rows=rows, index=self.index.as_one_task(), clusters=self.clusters[:1])


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

    def positions_in(self, index: TaskIndex) -> NDArray[np.int64]:
        """Where these rows are among all rows sorted by task, whose index is given."""
        return np.concatenate([index.offsets[i] + part for i, part in zip(self.tasks, self.positions)])

    def labels_of(self, point: Point, index: TaskIndex) -> NDArray[np.int64]:
        """Labels of these rows at a point of all rows, whose index is given."""
        if index.in_memory:
            return np.asarray(point.labels, dtype=np.int64)[self.positions_in(index)]
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
    frame : {"task", "all", "aligned"}
    criterion : {"J", "E"}
    sizes : {"given", "free"}
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    view : View
        Of the sample, aligned where the frame is.
    choice : Choice or None
        None where nothing was open.
    question : Question
        Of the rows of the sample.
    moves : ndarray of shape (m, d) or None
        How far the tasks are moved, where they are aligned.
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
    choice: Choice | None
    question: Question
    moves: Array | None = None
    selection: dict[str, Any] = field(default_factory=dict)

    @property
    def X(self) -> Array:
        """The rows of the sample in coordinates."""
        return self.question.X


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
    offsets = offsets_of(sizes)
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

    These are the rows of every task that come first in the order of content.
    """
    tasks = np.arange(index.n_tasks) if tasks is None else tasks
    each = max(least, most // min(len(tasks), most_tasks))
    if len(tasks) > most_tasks:
        largest = np.argsort(-index.sizes[tasks], kind="stable")[:most_tasks]
        rows = np.minimum(index.sizes[tasks[largest]], least).cumsum()
        tasks = tasks[np.sort(largest[: max(_FEWEST_TASKS, int(np.searchsorted(rows, FEWEST)) + 1)])]
    wanted = np.minimum(index.sizes[tasks], each)
    positions = [index.first_rows(int(task), int(k)) for task, k in zip(tasks, wanted)]
    return _taken(X, index, tasks, positions, complete=False)


def choose_settings(estimator: Any, given: Input, sample: Sample, options: SearchOptions) -> Settings:
    """Choose what the estimator's arguments leave open, on the rows of a sample; only its parameters are read."""
    index, m = given.index, given.index.n_tasks
    lambdas = _given_lambdas(estimator, index)
    question = _question(estimator, given, sample, lambdas)
    choice, view, moves = None, question.view, None
    frame: Frame = "task"
    spec, criterion = question.kernels[0], "E" if question.sizes_open else "J"
    sizes = "free" if criterion == "E" else "given"
    if _is_open(question):
        choice = (choose_labels if question.sizes_open else choose_kernel)(
            question, replace(options, n_init=max(1, options.n_init // EFFORT))
        )
        spec, frame = choice.spec, choice.frame
    share = estimator._lambda2_share(m)
    if choice is not None and frame != "task":  # then all rows are one task
        share, one = 1.0, choice.question
        if choice.offsets is not None:
            view, moves = one.view, np.zeros((m, choice.offsets.shape[1]))
            moves[sample.tasks] = choice.offsets
        lambda1, lambda2 = one.lambdas or constant_lambdas(1, spec, criterion)
        lambda1 = np.repeat(lambda1, m)
    else:
        lambda1, lambda2 = lambdas or constant_lambdas(m, spec, criterion, share)
    kernel = view.through(spec, frame).kernel
    settings = Settings(spec, kernel, frame, criterion, sizes, lambda1, lambda2 * share, view, choice, question, moves)
    by_task = isinstance(estimator.lambda1, Mapping)
    settings.selection["lambda1"] = dict(zip(index.names.tolist(), lambda1.tolist())) if by_task else float(lambda1[0])
    settings.selection["lambda2"] = lambda2
    if not sample.complete:
        settings.selection["chosen_on"] = f"{sample.rows.shape[0]} rows of {sample.index.n_tasks} tasks"
    settings.selection.update(_words(estimator, settings))
    return settings


def _question(estimator: Any, given: Input, sample: Sample, lambdas: tuple[Array, float] | None) -> Question:
    """What the arguments leave open, on the rows of a sample; ``lambdas`` are those of all tasks."""
    rows, offsets, left_open = sample.rows, sample.index.offsets, sizes_left_open(estimator)
    columns = given.index.columns if by_rows(estimator) else None
    view = View(rows, offsets, sample.order, estimator.fit_intercept, columns)
    if lambdas is not None:
        m, few = len(lambdas[0]), len(sample.tasks)
        lambdas = lambdas[0][sample.tasks], lambdas[1] * estimator._lambda2_share(m) * m / few
    return Question(
        view, candidate_kernels(estimator.kernel, estimator.width, is_wide(rows)), given.clusters[sample.tasks],
        estimator._method(sample.index.n_tasks),
        estimator.sizes if sample.complete or same_for_all_clusters(estimator.sizes) else "balanced", left_open,
        lambdas, _frames(estimator, given, sample), estimator.n_components, sample.index.names,
        given.hints.of_rows(sample.positions_in(given.index), given.n_rows),
        getattr(estimator, "coupling", "full") == "auto",
    )  # fmt: skip


def _frames(estimator: Any, given: Input, sample: Sample) -> tuple[Frame, ...]:
    """The frames that tasks may be put in; those common to all need rows that can be centred."""
    frames = _open_frames(estimator, sample.index.n_tasks, given.clusters)
    if frames == ("task",):
        return frames
    possible: tuple[Frame, ...] = ("task",)
    if given.index.in_memory and not is_wide(given.rows):
        possible = ("task", "all", "aligned") if by_rows(estimator) else ("task", "all")
    if len(frames) == 1 and frames[0] not in possible:
        raise ValueError(
            f'center="{frames[0]}" needs rows in memory, dense or of at most 2 million cells, "aligned" also a kernel '
            'of rows; use center="task".'
        )
    return tuple(frame for frame in frames if frame in possible)


def _open_frames(estimator: Any, n_tasks: int, clusters: NDArray[np.int64]) -> tuple[Frame, ...]:
    """The frames that tasks may be put in: their own, or with sizes and all else left open one for all."""
    center: Any = getattr(estimator, "center", "task")
    if center == "task" or n_tasks == 1:
        return ("task",)
    coupling = getattr(estimator, "coupling", "auto")
    possible = sizes_left_open(estimator) and np.ptp(clusters) == 0 and coupling in ("auto", "full", 1)
    if center == "auto":
        return ("task", "all", "aligned") if possible else ("task",)
    if not possible:
        raise ValueError(
            f'center="{center}" needs sizes="auto", fit_intercept=True, one number of clusters for all tasks, '
            f'solver="exchange" and coupling="auto" or "full"; got sizes={estimator.sizes!r}, fit_intercept='
            f"{estimator.fit_intercept}, n_clusters={estimator.n_clusters!r}, solver={estimator.solver!r}, "
            f"coupling={coupling!r}."
        )
    return (center,)


def by_rows(estimator: Any) -> bool:
    """Whether rows are known, not only a kernel of them."""
    return isinstance(estimator.kernel, str) and estimator.kernel != "precomputed"


def rows_by_task(estimator: Any, rows: Any, ids: Any) -> TaskIndex:
    """Rows by task in the order of their content; very many stay in their own where sizes are given.

    Nothing but a sample would depend on that order then, and rows that come in chunks do not know it.
    """
    index = index_tasks(ids, rows.shape[0])
    ordered = by_rows(estimator) and (sizes_left_open(estimator) or rows.shape[0] <= ORDERED)
    return index.by_content(rows) if ordered else index


def sizes_left_open(estimator: Any) -> bool:
    """Whether sizes are to be chosen: without centring one big cluster would be best."""
    left_open = isinstance(estimator.sizes, str) and estimator.sizes == "auto"
    return bool(left_open and estimator.fit_intercept and estimator.solver == "exchange")


def _is_open(question: Question) -> bool:
    """Whether there is anything to choose: not with one cluster, nor where rows do not differ."""
    if not (question.sizes_open or len(question.kernels) > 1 or len(question.frames) > 1) or question.n_clusters == 1:
        return False
    return any(question.view.through(spec, question.frames[0]).centred.scale > 0 for spec in question.kernels)


def _given_lambdas(estimator: Any, index: TaskIndex) -> tuple[Array, float] | None:
    """λ₁ by task and λ₂ as they are given; where one is, the other is the same."""
    lambda1, lambda2 = estimator.lambda1, None if estimator.lambda2 == "auto" else float(estimator.lambda2)
    if isinstance(lambda1, Mapping):
        values = np.array([float(value) for value in one_per_task("lambda1", lambda1, index.names)])
        if not np.all(np.isfinite(values)) or np.any(values < 0):
            raise ValueError(f"lambda1 must hold numbers >= 0; got {dict(lambda1)}.")
    elif lambda1 != "auto":
        values = np.full(index.n_tasks, float(lambda1))
    elif lambda2 is not None:
        values = np.full(index.n_tasks, lambda2)
    else:
        return None
    return values, float(values.mean()) if lambda2 is None else lambda2


def _words(estimator: Any, settings: Settings) -> dict[str, Any]:
    """What ``selection_`` says of the kernel, the criterion, the sizes and the frame."""
    spec, frame, choice, left_open = settings.spec, settings.frame, settings.choice, sizes_left_open(estimator)
    selection: dict[str, Any] = {"kernel": spec.name, "criterion": settings.criterion, "center": frame}
    selection["sizes"] = estimator.sizes
    if spec.width is not None:
        selection["width"] = spec.width
    if left_open:
        selection["sizes"] = {"chosen": settings.sizes, "reason": _SIZES_IN_WORDS[settings.sizes]}
    if choice is not None:
        selection["reason"] = choice.reason
        selection["candidates"] = [
            {"name": own.name, "score": own.score, "separation": own.separation}
            for own in sorted(choice.tried, key=lambda own: own is not choice.best)
        ]
        if len(choice.question.frames) > 1 or frame != "task":
            selection["frame"] = _FRAME_IN_WORDS[frame]
    return selection


_SIZES_IN_WORDS = {
    "free": "whatever sizes the chosen labels have",
    "given": "set by the user",
}
_FRAME_IN_WORDS = {
    "task": "every task around its own centre: tasks may be shifted against each other, and have all clusters",
    "all": "all tasks in one frame: the levels of the tasks count, and a task may lack clusters",
    "aligned": "all tasks in one frame, each moved by an offset of its own: a task may lack clusters",
}
