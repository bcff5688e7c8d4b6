"""DMTFC: clusters all tasks and learns the feature covariance D they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import StrOptions

from mtclust.estimators.base import MultitaskClusterer
from mtclust.estimators.dmtrc import with_shared_texts
from mtclust.search.problem import Method

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]


@with_shared_texts
class DMTFC(MultitaskClusterer):
    """Discriminative multitask feature clustering: clusters all tasks and learns which features they share.

    Parameters
    ----------
    {n_clusters kernel width}
    lambda1, lambda2 : "auto" or float, default="auto"
        Weights of the ridge and of the coupled penalty. They are relative to the kernel, which is scaled to unit mean
        diagonal; "auto" stands for constants. ``lambda1`` may be a mapping task → value.
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

    _coupled_by: ClassVar[Method] = "features"
    _parameter_constraints: ClassVar[dict[str, Any]] = MultitaskClusterer._parameter_constraints | {
        "center": [StrOptions({"auto", "task", "all", "aligned"})],
    }

    def __init__(
        self,
        n_clusters: int | Mapping[Any, int] = 8,
        *,
        kernel: KernelArgument = "auto",
        width: float | str = "auto",
        lambda1: float | str | Mapping[Any, float] = "auto",
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
        self._hold(locals())
