"""What was found about clusters in words: values as they stand in the table, and the features that set rows apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.app.profiles import Trait, cluster_traits, moments
from mtclust.app.shown import figure, percent
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.parsing import date_of_days

#: numbers of sums of features by task and cluster that are kept at once
_MOST_SUMS = 20_000_000
#: what a larger and a smaller value of a kind of feature is called
_DIRECTIONS = {
    "number": ("higher ", "lower "),
    "year": ("later ", "earlier "),
    "date": ("later ", "earlier "),
    "season": ("more ", "less "),
}
#: features that a sentence about a cluster names, and words of a text
_NAMED, _NAMED_WORDS = 3, 6


def value_in_words(feature: Feature, mean: float) -> str:
    """A mean of X in the units of the table.

    Examples
    --------
    >>> value_in_words(Feature("income", "number", 40000, 10000, "€"), 0.5)
    '45,000 €'
    >>> value_in_words(Feature("year", "year", 2008, 0.8), 0.1)
    '2008'
    """
    value = feature.offset + feature.factor * mean
    if feature.kind in ("category", "word"):
        return percent(float(np.clip(value, 0.0, 1.0)))
    if feature.kind == "date":
        return date_of_days(value)
    if feature.kind == "year":
        return f"{value:.0f}"
    return f"{figure(value)} {feature.unit}".rstrip()


def all_traits(
    X: Any, task_codes: NDArray[np.int64], model: Any, features: Sequence[Feature]
) -> list[list[tuple[Trait, Feature]]]:
    """For every cluster the features that characterise it, those that all tasks share first."""
    m, C = len(model.tasks_), int(model.n_clusters_)
    kept = np.arange(X.shape[1])
    most = max(1, _MOST_SUMS // (m * C))
    if len(kept) > most:  # of very many words those that carry the most weight
        weight = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.sum(X**2, axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[:most])
        X = X[:, kept]
    found = moments(X, task_codes, model.labels_, m, C)
    words = bool(features) and features[0].kind == "word"
    values = moments(X != 0, task_codes, model.labels_, m, C) if words else found
    return [
        [
            (trait, features[kept[trait.feature]])
            for trait in cluster_traits(found, c, values=values, only_positive=words)
        ]
        for c in range(C)
    ]


def trait_in_words(trait: Trait, feature: Feature) -> str:
    """A few words for what sets a cluster apart.

    Examples
    --------
    >>> import numpy as np
    >>> trait_in_words(Trait(0, np.array([1.2]), 1.0, -0.5), Feature("income", "number", 40000, 10000))
    'higher income (50,000; others 35,000)'
    """
    if feature.kind == "topic":  # a direction between two groups of words
        high, _, low = feature.name.removeprefix(f"{feature.column}: ").partition(" ↔ ")
        return f"{feature.column} rather about {high if trait.effect > 0 else low}"
    inside, outside = value_in_words(feature, trait.inside), value_in_words(feature, trait.outside)
    higher, lower = _DIRECTIONS.get(feature.kind, ("", ""))
    return f"{higher if trait.effect > 0 else lower}{feature.name} ({inside}; others {outside})"


def cluster_in_words(traits: Sequence[tuple[Trait, Feature]]) -> str:
    """What characterises a cluster in all tasks, in one line."""
    shared = [(trait, feature) for trait, feature in traits if trait.task is None]
    if not shared:
        return "nothing that holds in all tasks"
    if shared[0][1].kind == "word":
        return "words: " + ", ".join(feature.name for _, feature in shared[:_NAMED_WORDS])
    return ", ".join(trait_in_words(trait, feature) for trait, feature in shared[:_NAMED])
