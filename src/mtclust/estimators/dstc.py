"""DSTC: every task clustered alone, the one-task version of DMTRC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtclust.estimators.base import MultitaskClusterer
from mtclust.problem.protocol import SearchOptions

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]


class DSTC(MultitaskClusterer):
    """Discriminative single-task clustering: every task is clustered alone, then cluster ids are matched.

    Its ridge is λ₁ + λ₂ in every task; ``DMTRC(coupling="none")`` with m tasks equals ``DSTC`` with mλ₂.

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
        Their sum is the weight of the ridge, relative to the kernel, which is scaled to unit mean diagonal;
        "auto" stands for constants. ``lambda1`` may be a mapping task → value.
    sizes : "auto", "balanced", float, (low, high), array or mapping, default="auto"
        Bounds on the cluster sizes: see :func:`mtclust.core.labels.parse_sizes`. "auto" searches the paper's J with
        equal sizes, from which rows are then released, and the size-neutral criterion E
        (:mod:`mtclust.core.criterion`), and takes what separates clusters best.
    solver : {"exchange", "cutting-plane"}, default="exchange"
        Local search on the original mixed-integer objective, or the paper's cutting planes on its convex relaxation,
        whose optimum says nothing about clusters: what they return depends on ``init`` and ``max_cuts``.
    solver_options : dict, optional
        ``form``: "dual" solves with kernel matrices, "primal" with explicit features, whose cost is linear in the
        number of rows, "auto" (default) takes the dual form up to 700 rows (1500 sparse ones).
        For cutting planes ``init``, ``max_cuts``, ``gap_tol``, ``zero_tol``, ``level_tol``, ``max_level_steps`` and
        ``refine``: see :class:`mtclust.relaxation.options.CuttingPlaneOptions`.
    n_components : int, optional
        Number of Nyström features of the primal form; by default the columns of X for a linear kernel (up to 1000),
        otherwise 2√n, at least 100 and at most 200. Without effect on the dual form, which is exact.
    fit_intercept : bool, default=True
        Centre the features within each task.
    n_init : int, default=40
        Random starts of every task.
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
    tasks_, coef_, intercept_, objective_, loo_score_, cluster_sizes_, task_groups_, history_, selection_
        As in :class:`DMTRC`; so are ``n_clusters_``, ``n_iter_``, ``converged_``, ``n_features_in_``,
        ``feature_names_in_``, ``probabilities_``, ``outlier_scores_``,
        ``cluster_scores_`` and ``stability_``.
    relaxed_labels_, mixture_weights_, init_labels_, lower_bound_
        Of the cutting planes only: Ỹ (n × C), the weights μ of every task's pool, the labels at the start, and a lower
        bound of the relaxed optimum; ``objective_`` is then the relaxed value, ``history_`` has one entry per cut, and
        ``labels_`` are the argmax of f, whatever their sizes.

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
        if name not in ("max_iter", "tol")
    }

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str | Mapping[Any, float] = "auto",
        lambda2: float | str = "auto",
        sizes: Any = "auto",
        solver: str = "exchange",
        solver_options: dict[str, Any] | None = None,
        n_components: int | None = None,
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
        self.solver_options = solver_options
        self.n_components = n_components
        self.fit_intercept = fit_intercept
        self.n_init = n_init
        self.task_column = task_column
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _read_search_options(self) -> SearchOptions:
        self._exchange_options(())
        return SearchOptions(n_init=self.n_init, single_task_n_init=self.n_init, n_jobs=self.n_jobs)

    def _lambda2_share(self, n_tasks: int) -> float:
        return 1.0 / n_tasks
