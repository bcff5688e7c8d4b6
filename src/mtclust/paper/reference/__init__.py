"""The methods the paper compares with, all with ``fit(X, y=None, *, tasks=None)``.

:data:`REFERENCE_METHODS` lists them under the paper's names (KM, ALL NC, ...), with their grids and what is not known
about them. LSKMTC and MBC are reconstructions.

>>> from mtclust.paper.reference import REFERENCE_METHODS
>>> list(REFERENCE_METHODS)[:4]
['KM', 'KKM', 'NC', 'ALL KM']
"""

from mtclust.paper.reference.kernel_kmeans import KernelKMeans
from mtclust.paper.reference.lskmtc import LSKMTC
from mtclust.paper.reference.lssmtc import LSSMTC
from mtclust.paper.reference.mbc import MBC
from mtclust.paper.reference.normalized_cut import NormalizedCut
from mtclust.paper.reference.registry import REFERENCE_METHODS, ReferenceMethod, reference_method
from mtclust.paper.reference.wrappers import PerTask, Pooled

__all__ = [
    "LSKMTC",
    "LSSMTC",
    "MBC",
    "REFERENCE_METHODS",
    "KernelKMeans",
    "NormalizedCut",
    "PerTask",
    "Pooled",
    "ReferenceMethod",
    "reference_method",
]
