r"""What the three estimators share: parameters, checks and ``fit``; its work is in ``fit.py``, choices in ``choose/``.

Where sizes are given all minimise, over the labels Y (one cluster per row), the models W and the coupling,

.. math:: J = \sum_c \Big[\frac{\lambda_1}{2}\|W_c\|^2 + \frac{\lambda_2}{2} R(W_c)\Big]
          + \sum_i \frac{1}{n_i} \sum_j \|\bar y_j - f(x_j)\|^2

with R(W_c) = tr(W_c Ω⁻¹ W_cᵀ) for DMTRC, tr(W_cᵀ D⁻¹ W_c) for DMTFC and ‖W_c‖² for DSTC.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cached_property, wraps
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from mtclust.choose.number import CANDIDATES, choose_n_clusters, warn_of_choice
from mtclust.choose.record import ClusterNumberChoice
from mtclust.choose.settings import Input, Params, rows_by_task
from mtclust.choose.views import is_wide
from mtclust.core import Array, Integers
from mtclust.core.coupling import COUPLINGS
from mtclust.core.hints import NO_HINTS, Hints, read_known, read_links
from mtclust.core.kernels import KERNELS
from mtclust.core.labels import SizeBounds, counts_by_task, neutral_bounds, one_per_task, parse_sizes
from mtclust.core.model import probabilities
from mtclust.core.tasks import TaskIndex, index_tasks, task_ids
from mtclust.core.validation import check_index, check_input, check_spreads, generator_of, read_known_rows, read_rows
from mtclust.distributed import is_dask
from mtclust.estimators.confidence import outliers_of, separation, separation_by, store_by_row
from mtclust.estimators.fit import Fitting
from mtclust.estimators.new_task import NewTask, cluster_task
from mtclust.estimators.stability import Stability, refit_on_subsamples
from mtclust.exceptions import SmallTaskWarning
from mtclust.rows.features import LARGEST_TABLE
from mtclust.search.problem import Method, SearchOptions
from mtclust.util.messages import reporting, warn_user
from mtclust.util.system import memory_named, one_blas_thread

#: more tasks than this with fewer than two rows each, on average, are taken for ids of rows
_FEW_TASKS = 20


def unchanged_on_failure(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A method that ends with an error, Ctrl-C included, leaves its estimator as it was: unfitted, or fitted before."""

    @wraps(fit)
    def wrapped(estimator: MultitaskClusterer, *args: Any, **kwargs: Any) -> Any:
        before = estimator.__dict__.copy()
        try:
            return fit(estimator, *args, **kwargs)
        except BaseException:
            estimator.__dict__ = before
            raise

    return wrapped


class MultitaskClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Base of DMTRC, DMTFC and DSTC."""

    __metadata_request__fit: ClassVar = {"tasks": True, "known": True, "sample_weight": True}
    __metadata_request__predict: ClassVar = {"tasks": True}
    __metadata_request__decision_function: ClassVar = {"tasks": True}
    __metadata_request__predict_proba: ClassVar = {"tasks": True}
    __metadata_request__transform: ClassVar = {"tasks": True}
    __metadata_request__score: ClassVar = {"tasks": True}
    #: how the tasks are coupled, a key of COUPLINGS
    _coupled_by: ClassVar[Method] = "independent"

    #: of every parameter; not all methods have all of them
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), Mapping, StrOptions({"auto"}), range],
        "kernel": [StrOptions({"auto", "precomputed", *KERNELS}), callable],
        "width": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "lambda1": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), Mapping],
        "lambda2": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "coupling": [StrOptions({"auto", "full", "none"}), Interval(Real, 0, 1, closed="both")],
        "center": [StrOptions({"auto", "task", "all", "aligned"})],
        "sizes": "no_validation",
        "solver": [StrOptions({"exchange", "cutting-plane"})],
        "solver_options": [dict, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "task_column": [str, Integral, None],
        "random_state": ["random_state"],
        "n_jobs": [Interval(Integral, 1, None, closed="left"), Interval(Integral, None, -1, closed="right"), None],
        "verbose": ["verbose"],
    }

    def _hold(self, given: dict[str, Any]) -> None:
        """Set the parameters as they are given, under their names; a subclass may have others."""
        for name in list(given)[1:]:  # all but self
            setattr(self, name, given[name])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    @unchanged_on_failure
    def fit(
        self, X: Any, y: Any = None, *, tasks: Any = None, known: Any = None, sample_weight: Any = None,
        must_link: Any = None, cannot_link: Any = None,
    ) -> Any:  # fmt: skip
        """Cluster the rows of all tasks.

        Parameters
        ----------
        X : array, CSR matrix, pandas or polars frame, Dask array or data frame of shape (n, d)
            The rows of all tasks, stacked in any order; columns are not rescaled. Of a Dask collection more than 30 000
            rows stay where they are, and ``labels_`` and ``single_task_labels_`` are Dask arrays. With
            ``kernel="precomputed"`` the kernel matrix of all rows, shape (n, n).
        y : ignored
        tasks : array of shape (n,), optional
            The task each row belongs to; one task by default.
        known : array of shape (n,), optional
            Cluster ids 0 … C−1 of rows whose cluster is known, −1 or missing where it is not. These rows keep their
            ids and are never moved; they name the clusters, and settle between ways of clustering that separate rows
            about as well.
        sample_weight : array of shape (n,), optional
            How many times every row counts, whole numbers; the result is that of fitting each row so many times. Rows
            that count 0 times have no effect, and the labels of ``predict``.
        must_link, cannot_link : arrays of shape (k, 2), optional
            Pairs of rows, by their numbers from 0 on, that share a cluster, or do not, be they of one task or of two.
            Every pair is kept.

        Returns
        -------
        self
        """
        for name in [name for name in self.__dict__ if name.endswith("_")]:
            delattr(self, name)  # of an earlier fit
        if is_dask(X, tasks):
            from mtclust.distributed.fit import fit_distributed

            given = {"known": known, "sample_weight": sample_weight, "must_link": must_link, "cannot_link": cannot_link}
            for name in [name for name, value in given.items() if value is not None]:
                raise TypeError(f"{name} needs rows in memory, but X or tasks is a Dask collection; leave {name} out.")
            return fit_distributed(self, X, tasks)
        check_input(X, y, tasks, known, self.task_column)
        rows, ids = read_rows(self, X, tasks, reset=True)
        check_spreads(X, rows, self.kernel)
        hints, n = NO_HINTS, rows.shape[0]
        if known is not None or must_link is not None or cannot_link is not None:
            hints = Hints(read_known(known, n), read_links(must_link, cannot_link, n))
            for name, value in (("known", hints.known), ("must_link and cannot_link", hints.links)):
                if value is not None and self.solver == "cutting-plane":
                    raise ValueError(f'{name} needs solver="exchange"; cutting planes cannot keep rows where they are.')
        once: Any = None
        if sample_weight is not None:
            check_index(X, sample_weight, "sample_weight")
            counts, ids = _read_counts(sample_weight, n), task_ids(ids, n)
            once = rows, ids, hints.known, counts
            for name in np.setdiff1d(ids, ids[counts > 0]).tolist():
                raise ValueError(f"sample_weight is 0 in all rows of task {name!r}; one at least has to count.")
            copies = np.repeat(np.arange(n), counts)
            rows, ids, hints = rows[copies], ids[copies], hints.of_rows(copies, n)
        if sp.issparse(rows) and not is_wide(rows) and rows.shape[1] <= LARGEST_TABLE:
            rows = rows.toarray()
        params = self._read_params()
        index = rows_by_task(params, rows, index_tasks(ids, rows.shape[0]))
        self._fit_rows(params, rows, index, hints.of_rows(index.order, rows.shape[0]))
        if once is not None:
            store_by_row(self, *once)
        return self

    def _fit_rows(self, params: Params, rows: Any, index: TaskIndex, hints: Hints = NO_HINTS) -> Any:
        """Choose what is left open, search, decide, store.

        ``rows`` is a table that numbers of rows index, ``hints`` are those of rows sorted by task.
        """
        n, m = rows.shape[0], index.n_tasks
        if m > _FEW_TASKS and n < 2 * m:
            raise ValueError(
                f"tasks has {m} different ids for {n} rows, {int(np.sum(index.sizes == 1))} of them with one row only: "
                "they name rows, not tasks. A task is a group of rows that is clustered together; give one id per "
                "group, or leave tasks out if all rows are of one task."
            )
        what = f"fit of {n} rows in {m} tasks"
        with one_blas_thread(), reporting(self), memory_named(what):
            choice = None
            if isinstance(self.n_clusters, str | range):
                choice = self._chosen_n_clusters(params, rows, index, hints.known)
            given = Input(rows, index, self._clusters_per_task(index, choice), hints)
            if hints.known is not None:
                _check_known(params, given, hints.known)
            self.n_clusters_ = int(given.clusters.max())
            rng = generator_of(self.random_state)
            fitting = Fitting(params, given)
            fitting.solve(rng)
            fitting.store(self, choice)
        for entry in self.history_ if self.verbose else ():
            print(f"[{type(self).__name__}] {entry['stage']}, {entry['step']}: {entry['objective']:.6g}")
        return self

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> Integers:
        """Cluster the rows of all tasks and return ``labels_``; arguments as those of :meth:`fit`."""
        return self.fit(X, y, **fit_params).labels_

    def fit_transform(self, X: Any, y: Any = None, *, tasks: Any = None, **fit_params: Any) -> Array:
        """Cluster the rows and return their scores; arguments as those of :meth:`fit`."""
        return self.fit(X, y, tasks=tasks, **fit_params).transform(X, tasks=tasks)

    def _chosen_n_clusters(self, params: Params, rows: Any, index: TaskIndex, known: Any) -> ClusterNumberChoice:
        """The number of clusters where it is left open, as many at least as are known."""
        asked, n = CANDIDATES if isinstance(self.n_clusters, str) else self.n_clusters, rows.shape[0]
        least = 1 if known is None else int(known.max()) + 1
        rising = asked[:: 1 if asked.step > 0 else -1]
        numbers = [number for number in rising[:n] if least <= number <= n]
        if not numbers or numbers[0] < 2:
            nor = f", nor smaller than the {least} clusters that known has" if least > 1 else ""
            raise ValueError(
                f"n_clusters={self.n_clusters!r} must hold numbers of clusters >= 2, some of them no larger than the "
                f"number of rows, {n}{nor}."
            )
        choice = choose_n_clusters(params.kernel, rows, index, numbers)
        warn_of_choice(choice)
        return choice

    def _clusters_per_task(self, index: TaskIndex, choice: ClusterNumberChoice | None) -> Integers:
        """The number of clusters of every task from the one that was chosen, a number or a mapping task → number."""
        n = int(index.sizes.sum())
        given: Any = self.n_clusters if choice is None else choice.chosen
        if isinstance(given, Mapping):
            given = one_per_task("n_clusters", given, index.names)
            for name, value in zip(index.names.tolist(), given):
                if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                    raise ValueError(
                        f"n_clusters must hold whole numbers >= 1, one per task; got {value!r} for task {name!r}."
                    )
        if n < (most := np.max(given)):
            raise ValueError(f"n_samples={n} should be >= n_clusters={most}; give more rows or fewer clusters.")
        clusters = np.empty(index.n_tasks, dtype=np.int64)
        clusters[:] = given
        if self.solver == "cutting-plane" and np.ptp(clusters) > 0:
            raise ValueError(
                f'solver="cutting-plane" needs the same number of clusters in all tasks; got n_clusters='
                f'{dict(self.n_clusters)}. Use solver="exchange".'
            )
        small = index.names[index.sizes < clusters].tolist()
        if small:
            warn_user(
                f"{len(small)} of {index.n_tasks} tasks have fewer rows than n_clusters={self.n_clusters} "
                f"(first: {small[0]!r}); some of their clusters stay empty"
                + (", and a task of one row has no structure of its own." if self.fit_intercept else "."),
                SmallTaskWarning,
            )
        return clusters

    def _read_params(self) -> Params:
        """The parameters in one record; refuses ``solver_options`` that the method or the solver does not know."""
        given, options = vars(self), dict(self.solver_options or {})
        sizes_open = isinstance(self.sizes, str) and self.sizes == "auto" and self.solver == "exchange"
        form, forms = "auto", ["auto", "dual", "primal"]
        if self.solver == "cutting-plane":
            from mtclust.relaxation.cutting_plane import CuttingPlaneOptions

            CuttingPlaneOptions.from_dict(self.solver_options)
        else:
            form = options.pop("form", "auto")
            if options or form not in forms:
                raise ValueError(f'solver_options={self.solver_options!r} may only hold "form", one of {forms}.')
        searching = {name: given[name] for name in ("n_init", "max_iter", "tol", "n_jobs") if name in given}
        if not COUPLINGS[self._coupled_by].learns:
            searching["starts"] = self.n_init
        return Params(
            **{field.name: given[field.name] for field in fields(Params) if field.name in given},
            method=self._coupled_by, form=form, options=SearchOptions(**searching),
            by_rows=isinstance(self.kernel, str) and self.kernel != "precomputed",
            # without centring one big cluster would be best
            sizes_open=bool(sizes_open and self.fit_intercept),
        )  # fmt: skip

    # -- what a fitted model can do; what only some read is found when it is first read, and kept from then on ---------

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
        """Scores f of every row for the clusters of its task, shape (n, C); −∞ for those it lacks (``center``).

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

    def predict(self, X: Any, *, tasks: Any = None) -> Integers:
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
        """The scores of ``decision_function``, shape (n, C); −∞ for clusters that a row's task lacks (``center``)."""
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
            has all C clusters but those that a table leaves out, or that no task has in a common frame ("auto").

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
            Of the rows of every task that a refit sees; less where that makes more than 400 rows, but of every task at
            least two rows per cluster.
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


def _read_counts(sample_weight: Any, n_rows: int) -> Integers:
    """How often every row counts."""
    weights = np.asarray(sample_weight)
    whole = weights.shape == (n_rows,) and weights.dtype.kind in "iufb" and np.all(weights == np.round(weights))
    if not whole or weights.min() < 0 or not 0 < weights.sum() < np.inf:
        raise ValueError(
            f"sample_weight says how many times each of the {n_rows} rows of X counts: whole numbers from 0 on, not "
            "all of them zero. Other weights: multiply them by a number and round them."
        )
    return weights.astype(np.int64)


def _check_known(params: Params, given: Input, known: Integers) -> None:
    """Refuse known rows that no labels with the number of clusters and the sizes that are given can have."""
    index, clusters, C = given.index, given.clusters, int(given.clusters.max())
    if known.max() >= C:
        row = int(index.order[int(np.flatnonzero(known >= C)[0])])
        raise ValueError(
            f"known has {known.max()} at row {row}; allowed are the cluster ids 0 to {C - 1}, and -1 or missing where "
            "the cluster is unknown."
        )
    if isinstance(params.sizes, str) and params.sizes == "auto":  # nobody has given sizes
        bounds = neutral_bounds(index.sizes, clusters)
        bounds = SizeBounds(np.zeros_like(bounds.lower), bounds.upper, bounds.movable)
    else:
        bounds = parse_sizes(params.sizes, index.sizes, clusters, index.names)
    for i, counts in enumerate(counts_by_task(known, index.offsets, C)):
        n, lower, upper = index.sizes[i], bounds.lower[i], bounds.upper[i]
        possible = np.all(counts <= upper) and np.maximum(counts, lower).sum() <= n
        if bounds.movable:
            possible = np.count_nonzero(counts) <= np.count_nonzero(upper)
        if not possible:
            raise ValueError(
                f"known has {counts.tolist()} rows of the clusters in task {index.names.tolist()[i]!r}, but sizes and "
                f"n_clusters ask for {lower.tolist()} to {upper.tolist()} of its {n} rows; change sizes or n_clusters, "
                "or leave some of these rows unknown."
            )
