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
from mtclust.estimators.dmtrc import with_shared_texts
from mtclust.search.common import CommonFrame
from mtclust.search.problem import Method, Point, Problem

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]

#: D is given in the coordinates of X (linear kernel) up to this many columns; beyond, in those of the eigen-features
LARGEST_FEATURE_COVARIANCE = 2000


@with_shared_texts
class DMTFC(MultitaskClusterer):
    """Discriminative multitask feature clustering: clusters all tasks and learns which features they share.

    Parameters
    ----------
    {n_clusters kernel width}
    lambda1, lambda2 : "auto" or float, default="auto"
        Weights of the ridge and of the coupled penalty. They are relative to the kernel, which is scaled to unit mean
        diagonal; "auto" stands for constants.
    {center}
    n_components : int, optional
        Leading eigen-features of the kernel to use (kernel PCA); all by default.
    {sizes solver}
    solver_options : dict, optional
        ``single_task_n_init`` (40): random starts of every task alone.
        For cutting planes: see :class:`mtclust.relaxation.options.CuttingPlaneOptions`.
    fit_intercept : bool, default=True
        Centre the features within each task.
    n_init : int, default=8
        Labellings of every task that enter the search under the shared D where ``sizes`` are given.
    {max_iter tol task_column random_state n_jobs verbose}

    Attributes
    ----------
    {labels_ task_offsets_}
    feature_covariance_ : ndarray of shape (d, d) or (r, r)
        D, trace 1: in the coordinates of X with the linear kernel and up to 2000 columns, otherwise in those of the
        eigen-features of the kernel.
    {tasks_ single_task_labels_ probabilities_ outlier_scores_ coef_ intercept_ objective_ loo_score_}
    {cluster_scores_ stability_ n_clusters_ cluster_sizes_ task_groups_ history_ n_iter_ selection_ n_features_in_}
    {relaxed_labels_}

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
        if isinstance(problem, Problem):
            self.feature_covariance_ = _in_input_coordinates(problem, point.Z)


def _in_input_coordinates(problem: Problem, D: Array) -> Array:
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
