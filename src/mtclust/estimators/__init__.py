"""The three estimators of the paper."""

from mtclust.estimators.dmtfc import DMTFC
from mtclust.estimators.dmtrc import DMTRC
from mtclust.estimators.dstc import DSTC

__all__ = ["DMTFC", "DMTRC", "DSTC"]
