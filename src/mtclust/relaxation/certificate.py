r"""A lower bound of the relaxed objective from any dual variable α.

With the models eliminated, Φ(Ỹ) = min_Z ½tr(ỸᵀM(Z)Ỹ) is convex and for every α

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

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.optimize import minimize

from mtclust.core.coupling import gain_matrix

Array = NDArray[np.float64]

#: share of I in the Z from which the maximum for unequal λ₁ is searched: directions without weight would get none
_EVEN = 0.1


class Conjugate(NamedTuple):
    """Φ*(α); its gradient (Λ/2 + K_Z)α, the labels for which α is optimal; and the Z that attains it."""

    value: float
    gradient: Array
    Z: Array


def water_fill(b: Array, lambda1: float, lambda2: float) -> tuple[Array, float]:
    """Maximise Σ b_k ω_k/(λ₁ω_k + λ₂) over ω ≥ 0, Σω = 1; returns ω and the maximum.

    With p eigenvalues above water, λ₁ω_k + λ₂ = t√b_k and t = (λ₁ + pλ₂)/Σ_{k≤p}√b_k: no search for ν is needed.

    Examples
    --------
    >>> omega, value = water_fill(np.array([4.0, 1.0, 0.01]), lambda1=1.0, lambda2=1.0)
    >>> omega, value
    (array([1., 0., 0.]), 2.0)
    >>> water_fill(np.array([4.0, 1.0, 0.01]), lambda1=4.0, lambda2=1.0)[0]
    array([0.75, 0.25, 0.  ])
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


def conjugate(coupling: Any, alpha: Array) -> Conjugate:
    """Φ*(α) with its gradient, by one pass over the kernel or the features."""
    if coupling.couples_labels:
        maximum, scores, Z = _relationship(coupling, alpha)
    elif coupling.of_features:
        maximum, scores, Z = _shared_features(coupling, alpha)
    else:
        ridge = coupling.ridge
        parts = [coupling.kernel[rows, rows] @ alpha[rows] / ridge[i] for i, rows in enumerate(coupling.slices)]
        scores, Z = np.concatenate(parts), coupling.uncoupled()
        maximum = float(np.vdot(alpha, scores))
    ridge = 0.5 * np.repeat(coupling.sizes, coupling.sizes)[:, None] * alpha
    return Conjugate(0.5 * (float(np.vdot(alpha, ridge)) + maximum), ridge + scores, Z)


def _relationship(coupling: Any, alpha: Array) -> tuple[float, Array, Array]:
    parts = [coupling.kernel[:, rows] @ alpha[rows] for rows in coupling.slices]
    starts = coupling.offsets[:-1]
    B = np.stack([np.add.reduceat(np.einsum("nc,nc->n", alpha, part), starts) for part in parts], axis=1)
    B = 0.5 * (B + B.T)
    b, U = sla.eigh(B)
    lambda1 = coupling.lambda1
    omega, maximum = water_fill(b, float(lambda1.mean()), coupling.lambda2)
    Z = (U * omega) @ U.T
    if np.ptp(lambda1) > 0:
        Z, maximum = _searched_maximum(B[None], Z, lambda1[None], coupling.lambda2)
    G = gain_matrix(Z, lambda1, coupling.lambda2)
    scores = sum(
        (np.repeat(G[:, k], coupling.sizes)[:, None] * part for k, part in enumerate(parts)), np.zeros_like(alpha)
    )
    return maximum, scores, Z


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


def _shared_features(coupling: Any, alpha: Array) -> tuple[float, Array, Array]:
    Phi, C, lambda1, lambda2 = coupling.features.values, alpha.shape[1], coupling.lambda1, coupling.lambda2
    A = np.concatenate([Phi[rows].T @ alpha[rows] for rows in coupling.slices], axis=1)
    # B = AAᵀ has at most mC eigenvalues that are not zero; the others stay under water
    U, s, _ = sla.svd(A, full_matrices=False)
    omega, maximum = water_fill(s**2, float(lambda1.mean()), lambda2)
    inner = U.T @ A
    if np.ptp(lambda1) > 0:  # D needs no direction outside U: mirrored there, every B_i is the same
        parts = inner.reshape(len(s), -1, C).transpose(1, 0, 2)
        ridges = np.repeat(lambda1[:, None], len(s), axis=1)
        Z, maximum = _searched_maximum(parts @ parts.transpose(0, 2, 1), np.diag(omega), ridges, lambda2)
        models = U @ np.concatenate([gain_matrix(Z, ridge, lambda2) @ part for ridge, part in zip(lambda1, parts)], 1)
        D = U @ Z @ U.T
    else:
        models, D = (U * (omega / (lambda1.mean() * omega + lambda2))) @ inner, (U * omega) @ U.T
    scores = np.concatenate([Phi[rows] @ models[:, i * C : (i + 1) * C] for i, rows in enumerate(coupling.slices)])
    return maximum, scores, D
