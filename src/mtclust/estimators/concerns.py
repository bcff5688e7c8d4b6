"""What a reader of a result should be warned of, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from mtclust._names import shown_name
from mtclust.selection.coupling import SIMILARITY_LIMIT

#: a cluster is tiny below this share of what equal sizes would give
_TINY_SHARE = 0.1
#: correlations below this in absolute value say that a task has hardly anything to do with another
_WEAK_CORRELATION = 0.1
#: how many tasks or clusters a sentence names
_NAMED = 3


def concerns(model: Any) -> list[str]:
    """Sentences on what may be wrong with a fitted model; none if nothing stands out.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust import DSTC
    >>> X = np.vstack([np.zeros((30, 2)), np.ones((1, 2))]) + np.random.default_rng(0).normal(size=(31, 2)) / 100
    >>> for sentence in concerns(DSTC(2, kernel="linear", sizes=(0.01, 1), random_state=0).fit(X)):
    ...     print(sentence)
    Tiny clusters: 1 of 31 rows in cluster 1.
    """
    return [*_search(model), *_separation(model), *_relationship(model), *_small_clusters(model)]


def _search(model: Any) -> list[str]:
    if hasattr(model, "relaxed_labels_"):
        return ["The labels are those of a convex relaxation; they depend on where it started and when it stopped."]
    if not model.converged_:
        return [
            f"The search was stopped after {model.n_iter_} rounds while the objective was still falling: "
            "raise max_iter or tol."
        ]
    return []


def _separation(model: Any) -> list[str]:
    gaps = _part(model.selection_, "n_clusters").get("gaps", {})
    if gaps and max(gaps.values()) <= 0:
        return ["No number of clusters that was tried separates the data better than noise."]
    if model.n_clusters_ > 1 and model.loo_score_ <= 0:
        return [
            f"The clusters are not separated: the cluster of a row cannot be told from the other rows "
            f"(leave-one-out R² {model.loo_score_:.2f})."
        ]
    return []


def _relationship(model: Any) -> list[str]:
    m = len(model.tasks_)
    coupling = _part(model.selection_, "coupling")
    if m == 1 or not coupling:
        return []
    if coupling.get("decision") == "none":
        return [] if model.coupling in ("none", 0) else [f"The tasks were clustered apart: {coupling['reason']}."]
    found = []
    similarity = model.selection_.get("task_similarity")
    # "auto" couples such tasks only where it changes no label
    if model.coupling != "auto" and similarity is not None and not hasattr(model, "relaxed_labels_"):
        nearest = float(np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1).mean())
        if nearest < SIMILARITY_LIMIT:
            found.append(
                f"The tasks look unrelated (similarity to the nearest task {nearest:.2f} on average, below "
                f"{SIMILARITY_LIMIT}), but coupling={model.coupling!r} couples them: they may mislead each other. "
                'Compare with coupling="auto".'
            )
    others = np.where(np.eye(m, dtype=bool), 0.0, np.abs(model.task_correlation_)).max(axis=1)
    alone = model.tasks_[others < _WEAK_CORRELATION].tolist()
    if alone:
        found.append(f"Hardly related to any other task (correlations below {_WEAK_CORRELATION}): {_names(alone)}.")
    return found


def _small_clusters(model: Any) -> list[str]:
    sizes = model.cluster_sizes_
    rows = sizes.sum(axis=1)
    clusters = np.full(len(rows), model.n_clusters_)
    by_table = not isinstance(model.sizes, str | Real | tuple)
    if isinstance(model.n_clusters, Mapping):
        clusters = np.array([model.n_clusters[name] for name in model.tasks_.tolist()])
    tiny = []
    for i, name in enumerate(model.tasks_.tolist()):
        limit = _TINY_SHARE * rows[i] / clusters[i]
        small = np.flatnonzero((sizes[i] > 0) & (sizes[i] < limit))
        place = "" if len(rows) == 1 else f" of task {shown_name(name)}"
        tiny += [f"{sizes[i, c]} of {rows[i]} rows in cluster {c}{place}" for c in small]
        missing = int(clusters[i] - np.count_nonzero(sizes[i]))
        if missing > 0 and not by_table:  # a table of sizes may leave clusters out on purpose
            tiny.append(f"{missing} of {clusters[i]} clusters{place or ' of the data'} without rows")
    return [f"Tiny clusters: {_listed(tiny)}."] if tiny else []


def _part(selection: dict[str, Any], name: str) -> dict[str, Any]:
    """What was noted about one choice; nothing where it was left to the user."""
    value = selection.get(name)
    return value if isinstance(value, dict) else {}


def _names(tasks: list[Any]) -> str:
    return _listed([shown_name(task) for task in tasks])


def _listed(items: list[str]) -> str:
    more = len(items) - _NAMED
    return "; ".join(items[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
