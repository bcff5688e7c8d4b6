"""Two signals beside the judge for a number of clusters: how far clusters lie apart, and how dense they are."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture

Array = NDArray[np.float64]

#: leading principal components that k-means and that mixtures see: full covariances need many rows
_DISTANCE_FEATURES, _DENSITY_FEATURES = 100, 10
_K_MEANS_RUNS, _MIXTURE_RUNS = 10, 2
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = KMeans(C, n_init=_K_MEANS_RUNS, random_state=0).fit_predict(features)
        value = silhouette_score(features, labels)
        if value > best:
            best, chosen = value, C
    return chosen


def by_density(kernel: Array, numbers: list[int]) -> int | None:
    """The number with the lowest BIC of Gaussian mixtures; None where there are too few rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.repeat([-1.0, 0.0, 1.0], 20) + np.tile(np.linspace(-0.1, 0.1, 20), 3)
    >>> by_density(np.outer(x, x), [2, 3])
    3
    """
    features = principal_components(kernel, _DENSITY_FEATURES)
    if not features.shape[1]:
        return None
    small = _REGULARISATION * float(features.var(axis=0).mean())
    best, chosen = np.inf, None
    for C in numbers:
        if len(features) <= C:
            break
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            value = (
                GaussianMixture(C, n_init=_MIXTURE_RUNS, reg_covar=small, random_state=0).fit(features).bic(features)
            )
        if value < best:
            best, chosen = value, C
    return chosen
