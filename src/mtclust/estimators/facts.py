"""The facts about a fitted model that its summary, the command line and the report speak from, and what is said when.

There is one number for how far rows are separated (``loo_score_``: 0 is what the best clusters of structureless rows
reach), one for how far other rows would give the same clusters (``stability_``, once it was asked for), one for how
alike the clusters of the tasks are. Whoever says something about a result says it from here, so that no two sentences
contradict each other:

============== ======================================================= =====================================
standing       when                                                    the rows …
============== ======================================================= =====================================
one            there is one cluster                                    are one cluster
none           the data have no clusters, or separation ≤ 0            were cut, there may be none
unstable       stability below .7                                      were cut, other rows would cut elsewhere
cuts           separation below .25                                    were cut: a continuum
fair, clear    separation from .25, from .6 on                         fall into clusters
============== ======================================================= =====================================

The first that applies counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.stability import DOUBTFUL, STABLE, Stability

Array = NDArray[np.float64]

#: separation from which clusters are fairly clear, and clear-cut
FAIR, CLEAR = 0.25, 0.6
#: similarity of the nearest task from which the tasks are alike, whatever their models have in common
ALIKE = 0.6
#: outlier score that is worth a sentence: a row in a hundred of any data exceeds the cut
FAR = 0.75


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
    against : str
        What simple methods on the same rows say against the clusters, as half a sentence; empty for nothing.

    Examples
    --------
    >>> facts = Facts(3, 2, 100, 0.71)
    >>> facts.standing, facts.headline("100 rows in 2 tasks")
    ('clear', '100 rows in 2 tasks fall into 3 clusters.')
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
    against: str = ""

    @property
    def standing(self) -> str:
        """one, none, unstable, cuts, fair or clear."""
        if self.n_clusters == 1:
            return "one"
        if self.structure is not None or self.separation <= 0:
            return "none"
        if self.stability is not None and self.stability.overall < DOUBTFUL:
            return "unstable"
        if self.separation < FAIR:
            return "cuts"
        return "clear" if self.separation >= CLEAR else "fair"

    @property
    def doubtful(self) -> bool:
        """Whether the clusters prove no kinds of rows."""
        return self.standing in ("none", "unstable", "cuts")

    @property
    def tasks_alike(self) -> bool:
        return self.similarity is not None and self.similarity >= ALIKE

    def headline(self, rows: str) -> str:
        """One sentence; with its doubt where there is one."""
        cut = f"{rows} were cut into {self.n_clusters} clusters"
        said = {
            "one": f"{rows} are one cluster",
            "none": f"{cut}, but there may be no clusters in them",
            "unstable": f"{cut}, but other rows of the same kind would be cut elsewhere",
            "cuts": cut,
        }.get(self.standing, f"{rows} fall into {self.n_clusters} clusters")
        return f"{said}; {self.against}." if self.against and self.standing != "one" else f"{said}."

    @property
    def separated(self) -> str:
        """How far rows are separated, in a sentence; empty for one cluster."""
        figure = f"separation {self.separation:.2f}; 1 is clear-cut, 0 what data without clusters reach"
        if self.standing == "one":
            return ""
        if self.structure is not None:
            return f"The data show {self.structure} ({figure})."
        if self.separation <= 0:
            return f"The clusters are no clearer than those of data without clusters ({figure})."
        if self.separation < FAIR:
            return (
                f"The clusters are cuts through a continuum ({figure}): useful to sort rows, no proof that there are "
                "kinds of rows."
            )
        if self.standing == "unstable":
            return f"The clusters separate the rows that they were found in ({figure})."
        word = "clear-cut" if self.separation >= CLEAR else "fairly clear"
        return f"The clusters are {word} ({figure})."

    @property
    def stable(self) -> str:
        """How far other rows would give the same clusters, in a sentence; empty where that is not known."""
        return "" if self.stability is None or self.standing == "one" else str(self.stability)

    @property
    def weak_clusters(self) -> list[int]:
        """Clusters that refits do not find, where the others are stable."""
        if self.stability is None or self.stability.overall < DOUBTFUL:
            return []
        return np.flatnonzero(np.nan_to_num(self.stability.clusters, nan=1.0) < DOUBTFUL).tolist()

    @property
    def ids_match(self) -> bool:
        """Whether clusters of tasks that are stable on their own also keep their counterparts in the other tasks."""
        if self.stability is None or self.n_tasks == 1:
            return True
        return not (self.stability.overall >= STABLE and np.nanmean(self.stability.clusters) < DOUBTFUL)


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


def facts_of(model: Any, against: str = "") -> Facts:
    """The facts about a fitted model; ``against`` is what others say of its clusters."""
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
        None if scores is None else int(np.count_nonzero(np.asarray(scores) > FAR)), nearest, against,
    )  # fmt: skip
