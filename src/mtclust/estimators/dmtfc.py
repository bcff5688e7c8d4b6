"""DMTFC: clusters all tasks and learns the feature covariance D they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from mtclust.choose.record import Selection
from mtclust.core.kernels import near_zero
from mtclust.estimators.base import MultitaskClusterer
from mtclust.problem.common import CommonFrame
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Method, Point

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]

#: D is given in the coordinates of X (linear kernel) up to this many columns; beyond, in those of the eigen-features
LARGEST_FEATURE_COVARIANCE = 2000


class DMTFC(MultitaskClusterer):
    """Discriminative multitask feature clustering: clusters all tasks and learns which features they share.

    Parameters
    ----------
    n_clusters : int, "auto", range or mapping, default=8
        Clusters per task; cluster ids are matched over tasks by their class means. "auto" searches 2 to 12 and a range
        its own numbers (:func:`mtclust.selection.select_n_clusters`). A mapping
        gives every task a number of its own: C is the largest, and the clusters of a smaller task are matched to some
        of the C ids by their class means. ``sizes`` then applies to the clusters a task has; a table, with C columns
        and zeros, says which these are.
    kernel : {"auto", "rbf", "linear", "precomputed"} or callable, default="auto"
        "auto" lets the linear kernel and RBF kernels of widths ½ and 1 compete, "rbf" the two widths; large sparse
        tables are left to the linear one.
        A callable ``kernel(A, B)`` returns the matrix of kernel values between the rows of A and B.
    width : "auto" or float, default="auto"
        σ of the RBF kernel in units of the mean distance between two rows of one task.
    lambda1, lambda2 : "auto" or float, default="auto"
        Weights of the ridge and of the coupled penalty. They are relative to the kernel, which is scaled to unit mean
        diagonal; "auto" stands for constants.
    center : {"auto", "task", "all", "aligned"}, default="auto"
        Where the origin lies, as in :class:`DMTRC`: each task's own mean, or one for all, as they are or aligned, where
        a task may lack clusters and all have one model.
    n_components : int, optional
        Leading eigen-features of the kernel to use (kernel PCA); all by default.
    sizes : "auto", "balanced", float, (low, high), array or mapping, default="auto"
        Bounds on the cluster sizes: see :func:`mtclust.core.labels.parse_sizes`. "auto" searches the paper's J with
        equal sizes, from which rows are then released, and the size-neutral criterion E
        (:mod:`mtclust.core.criterion`), and takes what separates clusters best.
    solver : {"exchange", "cutting-plane"}, default="exchange"
        Local search on the original mixed-integer objective, or the paper's cutting planes on its convex relaxation,
        whose optimum says nothing about clusters: what they return depends on ``init`` and ``max_cuts``.
    solver_options : dict, optional
        ``single_task_n_init`` (40): random starts of every task alone.
        For cutting planes ``init``, ``max_cuts``, ``gap_tol``, ``zero_tol``, ``level_tol``, ``max_level_steps`` and
        ``refine``: see :class:`mtclust.relaxation.options.CuttingPlaneOptions`.
    fit_intercept : bool, default=True
        Centre the features within each task.
    n_init : int, default=8
        Labellings of every task that enter the search under the shared D.
    max_iter : int, default=40
        Rounds of label and coupling steps of one descent.
    tol : float, default=1e-4
        A descent ends when a round lowers the objective by less than this (relative).
    task_column : str or int, optional
        Column of X that holds the task ids, instead of ``tasks=`` in ``fit`` and ``predict``.
    random_state : int, RandomState instance or None, default=None
        Of the search where ``sizes`` are given or nothing is left to choose; what "auto" chooses does not depend on it.
    n_jobs : int, optional
        Threads for restarts; the result does not depend on it.
    verbose : int, default=0
        1 prints what a long fit is doing, and at the end how the objective fell.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of every row; sizes obey ``sizes``.
    task_offsets_ : ndarray of shape (m, d) or None
        How far every task was moved where tasks are aligned (``selection_["center"]``); None elsewhere.
    feature_covariance_ : ndarray of shape (d, d) or (r, r)
        D, trace 1: in the coordinates of X with the linear kernel and up to 2000 columns, otherwise in those of the
        eigen-features of the kernel.
    single_task_labels_, tasks_, coef_, intercept_, objective_, loo_score_, cluster_sizes_, task_groups_, history_
        As in :class:`DMTRC`; so are ``n_clusters_``, ``n_iter_``, ``converged_``, ``selection_``, ``n_features_in_``
        ``feature_names_in_``, ``probabilities_``, ``outlier_scores_``,
        ``cluster_scores_`` and ``stability_``.
    relaxed_labels_, mixture_weights_, init_labels_, lower_bound_
        Of the cutting planes only: Ỹ (n × C), the weights μ of every task's pool, the labels at the start, and a lower
        bound of the relaxed optimum; ``objective_`` is then the relaxed value, ``history_`` has one entry per cut, and
        ``labels_`` are the argmax of f, whatever their sizes.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DMTFC, stack_tasks
    >>> first, _ = make_blobs(60, centers=[[0, 0, 0], [4, 0, 0]], random_state=0)
    >>> second, _ = make_blobs(60, centers=[[1, 1, 1], [5, 1, 1]], random_state=1)
    >>> X, tasks = stack_tasks([first, second])
    >>> model = DMTFC(n_clusters=2, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> int(model.feature_covariance_.diagonal().argmax())  # the feature that separates the clusters of both tasks
    0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = MultitaskClusterer._parameter_constraints | {
        "center": [StrOptions({"auto", "task", "all", "aligned"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        # one D for all tasks: λ₁ cannot differ by task
        "lambda1": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str = "auto",
        lambda2: float | str = "auto",
        center: str = "auto",
        n_components: int | None = None,
        sizes: Any = "auto",
        solver: str = "exchange",
        solver_options: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        n_init: int = 8,
        max_iter: int = 40,
        tol: float = 1e-4,
        task_column: str | int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.width = width
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.center = center
        self.n_components = n_components
        self.sizes = sizes
        self.solver = solver
        self.solver_options = solver_options
        self.fit_intercept = fit_intercept
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.task_column = task_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _method(self, n_tasks: int) -> Method:
        return "features"

    selection_: Selection

    def _store_coupling(self, problem: Any, point: Point) -> None:
        if isinstance(problem, CommonFrame):  # D of the one model
            problem, point = problem.pooled, point.fit.pooled
        self.feature_covariance_ = point.Z
        self.selection_ = replace(self.selection_, n_components=len(point.Z))
        if isinstance(problem, KernelProblem):
            self.feature_covariance_ = _in_input_coordinates(problem, point.Z)


def _in_input_coordinates(problem: KernelProblem, D: Array) -> Array:
    """V D Vᵀ, where V holds the directions of the eigen-features in the space of X."""
    assert problem.origin is not None
    assert problem.features is not None
    kernel, rows, centred = problem.origin.kernel, problem.origin.rows, problem.origin.centred
    if kernel.kind != "linear" or rows.shape[1] > LARGEST_FEATURE_COVARIANCE or centred.scale == 0:
        return D
    if centred.centred:  # the projection's columns then sum to 0 within every task: any shift will do
        rows = near_zero(rows, problem.offsets)
    V = rows.T @ problem.features.projection / np.sqrt(centred.scale)
    return np.asarray(V @ D @ V.T)
