"""The clusters of a table: what :func:`mtclust.cluster` returns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from mtclust.app import words
from mtclust.app.findings import FEW_ROWS, Array, Findings, Labels, typical_rows
from mtclust.app.tables.encoding import TableEncoder
from mtclust.app.tables.table import Table, read_any, shown_columns
from mtclust.app.words import Facts, Summary
from mtclust.core.tasks import strings_of
from mtclust.estimators.stability import MOST_ROWS, Stability, refitted
from mtclust.exceptions import TableError, TableWarning
from mtclust.persistence.atomic import atomic_write
from mtclust.selection import select_n_clusters
from mtclust.util.messages import advice, distinct_names, how_many, listing, option, phase, warn_user
from mtclust.util.system import pandas, require


@dataclass(frozen=True)
class Rows:
    """The rows that were clustered, with their features; a saved clustering does not have them.

    ``task_numbers`` are places in ``model.tasks_``, ``margins`` how much the score of a row's own cluster exceeds that
    of the ``following`` one.
    """

    table: Table
    X: Any
    task_numbers: Labels
    margins: Array
    following: Labels

    def least_sure(self, n: int) -> Labels:
        """Positions of the rows with the smallest margins."""
        return np.argsort(self.margins, kind="stable")[:n]


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
    without : dict
        Agreement with the clusters without a column, by column, once :meth:`stability` was called.

    Examples
    --------
    >>> import mtclust
    >>> import pandas as pd
    >>> prices = pd.DataFrame({"shop": ["a", "a", "a", "b", "b", "b"], "price": [1.0, 1.2, 9.0, 2.0, 9.9, 9.5]})
    >>> found = mtclust.cluster(prices, task="shop", n_clusters=2, kernel="linear", sizes=1.0)
    >>> found = found.rename({0: "dear", 1: "cheap"})
    >>> found.labels.tolist()
    ['cheap', 'cheap', 'dear', 'cheap', 'dear', 'dear']
    >>> found.clusters["rows"].to_dict()
    {'dear': 3, 'cheap': 3}
    """

    model: Any
    encoder: TableEncoder
    names: dict[int, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warned: list[Any] = field(default_factory=list)
    without: dict[str, float] = field(default_factory=dict)
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
        return as_series(self.named(self.model.labels_), self._index(), "cluster", self._polars)

    @property
    def clusters(self) -> Any:
        """A table with a row per cluster.

        Its columns: ``rows``, ``share`` of all rows, the share in every task, what it is ``characterised_by`` (averages
        of its rows), its ``separation`` (1: it touches no other, 0: as in noise), the mean
        ``probability`` of its rows, ``stability`` once it was asked for, and ``exemplars``, the index of typical rows.
        """
        return as_frame(self.clusters_table, self._polars)

    @property
    def tasks(self) -> Any:
        """A table with a row per task: rows, the share of every cluster, the closest task, and what is particular."""
        return as_frame(self.tasks_table, self._polars)

    @property
    def facts(self) -> Facts:
        """How far the clusters can be trusted: separation, stability, and whether there are any."""
        facts, columns = Facts.of(self.model), self.encoder.columns
        column = columns[0].name if len(columns) == 1 and columns[0].kind not in ("text", "topics") else ""
        return replace(facts, column=column, structure=facts.structure or self._structure)

    @cached_property
    def _structure(self) -> str | None:
        """Whether there are clusters, where ``fit`` was given their number."""
        rows = self._rows
        if rows is None or self.n_clusters == 1 or len(rows.margins) < FEW_ROWS * self.n_clusters:
            return self._kept.get("structure")
        return select_n_clusters(self.model, rows.X, tasks=self.model.tasks_[rows.task_numbers]).structure

    @cached_property
    def findings(self) -> Findings:
        """What sets the clusters apart, and whether they mean the same in all tasks."""
        rows, model = self.rows("findings"), self.model
        return Findings(
            rows.X, rows.task_numbers, np.asarray(model.labels_), (len(model.tasks_), self.n_clusters),
            self.encoder.features, common=model.selection_.get("center") == "all", known=self.encoder.known(rows.table),
        )  # fmt: skip

    @property
    def loaded(self) -> bool:
        """Whether the clustering was saved, without its rows."""
        return self._rows is None

    @cached_property
    def differing(self) -> list[tuple[int, int, str]] | None:
        """Clusters that may not mean the same in all tasks, where they differ most, and how far they agree there."""
        if self.loaded:
            return self._kept.get("differing")  # which earlier versions did not save
        pairs = [(c, task) for c in range(self.n_clusters) for task in self.findings.differing(c)[:1]]
        return [(c, task, words.agreement_in_words(self.findings, task, c)) for c, task in pairs]

    @cached_property
    def ids(self) -> str:
        """Which clusters may not mean the same in all tasks, in words; empty where all do."""
        return words.ids_in_words(self)

    @property
    def headline(self) -> str:
        """What was found, in one sentence."""
        facts, column = self.facts, self.encoder.task_column
        named = f" ({column})" if column else ""
        rows = f"{facts.n_rows:,} rows in {how_many(facts.n_tasks, 'task')}{named}"
        return facts.headline(rows, ids_differ=bool(self.ids))

    def stability(self, n_refits: int = 10) -> Stability | None:
        """Cluster subsamples anew, and the rows without one column each, and see what stays the same.

        It is computed once and kept with the model; the summary and the report then speak of it.

        Parameters
        ----------
        n_refits : int, default=10

        Returns
        -------
        Stability or None
            None for one cluster, and for labels of cutting planes.
        """
        known, rows = getattr(self.model, "stability_", None), self._rows
        if self.n_clusters == 1 or self.model.solver == "cutting-plane" or rows is None:
            return known
        if not self.without:
            self.without.update(self._without_columns())
        if known is None:
            known = self.model.stability(rows.X, tasks=self.model.tasks_[rows.task_numbers], n_refits=n_refits)
            self.__dict__.pop("clusters_table", None)  # which now has one more column
        return known

    def _without_columns(self) -> dict[str, float]:
        """Agreement (adjusted Rand index) with the clusters without a column, of the six that tell clusters best.

        And of the one that tells them least: where not even that one can be left out, it is the search that varies.
        """
        rows, features, moments = self.rows("stability"), self.encoder.features, self.findings.moments
        of = np.array([feature.column for feature in features])
        if sp.issparse(rows.X) or not 2 <= len(set(of.tolist())) <= 30:  # every column takes a fit
            return {}
        squares = np.sum(moments.sums.sum(axis=1) ** 2 / moments.counts.sum(axis=1)[:, None], axis=0)
        between = np.sum(moments.counts[:, :, None] * moments.means**2, axis=(0, 1)) - squares
        ordered = list(dict.fromkeys(of[np.argsort(-between, kind="stable")].tolist()))
        some = np.arange(0, len(rows.X), -(-len(rows.X) // MOST_ROWS))
        tasks = self.model.tasks_[rows.task_numbers[some]]

        def labels(columns: NDArray[np.bool_]) -> Any:
            return refitted(self.model, rows.X[some][:, columns], tasks).labels_

        whole = labels(np.ones(len(of), dtype=bool))
        left_out = dict.fromkeys([*ordered[:6], ordered[-1]])
        return {column: float(adjusted_rand_score(whole, labels(of != column))) for column in left_out}

    def least_sure(self, n: int = 10) -> Any:
        """The rows whose cluster is least clear, with their values.

        Parameters
        ----------
        n : int, default=10
            How many.
        """
        model, rows = self.model, self.rows("least_sure")
        chosen = rows.least_sure(n)
        columns = {
            "task": [str(task) for task in model.tasks_[rows.task_numbers[chosen]]],
            "cluster": self.named(model.labels_[chosen]), "next": self.named(rows.following[chosen]),
            "margin": rows.margins[chosen],
        }  # fmt: skip
        columns |= {name: values[chosen] for name, values in self.row_columns().items() if name != "alone"}
        columns |= {column.name: rows.table.frame[column.name].to_numpy()[chosen] for column in self.encoder.columns}
        return as_frame(pandas.DataFrame(columns, index=self._index()[chosen]), self._polars)

    def row_columns(self) -> dict[str, Any]:
        """What is known of every row beside its cluster: how sure that is, and its cluster in its task alone."""
        model, chosen = self.model, self.model.probabilities_
        columns = {
            "probability": None if chosen is None else chosen[np.arange(len(chosen)), model.labels_],
            "stability": getattr(getattr(model, "stability_", None), "rows", None),
            "outlier": model.outlier_scores_,
            "alone": self.named(model.single_task_labels_),
        }
        return {name: values for name, values in columns.items() if values is not None}

    def exemplars(self) -> list[list[int]]:
        """Positions of a few typical rows of every cluster."""
        rows = self.rows("exemplars")
        return typical_rows(rows.X, rows.task_numbers, np.asarray(self.model.labels_), self.n_clusters)

    @cached_property
    def task_words(self) -> list[str]:
        """What sentences call the tasks; a bare number says what it counts, as in batch 2."""
        shown, counted = distinct_names(self.model.tasks_, words.NAME), self.encoder.task_column or "task"
        return [name if any(map(str.isalpha, name)) else f"{counted} {name}" for name in shown]

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
        given = self.names | {int(c): "" if name is None else str(name) for c, name in names.items()}
        for number in ("{}", "cluster {}"):
            called = [given.get(c, number.format(c)) for c in range(self.n_clusters)]
            if len(set(called)) < len(called) or not all(map(str.strip, called)):
                told = listing([repr(name) for name in called], 12)
                raise TableError(f"names: clusters would be called {told}; give each one a name of its own.")
        return replace(self, names=given)

    def predict(self, table: Any, task: Any = None, *, new_tasks: bool = False) -> Any:
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
        """
        read = read_any(table, self.encoder.task_column if task is None else task)
        labels, _, notes = self.assign(read, new_tasks=new_tasks)
        for note in notes:
            warn_user(note, TableWarning)
        return as_series(self.named(labels), read.index, "cluster", is_polars(table))

    def assign(self, table: Table, *, new_tasks: bool) -> tuple[Labels, Array, list[str]]:
        """Clusters and margins of all rows of a table, and what the user should know."""
        model, (X, notes), tasks = self.model, self.encoder.transform(table), strings_of(table.tasks)
        known = np.isin(tasks, model.tasks_)
        unknown = sorted(set(tasks[~known].tolist()))
        if unknown and not new_tasks:
            given = advice("give the task of every row (task=[...])", "name the task of all rows (--task NAME)")
            raise TableError(
                f"the model has no task {shown_columns(unknown, 5)}; it knows "
                f"{shown_columns(model.tasks_.tolist(), 10)}. Cluster new tasks with {option('new_tasks')}, or {given}."
            )
        labels, margins = np.zeros(len(tasks), dtype=np.int64), np.zeros(len(tasks))
        if known.any():
            scores = model.decision_function(X[known], tasks=tasks[known])
            labels[known] = scores.argmax(axis=1)
            margins[known], _ = row_margins(scores, labels[known])
        for name in unknown:
            rows = tasks == name
            with phase(f"clustering the new task {name}"), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    new = model.fit_task(X[rows])
                except ValueError as error:
                    raise TableError(f"task {name!r} cannot be clustered: {error}") from error
            notes += [str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
            labels[rows] = new.labels_
            margins[rows], _ = row_margins(new.decision_function(X[rows]), new.labels_)
            sizes = ", ".join(f"{c}: {n}" for c, n in zip(*np.unique(new.labels_, return_counts=True)))
            alike, closest = new.task_correlation_, ""
            if alike is not None and np.any(alike != 1):  # with one model all are alike
                nearest = int(np.argmax(alike[:-1]))
                closest = f"; closest to {model.tasks_[nearest]} (correlation {alike[nearest]:.2f})"
            notes.append(f"New task {name}: {len(new.labels_)} rows (cluster {sizes}){closest}.")
        return labels, margins, notes

    def summary(self) -> Summary:
        """What was clustered, what was found and what to be careful about; ``print`` it."""
        return words.summarised(self)

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
        from mtclust.app.report.page import render_report

        if stability:
            self.stability()
        with atomic_write(Path(path)) as stream:
            stream.write(render_report(self, row_names, command).encode())
        return Path(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save model, encoding and names, for :func:`mtclust.load`; the table's own cells are not kept."""
        kept = {name: getattr(self, name) for name in ("names", "notes", "without", "differing")}
        warned = [(type(warning).__name__, str(warning)) for warning in self.warned]
        columns = ["characterised_by", "exemplars"]  # the others follow from the model
        rows = [[said, list(map(_as_saved, own))] for said, own in self.clusters_table[columns].to_numpy()]
        tables = {"clusters": {"columns": columns, "data": rows}}
        kept |= {"structure": self.facts.structure, "warned": warned, "tables": tables}
        self.model.save(path, extra={"table": self.encoder.to_dict(), "clustering": kept})

    @classmethod
    def of_saved(cls, model: Any, extra: Any) -> Any:
        """What :meth:`save` kept, or the model itself where it was saved without a table."""
        if not isinstance(extra, dict) or not isinstance(extra.get("clustering"), dict):
            return model
        kept, kinds = extra["clustering"], {kind.__name__: kind for kind in words.SAID}
        table, names = kept["tables"]["clusters"], {int(cluster): name for cluster, name in kept["names"].items()}
        warned = [kinds.get(kind, UserWarning)(text) for kind, text in kept.get("warned", ())]
        found = cls(
            model, TableEncoder.from_dict(extra.get("table")), names, list(kept["notes"]), warned,
            dict(kept.get("without", {})), _kept=kept | dict(zip(table["columns"], zip(*table["data"]))),
        )  # fmt: skip
        str(found.summary()), found.tasks_table  # a file that cannot be shown is refused
        return found

    def __repr__(self) -> str:
        sizes = np.asarray(self.model.cluster_sizes_)
        of, found = how_many(len(sizes), "task"), how_many(self.n_clusters, "cluster")
        return f"<Clustering: {int(sizes.sum()):,} rows of {of} in {found}>"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @cached_property
    def clusters_table(self) -> Any:
        """:attr:`clusters` in pandas."""
        index = self._index()
        model, C, sizes = self.model, self.n_clusters, np.asarray(self.model.cluster_sizes_)
        columns: dict[str, Any] = {"rows": sizes.sum(axis=0), "share": sizes.sum(axis=0) / sizes.sum()}
        for task in words.natural_order(model.tasks_):
            columns[f"share in {model.tasks_[task]}"] = sizes[task] / sizes[task].sum()
        said = self._kept.get("characterised_by")
        columns["characterised_by"] = said or [words.cluster_in_words(self, c) for c in range(C)]
        columns["separation"] = model.cluster_scores_
        sure = self.row_columns().get("probability")
        if sure is not None:
            means = pandas.Series(sure).groupby(np.asarray(model.labels_)).mean()
            columns["probability"] = means.reindex(range(C)).to_numpy()
        if getattr(model, "stability_", None) is not None:
            columns["stability"] = model.stability_.clusters
        typical = self._kept.get("exemplars")
        columns["exemplars"] = typical or [[index[row] for row in own] for own in self.exemplars()]
        return pandas.DataFrame(columns, index=pandas.Index(self.named(np.arange(C)), name="cluster"))

    @cached_property
    def tasks_table(self) -> Any:
        """:attr:`tasks` in pandas."""
        model, sizes = self.model, np.asarray(self.model.cluster_sizes_)
        columns: dict[str, Any] = {"rows": sizes.sum(axis=1)}
        for c, name in enumerate(self.named(np.arange(self.n_clusters))):
            columns[f"share of {name}"] = sizes[:, c] / sizes.sum(axis=1)
        kind, matrix = words.likeness_of_tasks(model, self.facts)
        if matrix is not None:
            nearest, alike = words.closest_others(matrix)
            columns["closest"] = [str(model.tasks_[k]) for k in nearest]
            columns["correlation" if kind == "correlation" else "similarity"] = alike
        particular: list[list[str]] = [[] for _ in sizes]
        for difference in words.comparable_differences(self):
            said = words.difference_in_words(difference, "this task", self.name(difference.cluster))
            particular[difference.task].append(said)
        columns["particular"] = ["; ".join(own[:2]) for own in particular]
        frame = pandas.DataFrame(columns, index=pandas.Index([str(name) for name in model.tasks_], name="task"))
        return frame.iloc[words.natural_order(model.tasks_)]

    def rows(self, what: str) -> Rows:
        """The rows that were clustered, for ``what`` needs them."""
        if self._rows is None:
            raise TableError(f"{what} needs the table, which is not saved with a model; call mtclust.cluster again.")
        return self._rows

    def _index(self) -> Any:
        index = None if self._rows is None or self._polars else self._rows.table.index
        return pandas.RangeIndex(len(self.model.labels_)) if index is None else index

    def named(self, labels: Labels) -> Any:
        """Numbers of clusters as the user sees them: the names they were given, else the numbers."""
        if not self.names:
            return np.asarray(labels)
        return np.array([self.names.get(int(c), str(c)) for c in labels], dtype=object)


def _as_saved(entry: Any) -> Any:
    """An entry of an index as files hold it: a string where they hold nothing of its type."""
    if isinstance(entry, tuple):
        return tuple(map(_as_saved, entry))
    if isinstance(entry, pandas.Timestamp):
        return entry.to_pydatetime(warn=False)
    return entry if type(entry) in (str, int, float, bool) or isinstance(entry, np.generic) else str(entry)


def row_margins(scores: Array, labels: Labels) -> tuple[Array, Labels]:
    """How much the score of a row's own cluster exceeds that of the next one, and which that is.

    The margin is below 0 where the model prefers the next one, and infinite where there is none.
    """
    rows, others = np.arange(len(labels)), np.array(scores, dtype=float)
    others[rows, labels] = -np.inf
    following = others.argmax(axis=1)
    return scores[rows, labels] - others[rows, following], following


def as_series(values: Any, index: Any, name: str, polars: bool) -> Any:
    """A series of pandas, or of polars, where there is no index."""
    if polars:
        return require("polars", "cli").Series(name, list(values))
    return pandas.Series(values, index=index, name=name)


def as_frame(frame: Any, polars: bool) -> Any:
    """A data frame of pandas, or as one of polars, where an index that has a name is a column."""
    if not polars:
        return frame
    named = any(frame.index.names)
    return require("polars", "cli").DataFrame(frame.reset_index(drop=not named).to_dict("list"), strict=False)


def is_polars(table: Any) -> bool:
    """Whether a table, or the tables of a mapping, are of polars."""
    frame = next(iter(table.values()), None) if isinstance(table, Mapping) else table
    return type(frame).__module__.startswith("polars")
