"""Simple methods as witnesses: k-means and a Gaussian mixture on the same rows, judged by the same score.

Where one of them separates the rows of the tasks better, the reader is told; and where none of them finds anything
like the clusters that are shown, too. All labels answer to the judge of the fit (:mod:`mtclust.choose.judge`); clusters
found in every task alone are named after those that they are compared with.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from mtclust.choose._old.few_values import few_valued, judging_kernels, spread
from mtclust.choose._old.judge import Judge
from mtclust.choose._old.mixture import mixture_labels
from mtclust.choose.settings import all_rows, sample_rows
from mtclust.choose.views import View
from mtclust.core.alignment import names_by_agreement, pair_counts
from mtclust.core.tasks import index_tasks
from mtclust.estimators.concerns import FEW_ROWS

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: rows that witnesses see
_ROWS = 600
#: by how much a witness must be better to be worth a sentence
BETTER = 0.05
#: agreement (adjusted Rand index) below which a witness has found other clusters
OTHER = 0.3
#: and from which it has found the same
SAME = 0.9


@dataclass(frozen=True)
class Witness:
    """What a simple method says of the same rows.

    Attributes
    ----------
    method : str
        In words.
    score, ours : float
        The judge's, of its clusters and of those that are shown.
    agreement : float
        Adjusted Rand index within tasks of the two, the mean over rows.

    Examples
    --------
    >>> print(Witness("k-means on all rows", 0.71, 0.62, 0.4))
    k-means on all rows separates them better (0.71 against 0.62)
    """

    method: str
    score: float
    ours: float
    agreement: float

    @property
    def better(self) -> bool:
        """Clearly better, and better than noise, with clusters that are not nearly the same."""
        return self.score > 0 and self.score - self.ours > BETTER and self.agreement < SAME

    def __str__(self) -> str:
        verb = "separates them better" if self.better else "separates them no better"
        return f"{self.method} {verb} ({self.score:.2f} against {self.ours:.2f})"


def witnesses(X: Any, task_numbers: Labels, labels: Labels, n_clusters: int, common: bool = False) -> list[Witness]:
    """Simple methods on the same rows, the best first; none for text, one cluster or hardly any rows.

    ``common`` says that all tasks are in one frame. Tasks with too few rows to tell clusters are not asked, unless all
    are such.
    """
    if sp.issparse(X) or n_clusters < 2 or len(labels) < 4 * n_clusters:
        return []
    telling = np.bincount(task_numbers)[task_numbers] >= FEW_ROWS * n_clusters
    if telling.any():
        X, task_numbers, labels = X[telling], task_numbers[telling], np.asarray(labels)[telling]
    index = index_tasks(task_numbers, len(labels))
    X = spread(X, few_valued(X))  # as the fit saw them
    sample = all_rows(X, index) if len(labels) <= _ROWS else sample_rows(X, index, _ROWS)
    offsets, own = sample.index.offsets, np.asarray(labels, dtype=np.int64)[sample.order]
    view = View(sample.rows, offsets)
    judge = Judge.of(view.in_one_frame if common else view, judging_kernels("auto"))
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        found = _labels(view, own, n_clusters)
    ours = judge(own, n_clusters).score
    result = []
    for method, other in found.items():
        pairs = [adjusted_rand_score(own[a:b], other[a:b]) for a, b in zip(offsets[:-1], offsets[1:])]
        theirs = judge(other, n_clusters).score
        result.append(Witness(method, theirs, ours, float(np.average(pairs, weights=np.diff(offsets)))))
    return sorted(result, key=lambda witness: -witness.score)


def _labels(view: View, shown: Labels, n_clusters: int) -> dict[str, Labels]:
    def k_means(part: Array) -> Labels:
        return KMeans(min(n_clusters, len(part)), n_init=3, random_state=0).fit_predict(part).astype(np.int64)

    rows, offsets = view.rows, view.offsets
    found = {"k-means on all rows": k_means(rows)}
    if len(offsets) > 2:
        parts = []
        for a, b in zip(offsets[:-1], offsets[1:]):
            own = k_means(rows[a:b])
            parts.append(names_by_agreement(pair_counts(own, shown[a:b], n_clusters))[own])
        found["k-means in every task"] = np.concatenate(parts)
    mixed = mixture_labels(view, np.full(len(offsets) - 1, n_clusters))
    return found if mixed is None else found | {"a Gaussian mixture": mixed}


def doubt(found: list[Witness]) -> str:
    """What witnesses say against the clusters that are shown, as half a sentence; empty where they say nothing.

    Examples
    --------
    >>> doubt([Witness("k-means on all rows", 0.71, 0.62, 0.4)])
    'k-means on all rows separates them better (0.71 against 0.62)'
    >>> doubt([Witness("k-means on all rows", 0.61, 0.62, 0.1)])
    'no simple method finds these clusters (agreement 0.10), and one separates rows as well'
    >>> doubt([Witness("k-means on all rows", 0.31, 0.62, 0.1)])
    ''
    >>> doubt([Witness("k-means on all rows", -0.6, -1.2, 0.1)])  # neither is better than noise
    ''
    """
    if not found:
        return ""
    best, nearest = found[0], max(witness.agreement for witness in found)
    if best.better:
        return str(best)
    if best.score > 0 and nearest < OTHER and best.score >= best.ours - BETTER:
        return f"no simple method finds these clusters (agreement {nearest:.2f}), and one separates rows as well"
    return ""
