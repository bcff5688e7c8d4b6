"""What is known of a fitted model, and what a reader should be careful about; summary and report speak from here.

There is one number for how far rows are separated (``loo_score_``: 0 is what the best clusters of structureless rows
reach, 1 that no row could be taken for one of another cluster), one for how far other rows would give the same clusters
(``stability_``, once it was asked for), one for how alike the clusters of the tasks are:

============== ======================================================= =====================================
standing       when                                                    the rows …
============== ======================================================= =====================================
one            there is one cluster                                    are one cluster
none           the data have no clusters, or separation ≤ 0            were cut, there may be none
unstable       agreement of refits below .7                            were cut, other rows would cut elsewhere
overlapping    separation below .25                                    were cut
apart          separation from .25 on                                  fall into clusters
============== ======================================================= =====================================

The first that applies counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.core.stability import DOUBTFUL, STABLE, Stability
from mtclust.exceptions import ClusterNumberWarning, SmallTaskWarning, TableWarning, UncoupledWarning
from mtclust.util.messages import advice, distinct_names, listing, option

Array = NDArray[np.float64]

#: separation from which rows are said to fall into clusters
APART = 0.25
#: similarity of the nearest task from which the tasks are alike, whatever their models have in common
ALIKE = 0.6
#: outlier score that is worth a sentence: a row in a hundred of any data exceeds the cut
FAR = 0.75
#: a cluster is tiny with fewer rows, or a smaller share of what equal sizes would give it
TINY_ROWS, TINY_SHARE = 5, 0.1
#: a task has few rows if it has fewer than this per cluster
FEW_ROWS = 5
#: a task whose strongest correlation with another is below this shares little
WEAK_CORRELATION = 0.3
#: tasks whose nearest relatives are on average less similar than this look unrelated
UNRELATED = 0.4
#: a cluster with this share of its rows in one task lies in that task
CONFINED = 0.95
#: how many tasks or clusters a sentence names
_NAMED = 3
#: warnings of ``fit`` that are said in other words here
_SAID_OTHERWISE = (UncoupledWarning, SmallTaskWarning, ConvergenceWarning, ClusterNumberWarning)


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of a fitted model.

    Attributes
    ----------
    n_clusters, n_tasks, n_rows : int
    separation : float
        ``loo_score_``.
    structure : str or None
        What the data look like, in a sentence, where the number of clusters was left open and there are no clusters.
    stability : Stability or None
    outliers : int or None
        Rows that lie far from all others (outlier score above .75); None where that is not known.
    similarity : float or None
        Mean similarity of the tasks' clusters to those of the nearest task.

    Examples
    --------
    >>> facts = Facts(3, 2, 100, 0.71)
    >>> facts.standing, facts.headline("100 rows in 2 tasks")
    ('apart', '100 rows in 2 tasks fall into 3 clusters.')
    >>> Facts(3, 2, 100, -0.1).headline("100 rows in 2 tasks")
    '100 rows in 2 tasks were cut into 3 clusters, but there may be no clusters in them.'
    """

    n_clusters: int
    n_tasks: int
    n_rows: int
    separation: float
    structure: str | None = None
    stability: Stability | None = None
    outliers: int | None = None
    similarity: float | None = None

    @property
    def standing(self) -> str:
        """one, none, unstable, overlapping or apart."""
        if self.n_clusters == 1:
            return "one"
        if self.structure is not None or self.separation <= 0:
            return "none"
        if self.stability is not None and self.stability.overall < DOUBTFUL:
            return "unstable"
        return "overlapping" if self.separation < APART else "apart"

    @property
    def comparable(self) -> bool:
        """Whether there are clusters whose shares can be compared between tasks."""
        return self.standing in ("overlapping", "apart")

    def headline(self, rows: str, ids_differ: bool = False) -> str:
        """One sentence; with its doubt where there is one, also whether clusters look the same in all tasks."""
        differing = ", not all of which look the same in every task" if ids_differ else ""
        cut = f"{rows} were cut into {self.n_clusters} clusters"
        return {
            "one": f"{rows} are one cluster.",
            "none": f"{cut}, but there may be no clusters in them.",
            "unstable": f"{cut}, but other rows of the same kind would be cut elsewhere.",
            "overlapping": f"{cut} that overlap{differing}.",
        }.get(self.standing, f"{rows} fall into {self.n_clusters} clusters{differing}.")

    @property
    def separated(self) -> str:
        """How far rows are separated, in a sentence; empty for one cluster."""
        figure = f"{self.separation:.2f}".replace("-", "−")
        scale = f"separation {figure} on a scale from 0, as in data without clusters, to 1, where they do not touch"
        if self.standing == "one":
            return ""
        if self.structure is not None:
            return f"The data show {self.structure} ({scale})."
        if self.separation <= 0:
            return f"The clusters are no clearer than those of data without clusters ({scale})."
        if self.separation < APART:
            return f"The clusters overlap ({scale}): useful for sorting rows, no proof that there are kinds of rows."
        return f"The clusters are separated ({scale})."

    @property
    def stable(self) -> str:
        """How far other rows would give the same clusters, in a sentence; empty where that is not known."""
        return "" if self.stability is None or self.standing == "one" else str(self.stability)

    @property
    def tasks_alike(self) -> bool:
        """Whether the clusters of the tasks are alike, however weakly their models lean on each other."""
        return self.similarity is not None and self.similarity >= ALIKE


def facts_of(model: Any) -> Facts:
    """The facts about a fitted model."""
    number = model.selection_.get("n_clusters")
    known = number is not None and number.get("structure", "clusters") != "clusters"
    scores = getattr(model, "outlier_scores_", None)
    similarity = model.selection_.get("task_similarity")
    nearest, m = None, len(model.tasks_)
    if m > 1 and similarity is not None:
        nearest = float(np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1).mean())
    return Facts(
        int(model.n_clusters_), m, len(model.labels_), float(model.loo_score_), number["answer"] if known else None,
        getattr(model, "stability_", None),
        None if scores is None else int(np.count_nonzero(np.asarray(scores) > FAR)), nearest,
    )  # fmt: skip


def likeness_of_tasks(model: Any) -> tuple[str, Array | None]:
    """What says how alike tasks are, and that (m × m): None where nothing is known.

    "correlation" where Ω was learned; "shares" where all tasks have one model, so that they can only differ in their
    shares of clusters: 1 − ½ Σ_c |π_ic − π_kc|; "similarity" of the clusters of every task alone elsewhere.
    """
    if model.selection_.get("center") in ("all", "aligned") and len(model.tasks_) > 1:
        sizes = np.asarray(model.cluster_sizes_, dtype=float)
        shares = sizes / sizes.sum(axis=1, keepdims=True)
        return "shares", 1.0 - 0.5 * np.abs(shares[:, None, :] - shares[None, :, :]).sum(axis=2)
    coupled = model.selection_.get("coupling", {}).get("decision") not in ("none", 0)
    if hasattr(model, "task_correlation_") and coupled:
        return "correlation", np.asarray(model.task_correlation_, dtype=float)
    similarity = model.selection_.get("task_similarity")
    return "similarity", None if similarity is None else np.asarray(similarity, dtype=float)


@dataclass(frozen=True)
class Caution:
    """One thing to be careful about: a few words for it, and a sentence or two."""

    title: str
    text: str

    def __str__(self) -> str:
        return f"{self.title}: {self.text}"


def cautions(model: Any, warned: Sequence[Any] = (), names: Mapping[int, str] | None = None) -> list[Caution]:
    """What a reader of the clusters should know before trusting them; nothing if nothing stands out.

    Parameters
    ----------
    model : fitted DMTRC, DMTFC or DSTC
    warned : sequence of warnings.WarningMessage or of warnings
        What ``fit`` warned of.
    names : mapping from int to str, optional
        Of clusters that have one.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust import DSTC
    >>> X = np.vstack([np.zeros((40, 2)), np.ones((2, 2))]) + np.random.default_rng(0).normal(size=(42, 2)) / 100
    >>> for caution in cautions(DSTC(2, kernel="linear", lambda1=0.1, sizes=(0.01, 1), random_state=0).fit(X)):
    ...     print(caution.title)
    Tiny clusters
    Rows that belong nowhere
    """
    facts = facts_of(model)
    found = [
        *_search(model), *_separation(facts), *_stability(facts), *_coupling(model, facts),
        *_relationship(model, facts), *_sizes(model), *_one_task_each(model), *_outliers(facts),
        *_warnings([getattr(entry, "message", entry) for entry in warned], facts),
    ]  # fmt: skip
    called = names or {}
    return [
        replace(caution, text=re.sub(r"\bcluster (\d+)\b", lambda c: called.get(int(c[1]), c[0]), caution.text))
        for caution in found
    ]


def _search(model: Any) -> list[Caution]:
    if hasattr(model, "relaxed_labels_"):
        text = "The labels are those of a convex relaxation; they depend on where it started and when it stopped. "
        return [Caution("Relaxed labels", text + 'Compare with solver="exchange".')]
    if not model.converged_:
        text = (
            f"The search was stopped after {model.n_iter_} rounds while the objective was still falling; another seed "
            "may give noticeably different clusters. "
        )
        return [Caution("Not converged", text + advice("Raise max_iter or tol.", "Try another --seed."))]
    return []


def _separation(facts: Facts) -> list[Caution]:
    if facts.standing != "none":
        return []
    if facts.structure is None:
        return [Caution("Clusters not separated", facts.separated)]
    text = f"The data show {facts.structure}. The clusters only cut them into pieces."
    return [Caution("No clear clusters", text)]


def _stability(facts: Facts) -> list[Caution]:
    found = facts.stability
    if found is None or facts.n_clusters == 1:
        return []
    if found.overall < DOUBTFUL:
        text = (
            "Other rows of the same kind would be cut elsewhere: do not build on single rows or on small differences "
            f"between tasks (stability {found.overall:.2f}). "
        )
        fewer = advice("Compare fewer clusters.", "Compare fewer --clusters.")
        return [Caution("Unstable clusters", text + fewer)]
    if facts.n_tasks > 1 and found.overall >= STABLE and np.nanmean(found.clusters) < DOUBTFUL:
        text = (
            "Refits find the same clusters within every task, but match them differently across tasks "
            f"(similarity of a cluster with its counterpart {float(np.nanmean(found.clusters)):.2f}). Compare rows "
            "within tasks; shares of a cluster in several tasks may be of different clusters."
        )
        return [Caution("Cluster ids uncertain across tasks", text)]
    weak = np.flatnonzero(np.nan_to_num(found.clusters, nan=1.0) < DOUBTFUL)
    if not len(weak):
        return []
    text = f"{listing([f'cluster {c} ({found.clusters[c]:.2f})' for c in weak], _NAMED)}: other rows would often give "
    return [Caution("Unstable clusters among stable ones", text[0].upper() + text[1:] + "another cluster (below 0.7).")]


def _outliers(facts: Facts) -> list[Caution]:
    if not facts.outliers:
        return []
    rows = f"{facts.outliers} row{'s lie' if facts.outliers > 1 else ' lies'}"
    text = f"{rows} far from all others of the same task and may belong to no cluster (outlier score above 0.75)."
    return [Caution("Rows that belong nowhere", text)]


def _coupling(model: Any, facts: Facts) -> list[Caution]:
    if len(model.tasks_) == 1:
        return []
    coupling, given = model.selection_.get("coupling", {}), getattr(model, "coupling", "auto")
    if coupling and coupling["decision"] == "none" and given not in ("none", 0):
        full = advice('coupling="full"', "--coupling full")
        text = (
            f"Every task was clustered on its own: {coupling['reason']}. Cluster ids were matched afterwards. {full} "
            "couples them all the same."
        )
        return [Caution("Tasks clustered apart", text)]
    asked_for = given not in ("auto", "none", 0) and not hasattr(model, "relaxed_labels_")
    if not coupling or not asked_for or facts.similarity is None or facts.similarity >= UNRELATED:
        return []
    text = (
        f"The tasks look unrelated (similarity to the nearest task {facts.similarity:.2f} on average, below "
        f"{UNRELATED}), but coupling={given!r} couples them: they may mislead each other. "
    )
    compare = advice('Compare with coupling="auto".', "Compare with --coupling auto.")
    return [Caution("Unrelated tasks coupled", text + compare)]


def _relationship(model: Any, facts: Facts) -> list[Caution]:
    matrix = getattr(model, "task_correlation_", None)
    coupling = model.selection_.get("coupling", {})
    if matrix is None or len(matrix) < 2 or coupling.get("decision") in ("none", 0):
        return []
    unchanged = "per_task" in coupling and not any(coupling["per_task"].values())  # coupling changed no label
    strongest = np.where(np.eye(len(matrix), dtype=bool), -np.inf, matrix).max(axis=1)
    weak = model.tasks_[strongest < WEAK_CORRELATION].tolist()
    if unchanged or facts.tasks_alike or not weak:
        return []
    if len(weak) == len(matrix):
        text = "No two tasks are clearly related"
    else:
        text = f"{_tasks(model, weak, begin=True)} {_have(weak)} little in common with any other task"
    text += f" (correlation below {WEAK_CORRELATION}): sharing hardly matters there, and cluster ids may not mean the "
    return [Caution("Weak relationship", text + "same as elsewhere.")]


def _sizes(model: Any) -> list[Caution]:
    sizes = np.asarray(model.cluster_sizes_)
    rows, clusters = sizes.sum(axis=1), _clusters_of_tasks(model)
    found = []
    if isinstance(model.sizes, str | Real | tuple):  # a table asks for what is in it
        if len(rows) == 1 or model.selection_.get("center") != "task":  # where a task may lack clusters
            places = _tiny(sizes.sum(axis=0), model.n_clusters_, "")
        else:
            shown = distinct_names(model.tasks_.tolist())
            enough = np.flatnonzero(rows >= clusters)  # with fewer rows than clusters some must be empty
            places = [place for i in enough for place in _tiny(sizes[i], clusters[i], f" of task {shown[i]}")]
        if places:
            text = f"{listing(places, _NAMED)}: too few to say much about. "
            fewer = advice('Try fewer clusters or sizes="balanced".', "Try fewer --clusters or --sizes balanced.")
            found.append(Caution("Tiny clusters", text + fewer))
    small = small_tasks(model)
    if small:
        text = f"{_tasks(model, small, begin=True)} {_have(small)} fewer than {FEW_ROWS} rows per cluster"
        found.append(Caution("Few rows", f"{text}; clusters there rest on very little."))
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


def _one_task_each(model: Any) -> list[Caution]:
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
    within = advice('center="task"', "--center task")
    text = (
        f"{every} in one task ({listing(which, _NAMED)}). Such a cluster is a kind of rows that only this task has, or "
        f"nothing but a difference between tasks: the rows alone cannot tell. {within} compares rows within tasks only."
    )
    return [Caution("Clusters of one task", text)]


def _warnings(raised: Sequence[Any], facts: Facts) -> list[Caution]:
    """What ``fit`` warned of and is not said in other words."""
    uncertain = [str(warning) for warning in raised if isinstance(warning, ClusterNumberWarning)]
    found = [
        Caution("Number of clusters uncertain", f"{text} Compare several numbers ({option('n_clusters')}).")
        for text in dict.fromkeys(uncertain)
        if facts.structure is None
    ]
    found += [Caution("Odd values", str(warning)) for warning in raised if isinstance(warning, TableWarning)]
    others = [str(warning) for warning in raised if not isinstance(warning, (*_SAID_OTHERWISE, TableWarning))]
    return found + [Caution("Warning", text) for text in dict.fromkeys(others)]


def _tasks(model: Any, names: list[Any], *, begin: bool = False) -> str:
    """Some of the model's tasks; long names are shortened where all of them are equal."""
    shown = dict(zip(map(str, model.tasks_.tolist()), distinct_names(model.tasks_.tolist())))
    named = [shown[str(name)] for name in names]
    return f"{'T' if begin else 't'}ask{'s' if len(names) > 1 else ''} {listing(named, _NAMED)}"


def _have(names: list[Any]) -> str:
    return "has" if len(names) == 1 else "have"
