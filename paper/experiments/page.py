"""Pages of results, Markdown beside the figures: sections, and the tables and figures that several pages share."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from paper.experiments.protocols import (
    REFERENCES,
    as_reported,
    by_draw,
    estimate,
    mean_text,
    natural_order,
    without_labels,
)
from paper.experiments.runner import load_array
from paper.experiments.table import replace_file

#: the paper's colours of a Hinton diagram
RELATED, REVERSE = "#2e8b57", "#d1495b"
#: one colour per family of methods
_FAMILY = {"DSTC": "#e69f00", "DMTFC": "#56b4e9", "DMTRC": "#0072b2", "MTRL": "#009e73", "MTFL": "#cc79a7"}
_AUTO, _OTHER = "#1b3a5c", "#9a9a9a"
_REFERENCE_COLOURS = ("#9a9a9a", "#6b6b6b", "#c9a66b", "#b5b5b5", "#8f7f6b", "#7d9a7d", "#a56b6b", "#7b7ba6", "#a67ba6")
_FAMILY |= dict(zip(REFERENCES, _REFERENCE_COLOURS))
MARKERS = "osD^v<>PXp*h"
GROUPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DPI = 110
_STYLE: Any = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def panels(n_columns: int, n_rows: int = 1, *, width: float = 3.2, height: float = 2.9) -> tuple[Any, NDArray[Any]]:
    """A figure with a grid of axes."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, axes


@dataclass(frozen=True)
class Picture:
    """A figure, its path seen from the page, and the caption of its counterpart in the paper."""

    path: str
    caption: str
    paper: str = ""  # "Fig. 2: …" as the paper has it; empty if the paper has none


def save(figure: Any, directory: Path, stem: str, caption: str, paper: str = "") -> Picture:
    """Write ``figures/stem.png`` below a directory."""
    content, path = io.BytesIO(), f"figures/{stem}.png"
    with mpl.rc_context(_STYLE):
        figure.savefig(content, format="png", dpi=_DPI)
    replace_file(directory / path, content.getvalue())
    return Picture(path, caption, paper)


def colour(name: str) -> str:
    """The colour of a method, the same in all figures."""
    if name.endswith("auto"):
        return _AUTO
    return next((found for family, found in _FAMILY.items() if name.lstrip("*").startswith(family)), _OTHER)


def lines(ax: Any, x: Sequence[float], series: Mapping[str, Any], *, spread: bool = True) -> None:
    """One line per series through the mean of the values at every x; bars are standard errors over draws."""
    for number, (name, columns) in enumerate(series.items()):
        found = {at: estimate(values) for at, values in zip(x, columns) if len(values)}
        if not found:
            continue
        mean, error = ([e.mean for e in found.values()], [np.nan_to_num(e.error) for e in found.values()])
        style = {"color": colour(name), "marker": MARKERS[number % len(MARKERS)], "markersize": 4, "label": name}
        style["linestyle"] = "--" if name.startswith("*") or name.endswith(("auto", "cutting planes")) else "-"
        ax.errorbar(list(found), mean, yerr=error if spread else None, linewidth=1.3, capsize=2, **style)
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)


def times(ax: Any, x: Mapping[float, str], series: Mapping[str, Any], y0: float, guides: Mapping[int, str]) -> None:
    """Seconds against x on logarithmic axes, with lines y ∝ xᵖ through its first value and y0 for every guide p."""
    lines(ax, list(x), series, spread=False)
    for power, label in guides.items():
        at = np.array(list(x), dtype=np.float64)
        ax.plot(at, y0 * (at / at[0]) ** power, ":" if power == 2 else "-.", color="#888888", linewidth=1, label=label)
    ax.set(xscale="log", yscale="log", ylabel="CPU seconds")
    ax.set_xticks(list(x), list(x.values()), fontsize=7)
    ax.minorticks_off()


def legend_below(figure: Any, ax: Any, columns: int) -> None:
    """One legend for all panels, under them."""
    handles, labels = ax.get_legend_handles_labels()
    with mpl.rc_context(_STYLE):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)


@dataclass(frozen=True)
class Section:
    """A heading with text, a table and figures under it."""

    title: str
    text: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[Picture] = ()


def write_page(path: Path, title: str, command: str, intro: str, sections: Sequence[Section]) -> None:
    """Write a page of Markdown; figures are linked."""
    parts = [f"# {title}", f"Made by `{command}`", intro]
    for section in sections:
        parts += [f"## {section.title}", _escape_stars(section.text)]
        if section.header:
            rows = ([cell.replace("|", "\\|") for cell in row] for row in (section.header, *section.rows))
            header, *lines = (_escape_stars(f"| {' | '.join(cells)} |") for cells in rows)
            parts.append("\n".join([header, "|" + "---|" * len(section.header), *lines]))
        for picture in section.pictures:
            parts.append(f"![{picture.caption}]({picture.path})")
            parts.append(picture.caption + (f" Counterpart of the paper's {picture.paper}" if picture.paper else ""))
    replace_file(path, ("\n\n".join(part for part in parts if part) + "\n").encode())


def _escape_stars(text: str) -> str:
    """A single star is the paper's mark of a method, not emphasis."""
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)


def draws_text(frame: Any) -> str:
    """How many draws the rows of each data set have, and from how many starts the reference methods were run."""
    free = frame[~frame["protocol"].isin(["grid", "as printed"])]
    counts = free.groupby("dataset", sort=False)["draw"].nunique()
    groups = {n: sorted(counts.index[counts == n], key=natural_order) for n in sorted(set(counts), reverse=True)}
    parts = [f"{count} ({'; '.join(names)})" for count, names in groups.items()]
    text = f"Draws: {', '.join(parts) if len(parts) > 1 else counts.iloc[0]}."
    for protocol, what in (("grid", "Grids of the reference methods"), ("as printed", "As printed")):
        part = frame[frame["protocol"] == protocol]
        if len(part):
            text += f" {what} on the first {part['draw'].nunique()} of them."
    starts = sorted({chosen["n_init"] for chosen in frame["chosen"] if "n_init" in chosen})
    return text + (f" Starts of a reference method: {', '.join(map(str, starts))}." if starts else "")


def failures(frame: Any) -> list[Section]:
    """A section that lists failed rows, if there are any."""
    failed = frame[frame["error"] != ""]
    rows = [[row.dataset, str(row.draw), row.method, row.error[:300]] for row in failed.itertuples()]
    text = f"{len(rows)} rows hold an error."
    return [Section("Failed", text, ("data set", "draw", "method", "error"), rows)] if rows else []


def table(title: str, text: str, datasets: Sequence[str], names: Sequence[str], *columns: Any) -> list[Section]:
    """Methods by data sets: mean over draws ± standard error of each column, a frame and the value to show, → between.

    Methods that have no rows are left out; without any there is no section.
    """
    rows = []
    for name in names:
        values = [[by_draw(frame, d, name, value).dropna() for frame, value in columns] for d in datasets]
        if any(len(value) for parts in values for value in parts):
            rows.append([name, *(" → ".join(map(mean_text, parts)) for parts in values)])
    return [Section(title, text, ["method", *datasets], rows)] if rows else []


def nmi_sections(
    frame: Any, directory: Path, datasets: Sequence[str], names: Sequence[str], paper: str
) -> list[Section]:
    """NMI of all methods without labels, also as bars; of the reference methods also as the paper reports them."""
    free = without_labels(frame)
    shown = [name for name in names if name in set(free["name"])]
    star = "; *: without PCA" if any(name.startswith("*") for name in shown) else ""
    caption = f"Mean NMI, nothing chosen with labels; line: standard deviation over draws{star}."
    picture = bar_figure(directory, "nmi", datasets, shown, free, None, caption, paper)
    text = "NMI (geometric, mean over tasks), no labels; reference methods by the start with the lowest objective."
    (first,) = table("NMI of all methods", text, datasets, shown, (free, "nmi"))
    tuned = as_reported(frame)
    text = (
        "The same reference methods by the mean NMI over all starts, which is what the paper reports: at their default "
        "setting"
    )
    if len(tuned):
        free = free[free["draw"].isin(tuned["draw"])]
        text += f" → at the setting that is best with labels, on the {tuned['draw'].nunique()} draws of the grids"
    columns = [(free, "nmi_of_starts"), (tuned, "nmi")][: 2 if len(tuned) else 1]
    reported = table("Reference methods, mean over starts", f"{text}.", datasets, names, *columns)
    return [replace(first, pictures=[picture]), *reported]


def bar_figure(
    directory: Path, stem: str, datasets: Sequence[str], names: Sequence[str], frame: Any, diamonds: Any, *caption: str
) -> Picture:
    """Bars of the mean NMI on one scale, one panel per data set, standard deviation as a line; ``diamonds`` are rows of
    a second way or None.
    """
    figure, axes = panels(len(datasets), width=2.7, height=0.5 + 0.24 * len(names))
    for ax, dataset in zip(axes[0], datasets):
        for row, name in enumerate(names):
            values = by_draw(frame, dataset, name).to_numpy()
            if len(values):
                hatch = "///" if name.endswith(("auto", "random")) else None
                style = {"color": colour(name), "hatch": hatch, "edgecolor": "white", "linewidth": 0}
                ax.barh(row, values.mean(), height=0.72, **style)
            if len(values) > 1:
                ax.errorbar(values.mean(), row, xerr=values.std(), color="#222222", linewidth=1, capsize=2)
            best = by_draw(diamonds if diamonds is not None else frame.iloc[:0], dataset, name).to_numpy()
            if len(best):
                ax.plot(best.mean(), row, "D", color="white", markeredgecolor="#222222", markersize=4.5, zorder=3)
        ax.set_yticks(range(len(names)), names)
        # given, not found from the bars: a method without rows would shift them against their names
        ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, None), xlabel="NMI", title=dataset)
        ax.grid(axis="x", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
    axes[0, 0].set_xlim(0, max(ax.get_xlim()[1] for ax in axes[0]))
    for ax in axes[0, 1:]:
        ax.sharex(axes[0, 0])
        ax.set_yticklabels([])
    return save(figure, directory, stem, *caption)


def per_task(
    frame: Any, directory: Path, datasets: Sequence[str], names: Sequence[str], tasks: Mapping[str, Any], paper: str
) -> Section:
    """NMI of every task under no labels, as a figure and a table; ``tasks`` names those of each data set."""
    free = without_labels(frame)
    figure, axes = panels(len(datasets), width=3.1, height=2.8)
    rows = []
    for ax, dataset in zip(axes[0], datasets):
        series, at = {}, range(len(tasks[dataset]))
        for name in names:
            entries = list(free[(free["dataset"] == dataset) & (free["name"] == name)]["nmi_per_task"])
            if entries:
                series[name] = [[entry[task] for entry in entries] for task in entries[0]]
                rows.append([dataset, name, ", ".join(f"{np.mean(column):.3f}" for column in series[name])])
        lines(ax, at, series)
        ax.set_xticks(at, tasks[dataset], fontsize=8)
        ax.set(title=dataset, xlabel="task", ylabel="NMI")
    legend_below(figure, axes[0, 0], 2 * len(datasets))
    caption = (
        "NMI of every task, mean and standard error over draws; dashed: without PCA, or coupling decided by the model."
    )
    picture = save(figure, directory, "per_task", caption, paper)
    header = ("data", "method", "NMI of the tasks in their order")
    return Section("Task by task", "Mean over draws, no labels.", header, rows, [picture])


def details_of(frame: Any, dataset: str, name: str, key: str) -> list[Any]:
    """One of the further figures of a method, draw by draw, where it was kept."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    return [details[key] for details in rows["details"] if key in details]


def correlations_of(frame: Any, dataset: str, name: str) -> list[NDArray[np.float64]]:
    """The task correlations, draw by draw."""
    found = [np.array(omega) for omega in details_of(frame, dataset, name, "omega")]
    scales = [np.sqrt(np.maximum(np.diag(omega), 1e-12)) for omega in found]
    return [omega / np.outer(scale, scale) for omega, scale in zip(found, scales)]


def off_diagonal(frame: Any, dataset: str, name: str) -> NDArray[np.float64]:
    """Share of D² off the diagonal, and that of the same eigenvalues in random axes: two rows, draw by draw."""
    return np.array([details_of(frame, dataset, name, key) for key in ("off_diagonal", "off_diagonal_null")])


def hinton_figure(
    frame: Any, directory: Path, wanted: Sequence[tuple[str, str]], tasks: Mapping[str, Any], stem: str, paper: str
) -> list[Picture]:
    """Hinton diagrams of Ω, first draw, one panel per (data set, name)."""
    found = [(dataset, name, details_of(frame, dataset, name, "omega")) for dataset, name in wanted]
    shown = [(dataset, name, np.array(omegas[0])) for dataset, name, omegas in found if omegas]
    if not shown:
        return []
    figure, axes = panels(len(shown), width=2.2, height=2.8)
    for ax, (dataset, name, omega) in zip(axes[0], shown):
        m, names = len(omega), tasks[dataset]
        side = 0.94 * np.sqrt(np.abs(omega) / (np.abs(omega).max() or 1.0))
        for (i, k), s in np.ndenumerate(side):
            shade = RELATED if omega[i, k] >= 0 else REVERSE
            ax.add_patch(Rectangle((k - s / 2, i - s / 2), s, s, color=shade, linewidth=0))
        ax.set(xlim=(-0.6, m - 0.4), ylim=(m - 0.4, -0.6), aspect="equal", title=f"{dataset}\n{name}")
        ax.set_xticks(range(m), names, rotation=45 if max(map(len, names)) > 3 else 0)
        ax.set_yticks(range(m), names)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set(visible=True, color="#cccccc")
    caption = "Ω of draw 0, always coupled; green: related, red: reverse, area: size."
    return [save(figure, directory, stem, caption, paper)]


def heat_figure(frame: Any, directory: Path, wanted: Mapping[str, str], what: str, paper: str) -> list[Picture]:
    """Heat maps of D from the matrices kept beside the table; ``wanted`` maps their names to titles."""
    version = frame["version"].iloc[0]
    found = {title: load_array(directory, name, version) for name, title in wanted.items()}
    shown = {title: np.abs(matrix) for title, matrix in found.items() if matrix is not None}
    if not shown:
        return []
    columns = 3 if len(shown) > 4 else len(shown)
    figure, axes = panels(columns, -(-len(shown) // columns), width=2.2, height=2.4)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, (title, size) in zip(axes.flat, shown.items()):
        # white is strong, grey weak, black none; a root keeps the many small entries visible beside the few large ones
        ax.imshow(np.sqrt(size / (size.max() or 1.0)), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        ax.set(xticks=[], yticks=[], title=title)
    caption = f"D of draw 0 over {what}: the darker, the weaker; brightness is the root of |D_ij| over the largest."
    return [save(figure, directory, "feature_covariance", caption, paper)]
