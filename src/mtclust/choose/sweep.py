r"""Labels for every number of clusters of a range, found cheaply, and how well the judge says they separate the rows.

Each number starts from the one before it with a cluster split in two, and from k-means; rows then move under the
criterion E (:mod:`mtclust.core.criterion`). There are three ways to look at several tasks, and each is swept:

- *alone*: every task by itself,
- *together*: rows centred by task, then clustered as one table; where tasks share their clusters this finds them in
  tasks that are too small by themselves,
- *common*: all rows in one frame, in which a task may lack clusters.

Whether clusters hold across tasks is measured on the first of these: a model of one task's clusters predicts the rows
of another task, which are compared to the clusters found there (adjusted Rand index).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.choose._old.judge import Judge
from mtclust.choose.choice import RIDGE
from mtclust.choose.views import KernelSpec, View
from mtclust.core.alignment import pair_counts
from mtclust.core.criterion import decision_weights, indicators, leave_one_out_form, move_rows
from mtclust.core.kernels import leading_features
from mtclust.core.labels import LEAST_ROWS
from mtclust.problem.pool import k_means, quadratic_forms
from mtclust.util.progress import phase

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Look = Literal["alone", "together", "common"]

#: rows move at the ridge times these in turn
_PATH = (4.0, 1.0)
#: leading eigen-features that k-means and splits see, k-means runs, clusters that are split in turn
_FEATURES = 30
_K_MEANS_RUNS = 1
_SPLITS = 2
#: pairs of tasks that are compared
_PAIRS = 12


@dataclass(frozen=True)
class Swept:
    """What was found for every number of clusters, nan or None where tasks are too small for that many.

    Attributes
    ----------
    look : {"alone", "together", "common"}
    separation : ndarray of shape (n_numbers,)
        The judge's, of the kernel that separates best.
    labels : list of (ndarray or None)
    agreement : ndarray of shape (n_numbers,), optional
        Across tasks.
    """

    look: Look
    separation: Array
    labels: list[Labels | None]
    agreement: Array | None = None


def sweep(
    view: View, specs: tuple[KernelSpec, ...], judge: Judge, numbers: list[int], looks: tuple[Look, ...],
    across: bool = False,
) -> list[Swept]:  # fmt: skip
    """Label the rows with every number of clusters, once for every look.

    Parameters
    ----------
    view : View
        Rows sorted by task.
    specs : tuple of KernelSpec
        Kernels to search with; the one that separates best counts.
    judge : Judge
    numbers : list of int
        At least 2, ascending.
    looks : tuple of {"alone", "together", "common"}
    across : bool
        Whether to measure the agreement across tasks.
    """
    found = []
    for look in looks:
        with phase(f"choosing the number of clusters: tasks {look}"):
            found.append(
                _best_kernel([_sweep_kernel(view, spec, judge, numbers, look, across) for spec in specs], look)
            )
    return found


def _best_kernel(by_kernel: list[Swept], look: Look) -> Swept:
    """For every number the labels that separate best."""
    separation = np.stack([swept.separation for swept in by_kernel])
    best = np.where(np.isnan(separation), -np.inf, separation).argmax(axis=0)
    labels = [by_kernel[kernel].labels[k] for k, kernel in enumerate(best)]
    across = [swept.agreement for swept in by_kernel if swept.agreement is not None]
    agreement = np.stack(across).max(axis=0) if across else None
    return Swept(look, separation[best, np.arange(separation.shape[1])], labels, agreement)


def _sweep_kernel(view: View, spec: KernelSpec, judge: Judge, numbers: list[int], look: Look, across: bool) -> Swept:
    kernel = view.through(spec, "all" if look == "common" else "task").centred.matrix
    offsets = view.offsets if look == "alone" else view.offsets[[0, -1]]
    parts = [
        labels_of_numbers(np.ascontiguousarray(kernel[a:b, a:b]), numbers) for a, b in zip(offsets[:-1], offsets[1:])
    ]
    labels = [
        np.concatenate([part[C] for part in parts]) if all(C in part for part in parts) else None for C in numbers
    ]
    across = across and look == "alone" and len(offsets) > 2
    separation, agreement = np.full((2, len(numbers)), np.nan)
    for k, (C, found) in enumerate(zip(numbers, labels)):
        if found is not None:
            separation[k] = judge(found, C).separation
            if across:
                agreement[k] = agreement_across_tasks(kernel, offsets, found, C)
    return Swept(look, separation, labels, agreement if across else None)


def labels_of_numbers(kernel: Array, numbers: list[int]) -> dict[int, Labels]:
    """Labels of one table for every number of clusters that it has rows for.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        Centred.
    numbers : list of int

    Examples
    --------
    >>> import numpy as np
    >>> kernel = np.kron(np.eye(3) - 1 / 3, np.ones((4, 4)))  # three groups of four equal rows
    >>> labels_of_numbers(kernel, [3])[3].reshape(3, 4).std(axis=1).tolist()
    [0.0, 0.0, 0.0]
    """
    n = len(kernel)
    forms = [leave_one_out_form(M) for M in quadratic_forms(kernel, RIDGE * np.asarray(_PATH))]
    features = leading_features(kernel, _FEATURES)
    order = np.random.default_rng(0).permutation(n)
    last, found = np.zeros(n, dtype=np.int64), {}
    for C in range(2, min(max(numbers), n // LEAST_ROWS) + 1):
        lower, upper = np.full(C, LEAST_ROWS), np.full(C, n)
        best = -np.inf
        for labels in [*_splits(features, last), k_means(features, C, _K_MEANS_RUNS)]:
            if np.any(np.bincount(labels, minlength=C) < lower):
                continue
            value = -np.inf
            for form in forms:
                value, _ = move_rows(form, labels, lower, upper, order)
            if value > best:
                best, last = value, labels
        if best == -np.inf:
            break
        if C in numbers:
            found[C] = last
    return found


def _splits(features: Array, labels: Labels) -> list[Labels]:
    """Labels with one of the clusters that spread furthest along a line cut in two on that line."""
    lines = []
    for cluster in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == cluster)
        if len(rows) >= 2 * LEAST_ROWS:
            apart = features[rows] - features[rows].mean(axis=0)
            squares, directions = np.linalg.eigh(apart.T @ apart)
            lines.append((float(squares[-1]), rows[apart @ directions[:, -1] > 0]))
    lines.sort(key=lambda line: -line[0])
    found = []
    for _, rows in lines[:_SPLITS]:
        split = labels.copy()
        split[rows] = labels.max() + 1
        found.append(split)
    return found


def agreement_across_tasks(kernel: Array, offsets: NDArray[np.int64], labels: Labels, n_clusters: int) -> float:
    """How well the clusters of one task, carried over to another by a model, agree with those found there.

    The mean adjusted Rand index over pairs of tasks: 1 for the same clusters everywhere, 0 for chance.
    """
    m = len(offsets) - 1
    pairs = [(i, (i + step) % m) for step in range(1, m) for i in range(m)]
    if len(pairs) > _PAIRS:
        pairs = [pairs[k] for k in np.linspace(0, len(pairs) - 1, _PAIRS).astype(int)]
    agreements = []
    for source, target in pairs:
        own, other = slice(*offsets[source : source + 2]), slice(*offsets[target : target + 2])
        z = indicators(labels[own], n_clusters)
        shares, n = z.mean(axis=0), len(z)
        block = kernel[own, own] + 0.5 * n * RIDGE * np.eye(n)
        fitted = kernel[other, own] @ sla.solve(block, z - shares, assume_a="pos")
        scale, _ = decision_weights(shares, np.zeros(n_clusters))
        agreements.append(_agreement(labels[other], (scale * fitted).argmax(axis=1), n_clusters))
    return float(np.mean(agreements))


def _agreement(first: Labels, second: Labels, n_clusters: int) -> float:
    """The adjusted Rand index, without the checks that take longer than the sums.

    Examples
    --------
    >>> import numpy as np
    >>> float(_agreement(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]), 2))
    1.0
    """
    counts = pair_counts(first, second, n_clusters)
    together, one, other = (float(np.sum(n * (n - 1.0))) for n in (counts, counts.sum(axis=0), counts.sum(axis=1)))
    chance = one * other / max(len(first) * (len(first) - 1.0), 1.0)
    most = 0.5 * (one + other)
    return 1.0 if most == chance else (together - chance) / (most - chance)
