"""What the report says: a fitted model turned into plain dictionaries for the template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import scipy.sparse as sp

from mtclust._names import columns, listing, shown_name, spelled_out
from mtclust.report.agreement import agreement
from mtclust.report.cautions import cautions
from mtclust.report.choices import choices, cluster_number, method_in_words, setting, versions
from mtclust.report.names import figure, natural_order, percent
from mtclust.report.profiles import Trait, cluster_traits, moments
from mtclust.report.relationship import TASKS_SHOWN, Relationship, task_relationship
from mtclust.report.scatter import View, task_views
from mtclust.tables.columns import Feature
from mtclust.tables.parsing import date_of_days
from mtclust.tasks import codes_of_known_tasks

#: characters of a name in a picture
LABEL = 18
#: and how wide one of them is at most, in pixels
LABEL_STEP = 7.5
#: effects are drawn from minus to plus this many standard deviations
EFFECT_RANGE = 2.5
#: numbers of sums of features by task and cluster that are kept at once
_MOST_SUMS = 20_000_000


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
    cluster_number : ClusterNumberChoice or None
        How the number of clusters was chosen, if it was.
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
    cluster_number: Any = None


def report_content(given: ReportInput) -> dict[str, Any]:
    """All that the template shows; strings are plain text, to be escaped by the template."""
    model = given.model
    codes = codes_of_known_tasks(given.tasks, len(model.labels_), model.tasks_)
    names = [spelled_out(str(name)) for name in model.tasks_]
    relationship = task_relationship(model)
    order = natural_order(names)
    shown = (
        order if len(order) <= TASKS_SHOWN else sorted(relationship.shown if relationship else order, key=order.index)
    )
    views = task_views(given.X, codes, shown)
    compared = agreement(given.X, codes, model.labels_, model.single_task_labels_, shown, 0)
    return {
        "source": spelled_out(given.source),
        "n_rows": len(model.labels_),
        "n_tasks": len(names),
        "n_clusters": int(model.n_clusters_),
        "method": method_in_words(model),
        "tasks": names,
        "order": order,
        "columns": given.columns,
        "headline": _headline(given, relationship),
        "figures": _key_figures(model, relationship),
        "cautions": cautions(model, given.warned),
        "notes": list(given.notes),
        "sizes": _sizes(model, order),
        "totals": np.asarray(model.cluster_sizes_).sum(axis=0).tolist(),
        "profiles": _profiles(given, codes, shown),
        "effect_range": EFFECT_RANGE,
        "relationship": _relationship(relationship, names) if relationship else None,
        "groups": _groups(model),
        "views": [_view(view) for view in views],
        "points": [_points(view, given) for view in views],
        "agreement": [
            {
                "task": a.task,
                "alone": percent(a.alone),
                "alone_nmi": f"{a.alone_nmi:.2f}",
                "kmeans": percent(a.kmeans),
                "kmeans_nmi": f"{a.kmeans_nmi:.2f}",
                "alone_share": a.alone,
                "kmeans_share": a.kmeans,
            }
            for a in compared
        ],
        "choices": choices(model, given.cluster_number),
        "cluster_number": cluster_number(given.cluster_number),
        "shared_features": _shared_features(given),
        "settings": {name: setting(value) for name, value in sorted(model.get_params(deep=False).items())},
        "command": given.command,
        "versions": versions(),
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "max_tasks": TASKS_SHOWN,
    }


def _headline(given: ReportInput, relationship: Relationship | None) -> str:
    model = given.model
    m = len(model.tasks_)
    text = f"{len(model.labels_):,} rows in {m} task{'s' if m > 1 else ''} fall into {model.n_clusters_} clusters."
    if relationship is None:
        return text
    off = relationship.matrix[~np.eye(len(relationship.matrix), dtype=bool)]
    decision = model.selection_.get("coupling", {}).get("decision")
    strength = "closely" if np.median(off) >= 0.6 else "partly" if np.median(off) >= 0.3 else "hardly"
    if decision in ("none", 0) or type(model).__name__ != "DMTRC":
        return f"{text} The clusters of the tasks are {strength} alike."
    if strength == "hardly":
        return f"{text} Most of the tasks have little in common."
    return f"{text} The tasks are {strength} related and were clustered together."


def _key_figures(model: Any, relationship: Relationship | None) -> list[dict[str, str]]:
    sizes = np.asarray(model.cluster_sizes_)
    found = [
        {"value": f"{sizes.sum():,}", "label": "rows"},
        {"value": str(len(model.tasks_)), "label": "task" if len(model.tasks_) == 1 else "tasks"},
        {"value": str(model.n_clusters_), "label": "clusters"},
        {"value": _two(model.loo_score_), "label": f"separation (leave-one-out R²){_noise(model)}"},
    ]
    if relationship is not None:
        off = relationship.matrix[~np.eye(len(relationship.matrix), dtype=bool)]
        what = "correlation" if relationship.title.startswith("Correlation") else "similarity"
        found.append({"value": _two(off.mean()), "label": f"mean {what} between tasks"})
    return found


def _noise(model: Any) -> str:
    """What the leave-one-out R² of noise is at the chosen setting: clusters of noise, too, look separated."""
    chosen = model.selection_
    for row in chosen.get("candidates", []):
        if row["width"] == chosen.get("width") and row["lambda"] == chosen["lambda2"]:
            return f"; noise has about {_two(row['null'])}"
    return ""


def _sizes(model: Any, shown: list[int]) -> list[dict[str, Any]]:
    rows = []
    for task in shown:
        sizes = [int(size) for size in model.cluster_sizes_[task]]
        total = sum(sizes)
        parts = [
            {"cluster": c, "rows": n, "share": n / total, "percent": percent(n / total)} for c, n in enumerate(sizes)
        ]
        rows.append({"task": task, "rows": total, "parts": parts})
    return rows


def _profiles(given: ReportInput, codes: Any, shown: list[int]) -> list[dict[str, Any]]:
    """For every cluster the features that characterise it."""
    model = given.model
    m, C = len(model.tasks_), int(model.n_clusters_)
    X, kept = given.X, np.arange(given.X.shape[1])
    most = max(1, _MOST_SUMS // (m * C))
    if len(kept) > most:  # of very many words those that carry the most weight
        weight = np.asarray(X.multiply(X).sum(axis=0)).ravel() if sp.issparse(X) else np.sum(X**2, axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[:most])
        X = X[:, kept]
    found = moments(X, codes, model.labels_, m, C)
    names = [spelled_out(str(name)) for name in model.tasks_]
    words = bool(given.features) and given.features[0].kind == "word"
    values = moments(X != 0, codes, model.labels_, m, C) if words else found
    return [
        {
            "cluster": c,
            "rows": int(found.counts[:, c].sum()),
            "traits": [
                _trait(trait, given.features[kept[trait.feature]], names, shown)
                for trait in cluster_traits(found, c, values=values, only_positive=words)
            ],
        }
        for c in range(C)
    ]


def _trait(trait: Trait, feature: Feature, names: list[str], shown: list[int]) -> dict[str, Any]:
    return {
        "name": feature.name,
        "word": feature.kind == "word",
        "effect": trait.effect,
        "effect_text": f"{trait.effect:+.1f}".replace("-", "−"),
        "inside": _value(feature, trait.inside),
        "outside": _value(feature, trait.outside),
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


def _value(feature: Feature, mean: float) -> str:
    """A mean of X in the units of the file."""
    value = feature.offset + feature.factor * mean
    if feature.kind in ("category", "word"):
        return percent(float(np.clip(value, 0.0, 1.0)))
    return date_of_days(value) if feature.kind == "date" else figure(value)


def _relationship(found: Relationship, names: list[str]) -> dict[str, Any]:
    matrix = found.matrix
    largest = float(np.abs(matrix).max()) or 1.0
    cells = [
        [
            {
                "row": i,
                "column": k,
                "value": float(matrix[a, b]),
                "text": _two(matrix[a, b]),
                "side": float(np.sqrt(abs(matrix[a, b]) / largest)),
                "negative": bool(matrix[a, b] < 0),
            }
            for b, k in enumerate(found.shown)
        ]
        for a, i in enumerate(found.shown)
    ]
    short = [shown_name(names[i], LABEL) for i in found.shown]
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
        "strongest": _strongest(found, names),
        "negative": bool((matrix < 0).any()),
    }


def _strongest(found: Relationship, names: list[str]) -> str:
    """The closest and the most distant pair of tasks, in words."""
    matrix = np.where(np.eye(len(found.matrix), dtype=bool), np.nan, found.matrix)
    high = np.unravel_index(np.nanargmax(matrix), matrix.shape)
    low = np.unravel_index(np.nanargmin(matrix), matrix.shape)
    pair = [f"{names[found.shown[a]]} and {names[found.shown[b]]} ({_two(matrix[a, b])})" for a, b in (high, low)]
    if len(matrix) == 2:
        return f"Here: {pair[0]}."
    return f"Closest: {pair[0]}. Furthest apart: {pair[1]}."


def _two(value: Any) -> str:
    return f"{float(value):.2f}".replace("-", "−")


def _groups(model: Any) -> str:
    groups = [listing(group, 12) for group in model.task_groups_]
    return "; ".join(groups) if len(groups) > 1 else ""


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
