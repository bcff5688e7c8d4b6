"""Choosing without labels: the number of clusters. What else is left open is chosen by :mod:`mtclust.choose`."""

from mtclust.choose.n_clusters import select_n_clusters
from mtclust.choose.number_choice import ClusterNumberChoice

__all__ = ["ClusterNumberChoice", "select_n_clusters"]
