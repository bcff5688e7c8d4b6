r"""Text: weights of terms.

Features of a document, with t the count of a term in it, n the number of documents of *all* tasks and df of those with
the term:

.. math:: (1 + \log t)\; \Big(\log\frac{1 + n}{1 + \mathrm{df}} + 1\Big)^{p}, \qquad \text{rows scaled to length 1}
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context, clone
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_array, check_is_fitted

from mtclust.core.tasks import split_by_task, task_ids
from mtclust.core.validation import read_rows

Array = NDArray[np.float64]


class TaskTfidf(TransformerMixin, BaseEstimator):
    """Text defaults for multitask clustering: sublinear tf × idf over all tasks, rows of length 1.

    Use it with ``kernel="linear"``, and neither scale nor centre its columns: the estimators centre each task.

    Parameters
    ----------
    sublinear_tf : bool, default=True
        1 + log of the count in place of the count.
    idf_power : float, default=1.0
        Exponent of the inverse document frequency; 2 favours topics over style, 0 leaves the idf out.
    norm : {"l2", None}, default="l2"
        Scale rows to length 1, so that long documents do not count for more.
    min_df, max_df : int or float, default=1 and 1.0
        Keep the terms in at least ``min_df`` and at most ``max_df`` of the documents of all tasks: a number of them if
        int, a share if float.
    in_every_task : bool, default=False
        Keep only the terms that occur in every task; ``fit`` then needs ``tasks``.
    vectorizer : object, optional
        What turns strings into counts: a ``CountVectorizer`` with your options (n-grams, stop words); one with
        scikit-learn's defaults if None. Not used for tables of counts.

    Attributes
    ----------
    idf_ : ndarray
        Weight of each kept term, the power included.
    columns_ : ndarray
        The columns of the counts that were kept.
    vectorizer_ : object or None
        The fitted vectorizer; None if fitted on counts.
    n_features_in_, feature_names_in_
        Of the table of counts, if fitted on one.

    See Also
    --------
    remove_nuisance : Take document length out of the features.

    Examples
    --------
    >>> from mtclust.text import TaskTfidf
    >>> tfidf = TaskTfidf(min_df=2).fit(["a good book", "a dull book", "good sound"])
    >>> tfidf.get_feature_names_out().tolist()
    ['book', 'good']
    >>> tfidf.transform(["dull sound", "a good good book"]).toarray().round(2).tolist()
    [[0.0, 0.0], [0.51, 0.86]]

    In a pipeline, with scikit-learn's metadata routing switched off:

    >>> from sklearn.pipeline import make_pipeline
    >>> from mtclust import DMTRC
    >>> model = make_pipeline(TaskTfidf(), DMTRC(2, kernel="linear"))
    >>> model.fit(documents, dmtrc__tasks=tasks)  # doctest: +SKIP
    """

    __metadata_request__fit: ClassVar = {"tasks": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "sublinear_tf": ["boolean"],
        "idf_power": [Interval(Real, 0, None, closed="left")],
        "norm": [StrOptions({"l2"}), None],
        "min_df": [Interval(Integral, 0, None, closed="left"), Interval(RealNotInt, 0, 1, closed="both")],
        "max_df": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0, 1, closed="right")],
        "in_every_task": ["boolean"],
        "vectorizer": [HasMethods(["fit_transform", "transform", "get_feature_names_out"]), None],
    }

    def __init__(
        self,
        *,
        sublinear_tf: bool = True,
        idf_power: float = 1.0,
        norm: str | None = "l2",
        min_df: float = 1,
        max_df: float = 1.0,
        in_every_task: bool = False,
        vectorizer: Any = None,
    ) -> None:
        self.sublinear_tf = sublinear_tf
        self.idf_power = idf_power
        self.norm = norm
        self.min_df = min_df
        self.max_df = max_df
        self.in_every_task = in_every_task
        self.vectorizer = vectorizer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.positive_only = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, tasks: Any = None) -> TaskTfidf:
        """Choose the terms and fit the idf on the documents of all tasks together.

        Parameters
        ----------
        X : sequence of str, or table of counts of shape (n, d)
            The documents of all tasks; a table may be an array, a sparse matrix, a pandas or polars frame.
        y : ignored
        tasks : array of shape (n,), optional
            The task of each document; used by ``in_every_task`` only.

        Returns
        -------
        self
        """
        self._fit_counts(X, tasks)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_transform(self, X: Any, y: Any = None, *, tasks: Any = None) -> Any:
        """Fit, and return the features of the same documents as a CSR array."""
        counts = self._fit_counts(X, tasks)
        return sp.csr_array(self._weights.transform(counts, copy=False))

    def _fit_counts(self, X: Any, tasks: Any) -> Any:
        """Fit, and return the counts of the kept terms."""
        documents = _documents(X)
        if documents is None:
            self.vectorizer_ = None
            counts = self._checked(read_rows(self, X, None, reset=True)[0])
        else:
            for left_over in ("n_features_in_", "feature_names_in_"):  # of an earlier fit on counts
                self.__dict__.pop(left_over, None)
            self.vectorizer_ = CountVectorizer() if self.vectorizer is None else clone(self.vectorizer)
            counts = self._checked(self.vectorizer_.fit_transform(documents))
        if self.in_every_task and tasks is None:
            raise ValueError("tasks is required with in_every_task=True; got None. Give one task id per document.")
        # as in scikit-learn a whole number is a number of documents and a float a share of them
        n = counts.shape[0]
        low, high = (bound if isinstance(bound, Integral) else bound * n for bound in (self.min_df, self.max_df))
        ids = None if tasks is None else task_ids(tasks, n)
        parts = split_by_task(counts, ids).values() if self.in_every_task else []
        frequency, *of_tasks = (np.bincount(each.indices, minlength=counts.shape[1]) for each in (counts, *parts))
        self.columns_ = np.flatnonzero((frequency >= low) & (frequency <= high) & np.all(of_tasks, axis=0))
        if not len(self.columns_):
            raise ValueError(
                f"no term is left with min_df={self.min_df}, max_df={self.max_df}, in_every_task={self.in_every_task}; "
                "loosen them."
            )
        counts = counts[:, self.columns_]
        # over all tasks: what is common in one task and rare in another must not count differently in the two
        self._weights = TfidfTransformer(sublinear_tf=self.sublinear_tf, norm=self.norm).fit(counts)
        self._weights.idf_ = self._weights.idf_**self.idf_power
        return counts

    def transform(self, X: Any) -> Any:
        """Features of documents, or of counts if fitted on counts, as a CSR array of shape (n, kept terms)."""
        check_is_fitted(self, "columns_")
        documents = _documents(X)
        vectorizer: Any = self.vectorizer_
        if (documents is None) != (vectorizer is None):
            kinds = ("counts", "strings") if documents is None else ("strings", "counts")
            raise ValueError(f"X holds {kinds[0]} but TaskTfidf was fitted on {kinds[1]}; give {kinds[1]}.")
        if documents is None:
            counts = self._checked(read_rows(self, X, None, reset=False)[0])
        else:
            counts = self._checked(vectorizer.transform(documents))
        return sp.csr_array(self._weights.transform(counts[:, self.columns_], copy=False))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """The kept terms: those of the vectorizer, or the names of the kept columns of counts."""
        check_is_fitted(self, "columns_")
        if self.vectorizer_ is not None:
            return np.asarray(self.vectorizer_.get_feature_names_out(), dtype=object)[self.columns_]
        return _check_feature_names_in(self, input_features)[self.columns_]

    @property
    def idf_(self) -> Array:
        return self._weights.idf_

    def _checked(self, table: Any) -> Any:
        """A CSR copy in float64 without stored zeros, whose values can be counts."""
        counts = sp.csr_array(table, dtype=np.float64, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        smallest = counts.data.min(initial=np.inf)
        if smallest < 0:
            raise ValueError(
                f"Negative values in data passed to TaskTfidf: X has {smallest:g}; give counts, 0 or more, or strings."
            )
        if self.sublinear_tf and smallest < 1:
            raise ValueError(
                f"X has values between 0 and 1 (smallest {smallest:g}), whose 1 + log can be negative: X must be "
                "counts of terms, not weights or shares. Give the counts, or set sublinear_tf=False."
            )
        return counts


def _documents(X: Any) -> list[Any] | None:
    """The raw documents, or None where X is a table."""
    if isinstance(X, str | bytes):
        raise ValueError("X is a single string; give a sequence of strings, one per document.")
    shape = getattr(X, "shape", None)
    if X is None or sp.issparse(X) or (shape is not None and len(shape) == 2 and shape[1] != 1):
        return None
    if isinstance(X, np.ndarray) and X.dtype.kind not in "OUST":
        return None
    if isinstance(X, Iterator):
        X = list(X)
    values = np.asarray(X, dtype=object)  # object: a text is stored once, not padded to the longest
    if values.ndim == 2 and values.shape[1] != 1:
        return None
    documents = values.ravel().tolist()
    text = [isinstance(value, str | bytes) for value in documents]
    if any(text) and not all(text):
        row = text.index(False)
        raise ValueError(
            f"X has {documents[row]!r} of type {type(documents[row]).__name__} at row {row}; "
            "every document must be a string (an empty one is allowed)."
        )
    return documents if any(text) else None


def log_length(X: Any) -> Array:
    """log(1 + length) of each row: the number of words of a document, or the sum of a row of counts (library size).

    Parameters
    ----------
    X : sequence of str, or table of counts of shape (n, d)
        Strings are split as ``CountVectorizer()`` does. Give the counts of *all* terms, before any are dropped and
        before any weighting.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from mtclust.text import log_length
    >>> log_length(["", "good", "not good not bad"]).round(2).tolist()
    [0.0, 0.69, 1.61]
    """
    documents = _documents(X)
    if documents is not None:
        words = CountVectorizer().build_analyzer()
        return np.log1p(np.array([len(words(document)) for document in documents], dtype=np.float64))
    counts = check_array(X, accept_sparse="csr", dtype=np.float64, input_name="X")
    smallest = counts.min() if 0 not in counts.shape else 0.0
    if smallest < 0:
        raise ValueError(f"X has negative values (smallest {smallest:g}); give counts, 0 or more, or strings.")
    return np.log1p(np.asarray(counts.sum(axis=1)).ravel())
