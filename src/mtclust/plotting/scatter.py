"""A scatter of every task, with one colour per cluster in all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.utils.validation import check_is_fitted

from mtclust.core.kernels import is_precomputed
from mtclust.core.tasks import numbers_of_known_tasks
from mtclust.core.validation import read_rows
from mtclust.plotting.figures import FRAME, cluster_style, column_names
from mtclust.util.messages import shown_name
from mtclust.util.system import require

Array = NDArray[np.float64]

#: panels that fit into one figure
_MOST_PANELS = 36
#: rows the axes are found from; more would not turn them noticeably
_ROWS_FOR_AXES = 5000


def plot_tasks(
    estimator: Any,
    X: Any,
    tasks: Any = None,
    axes: Any = None,
    *,
    labels: Any = None,
    which: Sequence[Any] | None = None,
    max_points: int = 2000,
) -> Any:
    """Scatter of each task in two common dimensions; a cluster has the same colour in all tasks.

    Two columns are shown as they are. Of more, and of kernels, the two main directions (PCA) of the rows centred within
    each task are shown, the same for all tasks, so that what lies at the same place is alike. For sparse tables they
    are those of the rows as they are.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        A fitted model.
    X, tasks
        The rows of ``fit`` and their tasks, as given there; or other rows, together with their ``labels``.
    axes : array of matplotlib Axes, optional
        One per task shown; a new figure by default.
    labels : array of shape (n,), optional
        Clusters of the rows; by default ``labels_``. For other rows than those of ``fit`` give
        ``estimator.predict(X, tasks=tasks)``.
    which : sequence of task ids, optional
        The tasks to show, in this order; by default all, or the first 36 of more.
    max_points : int, default=2000
        Of a task with more rows, this many are drawn, at even steps; the panel says so.

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
    if max_points < 1:
        raise ValueError(f"max_points={max_points} must be at least 1.")
    rows, ids = read_rows(estimator, X, tasks, task_column=estimator.task_column, reset=False)
    numbers = numbers_of_known_tasks(ids, rows.shape[0], estimator.tasks_)
    labels = _labels(estimator, labels, rows.shape[0])
    shown = _tasks_to_show(estimator, which)
    places, axis_names = _two_dimensions(estimator, rows, numbers)
    own_limits = axis_names is not None  # columns as they are: tasks may lie far apart
    if axes is None:
        axes = _new_panels(len(shown), len(estimator.tasks_), own_limits)
    panels = np.atleast_1d(np.asarray(axes, dtype=object)).ravel()
    if len(panels) < len(shown):
        raise ValueError(f"axes has {len(panels)} axes for {len(shown)} tasks; give one per task, or choose by which.")
    panels = panels[: len(shown)]
    for ax, task in zip(panels, shown):
        mine = np.flatnonzero(numbers == task)
        drawn = mine[np.linspace(0, len(mine) - 1, max_points).astype(int)] if len(mine) > max_points else mine
        _draw(ax, places[drawn], labels[drawn], few=len(drawn) <= 300)
        note = f" ({len(drawn)} of {len(mine)} rows)" if len(drawn) < len(mine) else ""
        name = estimator.tasks_.tolist()[task]
        title = shown_name(name) if isinstance(name, str) else f"task {shown_name(name)}"
        ax.set_title(title + note, fontsize="medium", parse_math=False)
        if axis_names is not None:
            ax.set_xlabel(shown_name(axis_names[0]), fontsize="small", parse_math=False)
            ax.set_ylabel(shown_name(axis_names[1]), fontsize="small", parse_math=False)
            ax.tick_params(labelsize="small")
        else:
            ax.set_xticks([])
            ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set_color(FRAME)
    _add_legend(panels, np.unique(labels))
    return panels


def _labels(estimator: Any, labels: Any, n: int) -> NDArray[np.int64]:
    given = estimator.labels_ if labels is None else np.asarray(labels)
    if given.shape != (n,):
        what = "the model was fitted on" if labels is None else "labels has"
        raise ValueError(
            f"X has {n} rows but {what} {len(given)}; for other rows than those of fit give "
            "labels=estimator.predict(X, tasks=tasks)."
        )
    return given


def _tasks_to_show(estimator: Any, which: Sequence[Any] | None) -> list[int]:
    if which is None:
        return list(range(min(len(estimator.tasks_), _MOST_PANELS)))
    if not len(which):
        raise ValueError("which is empty; give at least one task id.")
    return numbers_of_known_tasks(np.asarray(which), len(which), estimator.tasks_).tolist()


def _two_dimensions(estimator: Any, rows: Any, numbers: NDArray[np.int64]) -> tuple[Array, list[str] | None]:
    """Two coordinates of every row; the names of the axes where these are columns of X."""
    n, d = rows.shape
    precomputed = is_precomputed(estimator.kernel)
    if d == 2 and not precomputed and not sp.issparse(rows):
        return rows, [name if isinstance(name, str) else f"column {name}" for name in column_names(estimator)]
    sample = np.unique(np.linspace(0, n - 1, _ROWS_FOR_AXES).astype(int)) if n > _ROWS_FOR_AXES else np.arange(n)
    if sp.issparse(rows):
        if d < 3:
            return np.hstack([rows.toarray(), np.zeros((n, 2))])[:, :2], None
        return TruncatedSVD(2, random_state=0).fit(rows[sample]).transform(rows), None
    # the columns of a kernel serve as features: the rows that are alike to the same others lie together
    means = np.stack([rows[numbers == task].mean(axis=0) if np.any(numbers == task) else np.zeros(d)
                      for task in range(len(estimator.tasks_))])  # fmt: skip
    pca = PCA(min(2, n, d), svd_solver="full" if d <= 50 else "auto", random_state=0)
    places = pca.fit(rows[sample] - means[numbers[sample]]).transform(rows) - pca.transform(means)[numbers]
    return np.hstack([places, np.zeros((n, 2 - places.shape[1]))]), None


def _new_panels(n_panels: int, n_tasks: int, own_limits: bool) -> Any:
    pyplot = require("matplotlib.pyplot", "plot")
    n_columns = n_panels if n_panels <= 3 else int(np.ceil(np.sqrt(n_panels)))
    n_rows = -(-n_panels // n_columns)
    side = 2.6 if n_panels <= 9 else 1.9
    figure, axes = pyplot.subplots(
        n_rows, n_columns, figsize=(side * n_columns + 1.1, side * n_rows), squeeze=False, layout="constrained",
        sharex=not own_limits, sharey=not own_limits,
    )  # fmt: skip
    for spare in axes.ravel()[n_panels:]:
        spare.remove()
    if n_panels < n_tasks:
        figure.suptitle(f"{n_panels} of {n_tasks} tasks")
    return axes.ravel()[:n_panels]


def _draw(ax: Any, places: Array, labels: NDArray[np.int64], few: bool) -> None:
    for cluster in np.unique(labels):
        mine = labels == cluster
        ax.scatter(
            places[mine, 0], places[mine, 1], s=18 if few else 8, alpha=0.8, linewidths=0,
            rasterized=len(places) > 1000, **cluster_style(int(cluster)),
        )  # fmt: skip


def _add_legend(panels: Any, clusters: NDArray[np.int64]) -> None:
    """One legend for all panels, beside them."""
    lines = require("matplotlib.lines", "plot")
    handles = [
        lines.Line2D([], [], linestyle="", label=str(cluster), **cluster_style(int(cluster))) for cluster in clusters
    ]
    figure = panels[0].figure
    if figure.get_layout_engine() is None:  # nobody would make room beside the panels
        panels[-1].legend(handles=handles, title="cluster", fontsize="small", frameon=False)
    else:
        figure.legend(
            handles=handles, title="cluster", loc="outside right upper", frameon=False, ncols=-(-len(handles) // 15)
        )
