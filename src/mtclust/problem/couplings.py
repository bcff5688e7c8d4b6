"""The ways of coupling tasks by name: what each is with kernel matrices, and with explicit features.

A new one is a class of :mod:`mtclust.core.coupling` (the problem in the labels for one Z), a system of
:mod:`mtclust.primal.systems` (the models for one Z), and an entry here; an estimator names it in ``_method``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Coupling, Independent, Relationship, SharedFeatures
from mtclust.core.kernels import EigenFeatures

if TYPE_CHECKING:
    from mtclust.primal.systems import System

Array = NDArray[np.float64]


@dataclass(frozen=True)
class CouplingKind:
    """One way of coupling.

    Attributes
    ----------
    with_kernels : callable
        From the kernel matrix, the offsets of the tasks, eigen-features (None unless the method asks for them), λ₁ by
        task and λ₂.
    with_features : callable
        From the Gram matrices 2S_i/n_i (m × r × r), λ₁ by task and λ₂.
    couples_labels : bool
        Whether the labels of one task enter the objective of another, given Z; ids are then common to all tasks by the
        objective itself.
    """

    with_kernels: Callable[[Array, NDArray[np.int64], EigenFeatures | None, Array, float], Coupling]
    with_features: Callable[[Array, Array, float], System]
    couples_labels: bool


def _relationship(
    kernel: Array, offsets: NDArray[np.int64], features: EigenFeatures | None, lambda1: Array, lambda2: float
) -> Coupling:
    return Relationship(kernel, offsets, lambda1, lambda2)


def _relationship_system(grams: Array, lambda1: Array, lambda2: float) -> System:
    # imported late, here and below: fits with kernel matrices need no systems
    from mtclust.primal.systems import relationship_system

    return relationship_system(grams, lambda1, lambda2)


def _shared(
    kernel: Array, offsets: NDArray[np.int64], features: EigenFeatures | None, lambda1: Array, lambda2: float
) -> Coupling:
    assert features is not None
    return SharedFeatures(features, offsets, float(lambda1.mean()), lambda2)


def _shared_system(grams: Array, lambda1: Array, lambda2: float) -> System:
    from mtclust.primal.systems import SharedSystem

    return SharedSystem(grams, float(lambda1.mean()), lambda2)


def _alone(
    kernel: Array, offsets: NDArray[np.int64], features: EigenFeatures | None, lambda1: Array, lambda2: float
) -> Coupling:
    return Independent(kernel, offsets, lambda1 + len(lambda1) * lambda2)


def _alone_system(grams: Array, lambda1: Array, lambda2: float) -> System:
    from mtclust.primal.systems import AloneSystem

    return AloneSystem(grams, lambda1 + len(lambda1) * lambda2)


#: by Ω (DMTRC), by D (DMTFC), not at all (DSTC)
COUPLINGS = {
    "relationship": CouplingKind(_relationship, _relationship_system, True),
    "features": CouplingKind(_shared, _shared_system, False),
    "independent": CouplingKind(_alone, _alone_system, False),
}
