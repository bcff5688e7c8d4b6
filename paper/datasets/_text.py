"""From counts of terms to the features of text tasks: which terms, which weights, how many dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from mtclust.text import fit_weights, kept_terms

WEIGHTINGS = ("tfidf", "counts", "binary")


@dataclass(frozen=True)
class TextOptions:
    """How counts become features; the loaders' docstrings say what each option means."""

    weighting: str = "tfidf"
    sublinear_tf: bool = True
    idf_power: float = 1.0
    norm: str | None = "l2"
    min_df: int = 1
    max_df: float = 1.0
    in_every_task: bool = False
    n_components: int | None = None

    def __post_init__(self) -> None:
        if self.weighting not in WEIGHTINGS:
            raise ValueError(f"weighting must be one of {', '.join(WEIGHTINGS)}; got {self.weighting!r}.")
        if self.norm not in ("l2", None):
            raise ValueError(f"norm must be 'l2' or None; got {self.norm!r}.")
        if self.min_df < 0:
            raise ValueError(f"min_df must be a number of rows, 0 or more; got {self.min_df}.")
        if not 0 < self.max_df <= 1:
            raise ValueError(f"max_df must be a share of the rows in (0, 1]; got {self.max_df}.")
        if self.n_components is not None and self.n_components < 1:
            raise ValueError(f"n_components must be None or at least 1; got {self.n_components}.")


def text_features(
    counts: Any, names: NDArray[Any], tasks: NDArray[Any], options: TextOptions
) -> tuple[Any, NDArray[Any] | None]:
    """Features and their names (None after PCA) from the counts of the drawn rows.

    Terms are chosen and weighted over the rows of all tasks together (:func:`mtclust.text.fit_weights` says why).

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> counts = sp.csr_array(np.array([[1, 2, 0], [1, 0, 3]]))
    >>> X, names = text_features(counts, np.array(["a", "b", "c"]), np.array([0, 0]), TextOptions(min_df=2))
    >>> X.toarray().tolist(), names.tolist()
    ([[1.0], [1.0]], ['a'])
    """
    keep = _kept_terms(counts, tasks, options)
    X = _weight(sp.csr_array(counts[:, keep], dtype=np.float64), options)
    if options.n_components is None:
        return X, names[keep]
    if options.n_components >= min(X.shape):
        raise ValueError(
            f"n_components={options.n_components} must be less than the number of rows and of terms; X is {X.shape}."
        )
    # ARPACK keeps X sparse and makes many small products, where threads cost far more than they give (10 s for .5 s on
    # a busy machine); one thread and a fixed start vector also give the same numbers everywhere
    with threadpool_limits(limits=1):
        return PCA(options.n_components, svd_solver="arpack", random_state=0).fit_transform(X), None


def _kept_terms(counts: Any, tasks: NDArray[Any], options: TextOptions) -> NDArray[np.int64]:
    # here min_df is always a number of rows and max_df always a share
    chosen_by = tasks if options.in_every_task else None
    return kept_terms(counts, math.ceil(options.min_df), float(options.max_df), chosen_by)


def _weight(X: Any, options: TextOptions) -> Any:
    if options.weighting == "counts":
        return X
    if options.weighting == "binary":
        X.data[:] = 1.0
        return normalize(X, norm="l2", copy=False) if options.norm == "l2" else X
    weights = fit_weights(X, sublinear_tf=options.sublinear_tf, idf_power=options.idf_power, norm=options.norm)
    return sp.csr_array(weights.transform(X, copy=False))
