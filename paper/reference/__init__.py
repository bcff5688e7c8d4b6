"""The methods the paper compares with, all with ``fit(X, y=None, *, tasks=None)``.

:data:`REFERENCE_METHODS` lists them under the paper's names (KM, ALL NC, ...), with their grids and what is not known
about them. LSKMTC and MBC are reconstructions.

>>> from paper.reference import REFERENCE_METHODS
>>> list(REFERENCE_METHODS)[:4]
['KM', 'KKM', 'NC', 'ALL KM']
"""

from paper.reference.base import PerTask, Pooled
from paper.reference.kernel_methods import KernelKMeans, NormalizedCut
from paper.reference.lskmtc import LSKMTC
from paper.reference.lssmtc import LSSMTC
from paper.reference.mbc import MBC
from paper.reference.registry import REFERENCE_METHODS, ReferenceMethod

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
]
