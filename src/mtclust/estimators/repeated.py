"""``sample_weight`` of ``fit``: rows that count several times are clustered as so many equal rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.hints import Hints
from mtclust.core.links import Links
from mtclust.core.membership import probabilities
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks
from mtclust.estimators.confidence import outliers_of, sorted_rows
from mtclust.estimators.storing import set_labels

if TYPE_CHECKING:
    from mtclust.estimators.after_fit import AfterFit

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Copies:
    """How often every row counts.

    Attributes
    ----------
    counts : ndarray of shape (n,)
    """

    counts: Labels

    @cached_property
    def rows(self) -> Labels:
        """Every row as often as it counts."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def hints(self, hints: Hints) -> Hints:
        """Hints of the repeated rows: copies of a row that is in a pair stay together."""
        found = hints.of_rows(self.rows, len(self.counts))
        if hints.links is None or found.links is None:
            return found
        last = np.cumsum(self.counts) - 1
        linked = np.unique(np.concatenate([hints.links.together.ravel(), hints.links.apart.ravel()]))
        copies = np.flatnonzero(np.isin(self.rows, linked))
        pairs = np.stack([copies, last[self.rows[copies]]], axis=1)
        together = np.concatenate([found.links.together, pairs[pairs[:, 0] != pairs[:, 1]]])
        return Hints(found.known, Links(together, found.links.apart))

    def voted(self, labels: Labels, n_clusters: int) -> Labels:
        """One cluster per row from those of its copies: the most frequent; 0 for rows without copies."""
        votes = np.zeros((len(self.counts), n_clusters))
        np.add.at(votes, (self.rows, labels), 1.0)
        return votes.argmax(axis=1)

    def firsts(self, values: NDArray[Any]) -> NDArray[Any]:
        """What the first copy of every row has; NaN for rows without copies."""
        found = np.full((len(self.counts), *values.shape[1:]), np.nan)
        there = self.counts > 0
        found[there] = values[(np.cumsum(self.counts) - self.counts)[there]]
        return found


def read_copies(sample_weight: Any, n_rows: int) -> Copies | None:
    """How often every row counts; None where each counts once.

    Examples
    --------
    >>> read_copies([2, 0, 1], 3).rows.tolist()
    [0, 0, 2]
    """
    if sample_weight is None:
        return None
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
    return None if np.all(weights == 1) else Copies(weights.astype(np.int64))


def check_copies(copies: Copies, ids: Any, hints: Hints) -> None:
    """Refuse weights that leave a task, or a row of a pair, without any copy."""
    index = index_tasks(ids, len(copies.counts))
    counts = np.bincount(index.task_numbers, weights=copies.counts, minlength=index.n_tasks)
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        name = index.names.tolist()[empty[0]]
        raise ValueError(f"sample_weight is 0 for every row of task {name!r}; leave the task out.")
    if hints.links is not None:
        linked = np.concatenate([hints.links.together.ravel(), hints.links.apart.ravel()])
        gone = linked[copies.counts[linked] == 0]
        if len(gone):
            raise ValueError(
                f"sample_weight is 0 for row {gone[0]}, which is in a pair of must_link or cannot_link; leave the pair "
                "out or let the row count."
            )


def store_by_row(estimator: AfterFit, rows: Any, ids: Any, copies: Copies, known: Labels | None) -> None:
    """Attributes of repeated rows, told for every row once; rows that do not count are put where ``predict`` does."""
    C = estimator.n_clusters_
    labels = copies.voted(estimator.labels_, C)
    single = copies.voted(estimator.single_task_labels_, C)
    chances, outliers = estimator.probabilities_, estimator.outlier_scores_
    chances = None if chances is None else copies.firsts(chances)
    none = np.flatnonzero(copies.counts == 0)
    if len(none):
        tasks = numbers_of_known_tasks(None if ids is None else ids[none], len(none), estimator.tasks_)
        scores = estimator._model.scores(rows[none], tasks)
        labels[none] = single[none] = scores.argmax(axis=1)
        if known is not None:
            given = none[known[none] >= 0]
            labels[given] = known[given]
        if chances is not None:
            chances[none] = probabilities(scores, estimator._model.temperature)
    index = index_tasks(ids, len(labels))
    set_labels(estimator, labels, index.task_numbers)
    estimator.single_task_labels_, estimator.probabilities_ = single, chances
    if outliers is not None:
        outliers = copies.firsts(outliers)
        if len(none):  # as if each row were there once
            outliers[none] = outliers_of(index, *sorted_rows(estimator, rows, index))[none]
    estimator.outlier_scores_ = outliers
