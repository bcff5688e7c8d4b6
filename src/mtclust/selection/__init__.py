"""Choosing without labels: kernel width, λ, cluster sizes, number of clusters, and whether to couple the tasks."""

from mtclust.choose.n_clusters import select_n_clusters
from mtclust.choose.number_choice import ClusterNumberChoice
from mtclust.selection.coupling import CouplingTest, coupling_statistic
from mtclust.selection.kernel import KernelChoice, select_kernel
from mtclust.selection.sizes import SizeChoice, choose_sizes

__all__ = [
    "ClusterNumberChoice",
    "CouplingTest",
    "KernelChoice",
    "SizeChoice",
    "choose_sizes",
    "coupling_statistic",
    "select_kernel",
    "select_n_clusters",
]
