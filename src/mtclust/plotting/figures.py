"""Pictures in one set of axes: what the tasks share, how the objective fell, what "auto" chose from.

Colours, names and axes are here too, for all pictures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from mtclust.choose.record import Selection
from mtclust.estimators.storing import LARGEST_FEATURE_COVARIANCE
from mtclust.util.messages import shown_name
from mtclust.util.system import require

Array = NDArray[np.float64]

#: blue for positive, vermilion for negative: told apart with any colour vision
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
#: the colours of Okabe and Ito, grey in the place of black so that all are seen on light and dark pages
COLOURS = (POSITIVE, NEGATIVE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: grey of frames and guides
FRAME = "#999999"
#: ticks with names of their own; more cannot be read
_NAMED_TICKS = 60
_PARTS = ("n_clusters", "kernel")


def cluster_style(cluster: int) -> dict[str, str]:
    """Colour and marker of a cluster: another marker once the colours are used up."""
    round_, place = divmod(cluster, len(COLOURS))
    return {"color": COLOURS[place], "marker": MARKERS[round_ % len(MARKERS)]}


def column_names(estimator: Any) -> list[Any]:
    """Names of the columns of X without the task column; their numbers where they have no names."""
    names = list(getattr(estimator, "feature_names_in_", range(estimator.n_features_in_)))
    task_column = estimator.task_column
    if task_column in names:
        names.remove(task_column)
    elif task_column is not None:  # a place counted from the end
        names.pop(task_column)
    return names


def _axes(ax: Any, width: float, height: float) -> Any:
    """The axes that were given, or those of a new figure."""
    if ax is None:
        _, ax = require("matplotlib.pyplot", "plot").subplots(figsize=(width, height), layout="constrained")
    return ax


def _matrix_axes(ax: Any, names: Sequence[Any], beside: float = 0.0) -> Any:
    """Axes for a square matrix with the names of tasks or columns on both sides; every few of very many."""
    n, longest = len(names), max(len(shown_name(name)) for name in names)
    side = max(1.2 + 0.08 * longest + 0.42 * min(n, 12) + 0.2 * max(min(n, 40) - 12, 0), 3.2)
    ax = _axes(ax, side + beside, side)
    places = range(0, n, -(-n // _NAMED_TICKS))
    texts = [shown_name(names[i]) for i in places]
    # names are text, never formulas: a task called "$x" must not be typeset
    size = {"fontsize": "small" if len(texts) > 15 else "medium", "parse_math": False}
    ax.set_xticks(places, texts, rotation=90 if max(map(len, texts)) > 3 else 0, **size)
    ax.set_yticks(places, texts, **size)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_color("#cccccc")
    return ax


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
        distance = np.maximum(1.0 - (estimator.task_correlation_ + estimator.task_correlation_.T) / 2, 0.0)
        np.fill_diagonal(distance, 0.0)
        side_by_side = leaves_list(linkage(squareform(distance), "average", optimal_ordering=True))
        names, matrix = [names[i] for i in side_by_side], matrix[np.ix_(side_by_side, side_by_side)]
    ax = _matrix_axes(ax, names)
    sides = 0.92 * np.sqrt(np.abs(matrix) / (float(np.abs(matrix).max()) or 1.0))
    squares = [patches.Rectangle((k - side / 2, i - side / 2), side, side) for (i, k), side in np.ndenumerate(sides)]
    colours = np.where(matrix.ravel() >= 0, POSITIVE, NEGATIVE).tolist()
    ax.add_collection(collections.PatchCollection(squares, facecolors=colours, linewidths=0))
    ax.set_xlim(-0.6, m - 0.4)
    ax.set_ylim(m - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_title("Correlation between tasks" if correlation else "Covariance Ω between tasks")
    negative = float(matrix.min()) < 0
    ax.set_xlabel("blue: positive, orange: negative; area: size" if negative else "area: size")
    return ax


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


def plot_history(estimator: Any, ax: Any = None) -> Any:
    """The objective after every step of the search; the colour says which stage found it.

    For cutting planes the lower bound is shown as well.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        A fitted model.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_history(model).get_ylabel()
    'objective −E'
    """
    check_is_fitted(estimator, "labels_")
    history = estimator.history_
    ax = _axes(ax, 6.4, 3.6)
    objective = np.array([entry["objective"] for entry in history])
    steps = np.arange(len(history))
    ax.plot(steps, objective, color=FRAME, linewidth=1, zorder=1)
    stages = list(dict.fromkeys(entry["stage"] for entry in history))
    for k, stage in enumerate(stages):
        mine = np.array([entry["stage"] == stage for entry in history])
        ax.scatter(steps[mine], objective[mine], s=22, color=COLOURS[k % len(COLOURS)], label=stage, zorder=2)
    bounds = np.array([entry.get("lower_bound", np.nan) for entry in history])
    if not np.all(np.isnan(bounds)):
        ax.plot(steps, bounds, color=NEGATIVE, linestyle="--", linewidth=1, label="lower bound")
    ax.set_xlabel("cut" if stages == ["cutting planes"] else "step")
    name = "−E" if estimator.selection_.get("criterion") == "E" else "J"
    ax.set_ylabel(f"objective {name}")
    ax.set_title(f"{len(history)} step{'s' if len(history) > 1 else ''} to {name} = {estimator.objective_:.6g}")
    ax.xaxis.get_major_locator().set_params(integer=True)
    if len(history) == 1:
        ax.set_xticks([0])
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_selection(estimator: Any, ax: Any = None, *, what: str | None = None) -> Any:
    """What "auto" chose from: the score of every candidate, and the one taken.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        A fitted model with something left to "auto".
    ax : matplotlib Axes, optional
    what : {"n_clusters", "kernel"}, optional
        The choice to show: the number of clusters, or the candidates for labels and their kernel; by default the first
        of these that was made.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_selection(model, what="kernel").get_title() == f"Chosen: {model.selection_.candidates[0].name}"
    True
    """
    check_is_fitted(estimator, "labels_")
    if what is not None and what not in _PARTS:
        raise ValueError(f"what={what!r}; allowed are {', '.join(map(repr, _PARTS))} and None.")
    selection = estimator.selection_
    made = {"n_clusters": "n_clusters" in selection, "kernel": "candidates" in selection}
    if not any(made[part] for part in _PARTS if what in (None, part)):
        there = [part for part in _PARTS if made[part]]
        raise ValueError(
            f"what={what!r}: nothing was chosen there, it was given. "
            + (f"Chosen was: {', '.join(there)}." if there else 'Leave a parameter at "auto" to see a choice.')
        )
    chosen = what or next(part for part in _PARTS if made[part])
    ax = _axes(ax, 6.4, 3.6)
    draw = {"n_clusters": _draw_n_clusters, "kernel": _draw_candidates}[chosen]
    draw(selection, ax)
    return ax


def _draw_n_clusters(selection: Selection, ax: Any) -> None:
    choice = selection["n_clusters"]
    candidates, gaps = list(choice["gaps"]), list(choice["gaps"].values())
    ax.axhline(0, color=FRAME, linewidth=0.8)
    ax.plot(candidates, gaps, "o-", color=POSITIVE)
    ax.plot(choice["chosen"], choice["gaps"][choice["chosen"]], "o", color=NEGATIVE, markersize=10, label="chosen")
    ax.set_xticks(candidates)
    ax.set_xlabel("number of clusters")
    ax.set_ylabel("variance explained beyond chance")
    ax.set_title(f"{choice['chosen']} clusters")
    ax.legend(frameon=False)


def _draw_candidates(selection: Selection, ax: Any) -> None:
    """Scores of the judge as bars, the chosen one in another colour."""
    names = [candidate["name"] for candidate in selection["candidates"]]
    scores = [candidate["score"] for candidate in selection["candidates"]]
    places = range(len(names))
    bars = ax.barh(places, scores, color=[NEGATIVE] + [POSITIVE] * (len(names) - 1))
    ax.bar_label(bars, [f"{score:.3f}" for score in scores], padding=3)
    ax.set_yticks(places, [f"{names[0]} (chosen)", *names[1:]])
    ax.set_title(f"Chosen: {names[0]}")
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.axvline(0, color=FRAME, linewidth=0.8)
    ax.set_xlabel("score of the judge")
