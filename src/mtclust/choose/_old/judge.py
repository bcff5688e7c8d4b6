r"""The judge: one score that compares labels, whichever kernel, sizes or frame they were found with.

Labels are judged by how well membership is predicted *within* tasks for rows that are left out, by several kernels: a
cut that only one kernel can see scores low under the others, real clusters are seen by all. For one kernel, rows
centred by task, shares π_ic of cluster c in task i, and the leave-one-out residuals e_ic of ridge regression on "is in
cluster c" (:mod:`mtclust.core.criterion`)

.. math:: R_c^2 = 1 - \frac{\sum_i \|e_{ic}\|^2}{\sum_i n_i\pi_{ic}(1-\pi_{ic})}, \qquad
          s_c = \frac{R_c^2 - b_c}{1 - b_c}

b is what the best clusters of structureless rows get with as many clusters as the tasks hold: fewer clusters are easier
to predict. A cluster that no task holds beside another scores 0: clusters that are only batches score nothing. The
*separation* of labels is the mean of s_c over clusters and over the kernels, each at its best λ of a small grid. Where
rows are seen by several kernels, a quadratic discriminant (:mod:`mtclust.choose.quadratic`) judges beside them:
clusters that touch may still have *shapes* of their own. The score that candidates are compared by is

.. math:: \tfrac23\,\text{separation} + \tfrac13\,\text{shape} - \kappa\,(1 - \text{evenness})

with the evenness H(π)/log C of the cluster sizes: neater clusters are not better where they are bought by one that
takes nearly all. Nothing is drawn at random: the same data give the same judgement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.choose._old import quadratic
from mtclust.choose.views import KernelSpec, View
from mtclust.core.criterion import SMALLEST_RESIDUAL, indicators

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: λ of the ridge regressions, the ridge of a task alone
LAMBDAS = 2.0 ** np.arange(3, -12, -2)
#: R² that the best 2 … 12 clusters of Gaussian rows reach
NOISE = (0.75, 0.70, 0.66, 0.63, 0.60, 0.57, 0.54, 0.52, 0.50, 0.48, 0.46)
#: R² that clusters of Gaussian rows reach under the quadratic discriminant, the least that it says of a cluster, its
#: weight beside the kernels
SHAPE_NOISE = 0.85
LEAST_SHAPE = -1.0
SHAPE_WEIGHT = 1 / 3
#: weight κ of uneven sizes
UNEVENNESS = 0.6
#: rows per task, and tasks, that are judged
ROWS = 250
TASKS = 60
#: eigenvalues below this are far below the smallest nλ/2 that they are compared to
_SMALLEST_EIGENVALUE = 1e-5


@dataclass(frozen=True)
class Verdict:
    """What the judge says of labels.

    Attributes
    ----------
    separation : float
        1 for membership that is predicted perfectly, about 0 for the best clusters of structureless rows.
    by_kernel : dict
        Separation under every kernel.
    by_cluster : ndarray of shape (C,)
    evenness : float
    shape : float, optional
        The same under the quadratic discriminant, where that judges.
    """

    separation: float
    by_kernel: dict[str, float]
    by_cluster: Array
    evenness: float
    shape: float | None = None

    @property
    def overall(self) -> float:
        """Separation and shape together, whatever the sizes are."""
        if self.shape is None:
            return self.separation
        return (1.0 - SHAPE_WEIGHT) * self.separation + SHAPE_WEIGHT * self.shape

    @property
    def score(self) -> float:
        """What candidates are compared by."""
        return self.overall - UNEVENNESS * (1.0 - self.evenness)

    @property
    def score_by_kernels(self) -> float:
        """The score without shapes, which vary more where tasks have few rows."""
        return self.separation - UNEVENNESS * (1.0 - self.evenness)


@dataclass(frozen=True)
class _Spectrum:
    """Eigenvectors U of one task's centred kernel, the filters s/(s + nλ/2) and diag(R) for every λ."""

    eigenvalues: Array
    U: Array
    filters: Array  # (number of λ, r)
    residual_diagonal: Array  # (n, number of λ)

    def errors(self, z: Array) -> Array:
        """‖e_c‖² for every λ (row) and cluster (column)."""
        n, C = z.shape
        if self.U.shape[1] == 0:  # rows that do not differ: nothing but the mean is predicted
            residuals = (z - z.mean(axis=0)) / (1.0 - 1.0 / n)
            return np.tile(np.einsum("nc,nc->c", residuals, residuals) * ((n - 1) / n) ** 2, (len(LAMBDAS), 1))
        filtered = self.filters[:, :, None] * (self.U.T @ z)  # (λ, r, C)
        flat = filtered.transpose(1, 0, 2).reshape(self.U.shape[1], len(self.filters) * C)
        fitted = (self.U @ flat).reshape(n, len(self.filters), C)
        residuals = (z - z.mean(axis=0))[:, None, :] - fitted
        residuals /= self.residual_diagonal[:, :, None]
        return np.einsum("nlc,nlc->lc", residuals, residuals) * ((n - 1) / n) ** 2


def _spectrum(kernel: Array) -> _Spectrum:
    n = len(kernel)
    eigenvalues, vectors = sla.eigh(kernel)
    keep = eigenvalues > _SMALLEST_EIGENVALUE
    s, U = eigenvalues[keep], vectors[:, keep]
    filters = s / (s + 0.5 * n * LAMBDAS[:, None])
    diagonal = 1.0 - 1.0 / n - (U**2) @ filters.T
    return _Spectrum(s, U, filters, np.maximum(diagonal, SMALLEST_RESIDUAL))


def noise_level(n_clusters: int) -> float:
    """R² that the best clusters of structureless rows reach; nothing is left to predict with one cluster."""
    return NOISE[min(n_clusters, len(NOISE) + 1) - 2] if n_clusters > 1 else 0.0


def evenness(labels: Labels, n_clusters: int) -> float:
    """H(π)/log C: 1 for equal sizes, 0 if one cluster has all rows.

    Examples
    --------
    >>> import numpy as np
    >>> evenness(np.array([0, 0, 1, 1]), 2), evenness(np.array([0, 0, 0, 0]), 2)
    (1.0, 0.0)
    """
    if n_clusters < 2:
        return 1.0
    share = np.bincount(labels, minlength=n_clusters) / len(labels)
    share = share[share > 0]
    return min(1.0, float(abs(np.sum(share * np.log(share))) / np.log(n_clusters)))


class Judge:
    """Judges labels of rows sorted by task.

    Parameters
    ----------
    kernels : dict
        Name → kernel matrix (N × N) of the rows, centred by task.
    offsets : ndarray of shape (m + 1,)
    by_shape : bool
        Whether a quadratic discriminant judges beside several kernels: not where numbers of clusters are compared, of
        which it knows no noise.
    """

    def __init__(self, kernels: dict[str, Array], offsets: NDArray[np.int64], by_shape: bool = True) -> None:
        self.offsets = offsets
        self._by_shape = by_shape and len(kernels) > 1
        tasks = np.flatnonzero(np.diff(offsets) > 1)
        if len(tasks) > TASKS:
            tasks = tasks[np.linspace(0, len(tasks) - 1, TASKS).astype(np.int64)]
        self._tasks = tasks
        self._rows = [_spread(int(offsets[i]), int(offsets[i + 1])) for i in tasks]
        self._spectra = {
            name: [_spectrum(kernel[np.ix_(rows, rows)]) for rows in self._rows] for name, kernel in kernels.items()
        }

    @classmethod
    def of(cls, view: View, kernels: Sequence[KernelSpec], by_shape: bool = True) -> Judge:
        """The judge of the rows of a view, through kernels, every task in its own frame."""
        return cls({spec.name: view.through(spec, "task").centred.matrix for spec in kernels}, view.offsets, by_shape)

    def __call__(self, labels: Labels, n_clusters: int) -> Verdict:
        by_kernel = self._by_kernel(labels, n_clusters, range(len(self._rows)))
        clusters = np.mean(list(by_kernel.values()), axis=0)
        even = self._evenness(labels, n_clusters)
        shape = float(self._shapes(labels, n_clusters).mean()) if self._by_shape else None
        means = {name: float(own.mean()) for name, own in by_kernel.items()}
        return Verdict(float(clusters.mean()), means, clusters, even, shape)

    def by_task(self, labels: Labels, n_clusters: int) -> dict[int, float]:
        """Separation within every task that is judged, by its own rows alone."""
        parts = {int(task): self._by_kernel(labels, n_clusters, [k]) for k, task in enumerate(self._tasks)}
        return {task: float(np.mean(list(by_kernel.values()))) for task, by_kernel in parts.items()}

    def _by_kernel(self, labels: Labels, n_clusters: int, which: Sequence[int]) -> dict[str, Array]:
        """s_c of every cluster under each kernel, from some of the judged tasks."""
        if not which:
            return {name: np.zeros(n_clusters) for name in self._spectra}
        parts = [indicators(labels[self._rows[k]], n_clusters) for k in which]
        spreads = [len(z) * z.mean(axis=0) * (1 - z.mean(axis=0)) for z in parts]
        levels = [spread * noise_level(int(np.count_nonzero(z.any(axis=0)))) for spread, z in zip(spreads, parts)]
        total = np.sum(spreads, axis=0)
        held = total > 0
        noise = np.divide(np.sum(levels, axis=0), total, out=np.zeros(n_clusters), where=held)
        result = {}
        for name, spectra in self._spectra.items():
            errors = np.sum([spectra[k].errors(z) for k, z in zip(which, parts)], axis=0)
            r_squared = np.zeros((len(LAMBDAS), n_clusters))
            r_squared[:, held] = 1.0 - errors[:, held] / total[held]
            best = r_squared[int(r_squared.mean(axis=1).argmax())]
            result[name] = np.where(held, (best - noise) / (1.0 - noise), 0.0)
        return result

    def _shapes(self, labels: Labels, n_clusters: int) -> Array:
        """s_c of every cluster under the quadratic discriminant, on the directions of the first kernel."""
        errors, total = np.zeros(n_clusters), np.zeros(n_clusters)
        for rows, spectrum in zip(self._rows, next(iter(self._spectra.values()))):
            share = np.bincount(labels[rows], minlength=n_clusters) / len(rows)
            total += len(rows) * share * (1 - share)
            X = quadratic.leading_directions(spectrum.U, spectrum.eigenvalues, n_clusters)
            errors += quadratic.errors(X, labels[rows], n_clusters)
        held = total > 0
        r_squared = 1.0 - np.divide(errors, total, out=np.ones(n_clusters), where=held)
        own = (r_squared - SHAPE_NOISE) / (1.0 - SHAPE_NOISE)
        return np.where(held, np.maximum(own, LEAST_SHAPE), 0.0)

    def _evenness(self, labels: Labels, n_clusters: int) -> float:
        parts: Sequence[Labels] = [labels[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:])]
        return float(np.mean([evenness(part, n_clusters) for part in parts]))


def _spread(begin: int, end: int) -> NDArray[np.int64]:
    """At most ``ROWS`` rows, the same ones every time; every k-th row would follow cycles in the order of rows."""
    if end - begin <= ROWS:
        return np.arange(begin, end)
    return begin + np.sort(np.random.default_rng(0).permutation(end - begin)[:ROWS])
