"""The first screen of the report: what was found, for a reader who knows neither the method nor its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust._names import distinct_names
from mtclust.app.cautions import Caution
from mtclust.app.comparison import differences, shares_were_given
from mtclust.app.quality import Clarity
from mtclust.app.shown import percent
from mtclust.app.words import cluster_in_words

if TYPE_CHECKING:
    from mtclust.app.report.content import ReportInput

#: mean silhouettes from which on clusters are called clear, and fairly clear
_CLEAR, _FAIRLY = 0.5, 0.25
#: sentences that compare tasks
_COMPARED = 6
#: titles of cautions after which the headline must not promise clusters
_DOUBT = ("No clear clusters", "Clusters not separated", "Hardly more than noise", "Number of clusters uncertain")


def headline(given: ReportInput, cautions: Sequence[Caution]) -> str:
    """One sentence; with its doubt where there is one."""
    model = given.model
    m = len(model.tasks_)
    of = f" ({given.task_column})" if given.task_column else ""
    rows = f"{len(model.labels_):,} rows in {m} task{'s' if m > 1 else ''}{of}"
    if any(caution.title in _DOUBT for caution in cautions):
        return f"{rows} were cut into {model.n_clusters_} clusters, but there may be no clusters in them."
    return f"{rows} fall into {model.n_clusters_} clusters."


def verdict(clear: Clarity, cautions: Sequence[Caution]) -> str:
    """How far the clusters can be trusted, in a sentence or two."""
    known = clear.silhouette[~np.isnan(clear.silhouette)]
    if len(known) == 0:
        return ""
    mean, between = float(known.mean()), float(np.mean(known < 0.1))
    word = "clear-cut" if mean >= _CLEAR else "fairly clear" if mean >= _FAIRLY else "blurred"
    text = f"The clusters are {word}: {percent(between)} of the rows lie on a border between two of them."
    if not cautions:
        return text
    count = len(cautions)
    return f"{text} {count} thing{'s' if count > 1 else ''} to know before you trust them: see below."


def clusters_in_words(given: ReportInput, traits: Sequence[Any]) -> list[dict[str, Any]]:
    """A line per cluster."""
    sizes = np.asarray(given.model.cluster_sizes_).sum(axis=0)
    return [
        {"cluster": c, "share": percent(sizes[c] / sizes.sum()), "words": cluster_in_words(own)}
        for c, own in enumerate(traits)
    ]


def tasks_compared(given: ReportInput, cluster_names: Sequence[str]) -> list[str]:
    """Sentences on clusters that are more or less common in one task than elsewhere, a task at most twice."""
    model = given.model
    if shares_were_given(model):
        return []
    names = distinct_names([str(name) for name in model.tasks_], 40)
    said: list[str] = []
    times = np.zeros(len(names))
    for difference in differences(model.cluster_sizes_):
        if len(said) < _COMPARED and times[difference.task] < 2:
            said.append(difference.in_words(names[difference.task], cluster_names[difference.cluster]) + ".")
            times[difference.task] += 1
    return said


def mean_clarity(clear: Clarity) -> str:
    known = clear.silhouette[~np.isnan(clear.silhouette)]
    return f"{known.mean():.2f}".replace("-", "−") if len(known) else "–"
