"""The report, one HTML page about a clustering: what it says in plain dictionaries, rendered by the template."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from importlib import metadata, resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mtclust
from mtclust.app import words
from mtclust.app.clustering import Clustering
from mtclust.app.findings import Trait
from mtclust.app.tables.columns import plane
from mtclust.app.tables.values import column_strings
from mtclust.util.messages import distinct_names, spelled_out
from mtclust.util.system import require

#: points of one task, of more than four tasks so many of four tasks together; coordinates are whole numbers up to SIDE
MOST_PER_TASK, SIDE = 1500, 1000


def report_content(found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> dict[str, Any]:
    """All that the template shows: numbers, which it rounds, and plain text, which it escapes."""
    model, rows, facts, findings = found.model, found.rows("the report"), found.facts, found.findings
    if row_names is None:
        index = range(len(rows.margins)) if rows.table.index is None else rows.table.index
        row_names = [f"row {name}" for name in index]
    names = [spelled_out(str(name)) for name in model.tasks_]
    sizes = np.asarray(model.cluster_sizes_)
    order = words.natural_order(names)
    largest = np.argsort(-sizes.sum(axis=1), kind="stable")[: words.TASKS_SHOWN].tolist()
    shown = sorted(largest, key=order.index)
    careful = words.cautions(model, found.warned, found.names, facts)
    read = f"Read the {'cautions' if len(careful) > 1 else 'caution'} below before you rely on them."
    clusters = range(found.n_clusters)
    kind, alike = words.likeness_of_tasks(model, facts)
    return {
        "found": found,
        "facts": facts,
        "source": spelled_out(", ".join(rows.table.files)),
        "method": type(model).__name__,
        "kernel": words.kernel_in_words(model.selection_.kernel),
        "tasks": names,
        "short_tasks": distinct_names(names, 18),
        "cluster_names": [spelled_out(found.names.get(c, f"Cluster {c}")) for c in clusters],
        "order": order,
        "shown": shown,
        "first": found.ids,
        "headline": found.headline,
        "verdict": " ".join(filter(None, [words.columns_in_words(found), read * bool(careful)])),
        "in_words": found.clusters_table["characterised_by"].tolist(),
        "compared": words.compared_in_words(found),
        "cautions": careful,
        "sizes": sizes.tolist(),
        "all_sizes": sizes.sum(axis=0).tolist(),
        "typical": [[str(row_names[row]) for row in own] for own in found.exemplars()],
        "differs": [
            [f"{names[t]} (agreement {words.agreement_in_words(findings, t, c)})" for t in findings.differing(c)]
            for c in clusters
        ],
        "traits": [_traits(found, c) for c in clusters],
        "relationship": None if alike is None else {"kind": kind, "values": alike},
        "points": _points(found, shown, row_names),
        "least_sure": _least_sure(found, row_names),
        "choices": words.choices(model),
        "shared_features": _shared_features(found),
        "settings": {
            name: f"{value:g}" if isinstance(value, float) else str(value)
            for name, value in sorted(model.get_params(deep=False).items())
        },
        "command": command,
        "versions": {"python": platform.python_version(), "mtclust": mtclust.__version__}
        | {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")},
        "made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
    }


def _traits(found: Clustering, cluster: int) -> list[Trait]:
    """What holds in all tasks is said of one cluster; where a cluster differs between tasks, what holds in some."""
    if not found.findings.differing(cluster):
        return found.findings.traits[cluster]
    return [trait for own in found.findings.by_task(cluster, most=4).values() for trait in own[:3]]


def _shared_features(found: Clustering) -> list[tuple[str, float]]:
    """The largest entries of the diagonal of D, where it is in the coordinates of the features."""
    covariance, features = getattr(found.model, "feature_covariance_", None), found.encoder.features
    if covariance is None or len(covariance) != len(features) or not hasattr(found.model, "coef_"):
        return []
    shares = np.diag(covariance) / np.trace(covariance)
    return [(features[f].name, float(shares[f])) for f in np.argsort(-shares, kind="stable")[:10] if shares[f] > 0]


def positions(X: Any, task_numbers: NDArray[np.int64], tasks: list[int]) -> tuple[dict[int, Any], dict[int, Any]]:
    """Of every task the rows that are drawn, at random where they are many, and their positions from 0 to ``SIDE``.

    The axes are two principal components of these rows, centred within tasks.
    """
    rng, limit, drawn = np.random.default_rng(0), 4 * MOST_PER_TASK // max(len(tasks), 4), {}
    for task in tasks:
        rows = np.flatnonzero(task_numbers == task)
        drawn[task] = rows if len(rows) <= limit else np.sort(rng.choice(rows, limit, replace=False))
    every = np.concatenate(list(drawn.values()))
    places = plane(X, task_numbers, every)
    low, high = places[every].min(axis=0), places[every].max(axis=0)
    reach = float((high - low).max()) / 2 or 1.0
    places = np.rint(((places - (low + high) / 2) / reach + 1) / 2 * SIDE).astype(int)
    return drawn, {task: places[rows] for task, rows in drawn.items()}


def _points(found: Clustering, tasks: list[int], row_names: Sequence[str]) -> list[dict[str, Any]]:
    """What the page's script draws: whole numbers and names."""
    model, rows = found.model, found.rows("points")
    drawn, places = positions(rows.X, rows.task_numbers, tasks)
    return [
        {
            "task": task,
            "place": places[task].tolist(),
            "cluster": model.labels_[drawn[task]].tolist(),
            "alone": model.single_task_labels_[drawn[task]].tolist(),
            "margin": [round(float(v), 2) if np.isfinite(v) else None for v in rows.margins[drawn[task]]],
            "name": [str(row_names[row]) for row in drawn[task]],
        }
        for task in tasks
    ]


def _least_sure(found: Clustering, row_names: Sequence[str]) -> dict[str, Any]:
    model, rows = found.model, found.rows("least sure")
    if not np.isfinite(rows.margins).any():
        return {"columns": [], "rows": []}
    chosen, used = rows.least_sure(12), [column.name for column in found.encoder.columns][:8]  # so many have room
    listed = {
        "name": [str(row_names[row]) for row in chosen],
        "task": rows.task_numbers[chosen].tolist(),
        "cluster": model.labels_[chosen].tolist(),
        "next": rows.following[chosen].tolist(),
        "margin": rows.margins[chosen],
        "values": zip(*(column_strings(rows.table.frame[name].iloc[chosen], digits=5) for name in used)),
    }
    return {"columns": used, "rows": [dict(zip(listed, row)) for row in zip(*listed.values())]}


def render_report(found: Clustering, row_names: Sequence[str] | None = None, command: str = "") -> str:
    """The report as one HTML text.

    Everything that comes from the data is escaped, by the template or, for the points, as JSON that cannot end its
    element; and the page's content security policy lets no other script than the report's own run.
    """
    content, script = report_content(found, row_names, command), _asset("report.js")
    markup = require("markupsafe", "report").Markup
    return _template().render(
        content,
        max_tasks=words.TASKS_SHOWN,
        style=markup(_asset("report.css")),
        script=markup(script),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
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
    filters = {"breakable": _breakable, "percent": words.percent, "two": words.two, "value": words.value_in_words}
    environment.filters |= filters
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}
    return environment.get_template("report.html.jinja")


def _breakable(text: str) -> Any:
    """Escaped text that a browser may break after an underscore, but not before a per cent sign."""
    safe = require("markupsafe", "report")
    return safe.escape(text.replace(" %", "\u00a0%")).replace("_", safe.Markup("_<wbr>"))


@cache
def _asset(name: str) -> str:
    return (resources.files("mtclust.app.report") / "templates" / name).read_text(encoding="utf-8").strip() + "\n"
