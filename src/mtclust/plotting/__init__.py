"""Pictures of fitted models (matplotlib, the extra ``plot``); each function returns the axes it has drawn into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mtclust.app.tables.columns import plane
from mtclust.core.tasks import numbers_of_known_tasks
from mtclust.core.validation import read_known_rows
from mtclust.estimators.base import MultitaskClusterer
from mtclust.search.problem import LARGEST_FEATURE_COVARIANCE
from mtclust.util.messages import shown_name
from mtclust.util.system import require

__all__ = ["plot_feature_covariance", "plot_task_relationship", "plot_tasks"]

#: blue for positive, vermilion for negative: told apart with any colour vision
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
#: the colours of Okabe and Ito, grey in the place of black so that all are seen on light and dark pages
COLOURS = (POSITIVE, NEGATIVE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: points that fit into one panel
_MOST_POINTS = 2000


def cluster_style(cluster: int) -> dict[str, str]:
    """Colour and marker of a cluster: another marker once the colours are used up."""
    return {"color": COLOURS[cluster % len(COLOURS)], "marker": MARKERS[cluster // len(COLOURS) % len(MARKERS)]}


def column_names(estimator: MultitaskClusterer) -> list[Any]:
    """Names of the columns of X without the task column; their numbers where they have no names."""
    names = list(getattr(estimator, "feature_names_in_", range(estimator.n_features_in_)))
    column = estimator.task_column
    if column is not None:
        names.pop(names.index(column) if column in names else column)  # or a place, perhaps counted from the end
    return names


def _check_fitted(estimator: MultitaskClusterer, attribute: str, only: str) -> None:
    check_is_fitted(estimator, "labels_")
    if not hasattr(estimator, attribute):
        raise TypeError(f"estimator is a {type(estimator).__name__}; {only}.")


def _matrix_axes(ax: Any, names: Sequence[Any], beside: float = 0.0) -> Any:
    """Axes for a square matrix with the names of tasks or columns on both sides; every few of very many."""
    n, longest = len(names), max(len(shown_name(name)) for name in names)
    side = max(1.2 + 0.08 * longest + 0.42 * min(n, 12) + 0.2 * max(min(n, 40) - 12, 0), 3.2)
    if ax is None:
        _, ax = require("matplotlib.pyplot", "plot").subplots(figsize=(side + beside, side), layout="constrained")
    places = range(0, n, -(-n // 60))  # more names cannot be read
    texts = [shown_name(names[i]) for i in places]
    # names are text, never formulas: a task called "$x" must not be typeset
    size = {"fontsize": "small" if len(texts) > 15 else "medium", "parse_math": False}
    ax.set_xticks(places, texts, rotation=90 if max(map(len, texts)) > 3 else 0, **size)
    ax.set_yticks(places, texts, **size)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color("#cccccc")
    return ax


def plot_task_relationship(estimator: MultitaskClusterer, ax: Any = None, *, correlation: bool = True) -> Any:
    """Hinton diagram of how the tasks are related: the area of a square is the size of the entry, its colour the sign.

    Parameters
    ----------
    estimator : DMTRC
        A fitted model.
    ax : matplotlib Axes, optional
    correlation : bool, default=True
        Show the correlations between tasks; otherwise the covariance Ω, as in the paper.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_task_relationship(model).get_title()
    'Correlation between tasks'
    """
    collections = require("matplotlib.collections", "plot")
    patches = require("matplotlib.patches", "plot")
    _check_fitted(estimator, "task_covariance_", "only DMTRC learns how the tasks are related")
    matrix = estimator.task_correlation_ if correlation else estimator.task_covariance_
    m, ax = len(matrix), _matrix_axes(ax, estimator.tasks_.tolist())
    sides = 0.92 * np.sqrt(np.abs(matrix) / (float(np.abs(matrix).max()) or 1.0))
    squares = [patches.Rectangle((k - side / 2, i - side / 2), side, side) for (i, k), side in np.ndenumerate(sides)]
    colours = np.where(matrix.ravel() >= 0, POSITIVE, NEGATIVE).tolist()
    ax.add_collection(collections.PatchCollection(squares, facecolors=colours, linewidths=0))
    title = "Correlation between tasks" if correlation else "Covariance Ω between tasks"
    ax.set(xlim=(-0.6, m - 0.4), ylim=(m - 0.4, -0.6), aspect="equal", title=title)
    ax.set_xlabel("blue: positive, orange: negative; area: size" if matrix.min() < 0 else "area: size")
    return ax


def plot_feature_covariance(estimator: MultitaskClusterer, ax: Any = None, *, max_features: int = 30) -> Any:
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
    >>> from mtclust import DMTFC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTFC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_feature_covariance(model).get_title()
    'Feature covariance D shared by the tasks'
    """
    _check_fitted(estimator, "feature_covariance_", "only DMTFC learns a covariance of features")
    if max_features < 1:
        raise ValueError(f"max_features={max_features} must be at least 1.")
    D, names, kind = estimator.feature_covariance_, column_names(estimator), "columns"
    total, shown = len(D), np.arange(len(D))
    # coef_ says that the model is one of the columns themselves
    if not (hasattr(estimator, "coef_") and total == len(names) <= LARGEST_FEATURE_COVARIANCE):
        names, kind = list(range(total)), "components of the kernel"
    if total > max_features:
        shown = np.argsort(-np.diag(D), kind="stable")[:max_features]
        kind = f"{len(shown)} of {total} {kind}, largest entries of the diagonal first"
    D, names = D[np.ix_(shown, shown)], [names[i] for i in shown]
    ax = _matrix_axes(ax, names, beside=0.8)
    largest = float(np.abs(D).max()) or 1.0
    image = ax.imshow(D, cmap="RdBu", vmin=-largest, vmax=largest)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    ax.set_title("Feature covariance D shared by the tasks")
    ax.set_xlabel(kind)
    return ax


def plot_tasks(
    estimator: MultitaskClusterer, X: Any, tasks: Any = None, *, labels: Any = None, which: Sequence[Any] | None = None
) -> Any:
    """Scatter of each task in two common dimensions, a new figure; a cluster has the same colour in all tasks.

    Two columns are shown as they are. Of more, and of kernels, the two main directions (PCA) of the rows centred within
    each task are shown, the same for all tasks, so that what lies at the same place is alike. Of a task with more than
    2 000 rows, this many are drawn, at even steps; the panel says so.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        A fitted model.
    X, tasks
        The rows of ``fit`` and their tasks, as given there; or other rows, together with their ``labels``.
    labels : array of shape (n,), optional
        Clusters of the rows; by default ``labels_``. For other rows than those of ``fit`` give
        ``estimator.predict(X, tasks=tasks)``.
    which : sequence of task ids, optional
        The tasks to show, in this order; by default all, or the first 36 of more.

    Returns
    -------
    ndarray of matplotlib Axes
        One per task shown.

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> axes = plot_tasks(model, X, tasks)
    >>> [ax.get_title() for ax in axes[:2]]
    ['task 0', 'task 1']
    """
    check_is_fitted(estimator, "labels_")
    rows, numbers = read_known_rows(estimator, X, tasks)
    clusters = estimator.labels_ if labels is None else np.asarray(labels)
    if clusters.shape != (rows.shape[0],):
        what = "the model was fitted on" if labels is None else "labels has"
        raise ValueError(
            f"X has {rows.shape[0]} rows but {what} {len(clusters)}; for other rows than those of fit give "
            "labels=estimator.predict(X, tasks=tasks)."
        )
    if which is None or not len(which):
        shown = list(range(min(len(estimator.tasks_), 36)))  # panels in one figure
    else:
        shown = numbers_of_known_tasks(np.asarray(which), len(which), estimator.tasks_).tolist()
    if rows.shape[1] == 2 and estimator.kernel != "precomputed" and not sp.issparse(rows):
        places, axis_names = rows, [n if isinstance(n, str) else f"column {n}" for n in column_names(estimator)]
    else:  # the columns of a kernel serve as features: the rows that are alike to the same others lie together
        last = len(clusters) - 1  # the axes do not turn noticeably with more than 5 000 rows
        sample = np.unique(np.linspace(0, last, min(last + 1, 5000)).astype(int))
        places, axis_names = plane(rows, numbers, sample), []
    # columns as they are have limits of their own: tasks may lie far apart
    panels = _new_panels(len(shown), len(estimator.tasks_), share_limits=not axis_names)
    for ax, task in zip(panels, shown):
        mine = np.flatnonzero(numbers == task)
        drawn = mine[np.linspace(0, len(mine) - 1, min(len(mine), _MOST_POINTS)).astype(int)]
        style = {"s": 18 if len(drawn) <= 300 else 8, "alpha": 0.8, "linewidths": 0, "rasterized": len(drawn) > 1000}
        for cluster in np.unique(clusters[drawn]):
            ax.scatter(*places[drawn[clusters[drawn] == cluster]].T, **style, **cluster_style(int(cluster)))
        note = f" ({len(drawn)} of {len(mine)} rows)" if len(drawn) < len(mine) else ""
        name = estimator.tasks_.tolist()[task]
        title = shown_name(name) if isinstance(name, str) else f"task {shown_name(name)}"
        ax.set_title(title + note, fontsize="medium", parse_math=False)
        if not axis_names:
            ax.set(xticks=[], yticks=[])
        for set_label, name in zip((ax.set_xlabel, ax.set_ylabel), axis_names):
            set_label(shown_name(name), fontsize="small", parse_math=False)
    line = require("matplotlib.lines", "plot").Line2D
    handles = [line([], [], linestyle="", label=str(c), **cluster_style(int(c))) for c in np.unique(clusters)]
    place = {"loc": "outside right upper", "ncols": -(-len(handles) // 15)}
    panels[0].figure.legend(handles=handles, title="cluster", frameon=False, **place)
    return panels


def _new_panels(n_panels: int, n_tasks: int, share_limits: bool) -> Any:
    n_columns = n_panels if n_panels <= 3 else int(np.ceil(np.sqrt(n_panels)))
    n_rows = -(-n_panels // n_columns)
    side = 2.6 if n_panels <= 9 else 1.9
    figure, axes = require("matplotlib.pyplot", "plot").subplots(
        n_rows, n_columns, figsize=(side * n_columns + 1.1, side * n_rows), squeeze=False, layout="constrained",
        sharex=share_limits, sharey=share_limits,
    )  # fmt: skip
    for spare in axes.ravel()[n_panels:]:
        spare.remove()
    if n_panels < n_tasks:
        figure.suptitle(f"{n_panels} of {n_tasks} tasks")
    return axes.ravel()[:n_panels]
