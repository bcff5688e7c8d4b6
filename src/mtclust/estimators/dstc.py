"""DSTC: every task clustered alone, the one-task version of DMTRC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtclust.estimators.base import MultitaskClusterer
from mtclust.estimators.dmtrc import with_shared_texts

Array = NDArray[np.float64]
KernelArgument = str | Callable[[Any, Any], Array]


@with_shared_texts
class DSTC(MultitaskClusterer):
    """Discriminative single-task clustering: every task is clustered alone, then cluster ids are matched.

    Its ridge is λ₁ + λ₂ in every task; ``DMTRC(coupling="none")`` with m tasks equals ``DSTC`` with mλ₂.

    Parameters
    ----------
    {n_clusters kernel width}
    lambda1, lambda2 : "auto" or float, default="auto"
        Their sum is the weight of the ridge, relative to the kernel, which is scaled to unit mean diagonal;
        "auto" stands for constants. ``lambda1`` may be a mapping task → value.
    {sizes solver}
    solver_options : dict, optional
        ``form``: "dual" solves with kernel matrices, "primal" with explicit features, whose cost is linear in the
        number of rows, "auto" (default) takes the dual form up to 720 rows.
        For cutting planes: see :class:`mtclust.relaxation.options.CuttingPlaneOptions`.
    {n_components}
    fit_intercept : bool, default=True
        Centre the features within each task.
    n_init : int, default=40
        Random starts of every task where ``sizes`` are given.
    {task_column random_state n_jobs verbose}

    Attributes
    ----------
    {labels_}
    {tasks_ probabilities_ outlier_scores_ coef_ intercept_ objective_ loo_score_ cluster_scores_}
    {stability_ n_clusters_ cluster_sizes_ task_groups_ history_ n_iter_ selection_ n_features_in_}
    {relaxed_labels_}

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
        self._hold(locals())
