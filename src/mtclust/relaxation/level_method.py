r"""The extended level method, the paper's own way to solve its reduced problem: ``{"reduced": "level"}``.

Every evaluation of Φ at weights μ_s, a supervised problem for fixed Ỹ, gives an upper bound and a cut
Φ(μ) ≥ k_s + ⟨a_s, μ⟩ with k_s = −Φ*(α_s) and a_s the products ⟨α_s, Y_k⟩. One step:

.. math:: \underline\Phi = \min_{\mu}\max_s\, k_s + \langle a_s,\mu\rangle, \quad
          \overline\Phi = \min_s \Phi(\mu_s), \quad
          \mu_{t+1} = \mathrm{argmin}\big\{\|\mu-\mu_t\|^2 :
          k_s + \langle a_s,\mu\rangle \le \underline\Phi + \ell(\overline\Phi - \underline\Phi)\ \forall s\big\}

The lower bound is a linear program (HiGHS, in SciPy), the projection a quadratic one. Neither solver is trusted: μ is
put back on the simplices, and the lower bound is computed anew from the program's multipliers, for which any weights
give a valid one.

References
----------
Lemaréchal, Nemirovskii, Nesterov, "New variants of bundle methods", Math. Programming 69, 1995.
Xu, Jin, King, Lyu, "An extended level method for efficient multiple kernel learning", NIPS 2008.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import linprog, nnls

from mtclust.core.coupling import BaseCoupling, Conditioned
from mtclust.relaxation.mixtures import Pools, Solution, on_simplices, solve_mixture, sums_of

Array = NDArray[np.float64]
#: α_s and Φ*(α_s): a cut of Φ on any pools
Cut = tuple[Array, float]

#: ℓ, where between the bounds the level lies; as in the extended level method, and a third of the steps of ℓ = .3
LEVEL = 0.9
#: share of the distance between level and upper bound that an evaluation may be inexact by: a cut that lies below the
#: level at its own point cuts nothing off
_INEXACTNESS = 0.2
#: what is below this in the solution of a program is rounding
_ROUNDING = 1e-9


def solve_by_levels(
    coupling: BaseCoupling, pools: Pools, mu: Array, at: Conditioned, *, cuts: list[Cut], tol: float = 0.0,
    accuracy: float = 0.0, enough: float = -np.inf, lower: float = -np.inf, max_steps: int = 300,
) -> Solution:  # fmt: skip
    """What :func:`~mtclust.relaxation.mixtures.solve_mixture` finds, by the level method.

    ``cuts`` holds those that are known, also of smaller pools, and in the end those that carry the lower bound.
    """
    bundle, values, converged = list(cuts), list[float](), False
    best_mu, best_at, best, inexactness = mu, at, np.inf, np.inf
    slopes = [pools.slopes(alpha) for alpha, _ in cuts]
    for _ in range(max_steps):
        fixed = Pools(coupling.offsets, pools.codes(mu))
        found = solve_mixture(coupling, fixed, np.ones(len(pools.rows)), at, accuracy=inexactness)
        at = found.at  # where the next search for Z begins
        bundle.append((found.alpha, found.conjugate))
        slopes.append(pools.slopes(found.alpha))
        if found.value < best:
            best_mu, best_at, best = mu, at, found.value
        scale = max(best, np.finfo(float).tiny)
        A, k = np.stack(slopes) / scale, np.array([-conjugate for _, conjugate in bundle]) / scale
        lowest_mu, weights, bound = _lower_bound(A, k, pools.groups)
        # rounding alone can put a bound that is attained above the value
        lower = min(max(lower, bound * scale), best)
        gap = best - lower
        values.append(best)
        converged = gap <= max(tol * best, accuracy) or best <= enough
        if converged:
            break
        inexactness = _INEXACTNESS * (1 - LEVEL) * gap
        projected = _project(mu, A, k, pools.groups, (lower + LEVEL * gap) / scale)
        mu = lowest_mu if projected is None else projected
    carrying = np.flatnonzero(weights > _ROUNDING)
    weights = weights[carrying] / weights[carrying].sum()
    cuts[:] = [bundle[s] for s in carrying]
    # the mixture of the cuts that carries the lower bound is a cut
    alpha = np.tensordot(weights, np.stack([alpha for alpha, _ in cuts]), axes=1)
    conjugate = float(weights @ np.array([conjugate for _, conjugate in cuts]))
    return Solution(best, best_mu, best_at, alpha, conjugate, lower, tuple(values), converged)


def _lower_bound(A: Array, k: Array, groups: NDArray[np.int64]) -> tuple[Array, Array, float]:
    """Minimum of the largest cut: where, with which weights of the cuts, and its certified value."""
    n_cuts, n = A.shape
    sums = sums_of(groups)
    found = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=np.hstack([A, -np.ones((n_cuts, 1))]),
        b_ub=-k,
        A_eq=np.hstack([sums, np.zeros((len(sums), 1))]),
        b_eq=np.ones(len(sums)),
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
        options={"presolve": False},  # takes longer than it saves
    )
    if found.x is None:  # the program is always feasible and bounded; the last cut alone is a bound, too
        weights = np.append(np.zeros(n_cuts - 1), 1.0)
        mu = np.ones(n)
    else:
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        mu = found.x[:n]
    weights /= weights.sum()
    lowest = np.where(sums > 0, weights @ A, np.inf).min(axis=1)
    return on_simplices(mu, groups), weights, float(weights @ k + lowest.sum())


def _project(mu: Array, A: Array, k: Array, groups: NDArray[np.int64], level: float) -> Array | None:
    """The point nearest to μ where no cut exceeds the level; None where the solver gives up.

    In coordinates y along the simplices this is the shortest y with Gy ≥ h: least distance programming, by nonnegative
    least squares (Lawson and Hanson, "Solving least squares problems", 1974, chapter 23).
    """
    along = sla.null_space(sums_of(groups))
    G, h = np.vstack([np.eye(len(mu)), -A]) @ along, np.concatenate([-mu, A @ mu + k - level])
    E, f = np.vstack([G.T, h]), np.append(np.zeros(along.shape[1]), 1.0)
    try:
        residual = E @ nnls(E, f)[0] - f
    except RuntimeError:  # too many steps
        return None
    if residual[-1] > -_ROUNDING:  # −1/(1 + |y|²) otherwise
        return None
    return on_simplices(mu - along @ residual[:-1] / residual[-1], groups)
