r"""How tasks are coupled: by a task covariance Ω, by a shared feature covariance D, or not at all.

For a fixed coupling matrix Z (trace 1, positive semidefinite: the paper's sets (9) and (22)) the models W can be
eliminated from its objective, (10) and (20). What is left is the maximum over α of the dual (13), reached at α = MY:

.. math:: J(Y) = \tfrac12 \mathrm{tr}(Y^T M Y), \quad M = (K_Z + \Lambda/2)^{-1}, \quad
          \alpha = MY = \tfrac{2}{n_i}(Y - F)

K_Z is the multitask kernel, (14) or (24), and Λ holds the number of rows of each row's task. With explicit features Φ,
S_i = Φ_iᵀΦ_i and b_i = 2Φ_iᵀY_i/n_i the models solve

.. math:: (G^{-1} \otimes I + \mathrm{blkdiag}(2S_i/n_i))\, W = b, \quad
          J = m\tfrac{C}{C-1} - \tfrac12\langle b, W\rangle

so that what is factorised has either as many rows as there are rows (N × N) or as there are models (mr × mr). Where
labels are exchanged one by one both answer the same questions (:class:`Conditioned`): the second is taken where the
rows have explicit features (``table``, N × r, of which the kernel holds the products) and mr < N. Where rows are only
read in passes, a coupling is made of the Gram matrices 2S_i/n_i (m × r × r) and answers with models (:class:`Solver`).
``condition(Z)`` factorises for one Z and, from labels or models, has the closed-form step of Z:

==================  ======================================  ==============================================
``Relationship``    R(W_c) = tr(W_c Ω⁻¹ W_cᵀ)               Ω ∝ (Σ_c W_cᵀ W_c)^½, G = Ω(λ₁Ω + λ₂I)⁻¹
``SharedFeatures``  R(W_c) = tr(W_cᵀ D⁻¹ W_c)               D ∝ (Σ_c W_c W_cᵀ)^½, G = D(λ₁D + λ₂I)⁻¹
``Independent``     Ω = I/m                                 none; G = I/(λ₁ + mλ₂)
==================  ======================================  ==============================================

R are the terms of the paper's (20) and (8), the closed forms those of its section 6.3, and G the factor of its
multitask kernels (24) and (14) and of its models (25) and (15).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import lapack

from mtclust.core.kernels import EigenFeatures
from mtclust.core.labels import tasks_of_rows

Array = NDArray[np.float64]

#: share of the mean eigenvalue added to S before its root: an eigenvalue that is zero would stay zero for ever
REVIVAL = 1e-8
#: up to so many rows LAPACK finds leading eigenvectors exactly; its time grows with their cube
EXACT_UP_TO = 1000
#: of larger ones a block of vectors, some more than are wanted, is multiplied by the matrix so many times
_MORE, _TIMES = 20, 4
#: full Ω up to this many unknowns m·r; above, leading eigenvectors and one level for the rest
FULL_SIZE = 1000
#: size ρr of the system of a spiked Ω
_SPIKED_SIZE = 400
#: products of weights that are held at once
_WEIGHTED_AT_ONCE = 2**20


class Conditioned(Protocol):
    """The quadratic problem in the labels for one fixed coupling matrix, from either factorisation.

    Seen by one task it is ½⟨Y_i, M_ii Y_i⟩ + ⟨Y_i, L_i⟩.
    """

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


class Solver(Protocol):
    """The models for one fixed coupling matrix, from the mr × mr factorisation, of rows that are not at hand.

    What a task's rows see of the others is the block Q_i of the inverse: an exchange of rows changes J through
    ψ = √(2/n_i) φ Q_i^½ only.
    """

    @property
    def Z(self) -> Array: ...

    def models(self, b: Array) -> Array:
        """W (m × r × C) of b (m × r × C)."""

    def blocks(self) -> Array:
        """Q_i of all tasks (m × r × r): their own blocks of the inverse."""


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


def leading_eigenvectors(matrix: Array, k: int) -> tuple[Array, Array]:
    """The k largest eigenvalues, rising, and their vectors (n × k).

    A matrix of more than ``EXACT_UP_TO`` rows must have no negative eigenvalues as large as those. Block power steps
    find the eigenvalues that stand out to rounding, and those that hardly differ from the rest roughly.

    Examples
    --------
    >>> import numpy as np
    >>> values, vectors = leading_eigenvectors(np.diag([3.0, 1.0, 2.0, 0.5]), 2)
    >>> values.tolist(), np.abs(vectors).round(6).argmax(axis=0).tolist()
    ([2.0, 3.0], [2, 0])
    """
    n = len(matrix)
    if n <= EXACT_UP_TO or k + _MORE >= n:
        values, vectors = np.linalg.eigh(matrix)  # LAPACK's search for some of them can fail where many are equal
        return values[-k:], vectors[:, -k:]
    block = np.random.default_rng(0).normal(size=(n, k + _MORE))
    for _ in range(_TIMES):
        block = sla.qr(matrix @ block, mode="economic", check_finite=False)[0]
    values, turned = sla.eigh(block.T @ (matrix @ block))
    return values[-k:], (block @ turned)[:, -k:]


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


class BaseCoupling:
    """One way of coupling tasks.

    To add one, inherit this class, say in ``condition`` how the problem of one Z is factorised, N × N for a kernel
    matrix (:class:`Conditioned`) and mr × mr for Gram matrices (:class:`Solver`), in ``closed_form`` which Z is best
    for given models, and add a line to :data:`COUPLINGS`; an estimator names it in ``_coupled_by``.
    """

    #: whether the labels of one task enter the objective of another, given Z: ids of clusters are then common to all
    #: tasks by the objective itself
    couples_labels = False
    #: whether there is a Z to learn
    learns = True
    #: whether Z is in the coordinates of features, so that a kernel matrix comes as its eigen-features
    of_features = False

    offsets: NDArray[np.int64]
    n_tasks: int

    @classmethod
    def of(
        cls, rows: Any, offsets: NDArray[np.int64], lambda1: Array, lambda2: float, table: Array | None = None
    ) -> Any:
        """From a kernel matrix (with its ``table``, if any), eigen-features or Gram matrices; λ₁ by task, and λ₂."""
        raise NotImplementedError

    def uncoupled(self) -> Array:
        """Ω = I/m."""
        return np.eye(self.n_tasks) / self.n_tasks

    def condition(self, Z: Any) -> Any:
        raise NotImplementedError

    def closed_form(self, W: Array) -> Any:
        """The coupling matrix that is optimal for models W (m × r × C)."""
        raise NotImplementedError


class Relationship(BaseCoupling):
    """DMTRC, the paper's (20): all tasks are coupled through Ω.

    ``rows`` are the kernel matrix, or Gram matrices. With these and many tasks Ω is a multiple of I plus low rank
    (:class:`Spiked`; ``rank`` says which), so that nothing has the size m·r.
    """

    couples_labels = True

    def __init__(
        self, rows: Array, offsets: NDArray[np.int64], lambda1: Array | float, lambda2: float, rank: int | None = None,
        table: Array | None = None,
    ) -> None:  # fmt: skip
        self.kernel = rows
        self.grams = rows if table is None else grams_of(table, offsets)
        self.table = table
        self.offsets, self.n_tasks = offsets, len(offsets) - 1
        self.lambda1 = lambda1
        self.lambda2 = lambda2
        self.rank = rank
        self.task_of = tasks_of_rows(offsets)

    @classmethod
    def of(
        cls, rows: Array, offsets: NDArray[np.int64], lambda1: Array, lambda2: float, table: Array | None = None
    ) -> Relationship:
        if rows.ndim == 2:
            return cls(rows, offsets, lambda1, lambda2, table=table)
        m, r = rows.shape[:2]
        if m * r <= FULL_SIZE or m <= 2:
            return cls(rows, offsets, lambda1, lambda2)
        if np.ptp(lambda1) > 0:
            raise ValueError(
                f"lambda1 differs by task, which needs the full Ω; with {m} tasks and {r} features (more than "
                f"{FULL_SIZE} unknowns) one value for all tasks is supported. Give lambda1 as a number."
            )
        return cls(rows, offsets, float(lambda1[0]), lambda2, max(1, min(m - 1, _SPIKED_SIZE // r)))

    def condition(self, Z: Any) -> Any:
        if self.kernel.ndim == 2:
            return RelationshipState(self, Z) if self.table is None else TableState(self, Z)
        if self.rank is None:
            return TaskSolver(self, Z)
        return SpikedSolver(self, Z if isinstance(Z, Spiked) else self.spiked(Z, self.rank))

    def closed_form(self, W: Array) -> Any:
        """Ω ∝ S^½; of a spiked one ω_k ∝ √s_k for the leading eigenvalues of S and √mean of the others for the rest:
        the optimum of this form.
        """
        m = len(W)
        if self.rank is None:
            flat = W.reshape(m, -1)
            return trace_one_root(flat @ flat.T)
        vectors, singular, _ = sla.svd(W.reshape(m, -1), full_matrices=False, check_finite=False)
        squares = np.zeros(m)
        squares[: len(singular)] = singular**2
        trace = float(squares.sum())
        if not trace > 0:
            return self.spiked(self.uncoupled(), self.rank)
        rank = min(self.rank, vectors.shape[1])
        squares += REVIVAL * trace / m
        level = float(np.sqrt(squares[rank:].mean()))
        roots = np.sqrt(squares[:rank])
        norm = float(roots.sum()) + (m - rank) * level
        return Spiked(level / norm, vectors[:, :rank], (roots - level) / norm)

    @staticmethod
    def spiked(Z: Array, rank: int) -> Spiked:
        """The spiked matrix with the leading eigenvectors of Z, its trace kept."""
        m = len(Z)
        eigenvalues, vectors = leading_eigenvectors(Z, rank)
        flat = max((float(np.trace(Z)) - float(eigenvalues.sum())) / max(m - rank, 1), 0.0)
        return Spiked(flat, vectors, np.maximum(eigenvalues - flat, 0.0))

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


class TableState(RelationshipState):
    """The same from the mr × mr factorisation: M_ik = (2/n_i)(δ_ik I − (2/n_k) Φ_i Q_ik Φ_kᵀ), α = (2/n_i)(Y − ΦW)."""

    def __init__(self, coupling: Relationship, Z: Array) -> None:
        assert coupling.table is not None
        self.coupling, self.Z, self._table = coupling, Z, coupling.table
        self._solver = TaskSolver(coupling, Z)
        self._blocks: dict[int, Array] = {}
        self._per_row = (2.0 / np.diff(coupling.offsets))[coupling.task_of][:, None]

    @cached_property
    def M(self) -> Array:
        return symmetric_inverse(self.coupling.ridge_kernel(self.Z))

    def block(self, task: int) -> Array:
        if task not in self._blocks:
            self._blocks[task] = row_block(self._table[self._slice(task)], self._solver.blocks()[task])
        return self._blocks[task]

    def models(self, codes: Array) -> Array:
        """W (m × r × C) of (25)."""
        tasks, scaled = range(self.coupling.n_tasks), self._per_row * codes
        return self._solver.models(np.stack([self._table[self._slice(i)].T @ scaled[self._slice(i)] for i in tasks]))

    def alpha(self, codes: Array) -> Array:
        W = self.models(codes)
        fitted = np.concatenate([self._table[self._slice(i)] @ part for i, part in enumerate(W)])
        return self._per_row * (codes - fitted)

    def linear_term(self, task: int, codes: Array, alpha: Array | None = None) -> Array:
        return super().linear_term(task, codes, self.alpha(codes) if alpha is None else alpha)

    def alpha_after(self, alpha: Array, task: int, change: Array) -> Array:
        changes = np.zeros_like(alpha)
        changes[self._slice(task)] = change
        return alpha + self.alpha(changes)

    def diagonal(self) -> Array:
        return np.concatenate([self.block(task).diagonal() for task in range(self.coupling.n_tasks)])

    def closed_form(self, codes: Array) -> Array:
        return self.coupling.closed_form(self.models(codes))


def grams_of(table: Array, offsets: NDArray[np.int64]) -> Array:
    """2S_i/n_i of all tasks (m × r × r)."""
    parts = [table[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
    return np.stack([(2.0 / len(Phi)) * (Phi.T @ Phi) for Phi in parts])


def row_block(Phi: Array, Q: Array) -> Array:
    """M_ii = (2/n)(I − ΨΨᵀ), Ψ = √(2/n) Φ Q^½."""
    n = len(Phi)
    Psi = (2.0 / n) * (Phi @ whitened(Q))
    M = -(Psi @ Psi.T)
    M.flat[:: n + 1] += 2.0 / n
    return M


def model_products(coupling: Relationship, alpha: Array) -> Array:
    """B_ik = Σ_c αⁱ_cᵀ K_ik αᵏ_c (m × m)."""
    m, offsets = coupling.n_tasks, coupling.offsets
    B = np.empty((m, m))
    for k in range(m):
        rows = slice(int(offsets[k]), int(offsets[k + 1]))
        scores = coupling.kernel[:, rows] @ alpha[rows]
        B[:, k] = np.add.reduceat(np.einsum("nc,nc->n", alpha, scores), offsets[:-1])
    return 0.5 * (B + B.T)


class TaskSolver:
    """W = RT with (I + (R⊗I) blkdiag(A) (R⊗I)) T = Rb, R = G^½: one system of size mr, whose factor is held."""

    def __init__(self, coupling: Relationship, Z: Array) -> None:
        m, r = coupling.grams.shape[:2]
        self.Z = Z
        self.root = root_of_gain(Z, coupling.lambda1, coupling.lambda2)
        outer = (self.root[:, None, :] * self.root[None]).reshape(m * m, m)
        H = (outer @ coupling.grams.reshape(m, r * r)).reshape(m, m, r, r).transpose(0, 2, 1, 3).reshape(m * r, m * r)
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


class Spiked(NamedTuple):
    """Ω = flat·I + U diag(extra) Uᵀ: all but a few eigenvalues equal."""

    flat: float
    vectors: Array
    extra: Array

    def dense(self) -> Array:
        dense: Array = (self.vectors * self.extra) @ self.vectors.T
        dense.flat[:: len(dense) + 1] += self.flat
        return dense


class SpikedSolver:
    """Solves for one spiked Ω: nothing has the size m·r.

    With G = g₀I + VVᵀ, T_i = (I + g₀A_i)⁻¹ and H = I + Σ_i v_iv_iᵀ ⊗ A_iT_i (ρr × ρr) the models are
    W_i = T_i(v_iᵀt) + g₀T_ib_i with t = H⁻¹ Σ_i v_i ⊗ T_ib_i.
    """

    def __init__(self, coupling: Relationship, spiked: Spiked) -> None:
        self.spiked = spiked
        lambda1, lambda2, grams = coupling.lambda1, coupling.lambda2, coupling.grams
        m, r = grams.shape[:2]
        rho = self.spiked.vectors.shape[1]
        omega = self.spiked.flat + self.spiked.extra
        self._flat_gain = self.spiked.flat / (lambda1 * self.spiked.flat + lambda2)
        gains = omega / (lambda1 * omega + lambda2)
        self._V = self.spiked.vectors * np.sqrt(np.maximum(gains - self._flat_gain, 0.0))
        self._T = np.linalg.inv(np.eye(r) + self._flat_gain * grams)
        reduced = grams @ self._T
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

    @cached_property
    def Z(self) -> Array:
        """Ω itself: of very many tasks only formed where it is asked for."""
        return self.spiked.dense()

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


class BlockState:
    """Where, given Z, every task stands alone: M is block-diagonal, M_i = (K_i + (n_i/2)I)⁻¹ with its kernel K_i."""

    def __init__(self, coupling: Any, Z: Array, blocks: Iterable[Array]) -> None:
        self.coupling, self.Z = coupling, Z
        self._slices = [slice(int(a), int(b)) for a, b in zip(coupling.offsets[:-1], coupling.offsets[1:])]
        self._blocks = list(blocks)

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


def _with_ridge(K: Array) -> Array:
    """(K + (n/2)I)⁻¹; K is overwritten."""
    K.flat[:: len(K) + 1] += 0.5 * len(K)
    return inverse_of_factor(upper_factor(K))


class BlockSolver:
    """Where, given Z, every task stands alone: W_i = R(I + R A_i R)⁻¹R b_i, R = G^½.

    Inverses are formed when the blocks are asked for, unless they are given.
    """

    def __init__(self, Z: Array, inner: Array, root: Array, blocks: Array | None = None) -> None:
        self.Z, self._inner, self._root, self._blocks = Z, inner, root, blocks

    def models(self, b: Array) -> Array:
        if self._blocks is not None:
            return self._blocks @ b
        return np.asarray(self._root @ np.linalg.solve(self._inner, self._root @ b))

    def blocks(self) -> Array:
        if self._blocks is None:
            inverses = self._root @ np.linalg.inv(self._inner) @ self._root
            self._blocks = 0.5 * (inverses + inverses.transpose(0, 2, 1))
        return self._blocks


class Independent(BaseCoupling):
    """DSTC: every task alone with the ridge λ = λ₁ + mλ₂ (λ₁ may differ by task). ``rows`` as for Ω."""

    learns = False

    def __init__(
        self, rows: Array, offsets: NDArray[np.int64], ridge: Array | float, table: Array | None = None
    ) -> None:
        self.kernel = rows
        self.grams = rows if table is None else grams_of(table, offsets)
        self.table = table
        self.offsets, self.n_tasks = offsets, len(offsets) - 1
        self.ridge = np.broadcast_to(np.asarray(ridge, dtype=np.float64), (len(offsets) - 1,))

    @classmethod
    def of(
        cls, rows: Array, offsets: NDArray[np.int64], lambda1: Array, lambda2: float, table: Array | None = None
    ) -> Independent:
        return cls(rows, offsets, lambda1 + len(lambda1) * lambda2, table)

    def condition(self, Z: Array) -> Any:
        if self.kernel.ndim == 3:
            return BlockSolver(Z, self.grams, self.grams, self._inverses)
        parts = list(zip(self.offsets[:-1], self.offsets[1:]))
        if self.table is not None:
            return IndependentState(
                self, Z, (row_block(self.table[a:b], Q) for Q, (a, b) in zip(self._inverses, parts))
            )
        kernels = (self.kernel[a:b, a:b] / ridge for ridge, (a, b) in zip(self.ridge, parts))
        return IndependentState(self, Z, (_with_ridge(K) for K in kernels))

    def closed_form(self, W: Array) -> Array:
        return self.uncoupled()

    @cached_property
    def _inverses(self) -> Array:
        """(A_i + λ_i I)⁻¹, whatever Z is."""
        ridges = self.ridge[:, None, None] * np.eye(self.grams.shape[1])
        return np.linalg.inv(self.grams + ridges).astype(np.float64, copy=False)


class IndependentState(BlockState):
    """K_i = K_ii/λ."""

    def closed_form(self, codes: Array) -> Array:
        return self.Z

    def predictors(self, codes: Array) -> Array:
        alpha = self.alpha(codes)
        coefficients = np.zeros((self.coupling.n_tasks, *alpha.shape))
        for i, rows in enumerate(self._slices):
            coefficients[i, rows] = alpha[rows] / self.coupling.ridge[i]
        return coefficients


class SharedFeatures(BaseCoupling):
    """DMTFC, the paper's (8) and (10): tasks share the covariance D of their features; given D each stands alone.

    ``rows`` are eigen-features of the kernel matrix, or Gram matrices. The weight of D's penalty is λ₂·m/r, so that
    D = I/r is the uncoupled model of DMTRC.
    """

    of_features = True

    def __init__(self, rows: EigenFeatures | Array, offsets: NDArray[np.int64], lambda1: float, lambda2: float) -> None:
        self.features: Any = rows
        self.offsets, self.n_tasks = offsets, len(offsets) - 1
        self.lambda1 = lambda1
        self.n_features = rows.shape[1] if isinstance(rows, np.ndarray) else rows.rank
        self.lambda2 = lambda2 * (len(offsets) - 1) / self.n_features

    @classmethod
    def of(
        cls, rows: Any, offsets: NDArray[np.int64], lambda1: Array, lambda2: float, table: Array | None = None
    ) -> SharedFeatures:
        return cls(rows, offsets, float(lambda1.mean()), lambda2)

    def uncoupled(self) -> Array:
        """D = I/r."""
        return np.eye(self.n_features) / self.n_features

    def gain(self, Z: Array) -> Array:
        """G of one D."""
        return gain_matrix(Z, self.lambda1, self.lambda2)

    def gain_kernel(self, Z: Array) -> Array:
        """K_F = ΦGΦᵀ, (14); only its task blocks enter the objective."""
        K = self.features.values @ self.gain(Z) @ self.features.values.T
        return 0.5 * (K + K.T)

    def condition(self, Z: Array) -> Any:
        if isinstance(self.features, np.ndarray):
            root = root_of_gain(Z, self.lambda1, self.lambda2)
            inner = root @ self.features @ root
            inner += np.eye(len(root))
            return BlockSolver(Z, inner, root)
        G = self.gain(Z)
        kernels = ((Phi := self.features.values[a:b]) @ G @ Phi.T for a, b in zip(self.offsets[:-1], self.offsets[1:]))
        return SharedFeaturesState(self, Z, (_with_ridge(0.5 * (K + K.T)) for K in kernels))

    def closed_form(self, W: Array | list[Array]) -> Array:
        stacked = np.concatenate(list(W), axis=1)
        return trace_one_root(stacked @ stacked.T)


class SharedFeaturesState(BlockState):
    """K_i = Φ_i G Φ_iᵀ for one D."""

    def models(self, codes: Array) -> list[Array]:
        """W_i = GΦ_iᵀα_i (r × C), one per task: (15)."""
        alpha, G, Phi = self.alpha(codes), self.coupling.gain(self.Z), self.coupling.features.values
        return [G @ (Phi[rows].T @ alpha[rows]) for rows in self._slices]

    def closed_form(self, codes: Array) -> Array:
        return self.coupling.closed_form(self.models(codes))

    def predictors(self, codes: Array) -> Array:
        return np.stack([self.coupling.features.projection @ W for W in self.models(codes)])


#: by Ω (DMTRC), by D (DMTFC), not at all (DSTC); how to add one: :class:`BaseCoupling`
COUPLINGS: dict[str, type[BaseCoupling]] = {
    "relationship": Relationship,
    "features": SharedFeatures,
    "independent": Independent,
}
Coupling = Relationship | SharedFeatures | Independent
