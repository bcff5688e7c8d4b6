"""Text beside other columns: a few main directions of its word weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from mtclust.app.tables.columns import Array, Feature, Tasks, TextColumn, centred
from mtclust.app.tables.parsing import Cells

#: directions of a text, and words that name an end of each
TOPICS, _WORDS = 5, 3


@dataclass(frozen=True)
class TopicColumn:
    """Main directions of the word weights of a text within tasks, together with variance 1, as one number has.

    ``axes`` are the directions (one list of weights per topic, already divided by their common scale), ``centre`` what
    the mean of all texts has on them, ``names`` the words that tell most at either end.
    """

    kind: ClassVar[str] = "topics"
    name: str
    text: TextColumn
    axes: list[list[float]] = field(repr=False)
    centre: list[float] = field(repr=False)
    names: list[str]

    @classmethod
    def learn(cls, cells: Cells, tasks: Tasks) -> TopicColumn:
        text = TextColumn.learn(cells)
        weights = text.transform(cells, tasks)
        axes = _directions(weights, tasks, max(1, min(TOPICS, min(weights.shape) - 2)))
        places = np.asarray(weights @ axes.T)
        scale = float(np.sqrt(centred(places, tasks).var(axis=0).sum())) or 1.0
        names = [f"{cells.name}: {_words(axis, text.terms)} ↔ {_words(-axis, text.terms)}" for axis in axes]
        return cls(cells.name, text, (axes / scale).tolist(), (places.mean(axis=0) / scale).tolist(), names)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> TopicColumn:
        return cls(**{**saved, "text": TextColumn(**saved["text"])})

    def transform(self, cells: Cells, tasks: Tasks) -> Array:
        weights = self.text.transform(cells, tasks)
        return np.asarray(weights @ np.asarray(self.axes).T) - np.asarray(self.centre)

    @property
    def features(self) -> list[Feature]:
        return [Feature(name, "topic", column=self.name) for name in self.names]


def _directions(weights: Any, tasks: Tasks, topics: int) -> NDArray[np.float64]:
    """The directions in which texts of the same task differ most; what a task's texts have in common is no topic."""
    _, codes = np.unique(tasks, return_inverse=True)
    n = len(codes)
    rows_of = sp.csr_matrix((np.ones(n), (np.arange(n), codes)))
    means = np.asarray((rows_of.T @ weights).todense()) / np.bincount(codes)[:, None]
    if min(weights.shape) <= topics + 1:
        axes = np.linalg.svd(weights.toarray() - means[codes], full_matrices=False)[2][:topics]
    else:
        within = LinearOperator(
            weights.shape, dtype=np.float64,
            matvec=lambda v: weights @ v - rows_of @ (means @ v),
            rmatvec=lambda u: weights.T @ u - means.T @ (rows_of.T @ u),
        )  # fmt: skip
        start = np.random.default_rng(0).normal(size=min(weights.shape))
        _, strength, found = svds(within, k=topics, v0=start, solver="arpack")
        axes = found[np.argsort(-strength, kind="stable")]
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None]


def _words(axis: NDArray[np.float64], terms: list[str]) -> str:
    return ", ".join(terms[k] for k in np.argsort(-axis, kind="stable")[:_WORDS])
