"""Clusters of a Gaussian mixture, from which a search may begin: it sees shapes that random labels may not lead to."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.choose._old.quadratic import directions_of
from mtclust.choose.views import KernelSpec, View
from mtclust.core.assignment import assign
from mtclust.core.labels import neutral_bounds

#: variance added to directions, relative to their mean, and least probability of a cluster
_SMALLEST_VARIANCE = 1e-6
_SMALLEST_CHANCE = 1e-12


def mixture_labels(view: View, clusters: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Clusters of all rows in their leading directions, with those that every task must have.

    None where rows do not differ or are too few. It begins with k-means, and always the same way.
    """
    from sklearn.mixture import GaussianMixture

    kernel, offsets = view.through(KernelSpec("linear"), "task").centred, view.offsets
    n, C = len(kernel.matrix), int(clusters.max())
    if kernel.scale == 0 or n < 2 * C:
        return None
    X = directions_of(kernel.matrix, C)
    mixture = GaussianMixture(C, reg_covar=_SMALLEST_VARIANCE * X.var(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        chance = np.log(np.maximum(mixture.fit(X).predict_proba(X), _SMALLEST_CHANCE))
    bounds = neutral_bounds(np.diff(offsets), clusters)
    parts = zip(offsets[:-1], offsets[1:], bounds.lower, bounds.upper)
    return np.concatenate([assign(-chance[a:b], lower, upper) for a, b, lower, upper in parts])
