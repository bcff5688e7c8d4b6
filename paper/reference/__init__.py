"""The methods the paper compares with, under the paper's names, with their grids.

What is not known about the originals stands in the docstrings of the functions.

To add one: write a function like :func:`~paper.reference.kernel_methods.kernel_k_means` and a line in the table below.

>>> list(REFERENCE_METHODS)[:4]
['KM', 'KKM', 'NC', 'ALL KM']
>>> REFERENCE_METHODS["MBC"].label
'MBC (reconstruction)'
"""

from __future__ import annotations

from typing import Any

from paper.reference.base import ReferenceMethod
from paper.reference.kernel_methods import WIDTHS, k_means, kernel_k_means, normalised_cut
from paper.reference.lskmtc import lskmtc
from paper.reference.lssmtc import lssmtc
from paper.reference.mbc import mbc

_WIDTH: Any = {"default": {"width": 1.0}, "grid": {"width": WIDTHS}}
_METHODS = (
    ReferenceMethod("KM", k_means),
    ReferenceMethod("KKM", kernel_k_means, **_WIDTH),
    ReferenceMethod("NC", normalised_cut, **_WIDTH),
    ReferenceMethod("ALL KM", k_means, pooled=True),
    ReferenceMethod("ALL KKM", kernel_k_means, pooled=True, **_WIDTH),
    ReferenceMethod("ALL NC", normalised_cut, pooled=True, **_WIDTH),
    ReferenceMethod(
        "LSSMTC",
        lssmtc,
        {"trade_off": 0.5, "n_components": 4},
        {"trade_off": (0.25, 0.5, 0.75), "n_components": (2, 4, 8, 16)},
    ),
    ReferenceMethod(
        "LSKMTC",
        lskmtc,
        {"mmd_weight": 10.0, "n_neighbors": 10},
        {"mmd_weight": (1.0, 10.0, 100.0, 1000.0), "n_neighbors": (5, 10)},
        reconstruction=True,
    ),
    ReferenceMethod("MBC", mbc, {"strength": 1.0}, {"strength": (0.0625, 0.25, 1.0, 4.0)}, reconstruction=True),
)

#: name → method, in the order of the paper
REFERENCE_METHODS = {method.name: method for method in _METHODS}

__all__ = ["REFERENCE_METHODS", "ReferenceMethod"]
