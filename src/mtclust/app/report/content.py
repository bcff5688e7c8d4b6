"""What the report says: a fitted model turned into plain dictionaries for the template."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.cautions import cautions
from mtclust.app.profiles import Trait
from mtclust.app.quality import clarity
from mtclust.app.relationship import TASKS_SHOWN, Relationship, task_relationship
from mtclust.app.report.agreement import agreement
from mtclust.app.report.choices import choices, cluster_number, method_in_words, setting, versions
from mtclust.app.report.first_screen import clusters_in_words, headline, tasks_compared, trust
from mtclust.app.report.intervals import correlation_intervals, share_intervals
from mtclust.app.report.rows import all_labels, least_sure, typical_rows
from mtclust.app.report.scatter import View, task_views
from mtclust.app.report.sizes import MANY_TASKS, MOST_GROUPS, size_blocks
from mtclust.app.shown import natural_order, percent
from mtclust.app.tables.columns import Feature
from mtclust.app.words import all_traits, value_in_words
from mtclust.core.ids import strings_of
from mtclust.core.tasks import numbers_of_known_tasks
from mtclust.estimators.concerns import small_tasks
from mtclust.estimators.facts import Facts, facts_of
from mtclust.util.names import columns, distinct_names, listing, spelled_out

if TYPE_CHECKING:
    from mtclust.app.clustering import Clustering

#: characters of a name in a picture
LABEL = 18
#: and how wide one of them is at most, in pixels
LABEL_STEP = 7.5
#: effects are drawn from minus to plus this many standard deviations
EFFECT_RANGE = 2.5


@dataclass(frozen=True)
class ReportInput:
    """Everything the report is made from.

    Attributes
    ----------
    model : fitted DMTRC, DMTFC or DSTC
    X, tasks : what it was fitted on
    features : sequence of Feature
        What the columns of X are called and mean.
    margins : ndarray of shape (n,)
        How much the score of a row's own cluster exceeds the next.
    row_names : sequence of str
        What a row is called when pointed at.
    source, command, columns : str
        Where the rows come from, how the report was made, and the columns in words.
    notes : sequence of str
        What was done with the table.
    warned : sequence of warnings
        What ``fit`` warned of.
    names : mapping from int to str
        Names that the user gave to clusters.
    task_column : str
        What the tasks are, in a word.
    values : pandas.DataFrame or None
        The columns that were clustered by, as they stand in the table.
    against : str
        What simple methods on the same rows say against the clusters.
    """

    model: Any
    X: Any
    tasks: Any
    features: Sequence[Feature]
    margins: Any
    row_names: Sequence[str]
    source: str = ""
    command: str = ""
    columns: str = ""
    notes: Sequence[str] = ()
    warned: Sequence[Any] = field(default=())
    names: Mapping[int, str] = field(default_factory=dict)
    task_column: str = ""
    values: Any = None
    against: str = ""

    @classmethod
    def of(cls, found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> ReportInput:
        """What the report of a clustering is made from."""
        rows = found.rows("the report")
        if row_names is None:
            index = range(len(rows.margins)) if rows.table.index is None else rows.table.index
            row_names = [f"row {name}" for name in index]
        return cls(
            model=found.model,
            X=rows.X,
            tasks=strings_of(rows.table.tasks),
            features=found.encoder.features,
            margins=rows.margins,
            row_names=row_names,
            source=", ".join(rows.table.files),
            command=command,
            columns=found.encoder.describe(),
            notes=found.notes,
            warned=found.warned,
            names=found.names,
            task_column=found.encoder.task_column or "",
            values=rows.table.frame[list(dict.fromkeys(column.name for column in found.encoder.columns))],
            against=found.facts.against,
        )


def report_content(given: ReportInput) -> dict[str, Any]:
    """All that the template shows; strings are plain text, to be escaped by the template."""
    model = given.model
    numbers = numbers_of_known_tasks(given.tasks, len(model.labels_), model.tasks_)
    names = [spelled_out(str(name)) for name in model.tasks_]
    cluster_names = [spelled_out(given.names.get(c, f"Cluster {c}")) for c in range(int(model.n_clusters_))]
    relationship = task_relationship(model)
    order = natural_order(names)
    shown = (
        order if len(order) <= TASKS_SHOWN else sorted(relationship.shown if relationship else order, key=order.index)
    )
    views = task_views(given.X, numbers, shown)
    traits = all_traits(given.X, numbers, model, given.features)
    clear = clarity(given.X, numbers, model.labels_, int(model.n_clusters_))
    facts = facts_of(model, given.against)
    careful = cautions(model, given.warned, given.names)
    return {
        "source": spelled_out(given.source),
        "n_rows": len(model.labels_),
        "n_tasks": len(names),
        "n_clusters": int(model.n_clusters_),
        "method": method_in_words(model),
        "tasks": names,
        "short_tasks": distinct_names(names, LABEL),
        "cluster_names": cluster_names,
        "order": order,
        "columns": given.columns,
        "headline": headline(given, facts),
        "verdict": trust(facts, careful),
        "in_words": clusters_in_words(given, traits),
        "compared": tasks_compared(given, cluster_names),
        "figures": _key_figures(facts),
        "cautions": careful,
        "notes": list(given.notes),
        "sizes": size_blocks(model, order),
        "share_intervals": share_intervals(model, order),
        "totals": np.asarray(model.cluster_sizes_).sum(axis=0).tolist(),
        "profiles": _profiles(given, traits, clear, numbers, shown),
        "effect_range": EFFECT_RANGE,
        "relationship": _relationship(relationship, names, model) if relationship else None,
        "groups": _groups(model),
        "views": [_view(view) for view in views],
        "points": [_points(view, given) for view in views],
        "least_sure": least_sure(given, numbers),
        "all_labels": all_labels(given, numbers),
        "agreement": _agreement(given, numbers, shown),
        "choices": choices(model),
        "cluster_number": cluster_number(model),
        "shared_features": _shared_features(given),
        "settings": {name: setting(value) for name, value in sorted(model.get_params(deep=False).items())},
        "command": given.command,
        "versions": versions(),
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "max_tasks": TASKS_SHOWN,
        "many_tasks": MANY_TASKS,
    }


def _key_figures(facts: Facts) -> list[dict[str, str]]:
    found = [
        {"value": f"{facts.n_rows:,}", "label": "rows"},
        {"value": str(facts.n_tasks), "label": "task" if facts.n_tasks == 1 else "tasks"},
        {"value": str(facts.n_clusters), "label": "clusters"},
    ]
    if facts.n_clusters > 1:
        label = "separation: 1 is clear-cut, 0 what data without clusters reach"
        found.append({"value": _two(facts.separation), "label": label})
    if facts.stability is not None:
        some = f"{100 * facts.stability.share:.0f} % of the rows"
        label = f"stability: 1 if {some} give the same clusters, 0 if others altogether"
        found.append({"value": _two(facts.stability.overall), "label": label})
    return found


def _profiles(given: ReportInput, traits: Any, clear: Any, numbers: Any, shown: list[int]) -> list[dict[str, Any]]:
    """For every cluster its size, how clear it is, typical rows, and the features that characterise it."""
    model = given.model
    names = [spelled_out(str(name)) for name in model.tasks_]
    sizes = np.asarray(model.cluster_sizes_).sum(axis=0)
    typical = typical_rows(given, clear, numbers)
    stability = getattr(model, "stability_", None)
    found = []
    for c, own in enumerate(traits):
        known = clear.silhouette[(model.labels_ == c) & ~np.isnan(clear.silhouette)]
        found.append(
            {
                "cluster": c,
                "rows": int(sizes[c]),
                "clarity": _two(known.mean()) if len(known) else "",
                "stability": "" if stability is None else _two(stability.clusters[c]),
                "typical": typical[c],
                "traits": [_trait(trait, feature, names, shown) for trait, feature in own],
            }
        )
    return found


def _agreement(given: ReportInput, numbers: Any, shown: list[int]) -> list[dict[str, Any]]:
    model = given.model
    return [
        {
            "task": a.task,
            "alone": percent(a.alone),
            "alone_nmi": f"{a.alone_nmi:.2f}",
            "kmeans": percent(a.kmeans),
            "kmeans_nmi": f"{a.kmeans_nmi:.2f}",
            "alone_share": a.alone,
            "kmeans_share": a.kmeans,
        }
        for a in agreement(given.X, numbers, model.labels_, model.single_task_labels_, shown, 0)
    ]


def _trait(trait: Trait, feature: Feature, names: list[str], shown: list[int]) -> dict[str, Any]:
    return {
        "name": feature.name,
        "word": feature.kind == "word",
        "between": trait.between,
        "effect": trait.effect,
        "effect_text": f"{trait.effect:+.1f}".replace("-", "−"),
        "inside": value_in_words(feature, trait.inside),
        "outside": value_in_words(feature, trait.outside),
        "task": trait.task,
        "elsewhere": _elsewhere(trait),
        "dots": [
            {
                "task": t,
                "at": float(np.clip(trait.effects[t], -EFFECT_RANGE, EFFECT_RANGE)),
                "text": f"{names[t]}: {trait.effects[t]:+.2f}".replace("-", "−"),
            }
            for t in shown
            if not np.isnan(trait.effects[t])
        ],
    }


def _elsewhere(trait: Trait) -> str:
    others = np.delete(trait.effects, trait.task) if trait.task is not None else trait.effects
    return f"{np.nanmean(others):+.1f}".replace("-", "−")


def _relationship(found: Relationship, names: list[str], model: Any) -> dict[str, Any]:
    matrix = found.matrix
    known = correlation_intervals(model) if found.quantity == "correlation" else None
    intervals = np.full((len(names), len(names)), "", dtype=object) if known is None else known
    largest = float(np.abs(matrix).max()) or 1.0
    cells = [
        [
            {
                "row": i,
                "column": k,
                "value": float(matrix[a, b]),
                "text": _two(matrix[a, b]),
                "interval": intervals[i, k],
                "side": float(np.sqrt(abs(matrix[a, b]) / largest)),
                "negative": bool(matrix[a, b] < 0),
            }
            for b, k in enumerate(found.shown)
        ]
        for a, i in enumerate(found.shown)
    ]
    names = distinct_names(names, LABEL)
    short = [names[i] for i in found.shown]
    deepest = max((link["x"] for link in found.links), default=1.0)
    return {
        "title": found.title,
        "meaning": found.meaning,
        "shown": found.shown,
        "short": short,
        "room": LABEL_STEP * max(map(columns, short)) + 14,
        "cells": cells,
        "links": found.links,
        "deepest": max(deepest, 0.05),
        "strongest": _strongest(found, names, intervals, _few_rows(model)),
        "intervals": bool((intervals != "").any()),
        "negative": bool((matrix < 0).any()),
    }


def _strongest(found: Relationship, names: list[str], intervals: Any, small: Collection[int] = ()) -> str:
    """The closest and the most distant pair of tasks, in words; ``small`` ones are left aside where two are left."""
    telling = np.array([task not in small for task in found.shown])
    if telling.sum() < 2:
        telling[:] = True
    matrix = np.where(np.eye(len(telling), dtype=bool) | ~np.outer(telling, telling), np.nan, found.matrix)
    high = np.unravel_index(np.nanargmax(matrix), matrix.shape)
    low = np.unravel_index(np.nanargmin(matrix), matrix.shape)
    pair = []
    for a, b in (high, low):
        i, k = found.shown[a], found.shown[b]
        interval = f"; {intervals[i, k]} with other rows" if intervals[i, k] else ""
        pair.append(f"{names[i]} and {names[k]} ({_two(matrix[a, b])}{interval})")
    if telling.sum() == 2:
        return f"Here: {pair[0]}."
    if _two(matrix[high]) == _two(matrix[low]):
        return f"All pairs are equally close ({_two(matrix[high])})."
    return f"Closest: {pair[0]}. Furthest apart: {pair[1]}."


def _few_rows(model: Any) -> set[int]:
    """Tasks whose rows are too few to say how they are related; none where all are such."""
    few = set(small_tasks(model))
    return {task for task, name in enumerate(model.tasks_.tolist()) if name in few and len(few) < len(model.tasks_)}


def _two(value: Any) -> str:
    return f"{float(value):.2f}".replace("-", "−")


def _groups(model: Any) -> str:
    """Groups of related tasks: their names, of many tasks their sizes."""
    few = {model.tasks_.tolist()[task] for task in _few_rows(model)}
    groups = [group for group in model.task_groups_ if not few.issuperset(group)]
    if not 1 < len(groups) <= MOST_GROUPS:
        return ""
    if len(model.tasks_) > MANY_TASKS:
        return listing([f"{len(group)} task{'s' if len(group) > 1 else ''}" for group in groups], MOST_GROUPS)
    return "; ".join(listing(group, MANY_TASKS) for group in groups)


def _view(view: View) -> dict[str, Any]:
    return {"task": view.task, "rows": view.n_rows, "drawn": len(view.rows), "explained": percent(view.explained)}


def _points(view: View, given: ReportInput) -> dict[str, Any]:
    """What the page's script draws: whole numbers and names."""
    margins = np.asarray(given.margins)[view.rows]
    return {
        "task": view.task,
        "common": view.common.tolist(),
        "own": view.own.tolist(),
        "cluster": given.model.labels_[view.rows].tolist(),
        "alone": given.model.single_task_labels_[view.rows].tolist(),
        "margin": [round(float(value), 2) if np.isfinite(value) else None for value in margins],
        "name": [str(given.row_names[row]) for row in view.rows],
    }


def _shared_features(given: ReportInput) -> list[dict[str, Any]]:
    """The largest entries of the diagonal of D, where it is in the coordinates of the features."""
    covariance = getattr(given.model, "feature_covariance_", None)
    if covariance is None or len(covariance) != len(given.features) or given.model.kernel != "linear":
        return []
    diagonal = np.diag(covariance)
    best = np.argsort(-diagonal, kind="stable")[:10]
    return [
        {
            "name": given.features[f].name,
            "share": float(diagonal[f] / diagonal.sum()),
            "percent": percent(float(diagonal[f] / diagonal.sum())),
        }
        for f in best
        if diagonal[f] > 0
    ]
