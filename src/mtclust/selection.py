"""Choosing without labels: the number of clusters, and what ``selection_`` says.

What else is left open is chosen by :mod:`mtclust.choose`.
"""

from mtclust.choose.number import select_n_clusters
from mtclust.choose.record import ClusterNumberChoice, CouplingDecision, Selection, Tried

__all__ = ["ClusterNumberChoice", "CouplingDecision", "Selection", "Tried", "select_n_clusters"]
