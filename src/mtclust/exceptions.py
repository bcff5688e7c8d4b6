"""Warnings and errors of the library."""

from __future__ import annotations


class SmallTaskWarning(UserWarning):
    """A task has too few rows for the number of clusters or for a centre of its own.

    Examples
    --------
    >>> import warnings
    >>> from mtclust import DSTC
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = DSTC(3, kernel="linear", random_state=0)
    ...     _ = model.fit([[0.0], [1.0], [5.0], [9.0]], tasks=["a", "a", "a", "b"])
    >>> any(issubclass(warning.category, SmallTaskWarning) for warning in caught)
    True
    """


class InputWarning(UserWarning):
    """What was given to ``fit`` was used in a way that was probably not meant: it says what was done.

    Examples
    --------
    >>> import warnings
    >>> from mtclust import DSTC
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = DSTC(2, random_state=0).fit([[0.0], [0.1], [5.0], [5.1]], ["a", "b", "a", "b"])
    >>> str(caught[0].message)
    'y holds text or categories and is ignored, ... The task of a row is given by fit(X, tasks=...), ...'
    """


class UncoupledWarning(UserWarning):
    """Coupling the tasks was refused: their own rows contradict the coupled labels.

    Examples
    --------
    >>> import warnings
    >>> from mtclust import DMTRC
    >>> from mtclust.datasets import make_related_tasks
    >>> made = make_related_tasks(5, task_covariance="unrelated", n_features=12, separation=2.0, random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(made.data, tasks=made.tasks)
    >>> caught[0].category.__name__, model.selection_["coupling"]["decision"]
    ('UncoupledWarning', 'none')
    """


class DegenerateSolutionWarning(UserWarning):
    """The convex relaxation has collapsed: its relaxed labels carry (almost) no information about clusters.

    Examples
    --------
    >>> issubclass(DegenerateSolutionWarning, UserWarning)
    True
    """


class ClusterNumberWarning(UserWarning):
    """There may be no clusters, the data do not decide on their number, or it stands at the end of its range.

    Examples
    --------
    >>> issubclass(ClusterNumberWarning, UserWarning)
    True
    """


class ModelFileError(ValueError):
    """A file is no saved model, is damaged, or was written in a format that this version does not know.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import mtclust
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory) / "model"
    ...     _ = path.write_text("no model")
    ...     try:
    ...         mtclust.load(path)
    ...     except ModelFileError:
    ...         print("refused")
    refused
    """


class ClusterLostError(RuntimeError):
    """The Dask cluster that holds the rows is gone, or does not get on any more.

    Examples
    --------
    >>> issubclass(ClusterLostError, RuntimeError)
    True
    """


class CommandError(Exception):
    """Something the user of the command line can mend; printed without a traceback.

    Examples
    --------
    >>> raise CommandError("column 'shop' is not in sales.csv")
    Traceback (most recent call last):
    mtclust.exceptions.CommandError: column 'shop' is not in sales.csv
    """


class TableError(CommandError, ValueError):
    """A table, a column or a file cannot be used as it is; the message says where and what to do.

    Examples
    --------
    >>> import mtclust
    >>> import pandas as pd
    >>> mtclust.cluster(pd.DataFrame({"shop": ["a", "b"], "size": [1, 2]}), task="store")
    Traceback (most recent call last):
    mtclust.exceptions.TableError: task: there is no column 'store'. The columns are 'shop', 'size'.
    """


class TableWarning(UserWarning):
    """A table holds values far from all others, or rows for ``predict`` something that was not there before.

    Examples
    --------
    To stop on it instead of being told:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TableWarning)
    ...     warnings.warn("column colour has values that were not there in fit", TableWarning)
    Traceback (most recent call last):
    mtclust.exceptions.TableWarning: column colour has values that were not there in fit
    """
