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
from mtclust.choose.settings import ROWS, Sample, all_rows, rows_by_task, sample_rows
from mtclust.choose.views import View, candidate_kernels
from mtclust.core.model import best_temperature, probabilities
from mtclust.core.tasks import ORDERED, TaskIndex, index_tasks, numbers_of_known_tasks
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


def store_confidence(model: AfterFit, rows: Any, index: TaskIndex, outcome: Outcome) -> None:
    """Find the temperature and ``probabilities_``, and keep the rows that the rest is found from when it is read."""
    point, problem = outcome.point, outcome.problem
    stored = index.in_memory and rows.shape[0] <= ORDERED
    if stored:
        scores = problem.leave_one_out(point, *(() if outcome.model_codes is None else (outcome.model_codes,)))
    else:
        searched = outcome.few or outcome
        scores, point = searched.problem.leave_one_out(searched.point), searched.point
    temperature = best_temperature(scores, np.asarray(point.labels, dtype=np.int64))
    model._model = replace(model._model, temperature=temperature)
    model.probabilities_ = index.to_input_order(probabilities(scores, temperature)) if stored else None
    sample = _judged_rows(rows, index)
    labels = index.labels_at(outcome.point.labels, sample.positions_in(index))
    far = (index, _by_task(model, rows, index), model._model.kernel) if stored else None
    model._later = (sample, index.columns, labels), far


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
    sample = _judged_rows(features, index)
    return float(separation(model, sample, index.columns, labels[sample.order], numbers).mean())


def _judged_rows(rows: Any, index: TaskIndex) -> Sample:
    """The rows that separation is taken of, copied; of very many a sample."""
    return all_rows(rows, index) if rows.shape[0] <= _JUDGED_ROWS else sample_rows(rows, index, ROWS)


def separation(
    model: AfterFit, sample: Sample, columns: Labels | None, labels: Labels, task_numbers: Labels | None = None
) -> Array:
    """How well every cluster is separated, in the frame of a model that has these tasks; by default all in order."""
    index, C = sample.index, model.n_clusters_
    view = View(sample.rows, index.offsets, sample.order, columns=columns)
    question = Question(view, candidate_kernels(model.kernel, "auto"), np.full(index.n_tasks, C), "independent")
    tasks = (sample.tasks if task_numbers is None else task_numbers[sample.tasks])[index.task_numbers]
    question, places = question.of_tasks(index.task_order)
    labels, tasks = labels[places], tasks[places]
    if model.selection_.center != "task":
        seen = model._kept.in_frame(question.view.rows, tasks)
        question = replace(question, view=replace(question.view, rows=seen, offsets=np.array([0, len(labels)])))
    with one_blas_thread():
        return Predictability(question.rows_as_they_are, question.tasks).by_cluster(labels, C)


def _by_task(model: AfterFit, rows: Any, index: TaskIndex) -> Any:
    """A copy of the rows, or of the kernel between them, sorted by task."""
    own = rows[index.order]
    if model.kernel != "precomputed":
        return own
    return own[:, index.order].toarray() if hasattr(own, "toarray") else own[:, index.order]


def store_by_row(model: AfterFit, rows: Any, ids: Any, known: Labels | None, counts: Labels) -> None:
    """Attributes of repeated rows for every row once: those of its last copy, or what ``predict`` says without any."""
    last, none, coupling = np.maximum(np.cumsum(counts) - 1, 0), np.flatnonzero(counts == 0), model.selection_.coupling
    tasks = numbers_of_known_tasks(ids, len(counts), model.tasks_)
    for name in ("labels_", "single_task_labels_", "probabilities_", "outlier_scores_"):
        of_copies = getattr(model, name)
        setattr(model, name, None if of_copies is None else of_copies[last])
    if coupling is not None and coupling.coupled_labels is not None:
        coupling = replace(coupling, coupled_labels=coupling.coupled_labels[last])
        model.selection_ = replace(model.selection_, coupling=coupling)
    if len(none):
        scores = model._model.scores(rows[none], tasks[none])
        labels = scores.argmax(axis=1)
        model.single_task_labels_[none] = labels
        model.labels_[none] = labels if known is None else np.where(known[none] >= 0, known[none], labels)
        if model.probabilities_ is not None and model.outlier_scores_ is not None:
            index = index_tasks(ids, len(counts))
            outliers = outliers_of(index, _by_task(model, rows, index), model._model.kernel)
            model.probabilities_[none] = probabilities(scores, model._model.temperature)
            model.outlier_scores_[none] = outliers[none]
    model.cluster_sizes_ = np.zeros_like(model.cluster_sizes_)
    np.add.at(model.cluster_sizes_, (tasks, model.labels_), 1)
