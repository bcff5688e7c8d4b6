"""Choosing without labels: the number of clusters, and what ``selection_`` says.

What else is left open is chosen by :mod:`mtclust.choose`.
"""

from mtclust.choose.n_clusters import select_n_clusters
from mtclust.choose.number_choice import ClusterNumberChoice
from mtclust.choose.record import CouplingDecision, NumberOfClusters, Selection, SizesChoice, Tried

__all__ = [
    "ClusterNumberChoice", "CouplingDecision", "NumberOfClusters", "Selection", "SizesChoice", "Tried",
    "select_n_clusters",
]  # fmt: skip
