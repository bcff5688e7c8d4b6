"""From counts of terms to the features of text tasks: which terms, which weights, how many dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from mtclust.tasks import split_by_task

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

    Terms are chosen and weighted over the rows of all tasks together: with an idf of each task's own, what is common
    in one task and rare in another would count differently in the two, and the tasks would share less than they do.

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


def _document_frequency(counts: Any) -> NDArray[np.int64]:
    return np.bincount(counts.indices, minlength=counts.shape[1])


def _kept_terms(counts: Any, tasks: NDArray[Any], options: TextOptions) -> NDArray[np.int64]:
    frequency = _document_frequency(counts)
    kept = (frequency >= options.min_df) & (frequency <= options.max_df * counts.shape[0])
    if options.in_every_task:
        for part in split_by_task(counts, tasks).values():
            kept &= _document_frequency(part) > 0
    if not kept.any():
        raise ValueError(
            f"no term is left with min_df={options.min_df}, max_df={options.max_df}, "
            f"in_every_task={options.in_every_task}; loosen them."
        )
    return np.flatnonzero(kept)


def _weight(X: Any, options: TextOptions) -> Any:
    if options.weighting == "counts":
        return X
    if options.weighting == "binary":
        X.data[:] = 1.0
    else:
        if options.sublinear_tf:
            X.data = 1.0 + np.log(X.data)
        # scikit-learn's smooth idf: as if one more row held every term, so that no term weighs nothing
        idf = np.log((1 + X.shape[0]) / (1 + _document_frequency(X))) + 1.0
        X.data *= (idf**options.idf_power)[X.indices]
    return normalize(X, norm="l2", copy=False) if options.norm == "l2" else X
