"""What the arguments of an estimator leave open, chosen in one place for every form of the data.

Everything is chosen on few rows, held as kernel matrices: all of them where there are few, or else a sample that does
not depend on chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.choose.choice import Choice, Question, choose_kernel, choose_labels
from mtclust.choose.views import View, candidate_kernels, is_wide
from mtclust.core import Array
from mtclust.core.coupling import COUPLINGS
from mtclust.core.hints import NO_HINTS, Hints
from mtclust.core.labels import offsets_of, one_per_task, same_for_all_clusters
from mtclust.core.tasks import ORDERED, TaskIndex
from mtclust.rows.source import MovedRows
from mtclust.search.problem import Method, SearchOptions

#: rows that settings are chosen on, and the fewest of a task
SAMPLE_ROWS, TASK_ROWS = 600, 15
#: candidates are searched with ``n_init`` divided by this
EFFORT = 4


@dataclass(frozen=True)
class Params:
    """The parameters of an estimator after they were checked, and what follows from them.

    ``coupling`` and ``center`` have the values that they mean in methods without them. ``method`` is how several tasks
    are coupled, ``form`` the one that ``solver_options`` asks for, ``options`` is what a search takes.
    """

    n_clusters: Any
    kernel: Any
    width: float | str
    lambda1: float | str | Mapping[Any, float]
    lambda2: float | str
    sizes: Any
    solver: str
    solver_options: dict[str, Any] | None
    n_components: int | None
    fit_intercept: bool
    method: Method
    form: str
    options: SearchOptions
    by_rows: bool  # whether rows are known, not only a kernel of them
    sizes_open: bool  # whether sizes are to be chosen
    coupling: float | str = "full"
    center: str = "task"

    def method_of(self, n_tasks: int) -> Method:
        """How so many tasks are coupled."""
        kind = COUPLINGS[self.method]
        alone = not kind.learns or self.coupling in ("none", 0) or (n_tasks == 1 and not kind.of_features)
        return "independent" if alone else self.method


@dataclass(frozen=True)
class Input:
    """What a fit is given to cluster."""

    rows: Any  # an array, a CSR matrix or another table that numbers of rows index
    index: TaskIndex
    clusters: NDArray[np.int64]  # their number in every task
    hints: Hints = NO_HINTS  # what is known of rows sorted by task

    def as_one_task(self, moves: Array | None = None) -> Input:
        """The same rows, all of one task; ``moves`` are taken off the rows of every task."""
        rows = self.rows
        if not self.index.in_memory:
            rows = rows.as_one_task(moves)
        elif moves is not None:
            rows = rows.toarray() if sp.issparse(rows) else rows
            rows = MovedRows(rows, moves.astype(rows.dtype), self.index.task_numbers)
        return replace(self, rows=rows, index=self.index.as_one_task(), clusters=self.clusters[:1])


@dataclass(frozen=True)
class Sample:
    """The rows that settings are chosen on, sorted by task."""

    rows: Any
    index: TaskIndex  # of these rows
    tasks: NDArray[np.int64]  # which tasks these are, ascending
    positions: list[NDArray[np.int64]]  # which rows of each of these tasks, in the order of the task
    where: NDArray[np.int64]  # which of all rows sorted by task these are
    order: NDArray[Any]  # which rows of the input, or of what a Dask cluster holds, these are
    complete: bool  # whether these are all rows

    @classmethod
    def of(cls, X: Any, index: TaskIndex, tasks: Any = None, numbers: Any = None) -> Sample:
        """So many rows of some tasks, those that come first in the order of content; all rows by default."""
        complete = tasks is None
        if complete:
            tasks, positions = np.arange(index.n_tasks), [np.arange(n) for n in index.sizes]
        else:
            positions = index.first_rows(tasks, numbers)
        where = np.concatenate([index.offsets[i] + part for i, part in zip(tasks, positions)])
        order = index.input_rows(where)
        rows = X[order]
        rows = rows.astype(np.float64, copy=False) if sp.issparse(rows) else np.asarray(rows, dtype=np.float64)
        sizes = np.array([len(part) for part in positions])
        order_of_tasks = np.argsort(np.argsort(index.task_order)[tasks])
        content = None if index.content is None else replace(index.content, tasks=order_of_tasks)
        task_numbers = np.repeat(np.arange(len(tasks)), sizes)
        own = TaskIndex(index.names[tasks], task_numbers, np.arange(len(order)), offsets_of(sizes), True, content, True)
        return cls(rows, own, tasks, positions, where, order, complete)


def sample_rows(X: Any, index: TaskIndex, most: int, least: int = TASK_ROWS) -> Sample:
    """About ``most`` rows, as many of every task, at least ``least``; of the largest tasks where these are too many."""
    sizes = index.sizes[index.task_order]
    largest = np.argsort(-sizes, kind="stable")
    enough = int(np.searchsorted(np.minimum(sizes[largest], least).cumsum(), most)) + 1
    tasks = np.sort(index.task_order[largest[:enough]])
    return Sample.of(X, index, tasks, np.minimum(index.sizes[tasks], max(least, most // len(tasks))))


def choose_settings(
    params: Params, given: Input, sample: Sample, many_directions: bool, lambdas: tuple[Array, float] | None
) -> Choice:  # fmt: skip
    """Choose what the parameters leave open, on the rows of a sample, which may spread over many directions."""
    index, center = given.index, params.center
    if lambdas is not None:
        lambdas = lambdas[0][sample.tasks], lambdas[1] * index.n_tasks / len(sample.tasks)
    # tasks have frames of their own; with sizes open and rows that can be centred there may be one for all
    possible: Any = ("task",)
    if center != "task" and sample.index.n_tasks > 1:
        free = params.sizes_open and np.ptp(given.clusters) == 0 and params.coupling in ("auto", "full", 1)
        if free and not is_wide(given.rows):
            possible = ("task", "all", "aligned") if params.by_rows else ("task", "all")
        if center not in ("auto", *possible):
            raise ValueError(
                f'center="{center}" needs sizes="auto", fit_intercept=True, one number of clusters for all tasks, '
                'solver="exchange", coupling="auto" or "full", and rows that are dense or of at most 2 million cells; '
                'center="aligned" also needs rows in place of a precomputed kernel. Use center="task".'
            )
        possible = possible if center == "auto" else (center,)
    columns = getattr(index.content, "columns", None)
    view = View(sample.rows, sample.index.offsets, sample.order, params.fit_intercept, columns)
    question = Question(
        view, candidate_kernels(params.kernel, params.width, many_directions), given.clusters[sample.tasks],
        params.method_of(sample.index.n_tasks),
        params.sizes if sample.complete or same_for_all_clusters(params.sizes) else "balanced", params.sizes_open,
        lambdas, possible, params.n_components, sample.index.names,
        given.hints if sample.complete else given.hints.of_rows(sample.where, given.rows.shape[0]),
        params.coupling == "auto", many_directions,
    )  # fmt: skip
    several = question.sizes_open or len(question.kernels) > 1 or len(question.frames) > 1
    begin = question.in_frame(question.frames[0]).view
    # neither one cluster nor equal rows leave a choice
    equal = question.n_clusters == 1 or all(begin.through(own).centred.scale == 0 for own in question.kernels)
    if equal or not several:
        return Choice(question, question.kernels[0], "E" if question.sizes_open else "J", question)
    if question.sizes_open:
        return choose_labels(question, params.options, sample.index.task_order)
    small = not sample.complete and sample.index.sizes.max() <= TASK_ROWS  # restarts cost more than they gain
    n_init = 1 if small else max(1, params.options.n_init // EFFORT)
    return choose_kernel(question, replace(params.options, n_init=n_init, polish=False))


def rows_by_task(params: Params, rows: Any, index: TaskIndex) -> TaskIndex:
    """Index of the tasks, rows ordered by content unless sizes are given and there are more than 20 000.

    Rows that are only known through a kernel stay as they came, too.
    """
    ordered = params.by_rows and (params.sizes_open or rows.shape[0] <= ORDERED)
    return index.by_content(rows) if ordered else index


def given_lambdas(params: Params, index: TaskIndex) -> tuple[Array, float] | None:
    """λ₁ by task and λ₂, as they are given; where one λ is, the other is the same."""
    lambda1, lambda2 = params.lambda1, None if params.lambda2 == "auto" else float(params.lambda2)
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
    lambda2 = float(values.mean()) if lambda2 is None else lambda2
    if lambda2 == 0:
        raise ValueError("lambda1 is 0, and lambda2 is left to be the same, which leaves no ridge; give lambda2 > 0.")
    return values, lambda2
