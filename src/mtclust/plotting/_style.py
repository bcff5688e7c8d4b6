"""Colours, names and axes that the pictures share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mtclust.util.extras import require
from mtclust.util.names import shown_name

#: blue for positive, vermilion for negative: told apart with any colour vision
POSITIVE, NEGATIVE = "#0072B2", "#D55E00"
#: the colours of Okabe and Ito, grey in the place of black so that all are seen on light and dark pages
COLOURS = (POSITIVE, NEGATIVE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#7F7F7F")
MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
#: grey of frames and guides
FRAME = "#999999"
#: ticks with names of their own; more cannot be read
_NAMED_TICKS = 60


def new_axes(width: float, height: float) -> Any:
    """Axes of a new figure."""
    _, ax = require("matplotlib.pyplot", "plot").subplots(figsize=(width, height), layout="constrained")
    return ax


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


def name_ticks(ax: Any, names: Sequence[Any]) -> None:
    """Write names of tasks or columns on both axes of a square matrix; every few of very many."""
    step = -(-len(names) // _NAMED_TICKS)
    places = range(0, len(names), step)
    texts = [shown_name(names[i]) for i in places]
    # names are text, never formulas: a task called "$x" must not be typeset
    size = {"fontsize": "small" if len(texts) > 15 else "medium", "parse_math": False}
    ax.set_xticks(places, texts, rotation=90 if max(map(len, texts)) > 3 else 0, **size)
    ax.set_yticks(places, texts, **size)
    ax.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_color("#cccccc")


def matrix_size(n: int, longest: int) -> float:
    """Inches of a square picture of an n × n matrix whose names have up to ``longest`` characters."""
    return max(1.2 + 0.08 * longest + 0.42 * min(n, 12) + 0.2 * max(min(n, 40) - 12, 0), 3.2)
