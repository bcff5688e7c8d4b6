"""How sure a fitted model is: probabilities, how well clusters are separated, and rows that belong nowhere.

Separation and outlier scores are found when they are first read, from copies that a fit keeps until then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.choice import Question
from mtclust.choose.judge import Predictability
from mtclust.choose.settings import ROWS, all_rows, rows_by_task, sample_rows
from mtclust.choose.views import View, candidate_kernels
from mtclust.core.kernels import Kernel
from mtclust.core.model import best_temperature, probabilities
from mtclust.core.tasks import TaskIndex, index_tasks, numbers_of_known_tasks
from mtclust.core.validation import read_rows
from mtclust.distributed import is_dask
from mtclust.estimators.outliers import outliers_of
from mtclust.search.recipe import Outcome
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: rows that are judged without taking a sample
_JUDGED_ROWS = 1000
#: up to this many rows a fit has probabilities and outlier scores of them
STORED_ROWS = 20_000


def store_confidence(model: AfterFit, rows: Any, index: TaskIndex, outcome: Outcome) -> None:
    """Find the temperature and ``probabilities_``, and keep what is needed to find the rest later."""
    point, problem = outcome.point, outcome.problem
    stored = index.in_memory and rows.shape[0] <= STORED_ROWS
    if stored:
        scores = problem.leave_one_out(point, *(() if outcome.model_codes is None else (outcome.model_codes,)))
    else:
        searched = outcome.few or outcome
        scores, point = searched.problem.leave_one_out(searched.point), searched.point
    temperature = best_temperature(scores, np.asarray(point.labels, dtype=np.int64))
    model._model = replace(model._model, temperature=temperature)
    model.probabilities_ = index.to_input_order(probabilities(scores, temperature)) if stored else None
    labels = model.labels_ if index.in_memory else outcome.point.labels
    judged = judged_rows(model, rows, index, np.arange(len(index.names)), labels)
    model._later = judged, sorted_rows(model, rows, index) if stored else None


def separation_by(model: AfterFit, X: Any, tasks: Any) -> float:
    """Separation of the clusters that a model puts rows in."""
    if is_dask(X, tasks):
        raise TypeError("score needs rows in memory, but X or tasks is a Dask collection; give some rows computed.")
    if model.kernel == "precomputed":
        raise ValueError(
            'score needs the rows themselves; it cannot be used with kernel="precomputed". Use loo_score_, or fit '
            'with kernel="rbf", "linear" or a callable.'
        )
    labels = model.predict(X, tasks=tasks)
    features, ids = read_rows(model, X, tasks, reset=False)
    index = rows_by_task(model._read_params(), features, index_tasks(ids, features.shape[0]))
    numbers = numbers_of_known_tasks(None if ids is None else index.names, index.n_tasks, model.tasks_)
    judged = judged_rows(model, features, index, numbers, labels)
    return float(separation(*judged, model.n_clusters_).mean())


def judged_rows(
    model: AfterFit, rows: Any, index: TaskIndex, task_numbers: Labels, labels: Any
) -> tuple[Question, Labels]:
    """The rows that separation is taken of, in the frame of a model, and their labels; copies.

    ``task_numbers`` are those of the tasks in the model. Of very many rows there is a sample.
    """
    few = int(index.sizes.sum()) <= _JUDGED_ROWS
    sample = all_rows(rows, index) if few else sample_rows(rows, index, ROWS)
    view = View(sample.rows, sample.index.offsets, sample.order, columns=index.columns)
    kernels = candidate_kernels(model.kernel, "auto")
    clusters = np.full(sample.index.n_tasks, model.n_clusters_)
    question = Question(view, kernels, clusters, "independent")
    labels = labels[sample.order] if index.in_memory else index.labels_at(labels, sample.positions_in(index))
    tasks = task_numbers[sample.tasks[sample.index.task_numbers]]
    question, places = question.of_tasks(sample.index.task_order)
    labels, tasks = labels[places], tasks[places]
    if model.selection_.center != "task":
        seen = model._kept.in_frame(question.view.rows, tasks)
        view = replace(question.view, rows=seen, offsets=np.array([0, len(labels)]))
        question = replace(question, view=view)
    return question, labels


def separation(question: Question, labels: Labels, n_clusters: int) -> Array:
    """How well every cluster is separated."""
    with one_blas_thread():
        return Predictability(question.rows_as_they_are, question.tasks).by_cluster(labels, n_clusters)


def sorted_rows(model: AfterFit, rows: Any, index: TaskIndex) -> tuple[TaskIndex, Any, Kernel | None]:
    """A copy of the rows sorted by task, and the kernel where distances between rows are known only through it."""
    kernel = model._model.kernel
    if kernel.kind == "precomputed":
        matrix = rows[index.order][:, index.order]
        return index, matrix.toarray() if hasattr(matrix, "toarray") else matrix, kernel
    # the RBF kernel grows with distance alone, and the linear one has it
    return index, rows[index.order], kernel if kernel.kind == "callable" else None


def store_by_row(model: AfterFit, rows: Any, ids: Any, known: Labels | None, counts: Labels) -> None:
    """Attributes of repeated rows for every row once: those of its last copy, or what ``predict`` says without any."""
    last, none, coupling = np.maximum(np.cumsum(counts) - 1, 0), np.flatnonzero(counts == 0), model.selection_.coupling
    tasks = numbers_of_known_tasks(ids, len(counts), model.tasks_)
    labels, alone = model.labels_[last], model.single_task_labels_[last]
    chances, outliers = (None if each is None else each[last] for each in (model.probabilities_, model.outlier_scores_))
    if coupling is not None and coupling.coupled_labels is not None:
        coupling = replace(coupling, coupled_labels=coupling.coupled_labels[last])
    if len(none):
        scores = model._model.scores(rows[none], tasks[none])
        labels[none] = alone[none] = scores.argmax(axis=1)
        if known is not None:
            labels[none] = np.where(known[none] >= 0, known[none], labels[none])
        if chances is not None and outliers is not None:
            chances[none] = probabilities(scores, model._model.temperature)
            outliers[none] = outliers_of(*sorted_rows(model, rows, index_tasks(ids, len(counts))))[none]
    model.labels_, model.single_task_labels_, model.probabilities_, model.outlier_scores_ = (
        labels,
        alone,
        chances,
        outliers,
    )
    model.cluster_sizes_ = np.zeros_like(model.cluster_sizes_)
    np.add.at(model.cluster_sizes_, (tasks, labels), 1)
    model.selection_ = replace(model.selection_, coupling=coupling)
