"""Tables of what was found: one row per cluster, one row per task, and the rows that are least sure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.comparison import shares_were_given, tasks_in_words
from mtclust.app.quality import clarity, exemplars
from mtclust.app.relationship import task_relationship
from mtclust.app.shown import natural_order
from mtclust.app.words import all_traits, cluster_in_words, trait_in_words
from mtclust.util.extras import require

if TYPE_CHECKING:
    from mtclust.app.clustering import Clustering, Rows


def clusters_table(found: Clustering) -> Any:
    """Size, shares, what characterises it, quality and typical rows of every cluster."""
    pandas = require("pandas", "cli")
    model, rows = found.model, _rows(found)
    sizes = np.asarray(model.cluster_sizes_)
    C = int(model.n_clusters_)
    clear = clarity(rows.X, rows.task_numbers, model.labels_, C)
    traits = all_traits(rows.X, rows.task_numbers, model, found.encoder.features)
    index = found.labels.index if not found._polars else np.arange(len(model.labels_))
    columns: dict[str, Any] = {"rows": sizes.sum(axis=0), "share": sizes.sum(axis=0) / sizes.sum()}
    for task in natural_order(model.tasks_):
        columns[f"share in {model.tasks_[task]}"] = sizes[task] / sizes[task].sum()
    columns["characterised_by"] = [cluster_in_words(traits[c]) for c in range(C)]
    columns["silhouette"] = [_mean(clear.silhouette[model.labels_ == c]) for c in range(C)]
    columns["separation"] = model.cluster_scores_
    sure = own_probabilities(model)
    if sure is not None:
        columns["probability"] = [_mean(sure[model.labels_ == c]) for c in range(C)]
    stability = getattr(model, "stability_", None)
    if stability is not None:
        columns["stability"] = stability.clusters
    chosen = [exemplars(clear, rows.task_numbers, model.labels_, c) for c in range(C)]
    columns["exemplars"] = [[index[row] for row in own] for own in chosen]
    return pandas.DataFrame(columns, index=pandas.Index(found.named(np.arange(C)), name="cluster"))


def tasks_table(found: Clustering) -> Any:
    """Rows, shares of the clusters, the closest task and what is particular to every task."""
    pandas = require("pandas", "cli")
    model, rows = found.model, _rows(found)
    sizes = np.asarray(model.cluster_sizes_)
    m = len(model.tasks_)
    order = natural_order(model.tasks_)
    columns: dict[str, Any] = {"rows": sizes.sum(axis=1)}
    for c, name in enumerate(found.named(np.arange(found.n_clusters))):
        columns[f"share of {name}"] = sizes[:, c] / sizes.sum(axis=1)
    relationship = task_relationship(model, all_tasks=True)
    if relationship is not None:
        place = np.argsort(relationship.shown)
        matrix = relationship.matrix[np.ix_(place, place)].astype(float)
        np.fill_diagonal(matrix, -np.inf)
        columns["closest"] = [str(model.tasks_[k]) for k in matrix.argmax(axis=1)]
        columns[relationship.quantity] = matrix.max(axis=1)
    given = shares_were_given(model)
    words = [""] * m if given else tasks_in_words(sizes, lambda t: str(model.tasks_[t]), found.name)
    traits = all_traits(rows.X, rows.task_numbers, model, found.encoder.features)
    for cluster, own in enumerate(traits):
        for trait, feature in own:
            if trait.task is not None:
                more = f"{found.name(cluster)}: {trait_in_words(trait, feature)}"
                words[trait.task] = "; ".join(part for part in (words[trait.task], more) if part)
    columns["particular"] = words
    frame = pandas.DataFrame(columns, index=pandas.Index([str(name) for name in model.tasks_], name="task"))
    return frame.iloc[order]


def least_sure_rows(found: Clustering, n: int) -> Any:
    """The rows with the smallest margins: task, cluster, the next cluster, margin and the columns used."""
    model, rows = found.model, _rows(found)
    pandas = require("pandas", "cli")
    chosen = np.argsort(rows.margins, kind="stable")[:n]
    tasks = model.tasks_[rows.task_numbers[chosen]]
    scores = model.decision_function(rows.X[chosen], tasks=tasks).copy()
    scores[np.arange(len(chosen)), model.labels_[chosen]] = -np.inf
    columns = {
        "task": [str(task) for task in tasks],
        "cluster": found.named(model.labels_[chosen]),
        "next": found.named(scores.argmax(axis=1)),
        "margin": rows.margins[chosen],
    }
    columns |= {name: values[chosen] for name, values in row_columns(found).items() if name != "alone"}
    used = dict.fromkeys(column.name for column in found.encoder.columns)
    values = {name: rows.table.frame[name].to_numpy()[chosen] for name in used}
    index = rows.table.index if rows.table.index is not None else np.arange(len(rows.margins))
    return pandas.DataFrame(columns | values, index=index[chosen])


def own_probabilities(model: Any) -> Any:
    """Of every row the probability of the cluster it is in; None where the rows are too many to have been kept."""
    if model.probabilities_ is None:
        return None
    return model.probabilities_[np.arange(len(model.labels_)), model.labels_]


def row_columns(found: Clustering) -> dict[str, Any]:
    """What is known of every row beside its cluster: how sure it is, whether it belongs anywhere, its cluster alone."""
    model = found.model
    columns: dict[str, Any] = {}
    sure, stability = own_probabilities(model), getattr(model, "stability_", None)
    if sure is not None:
        columns["probability"] = sure
    if stability is not None:
        columns["stability"] = stability.rows
    if model.outlier_scores_ is not None:
        columns["outlier"] = model.outlier_scores_
    columns["alone"] = found.named(model.single_task_labels_)
    return columns


def _rows(found: Clustering) -> Rows:
    return found.rows("this table")


def _mean(values: Any) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")
