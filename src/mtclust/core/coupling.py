r"""How tasks are coupled: by a task covariance Ω, by a shared feature covariance D, or not at all.

For a fixed coupling matrix Z (trace 1, positive semidefinite: the paper's sets (9) and (22)) the models W can be
eliminated from its objective, (10) and (20). What is left is the maximum over α of the dual (13), reached at α = MY:

.. math:: J(Y) = \tfrac12 \mathrm{tr}(Y^T M Y), \quad M = (K_Z + \Lambda/2)^{-1}, \quad
          \alpha = MY = \tfrac{2}{n_i}(Y - F)

K_Z is the multitask kernel, (14) or (24), and Λ holds the number of rows of each row's task. A coupling turns Z into
this *conditioned* problem, seen task by task,

.. math:: J_i(Y_i) = \tfrac12\langle Y_i, M_{ii}Y_i\rangle + \langle Y_i, L_i\rangle, \quad L_i = (MY)_i - M_{ii}Y_i,

and has the closed-form step of Z for the models W that belong to given labels:

==================  ======================================  ==============================================
``Relationship``    R(W_c) = tr(W_c Ω⁻¹ W_cᵀ)               Ω ∝ (Σ_c W_cᵀ W_c)^½, G = Ω(λ₁Ω + λ₂I)⁻¹
``SharedFeatures``  R(W_c) = tr(W_cᵀ D⁻¹ W_c)               D ∝ (Σ_c W_c W_cᵀ)^½, G = D(λ₁D + λ₂I)⁻¹
``Independent``     Ω = I/m                                 none; G = I/(λ₁ + mλ₂)
==================  ======================================  ==============================================

R are the terms of the paper's (20) and (8), the closed forms those of its section 6.3, and G the factor of its
multitask kernels (24) and (14) and of its models (25) and (15).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack

from mtclust.core.kernels import EigenFeatures
from mtclust.core.labels import tasks_of_rows

Array = NDArray[np.float64]

#: share of the mean eigenvalue added to S before its root: an eigenvalue that is zero would stay zero for ever
REVIVAL = 1e-8


class Conditioned(Protocol):
    """The quadratic problem in the labels for one fixed coupling matrix."""

    coupling: Any

    Z: Array

    def block(self, task: int) -> Array:
        """M_ii, contiguous."""

    def linear_term(self, task: int, codes: Array, alpha: Array | None = None) -> Array:
        """L_i = (MY)_i − M_ii Y_i; MY is computed where ``alpha`` does not give it."""

    def alpha(self, codes: Array) -> Array:
        """MY."""

    def alpha_after(self, alpha: Array, task: int, change: Array) -> Array:
        """MY after the codes of one task have changed."""

    def objective(self, codes: Array) -> float:
        """½⟨Y, MY⟩."""

    def diagonal(self) -> Array:
        """Diagonal of M."""

    def closed_form(self, codes: Array) -> Array:
        """The coupling matrix that is optimal for the models W of these labels."""

    def predictors(self, codes: Array) -> Array:
        """Coefficients A (m × N × C): task i scores a row by its centred, scaled kernel row times A_i."""


def upper_factor(matrix: Array) -> Array:
    """Upper Cholesky factor of a symmetric positive definite matrix, which is overwritten."""
    # the transpose of a C-ordered matrix is the same matrix in the order LAPACK works in: nothing is copied
    factor, info = lapack.dpotrf(matrix.T, lower=0, clean=1, overwrite_a=1)
    if info != 0:
        raise _not_positive()
    return factor


def inverse_of_factor(factor: Array) -> Array:
    """The symmetric inverse from an upper Cholesky factor, which is overwritten."""
    upper, info = lapack.dpotri(factor, lower=0, overwrite_c=1)
    if info != 0:
        raise _not_positive()
    inverse = upper.T + upper
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return inverse


def symmetric_inverse(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, which is overwritten, through its Cholesky factor."""
    return inverse_of_factor(upper_factor(matrix))


def _not_positive() -> np.linalg.LinAlgError:
    return np.linalg.LinAlgError(
        "The kernel plus the ridge is not positive definite. A callable or precomputed kernel must be positive "
        "semidefinite; if it is, raise lambda1 and lambda2."
    )


def symmetric_eigen(S: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors as :func:`scipy.linalg.eigh` gives them, without most of its checks.

    For the small matrices of a coupling these take longer than LAPACK.
    """
    if not np.all(np.isfinite(S)):
        raise ValueError("a coupling matrix has values that are not finite.")
    work, int_work = _workspace(len(S))
    eigenvalues, vectors, _, _, info = lapack.dsyevr(S, lower=1, lwork=work, liwork=int_work)
    if info != 0:
        raise np.linalg.LinAlgError(f"the eigenvalues of a coupling matrix were not found (dsyevr: {info}).")
    return eigenvalues, vectors


@lru_cache(maxsize=64)
def _workspace(n: int) -> tuple[int, int]:
    work, int_work, _ = lapack.dsyevr_lwork(n, lower=1)
    return int(work), int(int_work)


def trace_one_root(S: Array) -> Array:
    """S^½ / tr S^½ of a positive semidefinite S, kept away from singular; I/m where S is zero.

    The closed form of Ω and D in the paper's section 6.3, for S = Σ_c W_cᵀW_c and S = Σ_c W_cW_cᵀ.
    """
    m = len(S)
    trace = float(np.trace(S))
    if not trace > 0:
        return np.eye(m) / m
    eigenvalues, vectors = symmetric_eigen(S + (REVIVAL * trace / m) * np.eye(m))
    roots = np.sqrt(np.maximum(eigenvalues, 0.0))
    root = (vectors * roots) @ vectors.T
    return root / np.trace(root)


def gain_matrix(Z: Array, lambda1: Array | float, lambda2: float) -> Array:
    """G = Z(λ₁Z + λ₂I)⁻¹ of (14) and (24), symmetric; λ₁ may differ by task (G⁻¹ = diag λ₁ + λ₂Z⁻¹)."""
    m = len(Z)
    ridge = np.broadcast_to(np.asarray(lambda1, dtype=np.float64), (m,))
    G = sla.solve((ridge[:, None] * Z + lambda2 * np.eye(m)).T, Z.T).T
    return 0.5 * (G + G.T)


class Relationship:
    """DMTRC, the paper's (20): all tasks are coupled through Ω. M is one dense N × N matrix."""

    couples_labels = True

    def __init__(self, kernel: Array, offsets: NDArray[np.int64], lambda1: Array | float, lambda2: float) -> None:
        self.kernel = kernel
        self.offsets = offsets
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.task_of = tasks_of_rows(offsets)

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    def uncoupled(self) -> Array:
        """Ω = I/m."""
        return np.eye(self.n_tasks) / self.n_tasks

    def condition(self, Z: Array) -> RelationshipState:
        return RelationshipState(self, Z)

    def ridge_kernel(self, Z: Array) -> Array:
        """K̃ = K ∘ G[task, task] + Λ/2: the multitask kernel (24) with the ridge of the dual (13)."""
        G = gain_matrix(Z, self.lambda1, self.lambda2)
        K = np.empty_like(self.kernel)
        for i, (a, b) in enumerate(zip(self.offsets[:-1], self.offsets[1:])):
            np.multiply(self.kernel[a:b], G[i, self.task_of], out=K[a:b])
        K.flat[:: len(K) + 1] += 0.5 * np.diff(self.offsets)[self.task_of]
        return K


class RelationshipState:
    """M for one Ω; a factor, a third of the work of M, until labels are to be exchanged."""

    def __init__(self, coupling: Relationship, Z: Array) -> None:
        self.coupling = coupling
        self.Z = Z
        self._factor: Array | None = upper_factor(coupling.ridge_kernel(Z))
        self._M: Array | None = None
        self._blocks: dict[int, Array] = {}

    @property
    def M(self) -> Array:
        factor = self._factor  # read once: restarts in several threads share this
        if self._M is None and factor is not None:
            self._M = inverse_of_factor(factor.copy(order="F"))
            self._factor = None
        assert self._M is not None
        return self._M

    def _slice(self, task: int) -> slice:
        return slice(int(self.coupling.offsets[task]), int(self.coupling.offsets[task + 1]))

    def block(self, task: int) -> Array:
        if task not in self._blocks:
            rows = self._slice(task)
            self._blocks[task] = np.ascontiguousarray(self.M[rows, rows])
        return self._blocks[task]

    def linear_term(self, task: int, codes: Array, alpha: Array | None = None) -> Array:
        rows = self._slice(task)
        own = self.M[rows] @ codes if alpha is None else alpha[rows]
        return own - self.block(task) @ codes[rows]

    def alpha_after(self, alpha: Array, task: int, change: Array) -> Array:
        """MY after the codes of one task have changed."""
        return alpha + self.M[:, self._slice(task)] @ change

    def alpha(self, codes: Array) -> Array:
        factor = self._factor
        if factor is None:
            return self.M @ codes
        return np.ascontiguousarray(lapack.dpotrs(factor, codes, lower=0)[0])

    def objective(self, codes: Array) -> float:
        return 0.5 * float(np.vdot(codes, self.alpha(codes)))

    def diagonal(self) -> Array:
        return self.M.diagonal().copy()

    def closed_form(self, codes: Array) -> Array:
        G = gain_matrix(self.Z, self.coupling.lambda1, self.coupling.lambda2)
        return trace_one_root(G @ model_products(self.coupling, self.alpha(codes)) @ G)

    def predictors(self, codes: Array) -> Array:
        """W of (25), as coefficients of the rows."""
        G = gain_matrix(self.Z, self.coupling.lambda1, self.coupling.lambda2)
        return G[:, self.coupling.task_of][:, :, None] * self.alpha(codes)[None]


def model_products(coupling: Relationship, alpha: Array) -> Array:
    """B_ik = Σ_c αⁱ_cᵀ K_ik αᵏ_c (m × m)."""
    m, offsets = coupling.n_tasks, coupling.offsets
    B = np.empty((m, m))
    for k in range(m):
        rows = slice(int(offsets[k]), int(offsets[k + 1]))
        scores = coupling.kernel[:, rows] @ alpha[rows]
        B[:, k] = np.add.reduceat(np.einsum("nc,nc->n", alpha, scores), offsets[:-1])
    return 0.5 * (B + B.T)


class _BlockState:
    """Shared by couplings in which, given Z, every task stands alone: M is block-diagonal."""

    def __init__(self, blocks: list[Array], offsets: NDArray[np.int64]) -> None:
        self._blocks = blocks
        self._slices = [slice(int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:])]

    def block(self, task: int) -> Array:
        return self._blocks[task]

    def linear_term(self, task: int, codes: Array, alpha: Array | None = None) -> Array:
        return np.zeros((len(self._blocks[task]), codes.shape[1]))

    def alpha(self, codes: Array) -> Array:
        return np.concatenate([block @ codes[rows] for block, rows in zip(self._blocks, self._slices)])

    def alpha_after(self, alpha: Array, task: int, change: Array) -> Array:
        alpha = alpha.copy()
        alpha[self._slices[task]] += self._blocks[task] @ change
        return alpha

    def objective(self, codes: Array) -> float:
        return 0.5 * float(np.vdot(codes, self.alpha(codes)))

    def diagonal(self) -> Array:
        return np.concatenate([block.diagonal() for block in self._blocks])


class Independent:
    """DSTC: every task alone with the ridge λ = λ₁ + mλ₂ (λ₁ may differ by task)."""

    couples_labels = False

    def __init__(self, kernel: Array, offsets: NDArray[np.int64], ridge: Array | float) -> None:
        self.kernel = kernel
        self.offsets = offsets
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (len(offsets) - 1,))

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    def uncoupled(self) -> Array:
        return np.eye(self.n_tasks) / self.n_tasks

    def condition(self, Z: Array) -> IndependentState:
        return IndependentState(self, Z)


class IndependentState(_BlockState):
    """M_i = (K_ii/λ + (n_i/2)I)⁻¹."""

    def __init__(self, coupling: Independent, Z: Array) -> None:
        blocks = []
        for i, (a, b) in enumerate(zip(coupling.offsets[:-1], coupling.offsets[1:])):
            K = coupling.kernel[a:b, a:b] / coupling.ridge[i]
            K.flat[:: len(K) + 1] += 0.5 * (b - a)
            blocks.append(symmetric_inverse(K))
        super().__init__(blocks, coupling.offsets)
        self.Z = Z
        self.coupling = coupling

    def closed_form(self, codes: Array) -> Array:
        return self.Z

    def predictors(self, codes: Array) -> Array:
        alpha = self.alpha(codes)
        coefficients = np.zeros((self.coupling.n_tasks, *alpha.shape))
        for i, rows in enumerate(self._slices):
            coefficients[i, rows] = alpha[rows] / self.coupling.ridge[i]
        return coefficients


class SharedFeatures:
    """DMTFC, the paper's (8) and (10): tasks share the covariance D of their features; given D each stands alone.

    The weight of D's penalty is λ₂·m/r, so that D = I/r is the uncoupled model of DMTRC.
    """

    couples_labels = False

    def __init__(self, features: EigenFeatures, offsets: NDArray[np.int64], lambda1: float, lambda2: float) -> None:
        self.features = features
        self.offsets = offsets
        self.lambda1 = lambda1
        self.lambda2 = lambda2 * (len(offsets) - 1) / features.rank

    @property
    def n_tasks(self) -> int:
        return len(self.offsets) - 1

    def uncoupled(self) -> Array:
        """D = I/r."""
        return np.eye(self.features.rank) / self.features.rank

    def gain_kernel(self, Z: Array) -> Array:
        """K_F = ΦGΦᵀ, (14); only its task blocks enter the objective."""
        G = gain_matrix(Z, self.lambda1, self.lambda2)
        K = self.features.values @ G @ self.features.values.T
        return 0.5 * (K + K.T)

    def condition(self, Z: Array) -> SharedFeaturesState:
        return SharedFeaturesState(self, Z)


class SharedFeaturesState(_BlockState):
    """M_i = (Φ_i G Φ_iᵀ + (n_i/2)I)⁻¹ for one D."""

    def __init__(self, coupling: SharedFeatures, Z: Array) -> None:
        self.G = gain_matrix(Z, coupling.lambda1, coupling.lambda2)
        blocks = []
        for a, b in zip(coupling.offsets[:-1], coupling.offsets[1:]):
            Phi = coupling.features.values[a:b]
            K = Phi @ self.G @ Phi.T
            K = 0.5 * (K + K.T)
            K.flat[:: len(K) + 1] += 0.5 * (b - a)
            blocks.append(symmetric_inverse(K))
        super().__init__(blocks, coupling.offsets)
        self.Z = Z
        self.coupling = coupling

    def models(self, codes: Array) -> list[Array]:
        """W_i = GΦ_iᵀα_i (r × C), one per task: (15)."""
        alpha = self.alpha(codes)
        Phi = self.coupling.features.values
        return [self.G @ (Phi[rows].T @ alpha[rows]) for rows in self._slices]

    def closed_form(self, codes: Array) -> Array:
        stacked = np.concatenate(self.models(codes), axis=1)
        return trace_one_root(stacked @ stacked.T)

    def predictors(self, codes: Array) -> Array:
        projection = self.coupling.features.projection
        return np.stack([projection @ W for W in self.models(codes)])


Coupling = Relationship | Independent | SharedFeatures
