"""Checks of X that every estimator of the library shares.

``read_rows`` accepts what scikit-learn accepts (arrays, sparse matrices, pandas and polars frames) and separates the
task column, if one was named, from the features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from mtclust.core.tasks import task_ids

#: columns that a message names
_LISTED = 3


def read_rows(
    estimator: BaseEstimator,
    X: Any,
    tasks: Any,
    *,
    task_column: str | int | None = None,
    reset: bool,
) -> tuple[Any, Any]:
    """Validate X and return ``(features, tasks)``.

    Sets (``reset=True``) or checks ``n_features_in_`` and ``feature_names_in_`` on the estimator; with a task column
    both count that column, as scikit-learn counts every column it was given.
    """
    if task_column is not None and tasks is not None:
        raise ValueError("tasks and task_column were both given; use one of them.")
    _check_feature_names(estimator, X, reset=reset)
    if task_column is not None:
        X_whole = X if hasattr(X, "shape") else np.asarray(X)
        _check_n_features(estimator, X_whole, reset=reset)
        X, tasks = split_task_column(X_whole, task_column)
        tasks = task_ids(tasks, X.shape[0], f"task_column={task_column!r}")
    elif X is None:
        raise ValueError("X is None; expected a table with one row per sample.")
    if np.ma.is_masked(X):
        masked = np.ma.getmaskarray(X)
        raise ValueError(
            f"X is a masked array with {int(masked.sum())} masked values (first in row "
            f"{int(np.argwhere(masked)[0][0])}); fill them in (X.filled) or leave these rows out."
        )
    try:
        features = check_array(
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            estimator=estimator,
            input_name="X",
        )
    except ValueError as error:
        if "contains NaN" in str(error):
            raise ValueError(
                f"Input X contains NaN{_missing_where(X)}; missing values are not filled in here. Fill them in "
                "(sklearn.impute.SimpleImputer, within tasks if these differ in level), leave these rows or columns "
                "out, or use mtclust.cluster, which fills them in within tasks."
            ) from error
        if "could not convert string" not in str(error):
            raise
        raise ValueError(f"X must hold numbers, but holds text ({error}); leave it out or encode it.") from error
    if task_column is None:
        _check_n_features(estimator, features, reset=reset)
    return features, tasks


def _missing_where(X: Any) -> str:
    """How many values of a data frame of pandas are missing, and in which columns; nothing of other tables."""
    if not hasattr(X, "iloc"):
        return ""
    counts = X.isna().sum()
    names = [repr(name) for name in counts.index[counts > 0]]
    shown = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
    return f" ({int(counts.sum())} missing values in {shown})"


def split_task_column(X: Any, task_column: str | int) -> tuple[Any, Any]:
    """Take the column of task ids out of a table: ``(features, task ids)``."""
    if hasattr(X, "columns"):
        columns = list(X.columns)
        if task_column not in columns:
            raise ValueError(f"task_column={task_column!r} is not a column of X; its columns are {columns}.")
        ids = X[task_column]
        is_pandas = hasattr(X, "iloc")
        return (X.drop(columns=task_column) if is_pandas else X.drop(task_column)), ids
    if X.ndim != 2:
        raise ValueError(f"X has shape {X.shape}; task_column needs a table with two dimensions.")
    if isinstance(task_column, str):
        raise ValueError(
            f"task_column={task_column!r} is a name but X is an array without column names; "
            "give the column's number or pass a data frame."
        )
    n_columns = X.shape[1]
    if not -n_columns <= task_column < n_columns:
        raise ValueError(f"task_column={task_column} is out of range: X has {n_columns} columns.")
    position = task_column % n_columns
    keep = np.arange(n_columns) != position
    if sp.issparse(X):
        csc = X.tocsc()
        return csc[:, keep].tocsr(), csc[:, [position]].toarray().ravel()
    return X[:, keep], X[:, position]


def generator_of(random_state: Any) -> np.random.Generator:
    """Random numbers that follow from what scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
