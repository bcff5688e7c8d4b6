r"""Models of sparse tables with very many columns, found without forming any matrix of columns or of rows.

The systems of :mod:`mtclust.primal.systems` are solved by conjugate gradients: one product with the rows and one with
their transpose per step, both sparse. Centring within tasks is applied to the products, never to the table, so that
nothing is made dense but the models themselves (tasks × columns × clusters).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.core.coupling import gain_matrix, trace_one_root
from mtclust.primal.rows import Moments
from mtclust.primal.sources import LocalRows
from mtclust.primal.systems import gain_root

Array = NDArray[np.float64]

#: conjugate gradients end at this residual, relative to the right-hand side; the objective is off by its square
_TOLERANCE = 1e-5
_MOST_STEPS = 500
#: directions of G^½ below this share of the largest are not inverted to begin near the last models
_SMALLEST_ROOT = 1e-6


@dataclass(frozen=True)
class SparseTable(LocalRows):
    """Rows of a CSR matrix, sorted by task; a task is one block."""

    parts: list[Any]
    offsets: NDArray[np.int64]

    @property
    def n_features(self) -> int:
        return self.parts[0].shape[1]

    def blocks(self, task: int) -> Iterator[tuple[int, int, Any]]:
        yield 0, self.parts[task].shape[0], self.parts[task]

    def take(self, task: int, positions: NDArray[np.int64]) -> Any:
        return self.parts[task][positions]

    def moments(self, centre: bool, scale: float | None = None) -> Moments:
        return sparse_moments(self, centre, scale)


def sparse_moments(source: SparseTable, centre: bool, scale: float | None = None) -> Moments:
    """Means and scale of a sparse table; Gram matrices are not formed."""
    sizes = np.diff(source.offsets)
    sums = np.stack([np.asarray(part.sum(axis=0)).ravel() for part in source.parts])
    squares = np.array([float(part.multiply(part).sum()) for part in source.parts])
    mean = sums / sizes[:, None] if centre else np.zeros_like(sums)
    if scale is None:
        scale = float(squares.sum() - np.sum(sizes[:, None] * mean**2)) / float(sizes.sum())
    scale = max(scale, 0.0)
    total = np.zeros_like(sums) if centre else sums / np.sqrt(scale or 1.0)
    return Moments(sizes, mean, total, np.zeros((len(sizes), 0, 0)), scale, np.full(len(sizes), np.inf))


@dataclass
class MatrixFreeSystem:
    """DMTRC (``learn_relationship``) or every task alone, by conjugate gradients."""

    source: SparseTable
    moments: Moments
    lambda1: Array
    lambda2: float
    couples_labels: bool = False  # clusters are named by alignment: renaming would need a solve per task
    iterative: bool = True
    _last: Array | None = field(init=False, default=None, repr=False)  # models that the next ones are near

    def uncoupled(self) -> Array:
        m = self.moments.n_tasks
        return np.eye(m) / m

    def condition(self, Z: Array) -> MatrixFreeSolver:
        return MatrixFreeSolver(self, Z)

    def closed_form(self, W: Array) -> Array:
        flat = W.reshape(len(W), -1)
        return trace_one_root(flat @ flat.T)

    @cached_property
    def _stacked(self) -> Any:
        """All rows, each in the columns of its own task (N × m·d): a product per task would mostly be overhead."""
        return sp.block_diag(self.source.parts, format="csr")

    def gram_products(self, V: Array) -> Array:
        """(2/n_i)Φ_iᵀΦ_iV_i of centred, scaled features for all tasks (m × d × C)."""
        m, d, C = V.shape
        mean, sizes = self.moments.mean, self.moments.sizes
        scores = self._stacked @ V.reshape(m * d, C)
        scores -= np.repeat((mean[:, None, :] @ V)[:, 0], sizes, axis=0)
        scores *= np.repeat(2.0 / (sizes * (self.moments.scale or 1.0)), sizes)[:, None]
        product = (self._stacked.T @ scores).reshape(m, d, C)
        product -= mean[:, :, None] * np.add.reduceat(scores, self.source.offsets[:-1], axis=0)[:, None, :]
        return product


@dataclass
class MatrixFreeSolver:
    """W for one Ω: (I + R A R) T = R b, W = RT."""

    system: MatrixFreeSystem
    Z: Array
    _root: Array = field(init=False)

    def __post_init__(self) -> None:
        self._root = gain_root(gain_matrix(self.Z, self.system.lambda1, self.system.lambda2))

    def _apply(self, T: Array) -> Array:
        W = np.tensordot(self._root, T, axes=1)
        return T + np.tensordot(self._root, self.system.gram_products(W), axes=1)

    def models(self, b: Array) -> Array:
        right = np.tensordot(self._root, b, axes=1)
        T = _conjugate_gradients(self._apply, right, *self._near(right))
        W = np.tensordot(self._root, T, axes=1)
        self.system._last = W
        return W

    def _near(self, right: Array) -> tuple[Array, Array]:
        """T to begin with, and its residual: that of the models that were found last, of this or another Ω, or 0."""
        W = self.system._last
        if W is not None and W.shape == right.shape:
            T = np.tensordot(np.linalg.pinv(self._root, rcond=_SMALLEST_ROOT, hermitian=True), W, axes=1)
            residual = right - self._apply(T)
            if np.linalg.norm(residual) < np.linalg.norm(right):
                return T, residual
        return np.zeros_like(right), right.copy()

    def blocks(self) -> Array:
        raise NotImplementedError("the inverse of a matrix-free system is not formed.")


def _conjugate_gradients(apply: Any, right: Array, T: Array, residual: Array) -> Array:
    """Solve for all clusters at once, every column with its own steps (columns are independent), from T in place."""
    direction = residual.copy()
    norms = np.einsum("irc,irc->c", residual, residual)
    goal = _TOLERANCE**2 * np.maximum(np.einsum("irc,irc->c", right, right), np.finfo(float).tiny)
    for _ in range(_MOST_STEPS):
        if np.all(norms <= goal):
            return T
        image = apply(direction)
        curvature = np.einsum("irc,irc->c", direction, image)
        step = np.divide(norms, curvature, out=np.zeros_like(norms), where=curvature > 0)
        T += step * direction
        residual -= step * image
        new = np.einsum("irc,irc->c", residual, residual)
        direction = residual + np.divide(new, norms, out=np.zeros_like(new), where=norms > 0) * direction
        norms = new
    raise np.linalg.LinAlgError(
        f"conjugate gradients did not converge in {_MOST_STEPS} steps; raise lambda1 and lambda2."
    )


def table_of(X: Any, order: NDArray[np.int64], offsets: NDArray[np.int64]) -> SparseTable:
    """The rows of a CSR matrix, one part per task."""
    parts = [sp.csr_matrix(X[order[a:b]]) for a, b in zip(offsets[:-1], offsets[1:])]
    return SparseTable(parts, offsets)
