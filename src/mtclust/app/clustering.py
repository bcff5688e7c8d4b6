"""The clusters of a table: what :func:`mtclust.cluster` returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.assigning import assign, row_margins
from mtclust.app.findings import clusters_table, least_sure_rows, tasks_table
from mtclust.app.tables import Table, TableEncoder
from mtclust.app.tables.table import read_tables, table_of_frames
from mtclust.app.witnesses import Witness, doubt, witnesses
from mtclust.core.ids import strings_of
from mtclust.core.stability import Stability
from mtclust.estimators.facts import Facts, facts_of
from mtclust.exceptions import TableError, TableWarning
from mtclust.problem.common import rows_in_frame
from mtclust.util.extras import require
from mtclust.util.warning import warn_user

#: what of a clustering is saved beside the model
SAVED_FORMAT = 1


@dataclass(frozen=True)
class Rows:
    """The rows that were clustered; a saved clustering does not have them.

    Attributes
    ----------
    table : Table
    X : array or sparse matrix
        Their features.
    task_numbers : ndarray of shape (n,)
        Place of each row's task in ``model.tasks_``.
    margins : ndarray of shape (n,)
        How much the score of a row's own cluster exceeds the next.
    """

    table: Table
    X: Any
    task_numbers: NDArray[np.int64]
    margins: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Clustering:
    """The clusters of a table with several tasks, as :func:`mtclust.cluster` finds them.

    Attributes
    ----------
    model : DMTRC, DMTFC or DSTC
        The fitted estimator.
    encoder : TableEncoder
        How the columns become its features.
    names : dict
        Names that were given to clusters with :meth:`rename`.
    notes : list of str
        What was done with the table: columns left out, values filled in, what had to be guessed.
    warned : list of warnings
        What the estimator warned of.

    Examples
    --------
    >>> import mtclust
    >>> import pandas as pd
    >>> prices = pd.DataFrame({"shop": ["a", "a", "a", "b", "b", "b"], "price": [1.0, 1.2, 9.0, 2.0, 9.9, 9.5]})
    >>> found = mtclust.cluster(prices, task="shop", n_clusters=2, kernel="linear", sizes=1.0)
    >>> found = found.rename({0: "cheap", 1: "dear"})
    >>> found.labels.tolist()
    ['cheap', 'cheap', 'dear', 'cheap', 'dear', 'dear']
    >>> found.clusters["rows"].to_dict()
    {'cheap': 3, 'dear': 3}
    """

    model: Any
    encoder: TableEncoder
    names: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warned: list[Any] = field(default_factory=list)
    _rows: Rows | None = None
    _polars: bool = False
    _kept: dict[str, Any] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """How many clusters there are."""
        return int(self.model.n_clusters_)

    def name(self, cluster: int) -> str:
        """What a cluster is called: the name it was given, or its number."""
        return self.names.get(cluster, f"cluster {cluster}")

    @cached_property
    def labels(self) -> Any:
        """The cluster of every row: a series on the table's index, of numbers or, after :meth:`rename`, names."""
        return self._series(self.named(self.model.labels_), self._index(), "cluster")

    @cached_property
    def margins(self) -> Any:
        """How clear the cluster of every row is: its score minus that of the next cluster; a series."""
        return self._series(self.rows("margins").margins, self._index(), "margin")

    @cached_property
    def clusters(self) -> Any:
        """A table with a row per cluster.

        Its columns: ``rows``, ``share`` of all rows, the share in every task, what it is ``characterised_by``,
        ``silhouette`` and ``separation`` (1: clear-cut, 0: not), the mean ``probability`` of its rows, ``stability``
        once it was asked for, and ``exemplars``, the index of typical rows.
        """
        return self._frame(clusters_table(self) if self._rows is not None else self._kept_table("clusters"))

    @cached_property
    def tasks(self) -> Any:
        """A table with a row per task: rows, the share of every cluster, the closest task, and what is particular."""
        return self._frame(tasks_table(self) if self._rows is not None else self._kept_table("tasks"))

    @property
    def facts(self) -> Facts:
        """How far the clusters can be trusted: separation, stability, rows that belong nowhere, other methods."""
        return facts_of(self.model, "" if self._rows is None else doubt(self.witnesses))

    @cached_property
    def witnesses(self) -> list[Witness]:
        """k-means and a Gaussian mixture on the same rows, judged by the same score, the best first."""
        rows, common = self.rows("witnesses"), self.model.selection_.center != "task"
        X = rows_in_frame(self.model._kept, rows.X, rows.task_numbers)
        return witnesses(X, rows.task_numbers, np.asarray(self.model.labels_), self.n_clusters, common)

    def stability(self, n_refits: int = 10) -> Stability | None:
        """Cluster subsamples anew and see what stays the same; found once, and kept with the model.

        Parameters
        ----------
        n_refits : int, default=10

        Returns
        -------
        Stability or None
            None for one cluster, and for labels of cutting planes.
        """
        known = getattr(self.model, "stability_", None)
        if known is not None or self.n_clusters == 1 or self.model.solver == "cutting-plane":
            return known
        rows = self.rows("stability")
        return self.model.stability(rows.X, tasks=self.model.tasks_[rows.task_numbers], n_refits=n_refits)

    def least_sure(self, n: int = 10) -> Any:
        """The rows whose cluster is least clear, with their values.

        Parameters
        ----------
        n : int, default=10
            How many.
        """
        self.rows("least_sure")
        return self._frame(least_sure_rows(self, n))

    def rename(self, names: Mapping[int, str]) -> Clustering:
        """The same clusters with names, which then stand in labels, tables, predictions, the report and saved files.

        Parameters
        ----------
        names : mapping from int to str
            Of some or all clusters.
        """
        unknown = [c for c in names if c not in range(self.n_clusters)]
        if unknown:
            raise TableError(f"names: there is no cluster {unknown[0]!r}; they are 0 to {self.n_clusters - 1}.")
        given = self.names | {int(c): str(name) for c, name in names.items()}
        if len(set(given.values())) < len(given):
            raise TableError("names: two clusters have the same name; give each one of its own.")
        return replace(self, names=given)

    def predict(self, table: Any, task: Any = None, *, new_tasks: bool = False, details: bool = False) -> Any:
        """The clusters of further rows.

        Parameters
        ----------
        table : data frame, mapping from tasks to data frames, or path
            With the columns that were clustered by; others are ignored.
        task : str or one task per row, optional
            The column with the task, by default the one of :func:`mtclust.cluster`.
        new_tasks : bool, default=False
            Cluster the rows of tasks that were not there before as a new task, everything learned held fixed; without,
            they are refused.
        details : bool, default=False
            Return a table with task, cluster and margin instead of the clusters alone.
        """
        read = self.read(table, task)
        found = assign(self.model, self.encoder, read, new_tasks=new_tasks)
        for note in found.notes:
            warn_user(note, TableWarning)
        polars = replace(self, _polars=_is_polars(table))
        named = self.named(found.labels)
        if not details:
            return polars._series(named, read.index, "cluster")
        pandas = require("pandas", "cli")
        columns = {"task": read.tasks, "cluster": named, "margin": found.margins}
        return polars._frame(pandas.DataFrame(columns, index=read.index))

    def read(self, table: Any, task: Any = None) -> Table:
        """A table as :meth:`predict` reads it, with the task of every row."""
        task = self.encoder.task_column if task is None else task
        if isinstance(table, str | os.PathLike):
            return read_tables([Path(table)], task)
        return table_of_frames(table, None if isinstance(table, Mapping) else task)

    def summary(self) -> Any:
        """What was clustered, what was found and what to be careful about; ``print`` it."""
        from mtclust.app.summary import summarise

        return summarise(self)

    def report(
        self, path: str | os.PathLike[str], *, row_names: Any = None, command: str = "", stability: bool = True
    ) -> Path:
        """Write the report, one HTML page that loads nothing, and return its path.


        Parameters
        ----------
        path : str or path
        row_names : sequence of str, optional
            What rows are called; by default their place in the table's index.
        command : str
            How the clusters were made, to be shown at the end.
        stability : bool, default=True
            Say how stable the clusters are, which takes about as long as finding them (:meth:`stability`).
        """
        from mtclust.app.report import ReportInput, write_report

        self.rows("report")
        if stability:
            self.stability()
        write_report(ReportInput.of(self, row_names, command), Path(path))
        return Path(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save model, encoding and names, for :func:`mtclust.load`; the table's own cells are not kept."""
        tables = self._kept
        if self._rows is not None:
            plain = replace(self, _polars=False)
            tables = {name: _plain(getattr(plain, name)) for name in ("clusters", "tasks")}
        names = {str(cluster): name for cluster, name in self.names.items()}
        kept = {"format": SAVED_FORMAT, "names": names, "notes": list(self.notes), "tables": tables}
        self.model.save(path, extra={"table": self.encoder.to_dict(), "clustering": kept})

    @classmethod
    def of_saved(cls, model: Any, extra: Mapping[str, Any]) -> Clustering:
        """What :meth:`save` kept."""
        kept = extra["clustering"]
        if kept.get("format") != SAVED_FORMAT:
            raise TableError(
                f"the clustering was saved in format {kept.get('format')!r}; this version of mtclust reads "
                f"{SAVED_FORMAT}. Use the version that saved it, or fit again."
            )
        names = {int(cluster): name for cluster, name in kept["names"].items()}
        encoder = TableEncoder.from_dict(extra.get("table"))
        return cls(model, encoder, names, list(kept["notes"]), _kept=dict(kept["tables"]))

    def plot_tasks(self, **options: Any) -> Any:
        """Scatter of every task (:func:`mtclust.plotting.plot_tasks`); returns the axes."""
        from mtclust.plotting import plot_tasks

        rows = self.rows("plot_tasks")
        return plot_tasks(self.model, rows.X, self.model.tasks_[rows.task_numbers], **options)

    def plot_task_relationship(self, **options: Any) -> Any:
        """How the tasks are related (:func:`mtclust.plotting.plot_task_relationship`); returns the axes."""
        from mtclust.plotting import plot_task_relationship

        return plot_task_relationship(self.model, **options)

    def __repr__(self) -> str:
        sizes = np.asarray(self.model.cluster_sizes_)
        n, m, C = int(sizes.sum()), len(self.model.tasks_), self.n_clusters
        return f"<Clustering: {n:,} rows of {m} task{'s' * (m > 1)} in {C} cluster{'s' * (C > 1)}>"

    def _repr_html_(self) -> str:
        from mtclust.app.summary import clustering_html

        return clustering_html(self)

    def _as_polars(self) -> Clustering:
        return replace(self, _polars=True)

    # -- rows, names and kinds of tables -------------------------------------------------------------------------------

    def rows(self, what: str) -> Rows:
        """The rows that were clustered, for ``what`` needs them."""
        if self._rows is None:
            raise TableError(f"{what} needs the table, which is not saved with a model; call mtclust.cluster again.")
        return self._rows

    def _index(self) -> Any:
        index = None if self._rows is None else self._rows.table.index
        return require("pandas", "cli").RangeIndex(len(self.model.labels_)) if index is None else index

    def named(self, labels: NDArray[np.int64]) -> Any:
        """Numbers of clusters as the user sees them: the names they were given, else the numbers."""
        if not self.names:
            return np.asarray(labels)
        return np.array([self.names.get(int(c), str(c)) for c in labels], dtype=object)

    def _kept_table(self, name: str) -> Any:
        pandas = require("pandas", "cli")
        kept = self._kept.get(name)
        if kept is None:
            raise TableError(f"{name} were not saved with this model; call mtclust.cluster again.")
        frame = pandas.DataFrame(kept["data"], columns=kept["columns"])
        return frame.set_index(pandas.Index(kept["index"], name=kept["name"]))

    def _series(self, values: Any, index: Any, name: str) -> Any:
        if self._polars:
            return require("polars", "cli").Series(name, list(values))
        return require("pandas", "cli").Series(values, index=index, name=name)

    def _frame(self, frame: Any) -> Any:
        if not self._polars:
            return frame
        named = frame.index.name or any(frame.index.names)
        columns = frame.reset_index(drop=not named).to_dict("list")
        return require("polars", "cli").DataFrame(columns, strict=False)


def rows_of(table: Table, X: Any, model: Any) -> Rows:
    """The rows of a fitted model, with their margins."""
    tasks = strings_of(table.tasks)
    codes = np.searchsorted(model.tasks_, tasks)
    return Rows(table, X, codes, row_margins(model.decision_function(X, tasks=tasks), model.labels_))


def _is_polars(table: Any) -> bool:
    frame = next(iter(table.values()), None) if isinstance(table, Mapping) else table
    return type(frame).__module__.startswith("polars")


def _plain(frame: Any) -> dict[str, Any]:
    """A table as lists of plain values."""
    columns = [str(column) for column in frame.columns]
    data = [[_plain_value(value) for value in row] for row in frame.to_numpy().tolist()]
    return {"columns": columns, "index": [str(value) for value in frame.index], "name": frame.index.name, "data": data}


def _plain_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain_value(entry) for entry in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and np.isnan(value):
        return None
    return value if isinstance(value, str | int | float) else str(value)
