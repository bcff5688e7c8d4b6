r"""The extended level method: minimise a convex Φ over a product of simplices from values and cuts.

Here Φ is the value of the paper's (31) and μ the weights of (30). Every evaluation at μ_s gives an upper bound and a
cut Φ(μ) ≥ k_s + ⟨a_s, μ⟩. One step:

.. math:: \underline\Phi = \min_{\mu}\max_s\, k_s + \langle a_s,\mu\rangle, \quad
          \overline\Phi = \min_s \Phi(\mu_s), \quad
          \mu_{t+1} = \mathrm{argmin}\big\{\|\mu-\mu_t\|^2 :
          k_s + \langle a_s,\mu\rangle \le \underline\Phi + \ell(\overline\Phi - \underline\Phi)\ \forall s\big\}

The lower bound is a linear program (HiGHS, in SciPy), the projection a quadratic one. Clarabel solves it: an
interior-point method, so that a projection comes with the eight digits that bounds need (operator splitting, as in
OSQP, gives three or four), Apache-licensed, kept up by its authors, and the default of cvxpy. Neither solver is
trusted: μ is put back on the simplices, and the lower bound is computed anew from the program's multipliers, for which
any weights give a valid one.

References
----------
Lemaréchal, Nemirovskii, Nesterov, "New variants of bundle methods", Math. Programming 69, 1995.
Xu, Jin, King, Lyu, "An extended level method for efficient multiple kernel learning", NIPS 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

Array = NDArray[np.float64]

#: ℓ, where between the bounds the level lies; as in the extended level method, and a third of the steps of ℓ = .3
LEVEL = 0.9
#: share of the distance between level and upper bound that an evaluation may be inexact by: a cut that lies below the
#: level at its own point cuts nothing off
_INEXACTNESS = 0.2
#: weights of cuts below this are rounding of the linear program
_WEIGHT = 1e-9


@dataclass(frozen=True)
class Cut:
    """Φ(μ) ≥ constant + ⟨slopes, μ⟩; ``source`` is whatever the cut was made from."""

    constant: float
    slopes: Array
    source: Any = None


@dataclass(frozen=True)
class Evaluation:
    """An upper bound of Φ at one μ and a cut that comes with it."""

    value: float
    cut: Cut


#: Φ: the weights μ and how inexact the value may be
Evaluate = Callable[[Array, float], Evaluation]


@dataclass(frozen=True)
class LevelStep:
    """The bounds after one step: the best value so far and the lower bound, which never cross."""

    upper: float
    lower: float


@dataclass(frozen=True)
class LevelResult:
    """The best weights found, their evaluation and the bounds of every step."""

    mu: Array
    best: Evaluation
    lower: float
    steps: list[LevelStep]
    cuts: list[Cut]  # those that carry the lower bound
    weights: Array  # how much each of them does; they sum to 1
    converged: bool


def minimise(
    evaluate: Evaluate,
    groups: NDArray[np.int64],
    mu: Array,
    *,
    cuts: Sequence[Cut] = (),
    tol: float = 1e-3,
    tol_absolute: float = 0.0,
    max_steps: int = 100,
    enough: float = -np.inf,
    lower: float = -np.inf,
    level: float = LEVEL,
) -> LevelResult:
    """Minimise Φ over weights that are at least 0 and sum to 1 within every group.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(mu, accuracy)``.
    groups : ndarray of shape (K,)
        The simplex each weight belongs to, 0, 1, ….
    mu : ndarray of shape (K,)
        Start.
    cuts : sequence of Cut
        Known cuts of the same Φ.
    tol, tol_absolute : float
        Stop when the bounds differ by less than ``tol`` times the upper one, or by ``tol_absolute``.
    enough : float
        Stop at a value that is no larger.
    lower : float
        A lower bound known beforehand.
    level : float
        ℓ.
    """
    bundle, steps = list(cuts), []
    best: Evaluation | None = None
    best_mu, converged = mu, False
    accuracy, weights = np.inf, np.zeros(0)
    for _ in range(max_steps):
        evaluation = evaluate(mu, accuracy)
        bundle.append(evaluation.cut)
        if best is None or evaluation.value < best.value:
            best, best_mu = evaluation, mu
        scale = max(abs(best.value), np.finfo(float).tiny)
        A = np.stack([cut.slopes for cut in bundle]) / scale
        k = np.array([cut.constant for cut in bundle]) / scale
        lowest_mu, weights, bound = _lower_bound(A, k, groups)
        # rounding alone can put a bound that is attained above the value
        lower = min(max(lower, bound * scale), best.value)
        gap = best.value - lower
        steps.append(LevelStep(best.value, lower))
        wanted = max(tol * abs(best.value), tol_absolute)
        if gap <= wanted or best.value <= enough:
            converged = True
            break
        accuracy = _INEXACTNESS * (1 - level) * gap
        projected = _project(mu, A, k, groups, (lower + level * gap) / scale)
        mu = lowest_mu if projected is None else projected
    assert best is not None
    carrying = np.flatnonzero(weights > _WEIGHT)
    weights = weights[carrying] / weights[carrying].sum()
    return LevelResult(best_mu, best, lower, steps, [bundle[s] for s in carrying], weights, converged)


def _lower_bound(A: Array, k: Array, groups: NDArray[np.int64]) -> tuple[Array, Array, float]:
    """Minimum of the largest cut: where, with which weights of the cuts, and its certified value."""
    n_cuts, n = A.shape
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([A, -np.ones((n_cuts, 1))]),
        b_ub=-k,
        A_eq=sp.hstack([_membership(groups), sp.csc_matrix((groups.max() + 1, 1))], format="csc"),
        b_eq=np.ones(groups.max() + 1),
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
    )
    if found.x is None:  # the program is always feasible and bounded; the last cut alone is a bound, too
        weights = np.zeros(n_cuts)
        weights[-1] = 1.0
        mu = np.full(n, 1.0)
    else:
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        mu = found.x[:n]
    weights /= weights.sum()
    slopes = weights @ A
    lowest = np.full(groups.max() + 1, np.inf)
    np.minimum.at(lowest, groups, slopes)
    return _on_simplices(mu, groups), weights, float(weights @ k + lowest.sum())


def _project(mu: Array, A: Array, k: Array, groups: NDArray[np.int64], level: float) -> Array | None:
    """The point nearest to μ where no cut exceeds the level; None where the solver gives up."""
    clarabel = _clarabel()
    n, n_groups = len(mu), int(groups.max()) + 1
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1  # the same digits on every machine
    solver = clarabel.DefaultSolver(
        sp.identity(n, format="csc"),
        -mu,
        sp.vstack([_membership(groups), -sp.identity(n), sp.csc_matrix(A)], format="csc"),
        np.concatenate([np.ones(n_groups), np.zeros(n), level - k]),
        [clarabel.ZeroConeT(n_groups), clarabel.NonnegativeConeT(n + len(k))],
        settings,
    )
    found = solver.solve()
    if found.status not in (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved):
        return None
    return _on_simplices(np.asarray(found.x), groups)


def _membership(groups: NDArray[np.int64]) -> Any:
    n = len(groups)
    return sp.csc_matrix((np.ones(n), (groups, np.arange(n))), shape=(int(groups.max()) + 1, n))


def _on_simplices(mu: Array, groups: NDArray[np.int64]) -> Array:
    """Remove the rounding of a solver: weights at least 0, sums exactly 1."""
    mu = np.maximum(mu, 0.0)
    return mu / np.bincount(groups, weights=mu)[groups]


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            'solver="cutting-plane" needs the package clarabel for its quadratic programs; '
            'install it with: pip install "mtclust[cutting-plane]"'
        ) from error
    return clarabel
