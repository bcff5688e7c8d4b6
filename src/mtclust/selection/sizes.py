"""Cluster sizes that are not known: balanced, released from balance, free, or as k-means finds them.

Candidates from most to least constrained: exact balance; the balanced solution with rows then free to move; free sizes
from their own starts; exactly the sizes that k-means finds. Each is judged by its macro leave-one-out R² (mean over
tasks and clusters, so that large ones do not drown small ones; the mean of the codes fitted as well, so that unequal
sizes are not held against a candidate), and the first within ``TOLERANCE`` of the best is taken: constraints are kept
unless dropping them clearly pays. The objective itself prefers equal sizes and cannot decide. Free sizes are only
meaningful with features centred within tasks: otherwise one big cluster is best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from mtclust._progress import phase
from mtclust.alignment import align
from mtclust.features import eigen_features
from mtclust.labels import SizeBounds, free_bounds, parse_sizes
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.outcome import Outcome
from mtclust.search.variants import released

#: a constraint is kept if it costs less than this in macro leave-one-out R²
TOLERANCE = 0.01
_K_MEANS_STARTS = 10


@dataclass(frozen=True)
class SizeChoice:
    """The chosen solution, the problem with its bounds, and the score and labels of every candidate.

    Attributes
    ----------
    problem, result
        The problem with the chosen bounds, and its solution.
    chosen : {"balanced", "released", "free", "estimated"}
    scores : dict
        Candidate → macro leave-one-out R².
    labels : dict
        Candidate → labels of the rows, sorted by task.

    Examples
    --------
    What an estimator chose is kept in its ``selection_``:

    >>> from mtclust import DSTC
    >>> X = [[0.0], [0.1], [0.2], [0.3], [0.4], [0.5], [9.0], [9.1]]
    >>> model = DSTC(2, kernel="linear", random_state=0).fit(X)
    >>> sorted(model.selection_["sizes"]["scores"]), model.cluster_sizes_.tolist()
    (['balanced', 'estimated', 'free', 'released'], [[6, 2]])
    """

    problem: KernelProblem
    result: Outcome
    chosen: str
    scores: dict[str, float]
    labels: dict[str, NDArray[np.int64]]

    @property
    def reason(self) -> str:
        """The choice in words."""
        best = max(self.scores, key=lambda name: self.scores[name])
        own, top = self.scores[self.chosen], self.scores[best]
        if self.chosen == best:
            return f"{self.chosen} sizes predict cluster membership best (macro leave-one-out R² {own:.3f})"
        return f"{self.chosen} sizes predict cluster membership nearly as well as {best} ones ({own:.3f}, {top:.3f})"


def _free_bounds_of(problem: KernelProblem) -> SizeBounds:
    return free_bounds(np.diff(problem.offsets), problem.bounds.present, problem.bounds.movable)


def choose_sizes(
    problem: KernelProblem,
    solve: Callable[[KernelProblem], Outcome],
    options: SearchOptions,
    rng: np.random.Generator,
) -> SizeChoice:
    """Solve under every candidate's sizes and take the most constrained solution that is nearly the best.

    Parameters
    ----------
    problem : mtclust.problem.kernels.KernelProblem
        Its bounds say which clusters a task has.
    solve : callable
        The method's own search, from a problem to its solution.
    options : mtclust.problem.protocol.SearchOptions
    rng : numpy Generator

    Returns
    -------
    SizeChoice

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.features import centre_kernel
    >>> from mtclust.labels import parse_sizes
    >>> from mtclust.problem.kernels import KernelProblem
    >>> from mtclust.problem.protocol import SearchOptions
    >>> from mtclust.search.recipe import solve
    >>> from mtclust.selection import choose_sizes
    >>> X, offsets = np.array([[0.0], [0.1], [0.2], [0.3], [0.4], [0.5], [9.0], [9.1]]), np.array([0, 8])
    >>> kernel = centre_kernel(X @ X.T, offsets, centre=True).matrix
    >>> problem = KernelProblem(kernel, offsets, parse_sizes("balanced", [8], 2), np.array([0.01]), 0.01).alone()
    >>> options, rng = SearchOptions(), np.random.default_rng(0)
    >>> choice = choose_sizes(problem, lambda part: solve(part, options, rng), options, rng)
    >>> np.bincount(choice.result.point.labels).tolist() in ([6, 2], [2, 6])
    True
    """
    clusters = problem.bounds.present.sum(axis=1)
    balanced = replace(problem, bounds=parse_sizes("balanced", np.diff(problem.offsets), clusters))
    free = replace(problem, bounds=_free_bounds_of(problem))
    with phase("balanced sizes"):
        first = solve(balanced)
    estimated = replace(problem, bounds=estimated_sizes(problem, rng))
    with phase("released sizes"):
        second = released(first, options, rng)
    candidates: dict[str, tuple[KernelProblem, Outcome]] = {"balanced": (balanced, first), "released": (free, second)}
    for name, part in (("free", free), ("estimated", estimated)):
        with phase(f"{name} sizes"):
            candidates[name] = part, solve(part)
    scores = {name: part.macro_leave_one_out(found.point) for name, (part, found) in candidates.items()}
    chosen = next(name for name in candidates if scores[name] >= max(scores.values()) - TOLERANCE)
    labels = {name: found.point.labels for name, (_, found) in candidates.items()}
    return SizeChoice(*candidates[chosen], chosen, scores, labels)


def estimated_sizes(problem: KernelProblem, rng: np.random.Generator) -> SizeBounds:
    """The cluster sizes of k-means in feature space, every task alone, cluster ids aligned over tasks."""
    labels = []
    for task in range(problem.n_tasks):
        rows = problem.rows(task)
        n = rows.stop - rows.start
        features = eigen_features(problem.kernel[rows, rows]).values
        own = int(problem.bounds.present[task].sum())
        k_means = KMeans(min(own, n), n_init=_K_MEANS_STARTS, random_state=int(rng.integers(2**31 - 1)))
        labels.append(k_means.fit_predict(features).astype(np.int64))
    aligned, _ = align(problem.kernel, problem.offsets, np.concatenate(labels), _free_bounds_of(problem))
    parts = (aligned[problem.rows(task)] for task in range(problem.n_tasks))
    counts = np.stack([np.bincount(part, minlength=problem.n_clusters) for part in parts])
    return SizeBounds(counts, counts)
