r"""The paper's own solver: cutting planes on the convex relaxation of the labels.

The set of allowed labellings Bⁱ of every task is replaced by its convex hull, Ỹⁱ = Σ_k μⁱ_kYⁱ_k (the paper's (18), (19)
and (21), (26)), and

.. math:: \min_{\tilde Y\in\prod_i\mathrm{conv}(B^i)} \Phi(\tilde Y), \quad
          \Phi(\tilde Y) = \min_Z \tfrac12\mathrm{tr}(\tilde Y^TM(Z)\tilde Y)

which is its (27), is solved with growing pools of labellings, (28):

1. μ for the current pools, (30), is found together with Z (:mod:`mtclust.relaxation.mixtures`), or by the paper's level
   method, for which every evaluation of Φ is a supervised problem in (W, Z), (31)
   (:mod:`mtclust.relaxation.level_method`)
2. the most violated labelling of every task, min_Y ⟨αⁱ, Y⟩ over Bⁱ, (29), by exact assignment, enters its pool; α is
   the dual solution on the pools
3. stop when the value and the lower bound −Φ*(α) + Σ_i min_Y⟨αⁱ, Y⟩ meet. At the optimal Z their difference is
   Σ_i(⟨αⁱ, Ỹⁱ⟩ − min_Y⟨αⁱ, Y⟩), which needs no pool

Labels are the argmax of f, as printed in the paper; their sizes may lie outside the bounds.

Where all clusters of a task have the same bounds, the mean of any labelling over all renamings of its clusters is
Ỹ = 0: the optimum is 0 and says nothing about clusters. See ``docs/paper.md``.

The first labelling of every pool is the start: k-means, spectral, random, or given labels. All of them obey the cluster
sizes. Tasks are clustered one by one in the feature space of the kernel, then cluster ids are matched over tasks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from mtclust.core.assignment import assign
from mtclust.core.coupling import Conditioned
from mtclust.core.criterion import random_labels
from mtclust.core.kernels import eigen_features, largest_eigenvectors
from mtclust.core.labels import SizeBounds, counts_by_task, label_codes
from mtclust.core.matching import match_labels
from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.relaxation.level_method import solve_by_levels
from mtclust.relaxation.mixtures import Pools, solve_mixture
from mtclust.search.problem import Fit, Point, Problem
from mtclust.search.recipe import Outcome
from mtclust.util.messages import phase, warn_user

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: the optimum counts as reached at this share of the largest value, mC/(C−1), that labels can have, or at ``zero_tol``;
#: and an entry of Ỹ below this counts as zero
_ZERO = 1e-9
#: as exactly as this μ is found when it, and not the pools, holds up the gap
_SHARPEST = 1e-11
#: what ``init`` and ``reduced`` may name
STARTS, REDUCED = ("k-means", "spectral", "random"), ("quadratic", "level")
#: two scores of a row that differ by less than this (the largest score there can be is about 1) are a tie
_TIE = 1e-6
#: below this share of |Y| the relaxed labels Ỹ are nearly zero
_VANISHING = 0.2
#: more tied rows than this share are a collapse, too
_TIED = 0.05


@dataclass(frozen=True)
class CuttingPlaneOptions:
    """Settings of ``solver="cutting-plane"``; the start and the number of cuts are part of the model.

    Attributes
    ----------
    init : {"k-means", "spectral", "random"} or array of labels
        The first labelling in every pool. What a stopped run returns is close to it.
    max_cuts : int
        Labellings added to every pool at most.
    gap_tol : float
        Stop when value and lower bound differ by less than this share of the value.
    zero_tol : float
        Stop when the value is below this share of the largest that labels can have, mC/(C−1): the relaxation has
        collapsed, and going on to 0 takes longer than all the cuts before.
    reduced : {"quadratic", "level"}
        How the weights of the current pools are found: together with Z, a quadratic program for every Z, or by the
        level method, as in the paper. The second takes 15 to 30 times as long.
    level_tol : float
        What ``gap_tol`` is, for the weights of the current pools.
    max_level_steps : int
        Steps of that per cut.
    """

    init: Any = "k-means"
    max_cuts: int = 25
    gap_tol: float = 1e-4
    zero_tol: float = 1e-4
    reduced: str = "quadratic"
    level_tol: float = 1e-3
    max_level_steps: int = 300

    @classmethod
    def from_dict(cls, given: dict[str, Any] | None) -> CuttingPlaneOptions:
        """Check what a user wrote into ``solver_options``."""
        given, known = given or {}, [field.name for field in fields(cls)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise ValueError(f"solver_options has unknown keys {unknown}; allowed are {known}.")
        for key, value in given.items():
            number = isinstance(value, Real) and not isinstance(value, bool)
            if key == "init":
                right, what = not isinstance(value, str) or value in STARTS, f"{', '.join(STARTS)} or labels"
            elif key == "reduced":
                right, what = value in REDUCED, " or ".join(REDUCED)
            elif key.startswith("max_"):
                least = int(key == "max_level_steps")
                right = number and isinstance(value, Integral) and int(value) >= least
                what = f"a whole number >= {least}"
            else:
                right, what = number and float(value) >= 0, "a number >= 0"
            if not right:
                raise ValueError(f"solver_options[{key!r}]={value!r} must be {what}.")
        return cls(**given)


@dataclass(frozen=True)
class Relaxation:
    """The solution of the relaxed problem; rows sorted by task."""

    codes: Array  # Ỹ = Σ_k μ_kY_k, N × C
    weights: list[Array]  # μ of every task
    start: NDArray[np.int64]
    scores: Array  # F, the fitted values of Ỹ
    value: float
    lower_bound: float  # of the relaxed optimum
    n_cuts: int

    @property
    def n_ties(self) -> int:
        """Rows whose two highest scores are the same."""
        if self.scores.shape[1] < 2:
            return 0
        highest = np.sort(self.scores, axis=1)[:, -2:]
        return int(np.count_nonzero(highest[:, 1] - highest[:, 0] <= _TIE))

    @property
    def collapsed(self) -> bool:
        n, n_clusters = self.codes.shape
        return n_clusters > 1 and (shrinkage(self.codes) < _VANISHING or self.n_ties > _TIED * n)


def shrinkage(codes: Array) -> float:
    """‖Ỹ‖/‖Y‖: 1 for integer labels, 0 where nothing is left of them."""
    n, n_clusters = codes.shape
    return float(np.linalg.norm(codes) / np.sqrt(n * n_clusters / max(n_clusters - 1, 1)))


def warn_if_collapsed(relaxation: Relaxation, init: Any) -> None:
    """Say with figures that the relaxed labels carry no information any more."""
    if not relaxation.collapsed:
        return
    named = repr(init) if isinstance(init, str) else "the given labels"
    warn_user(
        f"The convex relaxation has collapsed: after {relaxation.n_cuts} cuts the relaxed labels have "
        f"|Ỹ| = {shrinkage(relaxation.codes):.3g} |Y|, {relaxation.n_ties} of {len(relaxation.codes)} rows are tied "
        f"between clusters, and the objective is {relaxation.value:.3g}. Where all clusters have the same size bounds "
        f"the optimum is Ỹ = 0, which says nothing about clusters: labels_ depend on the start ({named}) and on where "
        'the run was stopped. Use the default, solver="exchange"; a smaller max_cuts keeps more of the start.',
        DegenerateSolutionWarning,
    )


def solve_cutting_plane(problem: Problem, options: CuttingPlaneOptions, rng: np.random.Generator) -> Outcome:
    """Cutting planes from the start until the gap closes or ``max_cuts`` is reached."""
    coupling = problem.coupling
    if coupling.learns and not np.all(problem.lambda1 > 0):
        raise ValueError(
            f"lambda1={problem.lambda1.tolist()}: cutting planes that learn a coupling need lambda1 > 0 in all tasks; "
            "without it the dual is not smooth."
        )
    labels = starting_labels(problem, options.init, rng)
    n_clusters, sizes = problem.n_clusters, np.diff(problem.offsets)
    pools = Pools(problem.offsets, label_codes(labels, n_clusters))
    largest = problem.n_tasks * n_clusters / max(n_clusters - 1, 1)
    zero, enough = _ZERO * largest, max(_ZERO, options.zero_tol) * largest
    # cuts of smaller pools are carried on to larger ones
    solve = partial(solve_by_levels, cuts=[]) if options.reduced == "level" else solve_mixture
    mu = np.ones(problem.n_tasks)
    at: Conditioned = coupling.condition(coupling.uncoupled())
    lower, tolerance = 0.0, options.level_tol  # J is a sum of squares
    history: dict[int, dict[str, Any]] = {}
    n_cuts = 0
    while True:
        with phase(f"cut {n_cuts} of {options.max_cuts}"):
            best = solve(
                coupling, pools, mu, at, tol=tolerance, accuracy=0.5 * zero, enough=enough, lower=lower,
                max_steps=options.max_level_steps,
            )  # fmt: skip
        mu, at = best.mu, best.at
        violated = label_codes(most_violated(best.alpha, problem.offsets, problem.bounds), n_clusters)
        lower = min(max(lower, best.bound(violated)), best.value)
        codes = pools.codes(mu)
        codes[np.abs(codes) < _ZERO] = 0.0  # at Ỹ = 0 all scores are tied; the signs of rounding are no labels
        scores = codes - 0.5 * np.repeat(sizes, sizes)[:, None] * at.alpha(codes)  # F = Ỹ − (n_i/2)MỸ
        history[n_cuts] = {
            "stage": "cutting planes",
            "step": f"cut {n_cuts}",
            "objective": best.value,
            "lower_bound": lower,
            "gap": best.value - lower,
            "pool_bound": best.lower,
            "pool_sizes": pools.sizes,
            "shrinkage": shrinkage(codes),
            "level_steps": len(best.values),
            "labels": np.argmax(scores, axis=1),
        }
        converged = best.value <= enough or best.value - lower <= max(options.gap_tol * best.value, zero)
        if converged or n_cuts == options.max_cuts:
            break
        grown = pools.add(violated, mu)
        if grown is not None:
            mu, n_cuts = grown, n_cuts + 1
        elif best.converged and tolerance > _SHARPEST:
            # no labelling outside the pools is violated, their lower bound holds for the hull: the rest of the gap is
            # that of μ
            tolerance = _SHARPEST
        else:
            break
    relaxation = Relaxation(codes, pools.split(mu), labels, scores, best.value, lower, n_cuts)
    found = history[n_cuts]["labels"]
    _, similarity = match_labels(problem.kernel, problem.offsets, found, problem.bounds)
    point = Point(Fit(found, at, problem.bounds), best.value, list(history.values()), converged, n_cuts, codes)
    single = replace(point, fit=Fit(labels, at, problem.bounds)) if coupling.learns else point
    return Outcome(problem, point, single, similarity, relaxation=relaxation)


def most_violated(alpha: Array, offsets: Labels, bounds: SizeBounds) -> Labels:
    """argmin_Y ⟨αⁱ, Y⟩ over Bⁱ of every task, as labels of all rows."""
    parts = zip(offsets[:-1], offsets[1:], bounds.lower, bounds.upper)
    return np.concatenate([assign(alpha[a:b], lower, upper) for a, b, lower, upper in parts])


def starting_labels(problem: Problem, init: Any, rng: np.random.Generator) -> Labels:
    """Labels of the sorted rows within the size bounds; ``init`` names a method or holds labels."""
    if not isinstance(init, str):
        return _checked(np.asarray(init), problem)
    parts, C = [], problem.n_clusters
    for task in range(problem.n_tasks):
        rows = problem.coupling.slices[task]
        lower, upper = problem.bounds.lower[task], problem.bounds.upper[task]
        block = problem.kernel[rows, rows]
        n = len(block)
        if init == "random" or n <= C:
            parts.append(random_labels(n, lower, upper, rng))
            continue
        if init == "k-means":
            points = eigen_features(block).values
        else:  # the leading eigenvectors of the kernel centred within the task: the relaxed labels of largest norm
            means = block.mean(axis=0)
            centred = block - means - means[:, None] + means.mean()
            points = largest_eigenvectors(centred, max(1, C - 1))[1]
        kmeans = KMeans(C, n_init=10, random_state=int(rng.integers(2**31 - 1)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters: may be poor
            distances = np.asarray(kmeans.fit_transform(points))
        parts.append(assign(distances**2, lower, upper))
    return match_labels(problem.kernel, problem.offsets, np.concatenate(parts), problem.bounds)[0]


def _checked(labels: NDArray[Any], problem: Problem) -> Labels:
    """Given labels, one per row, whole numbers within the size bounds."""
    C, offsets, bounds = problem.n_clusters, problem.offsets, problem.bounds
    whole = np.isin(labels, np.arange(C))
    if labels.shape != (offsets[-1],) or not whole.all():
        raise ValueError(
            f"solver_options['init'] must hold one label per row, {offsets[-1]} whole numbers from 0 to {C - 1}; got "
            + (f"the shape {labels.shape}." if whole.all() else f"{labels[~whole].tolist()[0]!r}.")
        )
    for task, counts in enumerate(counts_by_task(labels.astype(np.int64), offsets, C)):
        if not bounds.respects(task, counts):
            raise ValueError(
                f"solver_options['init'] gives the {task + 1}. task the cluster sizes {counts.tolist()}, which are not "
                f"between {bounds.lower[task].tolist()} and {bounds.upper[task].tolist()}; change the labels or sizes=."
            )
    return labels.astype(np.int64)
