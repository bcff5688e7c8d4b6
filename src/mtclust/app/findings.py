"""What the clusters of a table are: what sets each apart, whether it is the same in every task, how tasks differ.

**Effects.** The effect of a feature on a cluster in a task is the mean of the cluster's rows minus the mean of the
task's other rows, in standard deviations of the task. It is shared if it points the same way in all tasks.

**Averages** that are printed are those of the rows: of all rows of the cluster whose value is known.

**Do ids mean the same?** u is the profile of a cluster in a task: its mean there minus the mean of the other clusters
there. v is the same contrast in the other tasks, each moved by an offset of its own; where all tasks have one frame, u
and v are taken from one origin instead. Their agreement

    2⟨u, v⟩ / (|u|² + |v|²),  |u|² and |v|² less what chance adds to them,

is 1 for the same profile, 0 for unrelated ones, −1 for opposite ones. Were ids of rows permuted within the task, ⟨u, v⟩
would vary about 0 as the difference of means of Xv does, which tells what chance reaches in one case of twenty. A
cluster is said to differ in a task if its rows there are nearer to another cluster of the other tasks, beyond what
chance reaches in one case of twenty, and its agreement is no larger than chance reaches (and below ½).
``benchmarks/sentences.py`` measures how often that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm

from mtclust.app.tables.columns import Feature
from mtclust.app.tables.encoding import CHANCE
from mtclust.core import Array, Labels

#: features listed per cluster, half as many if they do not hold in all tasks
SHARED = 6
#: smaller effects are not listed, in standard deviations
LEAST_EFFECT = 0.3
#: fewer rows (of a cluster, or per cluster of a task) tell nothing
FEW_ROWS = 5


@dataclass(frozen=True)
class Trait:
    """A feature that characterises a cluster.

    It holds in "all" tasks; in "most", those that have most of the cluster's rows; in all "rows" together only; it
    tells other clusters apart, "between" which this one lies; or in one "task".
    """

    feature: Feature
    #: per task, in standard deviations; NaN where the task lacks the cluster or consists of it
    effects: Array
    #: means of X over the rows (of the one task) in the cluster and outside it; of words the share of rows that have it
    inside: float
    outside: float
    #: the mean over tasks
    effect: float
    scope: str = "all"
    task: int | None = None


class ClusterMoments:
    """Counts (m × C), sums and means (m × C × d; 0 of no rows) of X by task and cluster.

    Beside them the standard deviations within tasks (``spreads``, m × d), and the variance within their clusters (d).
    """

    def __init__(self, X: Any, tasks: Labels, labels: Labels, m: int, C: int) -> None:
        cell = tasks * C + labels
        self.counts = np.bincount(cell, minlength=m * C).reshape(m, C).astype(float)
        self.sums = _sums(X, cell, m * C).reshape(m, C, X.shape[1])
        self.means = self.sums / np.maximum(self.counts, 1.0)[:, :, None]
        squares = _sums(X.multiply(X) if sp.issparse(X) else X**2, tasks, m)
        n = np.maximum(self.counts.sum(axis=1), 1.0)[:, None]
        self.spreads = np.sqrt(np.maximum(squares / n - (self.sums.sum(axis=1) / n) ** 2, 0.0))
        between = np.sum(self.sums**2 / np.maximum(self.counts, 1.0)[:, :, None], axis=(0, 1))
        freedom = max(len(labels) - np.count_nonzero(self.counts), 1)
        self.within = np.maximum(squares.sum(axis=0) - between, 0.0) / freedom

    def effects(self, cluster: int) -> tuple[Array, Array]:
        """Effects (m × d; NaN rows where there is nothing to compare) and their standard errors (m,)."""
        inside = self.counts[:, cluster]
        outside = self.counts.sum(axis=1) - inside
        some = (inside > 0) & (outside > 0)
        a, b = np.where(some, inside, 1.0)[:, None], np.where(some, outside, 1.0)[:, None]
        difference = self.sums[:, cluster] / a - (self.sums.sum(axis=1) - self.sums[:, cluster]) / b
        flat = self.spreads <= 1e-12 * np.maximum(1.0, self.spreads.max(axis=1, initial=0.0))[:, None]
        effects = np.where(flat, 0.0, difference / np.where(flat, 1.0, self.spreads))
        return np.where(some[:, None], effects, np.nan), np.where(some, np.sqrt(1 / a + 1 / b)[:, 0], np.nan)


def _sums(X: Any, groups: Labels, n_groups: int) -> Array:
    rows = np.arange(len(groups))
    total = sp.csr_matrix((np.ones(len(rows)), (groups, rows)), shape=(n_groups, len(rows))) @ X
    return total.toarray() if sp.issparse(total) else np.asarray(total)


class Findings:
    """What is found about the clusters of rows, of each of which the number of its task and cluster is given.

    ``shape`` is how many tasks and clusters there are, ``features`` are the columns of X, ``common`` says that all
    tasks have one frame; values that are not ``known`` were filled in and do not count in averages. The results are
    ``traits`` of every cluster, and m × C each ``agreement`` of a cluster's profile in a task with that elsewhere, what
    ``chance`` reaches (NaN where that cannot be told), and whether it ``differs``: cannot be taken for the same.
    """

    def __init__(
        self, X: Any, tasks: Labels, labels: Labels, shape: tuple[int, int], features: Sequence[Feature], *,
        common: bool = False, known: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        m, C = shape
        self._features = features
        self._words = features[0].kind == "word"
        self.moments = ClusterMoments(X, tasks, labels, m, C)
        cell, shape_of = tasks * C + labels, (m, C, X.shape[1])
        shown = X != 0 if self._words else X if known is None else np.where(known, X, 0.0)
        self._sums = _sums(shown, cell, m * C).reshape(shape_of)
        every = known is None or self._words
        counts = self.moments.counts[:, :, None] if every else _sums(known, cell, m * C).reshape(shape_of)
        self._counts = np.broadcast_to(counts, shape_of)
        self._effects = [self.moments.effects(c) for c in range(C)]
        self.traits = [self._of_cluster(c) for c in range(C)]
        self.agreement, self.chance, self.differs = id_agreement(X, tasks, self.moments, common=common)

    def differing(self, cluster: int) -> list[int]:
        """The tasks where a cluster cannot be taken for the cluster of the same id elsewhere, the worst first."""
        differs = np.flatnonzero(self.differs[:, cluster])
        return sorted(differs.tolist(), key=lambda task: float(self.agreement[task, cluster]))

    def by_task(self, cluster: int, most: int) -> dict[int, list[Trait]]:
        """What sets a cluster apart in each of the tasks that have the most of it, the strongest first."""
        effects = self._effects[cluster][0]
        good, rows = np.abs(np.nan_to_num(effects)) >= LEAST_EFFECT, self.moments.counts[:, cluster]
        tasks = [task for task in np.argsort(-rows, kind="stable").tolist()[:most] if rows[task]]
        return {task: self._best(cluster, good[task], effects[task], "task", task) for task in tasks}

    def _of_cluster(self, cluster: int) -> list[Trait]:
        """What holds in all tasks, else in most, else in all rows together."""
        effects, errors = self._effects[cluster]
        present = np.flatnonzero(~np.isnan(errors))
        if not len(present):
            return self._of_rows(cluster)
        here, weight = effects[present], self.moments.counts[present, cluster]
        weight = weight / weight.sum()
        mean, error = weight @ here, np.sqrt(np.sum((weight * errors[present]) ** 2))
        agreeing = weight @ (np.sign(here) == np.sign(mean))  # share of the cluster's rows
        strong = np.abs(mean) >= max(LEAST_EFFECT, 3.5 * error)  # so sure, since many features are looked at
        return (
            self._best(cluster, strong & (agreeing > 1 - 1e-9), mean, "all")
            or self._between(cluster, mean)
            or self._best(cluster, strong & (agreeing > 0.5), mean, "most")[: SHARED // 2]
            or self._of_rows(cluster)
        )

    def _best(
        self, cluster: int, good: NDArray[np.bool_], effect: Array, scope: str, task: int | None = None
    ) -> list[Trait]:
        """The strongest of some features whose averages differ as the effect says; that a word is missing says little.

        Where the shares of tasks differ, a cluster may be above the others in every task and below them on average.
        """
        rank = np.where(good, effect if self._words else np.abs(effect), -np.inf)
        best = (int(f) for f in np.argsort(-rank, kind="stable") if rank[f] > 0)
        traits = (self._trait(cluster, f, float(effect[f]), scope, task) for f in best)
        return list(islice((trait for trait in traits if (trait.inside - trait.outside) * trait.effect > 0), SHARED))

    def _trait(self, cluster: int, f: int, effect: float, scope: str, task: int | None = None) -> Trait:
        """With the means of the known values over the rows inside and outside the cluster, of one task or of all."""
        rows, own = slice(None) if task is None else [task], np.arange(self._sums.shape[1]) == cluster
        sums, counts = self._sums[rows, :, f], self._counts[rows, :, f]
        pairs = [(sums[:, part].sum(), counts[:, part].sum()) for part in (own, ~own)]
        inside, outside = (float(total / count) if count else float("nan") for total, count in pairs)
        return Trait(self._features[f], self._effects[cluster][0][:, f], inside, outside, effect, scope, task)

    def _means(self) -> Array:
        """Of the rows of every cluster in standard deviations within tasks (C × d)."""
        spread = np.sqrt(np.mean(self.moments.spreads**2, axis=0))
        counts = np.maximum(self.moments.counts.sum(axis=0), 1.0)
        return self.moments.sums.sum(axis=0) / counts[:, None] / np.where(spread > 0, spread, np.inf)

    def _between(self, cluster: int, mean: Array) -> list[Trait]:
        """Numbers that tell other clusters apart, between which this one lies."""
        means = self._means()
        inside = (means.min(axis=0) < means[cluster]) & (means[cluster] < means.max(axis=0))
        measured = np.array([feature.kind in ("number", "year", "date") for feature in self._features], dtype=bool)
        apart = np.where(inside & measured, np.ptp(means, axis=0), 0.0)
        best = [f for f in np.argsort(-apart, kind="stable")[: SHARED // 2] if apart[f] >= 2 * LEAST_EFFECT]
        return [self._trait(cluster, f, float(mean[f]), "between") for f in best]

    def _of_rows(self, cluster: int) -> list[Trait]:
        """What differs most between the rows inside and outside a cluster, whatever their tasks."""
        counts, means = self.moments.counts.sum(axis=0), self._means()
        others = np.delete(counts, cluster) @ np.delete(means, cluster, axis=0) / max(counts.sum() - counts[cluster], 1)
        strength = means[cluster] - others
        found = self._best(cluster, np.ones(len(strength), dtype=bool), strength, "rows")[: SHARED // 2]
        return [trait for trait in found if abs(trait.effect) >= LEAST_EFFECT] or found[:1]


def id_agreement(
    X: Any, tasks: Labels, moments: ClusterMoments, *, common: bool
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Agreement of a cluster's profile in a task with its profile elsewhere, what chance reaches, whether it differs.

    All are m × C.
    """
    counts, means, once_in_twenty = moments.counts, moments.means, norm.isf(CHANCE)
    m, C = counts.shape
    offsets = np.zeros((m, means.shape[2])) if common else _offsets(counts, means)
    moved = counts[:, :, None] * (means - offsets[:, None])
    agreement, chance, nearer = np.full((m, C), np.nan), np.full((m, C), np.nan), np.full((m, C), -np.inf)
    for t in range(m):
        rows = counts.sum(axis=0) - counts[t]  # of every cluster, elsewhere
        elsewhere = (moved.sum(axis=0) - moved[t]) / np.maximum(rows, 1.0)[:, None]
        part, n = X[tasks == t], counts[t].sum()
        for c in np.flatnonzero((counts[t] >= FEW_ROWS) & (rows >= FEW_ROWS)):
            weights = np.where(rows > 0, 1.0 if common else counts[t], 0.0)
            weights[c] = 0.0
            if not weights.any():
                continue
            weights /= weights.sum()
            origin = weights @ elsewhere
            v = elsewhere[c] - origin
            u = means[t, c] - (origin if common else weights @ means[t])
            noise = 1 / counts[t, c] + 1 / rows[c] + np.sum(weights**2 / np.maximum(rows, 1.0))
            noise += 0.0 if common else np.sum(weights**2 / np.maximum(counts[t], 1.0))
            length = float(u @ u + v @ v - noise * moments.within.sum())
            if length <= 0:
                continue
            agreement[t, c] = np.clip(2 * u @ v / length, -1, 1)
            apart = elsewhere[rows >= FEW_ROWS] - elsewhere[c]  # to the other clusters
            lead = 2 * apart @ (u - v) - np.sum(apart**2, axis=1)
            errors = 2 * np.sqrt(noise * apart**2 @ moments.within)
            nearer[t, c] = float(np.max(lead / np.where(errors > 0, errors, 1.0)))
            left = n - counts[t, c]
            if left < FEW_ROWS:  # ids that are all the same cannot be permuted
                continue
            y = np.asarray(part @ v).ravel()
            if common:
                middle = float(means[t].T @ counts[t] / n @ v - origin @ v)
                reach = y.std() * np.sqrt(left / max(n - 1, 1) / counts[t, c])
            else:
                middle, reach = 0.0, y.std() * np.sqrt(1 / counts[t, c] + 1 / left)
            chance[t, c] = np.clip(2 * (middle + once_in_twenty * reach) / length, -1, 1)
    return agreement, chance, (nearer > once_in_twenty) & (agreement < np.fmin(chance, 0.5))


def _offsets(counts: Array, means: Array) -> Array:
    """Offsets of the tasks that, with centres of the clusters, come nearest to the means of all cells."""
    offsets = np.zeros((len(counts), means.shape[2]))
    for _ in range(20):
        moved = counts[:, :, None] * (means - offsets[:, None])
        centres = moved.sum(axis=0) / np.maximum(counts.sum(axis=0), 1.0)[:, None]
        rest = np.sum(counts[:, :, None] * (means - centres), axis=1)
        offsets = rest / np.maximum(counts.sum(axis=1), 1.0)[:, None]
    return offsets


def typical_rows(X: Any, tasks: Labels, labels: Labels, n_clusters: int, most: int = 3) -> list[list[int]]:
    """Of every cluster a few rows near its centre in their task, one of each of the tasks that have the most of it."""
    cell = tasks * n_clusters + labels
    order = np.argsort(cell, kind="stable")
    distance = np.asarray((X.multiply(X) if sp.issparse(X) else X**2).sum(axis=1)).ravel().astype(float)
    for rows in np.split(order, np.flatnonzero(np.diff(cell[order])) + 1):
        centre = np.asarray(X[rows].mean(axis=0)).ravel()
        distance[rows] += centre @ centre - 2 * np.asarray(X[rows] @ centre).ravel()
    found = []
    for c in range(n_clusters):
        members = np.flatnonzero(labels == c)
        near = members[np.argsort(distance[members], kind="stable")]
        held, rows = np.unique(tasks[members], return_counts=True)
        first = [near[tasks[near] == task][0] for task in held[np.argsort(-rows, kind="stable")][:most]]
        found.append([int(row) for row in dict.fromkeys([*first, *near[:most]])][:most])
    return found


@dataclass(frozen=True)
class Difference:
    """A cluster whose share of a task's rows differs from its share elsewhere.

    ``low`` and ``high`` are an interval for the ratio of the two, such that all intervals together hold with 95 %;
    ``certain`` is how far the ratio is from 1 at least, as a factor.
    """

    task: int
    cluster: int
    share: float
    elsewhere: float
    low: float
    high: float
    certain: float


def differences(sizes: NDArray[np.int64], clusters: Sequence[int]) -> list[Difference]:
    """Differences of some clusters' shares beyond chance, the most certain first; of two clusters one is listed."""
    here = np.asarray(sizes, dtype=float)
    m, C = here.shape
    if m < 2 or C < 2:
        return []
    z = norm.isf(CHANCE / (2 * m * C))
    rows = here.sum(axis=1, keepdims=True)
    there, others = here.sum(axis=0) - here, here.sum() - rows
    ratio = np.log((here + 0.5) / (rows + 0.5)) - np.log((there + 0.5) / (others + 0.5))
    (down, up), (down_there, up_there) = _reaches(here, rows, z), _reaches(there, others, z)
    low, high = np.exp(ratio - np.hypot(down, up_there)), np.exp(ratio + np.hypot(up, down_there))
    certain = np.maximum(low, 1 / high)
    # smaller differences, and those whose interval nearly holds none, are not worth a sentence
    told = ((low > 1) | (high < 1)) & (certain >= 1.1) & (np.abs(ratio) >= np.log(1.3))
    told &= (here > 0) | (np.count_nonzero(here, axis=0) > 1)  # that it is found only elsewhere says it for all others
    found: dict[tuple[int, int], Difference] = {}
    for task, c in np.argwhere(told).tolist():
        if c in clusters:
            shares = here[task, c] / rows[task, 0], there[task, c] / others[task, 0]
            own = Difference(task, c, *map(float, (*shares, low[task, c], high[task, c], certain[task, c])))
            place = task, c if C > 2 else 0
            found[place] = max(found.get(place, own), own, key=lambda entry: entry.certain)
    return sorted(found.values(), key=lambda difference: -difference.certain)


def _reaches(counts: Array, rows: Array, z: float) -> tuple[Array, Array]:
    """How far the logarithms of shares may be down and up, by Wilson: one row that is all of a task tells little."""
    share = counts / rows
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    reach = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    low, high = np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)
    share = (counts + 0.5) / (rows + 0.5)
    with np.errstate(divide="ignore"):  # a share that may be 0 reaches down without end
        return np.maximum(np.log(share / low), 0.0), np.maximum(np.log(high / share), 0.0)
