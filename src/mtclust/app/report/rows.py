"""Single rows in the report: typical ones, the least sure, and all labels to be downloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.quality import Clarity, exemplars
from mtclust.app.tables.parsing import column_strings

if TYPE_CHECKING:
    from mtclust.app.report.content import ReportInput

#: rows that are listed as least sure
LEAST_SURE = 12
#: columns of the table that are shown of them
_COLUMNS = 8
#: characters of a cell
_CELL = 40
#: labels of more rows are not put into the page
MOST_LABELS = 20_000


def typical_rows(given: ReportInput, clear: Clarity, codes: Any) -> list[list[str]]:
    """Names of a few typical rows of every cluster."""
    labels = given.model.labels_
    return [
        [str(given.row_names[row]) for row in exemplars(clear, codes, labels, c)]
        for c in range(given.model.n_clusters_)
    ]


def least_sure(given: ReportInput, codes: Any) -> dict[str, Any]:
    """The rows with the smallest margins, their next cluster, and their values."""
    model = given.model
    margins = np.asarray(given.margins)
    if model.n_clusters_ < 2 or not np.isfinite(margins).any():
        return {"columns": [], "rows": []}
    chosen = np.argsort(margins, kind="stable")[:LEAST_SURE]
    tasks = model.tasks_[codes[chosen]]
    scores = np.array(model.decision_function(given.X[chosen], tasks=tasks))
    scores[np.arange(len(chosen)), model.labels_[chosen]] = -np.inf
    columns = [] if given.values is None else list(given.values.columns)[:_COLUMNS]
    cells = {name: _cells(given.values[name].iloc[chosen]) for name in columns}
    rows = [
        {
            "name": str(given.row_names[row]),
            "task": int(codes[row]),
            "cluster": int(model.labels_[row]),
            "next": int(scores[k].argmax()),
            "margin": f"{margins[row]:.2f}".replace("-", "−"),
            "values": [_short(cells[name][k]) for name in columns],
        }
        for k, row in enumerate(chosen)
    ]
    return {"columns": columns, "rows": rows}


def all_labels(given: ReportInput, codes: Any) -> dict[str, Any] | None:
    """Task, cluster and margin of every row, for the page's script; None where they are too many."""
    if len(given.model.labels_) > MOST_LABELS:
        return None
    return {
        "name": [str(name) for name in given.row_names],
        "task": codes.tolist(),
        "cluster": given.model.labels_.tolist(),
        "margin": [round(float(value), 4) if np.isfinite(value) else None for value in given.margins],
    }


def _cells(column: Any) -> Any:
    """Strings; numbers with the digits that matter."""
    if column.dtype.kind == "f":
        return [format(value, ".5g") if value == value else "" for value in column]
    if column.dtype.kind == "M":
        return [str(value)[:10] if value == value else "" for value in column]
    return column_strings(column)


def _short(cell: str) -> str:
    return cell if len(cell) <= _CELL else cell[: _CELL - 1] + "…"
