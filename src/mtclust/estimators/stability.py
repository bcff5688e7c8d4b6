"""How far labels would stay the same with other rows: what refits on subsamples say.

A refit is a fit: it sees some of the rows (and, of five tasks or more, some of the tasks), is given the number
of clusters, the frame and the coupling, finds labels anew, and is compared with the fit:

======== =============================================================================================================
rows     share of the refits that put a row in the cluster that it has, clusters matched by the rows they have in common
clusters mean Jaccard similarity of a cluster with its counterpart in a refit (Hennig, 2007)
overall  mean adjusted Rand index of refits and fit, within tasks: 1 for the same clusters, 0 for chance
======== =============================================================================================================

The best clusters of structureless rows reach .3 to .7 on halves of the rows; below .7 clusters are doubted.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from mtclust.core import Array, Labels
from mtclust.core.labels import (
    offsets_of,
    parse_sizes,
    proportional,
    rows_of_tasks,
    same_for_all_clusters,
    tasks_of_rows,
)
from mtclust.core.matching import best_renaming, pair_counts
from mtclust.core.tasks import index_tasks
from mtclust.core.validation import generator_of, read_known_rows
from mtclust.distributed import is_dask
from mtclust.util.messages import counted, reporting

if TYPE_CHECKING:
    from mtclust.estimators.base import MultitaskClusterer


#: agreement below which clusters are not to be trusted
DOUBTFUL = 0.7
#: rows that a refit sees, unless two per cluster of each of its tasks are more
MOST_ROWS = 400


@dataclass(frozen=True, eq=False)
class Stability:
    """What refits on subsamples say of a fitted model.

    Attributes
    ----------
    overall : float
        Mean adjusted Rand index of refits and fit, within tasks.
    rows : ndarray of shape (n,)
        Share of the refits that put a row in its cluster; NaN for a row that no refit has seen.
    clusters : ndarray of shape (C,)
        Mean Jaccard similarity with the counterparts in refits.
    n_refits : int
    share : float
        Of the rows that a refit saw.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from mtclust import DSTC
    >>> X, _ = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    >>> print(DSTC(3, random_state=0).fit(X).stability(X))
    The agreement with clusters found in 10 samples of 50 % of the rows is 1.00 (1: the same, 0: chance).
    """

    overall: float
    rows: Array
    clusters: Array
    n_refits: int
    share: float

    def __str__(self) -> str:
        return (
            f"The agreement with clusters found in {self.n_refits} samples of {100 * self.share:.0f} % of the rows is "
            f"{self.overall:.2f} (1: the same, 0: chance)."
        )

    __repr__ = __str__


def subsample(
    offsets: NDArray[np.int64], share: float, n_clusters: int, rng: np.random.Generator, strata: Labels | None = None
) -> tuple[Labels, Labels]:
    """Tasks and rows (sorted by task) of one refit: of every task this share, but no fewer than it needs.

    With ``strata`` the same share of each of them: sizes that are given would not fit other samples.
    """
    m = len(offsets) - 1
    tasks = np.arange(m)
    if m >= 5:  # four fifths of them
        tasks = np.sort(rng.choice(m, int(np.ceil(0.8 * m)), replace=False))
    parts = []
    for i in tasks:
        n = int(offsets[i + 1] - offsets[i])
        k = min(n, max(round(share * n), 2 * n_clusters))
        order = rng.permutation(n)
        if strata is not None:  # rows of every cluster in turn, as many of each as it has
            own = strata[offsets[i] : offsets[i + 1]][order]
            counts, by_cluster = np.bincount(own, minlength=n_clusters), np.argsort(own, kind="stable")
            place = np.empty(n)
            place[by_cluster] = np.arange(n) - offsets_of(counts)[own[by_cluster]]
            order = order[np.argsort((place + rng.random(n)) / counts[own], kind="stable")]
        parts.append(offsets[i] + np.sort(order[:k]))
    return tasks, np.concatenate(parts).astype(np.int64)


def compared(
    labels: Labels, offsets: NDArray[np.int64], n_clusters: int, refits: list[tuple[Labels, Labels]], share: float
) -> Stability:
    """What refits say of labels (sorted by task): some of the rows, and their labels by a refit."""
    n, C, task_of = len(labels), n_clusters, tasks_of_rows(offsets)
    agreed, seen = np.zeros(n), np.zeros(n)
    jaccards, times, rand = np.zeros(C), np.zeros(C), []
    for rows, anew in refits:
        own = labels[rows]
        pairs = pair_counts(anew, own, C)
        seen[rows] += 1
        agreed[rows] += best_renaming(pairs)[anew] == own
        union = pairs.sum(axis=1)[:, None] + pairs.sum(axis=0) - pairs
        there = pairs.sum(axis=0) > 0
        jaccards[there] += (pairs / np.maximum(union, 1)).max(axis=0)[there]
        times += there
        by_task = [task_of[rows] == i for i in np.unique(task_of[rows])]
        rand.append(np.mean([adjusted_rand_score(own[mine], anew[mine]) for mine in by_task]))
    with np.errstate(invalid="ignore"):  # NaN for rows and clusters that no refit has seen
        return Stability(float(np.mean(rand)), agreed / seen, jaccards / times, len(refits), share)


def refit_on_subsamples(
    model: MultitaskClusterer, X: Any, tasks: Any, n_refits: int, share: float, random_state: Any
) -> Stability:
    """``stability`` of a fitted estimator."""
    if is_dask(X, tasks):
        raise TypeError("stability needs rows in memory, but X or tasks is a Dask collection; give some computed.")
    if model.solver == "cutting-plane":
        raise ValueError('stability needs solver="exchange"; what cutting planes return depends on their start.')
    if n_refits < 2 or not 0 < share < 1:
        raise ValueError(
            f"n_refits={n_refits!r} and share={share!r}: give two refits at least, and a share between 0 and 1."
        )
    rows, numbers = read_known_rows(model, X, tasks)
    if rows.shape[0] != len(model.labels_):
        raise ValueError(
            f"X has {rows.shape[0]} rows, but the model was fitted on {len(model.labels_)}; stability needs the "
            "rows of fit, in the same order."
        )
    index = index_tasks(numbers, rows.shape[0])
    rng = generator_of(random_state)
    share = min(share, MOST_ROWS / rows.shape[0])
    labels, names = np.asarray(model.labels_)[index.order], model.tasks_[numbers[index.order]]
    strata = None if model._read_params().sizes_open else labels
    precomputed = model.kernel == "precomputed"
    refits = []
    with reporting(model):
        for _ in counted(range(n_refits), "stability: refit", n_refits):
            seen, where = subsample(index.offsets, share, model.n_clusters_, rng, strata)
            own = index.order[where]
            anew = refitted(model, rows[np.ix_(own, own)] if precomputed else rows[own], names[where])
            found = np.asarray(anew.labels_)
            if share < 0.5 and not precomputed:  # it also labels the rows that it has not seen
                every = rows_of_tasks(index.offsets, seen)
                given, found = found, anew.predict(rows[index.order[every]], tasks=names[every])
                found[np.searchsorted(every, where)] = given
                where = every
            refits.append((where, found))
    said = compared(labels, index.offsets, model.n_clusters_, refits, share)
    return replace(said, rows=index.to_input_order(said.rows))


def refitted(model: MultitaskClusterer, X: Any, tasks: NDArray[Any]) -> Any:
    """The same estimator fitted to other rows or columns, with the number of clusters and what else was chosen."""
    chosen, params = model.selection_, model.get_params(deep=False)
    names, rows = np.unique(tasks, return_counts=True)
    held: dict[str, Any] = {"task_column": None, "n_init": 1, "verbose": 0}
    for name, value in (("n_clusters", model.n_clusters), ("lambda1", model.lambda1)):
        if isinstance(value, Mapping):
            held[name] = {task: value[task] for task in names.tolist()}
    held.setdefault("n_clusters", model.n_clusters_)
    if model._read_params().sizes_open:
        if params.get("center") == "auto" and chosen.candidates:
            found_in = chosen.candidates[0].frame  # the frame of the labels, before that of the models
            held["center"] = found_in if found_in in ("all", "aligned") else "task"
    elif chosen.candidates:
        held |= {"kernel": "linear" if chosen.width is None else "rbf", "width": chosen.width or "auto"}
    if params.get("coupling") == "auto" and chosen.coupling is not None:
        held["coupling"] = "none" if chosen.coupling.decision in ("none", 0) else "full"
    if not same_for_all_clusters(model.sizes):
        every = np.asarray(model.cluster_sizes_).sum(axis=1)
        number = model.n_clusters if isinstance(model.n_clusters, Mapping) else {}
        clusters = [number.get(task, model.n_clusters_) for task in model.tasks_.tolist()]
        table = parse_sizes(model.sizes, every, clusters, model.tasks_)
        seen = np.searchsorted(model.tasks_, names)
        bounds = proportional(table.restrict(seen), every[seen], rows)
        held["sizes"] = np.stack([bounds.lower, bounds.upper], axis=-1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).set_params(**held).fit(X, tasks=tasks)
