r"""The paper's own solver: cutting planes on the convex relaxation of the labels.

The set of allowed labellings Bⁱ of every task is replaced by its convex hull, Ỹⁱ = Σ_k μⁱ_kYⁱ_k (the paper's (18), (19)
and (21), (26)), and

.. math:: \min_{\tilde Y\in\prod_i\mathrm{conv}(B^i)} \Phi(\tilde Y), \quad
          \Phi(\tilde Y) = \min_Z \tfrac12\mathrm{tr}(\tilde Y^TM(Z)\tilde Y)

which is its (27), is solved with growing pools of labellings, (28):

1. the level method finds μ for the current pools, (30) (:mod:`mtclust.relaxation.level_method`); every evaluation of Φ
   is a supervised problem in (W, Z), (31) (:mod:`mtclust.relaxation.alternation`)
2. the most violated labelling of every task, min_Y ⟨αⁱ, Y⟩ over Bⁱ, (29), by exact assignment, enters its pool; α is
   the dual solution on the pools, the mixture of the level method's cuts that carries its lower bound
3. stop when the value and the lower bound −Φ*(α) + Σ_i min_Y⟨αⁱ, Y⟩ meet. At the optimal Z their difference is
   Σ_i(⟨αⁱ, Ỹⁱ⟩ − min_Y⟨αⁱ, Y⟩), which needs no pool

Labels are the argmax of f, as printed in the paper; their sizes may lie outside the bounds.

Where all clusters of a task have the same bounds, the mean of any labelling over all renamings of its clusters is
Ỹ = 0: the optimum is 0 and says nothing about clusters. See ``docs/convex_relaxation.md``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.alignment import align, groups_of_tasks
from mtclust.core.assignment import assign
from mtclust.core.coupling import Conditioned, Coupling, Independent
from mtclust.core.labels import SizeBounds, label_codes
from mtclust.problem.kernel_descent import KernelFit
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Point, SearchOptions
from mtclust.relaxation.alternation import InnerSolution, solve_inner
from mtclust.relaxation.level_method import Cut, Evaluation, LevelResult, minimise
from mtclust.relaxation.options import CuttingPlaneOptions, Relaxation, shrinkage
from mtclust.relaxation.starts import starting_labels
from mtclust.search.outcome import Outcome
from mtclust.util.progress import phase

Array = NDArray[np.float64]

#: the optimum counts as reached at this share of the largest value, mC/(C−1), that labels can have, or at ``zero_tol``
_ZERO = 1e-9
#: the level method becomes this much more exact when it, and not the pools, holds up the gap
_SHARPER = 0.1
#: and this is as exact as it gets
_SHARPEST = 1e-11


class Reduced:
    """Φ as a function of the mixture weights μ of growing pools of labellings."""

    def __init__(self, coupling: Coupling, bounds: SizeBounds, labels: NDArray[np.int64]) -> None:
        self.coupling, self.bounds = coupling, bounds
        self._rows = [slice(int(a), int(b)) for a, b in zip(coupling.offsets[:-1], coupling.offsets[1:])]
        self.pools = [labels[rows][None] for rows in self._rows]
        self._codes = [self._flat_codes(pool[0]) for pool in self.pools]  # row k is Y_k of a task, flattened
        self._at: Conditioned = coupling.condition(coupling.uncoupled())
        self.best: InnerSolution | None = None

    def _flat_codes(self, labels: NDArray[np.int64]) -> Array:
        return label_codes(labels, self.bounds.n_clusters).reshape(1, -1)

    @property
    def pool_sizes(self) -> list[int]:
        return [len(pool) for pool in self.pools]

    @property
    def groups(self) -> NDArray[np.int64]:
        """The task each weight belongs to."""
        return np.repeat(np.arange(len(self.pools)), self.pool_sizes)

    def split(self, mu: Array) -> list[Array]:
        """The weights of every task."""
        return np.split(mu, np.cumsum(self.pool_sizes)[:-1])

    def codes(self, mu: Array) -> Array:
        """Ỹ = Σ_k μ_kY_k."""
        parts = [weights @ codes for weights, codes in zip(self.split(mu), self._codes)]
        return np.concatenate(parts).reshape(-1, self.bounds.n_clusters)

    def slopes(self, alpha: Array) -> Array:
        """⟨αⁱ, Yⁱ_k⟩ of every labelling in the pools."""
        return np.concatenate([codes @ alpha[rows].ravel() for rows, codes in zip(self._rows, self._codes)])

    def evaluate(self, mu: Array, accuracy: float) -> Evaluation:
        """Φ(μ) from above, and the cut −Φ*(α) + ⟨α, Ỹ(μ)⟩; the search for Z begins at the last one."""
        solution = solve_inner(self.coupling, self.codes(mu), self._at, accuracy)
        self._at = solution.at
        if self.best is None or solution.value < self.best.value:
            self.best = solution
        return Evaluation(solution.value, self._cut(solution.alpha, solution.conjugate))

    def _cut(self, alpha: Array, conjugate: float) -> Cut:
        return Cut(-conjugate, self.slopes(alpha), alpha)

    def minimise(self, mu: Array, cuts: list[Cut], **options: Any) -> LevelResult:
        """The level method on the current pools, from weights whose value is the best so far."""
        if self.best is not None:
            self._at = self.best.at
        extended = [self._cut(cut.source, -cut.constant) for cut in cuts]
        return minimise(self.evaluate, self.groups, mu, cuts=extended, **options)

    def most_violated(self, alpha: Array) -> list[NDArray[np.int64]]:
        """argmin_Y ⟨αⁱ, Y⟩ over Bⁱ of every task."""
        bounds = zip(self.bounds.lower, self.bounds.upper)
        return [assign(alpha[rows], lower, upper) for rows, (lower, upper) in zip(self._rows, bounds)]

    def grow(self, labels: list[NDArray[np.int64]], mu: Array) -> Array | None:
        """Add labellings that are new; returns μ with zeros for them, None if none was."""
        weights, grown = self.split(mu), False
        for task, candidate in enumerate(labels):
            if not np.any(np.all(self.pools[task] == candidate, axis=1)):
                self.pools[task] = np.vstack([self.pools[task], candidate])
                self._codes[task] = np.vstack([self._codes[task], self._flat_codes(candidate)])
                weights[task] = np.append(weights[task], 0.0)
                grown = True
        return np.concatenate(weights) if grown else None


def solve_cutting_plane(
    problem: KernelProblem,
    options: CuttingPlaneOptions,
    search: SearchOptions,
    rng: np.random.Generator,
) -> Outcome:
    """Start, cutting planes, the same for every task alone (for comparison), and the exchange solver if wanted."""
    coupling = problem.coupling
    if not isinstance(coupling, Independent) and not (np.ptp(problem.lambda1) == 0 and problem.lambda1[0] > 0):
        raise ValueError(
            f"lambda1={problem.lambda1.tolist()}: cutting planes that learn a coupling need the same lambda1 > 0 in "
            "all tasks; the certificate knows no other, and without lambda1 the dual is not smooth."
        )
    labels = starting_labels(problem, options.init, rng)
    result = solve_relaxation(problem, coupling, labels, options)
    if not isinstance(coupling, Independent):
        independent = Independent(problem.kernel, problem.offsets, problem.ridge)
        result.single = solve_relaxation(problem, independent, labels, options).point
    return refined(problem, result, search, rng) if options.refine == "exchange" else result


def solve_relaxation(
    problem: KernelProblem, coupling: Coupling, labels: NDArray[np.int64], options: CuttingPlaneOptions
) -> Outcome:
    """Cutting planes from given labels until the gap closes or ``max_cuts`` is reached."""
    reduced = Reduced(coupling, problem.bounds, labels)
    n_clusters = problem.n_clusters
    largest = problem.n_tasks * n_clusters / max(n_clusters - 1, 1)
    zero, enough = _ZERO * largest, max(_ZERO, options.zero_tol) * largest
    mu, cuts = np.ones(problem.n_tasks), list[Cut]()
    lower, tolerance = 0.0, options.level_tol  # J is a sum of squares
    history: dict[int, dict[str, Any]] = {}
    n_cuts = 0
    while True:
        with phase(f"cut {n_cuts} of {options.max_cuts}"):
            level = reduced.minimise(
                mu, cuts, tol=tolerance, tol_absolute=0.5 * zero, enough=enough, max_steps=options.max_level_steps,
                lower=lower,
            )  # fmt: skip
        mu, cuts, best = level.mu, level.cuts, reduced.best
        assert best is not None
        alpha = sum((w * cut.source for w, cut in zip(level.weights, cuts)), np.zeros_like(best.alpha))
        violated = reduced.most_violated(alpha)
        lowest = float(np.vdot(alpha, label_codes(np.concatenate(violated), n_clusters)))
        bound = lowest + sum(w * cut.constant for w, cut in zip(level.weights, cuts))
        lower = min(max(lower, bound), best.value)
        codes = reduced.codes(mu)
        scores = _scores(problem, codes, best)
        history[n_cuts] = {
            "stage": "cutting planes",
            "step": f"cut {n_cuts}",
            "objective": best.value,
            "lower_bound": lower,
            "gap": best.value - lower,
            "pool_bound": level.lower,
            "pool_sizes": reduced.pool_sizes,
            "shrinkage": shrinkage(codes),
            "level_steps": len(level.steps),
            "labels": np.argmax(scores, axis=1),
        }
        converged = best.value <= enough or best.value - lower <= max(options.gap_tol * best.value, zero)
        if converged or n_cuts == options.max_cuts:
            break
        grown = reduced.grow(violated, mu)
        if grown is not None:
            mu, n_cuts = grown, n_cuts + 1
        elif level.converged and tolerance > _SHARPEST:
            # no labelling outside the pools is violated, their lower bound holds for the hull: the rest of the gap is
            # the level method's
            tolerance = max(_SHARPER * tolerance, _SHARPEST)
        else:
            break
    relaxation = Relaxation(codes, reduced.split(mu), reduced.pools, labels, scores, best.value, lower, n_cuts)
    found = history[n_cuts]["labels"]
    _, similarity = align(problem.kernel, problem.offsets, found, problem.bounds)
    point = Point(KernelFit(found, best.at, problem.bounds), best.value, list(history.values()), converged, n_cuts)
    groups = groups_of_tasks(similarity)
    return Outcome(problem, point, point, problem, point, point, similarity, groups, codes, relaxation)


def _scores(problem: KernelProblem, codes: Array, best: InnerSolution) -> Array:
    """F = Ỹ − (n_i/2)MỸ, the fitted values."""
    sizes = np.diff(problem.offsets)
    return codes - 0.5 * np.repeat(sizes, sizes)[:, None] * best.at.alpha(codes)


def refined(problem: KernelProblem, result: Outcome, search: SearchOptions, rng: np.random.Generator) -> Outcome:
    """Integer labels by the exchange solver's descent, from the labels of the relaxation put within the size bounds."""
    assert result.relaxation is not None
    parts = []
    for task in range(problem.n_tasks):
        cost = -result.relaxation.scores[problem.rows(task)]
        parts.append(assign(cost, problem.bounds.lower[task], problem.bounds.upper[task]))
    # Z of the relaxation may be singular, and directions without weight would not come back
    point = problem.point(np.concatenate(parts), problem.uncoupled())
    point = problem.descend(point, rng, search.effort("exchange from cutting planes"))
    point.history = result.point.history + point.history
    return replace(result, point=point, few_point=point, model_codes=None)
