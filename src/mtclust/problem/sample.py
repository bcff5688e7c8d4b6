"""The rows that a search at scale runs on, and the first models of every task from a few of its rows.

As with kernel matrices (:mod:`mtclust.problem.pool`) random labels are refined along a path of falling λ.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.core.coupling import gain_root
from mtclust.core.labels import label_codes, offsets_of, proportional
from mtclust.problem.pool import PATH, refined_along
from mtclust.rows.moments import Data
from mtclust.rows.source import TableRows

Array = NDArray[np.float64]

#: up to this many rows the search runs on all of them
ALL_ROWS = 30_000
#: otherwise on this many, and at least on so many per task and cluster
SAMPLED_ROWS = 20_000
_FEWEST_PER_CLUSTER = 40
#: rows of a task for its random starts; per cluster, at least, at most
_ROWS_PER_CLUSTER = 12
_ROWS = (60, 200)


def sample_of(data: Data, rng: np.random.Generator) -> tuple[Data, bool]:
    """The rows the search runs on, held in memory, and whether these are fewer than all."""
    sizes = data.moments.sizes
    if sizes.sum() <= ALL_ROWS:
        return data, False
    fewest = _FEWEST_PER_CLUSTER * data.bounds.n_clusters
    wanted = np.minimum(sizes, np.maximum(fewest, sizes * SAMPLED_ROWS // sizes.sum()))
    return take_rows(data, wanted, rng), True


def take_rows(data: Data, wanted: NDArray[np.int64], rng: np.random.Generator) -> Data:
    """Some rows of every task, at random, with the size bounds in proportion."""
    chosen = [np.sort(rng.choice(int(n), int(k), replace=False)) for n, k in zip(data.moments.sizes, wanted)]
    return rows_at(data, chosen)


def rows_at(data: Data, positions: list[NDArray[np.int64]]) -> Data:
    """These rows of every task, held in memory, with the size bounds in proportion."""
    wanted = np.array([len(part) for part in positions])
    parts = data.source.take_all(positions)
    offsets = offsets_of(wanted)
    source = TableRows(np.concatenate(parts), offsets)
    centre = not np.any(data.moments.total) and bool(np.any(data.moments.mean))
    of_sample = source.moments(centre, data.moments.scale or None)
    return Data(source, of_sample, proportional(data.bounds, data.moments.sizes, wanted))


def first_models(
    ridge: Array, sample: Data, n_init: int, carried: int, rng: np.random.Generator, gain: Array | None = None
) -> list[list[Array]]:
    """For every task the models of its best random starts on a few of its rows, best first, at most ``carried``.

    Every task alone with its ridge, or under the gain matrix G of DMTFC.
    """
    root = None if gain is None else gain_root(gain)
    C = sample.bounds.n_clusters
    low, high = _ROWS
    wanted = np.minimum(sample.moments.sizes, np.clip(_ROWS_PER_CLUSTER * C, low, high))
    if n_init > 1:  # small tasks are searched whole
        wanted = np.where(sample.moments.sizes <= high, sample.moments.sizes, wanted)
    few = sample if np.array_equal(wanted, sample.moments.sizes) else take_rows(sample, wanted, rng)
    result = []
    for i, n in enumerate(few.moments.sizes):
        Phi = few.moments.centred(i, few.source.take(i, np.arange(n)))
        features = _Features(Phi if root is None else Phi @ root, float(ridge[i]) if root is None else 1.0)
        own = np.random.default_rng(int(rng.integers(2**63)))
        starts = refined_along(features.forms(), few.bounds.lower[i], few.bounds.upper[i], n_init, own)
        models = [features.model(labels, C) for labels in starts.labels[:carried]]
        result.append(models if root is None else [root @ model for model in models])
    return result


class _Features:
    """Rows Φ (n × r) of one task, with the eigenvalues e of ΦᵀΦ = VeVᵀ, or of ΦΦᵀ = UeUᵀ where that is smaller."""

    def __init__(self, Phi: Array, ridge: float) -> None:
        n, r = Phi.shape
        gram = Phi.T @ Phi if r <= n else Phi @ Phi.T
        eigenvalues, vectors = sla.eigh(gram, check_finite=False)
        self.n_rows, self.ridge = n, ridge
        self._eigenvalues = np.maximum(eigenvalues, 0.0)
        # ΦV = U√e
        self._rotated = Phi @ vectors if r <= n else vectors * np.sqrt(self._eigenvalues)
        self._of_codes, self._to_models = (self._rotated, vectors) if r <= n else (vectors, Phi.T @ vectors)

    def forms(self) -> Array:
        """M = (ΦΦᵀ/λ + (n/2)I)⁻¹ = (2/n)(I − ΦV(e + λn/2)⁻¹VᵀΦᵀ) for every λ of the path, shape (p, n, n)."""
        n = self.n_rows
        forms = np.empty((len(PATH), n, n))
        for M, factor in zip(forms, PATH):
            half = self._rotated * np.sqrt((2.0 / n) / (self._eigenvalues + 0.5 * n * factor * self.ridge))
            np.matmul(half, half.T, out=M)
        np.negative(forms, out=forms)
        forms.reshape(len(PATH), -1)[:, :: n + 1] += 2.0 / n
        return forms

    def model(self, labels: NDArray[np.int64], n_clusters: int) -> Array:
        """W = ((2/n)ΦᵀΦ + λI)⁻¹(2/n)ΦᵀY = V(e + λn/2)⁻¹(ΦV)ᵀY."""
        weights = 1.0 / (self._eigenvalues + 0.5 * self.n_rows * self.ridge)
        return self._to_models @ (weights[:, None] * (self._of_codes.T @ label_codes(labels, n_clusters)))
