r"""Text: weights of terms.

Features of a document, with t the count of a term in it, n the number of documents of *all* tasks and df of those with
the term:

.. math:: (1 + \log t)\; \Big(\log\frac{1 + n}{1 + \mathrm{df}} + 1\Big), \qquad \text{rows scaled to length 1}
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.validation import check_array


class TaskTfidf(TfidfVectorizer):
    """Text defaults for multitask clustering: sublinear tf × idf over all tasks, rows of length 1.

    It is scikit-learn's ``TfidfVectorizer`` with ``sublinear_tf=True``, to be fitted on the documents of all tasks
    together: what is common in one task and rare in another must not count differently in the two. Use it with
    ``kernel="linear"``, and neither scale nor centre its columns: the estimators centre each task. Counts of terms are
    weighted alike by ``TfidfTransformer(sublinear_tf=True)``.

    Parameters
    ----------
    min_df, max_df : int or float, default=1 and 1.0
        Keep the terms in at least ``min_df`` and at most ``max_df`` of the documents of all tasks: a number of them if
        int, a share if float.
    ngram_range : tuple of int, default=(1, 1)
        Lengths of the terms, in words.
    stop_words : "english", list or None, default=None
        Words that are no terms.
    vocabulary : sequence of str, optional
        The terms; by default those of the documents.

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

    def __init__(
        self,
        *,
        min_df: float = 1,
        max_df: float = 1.0,
        ngram_range: tuple[int, int] = (1, 1),
        stop_words: Any = None,
        vocabulary: Any = None,
    ) -> None:
        terms = {"ngram_range": ngram_range, "stop_words": stop_words, "vocabulary": vocabulary}
        super().__init__(sublinear_tf=True, min_df=min_df, max_df=max_df, **terms)

    def decode(self, doc: Any) -> str:
        """The text of a document."""
        if not isinstance(doc, str | bytes):
            raise ValueError(f"documents must be strings; got {doc!r}. Leave missing ones out, or give '' for them.")
        return str(super().decode(doc))


def log_length(X: Any) -> NDArray[np.float64]:
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
    if sp.issparse(X) or np.ndim(X) == 2:
        counts = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_non_negative=True, input_name="X")
        return np.log1p(np.asarray(counts.sum(axis=1)).ravel())
    words = TaskTfidf().build_analyzer()
    return np.log1p(np.array([len(words(document)) for document in X], dtype=np.float64))
