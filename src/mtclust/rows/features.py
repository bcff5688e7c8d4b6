"""Explicit features for a kernel: the columns themselves, singular directions of wide text, or Nyström features.

Sparse tables with a linear kernel and very many columns (text): φ(x) = xV with the leading right singular vectors V, so
that models in the columns are V times those in the features.

Nyström: with landmarks L drawn from the rows, φ(x) = k(x, L)·U/√s from the eigenvalues s and eigenvectors U of k(L, L):
φ(x)ᵀφ(y) is k(x, y) exactly where x or y is a landmark and an approximation elsewhere. It differs from scikit-learn's
``Nystroem`` in three points: landmarks come from every task in proportion, directions of negligible eigenvalue are
dropped instead of blown up, and of many rows neither k(x, L) nor φ is held: models are projected, not rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from mtclust.core import Array
from mtclust.core.kernels import Kernel
from mtclust.core.model import DecisionModel
from mtclust.core.tasks import TaskIndex
from mtclust.rows.moments import Moments, RowSource
from mtclust.rows.source import TableRows

#: Nyström rank by default: this times √N, within these bounds
_RANK_PER_ROOT = 2.0
_FEWEST_RANK, _LARGEST_RANK = 100, 200
#: tables with more columns than this use fewer features than columns with a linear kernel; sparse ones stay sparse
LARGEST_TABLE = 1000
#: eigenvalues of the landmarks' kernel below this share of the largest are dropped
_NEGLIGIBLE = 1e-8
#: Nyström features are held in memory up to this many bytes; of more rows, kernel values are computed in every pass
_HELD = 2**27


@dataclass(frozen=True)
class FeatureMap:
    """φ before centring and scaling: the columns of X, those times a projection, or k(x, landmarks)·projection."""

    kernel: Kernel
    landmarks: Any = None
    projection: Array | None = None
    centres: Array | None = None  # (m, d), taken off the rows of every task before the kernel sees them

    def __call__(self, rows: Any) -> NDArray[Any]:
        if self.projection is None:
            return rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        values = rows if self.landmarks is None else self.kernel(rows, self.landmarks)
        return np.asarray(values @ self.projection)

    def values(self, rows: Any, task: int) -> NDArray[Any]:
        """Kernel values of rows of one task, whose centre is taken off first: what is projected."""
        return self.kernel(rows if self.centres is None else rows - self.centres[task], self.landmarks)

    @property
    def described(self) -> str:
        """What the features are, with a place for their number."""
        if self.projection is None:
            return "the {} columns of X"
        return "{} singular directions of X" if self.landmarks is None else "{} Nyström features"

    def decision(
        self, moments: Moments, shift: NDArray[Any] | None, present: NDArray[np.bool_], W: Array
    ) -> DecisionModel:
        """f(x) = (z(x) − μ_i)ᵀW_i/√s as a model on X or on kernel values with the landmarks."""
        scaled = W / moments.root_scale
        centre = moments.mean if shift is None else moments.mean + shift
        intercept = -np.einsum("ir,irc->ic", centre, scaled)
        coefficients = scaled if self.projection is None else self.projection @ scaled
        if self.landmarks is None:
            return DecisionModel(self.kernel, None, coefficients.transpose(0, 2, 1).copy(), intercept, present)
        return DecisionModel(self.kernel, self.landmarks, coefficients, intercept, present, self.centres)


def rank_of(kernel: Kernel, X: Any, n_components: int | None, n_tasks: int = 1) -> int | None:
    """How many features the rows of X get, Gram matrices of all tasks below 32 MiB; None where columns serve."""
    n, d = X.shape
    if kernel.kind == "linear" and n_components is None and d <= LARGEST_TABLE:
        return None
    if kernel.kind == "linear" and sp.issparse(X):
        return min(n, d, n_components or _LARGEST_RANK)
    if n_components is not None:
        return min(n_components, n)
    rank = max(_FEWEST_RANK, min(_LARGEST_RANK, round(_RANK_PER_ROOT * np.sqrt(n))))
    return min(n, rank, int(np.sqrt(2**22 / n_tasks)))


def feature_map(
    kernel: Kernel, X: Any, index: TaskIndex, positions: NDArray[np.int64] | None, centres: Array | None = None
) -> FeatureMap:
    """Features for a kernel, from rows at some positions of the sorted ones; none where columns serve themselves.

    ``centres`` are taken off the rows of every task before the kernel sees them.
    """
    if positions is None:
        return FeatureMap(kernel)
    rank = len(positions)
    if kernel.kind == "linear" and sp.issparse(X):
        return FeatureMap(kernel, None, singular_directions(X, rank))
    landmarks = X[index.input_rows(positions)]
    if not sp.issparse(landmarks):
        landmarks = np.array(landmarks, dtype=np.float64)
    if centres is not None:
        landmarks = landmarks - centres[np.searchsorted(index.offsets, positions, side="right") - 1]
    gram = kernel(landmarks, landmarks)
    eigenvalues, vectors = sla.eigh(0.5 * (gram + gram.T))
    keep = eigenvalues > _NEGLIGIBLE * max(float(eigenvalues[-1]), 0.0)
    if not keep.any():
        return FeatureMap(kernel, landmarks, np.zeros((rank, 1)), centres)
    return FeatureMap(kernel, landmarks, vectors[:, keep] / np.sqrt(eigenvalues[keep]), centres)


def singular_directions(X: Any, rank: int) -> Array:
    """The leading right singular vectors (d × rank) of a sparse table, the same for rows in any order.

    Directions of negligible singular value are left out; a table of zeros has one, which is zero.
    """
    X = X.astype(np.float64, copy=False)
    begin = np.asarray(abs(X).sum(axis=int(X.shape[0] < X.shape[1]))).ravel()
    if not begin.any():
        return np.zeros((X.shape[1], 1))
    if rank < min(X.shape):
        _, singular, directions = spla.svds(X, rank, v0=begin)
    else:
        _, singular, directions = sla.svd(X.toarray(), full_matrices=False)
    order = np.argsort(-singular, kind="stable")
    return np.ascontiguousarray(directions[order[singular[order] > _NEGLIGIBLE * singular.max()]].T)


@singledispatch
def source_of(X: Any, features: FeatureMap, index: TaskIndex, centre: bool) -> RowSource:
    """The rows of X, sorted by task, as a source of these features; they may be shifted if they are to be centred.

    Other kinds of tables than arrays and CSR matrices register their own way (``source_of.register``).
    """
    order = None if index.is_sorted else index.order
    if features.landmarks is None and features.projection is not None:
        return TableRows(features(X), index.offsets, order)
    if features.landmarks is not None and features.projection is not None:
        source = TableRows(X, index.offsets, order, features=features)
        return source.projected() if 8 * X.shape[0] * features.projection.shape[1] <= _HELD else source
    rows = TableRows(X, index.offsets, order)
    return rows.kept_near_zero() if centre and not sp.issparse(X) else rows
