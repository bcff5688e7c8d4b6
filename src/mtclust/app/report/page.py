"""The report, one HTML page about a clustering: what it says in plain dictionaries, rendered by the template."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.stats import norm

from mtclust.app import words
from mtclust.app.clustering import Clustering
from mtclust.app.findings import Trait, wilson
from mtclust.app.tables.columns import leading_axes
from mtclust.app.tables.values import column_strings
from mtclust.estimators.stability import Stability
from mtclust.estimators.summary import Facts, cautions, choices, likeness_of_tasks, shares_were_given
from mtclust.util.messages import distinct_names, spelled_out
from mtclust.util.system import require

Array = NDArray[np.float64]

#: characters of a name in a picture
LABEL = 18
#: effects are drawn from minus to plus this many standard deviations
EFFECT_RANGE = 2.5
#: tasks in pictures, of more the largest; more tasks are folded
TASKS_SHOWN, MANY_TASKS = 40, 12
#: sentences that compare tasks
_COMPARED = 6
#: rows that are listed as least sure, columns of the table that are shown of them, characters of a cell
LEAST_SURE, _COLUMNS, _CELL = 12, 8, 40
#: points of all tasks together and of one task at most, and at least; coordinates are whole numbers up to the last
MOST_POINTS, MOST_PER_TASK, LEAST_PER_TASK, SIDE = 6000, 1500, 60, 1000
#: rows that principal components are computed from
_ROWS = 4000
#: intervals of shares hold with 90 %
_CHANCE = 0.1
#: title and meaning of what says how alike tasks are
_LIKENESS = {
    "correlation": (
        "Correlation between tasks",
        "Learned together with the clusters: near 1 the same features tell the clusters of both tasks apart, near 0 "
        "the two tasks do not influence each other.",
    ),
    "shares": (
        "Similarity of the tasks' shares of clusters",
        "One model serves all tasks here, so that they differ in their shares of the clusters only. The figures say "
        "how alike these shares are: 1 if they are the same, 0 if the two have no cluster in common.",
    ),
    "similarity": (
        "Similarity of the tasks' clusters",
        "No correlation was learned here. The figures say how alike the centres of matched clusters are: 1 if they are "
        "the same, 0 if they are unrelated.",
    ),
}
#: colours of clusters; further clusters begin anew, told apart by the shape of their points
COLOURS = 8
#: and their shapes, as SVG paths around 0: with 8 colours and 5 shapes the first 40 clusters all look different
SHAPES = (
    "M0-4a4 4 0 1 1 0 8a4 4 0 1 1 0-8z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.6L4.4 3.4h-8.8z",
    "M0-4.8L4.8 0L0 4.8L-4.8 0z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
)
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
    sizes = np.asarray(model.cluster_sizes_)
    order = words.natural_order(names)
    largest = np.argsort(-sizes.sum(axis=1), kind="stable")[:TASKS_SHOWN].tolist()
    shown = sorted(largest, key=order.index)
    drawn, places = positions(rows.X, rows.task_numbers, shown)
    careful = cautions(model, found.warned, found.names, facts)
    verdict = [words.columns_in_words(found.without) if facts.standing != "none" else ""]
    if careful:
        verdict.append(f"Read the {'cautions' if len(careful) > 1 else 'caution'} below before you rely on them.")
    return {
        "source": spelled_out(", ".join(rows.table.files)),
        "n_rows": facts.n_rows,
        "n_tasks": facts.n_tasks,
        "n_clusters": found.n_clusters,
        "method": f"{type(model).__name__} ({_METHODS[type(model).__name__]}), {model.selection_.kernel} kernel",
        "tasks": names,
        "short_tasks": distinct_names(names, LABEL),
        "cluster_names": [spelled_out(found.names.get(c, f"Cluster {c}")) for c in range(found.n_clusters)],
        "order": order,
        "columns": found.encoder.describe(),
        "first": found.ids,
        "headline": found.headline,
        "verdict": " ".join(filter(None, verdict)),
        "in_words": [
            {"cluster": c, "share": words.percent(size / facts.n_rows), "words": words.cluster_in_words(found, c)}
            for c, size in enumerate(sizes.sum(axis=0))
        ],
        "compared": words.compared_in_words(found, _COMPARED),
        "figures": _key_figures(facts),
        "cautions": careful,
        "notes": list(found.notes),
        "sizes": [_size_row(task, sizes[task]) for task in order],
        "all_sizes": _size_row(None, sizes.sum(axis=0)),
        "share_intervals": share_intervals(model, order),
        "profiles": _profiles(found, row_names, shown),
        "effect_range": EFFECT_RANGE,
        "relationship": task_relationship(model, shown, facts),
        "views": [{"task": task, "rows": int(sizes[task].sum()), "drawn": len(drawn[task])} for task in shown],
        "points": [_points(found, task, drawn[task], places[task], row_names) for task in shown],
        "least_sure": _least_sure(found, row_names),
        "choices": [{"what": what.capitalize(), "chosen": value, "why": why} for what, value, why in choices(model)],
        "shared_features": _shared_features(found),
        "settings": {name: _setting(value) for name, value in sorted(model.get_params(deep=False).items())},
        "command": command,
        "versions": _versions(),
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "max_tasks": TASKS_SHOWN,
        "many_tasks": MANY_TASKS,
    }


# -- the first screen --------------------------------------------------------------------------------------------------


def _key_figures(facts: Facts) -> list[dict[str, str]]:
    found = []
    if facts.n_clusters > 1:
        label = "separation: 1 if clusters do not touch, 0 as in noise"
        found.append({"value": words.two(facts.separation), "label": label})
    if facts.stability is not None:
        label = "stability: 1 if other samples of the rows give the same clusters, 0 if they agree by chance only"
        found.append({"value": words.two(facts.stability.overall), "label": label})
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
                "separation": words.two(model.cluster_scores_[c]) if found.n_clusters > 1 else "",
                "stability": "" if stability is None else words.two(stability.clusters[c]),
                "typical": [str(row_names[row]) for row in typical[c]],
                "differs": [f"{names[t]} (agreement {words.agreement_in_words(findings, t, c)})" for t in differing],
                "traits": [_trait(trait, names, shown) for trait in traits],
            }
        )
    return profiles


def _trait(trait: Trait, names: list[str], shown: list[int]) -> dict[str, Any]:
    feature, direction = trait.feature, trait.feature.kind == "topic"
    return {
        "name": feature.name,
        "word": feature.kind == "word",
        "scope": trait.scope,
        "effect": trait.effect,
        "effect_text": f"{trait.effect:+.1f}".replace("-", "−"),
        "inside": "" if direction else words.value_in_words(feature, trait.inside),
        "outside": "" if direction else words.value_in_words(feature, trait.outside),
        "task": trait.task,
        "dots": [
            {
                "task": t,
                "at": float(np.clip(trait.effects[t], -EFFECT_RANGE, EFFECT_RANGE)),
                "text": f"{names[t]}: {words.two(trait.effects[t], '+')}",
            }
            for t in shown
            if not np.isnan(trait.effects[t])
        ],
    }


def _size_row(task: int | None, sizes: Any) -> dict[str, Any]:
    total = int(sizes.sum())
    parts = [
        {"cluster": c, "rows": int(n), "share": n / total, "percent": words.percent(n / total)}
        for c, n in enumerate(sizes)
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
            first, last = words.percent(low), words.percent(high)
            between = last if first == last else f"{first.removesuffix(' %')}–{last}"
            places = {"low": low / widest, "at": shares[task, cluster] / widest, "high": high / widest}
            cells.append(
                {"cluster": cluster, "share": words.percent(shares[task, cluster]), "between": between} | places
            )
        rows.append({"task": task, "cells": cells})
    return {"rows": rows, "widest": words.percent(widest)}


# -- tasks -------------------------------------------------------------------------------------------------------------


def task_relationship(model: Any, shown: list[int], facts: Facts | None = None) -> dict[str, Any] | None:
    """The learned correlations of some tasks, or how alike their clusters or shares are; None where that is unknown."""
    kind, matrix = likeness_of_tasks(model, facts)
    if len(model.tasks_) < 2 or matrix is None:
        return None
    known: Stability | None = getattr(model, "stability_", None)
    ranges = None if known is None or kind != "correlation" else known.task_correlation
    title, meaning = _LIKENESS[kind]
    return {
        "title": title,
        "meaning": meaning,
        "shown": shown,
        "cells": [
            [
                {
                    "row": i, "value": float(matrix[i, k]), "text": words.two(matrix[i, k]),
                    "interval": "" if ranges is None or i == k else " to ".join(map(words.two, ranges[i, k])),
                }
                for k in shown
            ]
            for i in shown
        ],
        "intervals": ranges is not None,
    }  # fmt: skip


def _shared_features(found: Clustering) -> list[dict[str, Any]]:
    """The largest entries of the diagonal of D, where it is in the coordinates of the features."""
    covariance, features = getattr(found.model, "feature_covariance_", None), found.encoder.features
    if covariance is None or len(covariance) != len(features) or found.model.kernel != "linear":
        return []
    shares = np.diag(covariance) / np.trace(covariance)
    best = [f for f in np.argsort(-shares, kind="stable")[:10] if shares[f] > 0]
    return [{"name": features[f].name, "share": float(shares[f]), "percent": words.percent(shares[f])} for f in best]


# -- rows --------------------------------------------------------------------------------------------------------------


def positions(X: Any, task_numbers: NDArray[np.int64], tasks: list[int]) -> tuple[dict[int, Any], dict[int, Any]]:
    """Of every task the rows that are drawn, at random where they are many, and their positions from 0 to ``SIDE``.

    The axes are two principal components of the rows of all tasks, centred within tasks, every task with the same say.
    """
    rng = np.random.default_rng(0)

    def some(rows: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))

    limit = int(np.clip(MOST_POINTS // max(len(tasks), 1), LEAST_PER_TASK, MOST_PER_TASK))
    members = {task: np.flatnonzero(task_numbers == task) for task in tasks}
    drawn = {task: some(rows, limit) for task, rows in members.items()}
    parts = [X[some(rows, max(2, _ROWS // max(len(tasks), 1)))] for rows in members.values()]
    stacked: Any = sp.vstack(parts, format="csr").astype(float) if sp.issparse(X) else np.concatenate(parts)
    leading = leading_axes(stacked, np.repeat(np.arange(len(parts)), [part.shape[0] for part in parts]), 2)
    axes = np.zeros((X.shape[1], 2))
    axes[:, : len(leading)] = leading.T
    centres = {task: np.asarray(X[rows].mean(axis=0), dtype=float).ravel() for task, rows in members.items()}
    places = {task: np.asarray(X[drawn[task]] @ axes) - centres[task] @ axes for task in tasks}
    every = np.concatenate(list(places.values()))
    low, high = every.min(axis=0), every.max(axis=0)
    middle, reach = (low + high) / 2, float((high - low).max()) / 2 or 1.0
    return drawn, {task: np.rint(((at - middle) / reach + 1) / 2 * SIDE).astype(int) for task, at in places.items()}


def _points(found: Clustering, task: int, drawn: Any, places: Any, row_names: Sequence[str]) -> dict[str, Any]:
    """What the page's script draws: whole numbers and names."""
    margins = found.rows("points").margins[drawn]
    return {
        "task": task,
        "place": places.tolist(),
        "cluster": found.model.labels_[drawn].tolist(),
        "alone": found.model.single_task_labels_[drawn].tolist(),
        "margin": [round(float(value), 2) if np.isfinite(value) else None for value in margins],
        "name": [str(row_names[row]) for row in drawn],
    }


def _least_sure(found: Clustering, row_names: Sequence[str]) -> dict[str, Any]:
    """The rows with the smallest margins, their next cluster, and their values."""
    model, rows = found.model, found.rows("least sure")
    if model.n_clusters_ < 2 or not np.isfinite(rows.margins).any():
        return {"columns": [], "rows": []}
    chosen = np.argsort(rows.margins, kind="stable")[:LEAST_SURE]
    used = list(dict.fromkeys(column.name for column in found.encoder.columns))[:_COLUMNS]
    cells = {name: _cells(rows.table.frame[name].iloc[chosen]) for name in used}
    listed = [
        {
            "name": str(row_names[row]),
            "task": int(rows.task_numbers[row]),
            "cluster": int(model.labels_[row]),
            "next": int(rows.following[row]),
            "margin": words.two(rows.margins[row]),
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


# -- how it was made ---------------------------------------------------------------------------------------------------


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


# -- the page ----------------------------------------------------------------------------------------------------------


def render_report(found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> str:
    """The report as one HTML text.

    Everything that comes from the data is escaped, by the template or, for the points, as JSON that cannot end its
    element; and the page's content security policy lets no other script than the report's own run.
    """
    template, content = _template(), report_content(found, row_names, command)
    script = _asset("report.js")
    data = {
        "tasks": content["tasks"],
        "clusters": content["cluster_names"],
        "views": content.pop("points"),
        "colours": COLOURS,
        "shapes": SHAPES,
    }
    markup, as_json = require("markupsafe", "report").Markup, require("jinja2", "report").utils.htmlsafe_json_dumps
    return template.render(
        content,
        colours=COLOURS,
        shapes=SHAPES,
        style=markup(_asset("report.css")),
        script=markup(script),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=as_json(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False),
    )


@cache
def _template() -> Any:
    jinja = require("jinja2", "report")
    environment = jinja.Environment(
        loader=jinja.PackageLoader("mtclust.app.report", "templates"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    return environment.get_template("report.html.jinja")


def _breakable(text: str) -> Any:
    """Escaped text that a browser may break after an underscore, but not before a per cent sign."""
    safe = require("markupsafe", "report")
    return safe.escape(text.replace(" %", "\u00a0%")).replace("_", safe.Markup("_<wbr>"))


@cache
def _asset(name: str) -> str:
    return (resources.files("mtclust.app.report") / "templates" / name).read_text(encoding="utf-8").strip() + "\n"
