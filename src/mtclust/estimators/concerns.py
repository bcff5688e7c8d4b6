"""What a reader of a result should be warned of, in plain words; summary, command line and report share the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.record import Selection
from mtclust.core.stability import DOUBTFUL
from mtclust.estimators.facts import Facts, facts_of
from mtclust.util.names import distinct_names, listing

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
#: a cluster with this share of its rows in one task lies in that task
CONFINED = 0.95
_OWN_ORIGIN = "{} compares rows within tasks only."
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
    ...     print(concern.title)
    Tiny clusters
    Rows that belong nowhere
    """
    facts = facts_of(model)
    return [
        *_search(model), *_separation(model, facts), *_stability(facts), *_coupling(model, facts),
        *_relationship(model, facts), *_sizes(model), *_one_task_each(model), *_outliers(facts),
    ]  # fmt: skip


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


def _separation(model: Any, facts: Facts) -> list[Concern]:
    if facts.standing == "none":
        if facts.structure is None:
            return [Concern("Clusters not separated", facts.separated)]
        text = f"The data show {facts.structure}. The clusters only cut them into pieces."
        return [Concern("No clear clusters", text)]
    tried = [row["separation"] for row in model.selection_.get("candidates", [])]
    if facts.n_clusters > 1 and tried and max(tried) <= 0:
        text = (
            "However the rows are compared, the clusters separate them no better than clusters of random noise of the "
            "same spread. With text this is common even where topics are real; with other data be doubtful."
        )
        return [Concern("Hardly more than noise", text)]
    return []


def _stability(facts: Facts) -> list[Concern]:
    if facts.stability is None or facts.n_clusters == 1:
        return []
    if facts.stability.overall < DOUBTFUL:
        text = (
            "Other rows of the same kind would be cut elsewhere: do not build on single rows or on small differences "
            f"between tasks (agreement {facts.stability.overall:.2f})."
        )
        return [Concern("Unstable clusters", text, "Compare fewer clusters.", "Compare fewer --clusters.")]
    if not facts.ids_match:
        text = (
            "Every task has stable clusters, but which of them are the same in two tasks changes with the rows "
            f"(similarity of a cluster with its counterpart {float(np.nanmean(facts.stability.clusters)):.2f}). "
            "Compare rows within tasks; shares of a cluster in several tasks may be of different clusters."
        )
        return [Concern("Cluster ids uncertain across tasks", text)]
    if facts.weak_clusters:
        weak = [f"cluster {c} ({facts.stability.clusters[c]:.2f})" for c in facts.weak_clusters]
        text = f"{listing(weak, _NAMED)}: other rows would often give another cluster in its place (below 0.7)."
        return [Concern("Unstable clusters among stable ones", text[0].upper() + text[1:])]
    return []


def _outliers(facts: Facts) -> list[Concern]:
    if not facts.outliers:
        return []
    rows = f"{facts.outliers} row{'s lie' if facts.outliers > 1 else ' lies'}"
    text = f"{rows} far from all others of the same task and may belong to no cluster (outlier score above 0.75)."
    return [Concern("Rows that belong nowhere", text)]


def _coupling(model: Any, facts: Facts) -> list[Concern]:
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
    too_small = {str(name) for name in small_tasks(model)}  # their own rows cannot contradict
    hurt = [name for name, t in coupling.get("per_task", {}).items() if t > HARMED and str(name) not in too_small]
    if hurt:
        text = (
            f"The shared clusters fit the own rows of {_tasks(model, hurt)} clearly worse than clusters found there "
            "alone. What the other tasks have in common may not hold there."
        )
        return [
            Concern("Negative transfer likely", text, 'Compare with coupling="none".', "Compare with --coupling none.")
        ]
    nearest = facts.similarity
    # "auto" couples such tasks only where it changes no label
    asked_for = model.coupling != "auto" and not hasattr(model, "relaxed_labels_")
    if asked_for and nearest is not None and nearest < UNRELATED:
        text = (
            f"The tasks look unrelated (similarity to the nearest task {nearest:.2f} on average, below "
            f"{UNRELATED}), but coupling={model.coupling!r} couples them: they may mislead each other."
        )
        return [
            Concern("Unrelated tasks coupled", text, 'Compare with coupling="auto".', "Compare with --coupling auto.")
        ]
    return []


def _relationship(model: Any, facts: Facts) -> list[Concern]:
    matrix = getattr(model, "task_correlation_", None)
    coupling = _part(model.selection_, "coupling")
    if matrix is None or len(matrix) < 2 or coupling.get("decision") in ("none", 0):
        return []
    if "per_task" in coupling and not any(coupling["per_task"].values()):
        return []  # coupling changed no label
    if facts.tasks_alike:
        return []  # their clusters are alike, however weakly the models lean on each other
    strongest = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix).max(axis=1)
    weak = model.tasks_[strongest < WEAK_CORRELATION].tolist()
    if not weak:
        return []
    if len(weak) == len(matrix):
        text = "No two tasks are clearly related"
    else:
        text = f"{_tasks(model, weak, begin=True)} {_have(weak)} little in common with any other task"
    text += f" (correlation below {WEAK_CORRELATION}): sharing hardly matters there, and cluster ids may not mean the "
    return [Concern("Weak relationship", text + "same as elsewhere.")]


def _sizes(model: Any) -> list[Concern]:
    sizes = np.asarray(model.cluster_sizes_)
    rows = sizes.sum(axis=1)
    names = model.tasks_.tolist()
    clusters = _clusters_of_tasks(model)
    found = []
    if isinstance(model.sizes, str | Real | tuple):  # a table asks for what is in it
        if len(rows) == 1 or model.selection_.get("center") != "task":  # where a task may lack clusters
            places = _tiny(sizes.sum(axis=0), model.n_clusters_, "")
        else:
            shown = distinct_names(names)
            enough = np.flatnonzero(rows >= clusters)  # with fewer rows than clusters some must be empty
            places = [place for i in enough for place in _tiny(sizes[i], clusters[i], f" of task {shown[i]}")]
        if places:
            text = f"{listing(places, _NAMED)}: too few to say much about."
            advice = 'Try fewer clusters or sizes="balanced".'
            found.append(Concern("Tiny clusters", text, advice, "Try fewer --clusters or --sizes balanced."))
    small = small_tasks(model)
    if small:
        text = f"{_tasks(model, small, begin=True)} {_have(small)} fewer than {FEW_ROWS} rows per cluster"
        found.append(Concern("Few rows", f"{text}; clusters there rest on very little."))
    return found


def _clusters_of_tasks(model: Any) -> NDArray[np.int64]:
    if isinstance(model.n_clusters, Mapping):
        return np.array([model.n_clusters[name] for name in model.tasks_.tolist()], dtype=np.int64)
    return np.full(len(model.tasks_), model.n_clusters_, dtype=np.int64)


def small_tasks(model: Any) -> list[Any]:
    """Tasks with too few rows to tell clusters by themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust import DSTC
    >>> X, tasks = np.random.default_rng(0).normal(size=(26, 2)), ["large"] * 20 + ["small"] * 6
    >>> small_tasks(DSTC(2, kernel="linear", lambda1=0.1, sizes="balanced", random_state=0).fit(X, tasks=tasks))
    ['small']
    """
    rows = np.asarray(model.cluster_sizes_).sum(axis=1)
    return [model.tasks_.tolist()[i] for i in np.flatnonzero(rows < FEW_ROWS * _clusters_of_tasks(model))]


def _tiny(sizes: Any, n_clusters: int, place: str) -> list[str]:
    """The clusters of a task, or of all rows, with hardly any rows, in words."""
    total = int(sizes.sum())
    limit = TINY_SHARE * total / n_clusters
    if total >= FEW_ROWS * n_clusters:  # else all clusters are small, which is said once
        limit = max(limit, TINY_ROWS)
    found = [f"{sizes[c]} of {total} rows in cluster {c}{place}" for c in np.flatnonzero((sizes > 0) & (sizes < limit))]
    missing = int(n_clusters - np.count_nonzero(sizes))
    return found + ([f"{missing} of {n_clusters} clusters{place or ' of the data'} without rows"] if missing else [])


def _one_task_each(model: Any) -> list[Concern]:
    """Clusters that lie in one task: where all tasks are measured from one origin, a shift of a task looks like one."""
    sizes = np.asarray(model.cluster_sizes_)
    if len(sizes) == 1 or model.selection_.get("center") == "task" or not isinstance(model.sizes, str):
        return []
    total = sizes.sum(axis=0)
    confined = np.flatnonzero((sizes.max(axis=0) >= CONFINED * total) & (total > 0))
    if not len(confined):
        return []
    names = model.tasks_.tolist()
    which = [f"cluster {c} in {_tasks(model, [names[sizes[:, c].argmax()]])}" for c in confined]
    every = "Every cluster lies" if len(confined) == np.count_nonzero(total) else "Some clusters lie"
    text = (
        f"{every} in one task ({listing(which, _NAMED)}). Such a cluster is a kind of rows that only this task has, or "
        "nothing but a difference between tasks: the rows alone cannot tell."
    )
    return [
        Concern("Clusters of one task", text, _OWN_ORIGIN.format('center="task"'), _OWN_ORIGIN.format("--center task"))
    ]


def _part(selection: Selection, name: str) -> Mapping[str, Any]:
    """What was noted about one choice; nothing where it was left to the user."""
    return selection.get(name, {})


def _tasks(model: Any, names: list[Any], *, begin: bool = False) -> str:
    """Some of the model's tasks; long names are shortened where all of them are equal."""
    shown = dict(zip(map(str, model.tasks_.tolist()), distinct_names(model.tasks_.tolist())))
    named = [shown[str(name)] for name in names]
    return f"{'T' if begin else 't'}ask{'s' if len(names) > 1 else ''} {listing(named, _NAMED)}"


def _have(names: list[Any]) -> str:
    return "has" if len(names) == 1 else "have"
