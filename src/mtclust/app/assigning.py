"""Clusters of further rows, also of tasks that were not there before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.app.tables import Table, TableEncoder
from mtclust.app.wording import advice, option
from mtclust.core.ids import strings_of
from mtclust.exceptions import TableError

#: how a user says which task rows belong to, in Python and on the command line
_TASK_GIVEN = ("give the task of every row (task=[...])", "name the task of all rows (--task NAME)")


@dataclass(frozen=True)
class Assigned:
    """Clusters of rows, how clear they are, and what the user should know."""

    labels: NDArray[np.int64]
    margins: NDArray[np.float64]
    notes: list[str]


def row_margins(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """How much the score of a row's own cluster exceeds the best other one; negative where sizes forced the row out."""
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    best = others.max(axis=1) if scores.shape[1] > 1 else np.full(len(labels), -np.inf)
    return np.where(np.isfinite(best), own - best, np.inf)


def assign(
    model: Any,
    encoder: TableEncoder,
    table: Table,
    *,
    new_tasks: bool,
    step: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> Assigned:
    """Labels and margins of all rows of a table; ``step`` tells what is being done."""
    X, notes = encoder.transform(table)
    tasks = strings_of(table.tasks)
    known = np.isin(tasks, model.tasks_)
    unknown = sorted(set(tasks[~known].tolist()))
    if unknown and not new_tasks:
        raise TableError(
            f"the model has no task {', '.join(map(repr, unknown[:5]))}{' …' if len(unknown) > 5 else ''}; it knows "
            f"{', '.join(map(repr, model.tasks_.tolist()[:10]))}{' …' if len(model.tasks_) > 10 else ''}. Cluster "
            f"new tasks with {option('new_tasks')}, or {advice(*_TASK_GIVEN)}."
        )
    labels = np.zeros(len(tasks), dtype=np.int64)
    margins = np.zeros(len(tasks))
    if known.any():
        scores = model.decision_function(X[known], tasks=tasks[known])
        labels[known] = scores.argmax(axis=1)
        margins[known] = row_margins(scores, labels[known])
    for name in unknown:
        rows = tasks == name
        with step(f"Clustering the new task {name}"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                new = model.fit_task(X[rows])
            except ValueError as error:
                raise TableError(f"task {name!r} cannot be clustered: {error}") from error
        notes += [str(entry.message) for entry in caught if issubclass(entry.category, UserWarning)]
        labels[rows] = new.labels_
        margins[rows] = row_margins(new.decision_function(X[rows]), new.labels_)
        notes.append(_describe_new(name, new, model.tasks_))
    return Assigned(labels, margins, notes)


def _describe_new(name: str, new: Any, known: Any) -> str:
    sizes = ", ".join(f"{c}: {n}" for c, n in zip(*np.unique(new.labels_, return_counts=True)))
    text = f"New task {name}: {len(new.labels_)} rows (cluster {sizes})"
    if new.task_correlation_ is None or np.all(new.task_correlation_ == 1):  # with one model all are alike
        return text + "."
    nearest = int(np.argmax(new.task_correlation_[:-1]))
    return f"{text}; closest to {known[nearest]} (correlation {new.task_correlation_[nearest]:.2f})."
