"""What was found, in words: values as they stand in the table, what sets clusters apart, how tasks differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.findings import Difference, Findings, Trait, differences
from mtclust.app.tables.columns import Feature
from mtclust.app.tables.values import date_of_days
from mtclust.util.messages import listing, shown_name

if TYPE_CHECKING:
    from mtclust.app.clustering import Clustering

#: what a larger and a smaller value of a kind of feature is called
_DIRECTIONS = {
    "number": ("higher ", "lower "),
    "year": ("later ", "earlier "),
    "date": ("later ", "earlier "),
    "category": ("", "less often "),
}
#: what opens the description of a cluster that nothing sets apart in all tasks
_SCOPES = {"most": "where most of it lies: ", "rows": "in all rows: ", "between": "lies between other clusters in "}
#: how many tasks, clusters or features a sentence names
NAMED = 3
#: characters of the name of a task in a sentence
NAME = 40


def natural_order(names: Iterable[Any]) -> list[int]:
    """Positions that sort names as people do, numbers with as many digits each: task 02 before task 10."""
    texts = [str(name) for name in names]
    longest = max(map(len, texts), default=0)
    keys = [(re.sub(r"\d+", lambda digits: digits[0].zfill(longest), text.casefold()), text) for text in texts]
    return sorted(range(len(texts)), key=keys.__getitem__)


def figure(value: float) -> str:
    """A measured value with three digits that matter."""
    size = abs(value)
    if size >= 1000:
        text = f"{value:,.0f}" if size < 1e9 else f"{value:.2e}"
    else:
        text = f"{value:.2g}" if 0 < size < 1e-4 else f"{value:z.3g}"
    return text.replace("-", "−")


def two(value: Any, sign: str = "") -> str:
    """A number with two decimals and a proper minus; ``sign`` is a format of Python."""
    return f"{float(value):{sign}z.2f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in per cent; only none is 0 %, and only all is 100 %."""
    value = 100 * share
    if min(value, 100 - value) < 1e-9:
        return f"{value:.0f} %"
    text = f"{value:.1f}" if min(value, 100 - value) < 0.95 else f"{value:.0f}"
    return {"0.0": "<0.1", "100.0": ">99.9"}.get(text, text) + " %"


def value_in_words(feature: Feature, mean: float) -> str:
    """A mean of X in the units of the table."""
    value = feature.offset + feature.factor * mean
    if abs(value) < 1e-12 * max(abs(feature.offset), abs(feature.factor)):
        value = 0.0  # what is left of a mean after centring and back
    if not np.isfinite(value):
        return "–"
    if feature.kind in ("category", "word"):
        return percent(float(np.clip(value, 0.0, 1.0)))
    if feature.kind == "date":
        return date_of_days(value)
    if feature.kind == "year":
        return f"{value:.0f}"
    return f"{figure(value)} {feature.unit}".rstrip()


def trait_in_words(trait: Trait) -> str:
    """A few words for what sets a cluster apart, with the means of its rows and of the others."""
    feature = trait.feature
    if feature.kind == "topic":  # a direction between two ends
        high, _, low = feature.name.removeprefix(f"{feature.column}: ").partition(" ↔ ")
        return f"{feature.column} rather about {high if trait.effect > 0 else low}"
    if feature.opposite and trait.effect < 0:
        shares = [percent(float(np.clip(1 - feature.factor * mean, 0, 1))) for mean in (trait.inside, trait.outside)]
        return f"{feature.opposite} ({shares[0]}; others {shares[1]})"
    inside, outside = value_in_words(feature, trait.inside), value_in_words(feature, trait.outside)
    if trait.scope == "between":
        return f"{feature.name} ({inside})"
    direction = _DIRECTIONS.get(feature.kind, ("", ""))[trait.effect <= 0]
    return f"{direction}{feature.name} ({inside}; others {outside})"


def cluster_in_words(found: Clustering, cluster: int) -> str:
    """What sets a cluster apart, in one line; task by task where it differs between them."""
    findings = found.findings
    if found.n_clusters == 1:
        return "all rows"
    if findings.differing(cluster):
        parts = [
            f"in {found.task_words[task]} {traits_in_words(own, NAMED - 1)}"
            for task, own in findings.by_task(cluster, NAMED).items()
            if own
        ]
        return "differs between tasks: " + "; ".join(parts)
    shared = findings.traits[cluster]
    if not shared:
        return "nothing sets it apart from the other rows"
    return _SCOPES.get(shared[0].scope, "") + traits_in_words(shared)


def traits_in_words(traits: Sequence[Trait], most: int = NAMED) -> str:
    """The most telling of some traits, in one line."""
    if traits[0].feature.kind == "word":
        return "words: " + ", ".join(trait.feature.name for trait in traits[: 2 * NAMED])
    return ", ".join(trait_in_words(trait) for trait in _telling(traits)[:most])


def _telling(traits: Sequence[Trait]) -> list[Trait]:
    """Of a category the level that a cluster has rather than those that it lacks, of a text its strongest topic."""
    said = {trait.feature.column for trait in traits if trait.feature.kind == "category" and trait.effect > 0}
    kept: list[Trait] = []
    for trait in traits:
        feature = trait.feature
        lacks = feature.kind == "category" and trait.effect < 0 and not feature.opposite
        once = lacks or feature.kind == "topic"
        if not (once and feature.column in said):
            kept.append(trait)
            said |= {feature.column} if once else set()
    return kept


def ids_in_words(found: Clustering) -> str:
    """Which clusters may not mean the same in all tasks, in a sentence or two; empty where all do."""
    findings = found.findings
    places = [
        f"{found.name(c)} in {found.task_words[task]} (agreement {agreement_in_words(findings, task, c)})"
        for c in range(found.n_clusters)
        for task in findings.differing(c)[:1]
    ]
    if not places:
        return ""
    return (
        f"Cluster ids may not mean the same in all tasks: {listing(places, NAMED)}. The rows there are closer to a "
        "different cluster of the other tasks. (The agreement of a cluster's averages there and elsewhere is 1 if they "
        "are the same and 0 if they are unrelated.) Such clusters are described task by task, and their shares are not "
        "compared."
    )


def kernel_in_words(kernel: str) -> str:
    """The kernel that was taken: of "RBF 0.5" the RBF kernel of width 0.5."""
    kind, _, width = kernel.partition(" ")
    return f"{kind} kernel of width {width}" if width else f"{kind} kernel"


def columns_in_words(found: Clustering) -> str:
    """The columns without which the rows would be divided in another way; empty where there are none, or all are."""
    deciding = [(value, shown_name(name)) for name, value in found.without.items() if round(value, 2) < 0.8]
    if found.facts.doubted or not deciding or len(deciding) == len(found.without):
        return ""
    (value, name), *others = sorted(deciding)
    first = f"{name} (agreement {two(value)}; 1: the same clusters, 0: chance)"
    every = listing([first, *(f"{name} ({two(value)})" for value, name in others)], NAMED)
    return f"Leaving out one column changes the clusters: {every}."


def agreement_in_words(findings: Findings, task: int, cluster: int) -> str:
    """How far a cluster of a task agrees with the same id elsewhere, and what chance reaches."""
    chance = findings.chance[task, cluster]
    return two(findings.agreement[task, cluster]) + (f", by chance up to {two(chance)}" if np.isfinite(chance) else "")


def compared_in_words(found: Clustering) -> list[str]:
    """The most certain differences between the tasks, a task and a cluster at most twice, as up to six sentences."""
    said: list[str] = []
    times: Counter[tuple[str, int]] = Counter()
    for difference in comparable_differences(found):
        places = ("task", difference.task), ("cluster", difference.cluster)
        if len(said) < 6 and all(times[place] < 2 for place in places):
            task = found.task_words[difference.task]
            sentence = difference_in_words(difference, task, found.name(difference.cluster))
            said.append(f"{sentence[0].upper()}{sentence[1:]}.")
            times.update(places)
    return said


def comparable_differences(found: Clustering) -> list[Difference]:
    """Differences of shares, where there are clusters, their sizes were not given and their ids mean the same."""
    sizes = found.model.sizes
    given = not isinstance(sizes, str) or sizes != "auto"
    if found.loaded or given or not found.facts.comparable:
        return []
    same = [c for c in range(found.n_clusters) if not found.findings.differing(c)]
    return differences(found.model.cluster_sizes_, same)


def difference_in_words(difference: Difference, task: str, cluster: str) -> str:
    """A sentence without its full stop."""
    here, elsewhere = difference.share, difference.elsewhere
    if here == 0:
        return f"{cluster} is absent in {task} ({percent(elsewhere)} of the rows elsewhere)"
    if elsewhere == 0:
        return f"{cluster} is found only in {task} ({percent(here)} of the rows there)"
    ratio, low, high = (figure(float(f"{value:.2g}")) for value in (here / elsewhere, difference.low, difference.high))
    return (
        f"{cluster} is {'more' if here > elsewhere else 'less'} common in {task}: {percent(here)} of the rows, "
        f"{percent(elsewhere)} elsewhere; ratio {ratio} ({low} to {high})"
    )
