"""Pictures of fitted models (matplotlib, the extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mtclust._extras import require

#: blue for positive, vermilion for negative: told apart with any colour vision
_POSITIVE, _NEGATIVE = "#0072B2", "#D55E00"


def plot_task_relationship(estimator: Any, ax: Any = None, *, correlation: bool = True) -> Any:
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
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> X, _, tasks = make_related_tasks(random_state=0).X_y_tasks
    >>> model = DMTRC(n_clusters=3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    >>> plot_task_relationship(model).get_title()
    'Correlation between tasks'
    """
    pyplot = require("matplotlib.pyplot", "plot")
    patches = require("matplotlib.patches", "plot")
    check_is_fitted(estimator, "task_covariance_")
    matrix = estimator.task_correlation_ if correlation else estimator.task_covariance_
    names = [str(name) for name in estimator.tasks_]
    m = len(names)
    if ax is None:
        size = 1.8 + 0.45 * m
        _, ax = pyplot.subplots(figsize=(size, size), layout="constrained")
    largest = float(np.abs(matrix).max()) or 1.0
    for i in range(m):
        for k in range(m):
            side = 0.92 * np.sqrt(abs(matrix[i, k]) / largest)
            colour = _POSITIVE if matrix[i, k] >= 0 else _NEGATIVE
            ax.add_patch(patches.Rectangle((k - side / 2, i - side / 2), side, side, color=colour, linewidth=0))
    ax.set_xlim(-0.6, m - 0.4)
    ax.set_ylim(m - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_xticks(range(m), names, rotation=90 if max(map(len, names)) > 3 else 0)
    ax.set_yticks(range(m), names)
    ax.tick_params(length=0)
    for side_name in ("top", "right", "bottom", "left"):
        ax.spines[side_name].set_color("#cccccc")
    ax.set_title("Correlation between tasks" if correlation else "Covariance Ω between tasks")
    if float(matrix.min()) < 0:
        ax.set_xlabel("blue: positive, orange: negative; area: size")
    else:
        ax.set_xlabel("area: size")
    return ax
