"""The methods that the paper compares with are in :mod:`mtclust.paper.reference` now."""

from mtclust._moved import moved as _moved

__getattr__ = _moved(
    __name__,
    "mtclust.paper.reference",
    (
        "LSKMTC", "LSSMTC", "MBC", "REFERENCE_METHODS", "KernelKMeans", "NormalizedCut", "PerTask", "Pooled",
        "ReferenceMethod", "reference_method",
    ),
)  # fmt: skip
