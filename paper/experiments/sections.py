"""Sections that several pages share: the NMI table of both protocols, diagrams of Ω, heat maps of D, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.experiments import figures
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import as_reported, by_draw, mean_text, oracle, summary_table, without_labels
from paper.experiments.runner import load_array

PROTOCOLS = (
    "**no labels**: our models choose width, λ and coupling by their own rules, reference methods run at their default "
    "setting. **oracle**: the one setting of a grid with the highest mean NMI over the draws, which needs the classes. "
    "Our models are given the true sizes of the classes, as in the paper, in the order of the classes, which also "
    "tells DMTRC which clusters belong together where sizes differ; the reference methods cannot use that. "
    'DMTRC is always coupled, "DMTRC auto" is our default, which may refuse to couple. LSKMTC and MBC are '
    "reconstructions from abstracts."
)


def draws_text(frame: Any) -> str:
    """How many draws the rows of each data set have, and from how many starts the reference methods were run."""
    free = frame[~frame["protocol"].isin(["grid", "as printed"])]
    counts = free.groupby("dataset", sort=False)["draw"].nunique()
    text = "Draws: " + "; ".join(f"{name}: {count}" for name, count in counts.items()) + "."
    for protocol, what in (("grid", "Grids for the oracle"), ("as printed", "As printed")):
        part = frame[frame["protocol"] == protocol]
        if len(part):
            text += f" {what} on the first {part['draw'].nunique()} of them."
    starts = sorted({chosen["n_init"] for chosen in frame["chosen"] if "n_init" in chosen})
    return text + (f" Starts of a reference method: {', '.join(map(str, starts))}." if starts else "")


def failures(frame: Any) -> list[Section]:
    """A section that lists failed rows, if there are any."""
    failed = frame[frame["error"] != ""]
    if failed.empty:
        return []
    rows = [
        [row.dataset, str(row.draw), row.method, row.error[:300]]
        for row in failed.itertuples()
    ]  # fmt: skip
    return [Section("Failed", f"{len(rows)} rows hold an error.", ("data set", "draw", "method", "error"), rows)]


def nmi_table(frame: Any, datasets: Sequence[str], names: Sequence[str]) -> Section:
    """Mean NMI ± standard error of all methods under both protocols."""
    header = ["method"]
    for dataset in datasets:
        header += [f"{dataset}, no labels", "oracle"]
    present = [name for name in names if name in set(frame["name"])]
    rows = summary_table(frame, datasets, present)
    text = (
        "NMI (geometric, mean over tasks): mean over draws ± standard error; reference methods by the start with "
        "their lowest own objective. Oracles are over fewer draws: compare them in the next table. Last column: "
        "median CPU seconds of one fit on one core at each data set, choosing and all starts included."
    )
    return Section("NMI of all methods", text, [*header, "seconds"], rows)


def oracle_table(frame: Any, datasets: Sequence[str], names: Sequence[str]) -> list[Section]:
    """What knowing the labels is worth: both protocols on the draws of the grids."""
    tuned, free = oracle(frame), without_labels(frame)
    rows = []
    for name in names:
        cells = []
        for dataset in datasets:
            mine = by_draw(free, dataset, name)
            best = by_draw(tuned, dataset, name) if len(tuned) else mine.iloc[:0]
            same = mine[mine.index.isin(best.index)]
            cells.append(f"{same.mean():.3f} → {best.mean():.3f}" if len(same) else "–")
        if any(cell != "–" for cell in cells):
            rows.append([name, *cells])
    if not rows:
        return []
    text = "On the draws the grids were run on: NMI without labels → with the best setting of the grid."
    return [Section("What an oracle would gain", text, ["method", *datasets], rows)]


def starts_table(frame: Any, datasets: Sequence[str], names: Sequence[str]) -> Section:
    """The reference methods as the paper reports them: mean over random starts."""
    free, tuned = without_labels(frame), as_reported(frame)
    rows = []
    for name in [name for name in names if name in set(free["name"])]:
        cells = [mean_text(by_draw(free, dataset, name, "nmi_of_starts").dropna()) for dataset in datasets]
        best = [mean_text(by_draw(tuned, dataset, name)) if len(tuned) else "–" for dataset in datasets]
        if any(cell != "–" for cell in cells):
            rows.append([name, *(f"{cell} → {tuned_}" for cell, tuned_ in zip(cells, best))])
    text = (
        "The same reference methods by the mean NMI over all starts, which is what the paper reports: at their default "
        "setting → at the setting that is best with labels."
    )
    return Section("Reference methods, mean over starts", text, ["method", *datasets], rows)


def printed_section(frame: Any, datasets: Sequence[str]) -> list[Section]:
    """The letter of the paper: its solver, scales and grid, settings chosen with labels; references as reported."""
    ours, references = oracle(frame, "as printed"), as_reported(frame)
    if ours.empty:
        return []
    rows = []
    for part in (references, ours):
        for name in part["name"].unique():
            rows.append([name, *(mean_text(by_draw(part, dataset, name)) for dataset in datasets)])
    text = (
        "No centring, kernel and λ₂ not rescaled, width from the mean distance of all rows, λ₁ × λ₂ from the paper's 5 "
        f"× 5 grid, five widths, true class sizes, cutting planes (at most {printed_cuts(frame)} cuts; the paper does "
        "not print when it stops) from k-means and from random labels. Reference methods: mean over all starts. Every "
        "figure is the **oracle**'s: the setting with the highest mean NMI, which needs the classes."
    )
    return [Section("As printed", text, ["method", *datasets], rows)]


def printed_cuts(frame: Any) -> int:
    """The most cuts that rows as printed were allowed."""
    return max(setting["max_cuts"] for setting in frame[frame["protocol"] == "as printed"]["setting"])


def per_task_section(
    frame: Any,
    directory: Path,
    datasets: Sequence[str],
    names: Sequence[str],
    tasks: Mapping[str, Sequence[str]],
    paper: str,
) -> Section:
    """NMI of every task under no labels, as a figure and a table; ``tasks`` names those of each data set."""
    free = without_labels(frame)
    present = [name for name in names if name in set(free["name"])]
    figure, axes = figures.panels(len(datasets), width=3.1, height=2.8)
    rows = []
    for ax, dataset in zip(axes[0], datasets):
        series, at = {}, range(len(tasks[dataset]))
        for name in present:
            mine = free[(free["dataset"] == dataset) & (free["name"] == name)]
            if len(mine):
                entries = list(mine["nmi_per_task"])
                series[name] = [[entry[task] for entry in entries] for task in entries[0]]
                rows.append([dataset, name, ", ".join(f"{np.mean(column):.3f}" for column in series[name])])
        figures.lines(ax, at, series, dashed=[name for name in present if name.startswith("*")])
        ax.set_xticks(at, tasks[dataset], fontsize=8)
        ax.set_title(dataset)
        ax.set_ylabel("NMI")
    figures.legend_below(figure, axes[0, 0], 2 * len(datasets))
    picture = Picture(
        figures.save(figure, directory, "per_task"),
        "NMI of every task, mean and standard error over draws; dashed: without PCA, or coupling decided by the model.",
        paper,
    )
    header = ("data", "method", "NMI of the tasks in their order")
    return Section("Task by task", "Mean over draws, no labels.", header, rows, [picture])


def nmi_figure(
    frame: Any, directory: Path, datasets: Sequence[str], names: Sequence[str], paper: str, note: str = ""
) -> Picture:
    """Bars of both protocols, one panel per data set."""
    free, tuned = without_labels(frame), oracle(frame)
    shown = [name for name in names if name in set(free["name"])]
    figure, axes = figures.panels(len(datasets), width=2.7, height=0.5 + 0.24 * len(shown))
    for column, dataset in enumerate(datasets):
        ax = axes[0, column]
        figures.nmi_bars(
            ax,
            {name: by_draw(free, dataset, name).to_numpy() for name in shown},
            {} if tuned.empty else {name: by_draw(tuned, dataset, name).to_numpy() for name in shown},
            dataset,
        )
        if column:
            ax.set_yticklabels([])
    right = max(ax.get_xlim()[1] for ax in axes[0])
    for ax in axes[0]:
        ax.set_xlim(0, right)
    caption = f"Mean NMI without labels; line: standard deviation over draws; diamond: oracle{note}."
    return Picture(figures.save(figure, directory, "nmi"), caption, paper)


def details_of(frame: Any, dataset: str, name: str, key: str) -> list[Any]:
    """One of the further figures of a method, draw by draw, where it was kept."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    return [details[key] for details in rows["details"] if key in details]


def correlations_of(frame: Any, dataset: str, name: str) -> list[NDArray[np.float64]]:
    """The task correlations, draw by draw."""
    found = [np.array(omega) for omega in details_of(frame, dataset, name, "omega")]
    scales = [np.sqrt(np.maximum(np.diag(omega), 1e-12)) for omega in found]
    return [omega / np.outer(scale, scale) for omega, scale in zip(found, scales)]


def off_diagonal_text(frame: Any, datasets: Sequence[str], name: str) -> str:
    """Share of D² off the diagonal beside that of the same eigenvalues in random axes."""
    parts = []
    for dataset in datasets:
        shares, null = (details_of(frame, dataset, name, key) for key in ("off_diagonal", "off_diagonal_null"))
        if shares:
            chance = f" (random axes {np.mean(null):.2f})" if null else ""
            parts.append(f"{dataset} {np.mean(shares):.2f}{chance}")
    return f"{name}: share of D² off the diagonal {', '.join(parts)}." if parts else ""


def hinton_figure(
    frame: Any,
    directory: Path,
    wanted: Sequence[tuple[str, str]],
    tasks: Mapping[str, Sequence[str]],
    stem: str,
    paper: str,
) -> Picture | None:
    """Hinton diagrams of Ω, first draw, one panel per (data set, name)."""
    found = [(dataset, name, details_of(frame, dataset, name, "omega")) for dataset, name in wanted]
    shown = [(dataset, name, np.array(omegas[0])) for dataset, name, omegas in found if omegas]
    if not shown:
        return None
    figure, axes = figures.panels(len(shown), width=2.2, height=2.4)
    for ax, (dataset, name, omega) in zip(axes[0], shown):
        figures.hinton(ax, omega, tasks[dataset], f"{dataset}\n{name}")
    caption = "Ω of draw 0, always coupled; green: related, red: reverse, area: size."
    return Picture(figures.save(figure, directory, stem), caption, paper)


def heat_figure(
    frame: Any, directory: Path, wanted: Mapping[str, str], what: str, paper: str, columns: int = 3
) -> Picture | None:
    """Heat maps of D from the matrices kept beside the table; ``wanted`` maps their names to titles."""
    version = frame["version"].iloc[0]
    found = [(title, load_array(directory, name, version)) for name, title in wanted.items()]
    shown = [(title, matrix) for title, matrix in found if matrix is not None]
    if not shown:
        return None
    n_rows = -(-len(shown) // columns)
    figure, axes = figures.panels(min(columns, len(shown)), n_rows, width=2.2, height=2.4)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, (title, matrix) in zip(axes.flat, shown):
        figures.heat_map(ax, matrix, title)
    caption = f"D of draw 0 over {what}: the darker, the weaker; brightness is the root of |D_ij| over the largest."
    return Picture(figures.save(figure, directory, "feature_covariance"), caption, paper)
