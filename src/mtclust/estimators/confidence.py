"""How sure a fitted model is: probabilities of clusters, rows that belong nowhere, and a score of other rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mtclust.choose.judge import Judge
from mtclust.choose.settings import all_rows, sample_rows
from mtclust.choose.views import View, is_wide, judging_kernels
from mtclust.distributed import is_dask
from mtclust.membership import best_temperature, probabilities
from mtclust.outliers import neighbour_distances, outlier_scores
from mtclust.search.outcome import Outcome
from mtclust.tasks import TaskIndex, index_tasks
from mtclust.validation import read_rows

Array = NDArray[np.float64]

#: up to this many rows a fit keeps the probabilities and outlier scores of its rows
STORED_ROWS = 20_000


class ConfidenceMixin:
    """``predict_proba``, ``transform`` and ``score`` of the estimators."""

    kernel: Any
    task_column: Any
    n_clusters_: int
    tasks_: NDArray[Any]
    _model: Any

    if TYPE_CHECKING:

        def fit(self, X: Any, y: Any = None, *, tasks: Any = None, known: Any = None) -> Any: ...

        def predict(self, X: Any, *, tasks: Any = None) -> NDArray[np.int64]: ...

        def decision_function(self, X: Any, *, tasks: Any = None) -> Array: ...

    def predict_proba(self, X: Any, *, tasks: Any = None) -> Array:
        """Probability of every cluster for every row, shape (n, C); rows sum to 1.

        Softmax of the scores of ``decision_function`` over one temperature, under which the labels of ``fit`` are most
        likely given scores from which each row was left out (:mod:`mtclust.membership`). A cluster that a task does not
        have has probability 0. For rows of ``fit`` see ``probabilities_``, in which each row was left out.

        Parameters
        ----------
        X : array, CSR matrix, frame or Dask collection of shape (n, d)
        tasks : array of shape (n,) or a single id
            As in :meth:`predict`.

        Examples
        --------
        >>> from mtclust import DSTC
        >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
        >>> model.predict_proba([[0.0], [2.6]]).round(1)
        array([[0.8, 0.2],
               [0.5, 0.5]])
        """
        scores: Any = self.decision_function(X, tasks=tasks)
        if is_dask(scores, None):
            return scores.map_blocks(probabilities, self._model.temperature, dtype=float)
        return probabilities(scores, self._model.temperature)

    def transform(self, X: Any, *, tasks: Any = None) -> Array:
        """The scores of ``decision_function``, shape (n, C); −∞ for clusters that a row's task does not have."""
        return self.decision_function(X, tasks=tasks)

    def fit_transform(self, X: Any, y: Any = None, *, tasks: Any = None, known: Any = None) -> Array:
        """Cluster the rows and return their scores."""
        return self.fit(X, tasks=tasks, known=known).transform(X, tasks=tasks)

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def score(self, X: Any, y: Any = None, *, tasks: Any = None) -> float:
        """Separation of the clusters that ``predict`` puts rows in; higher is better.

        What ``loo_score_`` is for the rows of ``fit``: about 1 for clear-cut clusters, 0 for what the best clusters of
        structureless rows reach (:mod:`mtclust.choose.judge`). It needs no classes and compares models of any kernel,
        so that ``GridSearchCV`` works without ``scoring``; compare models with the same number of clusters. Of more
        than 1000 rows a sample is judged, the same every time.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
        y : ignored
        tasks : array of shape (n,) or a single id
            As in :meth:`predict`.

        Examples
        --------
        >>> from sklearn.datasets import make_blobs
        >>> from mtclust import DSTC
        >>> X, _ = make_blobs(80, centers=[[0, 0], [8, 0]], random_state=0)
        >>> bool(DSTC(2, random_state=0).fit(X[:40]).score(X[40:]) > 0.5)
        True
        """
        check_is_fitted(self, "labels_")
        if is_dask(X, tasks):
            raise TypeError("score needs rows in memory, but X or tasks is a Dask collection; give some rows computed.")
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise ValueError(
                'score needs the rows themselves; it cannot be used with kernel="precomputed". Use loo_score_, or fit '
                'with kernel="rbf", "linear" or a callable.'
            )
        labels = self.predict(X, tasks=tasks)
        features, ids = read_rows(self, X, tasks, task_column=self.task_column, reset=False)
        index = index_tasks(ids, features.shape[0])
        few = index.sizes.sum() <= _JUDGED_ROWS
        sample = all_rows(features, index) if few else sample_rows(features, index, _SAMPLED_ROWS)
        return separation(sample.rows, sample.index.offsets, labels[sample.order], self.n_clusters_, self.kernel)


#: rows that are judged without taking a sample, and rows of a sample
_JUDGED_ROWS, _SAMPLED_ROWS = 1000, 600


def separation(rows: Any, offsets: NDArray[np.int64], labels: NDArray[np.int64], n_clusters: int, kernel: Any) -> float:
    """The judge's separation of labels of rows sorted by task."""
    view = View(rows, offsets)
    specs = judging_kernels(kernel, is_wide(rows))
    judge = Judge({spec.name: view.through(spec, "task").centred.matrix for spec in specs}, offsets)
    return judge(labels, n_clusters).separation


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
    estimator.outlier_scores_ = index.to_input_order(_outliers(estimator, rows, index))


def _outliers(estimator: Any, rows: Any, index: TaskIndex) -> Array:
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
