"""The three estimators of the paper."""

from mtclust.estimators.methods import DMTFC, DMTRC, DSTC

__all__ = ["DMTFC", "DMTRC", "DSTC"]
