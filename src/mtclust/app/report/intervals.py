"""How far figures of the report would be others with other rows: intervals from refits on subsamples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mtclust.app.comparison import shares_were_given, wilson
from mtclust.app.shown import percent
from mtclust.core.stability import Stability

#: intervals of shares hold with 90 %
_CHANCE = 0.1


def share_intervals(model: Any, order: list[int]) -> dict[str, Any] | None:
    """The share of every cluster in every task with its interval; None where it is not known or sizes were given.

    An interval is as wide as refits say, and at least as wide as that of a share of so many rows drawn at random.
    """
    found: Stability | None = getattr(model, "stability_", None)
    if found is None or int(model.n_clusters_) < 2 or shares_were_given(model):
        return None
    sizes = np.asarray(model.cluster_sizes_)
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    drawn = wilson(sizes, sizes.sum(axis=1, keepdims=True), norm.isf(_CHANCE / 2))
    lows, highs = np.minimum(found.shares[..., 0], drawn[0]), np.maximum(found.shares[..., 1], drawn[1])
    widest = float(highs.max())
    rows = []
    for task in order:
        cells = []
        for cluster, (low, high) in enumerate(zip(lows[task], highs[task])):
            places = {"low": low / widest, "at": shares[task, cluster] / widest, "high": high / widest}
            cells.append(
                {"cluster": cluster, "share": percent(shares[task, cluster]), "between": between(low, high)} | places
            )
        rows.append({"task": task, "cells": cells})
    return {"rows": rows, "widest": percent(widest)}


def between(low: float, high: float) -> str:
    """An interval of shares.

    Examples
    --------
    >>> between(0.254, 0.311), between(0.0, 0.004), between(0.5, 0.5)
    ('25–31 %', '0–0.4 %', '50 %')
    """
    first, last = percent(low), percent(high)
    return last if first == last else f"{first.removesuffix(' %')}–{last}"


def correlation_intervals(model: Any) -> NDArray[Any] | None:
    """Intervals of the learned correlations between tasks, in words; None where they are not known."""
    found: Stability | None = getattr(model, "stability_", None)
    if found is None or found.task_correlation is None:
        return None
    return np.array([[_numbers(*cell) for cell in row] for row in found.task_correlation], dtype=object)


def _numbers(low: float, high: float) -> str:
    first, last = (f"{value:.2f}".replace("-", "−") for value in (low, high))
    return "" if first == last else f"{first} to {last}"
