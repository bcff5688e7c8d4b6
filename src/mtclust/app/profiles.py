"""What characterises each cluster: features that differ between its rows and the other rows of the same task.

The effect of a feature in a task is the mean of the cluster's rows minus the mean of the task's other rows, in standard
deviations of the task. An effect is shared if it points the same way in all tasks, and particular to one task if it is
much stronger there than elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: features listed per cluster: shared by all tasks, particular to one
SHARED, PARTICULAR = 6, 4
#: smaller effects are not listed, in standard deviations
LEAST_EFFECT = 0.3
#: an effect particular to one task exceeds the other tasks' by this much
LEAST_EXCESS = 0.6
#: and by this many standard errors, since many features are looked at
_SURE = 3.5


@dataclass(frozen=True)
class Trait:
    """A feature that characterises a cluster.

    Attributes
    ----------
    feature : int
    effects : ndarray of shape (m,)
        Per task; NaN where the task lacks the cluster or consists of it.
    inside, outside : float
        Mean of X over the tasks' rows inside and outside the cluster; for words the share of rows that have it.
    task : int or None
        The task it is particular to; None if it is shared. ``inside`` and ``outside`` are then of that task.
    between : bool
        The cluster has no feature of its own; this one tells the others apart, and it lies in between.
    """

    feature: int
    effects: Array
    inside: float
    outside: float
    task: int | None = None
    between: bool = False

    @property
    def effect(self) -> float:
        return float(np.nanmean(self.effects) if self.task is None else self.effects[self.task])


@dataclass(frozen=True)
class Moments:
    """Sums of X by task and cluster: everything the effects need.

    Attributes
    ----------
    counts : ndarray of shape (m, C)
    sums : list of ndarray of shape (C, d)
        One per task.
    spreads : ndarray of shape (m, d)
        Standard deviations within the tasks.
    """

    counts: Array
    sums: list[Array]
    spreads: Array


def moments(X: Any, task_numbers: NDArray[np.int64], labels: NDArray[np.int64], m: int, n_clusters: int) -> Moments:
    """Counts, sums and spreads of the rows by task and cluster."""
    counts, sums, spreads = np.zeros((m, n_clusters)), [], np.zeros((m, X.shape[1]))
    for task in range(m):
        rows = np.flatnonzero(task_numbers == task)
        part, own = X[rows], labels[rows]
        counts[task] = np.bincount(own, minlength=n_clusters)
        indicator = sp.csr_matrix((np.ones(len(rows)), (own, np.arange(len(rows)))), shape=(n_clusters, len(rows)))
        total = indicator @ part
        sums.append(total.toarray() if sp.issparse(total) else np.asarray(total))
        squares = part.multiply(part).mean(axis=0) if sp.issparse(part) else (part**2).mean(axis=0)
        mean = sums[-1].sum(axis=0) / len(rows)
        spreads[task] = np.sqrt(np.maximum(np.asarray(squares).ravel() - mean**2, 0.0))
    return Moments(counts, sums, spreads)


def cluster_traits(
    found: Moments, cluster: int, *, values: Moments | None = None, only_positive: bool = False
) -> list[Trait]:
    """The features that characterise a cluster: first those shared by the tasks, then those particular to one.

    ``values`` are the moments that ``inside`` and ``outside`` are taken from, those of the effects by default;
    ``only_positive`` is for words: that a word is missing says little.
    """
    values = found if values is None else values
    effects, errors = _effects(found, cluster)
    present = ~np.isnan(effects[:, 0])
    if not present.any():
        return []
    here = effects[present]
    mean = here.mean(axis=0)
    certain = np.abs(mean) - (here.std(axis=0) if len(here) > 1 else 0.0)
    same_sign = np.all(np.sign(here) == np.sign(mean), axis=0)
    shared_error = np.sqrt(np.sum(errors[present] ** 2)) / present.sum()
    good = same_sign & (np.abs(mean) >= LEAST_EFFECT) & (np.abs(mean) >= _SURE * shared_error)
    if only_positive:
        good &= mean > 0
    best = [int(f) for f in np.argsort(-np.where(good, certain, -np.inf), kind="stable")[:SHARED] if good[f]]
    traits = [Trait(f, effects[:, f], *_means(values, cluster, f, present)) for f in best]
    if present.sum() < 2:
        return traits
    return traits + _particular(values, cluster, effects, errors, present, only_positive)


def traits_between(found: Moments, cluster: int, features: Sequence[int]) -> list[Trait]:
    """What features that tell other clusters apart are in a cluster that nothing sets apart."""
    effects, _ = _effects(found, cluster)
    present = ~np.isnan(effects[:, 0])
    if not present.any():
        return []
    return [Trait(f, effects[:, f], *_means(found, cluster, f, present), None, True) for f in features]


def _effects(found: Moments, cluster: int) -> tuple[Array, Array]:
    """Effects (m × d; NaN rows where there is nothing to compare) and their standard errors (m,)."""
    m, d = found.spreads.shape
    effects, errors = np.full((m, d), np.nan), np.full(m, np.nan)
    for task in range(m):
        inside = found.counts[task, cluster]
        outside = found.counts[task].sum() - inside
        if inside == 0 or outside == 0:
            continue
        sums = found.sums[task]
        difference = sums[cluster] / inside - (sums.sum(axis=0) - sums[cluster]) / outside
        spread = found.spreads[task]
        flat = spread <= 1e-12 * max(1.0, float(spread.max(initial=0.0)))
        effects[task] = np.where(flat, 0.0, difference / np.where(flat, 1.0, spread))
        errors[task] = np.sqrt(1 / inside + 1 / outside)
    return effects, errors


def _particular(
    values: Moments, cluster: int, effects: Array, errors: Array, present: NDArray[np.bool_], only_positive: bool
) -> list[Trait]:
    """Effects of one task that the others do not have, the most striking first, a feature once."""
    tasks = np.flatnonzero(present)
    total = effects[tasks].sum(axis=0)
    candidates = []
    for task in tasks:
        elsewhere = (total - effects[task]) / (len(tasks) - 1)
        excess = (effects[task] - elsewhere) * np.sign(effects[task])
        good = (np.abs(effects[task]) >= 2 * LEAST_EFFECT) & (excess >= max(LEAST_EXCESS, _SURE * errors[task]))
        if only_positive:
            good &= effects[task] > 0
        candidates += [(float(excess[f]), int(task), int(f)) for f in np.flatnonzero(good)]
    traits: list[Trait] = []
    for _, owner, f in sorted(candidates, reverse=True):
        if all(trait.feature != f for trait in traits):
            only = np.arange(len(present)) == owner
            traits.append(Trait(f, effects[:, f], *_means(values, cluster, f, only), owner))
        if len(traits) == PARTICULAR:
            break
    return traits


def _means(found: Moments, cluster: int, feature: int, tasks: NDArray[np.bool_]) -> tuple[float, float]:
    """Means of a feature inside and outside the cluster, averaged over tasks."""
    inside, outside = [], []
    for task in np.flatnonzero(tasks):
        n = found.counts[task, cluster]
        own = found.sums[task][cluster, feature]
        inside.append(own / n)
        outside.append((found.sums[task][:, feature].sum() - own) / (found.counts[task].sum() - n))
    return float(np.mean(inside)), float(np.mean(outside))
