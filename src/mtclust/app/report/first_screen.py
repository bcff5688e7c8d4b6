"""The first screen of the report: what was found, for a reader who knows neither the method nor its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust._names import distinct_names
from mtclust.app.cautions import Caution
from mtclust.app.comparison import differences, shares_were_given
from mtclust.app.quality import Verdict
from mtclust.app.shown import percent
from mtclust.app.words import cluster_in_words

if TYPE_CHECKING:
    from mtclust.app.report.content import ReportInput

#: sentences that compare tasks
_COMPARED = 6
#: titles of cautions after which the headline must not promise clusters
_DOUBT = ("No clear clusters", "Clusters not separated", "Hardly more than noise", "Number of clusters uncertain")


def headline(given: ReportInput, cautions: Sequence[Caution], judged: Verdict | None) -> str:
    """One sentence; with its doubt where there is one."""
    model = given.model
    m = len(model.tasks_)
    of = f" ({given.task_column})" if given.task_column else ""
    rows = f"{len(model.labels_):,} rows in {m} task{'s' if m > 1 else ''}{of}"
    if any(caution.title in _DOUBT for caution in cautions):
        return f"{rows} were cut into {model.n_clusters_} clusters, but there may be no clusters in them."
    if model.n_clusters_ == 1:
        return f"{rows} are one cluster."
    chosen = model.selection_.get("n_clusters")
    cloud = chosen is not None and chosen.get("structure", "clusters") != "clusters"
    verb = "were cut" if cloud or (judged is not None and judged.doubtful) else "fall"
    return f"{rows} {verb} into {model.n_clusters_} clusters."


def trust(judged: Verdict | None, cautions: Sequence[Caution]) -> str:
    """How far the clusters can be trusted, in a sentence or two."""
    sentences = [] if judged is None else [str(judged)]
    if cautions:
        count = f"{len(cautions)} thing{'s' if len(cautions) > 1 else ''}"
        sentences.append(f"{count} to know before you trust them: see below.")
    return " ".join(sentences)


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
