"""What a reader of a result should be warned of, in plain words; summary, command line and report share the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mtclust._names import listing, shown_name
from mtclust.choose.record import Selection

#: a cluster is tiny with fewer rows, or a smaller share of what equal sizes would give it
TINY_ROWS, TINY_SHARE = 5, 0.1
#: a task has few rows if it has fewer than this per cluster
FEW_ROWS = 5
#: a task whose strongest correlation with another is below this shares little
WEAK_CORRELATION = 0.3
#: a task whose own rows lose more score than this by coupling is harmed by it
HARMED = 0.1
#: tasks whose nearest relatives are on average less similar than this look unrelated
UNRELATED = 0.4
#: how many tasks or clusters a sentence names
_NAMED = 3


@dataclass(frozen=True)
class Concern:
    """One thing to be careful about.

    Attributes
    ----------
    title : str
        A few words for it.
    text : str
        A sentence or two.
    advice, option : str
        What to do about it, in Python and on the command line; empty where there is nothing to do.
    """

    title: str
    text: str
    advice: str = ""
    option: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (f"{self.title}: {self.text}", self.advice) if part)


def concerns(model: Any) -> list[Concern]:
    """What may be wrong with a fitted model; nothing if nothing stands out.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust import DSTC
    >>> X = np.vstack([np.zeros((40, 2)), np.ones((2, 2))]) + np.random.default_rng(0).normal(size=(42, 2)) / 100
    >>> for concern in concerns(DSTC(2, kernel="linear", lambda1=0.1, sizes=(0.01, 1), random_state=0).fit(X)):
    ...     print(concern)
    Tiny clusters: 2 of 42 rows in cluster 1: too few to say much about. Try fewer clusters or sizes="balanced".
    """
    return [*_search(model), *_separation(model), *_coupling(model), *_relationship(model), *_sizes(model)]


def _search(model: Any) -> list[Concern]:
    if hasattr(model, "relaxed_labels_"):
        text = "The labels are those of a convex relaxation; they depend on where it started and when it stopped."
        return [Concern("Relaxed labels", text, 'Compare with solver="exchange".')]
    if not model.converged_:
        text = (
            f"The search was stopped after {model.n_iter_} rounds while the objective was still falling; another seed "
            "may give noticeably different clusters."
        )
        return [Concern("Not converged", text, "Raise max_iter or tol.", "Try another --seed.")]
    return []


def _separation(model: Any) -> list[Concern]:
    if model.n_clusters_ == 1:
        return []
    number = _part(model.selection_, "n_clusters")
    if number.get("structure", "clusters") != "clusters":
        text = f"The data show {number['answer']}. The clusters only cut them into pieces."
        return [Concern("No clear clusters", text)]
    if model.loo_score_ <= 0:
        text = (
            "The cluster of a row can be told from the other rows no better than with clusters of noise "
            f"(separation {model.loo_score_:.2f})."
        )
        return [Concern("Clusters not separated", text)]
    tried = [row["separation"] for row in model.selection_.get("candidates", [])]
    if tried and max(tried) <= 0:
        text = (
            "However the rows are compared, the clusters separate them no better than clusters of random noise of the "
            "same spread. With text this is common even where topics are real; with other data be doubtful."
        )
        return [Concern("Hardly more than noise", text)]
    return []


def _coupling(model: Any) -> list[Concern]:
    m = len(model.tasks_)
    coupling = _part(model.selection_, "coupling")
    if m == 1 or not coupling:
        return []
    if coupling["decision"] == "none":
        if model.coupling in ("none", 0):
            return []
        text = f"Every task was clustered on its own: {coupling['reason']}. Cluster ids were matched afterwards."
        advice = "{} couples them all the same."
        return [
            Concern("Tasks clustered apart", text, advice.format('coupling="full"'), advice.format("--coupling full"))
        ]
    hurt = [name for name, t in coupling.get("per_task", {}).items() if t > HARMED]
    if hurt:
        text = (
            f"The shared clusters fit the own rows of {_tasks(hurt)} clearly worse than clusters found there alone. "
            "What the other tasks have in common may not hold there."
        )
        return [
            Concern("Negative transfer likely", text, 'Compare with coupling="none".', "Compare with --coupling none.")
        ]
    similarity = model.selection_.get("task_similarity")
    # "auto" couples such tasks only where it changes no label
    if model.coupling != "auto" and similarity is not None and not hasattr(model, "relaxed_labels_"):
        nearest = float(np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1).mean())
        if nearest < UNRELATED:
            text = (
                f"The tasks look unrelated (similarity to the nearest task {nearest:.2f} on average, below "
                f"{UNRELATED}), but coupling={model.coupling!r} couples them: they may mislead each other."
            )
            return [
                Concern(
                    "Unrelated tasks coupled", text, 'Compare with coupling="auto".', "Compare with --coupling auto."
                )
            ]
    return []


def _relationship(model: Any) -> list[Concern]:
    matrix = getattr(model, "task_correlation_", None)
    coupling = _part(model.selection_, "coupling")
    if matrix is None or len(matrix) < 2 or coupling.get("decision") in ("none", 0):
        return []
    if "per_task" in coupling and not any(coupling["per_task"].values()):
        return []  # coupling changed no label
    strongest = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix).max(axis=1)
    weak = model.tasks_[strongest < WEAK_CORRELATION].tolist()
    if not weak:
        return []
    if len(weak) == len(matrix):
        text = "No two tasks are clearly related"
    else:
        text = f"{_tasks(weak, begin=True)} {_have(weak)} little in common with any other task"
    text += f" (correlation below {WEAK_CORRELATION}): sharing hardly matters there, and cluster ids may not mean the "
    return [Concern("Weak relationship", text + "same as elsewhere.")]


def _sizes(model: Any) -> list[Concern]:
    sizes = np.asarray(model.cluster_sizes_)
    rows = sizes.sum(axis=1)
    names = model.tasks_.tolist()
    clusters = np.full(len(rows), model.n_clusters_)
    if isinstance(model.n_clusters, Mapping):
        clusters = np.array([model.n_clusters[name] for name in names])
    found = []
    if isinstance(model.sizes, str | Real | tuple):  # a table asks for what is in it
        places = [place for i in range(len(rows)) for place in _tiny(sizes[i], clusters[i], names[i], len(rows) == 1)]
        if places:
            text = f"{listing(places, _NAMED)}: too few to say much about."
            advice = 'Try fewer clusters or sizes="balanced".'
            found.append(Concern("Tiny clusters", text, advice, "Try fewer --clusters or --sizes balanced."))
    small = [name for name, n, c in zip(names, rows, clusters) if n < FEW_ROWS * c]
    if small:
        text = f"{_tasks(small, begin=True)} {_have(small)} fewer than {FEW_ROWS} rows per cluster"
        found.append(Concern("Few rows", f"{text}; clusters there rest on very little."))
    return found


def _tiny(sizes: Any, n_clusters: int, task: Any, alone: bool) -> list[str]:
    """The clusters of a task with hardly any rows, in words."""
    total = int(sizes.sum())
    limit = TINY_SHARE * total / n_clusters
    if total >= FEW_ROWS * n_clusters:  # else all clusters are small, which is said once
        limit = max(limit, TINY_ROWS)
    place = "" if alone else f" of task {shown_name(task)}"
    found = [f"{sizes[c]} of {total} rows in cluster {c}{place}" for c in np.flatnonzero((sizes > 0) & (sizes < limit))]
    missing = int(n_clusters - np.count_nonzero(sizes))
    return found + ([f"{missing} of {n_clusters} clusters{place or ' of the data'} without rows"] if missing else [])


def _part(selection: Selection, name: str) -> Mapping[str, Any]:
    """What was noted about one choice; nothing where it was left to the user."""
    return selection.get(name, {})


def _tasks(names: list[Any], *, begin: bool = False) -> str:
    return f"{'T' if begin else 't'}ask{'s' if len(names) > 1 else ''} {listing(list(map(shown_name, names)), _NAMED)}"


def _have(names: list[Any]) -> str:
    return "has" if len(names) == 1 else "have"
