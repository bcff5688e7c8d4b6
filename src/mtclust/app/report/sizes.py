"""Cluster sizes by task, and of many tasks by group of tasks, each of which can be unfolded."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtclust.app.shown import percent

#: more tasks are folded
MANY_TASKS = 12
#: more groups of tasks say less than all tasks together
MOST_GROUPS = 8


def size_blocks(model: Any, order: list[int]) -> list[dict[str, Any]]:
    """Rows of the table: one block without a title, or of many tasks a block per group with its sums."""
    sizes = np.asarray(model.cluster_sizes_)
    if len(order) <= MANY_TASKS:
        return [{"title": "", "rows": [_row(task, sizes[task]) for task in order]}]
    place = {name: task for task, name in enumerate(model.tasks_.tolist())}
    groups = [sorted((place[name] for name in group), key=order.index) for group in model.task_groups_]
    grouped = 1 < len(groups) <= MOST_GROUPS and sum(map(len, groups)) == len(order)
    blocks = []
    for number, tasks in enumerate(sorted(groups, key=len, reverse=True) if grouped else [order]):
        count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''}"
        title = f"Group {number + 1}: {count}" if grouped else f"All {count}"
        rows = [_row(task, sizes[task]) for task in tasks]
        blocks.append({"title": title, "sum": _row(None, sizes[tasks].sum(axis=0)), "rows": rows})
    return blocks


def _row(task: int | None, sizes: Any) -> dict[str, Any]:
    total = int(sizes.sum())
    parts = [
        {"cluster": c, "rows": int(n), "share": n / total, "percent": percent(n / total)} for c, n in enumerate(sizes)
    ]
    return {"task": task, "rows": total, "parts": parts}
