"""What was found about clusters in words: values as they stand in the table, and the features that set rows apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.app.profiles import Trait, cluster_traits, moments, traits_between
from mtclust.app.shown import figure, percent
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.dates import date_of_days

#: numbers of sums of features by task and cluster that are kept at once
_MOST_SUMS = 20_000_000
#: what a larger and a smaller value of a kind of feature is called
_DIRECTIONS = {
    "number": ("higher ", "lower "),
    "year": ("later ", "earlier "),
    "date": ("later ", "earlier "),
    "season": ("more ", "less "),
    "category": ("", "less often "),
}
#: a value that is smaller than this, relative to its column, is 0
_ROUNDING = 1e-12
#: kinds of features of which a cluster can lie in between
_MEASURED = ("number", "year", "date")
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
    >>> value_in_words(Feature("spent", "number", 0.4875, 0.5), -0.9749999999999999)
    '0'
    """
    value = feature.offset + feature.factor * mean
    if abs(value) < _ROUNDING * max(abs(feature.offset), abs(feature.factor)):
        value = 0.0  # what is left of a mean after centring and back
    if feature.kind in ("category", "word"):
        return percent(float(np.clip(value, 0.0, 1.0)))
    if feature.kind == "date":
        return date_of_days(value)
    if feature.kind == "year":
        return f"{value:.0f}"
    return f"{figure(value)} {feature.unit}".rstrip()


def all_traits(
    X: Any, task_numbers: NDArray[np.int64], model: Any, features: Sequence[Feature]
) -> list[list[tuple[Trait, Feature]]]:
    """For every cluster the features that characterise it, those that all tasks share first."""
    m, C = len(model.tasks_), int(model.n_clusters_)
    kept = np.arange(X.shape[1])
    most = max(1, _MOST_SUMS // (m * C))
    if len(kept) > most:  # of very many words those that carry the most weight
        weight = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.sum(X**2, axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[:most])
        X = X[:, kept]
    found = moments(X, task_numbers, model.labels_, m, C)
    words = bool(features) and features[0].kind == "word"
    values = moments(X != 0, task_numbers, model.labels_, m, C) if words else found
    traits = [cluster_traits(found, c, values=values, only_positive=words) for c in range(C)]
    told = Counter(
        t.feature for own in traits for t in own if t.task is None and features[kept[t.feature]].kind in _MEASURED
    )
    often = [feature for feature, _ in told.most_common(_NAMED)]
    for c, own in enumerate(traits):
        if all(trait.task is not None for trait in own):
            own[:0] = traits_between(found, c, often)
    return [[(trait, features[kept[trait.feature]]) for trait in own] for own in traits]


def trait_in_words(trait: Trait, feature: Feature) -> str:
    """A few words for what sets a cluster apart.

    Examples
    --------
    >>> import numpy as np
    >>> trait_in_words(Trait(0, np.array([1.2]), 1.0, -0.5), Feature("income", "number", 40000, 10000))
    'higher income (50,000; others 35,000)'
    >>> trait_in_words(Trait(0, np.array([-1.2]), 0.0, 0.66), Feature("contract = part", "category", opposite="full"))
    'full (100 %; others 34 %)'
    >>> trait_in_words(Trait(0, np.array([-1.2]), 0.03, 0.7), Feature("answer = agree", "category"))
    'less often answer = agree (3 %; others 70 %)'
    """
    if feature.kind == "topic":  # a direction between two groups of words
        high, _, low = feature.name.removeprefix(f"{feature.column}: ").partition(" ↔ ")
        return f"{feature.column} rather about {high if trait.effect > 0 else low}"
    if feature.opposite and trait.effect < 0:
        shares = [percent(float(np.clip(1 - feature.factor * mean, 0, 1))) for mean in (trait.inside, trait.outside)]
        return f"{feature.opposite} ({shares[0]}; others {shares[1]})"
    inside, outside = value_in_words(feature, trait.inside), value_in_words(feature, trait.outside)
    higher, lower = _DIRECTIONS.get(feature.kind, ("", ""))
    return f"{higher if trait.effect > 0 else lower}{feature.name} ({inside}; others {outside})"


def cluster_in_words(traits: Sequence[tuple[Trait, Feature]]) -> str:
    """What characterises a cluster in all tasks, in one line."""
    shared = [(trait, feature) for trait, feature in traits if trait.task is None]
    if not shared:
        return "nothing that holds in all tasks"
    if shared[0][0].between:
        values = [
            (feature, value_in_words(feature, t.inside), value_in_words(feature, t.outside)) for t, feature in shared
        ]
        return "in between: " + ", ".join(f"{feature.name} {here} (others {other})" for feature, here, other in values)
    if shared[0][1].kind == "word":
        return "words: " + ", ".join(feature.name for _, feature in shared[:_NAMED_WORDS])
    return ", ".join(trait_in_words(trait, feature) for trait, feature in _telling(shared)[:_NAMED])


def _telling(traits: Sequence[tuple[Trait, Feature]]) -> list[tuple[Trait, Feature]]:
    """Of a category the level that a cluster has rather than those that it lacks, of a text its strongest topic.

    Examples
    --------
    >>> import numpy as np
    >>> loyal = Feature("segment = loyal", "category", column="segment")
    >>> business = Feature("segment = business", "category", column="segment")
    >>> few, many = Trait(0, np.array([-0.9]), 0.0, 0.4), Trait(1, np.array([0.8]), 0.9, 0.1)
    >>> [feature.name for _, feature in _telling([(few, loyal), (many, business)])]
    ['segment = business']
    """
    has = {feature.column for trait, feature in traits if feature.kind == "category" and trait.effect > 0}
    kept: list[tuple[Trait, Feature]] = []
    said: set[str] = set()
    for trait, feature in traits:
        lacks = feature.kind == "category" and trait.effect < 0 and not feature.opposite
        if lacks or feature.kind == "topic":
            if feature.column in (has | said if lacks else said):
                continue
            said.add(feature.column)
        kept.append((trait, feature))
    return kept
