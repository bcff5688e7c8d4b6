"""What the report says: a clustering turned into plain dictionaries for the template."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import dendrogram, linkage
from scipy.spatial.distance import squareform
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mtclust.app.clustering import Clustering
from mtclust.app.findings import Trait, wilson
from mtclust.app.report.scatter import View, task_views
from mtclust.app.tables.values import column_strings
from mtclust.app.words import (
    agreement_in_words,
    cluster_in_words,
    compared_in_words,
    ids_in_words,
    natural_order,
    percent,
    shares_were_given,
    two,
    value_in_words,
)
from mtclust.choose.record import SizesChoice
from mtclust.core.stability import Stability
from mtclust.estimators.facts import Facts, cautions, likeness_of_tasks, small_tasks
from mtclust.metrics import match_clusters
from mtclust.util.messages import columns, distinct_names, listing, spelled_out

Array = NDArray[np.float64]

#: characters of a name in a picture, and how wide one of them is at most, in pixels
LABEL, LABEL_STEP = 18, 7.5
#: effects are drawn from minus to plus this many standard deviations
EFFECT_RANGE = 2.5
#: tasks in pictures, of more the largest; more tasks are folded; more groups of tasks say less than all tasks together
TASKS_SHOWN, MANY_TASKS, MOST_GROUPS = 40, 12, 8
#: sentences that compare tasks
_COMPARED = 6
#: rows that are listed as least sure, columns of the table that are shown of them, characters of a cell
LEAST_SURE, _COLUMNS, _CELL = 12, 8, 40
#: labels of more rows are not put into the page
MOST_LABELS = 20_000
#: intervals of shares hold with 90 %
_CHANCE = 0.1
#: rows of a task that k-means is run on
_K_MEANS_ROWS = 4000
#: title and meaning of what says how alike tasks are
_LIKENESS = {
    "correlation": (
        "Correlation between tasks",
        "Learned together with the clusters: 1 means that the same features make them in both tasks, 0 that the two "
        "have nothing in common.",
    ),
    "shares": (
        "Similarity of the tasks' shares of clusters",
        "All tasks have one model here, so that they differ in how many rows of each cluster they have. The figures "
        "say how alike these shares are: 1 is the same, 0 no cluster in common.",
    ),
    "similarity": (
        "Similarity of the tasks' clusters",
        "No correlation was learned here. The figures say how alike the centres of the matched clusters are: 1 is the "
        "same, 0 unrelated.",
    ),
}
_METHODS = {
    "DMTRC": "learns how the tasks are related",
    "DMTFC": "learns which features the tasks share",
    "DSTC": "clusters every task alone and matches the clusters",
}


def report_content(found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> dict[str, Any]:
    """All that the template shows; strings are plain text, to be escaped by the template."""
    model, rows, facts = found.model, found.rows("the report"), found.facts
    if row_names is None:
        index = range(len(rows.margins)) if rows.table.index is None else rows.table.index
        row_names = [f"row {name}" for name in index]
    names = [spelled_out(str(name)) for name in model.tasks_]
    relationship = task_relationship(model)
    order = natural_order(names)
    shown = (
        order if len(order) <= TASKS_SHOWN else sorted(relationship.shown if relationship else order, key=order.index)
    )
    views = task_views(rows.X, rows.task_numbers, shown)
    careful = cautions(model, found.warned, found.names)
    of = f" ({found.encoder.task_column})" if found.encoder.task_column else ""
    rows_of_tasks = f"{facts.n_rows:,} rows in {facts.n_tasks} task{'s' if len(names) > 1 else ''}{of}"
    first = ids_in_words(found)
    return {
        "source": spelled_out(", ".join(rows.table.files)),
        "n_rows": len(model.labels_),
        "n_tasks": len(names),
        "n_clusters": found.n_clusters,
        "method": _method(model),
        "tasks": names,
        "short_tasks": distinct_names(names, LABEL),
        "cluster_names": [spelled_out(found.names.get(c, f"Cluster {c}")) for c in range(found.n_clusters)],
        "order": order,
        "columns": found.encoder.describe(),
        "first": first,
        "headline": facts.headline(rows_of_tasks, ids_differ=bool(first)),
        "verdict": _verdict(facts, len(careful)),
        "in_words": [
            {"cluster": c, "share": percent(size / facts.n_rows), "words": cluster_in_words(found, c)}
            for c, size in enumerate(np.asarray(model.cluster_sizes_).sum(axis=0))
        ],
        "compared": compared_in_words(found, _COMPARED),
        "figures": _key_figures(facts),
        "cautions": careful,
        "notes": list(found.notes),
        "sizes": size_blocks(model, order),
        "share_intervals": share_intervals(model, order),
        "totals": np.asarray(model.cluster_sizes_).sum(axis=0).tolist(),
        "profiles": _profiles(found, row_names, shown),
        "effect_range": EFFECT_RANGE,
        "relationship": _relationship(relationship, names, model) if relationship else None,
        "groups": _groups(model),
        "views": [
            {"task": v.task, "rows": v.n_rows, "drawn": len(v.rows), "explained": percent(v.explained)} for v in views
        ],
        "points": [_points(view, found, row_names) for view in views],
        "least_sure": _least_sure(found, row_names),
        "all_labels": _all_labels(found, row_names),
        "agreement": _agreement(found, shown),
        "choices": _choices(model),
        "shared_features": _shared_features(found),
        "settings": {name: _setting(value) for name, value in sorted(model.get_params(deep=False).items())},
        "command": command,
        "versions": _versions(),
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "max_tasks": TASKS_SHOWN,
        "many_tasks": MANY_TASKS,
    }


# -- the first screen --------------------------------------------------------------------------------------------------


def _verdict(facts: Facts, n_cautions: int) -> str:
    """How far the clusters can be trusted, in a sentence or two."""
    sentences = [sentence for sentence in (facts.separated, facts.stable) if sentence]
    if n_cautions:
        sentences.append(f"{n_cautions} thing{'s' if n_cautions > 1 else ''} to know before you trust them: see below.")
    return " ".join(sentences)


def _key_figures(facts: Facts) -> list[dict[str, str]]:
    found = [
        {"value": f"{facts.n_rows:,}", "label": "rows"},
        {"value": str(facts.n_tasks), "label": "task" if facts.n_tasks == 1 else "tasks"},
        {"value": str(facts.n_clusters), "label": "clusters"},
    ]
    if facts.n_clusters > 1:
        label = "separation: 1 if clusters do not touch, 0 as in data without clusters"
        found.append({"value": two(facts.separation), "label": label})
    if facts.stability is not None:
        some = f"{100 * facts.stability.share:.0f} % of the rows"
        label = f"stability: 1 if {some} give the same clusters, 0 if others altogether"
        found.append({"value": two(facts.stability.overall), "label": label})
    return found


# -- clusters ----------------------------------------------------------------------------------------------------------


def _profiles(found: Clustering, row_names: Sequence[str], shown: list[int]) -> list[dict[str, Any]]:
    """For every cluster its size, its separation, typical rows, and the features that characterise it."""
    model, findings = found.model, found.findings
    names = [spelled_out(str(name)) for name in model.tasks_]
    sizes = np.asarray(model.cluster_sizes_)
    stability = getattr(model, "stability_", None)
    typical = found.exemplars()
    profiles = []
    for c in range(found.n_clusters):
        traits, differing = findings.traits[c], findings.differing(c)
        if differing:  # what holds in all tasks is said of one cluster, and this is not one
            tasks = [task for task in np.argsort(-sizes[:, c], kind="stable").tolist() if sizes[task, c]][:4]
            traits = [trait for task in tasks for trait in findings.in_task(c, task)[:3]]
        profiles.append(
            {
                "cluster": c,
                "rows": int(sizes[:, c].sum()),
                "separation": two(model.cluster_scores_[c]) if found.n_clusters > 1 else "",
                "stability": "" if stability is None else two(stability.clusters[c]),
                "typical": [str(row_names[row]) for row in typical[c]],
                "differs": [f"{names[t]} (agreement {agreement_in_words(findings, t, c)})" for t in differing],
                "traits": [_trait(trait, names, shown) for trait in traits],
            }
        )
    return profiles


def _trait(trait: Trait, names: list[str], shown: list[int]) -> dict[str, Any]:
    feature, direction = trait.feature, trait.feature.kind in ("topic", "season")
    others = np.delete(trait.effects, trait.task) if trait.task is not None else trait.effects
    known = others[~np.isnan(others)]
    return {
        "name": feature.name,
        "word": feature.kind == "word",
        "scope": trait.scope,
        "effect": trait.effect,
        "effect_text": f"{trait.effect:+.1f}".replace("-", "−"),
        "inside": "" if direction else value_in_words(feature, trait.inside),
        "outside": "" if direction else value_in_words(feature, trait.outside),
        "task": trait.task,
        "elsewhere": f"{known.mean():+.1f}".replace("-", "−") if len(known) else "",
        "dots": [
            {
                "task": t,
                "at": float(np.clip(trait.effects[t], -EFFECT_RANGE, EFFECT_RANGE)),
                "text": f"{names[t]}: {two(trait.effects[t], '+')}",
            }
            for t in shown
            if not np.isnan(trait.effects[t])
        ],
    }


def size_blocks(model: Any, order: list[int]) -> list[dict[str, Any]]:
    """Rows of the table of sizes: one block without a title, or of many tasks a block per group with its sums."""
    sizes = np.asarray(model.cluster_sizes_)
    if len(order) <= MANY_TASKS:
        return [{"title": "", "rows": [_size_row(task, sizes[task]) for task in order]}]
    place = {name: task for task, name in enumerate(model.tasks_.tolist())}
    groups = [sorted((place[name] for name in group), key=order.index) for group in model.task_groups_]
    grouped = 1 < len(groups) <= MOST_GROUPS and sum(map(len, groups)) == len(order)
    blocks = []
    for number, tasks in enumerate(sorted(groups, key=len, reverse=True) if grouped else [order]):
        count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''}"
        title = f"Group {number + 1}: {count}" if grouped else f"All {count}"
        rows = [_size_row(task, sizes[task]) for task in tasks]
        blocks.append({"title": title, "sum": _size_row(None, sizes[tasks].sum(axis=0)), "rows": rows})
    return blocks


def _size_row(task: int | None, sizes: Any) -> dict[str, Any]:
    total = int(sizes.sum())
    parts = [
        {"cluster": c, "rows": int(n), "share": n / total, "percent": percent(n / total)} for c, n in enumerate(sizes)
    ]
    return {"task": task, "rows": total, "parts": parts}


def share_intervals(model: Any, order: list[int]) -> dict[str, Any] | None:
    """The share of every cluster in every task with its interval; None where it is not known or sizes were given.

    An interval is as wide as refits say, and at least as wide as that of a share of so many rows drawn at random.
    """
    found: Stability | None = getattr(model, "stability_", None)
    if found is None or int(model.n_clusters_) < 2 or shares_were_given(model):
        return None
    sizes = np.asarray(model.cluster_sizes_)
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    drawn = wilson(sizes, sizes.sum(axis=1, keepdims=True), norm.isf(_CHANCE / 2))
    lows, highs = np.minimum(found.shares[..., 0], drawn[0]), np.maximum(found.shares[..., 1], drawn[1])
    widest = float(highs.max())
    rows = []
    for task in order:
        cells = []
        for cluster, (low, high) in enumerate(zip(lows[task], highs[task])):
            first, last = percent(low), percent(high)
            between = last if first == last else f"{first.removesuffix(' %')}–{last}"
            places = {"low": low / widest, "at": shares[task, cluster] / widest, "high": high / widest}
            cells.append({"cluster": cluster, "share": percent(shares[task, cluster]), "between": between} | places)
        rows.append({"task": task, "cells": cells})
    return {"rows": rows, "widest": percent(widest)}


# -- tasks -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Relationship:
    """What is drawn about the tasks.

    Attributes
    ----------
    kind : {"correlation", "shares", "similarity"}
        What the matrix says.
    shown : list of int
        The tasks drawn, in the order of the tree: related ones beside each other.
    matrix : ndarray
        Between the tasks drawn.
    links : list of dict
        Joints of the tree: the branches at the leaves ``low`` and ``high`` (counted from 0) begin at ``x_low`` and
        ``x_high`` and join at ``x``, a distance from 0 (the same) to 2.
    """

    kind: str
    shown: list[int]
    matrix: Array
    links: list[dict[str, float]]


def task_relationship(model: Any) -> Relationship | None:
    """The learned correlations of the tasks, or how alike their clusters or shares are; of many tasks the largest."""
    m = len(model.tasks_)
    kind, matrix = likeness_of_tasks(model)
    if m < 2 or matrix is None:
        return None
    sizes = np.asarray(model.cluster_sizes_).sum(axis=1)
    kept = np.arange(m) if m <= TASKS_SHOWN else np.sort(np.argsort(-sizes, kind="stable")[:TASKS_SHOWN])
    kept = kept[natural_order(model.tasks_[kept])]
    order, links = task_tree(matrix[np.ix_(kept, kept)])
    shown = kept[order]
    return Relationship(kind, shown.tolist(), matrix[np.ix_(shown, shown)], links)


def task_tree(matrix: Array) -> tuple[list[int], list[dict[str, float]]]:
    """Average linkage of the distances 1 − correlation: the order of the leaves and the joints, leaves at 0, 1, …

    Examples
    --------
    >>> import numpy as np
    >>> order, links = task_tree(np.array([[1, 0.1, 0.8], [0.1, 1, 0.1], [0.8, 0.1, 1]]))
    >>> order, [round(link["x"], 2) for link in links]
    ([1, 0, 2], [0.2, 0.9])
    """
    distance = np.clip(1.0 - (matrix + matrix.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    drawn = dendrogram(linkage(squareform(distance, checks=False), method="average"), no_plot=True)
    links = [
        {
            "x": float(x[1]), "x_low": float(x[0]), "x_high": float(x[3]),
            "low": (float(y[0]) - 5) / 10, "high": (float(y[2]) - 5) / 10,
        }
        for y, x in sorted(zip(drawn["icoord"], drawn["dcoord"]), key=lambda pair: pair[1][1])
    ]  # fmt: skip
    return drawn["leaves"], links


def _relationship(found: Relationship, names: list[str], model: Any) -> dict[str, Any]:
    matrix = found.matrix
    known = correlation_intervals(model) if found.kind == "correlation" else None
    intervals = np.full((len(names), len(names)), "", dtype=object) if known is None else known
    largest = float(np.abs(matrix).max()) or 1.0
    cells = [
        [
            {
                "row": i,
                "column": k,
                "value": float(matrix[a, b]),
                "text": two(matrix[a, b]),
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
    title, meaning = _LIKENESS[found.kind]
    return {
        "title": title,
        "meaning": meaning,
        "shown": found.shown,
        "short": short,
        "room": LABEL_STEP * max(map(columns, short)) + 14,
        "cells": cells,
        "links": found.links,
        "deepest": max((link["x"] for link in found.links), default=1.0) or 0.05,
        "strongest": _strongest(found, names, intervals, _few_rows(model)),
        "intervals": bool((intervals != "").any()),
        "negative": bool((matrix < 0).any()),
    }


def correlation_intervals(model: Any) -> NDArray[Any] | None:
    """Intervals of the learned correlations between tasks, in words; None where they are not known."""
    found: Stability | None = getattr(model, "stability_", None)
    if found is None or found.task_correlation is None:
        return None
    pairs = [[(two(low), two(high)) for low, high in row] for row in found.task_correlation]
    return np.array([["" if low == high else f"{low} to {high}" for low, high in row] for row in pairs], dtype=object)


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
        pair.append(f"{names[i]} and {names[k]} ({two(matrix[a, b])}{interval})")
    if telling.sum() == 2:
        return f"Here: {pair[0]}."
    if two(matrix[high]) == two(matrix[low]):
        return f"All pairs are equally close ({two(matrix[high])})."
    return f"Closest: {pair[0]}. Furthest apart: {pair[1]}."


def _few_rows(model: Any) -> set[int]:
    """Tasks whose rows are too few to say how they are related; none where all are such."""
    few = set(small_tasks(model))
    return {task for task, name in enumerate(model.tasks_.tolist()) if name in few and len(few) < len(model.tasks_)}


def _groups(model: Any) -> str:
    """Groups of related tasks: their names, of many tasks their sizes."""
    few = {model.tasks_.tolist()[task] for task in _few_rows(model)}
    groups = [group for group in model.task_groups_ if not few.issuperset(group)]
    if not 1 < len(groups) <= MOST_GROUPS:
        return ""
    if len(model.tasks_) > MANY_TASKS:
        return listing([f"{len(group)} task{'s' if len(group) > 1 else ''}" for group in groups], MOST_GROUPS)
    return "; ".join(listing(group, MANY_TASKS) for group in groups)


def _shared_features(found: Clustering) -> list[dict[str, Any]]:
    """The largest entries of the diagonal of D, where it is in the coordinates of the features."""
    covariance, features = getattr(found.model, "feature_covariance_", None), found.encoder.features
    if covariance is None or len(covariance) != len(features) or found.model.kernel != "linear":
        return []
    shares = np.diag(covariance) / np.trace(covariance)
    best = [f for f in np.argsort(-shares, kind="stable")[:10] if shares[f] > 0]
    return [{"name": features[f].name, "share": float(shares[f]), "percent": percent(shares[f])} for f in best]


# -- rows --------------------------------------------------------------------------------------------------------------


def _points(view: View, found: Clustering, row_names: Sequence[str]) -> dict[str, Any]:
    """What the page's script draws: whole numbers and names."""
    margins = found.rows("points").margins[view.rows]
    return {
        "task": view.task,
        "common": view.common.tolist(),
        "own": view.own.tolist(),
        "cluster": found.model.labels_[view.rows].tolist(),
        "alone": found.model.single_task_labels_[view.rows].tolist(),
        "margin": [round(float(value), 2) if np.isfinite(value) else None for value in margins],
        "name": [str(row_names[row]) for row in view.rows],
    }


def _least_sure(found: Clustering, row_names: Sequence[str]) -> dict[str, Any]:
    """The rows with the smallest margins, their next cluster, and their values."""
    model, rows = found.model, found.rows("least sure")
    if model.n_clusters_ < 2 or not np.isfinite(rows.margins).any():
        return {"columns": [], "rows": []}
    chosen = np.argsort(rows.margins, kind="stable")[:LEAST_SURE]
    following = found.next_clusters(chosen)
    used = list(dict.fromkeys(column.name for column in found.encoder.columns))[:_COLUMNS]
    cells = {name: _cells(rows.table.frame[name].iloc[chosen]) for name in used}
    listed = [
        {
            "name": str(row_names[row]),
            "task": int(rows.task_numbers[row]),
            "cluster": int(model.labels_[row]),
            "next": int(following[k]),
            "margin": two(rows.margins[row]),
            "values": [cell if len(cell) <= _CELL else cell[: _CELL - 1] + "…" for cell in (cells[n][k] for n in used)],
        }
        for k, row in enumerate(chosen)
    ]
    return {"columns": used, "rows": listed}


def _cells(column: Any) -> Any:
    """Strings; numbers with the digits that matter."""
    if column.dtype.kind == "f":
        return [format(value, ".5g") if value == value else "" for value in column]
    if column.dtype.kind == "M":
        return [str(value)[:10] if value == value else "" for value in column]
    return column_strings(column)


def _all_labels(found: Clustering, row_names: Sequence[str]) -> dict[str, Any] | None:
    """Task, cluster and margin of every row, for the page's script; None where they are too many."""
    if len(found.model.labels_) > MOST_LABELS:
        return None
    rows = found.rows("labels")
    return {
        "name": [str(name) for name in row_names],
        "task": rows.task_numbers.tolist(),
        "cluster": found.model.labels_.tolist(),
        "margin": [round(float(value), 4) if np.isfinite(value) else None for value in rows.margins],
    }


def _agreement(found: Clustering, shown: list[int]) -> list[dict[str, Any]]:
    """Of every task the share of rows in the same cluster if it is clustered alone, and by k-means."""
    rows, model = found.rows("agreement"), found.model
    rng, result = np.random.default_rng(0), []
    for task in shown:
        own = np.flatnonzero(rows.task_numbers == task)
        if len(own) > _K_MEANS_ROWS:
            own = np.sort(rng.choice(own, _K_MEANS_ROWS, replace=False))
        labels = model.labels_[own]
        with warnings.catch_warnings(), threadpool_limits(1):  # so few rows are slower on several cores
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            k_means = KMeans(len(np.unique(labels)), n_init=10, random_state=0).fit_predict(rows.X[own])
        alone, kmeans = (match_clusters(labels, other)[1] for other in (model.single_task_labels_[own], k_means))
        shares = {"alone": percent(alone), "kmeans": percent(kmeans), "alone_share": alone, "kmeans_share": kmeans}
        result.append({"task": task} | shares)
    return result


# -- how it was made ---------------------------------------------------------------------------------------------------


def _method(model: Any) -> str:
    name = type(model).__name__
    return f"{name} ({_METHODS[name]}), {model.selection_.kernel} kernel"


def _choices(model: Any) -> list[dict[str, str]]:
    """What was chosen and why."""
    chosen = model.selection_
    number, coupling, sizes = chosen.get("n_clusters"), chosen.get("coupling"), chosen.get("sizes")
    rows = [("Method", _method(model), "given or default")]
    counted = (number["chosen"], number["reason"]) if number is not None else (model.n_clusters_, "given")
    rows.append(("Number of clusters", *counted))
    if coupling is not None:
        rows.append(("Coupling of the tasks", coupling["decision"], coupling["reason"]))
    left_open = isinstance(sizes, SizesChoice)
    rows.append(("Cluster sizes", *((sizes["chosen"], sizes["reason"]) if left_open else (sizes, "given"))))
    if "frame" in chosen:
        rows.append(("Origin", chosen["center"], chosen["frame"]))
    rows.append(("Kernel", chosen["kernel"], chosen.get("reason", "given")))
    lambdas = f"λ₁ = {_setting(chosen['lambda1'])}, λ₂ = {_setting(chosen['lambda2'])}"
    constant = model.lambda2 == model.lambda1 == "auto"
    rows.append(("Smoothness", lambdas, "a constant for this criterion and kernel" if constant else "given"))
    return [{"what": what, "chosen": str(value), "why": why} for what, value, why in rows]


def _setting(value: Any) -> str:
    """A parameter of the model as people write it."""
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_setting(entry)}" for key, entry in list(value.items())[:10])
    return f"{value:g}" if isinstance(value, float) else str(value)


def _versions() -> dict[str, str]:
    """What the result may depend on."""
    import numba
    import scipy
    import sklearn

    import mtclust

    modules = {"mtclust": mtclust, "numpy": np, "scipy": scipy, "scikit-learn": sklearn, "numba": numba}
    return {"python": platform.python_version()} | {name: module.__version__ for name, module in modules.items()}
