"""How the objective fell, and what "auto" chose from."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mtclust.choose.record import Selection, SizesChoice
from mtclust.plotting._style import COLOURS, FRAME, NEGATIVE, POSITIVE, new_axes

_PARTS = ("n_clusters", "kernel", "sizes")


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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_history(model).get_ylabel()
    'objective −E'
    """
    check_is_fitted(estimator, "labels_")
    history = estimator.history_
    if ax is None:
        ax = new_axes(6.4, 3.6)
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
    what : {"n_clusters", "kernel", "sizes"}, optional
        The choice to show: the number of clusters, the candidates for kernel, criterion and frame, or the cluster
        sizes; by default the first of these that was made.

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
    >>> plot_selection(model, what="sizes").get_title()
    'Sizes: free'
    """
    check_is_fitted(estimator, "labels_")
    if what is not None and what not in _PARTS:
        raise ValueError(f"what={what!r}; allowed are {', '.join(map(repr, _PARTS))} and None.")
    selection = estimator.selection_
    made = {
        "n_clusters": "n_clusters" in selection,
        "kernel": "candidates" in selection,
        "sizes": isinstance(selection.sizes, SizesChoice) and "scores" in selection.sizes,
    }
    if not any(made[part] for part in _PARTS if what in (None, part)):
        there = [part for part in _PARTS if made[part]]
        raise ValueError(
            f"what={what!r}: nothing was chosen there, it was given. "
            + (f"Chosen was: {', '.join(there)}." if there else 'Leave a parameter at "auto" to see a choice.')
        )
    chosen = what or next(part for part in _PARTS if made[part])
    if ax is None:
        ax = new_axes(6.4, 3.6)
    draw = {"n_clusters": _draw_n_clusters, "kernel": _draw_kernel, "sizes": _draw_sizes}[chosen]
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


def _draw_kernel(selection: Selection, ax: Any) -> None:
    names = [candidate["name"] for candidate in selection["candidates"]]
    chosen = (selection["kernel"], selection["criterion"], selection["center"])
    taken = [(row["kernel"], row["criterion"], row["center"]) == chosen for row in selection["candidates"]]
    _draw_scores(dict(zip(names, [row["score"] for row in selection["candidates"]])), names[taken.index(True)], ax)
    ax.set_title(f"Chosen: {names[taken.index(True)]}")


def _draw_sizes(selection: Selection, ax: Any) -> None:
    choice = selection["sizes"]
    _draw_scores(choice["scores"], choice["chosen"], ax)
    ax.set_title(f"Sizes: {choice['chosen']}")


def _draw_scores(scores: dict[str, float], chosen: str, ax: Any) -> None:
    """Scores of the judge as bars, the chosen one in another colour."""
    names = list(scores)
    colours = [NEGATIVE if name == chosen else POSITIVE for name in names]
    bars = ax.barh(range(len(names)), list(scores.values()), color=colours)
    ax.bar_label(bars, [f"{score:.3f}" for score in scores.values()], padding=3)
    ax.set_yticks(range(len(names)), [f"{name} (chosen)" if name == chosen else name for name in names])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.axvline(0, color=FRAME, linewidth=0.8)
    ax.set_xlabel("score of the judge")
