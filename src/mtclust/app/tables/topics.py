"""Text beside other columns: a few main directions of its word weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD

from mtclust.app.tables.columns import Array, Feature, Tasks, TextColumn
from mtclust.app.tables.parsing import Cells

#: directions of a text, and words that name an end of each
TOPICS, _WORDS = 5, 3


@dataclass(frozen=True)
class TopicColumn:
    """Main directions of the word weights of a text, together with variance 1, as one number has.

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
    def learn(cls, cells: Cells) -> TopicColumn:
        text = TextColumn.learn(cells)
        weights = text.transform(cells, np.array([]))
        topics = max(1, min(TOPICS, min(weights.shape) - 2))
        found = TruncatedSVD(topics + 1, random_state=0).fit(weights)
        places = np.asarray(weights @ found.components_.T)
        # one direction is what all texts have in common: it varies least
        kept = np.sort(np.argsort(-places.var(axis=0), kind="stable")[:topics])
        axes, places = found.components_[kept], places[:, kept]
        scale = float(np.sqrt(places.var(axis=0).sum())) or 1.0
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


def _words(axis: NDArray[np.float64], terms: list[str]) -> str:
    return ", ".join(terms[k] for k in np.argsort(-axis, kind="stable")[:_WORDS])
