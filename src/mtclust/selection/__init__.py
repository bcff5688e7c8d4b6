"""Choosing without labels: the number of clusters. What else is left open is chosen by :mod:`mtclust.choose`."""

from mtclust.selection.n_clusters import ClusterNumberChoice, select_n_clusters

__all__ = ["ClusterNumberChoice", "select_n_clusters"]
