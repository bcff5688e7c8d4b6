r"""Kernels, centring within tasks, one common scale, eigen-features, and inverses of kernel matrices.

A model sees its data only through the centred and scaled kernel

.. math:: K_{jk} = \langle \phi(x_j) - \bar\phi_{t(j)},\; \phi(x_k) - \bar\phi_{t(k)} \rangle / s

where φ̄_i is the mean of task i (0 with ``fit_intercept=False``) and s the mean diagonal over all rows, so that λ means
the same on every data set. Kernels enter as in the paper's section 7: DMTRC needs K alone, DMTFC explicit features
of it (:func:`eigen_features`). RBF: k(x, y) = exp(−|x − y|²/(2σ²)), σ = width × mean distance between two rows of
one task.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from scipy.linalg import lapack
from sklearn.utils.extmath import row_norms

from mtclust.core import Array, Integers

KernelFunction = Callable[[Any, Any], Array]

#: eigenvalues below this share of the largest count as zero
_RANK_TOLERANCE = 1e-10
#: a mean diagonal below this share of the uncentred one is rounding: the rows do not differ within tasks
_CONSTANT = 1e-14
#: matrices of up to so many rows are factorised in full; the time of that grows with their cube
EXACT_UP_TO = 1000
#: a relative difference below this is rounding: of values of a criterion, costs, squared lengths, eigenvalues
ROUNDING = 1e-12


@dataclass(frozen=True)
class Kernel:
    """A kernel with its settings: ``kernel(A, B)`` is the matrix of k(a, b)."""

    kind: str  # a key of :data:`KERNELS`, "callable" or "precomputed"
    sigma: float | None = None  # σ of the RBF kernel, in the units of the data
    # ``function(A, B)`` returns the matrix of kernel values between the rows of A and of B
    function: KernelFunction | None = None

    def __call__(self, A: Any, B: Any) -> Array:
        if self.kind in KERNELS:
            return KERNELS[self.kind](A, B, self.sigma)
        assert self.function is not None
        values = np.asarray(self.function(A, B), dtype=np.float64)
        if values.shape != (A.shape[0], B.shape[0]) or not np.all(np.isfinite(values)):
            raise ValueError(
                f"kernel returned an array of shape {values.shape}, or NaN or infinity; a callable kernel must return "
                f"one finite value per pair of rows, shape {(A.shape[0], B.shape[0])}."
            )
        return values


def linear(A: Any, B: Any, sigma: float | None = None) -> Array:
    """Inner products of the rows."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = A @ B.T
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def rbf(A: Any, B: Any, sigma: float | None) -> Array:
    """exp(−|a − b|²/(2σ²))."""
    assert sigma is not None
    return rbf_from_distances(squared_distances(A, B), sigma)


#: kernels of rows by name; to add one, write a function of two tables of rows and σ (None but for "rbf"), and a line
#: here
KERNELS: dict[str, Callable[[Any, Any, float | None], Array]] = {"linear": linear, "rbf": rbf}


def rbf_from_distances(squared: Array, sigma: float) -> Array:
    """exp(−squared/(2σ²)) of a matrix of squared distances."""
    with np.errstate(over="ignore", divide="ignore"):
        factor = -0.5 / np.square(np.float64(sigma))
    if not -np.inf < factor < 0:
        way_out = "raise" if factor else "lower"
        raise ValueError(f"1/σ² of the RBF kernel overflows for σ = {sigma:g}; rescale X or {way_out} width.")
    values = squared * factor
    return np.asarray(np.exp(values, out=values))


def largest_eigenvectors(matrix: Array, k: int, roughly: bool = False) -> tuple[Array, Array]:
    """The k largest eigenvalues (at most all), rising, and their vectors.

    Those of over ``EXACT_UP_TO`` rows, if rough ones will do, by power steps.
    """
    n, wider = len(matrix), k + 20  # a block of some more vectors than are wanted is multiplied a few times
    if roughly and wider < n and n > EXACT_UP_TO:
        block = np.random.default_rng(0).normal(size=(n, wider))
        for _ in range(4):
            block = sla.qr(matrix @ block, mode="economic", check_finite=False)[0]
        values, turned = sla.eigh(block.T @ (matrix @ block))
        return values[-k:], (block @ turned)[:, -k:]
    vectors = np.empty((n, 0))
    with suppress(sla.LinAlgError):
        values, vectors = sla.eigh(matrix, subset_by_index=(max(0, n - k), n - 1))
    if vectors.shape[1] < min(k, n):  # many are equal: LAPACK fails to find only some, or leaves some out in silence
        values, vectors = np.linalg.eigh(matrix)
    return values[-k:], vectors[:, -k:]


def inverse_of_factor(factor: Array) -> Array:
    """The symmetric inverse from an upper Cholesky factor, which is overwritten."""
    upper, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    inverse = upper.T + upper
    inverse.flat[:: len(inverse) + 1] *= 0.5
    return inverse


def squared_distances(A: Any, B: Any) -> Array:
    """Squared Euclidean distances between rows, without the checks of scikit-learn, which take longer for a block."""
    same, A, B = A is B, A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = linear(A, B)
        squared *= -2.0
        squared += row_norms(A, squared=True)[:, None]
        squared += row_norms(B, squared=True)
    np.maximum(squared, 0.0, out=squared)
    if same:
        np.fill_diagonal(squared, 0.0)
    return squared


def require_finite(values: Array) -> Array:
    """Products of rows, if none overflowed."""
    if not np.all(np.isfinite(values)):
        raise ValueError("X has values too large to be squared (overflow); divide X by its largest absolute value.")
    return values


def is_rounding(scale: float, raw_level: float) -> bool:
    """Whether a mean diagonal is 0 but for rounding, or so near the smallest numbers there are that digits are lost."""
    return not scale > max(_CONSTANT * raw_level, np.finfo(float).tiny / _CONSTANT)


@dataclass(frozen=True)
class CentredKernel:
    """The centred and scaled kernel matrix of the training rows, sorted by task."""

    matrix: Array  # K, centred within tasks and divided by ``scale`` (N × N)
    offsets: Integers  # task i holds rows ``offsets[i]:offsets[i + 1]`` (m + 1,)
    # mean over the rows of task i of the raw kernel with every row; zeros without centring (m × N)
    task_means: Array
    scale: float  # s, the mean diagonal after centring; 0 where the rows of no task differ from each other
    centred: bool  # whether the features were centred within tasks


def centre_kernel(raw: Array, offsets: Integers, centre: bool, scale: float | None = None) -> CentredKernel:
    """Centre a raw kernel matrix within tasks and scale it to unit mean diagonal, or by a given scale."""
    sizes = np.diff(offsets)
    matrix = np.array(require_finite(raw), dtype=np.float64)
    matrix += matrix.T
    matrix *= 0.5
    raw_level = float(np.abs(matrix.diagonal()).mean())
    m, n = len(sizes), len(matrix)
    task_means = np.zeros((m, n))
    if centre:
        task_means = np.add.reduceat(matrix, offsets[:-1], axis=0) / sizes[:, None]
        grand = np.add.reduceat(task_means, offsets[:-1], axis=1) / sizes
        task_of = np.repeat(np.arange(m), sizes)
        matrix -= task_means[task_of]
        matrix -= task_means[task_of].T
        matrix += grand[np.ix_(task_of, task_of)]
    if scale is None:
        scale = float(matrix.diagonal().mean())
    if scale < -1e-8 * raw_level:
        raise ValueError(
            f"kernel has a negative mean diagonal after centring ({scale:.4g}); a callable or precomputed kernel "
            "must be positive semidefinite."
        )
    if is_rounding(scale, raw_level):
        return CentredKernel(np.zeros_like(matrix), offsets, task_means, 0.0, centre)
    matrix /= scale
    return CentredKernel(matrix, offsets, task_means, scale, centre)


@dataclass(frozen=True)
class EigenFeatures:
    """Explicit features Φ with ΦΦᵀ ≈ K: all of rank(K), or the leading ones (kernel PCA)."""

    values: Array  # Φ = U √s, from the eigenvalues s and eigenvectors U of K (N × r)
    # U/√s: the features of a new row are its centred, scaled kernel row times this (N × r)
    projection: Array

    @property
    def rank(self) -> int:
        return self.values.shape[1]


def eigen_features(kernel: Array, n_components: int | None = None) -> EigenFeatures:
    """Leading eigen-features of a centred kernel, largest eigenvalue first."""
    n = len(kernel)
    eigenvalues, vectors = (part[..., ::-1] for part in largest_eigenvectors(kernel, n_components or n))
    keep = eigenvalues > _RANK_TOLERANCE * max(float(eigenvalues[0]), 0.0)
    if not keep.any():  # a zero kernel: one feature that is zero for every row
        return EigenFeatures(np.zeros((n, 1)), np.zeros((n, 1)))
    roots = np.sqrt(eigenvalues[keep])
    return EigenFeatures(vectors[:, keep] * roots, vectors[:, keep] / roots)
