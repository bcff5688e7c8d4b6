"""What ``mtclust fit`` prints at the end."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from mtclust._names import columns, padded, shown_name
from mtclust.app.report.cautions import cautions
from mtclust.app.report.names import natural_order

#: characters of a line
_WIDTH = 80
#: tasks listed one by one
_TASKS = 20


def print_summary(out: Path, table: Any, encoder: Any, fitted: Any) -> None:
    """Rows, tasks, clusters, what was chosen and why, what to be careful about, and where the results are."""
    model = fitted.model
    m = len(model.tasks_)
    of = f" ({table.task_column})" if table.task_column else ""
    print(
        f"{len(table)} rows in {m} task{'s' if m != 1 else ''}{of}, by {encoder.describe()}: "
        f"{model.n_clusters_} clusters with {type(model).__name__}, {model.kernel} kernel\n"
    )
    _print_sizes(model)
    print()
    if fitted.choice is not None:
        _print_item("Number of clusters", f"{fitted.choice.reason}.")
    for title, reason in _reasons(model):
        _print_item(title, reason)
    for note in fitted.notes:
        _print_item("Note", note)
    for caution in cautions(model, fitted.warned):
        _print_item("Careful", caution.text)
    print(f"\nWritten to {out}: labels.csv, model.mtclust, report.html")


def _print_sizes(model: Any) -> None:
    order = natural_order(model.tasks_)
    names = [shown_name(model.tasks_[i]) for i in order[:_TASKS]]
    width = max(4, *(columns(name) for name in names))
    header = "".join(f"{c:>7}" for c in range(model.n_clusters_))
    print(f"{'task':<{width}}{'rows':>8}   cluster{header}")
    for i, name in zip(order, names):
        sizes = model.cluster_sizes_[i]
        print(f"{padded(name, width)}{sizes.sum():>8}          " + "".join(f"{size:>7}" for size in sizes))
    if len(model.tasks_) > _TASKS:
        print(f"… and {len(model.tasks_) - _TASKS} more tasks, all in the report")


def _reasons(model: Any) -> list[tuple[str, str]]:
    chosen = model.selection_
    reasons = []
    coupling = chosen.get("coupling")
    if coupling is not None and len(model.tasks_) > 1:
        reasons.append(("Coupling", f"{coupling['decision']}: {coupling['reason']}."))
    sizes = chosen.get("sizes")
    if isinstance(sizes, dict):
        reasons.append(("Cluster sizes", f"{sizes['chosen']}: {sizes['reason']}."))
    return reasons


def _print_item(title: str, text: str) -> None:
    text = "".join(character if character.isprintable() else " " for character in text)
    print(textwrap.fill(f"{title}: {text}", _WIDTH, subsequent_indent="  "))
