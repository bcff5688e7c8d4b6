r"""The innermost problem, the paper's (31): models W and coupling matrix Z for fixed relaxed labels Ỹ.

Two steps alternate: W by ridge regression (through M(Z)), (32), and Z in closed form, Ω ∝ (Σ_c W_cᵀW_c)^½ or
D ∝ (Σ_c W_cW_cᵀ)^½. Each minimises J(Ỹ, W, Z) exactly in one of the two for fixed other, so J never rises. The closed
form is the minimiser for fixed **W**; alternating it with α, as the paper's (33) in section 6.3 reads, oscillates.

The alternation alone can stop short: a direction whose eigenvalue of Z is zero gets no weight in W and never comes
back, and after one step D has at most m(C−1) directions of r. The certificate of :mod:`mtclust.relaxation.certificate`
shows it. What is then left is closed by maximising the concave dual

.. math:: \max_\alpha\; \langle\alpha, \tilde Y\rangle - \Phi^*(\alpha), \quad \alpha = Lz,\; LL^T = M(Z),

by L-BFGS in z, where the current M(Z) makes it well conditioned. It ends with the water-filling Z, which can revive
directions; the step is taken only if J falls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import minimize

from mtclust.core.coupling import Conditioned, Coupling, Independent, RelationshipState
from mtclust.relaxation.certificate import Learned, conjugate

Array = NDArray[np.float64]

#: the alternation goes on while a step leaves at most this share of the gap; the dual ascent is quicker otherwise
_WORTHWHILE = 0.5
#: rounds of alternation and dual ascent; one is nearly always enough
_MAX_ROUNDS = 6
#: L-BFGS iterations of one dual ascent and pairs it remembers
_ASCENT_STEPS = 200
_MEMORY = 15
#: a relative gap below this is rounding
_ROUNDING = 1e-13


@dataclass(frozen=True)
class InnerSolution:
    """Models and coupling for fixed relaxed labels, with bounds on both sides.

    Attributes
    ----------
    value : float
        ½⟨Ỹ, M(Z)Ỹ⟩ ≥ Φ(Ỹ).
    alpha : ndarray of shape (N, C)
        The dual variable that certifies the lower bound.
    conjugate : float
        Φ*(α): Φ(Y) ≥ ⟨α, Y⟩ − Φ*(α) for all Y.
    at : Conditioned
        The problem for the Z that was found (``at.Z``).
    values : tuple of float
        The value at the start and after every step; never rises.
    """

    value: float
    alpha: Array
    conjugate: float
    at: Conditioned
    values: tuple[float, ...]

    def bound(self, codes: Array) -> float:
        """The certified lower bound of Φ at any label codes."""
        return float(np.vdot(self.alpha, codes)) - self.conjugate


def solve_inner(coupling: Coupling, codes: Array, at: Conditioned, accuracy: float) -> InnerSolution:
    """Minimise J over W and Z for fixed Ỹ, from the Z of ``at``, to a certified gap of ``accuracy``.

    The gap may stay larger where that is below rounding or the rounds are used up; the bounds hold all the same.
    """
    alpha = at.alpha(codes)
    value = 0.5 * float(np.vdot(alpha, codes))
    if isinstance(coupling, Independent):  # nothing to learn: M is fixed, α is exact
        return InnerSolution(value, alpha, value, at, (value,))
    accuracy = max(accuracy, _ROUNDING * value)
    point = _certified(coupling, alpha, at, value, (value,))
    for _ in range(_MAX_ROUNDS):
        point = _alternate(coupling, codes, point, accuracy)
        if _gap(point, codes) <= accuracy:
            break
        before = point
        point = _ascend(coupling, codes, point, accuracy)
        if _gap(point, codes) > _WORTHWHILE * _gap(before, codes):
            break
    return point


def _certified(
    coupling: Learned, alpha: Array, at: Conditioned, value: float, values: tuple[float, ...]
) -> InnerSolution:
    return InnerSolution(value, alpha, conjugate(coupling, alpha).value, at, values)


def _gap(point: InnerSolution, codes: Array) -> float:
    return point.value - point.bound(codes)


def _stepped(coupling: Learned, codes: Array, point: InnerSolution, Z: Array) -> InnerSolution:
    """The point with another Z if that lowers J, with the better of the two certificates."""
    at = coupling.condition(Z)
    alpha = at.alpha(codes)
    value = 0.5 * float(np.vdot(alpha, codes))
    if not value < point.value:
        return point
    new = _certified(coupling, alpha, at, value, (*point.values, value))
    if new.bound(codes) < point.bound(codes):
        return InnerSolution(value, point.alpha, point.conjugate, at, new.values)
    return new


def _alternate(coupling: Learned, codes: Array, point: InnerSolution, accuracy: float) -> InnerSolution:
    """Steps in W and in Z, while they are worth an inverse each."""
    gap = _gap(point, codes)
    while gap > accuracy:
        point = _stepped(coupling, codes, point, point.at.closed_form(codes))
        gap, before = _gap(point, codes), gap
        if gap > _WORTHWHILE * before:
            break
    return point


def _ascend(coupling: Learned, codes: Array, point: InnerSolution, accuracy: float) -> InnerSolution:
    """Maximise the dual over α, then take its water-filling Z."""
    factors = _Factors(coupling, point.at)
    scale = point.value  # L-BFGS takes changes below 1e-15 for none, and values fall by many orders of magnitude
    gap = np.inf

    def negative_dual(z: Array) -> tuple[float, Array]:
        nonlocal gap
        alpha = factors.times(z.reshape(codes.shape))
        conj = conjugate(coupling, alpha)
        dual = float(np.vdot(alpha, codes)) - conj.value
        misfit = np.sum((codes - conj.scores) ** 2, axis=1) / factors.task_sizes
        gap = conj.penalty + float(misfit.sum()) - dual  # J of the models of this α, against its own bound
        return -dual / scale, factors.transposed_times(conj.gradient - codes).ravel() / scale

    def stop(intermediate_result: Any) -> None:
        if gap <= _WORTHWHILE * accuracy:
            raise StopIteration

    start = factors.solve(point.alpha)
    options = {"maxiter": _ASCENT_STEPS, "maxcor": _MEMORY, "ftol": 1e-15, "gtol": 0.0}
    found = minimize(negative_dual, start.ravel(), jac=True, method="L-BFGS-B", callback=stop, options=options)
    alpha = factors.times(found.x.reshape(codes.shape))
    conj = conjugate(coupling, alpha)
    if float(np.vdot(alpha, codes)) - conj.value > point.bound(codes):
        point = InnerSolution(point.value, alpha, conj.value, point.at, point.values)
    return _stepped(coupling, codes, point, conj.Z)


class _Factors:
    """L with LLᵀ = M, one block or one per task."""

    def __init__(self, coupling: Learned, at: Conditioned) -> None:
        offsets = coupling.offsets
        if isinstance(at, RelationshipState):
            blocks, ends = [at.M], [0, int(offsets[-1])]
        else:
            blocks, ends = [at.block(i) for i in range(coupling.n_tasks)], offsets.tolist()
        self._factors = [sla.cholesky(block, lower=True) for block in blocks]
        self._rows = [slice(a, b) for a, b in zip(ends[:-1], ends[1:])]
        sizes = np.diff(offsets)
        self.task_sizes = np.repeat(sizes, sizes)

    def times(self, z: Array) -> Array:
        return np.concatenate([L @ z[rows] for L, rows in zip(self._factors, self._rows)])

    def transposed_times(self, x: Array) -> Array:
        return np.concatenate([L.T @ x[rows] for L, rows in zip(self._factors, self._rows)])

    def solve(self, alpha: Array) -> Array:
        """The z with Lz = α."""
        parts = zip(self._factors, self._rows)
        return np.concatenate([sla.solve_triangular(L, alpha[rows], lower=True) for L, rows in parts])
