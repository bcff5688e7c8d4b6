r"""How tasks are coupled: by a task covariance Ω, by a shared feature covariance D, or not at all.

For a fixed coupling matrix Z (trace 1, positive semidefinite: the paper's sets (9) and (22)) the models W can be
eliminated from its objective, (10) and (20). What is left is the maximum over α of the dual (13), reached at α = MY:

.. math:: J(Y) = \tfrac12 \mathrm{tr}(Y^T M Y), \quad M = (K_Z + \Lambda/2)^{-1}, \quad
          \alpha = MY = \tfrac{2}{n_i}(Y - F)

K_Z is the multitask kernel, (14) or (24), and Λ holds the number of rows of each row's task. With explicit features Φ,
S_i = Φ_iᵀΦ_i and b_i = 2Φ_iᵀY_i/n_i the models solve

.. math:: (G^{-1} \otimes I + \mathrm{blkdiag}(2S_i/n_i))\, W = b, \quad
          J = m\tfrac{C}{C-1} - \tfrac12\langle b, W\rangle

so that what is factorised is of the rows (N × N) or of the features of all tasks (mr × mr). The first
serves where labels are exchanged one by one, of a kernel matrix (:class:`Conditioned`), the second where rows are only
read in passes, of the Gram matrices 2S_i/n_i (m × r × r): it answers with models (:class:`Solver`).
``condition(Z)`` factorises for one Z, and from labels or models a coupling has the closed-form step of Z:

==================  ======================================  ==============================================
``Relationship``    R(W_c) = tr(W_c Ω⁻¹ W_cᵀ)               Ω ∝ (Σ_c W_cᵀ W_c)^½, G = Ω(λ₁Ω + λ₂I)⁻¹
``SharedFeatures``  R(W_c) = tr(W_cᵀ D⁻¹ W_c)               D ∝ (Σ_c W_c W_cᵀ)^½, G = D(λ₁D + λ₂I)⁻¹
``Independent``     Ω = I/m                                 none; G = I/(λ₁ + mλ₂)
==================  ======================================  ==============================================

R are the terms of the paper's (20) and (8), the closed forms those of its section 6.3, and G the factor of its
multitask kernels (24) and (14) and of its models (25) and (15).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg as sla
from scipy.linalg import lapack

from mtclust.core import Array, Integers
from mtclust.core.kernels import EXACT_UP_TO, ROUNDING, EigenFeatures, inverse_of_factor, largest_eigenvectors

#: share of the mean eigenvalue added to S before its root: an eigenvalue that is zero would stay zero for ever
REVIVAL = 1e-8
#: size ρr of the system of a spiked Ω: leading eigenvectors and one level for the rest, where the system of a full Ω,
#: of size mr, would have more than ``EXACT_UP_TO`` rows
_SPIKED_SIZE = 400


def trace_one_root(S: Array) -> Array:
    """S^½ / tr S^½ of a positive semidefinite S, kept away from singular; I/m where S is zero.

    The closed form of Ω and D in the paper's section 6.3, for S = Σ_c W_cᵀW_c and S = Σ_c W_cW_cᵀ.
    """
    m = len(S)
    trace = float(np.trace(S))
    if not trace > 0:
        return np.eye(m) / m
    eigenvalues, vectors = sla.eigh(S + (REVIVAL * trace / m) * np.eye(m))
    root = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T
    return root / np.trace(root)


def gain_matrix(Z: Array, lambda1: Array | float, lambda2: float) -> Array:
    """G = Z(λ₁Z + λ₂I)⁻¹ of (14) and (24), symmetric; λ₁ may differ by task (G⁻¹ = diag λ₁ + λ₂Z⁻¹)."""
    m = len(Z)
    ridge = np.broadcast_to(np.asarray(lambda1, dtype=np.float64), (m,))
    G = sla.solve((ridge[:, None] * Z + lambda2 * np.eye(m)).T, Z.T).T
    return 0.5 * (G + G.T)


def root_of_gain(Z: Array, lambda1: Array, lambda2: float) -> Array:
    """G^½ with G = Z(λ₁Z + λ₂I)⁻¹, through the eigenvectors of Z unless λ₁ differs by task."""
    equal = not np.any(lambda1 != lambda1[0])
    values, vectors = np.linalg.eigh(Z if equal else gain_matrix(Z, lambda1, lambda2))
    values = np.maximum(values, 0.0)
    gains = values / (lambda1[0] * values + lambda2) if equal else values
    return (vectors * np.sqrt(gains)) @ vectors.T


def correlation(covariance: Array) -> Array:
    """Correlation matrix of a covariance matrix."""
    scale = np.sqrt(np.maximum(np.diag(covariance), np.finfo(float).tiny))
    return covariance / (scale[:, None] * scale)


def objective(b: Array, W: Array) -> float:
    """J = m·C/(C−1) − ½⟨b, W⟩; the only code of a single cluster has norm 1."""
    m, _, C = b.shape
    return m * (C / (C - 1) if C > 1 else 1.0) - 0.5 * float(np.vdot(b, W))


class Conditioned:
    """The quadratic problem ½⟨Y, MY⟩ in the labels for one fixed coupling matrix.

    M = (K_Z + Λ/2)⁻¹ falls into pieces: one, or one for every task where Z couples no labels. One of all tasks is held
    as a factor, a third of the work of M, until labels are to be exchanged.
    """

    def __init__(self, coupling: BaseCoupling, Z: Array) -> None:
        self.coupling, self.Z = coupling, Z
        ridge, held = 0.5 * np.repeat(coupling.sizes, coupling.sizes), []
        for rows, K in coupling.kernels(Z):
            K.flat[:: len(K) + 1] += ridge[rows]
            # the transpose of a C-ordered matrix is the same matrix in the order LAPACK works in: nothing is copied
            factor, info = lapack.dpotrf(K.T, lower=0, clean=1, overwrite_a=1)
            if info != 0:
                raise np.linalg.LinAlgError(
                    "The kernel plus the ridge is not positive definite. A callable or precomputed kernel must be "
                    "positive semidefinite; if it is, raise lambda1 and lambda2."
                )
            held.append((rows, factor if coupling.couples_labels else inverse_of_factor(factor)))
        self._held = not coupling.couples_labels, held  # whether inverted, and pieces with their rows
        self._blocks: dict[int, Array] = {}
        self.residual_maps: dict[int, Any] = {}  # of tasks, kept for the criterion E

    @property
    def pieces(self) -> list[tuple[slice, Array]]:
        """M by the pieces that it falls into, each with its rows."""
        inverted, held = self._held
        if not inverted:  # restarts in several threads share this
            held = [(rows, inverse_of_factor(factor.copy(order="F"))) for rows, factor in held]
            self._held = True, held
        return held

    def _piece(self, task: int) -> tuple[slice, Array, slice]:
        """The rows of the piece that a task is in, the piece, and where in it the task is."""
        pieces, own = self.pieces, self.coupling.slices[task]
        rows, M = pieces[task if len(pieces) > 1 else 0]
        return rows, M, slice(own.start - rows.start, own.stop - rows.start)

    def block(self, task: int) -> Array:
        """M_ii, contiguous."""
        if task not in self._blocks:
            _, M, own = self._piece(task)
            self._blocks[task] = np.ascontiguousarray(M[own, own])
        return self._blocks[task]

    def linear_term(self, task: int, codes: Array, alpha: Array | None = None) -> Array:
        """L_i = (MY)_i − M_ii Y_i; MY is computed where ``alpha`` does not give it."""
        rows, M, own = self._piece(task)
        mine = self.coupling.slices[task]
        return (M[own] @ codes[rows] if alpha is None else alpha[mine]) - self.block(task) @ codes[mine]

    def alpha(self, codes: Array) -> Array:
        """MY."""
        inverted, held = self._held
        if inverted:
            return np.concatenate([M @ codes[rows] for rows, M in held])
        parts = [lapack.dpotrs(factor, codes[rows], lower=0)[0] for rows, factor in held]
        return np.ascontiguousarray(np.concatenate(parts))

    def alpha_after(self, alpha: Array, task: int, change: Array) -> Array:
        """MY after the codes of one task have changed."""
        rows, M, own = self._piece(task)
        alpha = alpha.copy()
        alpha[rows] += M[:, own] @ change
        return alpha

    def objective(self, codes: Array) -> float:
        """½⟨Y, MY⟩."""
        return 0.5 * float(np.vdot(codes, self.alpha(codes)))

    def diagonal(self) -> Array:
        """Diagonal of M."""
        return np.concatenate([M.diagonal() for _, M in self.pieces])


class Solver:
    """The models for one fixed coupling matrix from Gram matrices; here every task alone, given Z: W_i = Q_i b_i."""

    def __init__(self, Z: Any, blocks: Any) -> None:
        self.Z, self.blocks = Z, blocks  # Q_i of all tasks (m × r × r): their own blocks of the inverse

    def models(self, b: Array) -> Array:
        """W (m × r × C) of b (m × r × C)."""
        return np.asarray(self.blocks @ b)


class BaseCoupling(ABC):
    """One way of coupling tasks.

    To add one, inherit this class, say what one Z makes of the rows, K_Z of a kernel matrix (``kernels``) and of the
    models (``predictors``), and a system of Gram matrices (``solver``), and, if it learns Z, which one is best for
    models W (``closed_form``, of m × r × C) and for labels of all rows (``closed_form_of_rows``), and add a line to
    :data:`COUPLINGS`; an estimator names it in ``_coupled_by``, and cutting planes need its maximum over Z as well
    (:mod:`mtclust.relaxation.mixtures`). One that learns Z but does not couple labels has a Z of
    its features (r × r), which gives every task a kernel of its own, and under which tasks are clustered anew.

    ``rows`` are a kernel matrix (N × N), its eigen-features where ``of_features``, or Gram matrices 2S_i/n_i
    (m × r × r); λ₁ may differ by task.
    """

    #: whether the labels of one task enter the objective of another, given Z: ids of clusters are then common to all
    #: tasks by the objective itself
    couples_labels = False
    #: whether there is a Z to learn
    learns = True
    #: whether Z is in the coordinates of features, so that a kernel matrix comes as its eigen-features
    of_features = False
    rank: int | None = None  #: leading eigenvectors of a Z that is not held in full

    def __init__(self, rows: Any, offsets: Integers, lambda1: Array | float, lambda2: float = 0.0) -> None:
        self.kernel = rows
        self.offsets, self.sizes, self.n_tasks = offsets, np.diff(offsets), len(offsets) - 1
        self.slices = [slice(int(a), int(b)) for a, b in zip(offsets[:-1], offsets[1:])]
        self.lambda1: Any = np.broadcast_to(np.asarray(lambda1, dtype=np.float64), (self.n_tasks,))
        self.lambda2 = lambda2
        self.ridge = self.lambda1 + self.n_tasks * lambda2  # λ₁ + mλ₂, of every task alone

    def uncoupled(self) -> Array:
        """Ω = I/m."""
        return np.eye(self.n_tasks) / self.n_tasks

    def condition(self, Z: Any) -> Any:
        """The problem of one coupling matrix, factorised."""
        return self.solver(Z) if getattr(self.kernel, "ndim", 2) == 3 else Conditioned(self, Z)

    @abstractmethod
    def kernels(self, Z: Array) -> Iterable[tuple[slice, Array]]:
        """The multitask kernel K_Z by the pieces that it falls into, new arrays, each with its rows."""

    @abstractmethod
    def predictors(self, at: Conditioned, codes: Array) -> Array:
        """Coefficients A (m × N × C): task i scores a row by its centred, scaled kernel row times A_i."""

    def closed_form_of_rows(self, at: Conditioned, codes: Array) -> Array:
        """The coupling matrix that is optimal for the models W of these labels; the same where none is learned."""
        return at.Z

    @abstractmethod
    def solver(self, Z: Any) -> Solver:
        """The system of the models, of Gram matrices, factorised."""


class Independent(BaseCoupling):
    """Every task alone, Ω = I/m: the ridge is λ = λ₁ + mλ₂ (λ₁ may differ by task), K_i = K_ii/λ.

    DSTC has the ridge λ₁ + λ₂ of Ω = 1: it comes here with λ₂/m.
    """

    learns = False

    def kernels(self, Z: Array) -> Iterable[tuple[slice, Array]]:
        return ((rows, self.kernel[rows, rows] / ridge) for ridge, rows in zip(self.ridge, self.slices))

    def predictors(self, at: Conditioned, codes: Array) -> Array:
        """α/λ on the rows of the task, 0 elsewhere."""
        return np.repeat(np.diag(1.0 / self.ridge), self.sizes, axis=1)[:, :, None] * at.alpha(codes)

    def solver(self, Z: Array) -> Solver:
        return Solver(Z, self._inverses)

    @cached_property
    def _inverses(self) -> Array:
        """(A_i + λ_i I)⁻¹, whatever Z is."""
        ridges = self.ridge[:, None, None] * np.eye(self.kernel.shape[1])
        return np.linalg.inv(self.kernel + ridges).astype(np.float64, copy=False)


class Relationship(BaseCoupling):
    """DMTRC, the paper's (20): all tasks are coupled through Ω.

    With Gram matrices of many tasks Ω is a multiple of I plus low rank (:class:`Spiked`, of ``rank``), so that
    nothing has the size m·r.
    """

    couples_labels = True

    @cached_property
    def rank(self) -> int | None:  # type: ignore[override]
        """Leading eigenvectors of a spiked Ω; None in full."""
        m, r = self.kernel.shape[:2]
        if self.kernel.ndim == 2 or m * r <= EXACT_UP_TO or m <= 2:
            return None
        if np.ptp(self.lambda1) > 0:
            raise ValueError(
                f"lambda1 differs by task, which needs the full Ω; with {m} tasks and {r} features (more than "
                f"{EXACT_UP_TO} unknowns) one value for all tasks is supported. Give lambda1 as a number."
            )
        return max(1, min(m - 1, _SPIKED_SIZE // r))

    @cached_property
    def spectra(self) -> tuple[Array, Array]:
        """Eigenvalues (m × r) and vectors (m × r × r) of the Gram matrices."""
        values, vectors = np.linalg.eigh(self.kernel)
        return np.maximum(values, 0.0), vectors

    def kernels(self, Z: Array) -> Iterable[tuple[slice, Array]]:
        """K ∘ G[task, task]: (24)."""
        G, K = gain_matrix(Z, self.lambda1, self.lambda2), np.empty_like(self.kernel)
        for i, rows in enumerate(self.slices):
            np.multiply(self.kernel[rows], np.repeat(G[i], self.sizes), out=K[rows])
        return [(slice(0, len(K)), K)]

    def predictors(self, at: Conditioned, codes: Array) -> Array:
        """G_it α for the rows of task t: W of (25)."""
        G = gain_matrix(at.Z, self.lambda1, self.lambda2)
        return np.repeat(G, self.sizes, axis=1)[:, :, None] * at.alpha(codes)

    def solver(self, Z: Any) -> Solver:
        return TaskSolver(self, Z)

    def closed_form(self, W: Array) -> Any:
        """Ω ∝ S^½; of a spiked one ω_k ∝ √s_k for the leading eigenvalues of S and √mean of the others for the rest:
        the optimum of this form.
        """
        m = len(W)
        flat = W.reshape(m, -1)
        if self.rank is None:
            return trace_one_root(flat @ flat.T)
        values, vectors = sla.eigh(flat.T @ flat if flat.shape[1] < m else flat @ flat.T, check_finite=False)
        trace = float(values.sum())
        if not trace > 0:
            return Spiked.of(self.uncoupled(), self.rank)
        rank = min(self.rank, int(np.count_nonzero(values > ROUNDING * values[-1])))
        squares = np.zeros(m)
        squares[: len(values)] = np.maximum(values[::-1], 0.0)
        vectors = vectors[:, ::-1][:, :rank]
        if len(vectors) < m:  # from the right singular vectors of W to the left
            vectors = (flat @ vectors) / np.sqrt(squares[:rank])
        squares += REVIVAL * trace / m
        level = float(np.sqrt(squares[rank:].mean()))
        roots = np.sqrt(squares[:rank])
        norm = float(roots.sum()) + (m - rank) * level
        return Spiked(level / norm, vectors, (roots - level) / norm)

    def closed_form_of_rows(self, at: Conditioned, codes: Array) -> Array:
        """From Σ_c W_cᵀW_c = GBG with B_ik = Σ_c αⁱ_cᵀ K_ik αᵏ_c (m × m)."""
        alpha, B = at.alpha(codes), np.empty((self.n_tasks, self.n_tasks))
        for k, rows in enumerate(self.slices):
            scores = self.kernel[:, rows] @ alpha[rows]
            B[:, k] = np.add.reduceat(np.einsum("nc,nc->n", alpha, scores), self.offsets[:-1])
        G = gain_matrix(at.Z, self.lambda1, self.lambda2)
        return trace_one_root(G @ (0.5 * (B + B.T)) @ G)


class Spiked(NamedTuple):
    """Ω = flat·I + U diag(extra) Uᵀ: all but a few eigenvalues equal."""

    flat: float
    vectors: Array
    extra: Array

    @classmethod
    def of(cls, Z: Array, rank: int) -> Spiked:
        """With the leading eigenvectors of Z, its trace kept."""
        eigenvalues, vectors = largest_eigenvectors(Z, rank, roughly=True)
        flat = max((float(np.trace(Z)) - float(eigenvalues.sum())) / max(len(Z) - rank, 1), 0.0)
        return cls(flat, vectors, np.maximum(eigenvalues - flat, 0.0))

    def dense(self) -> Array:
        dense: Array = (self.vectors * self.extra) @ self.vectors.T
        dense.flat[:: len(dense) + 1] += self.flat
        return dense


class TaskSolver(Solver):
    """The models under Ω, whose factorised system is held.

    With G = g₀I + VVᵀ, T_i = (I + g₀A_i)⁻¹ and H = I + Σ_i v_iv_iᵀ ⊗ A_iT_i the models are W_i = T_i(v_iᵀt) + g₀T_ib_i
    with t = H⁻¹ Σ_i v_i ⊗ T_ib_i. In full g₀ = 0, V = G^½ and H has the size mr; of a spiked Ω of rank ρ only ρr.
    """

    def __init__(self, coupling: Relationship, Z: Array | Spiked) -> None:
        lambda1, lambda2, grams = coupling.lambda1, coupling.lambda2, coupling.kernel
        m, r = grams.shape[:2]
        if coupling.rank is None:
            self._flat_gain, self._T = 0.0, np.eye(r)[None]
            self._V = self._Vt = root_of_gain(np.asarray(Z), lambda1, lambda2)
        else:
            Z = Z if isinstance(Z, Spiked) else Spiked.of(Z, coupling.rank)
            omega = Z.flat + np.append(Z.extra, 0.0)
            gains = omega / (lambda1[0] * omega + lambda2)
            self._flat_gain, self._V = gains[-1], Z.vectors * np.sqrt(np.maximum(gains[:-1] - gains[-1], 0.0))
            self._Vt = self._V.T
            s, U = coupling.spectra
            self._T = (U / (1.0 + self._flat_gain * s)[:, None, :]) @ U.transpose(0, 2, 1)
        self._Z, rho = Z, len(self._Vt)
        V, reduced = self._Vt.T, (grams @ self._T).reshape(m, r * r)
        H = (
            np.stack([(V * v[:, None]).T @ reduced for v in self._Vt])
            .reshape(rho, rho, r, r)
            .transpose(0, 2, 1, 3)
            .reshape(rho * r, rho * r)
        )
        H = 0.5 * (H + H.T)
        H.flat[:: rho * r + 1] += 1.0
        self._factor = sla.cho_factor(H, lower=True, check_finite=False)

    @cached_property
    def Z(self) -> Array:
        """The coupling matrix; of very many tasks only formed where it is asked for."""
        return self._Z.dense() if isinstance(self._Z, Spiked) else self._Z

    def models(self, b: Array) -> Array:
        _, r, C = b.shape
        rho, own = len(self._Vt), self._T @ b
        right = np.tensordot(self._Vt, own, axes=1).reshape(rho * r, C)
        t = sla.cho_solve(self._factor, right, check_finite=False).reshape(rho, r, C)
        W = np.tensordot(self._V, t, axes=1)
        return np.asarray(self._T @ W + self._flat_gain * own) if self._flat_gain else W

    @cached_property
    def blocks(self) -> Array:
        (m, rho), r = self._V.shape, self._T.shape[1]
        lower, _ = lapack.dpotri(self._factor[0], lower=1)
        inverse = np.tril(lower) + np.tril(lower, -1).T
        parts = inverse.reshape(rho, r, rho, r).transpose(0, 2, 1, 3).reshape(rho, rho, r * r)
        Q = sum(v[:, None] * (self._V @ part) for v, part in zip(self._V.T, parts)).reshape(m, r, r)
        if self._flat_gain:
            Q = self._flat_gain * self._T + self._T @ Q @ self._T.transpose(0, 2, 1)
            Q = 0.5 * (Q + Q.transpose(0, 2, 1))
        return Q


class SharedFeatures(BaseCoupling):
    """DMTFC, the paper's (8) and (10): tasks share the covariance D of their features; given D each stands alone, with
    K_i = Φ_i G_i Φ_iᵀ.

    G_i = D(λ₁D + λ₂I)⁻¹ has the task's own λ₁, on which the closed form of D does not depend. The weight of D's penalty
    is λ₂·m/r, so that D = I/r is the uncoupled model of DMTRC.
    """

    of_features = True

    def __init__(
        self, rows: EigenFeatures | Array, offsets: Integers, lambda1: Array | float, lambda2: float = 0.0
    ) -> None:
        super().__init__(rows, offsets, lambda1, lambda2)
        self.features: Any = rows
        self.n_features = rows.shape[1] if isinstance(rows, np.ndarray) else rows.rank
        self.lambda2 = lambda2 * self.n_tasks / self.n_features
        self._ridges = self.lambda1 if np.ptp(self.lambda1) > 0 else [self.lambda1.mean()]

    def uncoupled(self) -> Array:
        """D = I/r."""
        return np.eye(self.n_features) / self.n_features

    def gains(self, Z: Array) -> list[Array]:
        """G_i of every task; one matrix where λ₁ is the same."""
        gains = [gain_matrix(Z, ridge, self.lambda2) for ridge in self._ridges]
        return gains if len(gains) > 1 else gains * self.n_tasks

    def kernels(self, Z: Array) -> Iterable[tuple[slice, Array]]:
        """Φ_i G_i Φ_iᵀ: (14)."""
        for rows, G in zip(self.slices, self.gains(Z)):
            K = (Phi := self.features.values[rows]) @ G @ Phi.T
            yield rows, 0.5 * (K + K.T)

    def solver(self, Z: Array) -> Solver:
        """Q_i = R(I + R A_i R)⁻¹R, R = G^½."""
        root = np.stack([root_of_gain(Z, np.array([ridge]), self.lambda2) for ridge in self._ridges])
        inverses = root @ np.linalg.inv(root @ self.features @ root + np.eye(self.n_features)) @ root
        return Solver(Z, 0.5 * (inverses + inverses.transpose(0, 2, 1)))

    def closed_form(self, W: Array | list[Array]) -> Array:
        stacked = np.concatenate(list(W), axis=1)
        return trace_one_root(stacked @ stacked.T)

    def models(self, at: Conditioned, codes: Array) -> list[Array]:
        """W_i = G_iΦ_iᵀα_i (r × C), one per task: (15)."""
        Phi, alpha = self.features.values, at.alpha(codes)
        return [G @ (Phi[rows].T @ alpha[rows]) for G, rows in zip(self.gains(at.Z), self.slices)]

    def closed_form_of_rows(self, at: Conditioned, codes: Array) -> Array:
        return self.closed_form(self.models(at, codes))

    def predictors(self, at: Conditioned, codes: Array) -> Array:
        return np.stack([self.features.projection @ W for W in self.models(at, codes)])


#: by Ω (DMTRC), by D (DMTFC), not at all (DSTC); how to add one: :class:`BaseCoupling`
COUPLINGS: dict[str, type[BaseCoupling]] = {
    "relationship": Relationship,
    "features": SharedFeatures,
    "independent": Independent,
}
