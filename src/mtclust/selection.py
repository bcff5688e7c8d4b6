"""Choosing without labels: the number of clusters, and what ``selection_`` says.

What else is left open is chosen by :mod:`mtclust.choose`.
"""

from mtclust.choose.number import ClusterNumberChoice, select_n_clusters
from mtclust.choose.record import CouplingDecision, NumberOfClusters, Selection, Tried

__all__ = [
    "ClusterNumberChoice", "CouplingDecision", "NumberOfClusters", "Selection", "Tried",
    "select_n_clusters",
]  # fmt: skip
