"""The first screen of the report: what was found, for a reader who knows neither the method nor its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.cautions import Caution
from mtclust.app.comparison import differences, shares_were_given, task_in_words
from mtclust.app.shown import percent
from mtclust.app.words import cluster_in_words
from mtclust.estimators.facts import Facts
from mtclust.util.names import distinct_names

if TYPE_CHECKING:
    from mtclust.app.report.content import ReportInput

#: sentences that compare tasks
_COMPARED = 6


def headline(given: ReportInput, facts: Facts) -> str:
    """One sentence; with its doubt where there is one."""
    m = len(given.model.tasks_)
    of = f" ({given.task_column})" if given.task_column else ""
    return facts.headline(f"{facts.n_rows:,} rows in {m} task{'s' if m > 1 else ''}{of}")


def trust(facts: Facts, cautions: Sequence[Caution]) -> str:
    """How far the clusters can be trusted, in a sentence or two."""
    sentences = [sentence for sentence in (facts.separated, facts.stable) if sentence]
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
            task = task_in_words(names[difference.task], given.task_column)
            said.append(difference.in_words(task, cluster_names[difference.cluster]) + ".")
            times[difference.task] += 1
    return said
