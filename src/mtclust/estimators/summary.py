"""``summary()``: what was clustered, what was chosen and why, what was found and what to be careful about."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from mtclust.choose.record import Selection, SizesChoice
from mtclust.estimators.facts import Caution, cautions, facts_of, likeness_of_tasks
from mtclust.util.messages import columns, padded, shown_name

#: columns of the terminal that are used
_WIDTH = 100
#: tasks and clusters that get a line or column of their own
TASKS_SHOWN, CLUSTERS_SHOWN = 30, 12
#: task groups that are listed, and tasks of a group
_GROUPS_SHOWN, _GROUP_TASKS_SHOWN = 10, 12
#: no colours of text or page, so that it can be read on light and dark pages alike
_STYLE = """
.mtclust-summary {font-family: system-ui, sans-serif; font-size: 13px; margin: .6em 0; max-width: 60em;}
.mtclust-summary .scroll {overflow-x: auto;}
.mtclust-summary table {border-collapse: collapse; margin: .4em 0; font-size: inherit;}
.mtclust-summary td, .mtclust-summary th {padding: .15em .6em; text-align: left; vertical-align: top; border: none;
  background: none; color: inherit;}
.mtclust-summary thead th {border-bottom: 1px solid rgba(128, 128, 128, .5);}
.mtclust-summary th {white-space: nowrap;}
.mtclust-summary .sizes td, .mtclust-summary .sizes thead th {text-align: right; white-space: nowrap;}
.mtclust-summary .sizes .name {text-align: left;}
.mtclust-summary .careful {border-left: 3px solid #D55E00; padding: .1em .6em; margin: .4em 0;}
"""


@dataclass(frozen=True)
class Summary:
    """A fitted model in words; ``print`` it, or show it in a notebook.

    Attributes
    ----------
    title : str
        What was clustered.
    header : list of str
        Columns of the table of tasks.
    table : list of list of str
        One row per task: name, rows, cluster sizes, the task closest to it.
    above, below : list of (str, list of (str, str))
        Sections before and after the table: what they are about, and lines with their names.
    cautions : list of Caution
        What to be careful about.
    first : list of str
        Sentences that have to be read before anything else.
    left_out : int
        Tasks that the table has no room for.
    """

    title: str
    header: list[str]
    table: list[list[str]]
    above: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    below: list[tuple[str, list[tuple[str, str]]]] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    left_out: int = 0

    def __str__(self) -> str:
        careful = [_wrapped(str(caution), "  ! ", "    ") for caution in self.cautions]
        blocks = [
            _wrapped(self.title, ""),
            "\n".join(_wrapped(sentence, "") for sentence in self.first),
            *(_pairs(title, pairs) for title, pairs in self.above if pairs),
            _aligned(self.header, self.table, self.left_out),
            *(_pairs(title, pairs) for title, pairs in self.below if pairs),
            "\n".join(["Be careful", *careful]) if careful else "",
        ]
        return "\n\n".join(block for block in blocks if block)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The summary as a piece of a page; every text in it is escaped."""
        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for _, pairs in [*self.above, *self.below]
            for name, text in pairs
        )
        left = {0, len(self.header) - 1} if self.header[-1].startswith("closest") else {0}
        head = "".join(_cell("th", text, k in left) for k, text in enumerate(["", *self.header[1:]]))
        rows = "".join(
            "<tr>" + "".join(_cell("td", text, k in left) for k, text in enumerate(row)) + "</tr>" for row in self.table
        )
        more = f"<p>and {self.left_out} more tasks</p>" if self.left_out else ""
        careful = "".join(f'<p class="careful">{escape(text)}</p>' for text in [*self.first, *map(str, self.cautions)])
        return (
            f"<style>{_STYLE}</style>"
            f'<div class="mtclust-summary"><p><b>{escape(self.title)}</b></p>{careful}<table>{facts}</table>'
            f'<details open><summary>Rows per task and cluster</summary><div class="scroll"><table class="sizes">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{more}</details></div>"
        )


def summarise(model: Any) -> Summary:
    """Collect what :class:`Summary` says about a fitted estimator."""
    m, C, n = len(model.tasks_), model.n_clusters_, len(model.labels_)
    title = (
        f"{type(model).__name__}: {_count(n, 'row')} of {_count(m, 'task')} in {_count(C, 'cluster')}, {_kernel(model)}"
    )
    header, table = sizes_table(model)
    above = [("Chosen", _choices(model)), ("Found", _findings(model))]
    return Summary(title, header, table[:TASKS_SHOWN], above, [], cautions(model), left_out=max(m - TASKS_SHOWN, 0))


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
        ("separation", f"{model.loo_score_:.3f} (1: clusters do not touch, 0: as in data without clusters)"),
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


def sizes_table(model: Any) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table of tasks."""
    sizes = model.cluster_sizes_
    C = sizes.shape[1]
    closest_name, closest = _closest(model)
    header = ["task", "rows", *(str(c) for c in range(C))]
    shown = [[str(size) for size in row] for row in sizes]
    if C > CLUSTERS_SHOWN:
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


def _cell(tag: str, text: str, left: bool) -> str:
    name = ' class="name"' if left else ""
    return f"<{tag}{name}>{escape(text)}</{tag}>"


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
