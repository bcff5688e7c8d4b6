"""Faster steps of the coupling matrix: Anderson acceleration of the closed form, in the log domain.

Iterating the closed form converges, but slowly where Z becomes nearly singular. In L = log Z the map is smooth and Z
stays positive definite whatever is extrapolated. The caller takes a proposal only if it lowers the objective.

A proposal keeps the weak directions as alive as the closed form does: one that it killed could grow again only by steps
too small to lower the objective, and the search would take the standstill for its end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import symmetric_eigen

Array = NDArray[np.float64]

#: steps remembered; more gains nothing
_MEMORY = 5
#: factor of the first step after a reset, when there is nothing to extrapolate from
_OVER_RELAXATION = 2.0
#: eigenvalues that an extrapolation may not make smaller than the closed form does
_SMALL = 1e-5
#: and the smallest, as a share of I/m, where the closed form is singular
_REVIVAL = 1e-8
#: eigenvalues of Z are floored here before the logarithm
_LOG_FLOOR = 1e-14
#: singular values of the differences below this share are rounding
_RANK = 1e-8


class Accelerator:
    """Proposes the next Z from the last ones and their closed-form targets."""

    def __init__(self) -> None:
        self._points: list[Array] = []
        self._targets: list[Array] = []

    def reset(self) -> None:
        """Forget the past: the labels, and with them the map, have changed."""
        self._points.clear()
        self._targets.clear()

    def restart(self) -> None:
        """A proposal failed: go on from the last point only."""
        del self._points[:-1], self._targets[:-1]

    def propose(self, Z: Array, target: Array) -> Array:
        """Extrapolated Z with trace 1."""
        point, (image, smallest) = log_matrix(Z)[0], log_matrix(target)
        floor = np.clip(smallest / np.trace(target), _REVIVAL / len(Z), _SMALL)
        self._points = [*self._points[-_MEMORY:], point]
        self._targets = [*self._targets[-_MEMORY:], image]
        if len(self._points) == 1:
            return _exp_trace_one(point + _OVER_RELAXATION * (image - point), floor)
        residuals = np.array([(b - a).ravel() for a, b in zip(self._points, self._targets)])
        images = np.array([b.ravel() for b in self._targets])
        weights = np.linalg.lstsq(np.diff(residuals, axis=0).T, residuals[-1], rcond=_RANK)[0]
        return _exp_trace_one(image - (weights @ np.diff(images, axis=0)).reshape(Z.shape), floor)


def log_matrix(Z: Array) -> tuple[Array, float]:
    """Logarithm of a positive semidefinite matrix, eigenvalues floored; and its smallest eigenvalue."""
    eigenvalues, vectors = symmetric_eigen(Z)
    return (vectors * np.log(np.maximum(eigenvalues, _LOG_FLOOR))) @ vectors.T, float(eigenvalues[0])


def _exp_trace_one(L: Array, floor: float) -> Array:
    """The exponential of L with trace 1, small eigenvalues raised to ``floor``."""
    eigenvalues, vectors = symmetric_eigen(0.5 * (L + L.T))
    values = np.exp(eigenvalues - eigenvalues.max())
    values = np.maximum(values / values.sum(), floor)
    return (vectors * (values / values.sum())) @ vectors.T
