"""Checks of X and of what is given with it, which every estimator of the library shares.

``read_rows`` accepts what scikit-learn accepts (arrays, sparse matrices, pandas and polars frames) and separates the
task column, if one was named, from the features. Common mistakes in the arguments of ``fit``, ``predict`` and ``score``
are explained before anything else goes wrong.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_array

from mtclust.core.tasks import ORDERED, names_of, numbers_of_known_tasks, task_ids
from mtclust.exceptions import InputWarning
from mtclust.util.messages import warn_user

#: whole names of columns that hold task ids more often than measurements
_LIKE_TASKS = re.compile(
    r"(task|group|site|batch|domain|subject|patient|hospital|shop|store|school|country|region|plant|lab|study|cohort)"
    r"s?([ _-]?(id|no|nr|number|code|name))?",
    re.IGNORECASE,
)
#: columns whose standard deviations differ by this factor
_FAR_APART = 1e3


def read_rows(estimator: BaseEstimator, X: Any, tasks: Any, *, reset: bool) -> tuple[Any, Any]:
    """Validate X and return ``(features, tasks)``.

    Sets (``reset=True``) or checks ``n_features_in_`` and ``feature_names_in_`` on the estimator; with a task column
    both count that column, as scikit-learn counts every column it was given.
    """
    task_column = getattr(estimator, "task_column", None)
    if task_column is not None and tasks is not None:
        raise ValueError("tasks and task_column were both given; use one of them.")
    if X is None:
        raise ValueError("X is None; expected a table with one row per sample.")
    check_index(X, tasks, "tasks")
    _check_feature_names(estimator, X, reset=reset)
    X = X if hasattr(X, "dtype") or hasattr(X, "dtypes") else np.asarray(X)
    if task_column is not None:
        _check_n_features(estimator, X, reset=reset)
        X, tasks = split_task_column(X, task_column)
        tasks = task_ids(tasks, X.shape[0], f"task_column={task_column!r}")
    if np.ma.is_masked(X):
        raise ValueError("X is a masked array with masked values; fill them in (X.filled) or leave these rows out.")
    types = zip(X.columns, X.dtypes) if hasattr(X, "columns") else [(str(X.dtype), X.dtype)]
    other = [name for name, dtype in types if str(dtype).lower().startswith(("date", "time", "duration"))]
    try:
        if other:  # scikit-learn reads dates as numbers
            raise TypeError
        rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], estimator=estimator, input_name="X")
    except (TypeError, ValueError) as error:
        if "contains NaN" in str(error):
            raise ValueError(
                "Input X contains NaN; missing values are not filled in here. Fill them in "
                "(sklearn.impute.SimpleImputer, within tasks if these differ in level), leave these rows or columns "
                "out, or use mtclust.cluster, which fills them in within tasks."
            ) from error
        if hasattr(X, "iloc") and hasattr(X, "columns"):
            other = [name for name in X.columns if not _holds_numbers(X[name])]
        if not other and "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X must hold numbers, not text or dates ({names_of(other) if other else error}). Leave such columns out, "
            "encode them (pandas.get_dummies), use mtclust.cluster, which reads them, or, for the one that says which "
            "task a row belongs to, give task_column= to the constructor."
        ) from error
    if task_column is None:
        _check_n_features(estimator, rows, reset=reset)
    return rows, tasks


def read_known_rows(estimator: BaseEstimator, X: Any, tasks: Any) -> tuple[Any, Any]:
    """Features of rows of tasks that were in ``fit``, and the numbers of these tasks."""
    features, ids = read_rows(estimator, X, tasks, reset=False)
    return features, numbers_of_known_tasks(ids, features.shape[0], estimator.tasks_)


def split_task_column(X: Any, task_column: str | int) -> tuple[Any, Any]:
    """Take the column of task ids out of a table: ``(features, task ids)``."""
    named = hasattr(X, "columns")
    columns = list(X.columns) if named else list(range(X.shape[1])) if X.ndim == 2 else []
    if task_column not in columns and (named or task_column not in range(-len(columns), 0)):
        raise ValueError(f"task_column={task_column!r} is not a column of X, which has {names_of(columns)}.")
    if named:
        return (X.drop(columns=task_column) if hasattr(X, "iloc") else X.drop(task_column)), X[task_column]
    keep = np.arange(X.shape[1]) != int(task_column) % X.shape[1]
    if sp.issparse(X):
        csc = X.tocsc()
        return csc[:, keep].tocsr(), csc[:, ~keep].toarray().ravel()
    return X[:, keep], X[:, int(task_column)]


def generator_of(random_state: Any) -> np.random.Generator:
    """Random numbers that follow from what scikit-learn takes as ``random_state``."""
    return np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_input(X: Any, y: Any, tasks: Any, known: Any, task_column: Any) -> None:
    """Look for mistakes in the arguments of ``fit``."""
    if isinstance(X, list | tuple) and len(X) and all(np.ndim(table) == 2 for table in X):
        raise ValueError(
            f"X is a list of {len(X)} tables; stack them first: X, tasks = mtclust.stack_tasks(tables), then "
            "fit(X, tasks=tasks)."
        )
    columns = list(getattr(X, "columns", ()))
    if isinstance(tasks, str) and tasks in columns:
        raise ValueError(
            f"tasks={tasks!r} is the name of a column of X, and would make all rows one task of that name; give "
            f"task_column={tasks!r} to the constructor, or tasks=X[{tasks!r}] and X without that column."
        )
    check_index(X, known, "known")
    if y is not None and np.asarray(y).dtype.kind in "OUST":
        warn_user(
            "y holds text or categories and is ignored, as in every clusterer of scikit-learn. The task of a row is "
            "given by fit(X, tasks=...), without which all are one task; clusters that are known by fit(X, known=...).",
            InputWarning,
        )
    if tasks is None and task_column is None:
        found = [name for name in columns if isinstance(name, str) and _LIKE_TASKS.fullmatch(name.strip())]
        found = [name for name in found if not hasattr(X, "iloc") or _holds_numbers(X[name])]
        if found:
            warn_user(
                f"X has a column {found[0]!r}, which was clustered by like any measurement, with all rows as one task. "
                f"If it says which task a row belongs to, give task_column={found[0]!r} to the constructor.",
                InputWarning,
            )


def check_spreads(X: Any, rows: Any, kernel: Any) -> None:
    """Say that the columns of a table differ in spread so much that some of them count for nothing."""
    if not isinstance(rows, np.ndarray) or kernel not in ("auto", "linear", "rbf") or len(rows) < 2:
        return
    with np.errstate(over="ignore", invalid="ignore"):
        spreads = rows[:: max(1, len(rows) // ORDERED)].std(axis=0, dtype=np.float64)
    varying = np.flatnonzero(np.isfinite(spreads) & (spreads > 0))
    if len(varying) < 2:
        return
    least, most = varying[spreads[varying].argmin()], varying[spreads[varying].argmax()]
    if spreads[most] < _FAR_APART * spreads[least]:
        return
    names = list(getattr(X, "columns", ()))
    named = [repr(names[k]) if len(names) == rows.shape[1] else f"number {k}" for k in (most, least)]
    warn_user(
        f"the columns of X differ in spread by a factor of {spreads[most] / spreads[least]:.0e}: column {named[0]} has "
        f"a standard deviation of {spreads[most]:.2g}, column {named[1]} one of {spreads[least]:.2g} and counts for "
        "nothing. Columns are never rescaled here; use sklearn.preprocessing.StandardScaler first, or mtclust.cluster, "
        "which does that.",
        InputWarning,
    )


def check_grid() -> None:
    """Warn where a grid search of scikit-learn compares numbers of clusters by ``score``, which they change."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_name != "_fit_and_score":
        frame = frame.f_back
    tried = frame.f_locals.get("parameters") if frame.f_code.co_name == "_fit_and_score" else None
    if tried and any(str(name).rpartition("__")[2] == "n_clusters" for name in tried):
        warn_user(
            "the search compares different values of n_clusters by score, but the separation of few and of many "
            'clusters cannot be compared; n_clusters="auto" chooses the number, or see select_n_clusters.',
            InputWarning,
        )


def check_index(X: Any, values: Any, argument: str) -> None:
    """Refuse a pandas Series whose index is not that of X: it would be taken by position."""
    if not (hasattr(X, "iloc") and hasattr(values, "iloc") and hasattr(values, "index")):
        return
    if len(values) == len(X) and not values.index.equals(X.index):
        raise ValueError(
            f"the index of {argument} is not that of X, or in another order ({names_of(values.index)} against "
            f"{names_of(X.index)}); {argument} would be matched to rows by position. Use {argument}.reindex(X.index) "
            f"to match them by index, or {argument}.to_numpy() if the positions are right."
        )


def _holds_numbers(column: Any) -> bool:
    """Whether all entries of a column are numbers, whatever they are held as; scikit-learn reads these."""
    try:
        column.astype(float)
    except (TypeError, ValueError):
        return False
    return True
