"""The decision function of models found at scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.model import DecisionModel
from mtclust.primal.features import FeatureMap
from mtclust.primal.rows import Moments

Array = NDArray[np.float64]


def decision_model(
    features: FeatureMap, own: Moments, shift: NDArray[Any] | None, present: NDArray[np.bool_], W: Array
) -> DecisionModel:
    """f(x) = (z(x) − μ_i)ᵀW_i/√s as a model on X or on kernel values with the landmarks."""
    scaled = W / own.root_scale
    centre = own.mean if shift is None else own.mean + shift
    intercept = -np.einsum("ir,irc->ic", centre, scaled)
    if features.projection is None:
        return DecisionModel(features.kernel, None, scaled.transpose(0, 2, 1).copy(), intercept, present)
    coefficients = np.stack([features.projection @ part for part in scaled])
    return DecisionModel(features.kernel, features.landmarks, coefficients, intercept, present)
