"""Two signals beside the judge for a number of clusters: how far clusters lie apart, and how dense they are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

from mtclust.problem.pool import k_means

Array = NDArray[np.float64]

#: leading principal components that k-means and that mixtures see: full covariances need many rows
_DISTANCE_FEATURES, _DENSITY_FEATURES = 100, 10
_K_MEANS_RUNS = 10
#: added to variances, as a share of their mean
_REGULARISATION = 1e-3


def principal_components(kernel: Array, most: int) -> Array:
    """Rows in the leading directions of a centred kernel, the strongest first; directions without variance left out."""
    n = len(kernel)
    eigenvalues, vectors = sla.eigh(kernel, subset_by_index=(max(0, n - most), n - 1))
    kept = eigenvalues > 1e-10 * max(float(eigenvalues[-1]), 0.0)
    return (vectors[:, kept] * np.sqrt(eigenvalues[kept]))[:, ::-1]


def by_distance(kernel: Array, numbers: list[int]) -> int | None:
    """The number with the highest silhouette of k-means; None where there are too few different rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([-1.0, 0.0, 1.0], 5) + np.tile([-0.02, -0.01, 0.0, 0.01, 0.02], 3)
    >>> by_distance(np.outer(x, x), [2, 3, 4])
    3
    """
    features = principal_components(kernel, _DISTANCE_FEATURES)
    best, chosen = -np.inf, None
    different = len(np.unique(features.round(9), axis=0)) if features.shape[1] else 1
    for C in numbers:
        if different <= C:
            break
        value = silhouette_score(features, k_means(features, C, _K_MEANS_RUNS))
        if value > best:
            best, chosen = value, C
    return chosen


def by_density(kernel: Array, numbers: list[int], labels: Sequence[NDArray[np.int64] | None]) -> int | None:
    """The number with the lowest BIC of Gaussian mixtures; None where there are too few rows.

    Parameters
    ----------
    kernel : ndarray of shape (n, n)
        Centred.
    numbers : list of int
    labels : sequence of (ndarray or None)
        Clusters that a mixture may start from, beside k-means, for every number.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([-1.0, 0.0, 1.0], 20) + np.tile(np.linspace(-0.1, 0.1, 20), 3)
    >>> by_density(np.outer(x, x), [2, 3], [None, None])
    3
    """
    features = principal_components(kernel, _DENSITY_FEATURES)
    if not features.shape[1]:
        return None
    best, chosen = np.inf, None
    for C, known in zip(numbers, labels):
        if len(features) <= C:
            break
        value = _bic(features, C, None)
        if known is not None and len(np.unique(known)) == C:
            value = min(value, _bic(features, C, np.stack([features[known == c].mean(axis=0) for c in range(C)])))
        if value < best:
            best, chosen = value, C
    return chosen


def _bic(features: Array, n_clusters: int, means: Array | None) -> float:
    small = _REGULARISATION * float(features.var(axis=0).mean())
    mixture = GaussianMixture(n_clusters, reg_covar=small, means_init=means, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(mixture.fit(features).bic(features))
