r"""A lower bound of the relaxed objective from any dual variable α.

With the models eliminated, Φ(Ỹ) = min_Z ½tr(ỸᵀM(Z)Ỹ) is convex and for every α

.. math:: \Phi(\tilde Y) \ge \langle\alpha, \tilde Y\rangle - \Phi^*(\alpha), \quad
          \Phi^*(\alpha) = \tfrac12\Big[\tfrac12\sum_j n_{t(j)}\|\alpha_j\|^2 + \max_Z \mathrm{tr}(G(Z)B)\Big],

B = Σ_c αⁱ_cᵀK_ikαᵏ_c (m × m) for DMTRC and Σ_{i,c} φ(αⁱ_c)φ(αⁱ_c)ᵀ (r × r) for DMTFC, with eigenvalues b_k. The
maximum is found by water-filling: Z has the eigenvectors of B and the eigenvalues

.. math:: \omega_k = \big[(\sqrt{b_k\lambda_2/\nu} - \lambda_2)/\lambda_1\big]_+, \quad \sum_k\omega_k = 1.

Equality holds at α = M(Z)Ỹ with the optimal Z. Nothing here depends on how α was found, so a bound that was computed
from an inexact α is still a bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.core.coupling import Relationship, SharedFeatures

Array = NDArray[np.float64]
Learned = Relationship | SharedFeatures


@dataclass(frozen=True)
class Conjugate:
    """Φ*(α), its gradient and the coupling matrix that attains it.

    Attributes
    ----------
    value : float
        Φ*(α).
    gradient : ndarray of shape (N, C)
        (Λ/2 + K_Z)α, the labels for which α is optimal.
    scores : ndarray of shape (N, C)
        F = K_Zα, the fitted values.
    penalty : float
        ½tr(G(Z)B), the regulariser of the models W = GΦᵀα.
    Z : ndarray
        The maximiser.
    """

    value: float
    gradient: Array
    scores: Array
    penalty: float
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
    if lambda1 == 0.0:  # linear in ω: all of it goes to the largest eigenvalue
        omega = np.zeros(len(b))
        omega[order[0]] = 1.0
        return omega, float(roots[order[0]] ** 2 / lambda2)
    totals = np.cumsum(roots[order])
    counts = np.arange(1, len(b) + 1)
    p = int(np.count_nonzero(roots[order] * (lambda1 + counts * lambda2) > lambda2 * totals))
    t = (lambda1 + p * lambda2) / totals[p - 1]
    omega = np.maximum(roots * t - lambda2, 0.0) / lambda1
    omega[order[p:]] = 0.0
    omega /= omega.sum()
    return omega, float(np.sum(b * omega / (lambda1 * omega + lambda2)))


def conjugate(coupling: Learned, alpha: Array) -> Conjugate:
    """Φ*(α) with its gradient, by one pass over the kernel or the features."""
    if isinstance(coupling, Relationship):
        maximum, scores, Z = _relationship(coupling, alpha)
    else:
        maximum, scores, Z = _shared_features(coupling, alpha)
    sizes = np.diff(coupling.offsets)
    ridge = 0.5 * np.repeat(sizes, sizes)[:, None] * alpha
    value = 0.5 * (float(np.vdot(alpha, ridge)) + maximum)
    return Conjugate(value, ridge + scores, scores, 0.5 * maximum, Z)


def _relationship(coupling: Relationship, alpha: Array) -> tuple[float, Array, Array]:
    m, starts = coupling.n_tasks, coupling.offsets[:-1]
    rows = [slice(int(a), int(b)) for a, b in zip(starts, coupling.offsets[1:])]
    parts = [coupling.kernel[:, part] @ alpha[part] for part in rows]
    B = np.stack([np.add.reduceat(np.einsum("nc,nc->n", alpha, part), starts) for part in parts], axis=1)
    b, U = sla.eigh(0.5 * (B + B.T))
    lambda1 = float(np.min(coupling.lambda1))  # the same in all tasks; if not, the smallest still gives a bound
    omega, maximum = water_fill(b, lambda1, coupling.lambda2)
    G = (U * (omega / (lambda1 * omega + coupling.lambda2))) @ U.T
    scores = np.zeros_like(alpha)
    for k in range(m):
        scores += G[coupling.task_of, k][:, None] * parts[k]
    return maximum, scores, (U * omega) @ U.T


def _shared_features(coupling: SharedFeatures, alpha: Array) -> tuple[float, Array, Array]:
    Phi = coupling.features.values
    rows = [slice(int(a), int(b)) for a, b in zip(coupling.offsets[:-1], coupling.offsets[1:])]
    A = np.concatenate([Phi[part].T @ alpha[part] for part in rows], axis=1)
    # B = AAᵀ has at most mC eigenvalues that are not zero; the others stay under water
    U, s, _ = sla.svd(A, full_matrices=False)
    omega, maximum = water_fill(s**2, coupling.lambda1, coupling.lambda2)
    gain = omega / (coupling.lambda1 * omega + coupling.lambda2)
    models = (U * gain) @ (U.T @ A)
    n_clusters = alpha.shape[1]
    scores = np.concatenate(
        [Phi[part] @ models[:, i * n_clusters : (i + 1) * n_clusters] for i, part in enumerate(rows)]
    )
    return maximum, scores, (U * omega) @ U.T
