"""What a fitted estimator can do: every method that does not fit, each handed over to the file whose job it is."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mtclust.core.model import probabilities
from mtclust.core.validation import check_grid, read_known_rows
from mtclust.distributed import is_dask
from mtclust.estimators.confidence import outliers_of, separation, separation_by

if TYPE_CHECKING:
    from mtclust.estimators.new_task import NewTask
    from mtclust.estimators.stability import Stability

Array = NDArray[np.float64]


class AfterFit(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """The methods of fitted estimators."""

    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__predict_proba: ClassVar = {"tasks": True}
    __metadata_request__transform: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}

    task_column: Any
    tasks_: NDArray[Any]
    n_clusters_: int
    _model: Any
    _kept: Any
    _later: Any

    # what only some read is found when it is first read, and kept from then on

    @cached_property
    def cluster_scores_(self) -> Array:
        """Separation of every cluster, from rows that are left out."""
        check_is_fitted(self, "labels_")
        return separation(self, *self._later[0])

    @cached_property
    def loo_score_(self) -> float:
        """Separation of the clusters: the mean of ``cluster_scores_``."""
        return float(self.cluster_scores_.mean())

    @cached_property
    def outlier_scores_(self) -> Array | None:
        """How far every row lies from its nearest rows of the same task; None of very many rows."""
        check_is_fitted(self, "labels_")
        return None if self._later[1] is None else outliers_of(*self._later[1])

    def __getstate__(self) -> dict[str, Any]:
        """Everything is found before a model is pickled or copied."""
        if "_later" in self.__dict__:
            _ = self.cluster_scores_, self.loo_score_, self.outlier_scores_
            self.__dict__.pop("_later", None)  # another thread may have been here
        return super().__getstate__()

    @property
    def task_offsets_(self) -> Array | None:
        """What the model takes off the rows of every task, shape (m, d), where tasks are aligned; None elsewhere."""
        return getattr(self._kept, "moves", None)

    def decision_function(self, X: Any, *, tasks: Any = None) -> Array:
        """Scores f of every row for the clusters of its task, shape (n, C); −∞ for clusters the task does not have.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
            With ``kernel="precomputed"`` the kernel between these rows and the rows of ``fit``, shape (n, N).
        tasks : array of shape (n,) or a single id
            The task of each row; may be left out if the model has one task.
        """
        check_is_fitted(self, "labels_")
        if is_dask(X, tasks):
            from mtclust.distributed.fit import scores_distributed

            return scores_distributed(self, X, tasks)
        return self._model.scores(*read_known_rows(self, X, tasks))

    def predict(self, X: Any, *, tasks: Any = None) -> NDArray[np.int64]:
        """Cluster of every row: the one with the highest score.

        On the rows of ``fit`` this may differ from ``labels_``, which also obey the cluster sizes. A cluster that a
        task does not have (``n_clusters`` by task, or a table of sizes with zeros) is never predicted there.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
        tasks : array of shape (n,) or a single id
            The task of each row; an id that was not in ``fit`` is an error (see :meth:`fit_task`).
        """
        return self.decision_function(X, tasks=tasks).argmax(axis=1)

    def predict_proba(self, X: Any, *, tasks: Any = None) -> Array:
        """Probability of every cluster for every row, shape (n, C); rows sum to 1.

        Softmax of the scores of ``decision_function`` over one temperature, under which the labels of ``fit`` are most
        likely given scores from which each row was left out (:mod:`mtclust.core.model`). A cluster that a task
        does not have has probability 0. For rows of ``fit`` see ``probabilities_``, in which each row was left out.

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

    @property
    def _n_features_out(self) -> int:
        return self.n_clusters_

    def score(self, X: Any, y: Any = None, *, tasks: Any = None) -> float:
        """Separation of the clusters that ``predict`` puts rows in; higher is better.

        What ``loo_score_`` is for the rows of ``fit``: about 1 for clusters that do not touch, 0 for what the best
        clusters of structureless rows reach (:mod:`mtclust.choose.judge`). It needs no classes and compares models of
        any kernel, so that ``GridSearchCV`` works without ``scoring``; compare models with the same number of clusters.
        Of more than 1000 rows a sample is judged, the same every time.

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
        check_grid()
        return separation_by(self, X, tasks)

    def fit_task(self, X: Any, *, sizes: Any = None) -> NewTask:
        """Cluster the rows of a task that was not in ``fit``; the labels of the fitted tasks stay as they are.

        Parameters
        ----------
        X : array, CSR matrix or frame of shape (n, d)
            Rows of the new task, without a task column.
        sizes : optional
            Cluster sizes of the new task, as in the constructor; a table has the shape (1, C) or (1, C, 2). By
            default ``self.sizes``, or balanced with l = 0.1 where that is a table of the fitted tasks. The new task
            has all C = ``n_clusters_`` clusters; a table with zeros leaves some out.

        Returns
        -------
        NewTask
            With ``labels_``, ``task_covariance_``, ``task_correlation_``, ``predict``, ``predict_proba`` and
            ``decision_function``.

        Examples
        --------
        >>> from mtclust import DSTC
        >>> model = DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
        >>> model.fit_task([[7.0], [2.1], [2.0], [7.2]]).labels_  # the task lies elsewhere; ids mean the same
        array([1, 0, 0, 1])
        """
        from mtclust.estimators.new_task import cluster_task

        check_is_fitted(self, "labels_")
        return cluster_task(self, X, sizes)

    def stability(
        self, X: Any, *, tasks: Any = None, n_refits: int = 10, share: float = 0.5, random_state: Any = 0
    ) -> Stability:
        """Cluster subsamples of the rows of ``fit`` anew and see what stays the same; sets ``stability_``.

        A refit is a fit to some of the rows, with the number of clusters, the frame and the coupling of this one.

        Parameters
        ----------
        X, tasks
            The rows of ``fit`` and their tasks, in the same order.
        n_refits : int, default=10
        share : float, default=0.5
            Of the rows of every task that a refit sees; of more than 800 rows, as many as make 400.
        random_state : int, RandomState instance or None, default=0

        Returns
        -------
        Stability
            Also kept as ``stability_``: ``overall``, by row and by cluster (:mod:`mtclust.estimators.stability`).

        Examples
        --------
        >>> import numpy as np
        >>> from mtclust import DSTC
        >>> X = np.r_[np.random.default_rng(0).normal(size=(40, 2)), np.random.default_rng(1).normal(9, size=(40, 2))]
        >>> model = DSTC(2, random_state=0).fit(X)
        >>> model.stability(X).clusters.round(2).tolist()
        [1.0, 1.0]
        """
        from mtclust.estimators.stability import refit_on_subsamples

        check_is_fitted(self, "labels_")
        self.stability_ = refit_on_subsamples(self, X, tasks, n_refits, share, random_state)
        return self.stability_

    def save(self, path: str | os.PathLike[str], *, extra: dict[str, Any] | None = None) -> None:
        """Write the fitted model to a file that :func:`mtclust.load` reads.

        The file holds arrays and JSON, no code. It holds the rows of ``fit`` where ``predict`` or ``fit_task`` need
        them: whoever gets the file gets these data. An earlier file of that name is replaced, but only once the new one
        is complete.

        Parameters
        ----------
        path : str or path
            Any name; no ending is added.
        extra : dict, optional
            Anything small that belongs to the model (numbers, strings, lists, tuples, dicts, arrays);
            ``mtclust.load(path, return_extra=True)`` gives it back.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import mtclust
        >>> model = mtclust.DSTC(2, kernel="linear", random_state=0).fit([[0.0], [0.1], [5.0], [5.1]])
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     model.save(Path(directory) / "model")
        ...     mtclust.load(Path(directory) / "model").predict([[0.2], [4.9]])
        array([0, 1])
        """
        # imported here: the format knows the estimators
        from mtclust.persistence.models import save

        save(self, path, extra=extra)
