"""DSTC: every task clustered alone, the one-task version of DMTRC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtclust.estimators.base import MultitaskClusterer, Prepared
from mtclust.solvers.exchange import solve_independent
from mtclust.solvers.problem import SolverOptions, SolverResult

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]


class DSTC(MultitaskClusterer):
    """Discriminative single-task clustering: every task is clustered alone, then cluster ids are matched.

    Its ridge is λ₁ + λ₂ in every task; ``DMTRC(coupling="none")`` with m tasks equals ``DSTC`` with mλ₂.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters per task; cluster ids are matched over tasks by their class means.
    kernel : {"rbf", "linear", "precomputed"} or callable, default="rbf"
        A callable ``kernel(A, B)`` returns the matrix of kernel values between the rows of A and B.
    width : "auto" or float, default="auto"
        σ of the RBF kernel in units of the mean distance between two rows; "auto" takes the candidate
        with the best leave-one-out score.
    lambda1, lambda2 : "auto" or float, default="auto"
        Their sum is the weight of the ridge, relative to the kernel, which is scaled to unit mean diagonal.
    sizes : "auto", "balanced", float, (low, high), array or mapping, default="auto"
        Bounds on the cluster sizes: see :func:`mtclust.labels.parse_sizes`. "auto" is the paper's l = 0.1.
    solver : {"exchange"}, default="exchange"
        Local search on the original mixed-integer objective.
    fit_intercept : bool, default=True
        Centre the features within each task.
    n_init : int, default=40
        Random starts of every task.
    task_column : str or int, optional
        Column of X that holds the task ids, instead of ``tasks=`` in ``fit`` and ``predict``.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int, optional
        Threads for restarts; the result does not depend on it.
    verbose : int, default=0

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Cluster of every row; sizes obey ``sizes``.
    tasks_, coef_, intercept_, objective_, loo_score_, cluster_sizes_, task_groups_, history_, selection_
        As in :class:`DMTRC`; so are ``n_iter_``, ``converged_``, ``n_features_in_`` and ``feature_names_in_``.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DSTC
    >>> X, _ = make_blobs(60, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=0.5, random_state=0)
    >>> DSTC(n_clusters=3, random_state=0).fit(X).cluster_sizes_.tolist()
    [[20, 20, 20]]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: allowed
        for name, allowed in MultitaskClusterer._parameter_constraints.items()
        if name not in ("solver_options", "max_iter", "tol")
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: KernelArgument = "rbf",
        width: float | str = "auto",
        lambda1: float | str = "auto",
        lambda2: float | str = "auto",
        sizes: Any = "auto",
        solver: str = "exchange",
        fit_intercept: bool = True,
        n_init: int = 40,
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
        self.sizes = sizes
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.n_init = n_init
        self.task_column = task_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _read_solver_options(self) -> SolverOptions:
        return SolverOptions(single_task_n_init=self.n_init, n_jobs=self.n_jobs)

    def _solve(self, prepared: Prepared, options: SolverOptions, rng: np.random.Generator) -> SolverResult:
        return solve_independent(prepared.problem, options, rng)

    def _ridge_share(self, lambda2: float, n_tasks: int) -> float:
        return lambda2 / n_tasks
