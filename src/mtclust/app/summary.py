"""What a clustering says of itself: on the terminal, and in a notebook."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.app.cautions import cautions
from mtclust.app.comparison import differences, shares_were_given, task_in_words
from mtclust.app.report.choices import kernel_in_words
from mtclust.app.shown import natural_order, percent
from mtclust.choose.record import SizesChoice
from mtclust.util.names import columns, distinct_names, padded, shown_name

if TYPE_CHECKING:
    from mtclust.app.clustering import Clustering

#: characters of a line
_WIDTH = 80
#: tasks listed one by one, and clusters with a column of their own
_TASKS, _CLUSTERS = 20, 12
#: sentences that compare tasks
_COMPARED = 4
#: characters of a task's name
_NAME = 28


@dataclass(frozen=True)
class ClusteringSummary:
    """A clustering in words; ``print`` it.

    Attributes
    ----------
    title : str
        What was clustered, and how.
    sizes : list of str
        Lines of the table of rows per task and cluster.
    clusters : list of str
        A line per cluster: its size and what characterises it.
    compared : list of str
        How clear the clusters are, and sentences that compare the tasks.
    remarks : list of (str, str)
        What was chosen and why, notes, and what to be careful about: each with the word it begins with.
    """

    title: str
    sizes: list[str]
    clusters: list[str]
    compared: list[str]
    remarks: list[tuple[str, str]]

    def __str__(self) -> str:
        blocks = [_printable(self.title), "\n".join(self.sizes)]
        if self.clusters:
            blocks.append("\n".join(_filled(line, "  ") for line in self.clusters))
        if self.compared:
            blocks.append("\n".join(_filled(f"{sentence}.", "  ") for sentence in self.compared))
        blocks.append("\n".join(_filled(f"{title}: {text}", "  ") for title, text in self.remarks))
        return "\n\n".join(block for block in blocks if block)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def summarise(found: Clustering) -> ClusteringSummary:
    """Collect what :class:`ClusteringSummary` says."""
    model = found.model
    sizes = np.asarray(model.cluster_sizes_)
    n, m = int(sizes.sum()), len(sizes)
    of = f" ({found.encoder.task_column})" if found.encoder.task_column else ""
    title = (
        f"{n:,} rows in {m} task{'s' if m != 1 else ''}{of}, by {found.encoder.describe()}: "
        f"{found.n_clusters} clusters with {type(model).__name__}, {kernel_in_words(model)} kernel"
    )
    facts, compared = found.facts, compared_in_words(found, _COMPARED)
    careful = [caution.text for caution in cautions(model, found.warned, found.names)]
    remarks = [
        *_reasons(model),
        *(("Note", note) for note in found.notes),
        *(("Careful", text) for text in careful if text != facts.separated),
    ]
    other = facts.against[:1].upper() + facts.against[1:]
    said = [sentence.rstrip(".") for sentence in (facts.separated, facts.stable, other) if sentence]
    compared = [*said, *compared]
    return ClusteringSummary(title, _sizes(found), _clusters(found), compared, remarks)


def compared_in_words(found: Clustering, most: int) -> list[str]:
    """The most certain differences between the tasks, a cluster and a task at most twice."""
    model = found.model
    if shares_were_given(model):
        return []
    names = distinct_names([str(name) for name in model.tasks_], _NAME)
    said: list[str] = []
    times: dict[tuple[str, int], int] = {}
    for difference in differences(model.cluster_sizes_):
        places = ("task", difference.task), ("cluster", difference.cluster)
        if len(said) < most and all(times.get(place, 0) < 2 for place in places):
            task = task_in_words(names[difference.task], found.encoder.task_column)
            sentence = difference.in_words(task, found.name(difference.cluster))
            said.append(sentence[0].upper() + sentence[1:])
            times |= {place: times.get(place, 0) + 1 for place in places}
    return said


def _sizes(found: Clustering) -> list[str]:
    model = found.model
    order = natural_order(model.tasks_)
    sizes = np.asarray(model.cluster_sizes_)
    shown = distinct_names([str(name) for name in model.tasks_], _NAME)
    names = [shown[i] for i in order[:_TASKS]]
    width = max(4, *(columns(name) for name in names))
    if found.n_clusters <= _CLUSTERS:
        header = "cluster" + "".join(f"{c:>7}" for c in range(found.n_clusters))
        cells = ["       " + "".join(f"{size:>7}" for size in row) for row in sizes]
    else:
        header = "largest  smallest cluster"
        cells = [f"{row.max():>7}{row.min():>10}" for row in sizes]
    lines = [f"{'task':<{width}}{'rows':>8}   {header}"]
    lines += [f"{padded(name, width)}{sizes[i].sum():>8}   {cells[i]}" for i, name in zip(order, names)]
    if len(order) > _TASKS:
        lines.append(f"… and {len(order) - _TASKS} more tasks, all in the report")
    return lines


def _clusters(found: Clustering) -> list[str]:
    if found._rows is None and "clusters" not in found._kept:
        return []
    from dataclasses import replace

    table = replace(found, _polars=False).clusters
    return [
        f"{shown_name(found.name(c), 40)} ({percent(row['share'])}): {row['characterised_by']}"
        for c, (_, row) in enumerate(table.iterrows())
    ]


def _reasons(model: Any) -> list[tuple[str, str]]:
    chosen = model.selection_
    reasons = []
    number = chosen.get("n_clusters")
    if number is not None:
        reasons.append(("Number of clusters", f"{number['reason']}."))
    coupling = chosen.get("coupling")
    if coupling is not None and len(model.tasks_) > 1:
        reasons.append(("Coupling", f"{coupling['decision']}: {coupling['reason']}."))
    sizes = chosen.get("sizes")
    if isinstance(sizes, SizesChoice):
        reasons.append(("Cluster sizes", f"{sizes['chosen']}: {sizes['reason']}."))
    return reasons


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(_printable(text), _WIDTH, subsequent_indent=indent, break_on_hyphens=False)


def clustering_html(found: Clustering) -> str:
    """A clustering in a notebook: what was found, the clusters and the tasks; every text in it is escaped."""
    told = summarise(found)
    careful = "".join(
        f'<p style="border-left: 3px solid #D55E00; padding: .1em .6em">{escape(text)}</p>'
        for title, text in told.remarks
        if title == "Careful"
    )
    notes = "".join(f"<li>{escape(f'{title}: {text}')}</li>" for title, text in told.remarks if title != "Careful")
    compared = "".join(f"<li>{escape(sentence)}.</li>" for sentence in told.compared)
    tables = ""
    if found._rows is not None or found._kept:
        from dataclasses import replace

        plain = replace(found, _polars=False)
        for title, frame in (("Clusters", plain.clusters), ("Tasks", plain.tasks)):
            shares = [column for column in frame.columns if column.startswith("share")]
            shown = frame.assign(**{column: frame[column].map(percent) for column in shares})
            if len(shares) > _CLUSTERS:
                shown = shown.drop(columns=shares[1:] if title == "Clusters" else shares)
            table = shown.to_html(escape=True, border=0, float_format=lambda value: f"{value:.2f}", max_rows=_TASKS)
            tables += f"<details open><summary>{title}</summary><div style='overflow-x: auto'>{table}</div></details>"
    return (
        f'<div style="max-width: 70em"><p><b>{escape(told.title)}</b></p>{careful}'
        f"<ul>{compared}</ul>{tables}<details><summary>What was done, and why</summary><ul>{notes}</ul></details></div>"
    )
