"""``sample_weight`` of ``fit``: rows that count several times are clustered as so many equal rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.hints import Hints, Links
from mtclust.core.model import probabilities
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks
from mtclust.estimators.confidence import sorted_rows
from mtclust.estimators.outliers import outliers_of

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Labels = NDArray[np.int64]


def read_counts(sample_weight: Any, n_rows: int) -> Labels | None:
    """How often every row counts; None where each counts once."""
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"sample_weight must hold numbers, one per row; got {type(sample_weight).__name__} of other things."
        ) from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has the shape {weights.shape} but X has {n_rows} rows; give one number per row."
        )
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0) | (weights != np.round(weights)))
    if len(wrong):
        raise ValueError(
            f"sample_weight has {weights[wrong[0]]:g} at row {wrong[0]}; it says how many times a row counts, so that "
            "whole numbers from 0 on are allowed. Other weights: multiply them by a number and round them."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; at least one row must count.")
    return None if np.all(weights == 1) else weights.astype(np.int64)


def repeated_rows(rows: Any, ids: Any, hints: Hints, counts: Labels) -> tuple[Any, Any, Hints]:
    """Every row as often as it counts, with its task and the hints: copies of a row that is in a pair stay together.

    Refuses weights that leave a task, or a row of a pair, without any copy.
    """
    index, copies = index_tasks(ids, len(counts)), np.repeat(np.arange(len(counts)), counts)
    empty = np.flatnonzero(np.bincount(index.task_numbers[copies], minlength=index.n_tasks) == 0)
    if len(empty):
        name = index.names.tolist()[empty[0]]
        raise ValueError(f"sample_weight is 0 for every row of task {name!r}; leave the task out.")
    found = hints.of_rows(copies, len(counts))
    if hints.links is not None:
        linked = np.unique(np.concatenate([hints.links.together.ravel(), hints.links.apart.ravel()]))
        gone = linked[counts[linked] == 0]
        if len(gone):
            raise ValueError(
                f"sample_weight is 0 for row {gone[0]}, which is in a pair of must_link or cannot_link; leave the pair "
                "out or let the row count."
            )
        assert found.links is not None
        own = np.flatnonzero(np.isin(copies, linked))
        pairs = np.stack([own, np.cumsum(counts)[copies[own]] - 1], axis=1)
        together = np.concatenate([found.links.together, pairs[pairs[:, 0] != pairs[:, 1]]])
        found = Hints(found.known, Links(together, found.links.apart))
    return rows[copies], None if ids is None else ids[copies], found


def store_by_row(model: AfterFit, rows: Any, ids: Any, known: Labels | None, counts: Labels) -> None:
    """Attributes of repeated rows, told for every row once; rows that do not count are put where ``predict`` does.

    Of copies in different clusters, which sizes can ask for, the most frequent cluster counts.
    """
    n, index = len(counts), index_tasks(ids, len(counts))
    of_copies, coupling = [model.labels_, model.single_task_labels_], model.selection_.coupling
    if coupling is not None and coupling.coupled_labels is not None:
        of_copies.append(coupling.coupled_labels)
    votes = np.zeros((len(of_copies), n, model.n_clusters_))
    for own, found in zip(votes, of_copies):
        np.add.at(own, (np.repeat(np.arange(n), counts), found), 1)
    by_row = votes.argmax(axis=2)
    labels = by_row[0]
    first = np.minimum(np.cumsum(counts) - counts, counts.sum() - 1)
    chances, outliers = (
        None if values is None else values[first] for values in (model.probabilities_, model.outlier_scores_)
    )
    none = np.flatnonzero(counts == 0)
    if len(none):
        tasks = numbers_of_known_tasks(None if ids is None else ids[none], len(none), model.tasks_)
        scores = model._model.scores(rows[none], tasks)
        by_row[:, none] = scores.argmax(axis=1)
        if known is not None:
            given = none[known[none] >= 0]
            labels[given] = known[given]
        if chances is not None:
            chances[none] = probabilities(scores, model._model.temperature)
        if outliers is not None:  # as if each row were there once
            outliers[none] = outliers_of(*sorted_rows(model, rows, index))[none]
    sizes = np.zeros_like(model.cluster_sizes_)
    np.add.at(sizes, (index.task_numbers, labels), 1)
    model.labels_, model.single_task_labels_, model.cluster_sizes_ = labels, by_row[1], sizes
    if len(by_row) > 2:
        model.selection_ = replace(model.selection_, coupling=replace(coupling, coupled_labels=by_row[2]))
    model.probabilities_, model.outlier_scores_ = chances, outliers
