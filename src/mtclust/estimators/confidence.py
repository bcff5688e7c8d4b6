"""How sure a fitted model is: probabilities of clusters, rows that belong nowhere, and a score of other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.choice import Question
from mtclust.choose.judge import Predictability, Verdict
from mtclust.choose.settings import Sample, all_rows, rows_by_task, sample_rows
from mtclust.choose.views import View, candidate_kernels, is_wide
from mtclust.core.kernels import is_precomputed
from mtclust.core.membership import best_temperature, probabilities
from mtclust.core.tasks import TaskIndex, numbers_of_known_tasks
from mtclust.core.validation import read_rows
from mtclust.distributed import is_dask
from mtclust.estimators.outliers import neighbour_distances, outlier_scores
from mtclust.search.common import rows_in_frame
from mtclust.search.recipe import Outcome

Array = NDArray[np.float64]

#: rows that are judged without taking a sample, and rows of a sample
_JUDGED_ROWS, _SAMPLED_ROWS = 1000, 600
#: up to this many rows a fit keeps their probabilities and outlier scores
STORED_ROWS = 20_000


def separation_by(model: Any, X: Any, tasks: Any) -> float:
    """Separation of the clusters that a model puts rows in."""
    if is_dask(X, tasks):
        raise TypeError("score needs rows in memory, but X or tasks is a Dask collection; give some rows computed.")
    if is_precomputed(model.kernel):
        raise ValueError(
            'score needs the rows themselves; it cannot be used with kernel="precomputed". Use loo_score_, or fit '
            'with kernel="rbf", "linear" or a callable.'
        )
    labels = model.predict(X, tasks=tasks)
    features, ids = read_rows(model, X, tasks, task_column=model.task_column, reset=False)
    index = rows_by_task(model, features, ids)
    numbers = numbers_of_known_tasks(ids, features.shape[0], model.tasks_)
    return separation(model, features, index, numbers, lambda sample: labels[sample.order]).separation


def separation(
    model: Any, rows: Any, index: TaskIndex, task_numbers: NDArray[np.int64],
    labels_of: Callable[[Sample], NDArray[np.int64]],
) -> Verdict:  # fmt: skip
    """How well clusters are separated in the frame of a model; numbers of tasks are in the order of rows.

    Of more than ``_JUDGED_ROWS`` rows a sample is looked at; ``labels_of`` gives its labels.
    """
    few = int(index.sizes.sum()) <= _JUDGED_ROWS
    sample = all_rows(rows, index, index.by_rows) if few else sample_rows(rows, index, _SAMPLED_ROWS, index.by_rows)
    seen, offsets = sample.rows, sample.index.offsets
    if model.selection_.center != "task":
        seen, offsets = rows_in_frame(model._kept, seen, task_numbers[sample.order]), offsets[[0, -1]]
    view = View(seen, offsets, sample.order, columns=index.columns)
    kernels = candidate_kernels(model.kernel, "auto", is_wide(seen))
    question = Question(view, kernels, np.full(len(offsets) - 1, model.n_clusters_), "independent")
    judge = Predictability(question.rows_as_they_are, question.tasks)
    return judge.verdict(labels_of(sample), model.n_clusters_)


def store_confidence(estimator: Any, rows: Any, index: TaskIndex, outcome: Outcome) -> None:
    """Find the temperature, and set ``probabilities_`` and ``outlier_scores_`` where rows are not too many."""
    estimator.probabilities_ = estimator.outlier_scores_ = None
    if not index.in_memory or rows.shape[0] > STORED_ROWS:
        scores = outcome.few.leave_one_out(outcome.few_point)
        temperature = best_temperature(scores, np.asarray(outcome.few_point.labels, dtype=np.int64))
        estimator._model = replace(estimator._model, temperature=temperature)
        return
    problem: Any = outcome.problem
    codes = () if outcome.model_codes is None else (outcome.model_codes,)
    scores = problem.leave_one_out(outcome.point, *codes)
    temperature = best_temperature(scores, np.asarray(outcome.point.labels, dtype=np.int64))
    estimator._model = replace(estimator._model, temperature=temperature)
    estimator.probabilities_ = index.to_input_order(probabilities(scores, temperature))
    estimator.outlier_scores_ = index.to_input_order(outliers_of(estimator, rows, index))


def outliers_of(estimator: Any, rows: Any, index: TaskIndex) -> Array:
    """Outlier scores of rows sorted by task."""
    kernel = estimator._model.kernel
    if kernel.kind == "precomputed":
        matrix = rows[index.order][:, index.order]
        distances = neighbour_distances(
            matrix.toarray() if hasattr(matrix, "toarray") else matrix, index.offsets, kernel
        )
    else:
        # the RBF kernel grows with distance alone, and the linear one has it
        own = kernel if kernel.kind == "callable" else None
        distances = np.concatenate(  # a task at a time: no copy of all rows
            [
                neighbour_distances(rows[index.order[part]], np.array([0, part.stop - part.start]), own)
                for part in index.slices()
            ]
        )
    return outlier_scores(distances, index.offsets)
