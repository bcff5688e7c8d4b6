r"""How sure a fitted model is: probabilities, how well clusters are separated, and rows that belong nowhere.

Separation and outlier scores are found when they are first read, from copies that a fit keeps until then.

Rows that belong nowhere are far from all other rows of their task. With r_j the mean distance of row j to its five
nearest rows of the same task, divided by the median of that over the task,

.. math:: z_j = \frac{\sqrt{r_j} - \mathrm{med}}{1.4826\,\mathrm{MAD}}, \qquad
          \text{score}_j = \frac{z_j^+}{z_j^+ + 3.5}

with median and median absolute deviation over all rows. The score is 0 for half of the rows and tends to 1; at the cut
½ a row is 3.5 robust standard deviations further from its neighbours than the middle one. Nothing in it depends on the
labels: a row between two clusters is unsure, but it is no outlier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from mtclust.choose.choice import Question
from mtclust.choose.judge import Predictability
from mtclust.choose.settings import Sample, rows_by_task
from mtclust.choose.views import View, candidate_kernels
from mtclust.core import Array, Integers, Labels
from mtclust.core.kernels import KERNELS, Kernel, squared_distances
from mtclust.core.model import probabilities
from mtclust.core.tasks import TaskIndex, index_tasks, numbers_of_known_tasks
from mtclust.core.validation import check_grid, read_known_rows
from mtclust.distributed import is_dask
from mtclust.estimators.fit import judged_rows
from mtclust.util.system import one_blas_thread

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


#: rows of a task that neighbours are sought among
_MOST_REFERENCES = 500
#: distances held at once
_BLOCK = 2**19


def separation_by(model: MultitaskClusterer, X: Any, tasks: Any) -> float:
    """Separation of the clusters that a model puts rows in."""
    check_grid()
    if is_dask(X, tasks):
        raise TypeError("score needs rows in memory, but X or tasks is a Dask collection; give some rows computed.")
    if model.kernel == "precomputed":
        raise ValueError(
            'score needs the rows themselves; it cannot be used with kernel="precomputed". Use loo_score_, or fit '
            'with kernel="rbf", "linear" or a callable.'
        )
    rows, numbers = read_known_rows(model, X, tasks)
    index = rows_by_task(model._read_params(), rows, index_tasks(model.tasks_[numbers], rows.shape[0]))
    sample, labels = judged_rows(rows, index), model._model.scores(rows, numbers).argmax(axis=1)
    return float(separation(model, sample, labels[sample.order]).mean())


def separation(model: MultitaskClusterer, sample: Sample, labels: Labels) -> Array:
    """How well every cluster is separated, in the frame of a model that has these tasks."""
    index, C = sample.index, model.n_clusters_
    view = View(sample.rows, index.offsets, sample.order, columns=getattr(index.content, "columns", None))
    question = Question(view, candidate_kernels(model.kernel, "auto"), np.full(index.n_tasks, C), "independent")
    tasks = np.searchsorted(model.tasks_, index.names)[index.task_numbers]
    question, places = question.of_tasks(index.task_order)
    labels, tasks = labels[places], tasks[places]
    if model.selection_.center != "task":
        seen = model._kept.in_frame(question.view.rows, tasks)
        question = replace(question, view=replace(question.view, rows=seen, offsets=np.array([0, len(labels)])))
    with one_blas_thread():
        return Predictability(question.rows_as_they_are, question.tasks).by_cluster(labels, C)


def outliers_of(index: TaskIndex, rows: Any, kernel: Kernel) -> Array:
    """Outlier scores, in the order of the input, of rows, or rows of a kernel matrix, that are sorted by task."""
    if kernel.kind == "precomputed":
        rows = rows[:, index.order]
        rows = rows.toarray() if hasattr(rows, "toarray") else rows
    return index.to_input_order(outlier_scores(neighbour_distances(rows, index.offsets, kernel), index.offsets))


def outlier_scores(distances: Array, offsets: Integers) -> Array:
    """Scores in [0, 1] of rows sorted by task from their distances to their neighbours."""
    relative = np.empty_like(distances)
    for a, b in zip(offsets[:-1], offsets[1:]):
        relative[a:b] = distances[a:b] / (_middle(distances[a:b]) or 1.0)
    roots = np.sqrt(relative)
    middle = float(np.median(roots))
    deviation = 1.4826 * _middle(np.abs(roots - middle))
    if not deviation > 0:
        return np.zeros_like(distances)
    z = np.maximum(roots - middle, 0.0) / deviation
    return z / (z + 3.5)


def _middle(values: Array) -> float:
    """The median; the mean where more than half are zero, as among rows that occur twice."""
    middle = float(np.median(values))
    return middle if middle > 0 else float(np.mean(values))


def neighbour_distances(rows: Any, offsets: Integers, kernel: Kernel | None = None) -> Array:
    """Mean distance of every row to its nearest rows of the same task, itself left out; 0 for a task of one row.

    ``rows`` are sorted by task. With a callable or precomputed ``kernel``, of which they are the matrix then, distances
    are those of its features: k(x, x) + k(y, y) − 2k(x, y). The RBF kernel has the neighbours that the rows have.
    """

    def squared(these: Labels, those: Labels) -> Array:
        if kernel is None or kernel.kind in KERNELS:
            return squared_distances(rows[these], rows[those])
        pairs = ((these, these), (those, those), (these, those))
        if kernel.kind == "precomputed":
            own, others, between = (rows[np.ix_(*pair)] for pair in pairs)
        else:
            own, others, between = (kernel(rows[a], rows[b]) for a, b in pairs)
        return np.asarray(own.diagonal()[:, None] + others.diagonal() - 2.0 * between)

    result = np.zeros(rows.shape[0])
    for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        those = np.arange(a, b)
        if b - a > _MOST_REFERENCES:
            those = a + np.sort(np.random.default_rng(0).permutation(b - a)[:_MOST_REFERENCES])
        nearest = min(5, len(those) - 1)
        for part in gen_batches(b - a, max(1, _BLOCK // len(those))) if nearest else ():
            these = np.arange(a + part.start, a + part.stop)
            distances = squared(these, those)
            distances[these[:, None] == those] = np.inf  # itself
            closest = np.partition(distances, nearest - 1, axis=1)[:, :nearest]
            result[these] = np.sqrt(np.maximum(closest, 0.0)).mean(axis=1)
    return result


def store_by_row(model: MultitaskClusterer, rows: Any, ids: Any, known: Labels | None, counts: Labels) -> None:
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
            outliers = outliers_of(index, rows[index.order], model._model.kernel)
            model.probabilities_[none] = probabilities(scores, model._model.temperature)
            model.outlier_scores_[none] = outliers[none]
    model.cluster_sizes_ = np.zeros_like(model.cluster_sizes_)
    np.add.at(model.cluster_sizes_, (tasks, model.labels_), 1)
