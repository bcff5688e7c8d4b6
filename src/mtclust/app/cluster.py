"""From a table to its clusters: :func:`mtclust.cluster`; the command line calls the same. And back from a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

import mtclust
from mtclust.app.clustering import Clustering, Rows, is_polars, row_margins
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import read_any
from mtclust.app.tables.values import MISSING
from mtclust.core.tasks import strings_of
from mtclust.exceptions import TableError, TableWarning
from mtclust.persistence.models import load as load_model
from mtclust.util.messages import option, phase, warn_user


def cluster(
    table: Any,
    task: Any = None,
    n_clusters: int | str | range | Mapping[Any, int] = "auto",
    *,
    columns: str | Sequence[str] | None = None,
    text_column: str | None = None,
    keys: str | Sequence[str] = (),
    categories: str | Sequence[str] = (),
    scale: str = "standard",
    missing: str | float | Sequence[Any] = (),
    decimal: str | None = None,
    date_format: str | None = None,
    method: str = "dmtrc",
    kernel: str = "auto",
    random_state: int | None = 0,
    **options: Any,
) -> Clustering:
    """Cluster the rows of several related tables (tasks) at once.

    Columns may hold numbers, categories, dates, booleans or text. Numbers are standardised; a category as a whole and a
    date have a third of a number's weight. Identifiers (ids, counters, postcodes), columns that are the same in all
    rows of a task, and categories and dates that are not associated with any other column are ignored; missing values
    are filled in from the rows of the same task. :attr:`Clustering.notes` says what was done. Cluster ids are matched
    between tasks as well as the data allow; :attr:`Clustering.findings` and the summary say where they do not match.

    Parameters
    ----------
    table : pandas or polars DataFrame, mapping from task to DataFrame, path, or sequence of paths
        Several files without ``task`` are one task each. Of several tables the columns that all have are used.
    task : name of a column, or one task per row
        The column that says which task a row belongs to; a series is matched by its index.
    n_clusters : int, "auto", range or mapping, default="auto"
        As the estimators take it.
    columns : str or sequence of str, optional
        Cluster by these only.
    text_column : str, optional
        Cluster by the text in this column only.
    keys : str or sequence of str
        Columns that name a row and are not used.
    categories : str or sequence of str
        Columns of numbers that are names, such as postcodes.
    scale : {"standard", "range", "none"}, default="standard"
        Numbers to standard deviation 1, to the range 0 to 1, or as they are.
    missing : str, number or sequence of these
        Further cells that mean "not known", such as "?" or -999.
    decimal : {".", ","}, optional
        Decimal mark of numbers that are strings; recognised by default.
    date_format : str, optional
        Such as "%d/%m/%Y"; ISO and others are recognised.
    method : {"dmtrc", "dmtfc", "dstc"}, default="dmtrc"
        Learn how the tasks are related, which features they share, or cluster each task alone.
    kernel : {"auto", "rbf", "linear"} or callable, default="auto"
        As the estimators take it.
    random_state : int, default=0
    **options
        Further parameters of the estimator (``sizes``, ``coupling``, ``lambda1``, …).

    Returns
    -------
    Clustering
        With ``labels``, ``clusters``, ``tasks``, ``predict``, ``report``, ``summary`` and ``save``.

    Examples
    --------
    >>> import mtclust
    >>> import pandas as pd
    >>> sales = pd.DataFrame(
    ...     {
    ...         "shop": ["Oslo"] * 8 + ["Rome"] * 8,
    ...         "basket": [10, 12, 80, 85, 11, 14, 79, 88, 20, 22, 90, 99, 19, 25, 92, 97],
    ...         "member": ["no", "no", "yes", "yes"] * 4,
    ...     }
    ... )
    >>> found = mtclust.cluster(sales, task="shop", n_clusters=2, kernel="linear", sizes="balanced")
    >>> found.labels.tolist()
    [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0]
    >>> print(found.clusters.loc[0, "characterised_by"])
    member = yes (100 %; others 0 %), higher basket (88.8; others 16.6)
    >>> found.predict(pd.DataFrame({"shop": ["Rome"], "basket": [95.0], "member": ["yes"]})).tolist()
    [0]
    """
    kernel = kernel if callable(kernel) else _one_of("kernel", kernel, ("auto", "rbf", "linear"))
    rows = read_any(table, task)
    with phase("reading the columns"):
        encoder = TableEncoder.fit(
            rows, columns=None if columns is None else _names("columns", columns),
            text_column=None if text_column is None else str(text_column), keys=_names("keys", keys),
            categories=_names("categories", categories), scale=_one_of("scale", scale, ("standard", "range", "none")),
            missing=(*MISSING, *_names("missing", missing)), date_format=date_format,
            decimal=None if decimal is None else _one_of("decimal", decimal, (".", ",")),
        )  # fmt: skip
        X, _ = encoder.transform(rows)
    tasks = strings_of(rows.tasks)
    notes = list(rows.notes)
    if len(set(tasks)) == 1:
        notes.append("There is a single task, so that nothing could be shared between tasks.")
    kind = getattr(mtclust, _one_of("method", method.lower(), ("dmtrc", "dmtfc", "dstc")).upper())
    unknown = sorted(set(options) - set(kind._get_param_names()))
    if unknown:
        raise TableError(f"{kind.__name__} has no parameter {option(unknown[0])}; leave it out.")
    estimator = kind(n_clusters, kernel=kernel, random_state=random_state, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with phase(f"clustering {len(tasks):,} rows of {len(np.unique(tasks))} tasks"):
                model = estimator.fit(X, tasks=tasks)
                margins = row_margins(model.decision_function(X, tasks=tasks), model.labels_)
        except (ValueError, MemoryError) as error:  # what the user can mend: rows, clusters, sizes
            raise TableError(str(error)) from error
    warned: list[Any] = [TableWarning(doubt) for doubt in encoder.doubts]
    for doubt in encoder.doubts:
        warn_user(doubt, TableWarning)
    warned += [entry.message for entry in caught if issubclass(entry.category, UserWarning)]
    kept = Rows(rows, X, np.searchsorted(model.tasks_, tasks), *margins)
    return Clustering(model, encoder, {}, [*notes, *encoder.notes], warned, _rows=kept, _polars=is_polars(table))


def _names(argument: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str | bytes | Real):
        return (str(given),)
    if not isinstance(given, Iterable):
        raise TableError(f"{option(argument)} is {given!r}; give a name or a list of names.")
    return tuple(map(str, given))


def _one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise TableError(f"{option(name, repr(value))} is not known; it is one of {', '.join(map(repr, allowed))}.")
    return value


def load(path: str | os.PathLike[str], *, return_extra: bool = False) -> Any:
    """Read a model or a clustering that was saved; nothing in the file is executed, whoever made it.

    Parameters
    ----------
    path : str or path
    return_extra : bool, default=False
        Return the model itself and what was saved as ``extra`` (None if nothing was).

    Returns
    -------
    model : Clustering, DMTRC, DMTFC or DSTC
        What was saved: a clustering of a table, also one by ``mtclust fit``, or an estimator. It predicts, clusters new
        tasks and shows itself as the one that was saved; scores may differ by rounding.
    extra : dict or None
        Only with ``return_extra=True``.

    Raises
    ------
    mtclust.exceptions.ModelFileError
        If the file is no saved model, is damaged, or was written in a format that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mtclust
    >>> import pandas as pd
    >>> prices = pd.DataFrame({"shop": ["a", "a", "a", "b", "b", "b"], "price": [1.0, 1.2, 9.0, 2.0, 9.9, 9.5]})
    >>> found = mtclust.cluster(prices, task="shop", n_clusters=2, kernel="linear", sizes=1.0)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     found.save(Path(directory) / "prices.mtclust")
    ...     loaded = mtclust.load(Path(directory) / "prices.mtclust")
    >>> loaded.predict(pd.DataFrame({"shop": ["a", "b"], "price": [8.0, 1.5]})).tolist()
    [0, 1]
    """
    return load_model(path) if return_extra else load_model(path, Clustering.of_saved)
