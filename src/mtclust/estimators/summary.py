"""``summary()``: what was clustered, what was chosen and why, what was found and what to be careful about."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtclust.choose.record import Selection, SizesChoice
from mtclust.estimators.concerns import concerns
from mtclust.estimators.facts import facts_of, likeness_of_tasks
from mtclust.util.names import columns, padded, shown_name

#: columns of the terminal that are used
_WIDTH = 100
#: tasks and clusters that get a line or column of their own
_TASKS_SHOWN = 30
_CLUSTERS_SHOWN = 12
#: task groups that are listed, and tasks of a group
_GROUPS_SHOWN = 10
_GROUP_TASKS_SHOWN = 12


@dataclass(frozen=True)
class Summary:
    """A fitted model in words; ``print`` it, or show it in a notebook.

    Attributes
    ----------
    title : str
        What was clustered.
    choices : list of (str, str)
        What was chosen, by "auto" or the user, and why.
    findings : list of (str, str)
        How good it is, and which tasks belong together.
    header : list of str
        Columns of the table of tasks.
    table : list of list of str
        One row per task: name, rows, cluster sizes, the task closest to it.
    left_out : int
        Tasks that the table has no room for.
    concerns : list of str
        What to be careful about.
    """

    title: str
    choices: list[tuple[str, str]]
    findings: list[tuple[str, str]]
    header: list[str]
    table: list[list[str]]
    left_out: int
    concerns: list[str]

    def __str__(self) -> str:
        blocks = [_wrapped(self.title, ""), _pairs("Chosen", self.choices), _pairs("Found", self.findings)]
        blocks.append(_aligned(self.header, self.table, self.left_out))
        if self.concerns:
            blocks.append("Be careful\n" + "\n".join(_wrapped(sentence, "  ! ", "    ") for sentence in self.concerns))
        return "\n\n".join(blocks)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from mtclust.estimators.display import summary_html

        return summary_html(self)


def summarise(model: Any) -> Summary:
    """Collect what :class:`Summary` says about a fitted estimator."""
    m, C, n = len(model.tasks_), model.n_clusters_, len(model.labels_)
    title = (
        f"{type(model).__name__}: {_count(n, 'row')} of {_count(m, 'task')} in {_count(C, 'cluster')}, {_kernel(model)}"
    )
    header, table = _table(model)
    return Summary(
        title, _choices(model), _findings(model), header, table[:_TASKS_SHOWN], max(m - _TASKS_SHOWN, 0),
        [str(concern) for concern in concerns(model)],
    )  # fmt: skip


def _kernel(model: Any) -> str:
    kernel = model.kernel if isinstance(model.kernel, str) else getattr(model.kernel, "__name__", "callable")
    names = {"rbf": "RBF kernel", "linear": "linear kernel", "precomputed": "precomputed kernel"}
    columns = "" if kernel == "precomputed" else f" on {_count(_n_features(model), 'column')}"
    return names.get(kernel, f"kernel {shown_name(kernel)}") + columns


def _n_features(model: Any) -> int:
    return int(model.n_features_in_) - (model.task_column is not None)


def _choices(model: Any) -> list[tuple[str, str]]:
    selection = model.selection_
    lines = []
    chosen = selection.get("n_clusters")
    if chosen is not None:
        lines.append(("clusters", f"{chosen['chosen']}: {chosen['reason']}"))
        if "answer" in chosen:
            lines.append(("structure", chosen["answer"]))
    settings = [f"kernel {selection['kernel']}", f"criterion {selection['criterion']}"] if "kernel" in selection else []
    settings += _lambdas(selection)
    if settings:
        lines.append(("settings", f"{', '.join(settings)}: {selection.get('reason', 'set by the user')}"))
    if "frame" in selection:
        lines.append(("frame", selection["frame"]))
    sizes = selection.get("sizes")
    if isinstance(sizes, SizesChoice):
        lines.append(("sizes", f"{sizes['chosen']}: {sizes['reason']}"))
    elif model.n_clusters_ > 1:
        given = repr(model.sizes) if isinstance(model.sizes, str | float | int | tuple) else "a table"
        lines.append(("sizes", f"{given}: set by the user" if given != "'auto'" else "balanced within a tenth"))
    coupling = selection.get("coupling")
    if coupling is not None:
        lines.append(("coupling", f"{coupling['decision']}: {coupling['reason']}"))
    return lines


def _lambdas(selection: Selection) -> list[str]:
    first, second = selection.get("lambda1"), selection.get("lambda2")
    if first is None or second is None:
        return []
    if isinstance(first, dict):
        return [f"λ1 by task ({min(first.values()):.3g} to {max(first.values()):.3g})", f"λ2 = {second:.3g}"]
    one, two = f"{first:.3g}", f"{second:.3g}"
    return [f"λ1 = λ2 = {one}"] if one == two else [f"λ1 = {one}", f"λ2 = {two}"]


def _findings(model: Any) -> list[tuple[str, str]]:
    facts = facts_of(model)
    lines = [
        ("separation", f"{model.loo_score_:.3f} (1: clear-cut clusters, 0: no better than clusters of noise)"),
        *([("stability", facts.stable)] if facts.stable else []),
        (
            "objective",
            f"{model.objective_:.6g}" + (f" after {_count(model.n_iter_, 'round')}" if model.n_iter_ else ""),
        ),
    ]
    if len(model.tasks_) == 1:
        return lines
    if _coupled(model):
        moved = int(np.count_nonzero(model.labels_ != model.single_task_labels_))
        lines.append(("effect", f"coupling puts {moved} of {_count(len(model.labels_), 'row')} in another cluster"))
    if model.task_groups_:
        lines.append(("task groups", f"by the clusters of each task alone: {_groups(model.task_groups_)}"))
    return lines


def _coupled(model: Any) -> bool:
    """Whether the tasks were clustered together in the end."""
    if hasattr(model, "task_correlation_"):
        return bool(model.selection_["coupling"]["decision"] != "none")
    return hasattr(model, "feature_covariance_")


def _groups(groups: list[list[Any]]) -> str:
    """The groups with several tasks, and how many tasks stand alone."""
    together = [group for group in groups if len(group) > 1]
    alone = len(groups) - len(together)
    words = []
    for group in together[:_GROUPS_SHOWN]:
        more = len(group) - _GROUP_TASKS_SHOWN
        names = ", ".join(shown_name(name) for name in group[:_GROUP_TASKS_SHOWN])
        words.append("{" + names + (f" and {more} more" if more > 0 else "") + "}")
    if len(together) > _GROUPS_SHOWN:
        words.append(f"{len(together) - _GROUPS_SHOWN} more groups")
    if alone:
        words.append(f"{_count(alone, 'task')} without a group" if together else "none")
    return ", ".join(words)


def _table(model: Any) -> tuple[list[str], list[list[str]]]:
    sizes = model.cluster_sizes_
    C = sizes.shape[1]
    closest_name, closest = _closest(model)
    header = ["task", "rows", *(str(c) for c in range(C))]
    shown = [[str(size) for size in row] for row in sizes]
    if C > _CLUSTERS_SHOWN:
        header = ["task", "rows", "smallest", "median", "largest"]
        shown = [[f"{row.min()}", f"{np.median(row):g}", f"{row.max()}"] for row in sizes]
    names = [shown_name(name) for name in model.tasks_.tolist()]
    table = [[name, str(int(row.sum())), *texts] for name, row, texts in zip(names, sizes, shown)]
    if closest:
        header.append(closest_name)
        table = [[*row, text] for row, text in zip(table, closest)]
    return header, table


def _closest(model: Any) -> tuple[str, list[str]]:
    """The task closest to each, by whatever says how alike tasks are."""
    kind, matrix = likeness_of_tasks(model)
    if len(model.tasks_) == 1 or matrix is None:
        return "", []
    away = np.where(np.eye(len(matrix), dtype=bool), -np.inf, np.abs(matrix))
    names = model.tasks_.tolist()
    texts = [f"{shown_name(names[k])} ({round(matrix[i, k], 2) + 0.0:.2f})" for i, k in enumerate(away.argmax(axis=1))]
    return f"closest task ({kind})", texts


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _wrapped(text: str, first: str, later: str | None = None) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=first, subsequent_indent=first if later is None else later, break_on_hyphens=False
    )


def _pairs(title: str, pairs: list[tuple[str, str]]) -> str:
    width = max((len(name) for name, _ in pairs), default=0) + 2
    lines = [_wrapped(text, f"  {name:<{width}}", " " * (width + 2)) for name, text in pairs]
    return "\n".join([title, *lines])


def _aligned(header: list[str], table: list[list[str]], left_out: int) -> str:
    """Names to the left, numbers to the right."""
    widths = [max(columns(row[k]) for row in [header, *table]) for k in range(len(header))]
    last = len(header) - 1 if header[-1].startswith("closest") else len(header)
    lines = []
    for row in [header, *table]:
        cells = [
            padded(cell, width) if k in (0, last) else " " * (width - columns(cell)) + cell
            for k, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append(("  " + "  ".join(cells)).rstrip())
    if left_out:
        lines.append(f"  and {_count(left_out, 'more task')}")
    several = "Rows per task and cluster" if header[2] == "0" else "Rows per task, and sizes of its clusters"
    return "\n".join([several, *lines])
