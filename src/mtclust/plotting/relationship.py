"""What the tasks share: Hinton diagram of Ω and heat map of D."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from mtclust.estimators.dmtfc import LARGEST_FEATURE_COVARIANCE
from mtclust.plotting._style import NEGATIVE, POSITIVE, column_names, matrix_size, name_ticks, new_axes
from mtclust.util.extras import require
from mtclust.util.names import shown_name

Array = NDArray[np.float64]


def plot_task_relationship(estimator: Any, ax: Any = None, *, correlation: bool = True, order: str = "sorted") -> Any:
    """Hinton diagram of how the tasks are related: the area of a square is the size of the entry, its colour the sign.

    Parameters
    ----------
    estimator : DMTRC
        A fitted model.
    ax : matplotlib Axes, optional
    correlation : bool, default=True
        Show the correlations between tasks; otherwise the covariance Ω, as in the paper.
    order : {"sorted", "related"}, default="sorted"
        Tasks in the order of ``tasks_``, or tasks with a high correlation side by side (average linkage).

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_task_relationship(model).get_title()
    'Correlation between tasks'
    """
    collections = require("matplotlib.collections", "plot")
    patches = require("matplotlib.patches", "plot")
    check_is_fitted(estimator, "labels_")
    if not hasattr(estimator, "task_covariance_"):
        raise TypeError(f"estimator is a {type(estimator).__name__}; only DMTRC learns how the tasks are related.")
    if order not in ("sorted", "related"):
        raise ValueError(f'order={order!r}; allowed are "sorted" and "related".')
    matrix = estimator.task_correlation_ if correlation else estimator.task_covariance_
    names = estimator.tasks_.tolist()
    m = len(names)
    if order == "related" and m > 2:
        place = _side_by_side(estimator.task_correlation_)
        names, matrix = [names[i] for i in place], matrix[np.ix_(place, place)]
    if ax is None:
        size = matrix_size(m, max(len(shown_name(name)) for name in names))
        ax = new_axes(size, size)
    largest = float(np.abs(matrix).max()) or 1.0
    sides = 0.92 * np.sqrt(np.abs(matrix) / largest)
    squares = [
        patches.Rectangle((k - sides[i, k] / 2, i - sides[i, k] / 2), sides[i, k], sides[i, k])
        for i in range(m)
        for k in range(m)
    ]
    colours = np.where(matrix.ravel() >= 0, POSITIVE, NEGATIVE).tolist()
    ax.add_collection(collections.PatchCollection(squares, facecolors=colours, linewidths=0))
    ax.set_xlim(-0.6, m - 0.4)
    ax.set_ylim(m - 0.4, -0.6)
    ax.set_aspect("equal")
    name_ticks(ax, names)
    ax.set_title("Correlation between tasks" if correlation else "Covariance Ω between tasks")
    if float(matrix.min()) < 0:
        ax.set_xlabel("blue: positive, orange: negative; area: size")
    else:
        ax.set_xlabel("area: size")
    return ax


def _side_by_side(correlation: Array) -> list[int]:
    """An order that puts the most correlated tasks next to each other."""
    distance = np.maximum(1.0 - (correlation + correlation.T) / 2, 0.0)
    np.fill_diagonal(distance, 0.0)
    return leaves_list(linkage(squareform(distance), "average", optimal_ordering=True)).tolist()


def plot_feature_covariance(estimator: Any, ax: Any = None, *, max_features: int = 30) -> Any:
    """Heat map of the feature covariance D that the tasks share: a large diagonal entry is a feature that all use.

    Parameters
    ----------
    estimator : DMTFC
        A fitted model.
    ax : matplotlib Axes, optional
    max_features : int, default=30
        Of more features than this only those with the largest diagonal entries are shown, largest first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mtclust import DMTFC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTFC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_feature_covariance(model).get_title()
    'Feature covariance D shared by the tasks'
    """
    check_is_fitted(estimator, "labels_")
    if not hasattr(estimator, "feature_covariance_"):
        raise TypeError(f"estimator is a {type(estimator).__name__}; only DMTFC learns a covariance of features.")
    if max_features < 1:
        raise ValueError(f"max_features={max_features} must be at least 1.")
    D, names, kind = _with_names(estimator)
    total, shown = len(D), np.arange(len(D))
    if total > max_features:
        shown = np.argsort(-np.diag(D), kind="stable")[:max_features]
    D, names = D[np.ix_(shown, shown)], [names[i] for i in shown]
    if ax is None:
        size = matrix_size(len(D), max(len(shown_name(name)) for name in names))
        ax = new_axes(size + 0.8, size)
    largest = float(np.abs(D).max()) or 1.0
    image = ax.imshow(D, cmap="RdBu", vmin=-largest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    name_ticks(ax, names)
    ax.set_title("Feature covariance D shared by the tasks")
    ax.set_xlabel(kind if len(D) == total else f"{len(D)} of {total} {kind}, largest entries of the diagonal first")
    return ax


def _with_names(estimator: Any) -> tuple[Array, list[Any], str]:
    """D, what its rows are called, and what they are."""
    D = estimator.feature_covariance_
    names = column_names(estimator)
    # coef_ says that the model is one of the columns themselves
    in_columns = hasattr(estimator, "coef_") and len(D) == len(names) <= LARGEST_FEATURE_COVARIANCE
    return (D, names, "columns") if in_columns else (D, list(range(len(D))), "components of the kernel")
