r"""The reduced problem, the paper's (30) and (31): weights μ of given labellings, models W and coupling matrix Z.

With Ỹ(μ) = Σ_k μ_kY_k, one simplex of weights per task, the models eliminated and Z fixed,

.. math:: \Phi(\mu, Z) = \tfrac12\sum_{kl}\mu_k\mu_l\,\langle Y_k, M(Z)Y_l\rangle

is a quadratic in μ: a small program, solved exactly by an active set. For fixed μ two steps in Z are known:

- the closed form, Ω ∝ (Σ_c W_cᵀW_c)^½ or D ∝ (Σ_c W_cW_cᵀ)^½, the minimiser of J(Ỹ, W, Z) for the models W of the
  present Z: the paper's printed update. Φ never rises, but it can stop short: a direction whose eigenvalue of Z is zero
  gets no weight in W and never comes back, and after one step D has at most m(C−1) directions of r
- the water-filling Z of the dual, below, which revives directions. On the labellings that have weight the dual problem
  is smooth,

  .. math:: \max_\alpha\; \langle\alpha, \tilde Y\rangle - \Phi^*(\alpha) \quad\text{where}\quad
            \langle\alpha^i, Y_k\rangle \text{ is the same for all } k \text{ of task } i \text{ with } \mu_k > 0,

  and α = MỸ of an optimal μ obeys these equations. So L-BFGS goes on from there in z, α = Lz, LLᵀ = M(Z), with the
  gradient projected on them: labellings and coupling are found together

Both take turns with the program in μ; a Z that does not lower Φ is not kept. With one labelling per task, whatever it
is, μ = 1 and this is the paper's innermost problem for fixed Ỹ.

A lower bound comes from any dual variable α. With the models eliminated, Φ(Ỹ) = min_Z ½tr(ỸᵀM(Z)Ỹ) is convex and for
every α

.. math:: \Phi(\tilde Y) \ge \langle\alpha, \tilde Y\rangle - \Phi^*(\alpha), \quad
          \Phi^*(\alpha) = \tfrac12\Big[\tfrac12\sum_j n_{t(j)}\|\alpha_j\|^2 + \max_Z \mathrm{tr}(G(Z)B)\Big],

B = Σ_c αⁱ_cᵀK_ikαᵏ_c (m × m) for DMTRC and Σ_{i,c} φ(αⁱ_c)φ(αⁱ_c)ᵀ (r × r) for DMTFC, with eigenvalues b_k. The
maximum is found by water-filling: Z has the eigenvectors of B and the eigenvalues

.. math:: \omega_k = \big[(\sqrt{b_k\lambda_2/\nu} - \lambda_2)/\lambda_1\big]_+, \quad \sum_k\omega_k = 1.

Equality holds at α = M(Z)Ỹ with the optimal Z. Nothing here depends on how α was found, so a bound that was computed
from an inexact α is still a bound. Where λ₁ differs by task, tr(G(Z)B), for DMTFC Σ_i tr(G_i(D)B_i) with B_i the part
of task i in B, is concave in Z but has no closed maximum; it is searched, and the tangent at the Z that was found is a
bound from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

from mtclust.core.coupling import (
    BaseCoupling,
    Conditioned,
    Independent,
    Relationship,
    SharedFeatures,
    gain_matrix,
)

Array = NDArray[np.float64]

#: share of I in the Z from which the maximum for unequal λ₁ is searched: directions without weight would get none
_EVEN = 0.1
#: a way to find Z is given up when a step leaves more than this share of the gap: the closed form for the dual ascent,
#: and this for one that is sharper
_WORTHWHILE = 0.5
#: L-BFGS ends when a step gains less than this share of the gap that is wanted; a sharper ascent, of that of the last
_ASCENT = 0.01
#: relative differences below this are rounding
_ROUNDING = 1e-14


class Conjugate(NamedTuple):
    """Φ*(α); its gradient (Λ/2 + K_Z)α, the labels for which α is optimal; and the Z that attains it."""

    value: float
    gradient: Array
    Z: Array


def water_fill(b: Array, lambda1: float, lambda2: float) -> tuple[Array, float]:
    """Maximise Σ b_k ω_k/(λ₁ω_k + λ₂) over ω ≥ 0, Σω = 1; returns ω and the maximum.

    With p eigenvalues above water, λ₁ω_k + λ₂ = t√b_k and t = (λ₁ + pλ₂)/Σ_{k≤p}√b_k: no search for ν is needed.
    """
    roots = np.sqrt(np.maximum(b, 0.0))
    order = np.argsort(-roots, kind="stable")
    if roots[order[0]] == 0.0:
        return np.full(len(b), 1.0 / len(b)), 0.0
    totals = np.cumsum(roots[order])
    counts = np.arange(1, len(b) + 1)
    p = int(np.count_nonzero(roots[order] * (lambda1 + counts * lambda2) > lambda2 * totals))
    t = (lambda1 + p * lambda2) / totals[p - 1]
    omega = np.maximum(roots * t - lambda2, 0.0) / lambda1
    omega[order[p:]] = 0.0
    omega /= omega.sum()
    return omega, float(np.sum(b * omega / (lambda1 * omega + lambda2)))


def conjugate(coupling: BaseCoupling, alpha: Array) -> Conjugate:
    """Φ*(α) with its gradient, by one pass over the kernel or the features."""
    maximum, scores, Z = _MAXIMA[type(coupling)](coupling, alpha)
    ridge = 0.5 * np.repeat(coupling.sizes, coupling.sizes)[:, None] * alpha
    return Conjugate(0.5 * (float(np.vdot(alpha, ridge)) + maximum), ridge + scores, Z)


def _of_relationship(coupling: Any, alpha: Array) -> tuple[float, Array, Array]:
    parts = [coupling.kernel[:, rows] @ alpha[rows] for rows in coupling.slices]
    starts = coupling.offsets[:-1]
    B = np.stack([np.add.reduceat(np.einsum("nc,nc->n", alpha, part), starts) for part in parts], axis=1)
    B = 0.5 * (B + B.T)
    b, U = sla.eigh(B)
    lambda1, lambda2, equal = coupling.lambda1, coupling.lambda2, not np.ptp(coupling.lambda1)
    omega, maximum = water_fill(b, lambda1[0] if equal else lambda1.mean(), lambda2)
    Z = (U * omega) @ U.T
    if not equal:
        Z, maximum = _searched_maximum(B[None], Z, lambda1[None], lambda2)
    by_row = np.repeat(gain_matrix(Z, lambda1, lambda2), coupling.sizes, axis=0)
    return maximum, sum((by_row[:, [k]] * part for k, part in enumerate(parts)), np.zeros_like(alpha)), Z


def _searched_maximum(B: Array, Z: Array, lambda1: Array, lambda2: float) -> tuple[Array, float]:
    """max_Z Σ_k tr(G_k(Z)B_k) for several λ₁: Z = RRᵀ/|R|², R by L-BFGS; the maximum from above, by the tangent at Z.

    With T_k = (diag(λ₁ₖ)Z + λ₂I)⁻¹ the gradient is λ₂Σ_k T_kB_kT_kᵀ, and no Z of trace 1 is higher than its largest
    eigenvalue. B and λ₁ have one row per G.
    """
    m, scale = len(Z), max(float(np.trace(B.sum(axis=0))), np.finfo(float).tiny)

    def value_and_slope(Z: Array) -> tuple[float, Array]:
        T = np.linalg.inv(lambda1[:, :, None] * Z + lambda2 * np.eye(m))
        slope = (T @ B @ T.transpose(0, 2, 1)).sum(axis=0)
        return float(np.sum((Z @ T) * B)) / scale, lambda2 * slope / scale

    def negative(flat: Array) -> tuple[float, Array]:
        R, square = flat.reshape(m, m), float(flat @ flat)
        value, slope = value_and_slope(R @ R.T / square)
        inner = float(np.sum(slope * (R @ R.T))) / square
        return -value, (-2.0 / square * (slope @ R - inner * R)).ravel()

    values, vectors = sla.eigh((1 - _EVEN) * Z + _EVEN / m * np.eye(m))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    R = minimize(negative, root.ravel(), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}).x
    Z = R.reshape(m, m) @ R.reshape(m, m).T / float(R @ R)
    value, slope = value_and_slope(Z)
    return Z, scale * (value + float(sla.eigh(slope, eigvals_only=True)[-1]) - float(np.sum(slope * Z)))


def _of_shared_features(coupling: Any, alpha: Array) -> tuple[float, Array, Array]:
    Phi, C, lambda1, lambda2 = coupling.features.values, alpha.shape[1], coupling.lambda1, coupling.lambda2
    equal = not np.ptp(lambda1)
    A = np.concatenate([Phi[rows].T @ alpha[rows] for rows in coupling.slices], axis=1)
    # B = AAᵀ has at most mC eigenvalues that are not zero; the others stay under water
    U, s, _ = sla.svd(A, full_matrices=False)
    omega, maximum = water_fill(s**2, lambda1[0] if equal else lambda1.mean(), lambda2)
    inner, D = U.T @ A, (U * omega) @ U.T
    models = (U * (omega / (lambda1[0] * omega + lambda2))) @ inner
    if not equal:  # D needs no direction outside U: mirrored there, every B_i is the same
        parts = inner.reshape(len(s), -1, C).transpose(1, 0, 2)
        ridges = np.repeat(lambda1[:, None], len(s), axis=1)
        Z, maximum = _searched_maximum(parts @ parts.transpose(0, 2, 1), np.diag(omega), ridges, lambda2)
        models = U @ np.concatenate([gain_matrix(Z, ridge, lambda2) @ part for ridge, part in zip(lambda1, parts)], 1)
        D = U @ Z @ U.T
    scores = np.concatenate([Phi[rows] @ models[:, i * C : (i + 1) * C] for i, rows in enumerate(coupling.slices)])
    return maximum, scores, D


def _of_independent(coupling: Any, alpha: Array) -> tuple[float, Array, Array]:
    pieces = coupling.kernels(None)
    scores = np.concatenate([K @ alpha[rows] for rows, K in pieces])
    return float(np.vdot(alpha, scores)), scores, coupling.uncoupled()


#: max_Z tr(G(Z)B), K_Zα and the Z of the maximum; another coupling is solved with a line here
_MAXIMA = {Relationship: _of_relationship, SharedFeatures: _of_shared_features, Independent: _of_independent}


class Pools:
    """Labellings of every task, as codes: the first of each, to begin with."""

    def __init__(self, offsets: NDArray[np.int64], codes: Array) -> None:
        self.rows = [slice(int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:])]
        self._shape = codes.shape
        self.members = [codes[part].reshape(1, -1) for part in self.rows]  # row k is Y_k of a task, flattened

    @property
    def sizes(self) -> list[int]:
        return [len(members) for members in self.members]

    @property
    def groups(self) -> NDArray[np.int64]:
        """The task each weight belongs to."""
        return np.repeat(np.arange(len(self.members)), self.sizes)

    def split(self, mu: Array) -> list[Array]:
        """The weights of every task."""
        return np.split(mu, np.cumsum(self.sizes)[:-1])

    def codes(self, mu: Array) -> Array:
        """Ỹ = Σ_k μ_kY_k."""
        return np.concatenate([w @ Y for w, Y in zip(self.split(mu), self.members)]).reshape(self._shape)

    def slopes(self, alpha: Array) -> Array:
        """⟨αⁱ, Yⁱ_k⟩ of every labelling."""
        return np.concatenate([Y @ alpha[part].ravel() for part, Y in zip(self.rows, self.members)])

    def bound(self, alpha: Array, conjugate: float) -> float:
        """Σ_i min_k ⟨αⁱ, Yⁱ_k⟩ − Φ*(α): no mixture has a lower value."""
        return sum(float(slopes.min()) for slopes in self.split(self.slopes(alpha))) - conjugate

    def gram(self, at: Conditioned) -> Array:
        """⟨Y_k, MY_l⟩ of all pairs of labellings."""
        columns = []
        for task, (part, Y) in enumerate(zip(self.rows, self.members)):
            side_by_side = Y.T.reshape(part.stop - part.start, -1)
            P = at.alpha_after(np.zeros((self._shape[0], side_by_side.shape[1])), task, side_by_side)
            columns.append(np.concatenate([X @ P[r].reshape(X.shape[1], -1) for X, r in zip(self.members, self.rows)]))
        H = np.concatenate(columns, axis=1)
        return 0.5 * (H + H.T)

    def add(self, codes: Array, mu: Array) -> Array | None:
        """Add one labelling per task, those that are new; returns μ with zeros for them, None if none was."""
        weights, grown = self.split(mu), False
        for task, part in enumerate(self.rows):
            labelling = codes[part].reshape(1, -1)
            if not np.any(np.all(self.members[task] == labelling, axis=1)):
                self.members[task] = np.vstack([self.members[task], labelling])
                weights[task] = np.append(weights[task], 0.0)
                grown = True
        return np.concatenate(weights) if grown else None


@dataclass(frozen=True)
class Solution:
    """Weights, models and coupling, with bounds on both sides."""

    value: float  # ½⟨Ỹ, M(Z)Ỹ⟩ ≥ Φ(Ỹ)
    mu: Array
    at: Conditioned  # the problem for the Z that was found
    alpha: Array  # N × C, the dual variable that certifies the lower bound
    conjugate: float  # Φ*(α): Φ(Y) ≥ ⟨α, Y⟩ − Φ*(α) for all Y
    lower: float  # no mixture of the labellings has a lower value
    values: tuple[float, ...]  # after every step; never rises
    converged: bool  # whether the bounds came as close as was wanted

    def bound(self, codes: Array) -> float:
        """The certified lower bound of Φ at any label codes."""
        return float(np.vdot(self.alpha, codes)) - self.conjugate


def smallest_mixture(H: Array, groups: NDArray[np.int64], mu: Array) -> Array:
    """Minimise ½μᵀHμ over weights ≥ 0 that sum to 1 within every group, by an active set from ``mu`` on."""
    sums = sums_of(groups)  # Aμ = 1
    scale = float(np.mean(np.diag(H))) or 1.0
    P = H / scale + sums.T @ sums  # AᵀA adds a constant and makes P definite where H is along the simplices
    P.flat[:: len(P) + 1] += _ROUNDING
    support = mu > 0
    for _ in range(10 * len(mu)):  # finite; every pass adds or drops a labelling
        S = np.flatnonzero(support)
        A = sums[:, S]
        factor, info = lapack.dpotrf(P[np.ix_(S, S)], lower=0)
        if info != 0:
            break
        X = lapack.dpotrs(factor, A.T, lower=0)[0]
        target = X @ np.linalg.solve(A @ X, np.ones(len(A)))  # the minimum where only sums are kept
        now = mu[S]
        if target.min() < 0:  # go as far as the first weight that becomes zero, and drop it
            steps = np.where(target < 0, now / np.maximum(now - target, np.finfo(float).tiny), np.inf)
            mu = mu.copy()
            mu[S] = np.where(steps > steps.min(), now + steps.min() * (target - now), 0.0)
            support[S[steps <= steps.min()]] = False
            continue
        mu = np.zeros_like(mu)
        mu[S] = target
        gradient = H @ mu
        multipliers = sums @ (mu * gradient)
        violation = sums * np.minimum(gradient - multipliers[groups] + _ROUNDING * scale, 0.0)
        violation[:, support] = 0.0
        worst = violation.argmin(axis=1)[violation.min(axis=1) < 0]  # one labelling of every group
        if len(worst) == 0:
            break
        support[worst] = True
    return on_simplices(mu, groups)


def sums_of(groups: NDArray[np.int64]) -> Array:
    """One row per group, 1 at its weights."""
    return (groups == np.arange(groups.max() + 1)[:, None]).astype(np.float64)


def on_simplices(mu: Array, groups: NDArray[np.int64]) -> Array:
    """Remove the rounding of a solver: weights at least 0, sums exactly 1."""
    mu = np.maximum(mu, 0.0)
    return mu / np.bincount(groups, weights=mu)[groups]


def solve_mixture(
    coupling: BaseCoupling, pools: Pools, mu: Array, at: Conditioned, *, tol: float = 0.0, accuracy: float = 0.0,
    enough: float = -np.inf, lower: float = -np.inf, max_steps: int = 300,
) -> Solution:  # fmt: skip
    """Minimise Φ over μ and Z, from the μ given and the Z of ``at``.

    It ends at a certified gap of ``tol`` times the value or of ``accuracy``, at a value of ``enough``, or where no step
    is worthwhile; the bounds hold in any case. ``lower`` is a bound that is known beforehand.
    """
    best: Conditioned = at
    best_mu, value, values = mu, np.inf, list[float]()
    highest = -np.inf, np.zeros(0), np.inf  # the highest lower bound, its α and Φ*(α)
    gap = np.inf
    ascent_tol, ascending, converged = 0.0, False, False
    for _ in range(max_steps):
        new = smallest_mixture(pools.gram(at), pools.groups, best_mu)
        codes = pools.codes(new)
        alpha = at.alpha(codes)
        dual = conjugate(coupling, alpha)
        highest = max(highest, (pools.bound(alpha, dual.value), alpha, dual.value), key=itemgetter(0))
        reached = 0.5 * float(np.vdot(alpha, codes))
        if reached < value:
            best, best_mu, value = at, new, reached
            values.append(value)
        gap, before = value - max(lower, highest[0]), gap
        wanted = max(tol * value, accuracy, _ROUNDING * value)
        converged = gap <= wanted or value <= enough
        if converged or not coupling.learns:
            break
        if gap > _WORTHWHILE * before:
            if ascending:
                ascent_tol *= _ASCENT
            ascending = True
        if not ascending:
            at = coupling.condition(coupling.closed_form_of_rows(best, pools.codes(best_mu)))
            continue
        ascent_tol = ascent_tol or max(_ASCENT * wanted / value, _ROUNDING)
        if ascent_tol < _ROUNDING:
            break
        alpha, dual = _ascend(coupling, pools, best_mu, best, value, ascent_tol)
        highest = max(highest, (pools.bound(alpha, dual.value), alpha, dual.value), key=itemgetter(0))
        at = coupling.condition(dual.Z)
    # rounding alone can put a bound that is attained above the value
    lower = min(max(lower, highest[0]), value)
    return Solution(value, best_mu, best, *highest[1:], lower, tuple(values), converged)


def _ascend(
    coupling: BaseCoupling, pools: Pools, mu: Array, at: Conditioned, value: float, tol: float
) -> tuple[Array, Conjugate]:
    """Maximise the dual on the labellings that have weight, from α = MỸ; its α and Φ*."""
    codes = pools.codes(mu)
    factors = [(part, sla.cholesky(block, lower=True)) for part, block in at.pieces]

    def transposed(x: Array) -> Array:
        return np.concatenate([L.T @ x[part] for part, L in factors])

    def alpha_of(z: Array) -> Array:
        return np.concatenate([L @ z.reshape(codes.shape)[part] for part, L in factors])

    equal = []  # Lᵀ(Y_k − Y_0) of the labellings with weight: ⟨α, Y_k − Y_0⟩ = 0
    for weights, Y, part in zip(pools.split(mu), pools.members, pools.rows):
        used = Y[weights > 0]
        difference = np.zeros((len(codes), codes.shape[1] * (len(used) - 1)))
        difference[part] = (used[1:] - used[0]).T.reshape(part.stop - part.start, -1)
        equal.append(transposed(difference).reshape(codes.size, -1))
    Q = np.linalg.qr(np.concatenate(equal, axis=1))[0]

    def negative_dual(z: Array) -> tuple[float, Array]:
        alpha = alpha_of(z)
        dual = conjugate(coupling, alpha)
        slope = transposed(dual.gradient - codes).ravel()
        # L-BFGS takes changes below 1e-15 for none, and values fall by many orders of magnitude
        return (dual.value - float(np.vdot(alpha, codes))) / value, (slope - Q @ (Q.T @ slope)) / value

    start = transposed(codes).ravel()  # L⁻¹α = LᵀỸ
    options = {"maxcor": 15, "ftol": tol, "gtol": 0.0}
    alpha = alpha_of(minimize(negative_dual, start, jac=True, method="L-BFGS-B", options=options).x)
    return alpha, conjugate(coupling, alpha)
