"""Nuisance columns: what the tasks share but nobody wants to find (document length, library size, batch).

Coupling amplifies whatever the tasks share. :func:`remove_nuisance` takes out of X, within every task, all that is
linear in columns Z the user names: X − [1 Z] B with the least-squares B of the task.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import pinv
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from mtclust.core import Array
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks
from mtclust.core.validation import check_index, read_rows
from mtclust.exceptions import SmallTaskWarning
from mtclust.util.messages import warn_user


def _read_nuisance(nuisance: Any, X: Any, n_samples: int) -> Array:
    check_index(X, nuisance, "nuisance")
    try:
        one = (getattr(nuisance, "ndim", None) or np.ndim(nuisance)) == 1
        given = np.reshape(np.asarray(nuisance), (-1, 1)) if one else nuisance
        columns = check_array(given, accept_sparse=True, dtype=np.float64, input_name="nuisance")
    except (TypeError, ValueError) as error:
        raise ValueError(
            "nuisance must be numbers, one row per row of X and one column per nuisance; one-hot encode categories "
            f"such as a batch (sklearn.preprocessing.OneHotEncoder). {error}"
        ) from error
    if columns.shape[0] != n_samples:
        raise ValueError(f"nuisance has {columns.shape[0]} rows but X has {n_samples}; give one per row of X.")
    return columns.toarray() if sp.issparse(columns) else columns


def remove_nuisance(X: Any, nuisance: Any, *, tasks: Any = None) -> Array:
    """X without what is linear in the nuisance columns, within every task.

    Returns the residuals of the least-squares regression of every column of X on an intercept and the nuisance
    columns, one regression per task. They are orthogonal to the nuisance within each task, and have mean zero there.
    Nothing in the library does this unasked: it helps where the nuisance hides the clusters, and costs where clusters
    differ in it.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, d)
        Rows of all tasks, in any order; weighted features, not counts.
    nuisance : array, sparse matrix or data frame of shape (n,) or (n, q)
        What should not matter: :func:`log_length`, library size, a one-hot encoded batch. Columns that repeat each
        other, or do not vary within a task, are no problem.
    tasks : array of shape (n,), optional
        The task of each row; one task by default.

    Returns
    -------
    ndarray of shape (n, d)
        Dense also for sparse X, as residuals have no zeros: reduce a large one first
        (``sklearn.decomposition.TruncatedSVD``).

    Warns
    -----
    SmallTaskWarning
        If a task has no more rows than independent nuisance columns and the intercept: nothing is left of its rows.

    See Also
    --------
    NuisanceRemover : The same as a transformer, which can also treat rows that were not in ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.nuisance import remove_nuisance
    >>> length = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    >>> X = (5 * length + [0.0, 3.0, 0.0, 0.0, -3.0, 0.0])[:, None]
    >>> remove_nuisance(X, length, tasks=["a", "a", "a", "b", "b", "b"]).ravel().round(6).tolist()
    [-1.0, 2.0, -1.0, 1.0, -2.0, 1.0]
    """
    rows = read_rows(NuisanceRemover(), X, tasks, reset=True)[0].astype(np.float64, copy=False)
    return NuisanceRemover().fit_transform(rows, nuisance=_read_nuisance(nuisance, X, rows.shape[0]), tasks=tasks)


class NuisanceRemover(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """:func:`remove_nuisance` as a transformer: new rows are treated with the regressions of ``fit``.

    Without ``nuisance`` it leaves X as it is. In a pipeline ``nuisance`` and ``tasks`` come by scikit-learn's metadata
    routing (``sklearn.set_config(enable_metadata_routing=True)``), nothing needs to be requested.

    Attributes
    ----------
    tasks_ : ndarray of shape (m,)
        The tasks, sorted.
    coef_ : ndarray of shape (m, q, d) or None
        Effect of each nuisance column on each feature, per task; None without nuisance.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.nuisance import NuisanceRemover
    >>> length = np.array([1.0, 2.0, 3.0, 4.0])
    >>> remover = NuisanceRemover().fit(5 * length[:, None], nuisance=length)
    >>> remover.transform([[20.0]], nuisance=[3.0]).round(6).tolist()
    [[5.0]]
    """

    __metadata_request__fit: ClassVar = {"nuisance": True, "tasks": True}
    __metadata_request__transform: ClassVar = {"nuisance": True, "tasks": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None, *, nuisance: Any = None, tasks: Any = None) -> NuisanceRemover:
        """Fit one regression per task.

        Parameters
        ----------
        X, nuisance, tasks
            As for :func:`remove_nuisance`; ``nuisance=None`` removes nothing.
        y : ignored

        Returns
        -------
        self
        """
        rows, _ = read_rows(self, X, tasks, reset=True)
        index = index_tasks(tasks, rows.shape[0])
        self.tasks_ = index.names
        self.coef_: Array | None = None
        if nuisance is None:
            return self
        Z = _read_nuisance(nuisance, X, rows.shape[0])
        empty, found = [], []
        for name, part in zip(index.names.tolist(), index.slices()):
            X_i, Z_i = rows[index.order[part]], Z[index.order[part]]
            mean, level = np.asarray(X_i.mean(axis=0)).ravel(), Z_i.mean(axis=0)
            spread = np.linalg.norm(Z_i - level, axis=0)
            spread[spread <= 1e-13 * np.linalg.norm(Z_i, axis=0)] = np.inf  # constant but for rounding
            # the coefficients of least norm where columns repeat each other
            inverse, rank = pinv((Z_i - level) / spread, atol=1e-10, return_rank=True)
            inverse = inverse / spread[:, None]
            found.append((inverse @ X_i - np.outer(inverse.sum(axis=1), mean), mean, level))
            if rank + 1 >= len(Z_i):
                empty.append(name)
        if empty:
            warn_user(
                f"{len(empty)} of {len(found)} tasks have no more rows than nuisance has independent columns, the "
                f"intercept counted (first: {empty[0]!r}): nothing is left of their rows. Give fewer nuisance columns.",
                SmallTaskWarning,
            )
        self.coef_, self._feature_means, self._nuisance_means = map(np.stack, zip(*found))
        return self

    def transform(self, X: Any, *, nuisance: Any = None, tasks: Any = None) -> Any:
        """X − [1 Z] B with the B of each row's task.

        Parameters
        ----------
        X, nuisance, tasks
            As in ``fit``; ``tasks`` may be a single id.

        Returns
        -------
        ndarray of shape (n, d)
            X itself, as an array or CSR, if fitted without nuisance.
        """
        check_is_fitted(self, "tasks_")
        rows, _ = read_rows(self, X, tasks, reset=False)
        if (nuisance is None) != (self.coef_ is None):
            given, fitted = ("not given", "with") if nuisance is None else ("given", "without")
            raise ValueError(f"nuisance is {given} but NuisanceRemover was fitted {fitted} it; do the same in both.")
        if self.coef_ is None:
            return rows
        columns = _read_nuisance(nuisance, X, rows.shape[0])
        if columns.shape[1] != self.coef_.shape[1]:
            raise ValueError(f"nuisance has {columns.shape[1]} columns but had {self.coef_.shape[1]} in fit.")
        numbers = numbers_of_known_tasks(tasks, rows.shape[0], self.tasks_)
        left = rows.toarray() if sp.issparse(rows) else rows.copy()
        for task in np.unique(numbers):
            own = numbers == task
            effect = (columns[own] - self._nuisance_means[task]) @ self.coef_[task]
            left[own] -= self._feature_means[task] + effect
        return left

    def fit_transform(self, X: Any, y: Any = None, *, nuisance: Any = None, tasks: Any = None) -> Any:
        """Fit, and transform the same rows."""
        return self.fit(X, nuisance=nuisance, tasks=tasks).transform(X, nuisance=nuisance, tasks=tasks)
