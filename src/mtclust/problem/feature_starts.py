"""Random starts of every task alone, on a few of its rows, refined along a path of falling λ."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.core.coupling import gain_root
from mtclust.core.labels import code_scale, label_codes
from mtclust.primal.rows import Data
from mtclust.problem.pool import EXCHANGE_TOLERANCE, PATH, partition_key, random_labels
from mtclust.problem.sample import take_rows

Array = NDArray[np.float64]

#: rows of a task for its random starts; per cluster, at least, at most
_ROWS_PER_CLUSTER = 12
_ROWS = (60, 200)


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
        starts = _starts(features, few.bounds.lower[i], few.bounds.upper[i], n_init, int(rng.integers(2**63)))
        models = [features.model(labels, C) for labels in starts[:carried]]
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
        n = self.n_rows
        a, rest = code_scale(n_clusters)
        codes = np.full((n, n_clusters), -rest)
        codes[np.arange(n), labels] += a
        weights = 1.0 / (self._eigenvalues + 0.5 * n * self.ridge)
        return self._to_models @ (weights[:, None] * (self._of_codes.T @ codes))


def _starts(
    features: _Features, lower: NDArray[np.int64], upper: NDArray[np.int64], n_init: int, seed: int
) -> list[NDArray[np.int64]]:
    """Distinct labels that ``n_init`` random ones end in, lowest objective first: see :mod:`mtclust.problem.pool`."""
    from mtclust.core import compiled

    n, rng = features.n_rows, np.random.default_rng(seed)
    forms: Any = features.forms() if len(lower) > 1 else None
    tolerances = [] if forms is None else [EXCHANGE_TOLERANCE * float(M.diagonal().mean()) for M in forms]
    found: dict[bytes, tuple[float, NDArray[np.int64]]] = {}
    drawn: set[bytes] = set()
    for _ in range(n_init):
        labels = random_labels(n, lower, upper, rng)
        if forms is None:
            return [labels]
        bits = rng.integers(2**63, size=1, dtype=np.uint64)
        key = partition_key(labels, len(lower))
        if key in drawn:  # few rows have few labellings
            continue
        drawn.add(key)
        counts = np.bincount(labels, minlength=len(lower))
        for M, tolerance in zip(forms, tolerances):
            P = label_codes(labels, len(lower)).T @ M
            compiled.exchange(M, P, labels, counts, lower, upper, tolerance, bits)
        if n_init == 1:
            return [labels]
        # ½⟨Y, MY⟩ up to a factor: the codes of a row add up to 0, and so do its entries of P
        value = float(P[labels, np.arange(n)].sum())
        found.setdefault(partition_key(labels, len(lower)), (value, labels))
    return [labels for _, labels in sorted(found.values(), key=lambda item: item[0])]
