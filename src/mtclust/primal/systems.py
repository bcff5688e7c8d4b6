r"""The models W that belong to given class sums, for every way of coupling the tasks.

Given the coupling matrix Z, W solves (G⁻¹⊗I + blkdiag(A_i)) W = b with A_i = 2S_i/n_i. Where G is (nearly) singular
that is done through its root R = G^½: W = RT, (I + R A R) T = Rb. What a task's rows see of the others is the block Q_i
of the inverse: an exchange of rows changes J through ψ = √(2/n_i) φ Q_i^½ only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack

from mtclust.core.coupling import REVIVAL, gain_matrix, trace_one_root
from mtclust.core.leading import leading_eigenvectors

Array = NDArray[np.float64]

#: products of weights that are held at once
_WEIGHTED_AT_ONCE = 2**20


class System(Protocol):
    """One way of coupling: ``condition(Z)`` prepares the solves for one coupling matrix."""

    couples_labels: bool

    def uncoupled(self) -> Array: ...

    def condition(self, Z: Any) -> Solver: ...

    def closed_form(self, W: Array) -> Any: ...


class Solver(Protocol):
    """Solves for one coupling matrix."""

    @property
    def Z(self) -> Array: ...

    def models(self, b: Array) -> Array:
        """W (m × r × C) of b (m × r × C)."""

    def blocks(self) -> Array:
        """Q_i of all tasks (m × r × r): their own blocks of the inverse."""


class AloneSystem:
    """Every task alone with the ridge λ_i: W_i = (λ_i I + A_i)⁻¹ b_i."""

    couples_labels = False

    def __init__(self, grams: Array, ridge: Array) -> None:
        self.n_tasks = len(grams)
        r = grams.shape[1]
        self._inverses: Array = np.linalg.inv(grams + ridge[:, None, None] * np.eye(r)).astype(np.float64, copy=False)

    def uncoupled(self) -> Array:
        return np.eye(self.n_tasks) / self.n_tasks

    def condition(self, Z: Array) -> BlockSolver:
        return BlockSolver(Z, self._inverses)

    def closed_form(self, W: Array) -> Array:
        return self.uncoupled()


@dataclass
class BlockSolver:
    """Given Z every task stands alone."""

    Z: Array
    inverses: Array

    def models(self, b: Array) -> Array:
        return self.inverses @ b

    def blocks(self) -> Array:
        return self.inverses


class SharedSystem:
    """DMTFC: W_i = R(I + R A_i R)⁻¹R b_i with R = G^½, G = D(λ₁D + λ₂I)⁻¹; λ₂ stands for λ₂m/r."""

    couples_labels = False

    def __init__(self, grams: Array, lambda1: float, lambda2: float) -> None:
        self.grams = grams
        self.lambda1 = lambda1
        self.lambda2 = lambda2 * len(grams) / grams.shape[1]

    def uncoupled(self) -> Array:
        r = self.grams.shape[1]
        return np.eye(r) / r

    def gain(self, Z: Array) -> Array:
        """G of one D."""
        return gain_matrix(Z, self.lambda1, self.lambda2)

    def condition(self, Z: Array) -> SharedSolver:
        root = root_of_gain(Z, self.lambda1, self.lambda2)
        inner = root @ self.grams @ root
        inner += np.eye(len(root))
        return SharedSolver(Z, root, inner)

    def closed_form(self, W: Array) -> Array:
        stacked = np.concatenate(list(W), axis=1)
        return trace_one_root(stacked @ stacked.T)


@dataclass
class SharedSolver:
    """Given D every task stands alone; inverses are formed when the blocks are asked for."""

    Z: Array
    root: Array
    inner: Array
    _blocks: Array | None = None

    def models(self, b: Array) -> Array:
        if self._blocks is not None:
            return self._blocks @ b
        return np.asarray(self.root @ np.linalg.solve(self.inner, self.root @ b))

    def blocks(self) -> Array:
        if self._blocks is None:
            inverses = self.root @ np.linalg.inv(self.inner) @ self.root
            self._blocks = 0.5 * (inverses + inverses.transpose(0, 2, 1))
        return self._blocks


class TaskSystem:
    """DMTRC with a full Ω: one system of size mr."""

    couples_labels = True

    def __init__(self, grams: Array, lambda1: Array, lambda2: float) -> None:
        self.grams = grams
        self.lambda1 = lambda1
        self.lambda2 = lambda2

    def uncoupled(self) -> Array:
        m = len(self.grams)
        return np.eye(m) / m

    def condition(self, Z: Array) -> TaskSolver:
        return TaskSolver(self, Z)

    def closed_form(self, W: Array) -> Array:
        flat = W.reshape(len(W), -1)
        return trace_one_root(flat @ flat.T)


class TaskSolver:
    """Holds the Cholesky factor of I + (R⊗I) blkdiag(A) (R⊗I)."""

    def __init__(self, system: TaskSystem, Z: Array) -> None:
        m, r = system.grams.shape[:2]
        self.Z = Z
        self.root = root_of_gain(Z, system.lambda1, system.lambda2)
        outer = (self.root[:, None, :] * self.root[None]).reshape(m * m, m)
        H = (outer @ system.grams.reshape(m, r * r)).reshape(m, m, r, r).transpose(0, 2, 1, 3).reshape(m * r, m * r)
        H.flat[:: m * r + 1] += 1.0
        self._factor = sla.cho_factor(H, lower=True, check_finite=False)
        self._blocks: Array | None = None

    def models(self, b: Array) -> Array:
        m, r, C = b.shape
        right = np.tensordot(self.root, b, axes=1).reshape(m * r, C)
        T = sla.cho_solve(self._factor, right, check_finite=False).reshape(m, r, C)
        return np.tensordot(self.root, T, axes=1)

    def blocks(self) -> Array:
        if self._blocks is None:
            self._blocks = _weighted(_split(_inverse_of(self._factor), len(self.root)), self.root)
        return self._blocks


@dataclass(frozen=True)
class Spiked:
    """Ω = flat·I + U diag(extra) Uᵀ: all but a few eigenvalues equal."""

    flat: float
    vectors: Array
    extra: Array

    def dense(self) -> Array:
        dense: Array = (self.vectors * self.extra) @ self.vectors.T
        dense.flat[:: len(dense) + 1] += self.flat
        return dense


class SpikedSystem:
    """DMTRC with many tasks: Ω is a multiple of I plus low rank ρ, and nothing has the size m·r.

    With G = g₀I + VVᵀ, T_i = (I + g₀A_i)⁻¹ and H = I + Σ_i v_iv_iᵀ ⊗ A_iT_i (ρr × ρr) the models are
    W_i = T_i(v_iᵀt) + g₀T_ib_i with t = H⁻¹ Σ_i v_i ⊗ T_ib_i.
    """

    couples_labels = True

    def __init__(self, grams: Array, lambda1: float, lambda2: float, rank: int) -> None:
        self.grams = grams
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.rank = rank

    def uncoupled(self) -> Array:
        m = len(self.grams)
        return np.eye(m) / m

    def condition(self, Z: Array | Spiked) -> SpikedSolver:
        return SpikedSolver(self, Z if isinstance(Z, Spiked) else self.within(Z))

    def within(self, Z: Array) -> Spiked:
        """The spiked matrix with the leading eigenvectors of Z, its trace kept."""
        m = len(Z)
        eigenvalues, vectors = leading_eigenvectors(Z, self.rank)
        flat = max((float(np.trace(Z)) - float(eigenvalues.sum())) / max(m - self.rank, 1), 0.0)
        return Spiked(flat, vectors, np.maximum(eigenvalues - flat, 0.0))

    def closed_form(self, W: Array) -> Spiked:
        """ω_k ∝ √s_k for the leading eigenvalues of S, √mean of the others for the rest: the optimum of this form."""
        m = len(W)
        vectors, singular, _ = sla.svd(W.reshape(m, -1), full_matrices=False, check_finite=False)
        squares = np.zeros(m)
        squares[: len(singular)] = singular**2
        trace = float(squares.sum())
        if not trace > 0:
            return self.within(self.uncoupled())
        rank = min(self.rank, vectors.shape[1])
        squares += REVIVAL * trace / m
        level = float(np.sqrt(squares[rank:].mean()))
        roots = np.sqrt(squares[:rank])
        norm = float(roots.sum()) + (m - rank) * level
        return Spiked(level / norm, vectors[:, :rank], (roots - level) / norm)


@dataclass
class SpikedSolver:
    """Solves for one spiked Ω."""

    system: SpikedSystem
    spiked: Spiked

    @cached_property
    def Z(self) -> Array:
        """Ω itself: of very many tasks only formed where it is asked for."""
        return self.spiked.dense()

    def __post_init__(self) -> None:
        lambda1, lambda2 = self.system.lambda1, self.system.lambda2
        m, r = self.system.grams.shape[:2]
        rho = self.spiked.vectors.shape[1]
        omega = self.spiked.flat + self.spiked.extra
        self._flat_gain = self.spiked.flat / (lambda1 * self.spiked.flat + lambda2)
        gains = omega / (lambda1 * omega + lambda2)
        self._V = self.spiked.vectors * np.sqrt(np.maximum(gains - self._flat_gain, 0.0))
        self._T = np.linalg.inv(np.eye(r) + self._flat_gain * self.system.grams)
        reduced = self.system.grams @ self._T
        sums, step = np.zeros((rho * rho, r * r)), max(1, _WEIGHTED_AT_ONCE // (rho * rho))
        for first in range(0, m, step):
            part = self._V[first : first + step]
            outer = (part[:, :, None] * part[:, None, :]).reshape(len(part), rho * rho)
            sums += outer.T @ reduced[first : first + step].reshape(len(part), r * r)
        H = sums.reshape(rho, rho, r, r).transpose(0, 2, 1, 3).reshape(rho * r, rho * r)
        H = 0.5 * (H + H.T)
        H.flat[:: rho * r + 1] += 1.0
        self._factor = sla.cho_factor(H, lower=True, check_finite=False)
        self._blocks: Array | None = None

    def models(self, b: Array) -> Array:
        _, r, C = b.shape
        rho = self._V.shape[1]
        own = self._T @ b
        right = np.tensordot(self._V.T, own, axes=1).reshape(rho * r, C)
        t = sla.cho_solve(self._factor, right, check_finite=False).reshape(rho, r, C)
        return self._T @ np.tensordot(self._V, t, axes=1) + self._flat_gain * own

    def blocks(self) -> Array:
        if self._blocks is None:
            middle = _weighted(_split(_inverse_of(self._factor), self._V.shape[1]), self._V)
            Q = self._flat_gain * self._T + self._T @ middle @ self._T.transpose(0, 2, 1)
            self._blocks = 0.5 * (Q + Q.transpose(0, 2, 1))
        return self._blocks


def _inverse_of(factor: tuple[Array, bool]) -> Array:
    """The symmetric inverse from a lower Cholesky factor."""
    lower, info = lapack.dpotri(factor[0], lower=1)
    if info != 0:
        raise np.linalg.LinAlgError("the system of the models is singular; raise lambda1 and lambda2.")
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def _split(matrix: Array, n_blocks: int) -> Array:
    """Blocks of a matrix, shape (k, k, r, r)."""
    r = len(matrix) // n_blocks
    return np.ascontiguousarray(matrix.reshape(n_blocks, r, n_blocks, r).transpose(0, 2, 1, 3))


def _weighted(blocks: Array, weights: Array) -> Array:
    """Σ_kl w_ik w_il B_kl for every row i of the weights, shape (m, r, r)."""
    (k, _, r, _), m = blocks.shape, len(weights)
    flat, result = blocks.reshape(k * k, r * r), np.empty((m, r * r))
    step = max(1, _WEIGHTED_AT_ONCE // (k * k))
    for first in range(0, m, step):
        part = weights[first : first + step]
        np.matmul((part[:, :, None] * part[:, None, :]).reshape(len(part), -1), flat, out=result[first : first + step])
    return result.reshape(m, r, r)


def root_of_gain(Z: Array, lambda1: Array | float, lambda2: float) -> Array:
    """G^½ with G = Z(λ₁Z + λ₂I)⁻¹, through the eigenvectors of Z unless λ₁ differs by task."""
    ridge = np.asarray(lambda1)
    if ridge.ndim and np.any(ridge != ridge[0]):
        return gain_root(gain_matrix(Z, lambda1, lambda2))
    values, vectors = np.linalg.eigh(Z)
    values = np.maximum(values, 0.0)
    return (vectors * np.sqrt(values / (ridge.flat[0] * values + lambda2))) @ vectors.T


def gain_root(G: Array) -> Array:
    eigenvalues, vectors = np.linalg.eigh(G)
    return (vectors * np.sqrt(np.maximum(eigenvalues, 0.0))) @ vectors.T


#: full Ω up to this many unknowns m·r; above, leading eigenvectors and one level for the rest
FULL_SIZE = 1000
#: size ρr of the system of a spiked Ω
_SPIKED_SIZE = 400


def relationship_system(grams: Array, lambda1: Array, lambda2: float) -> TaskSystem | SpikedSystem:
    """DMTRC's system: full while it is cheap, spiked beyond."""
    m, r = grams.shape[:2]
    if m * r <= FULL_SIZE or m <= 2:
        return TaskSystem(grams, lambda1, lambda2)
    if np.ptp(lambda1) > 0:
        raise ValueError(
            f"lambda1 differs by task, which needs the full Ω; with {m} tasks and {r} features (more than "
            f"{FULL_SIZE} unknowns) one value for all tasks is supported. Give lambda1 as a number."
        )
    rank = max(1, min(m - 1, _SPIKED_SIZE // r))
    return SpikedSystem(grams, float(lambda1[0]), lambda2, rank)


def objective(b: Array, W: Array) -> float:
    """J = m·C/(C−1) − ½⟨b, W⟩; the only code of a single cluster has norm 1."""
    m, _, C = b.shape
    return m * (C / (C - 1) if C > 1 else 1.0) - 0.5 * float(np.vdot(b, W))


def whitened(Q: Array) -> Array:
    """A factor L with LLᵀ = Q; of a stack of matrices, a stack."""
    try:
        return np.linalg.cholesky(Q).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:  # Q is singular where the coupling is
        if Q.ndim > 2:
            return np.stack([whitened(part) for part in Q])
        eigenvalues, vectors = np.linalg.eigh(Q)
        return vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
