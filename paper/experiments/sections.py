"""Sections that several pages share: the NMI table of both protocols, diagrams of Ω, heat maps of D, failures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper.experiments import figures
from paper.experiments.page import Picture, Section
from paper.experiments.protocols import by_draw, oracle, summary_table, without_labels
from paper.experiments.runner import load_array

PROTOCOLS = (
    "**no labels**: our models choose width, λ and coupling by their own rules, reference methods run at their default "
    "setting. **oracle**: the one setting of a grid with the highest mean NMI over the draws, which needs the classes. "
    "Our models are told that clusters are equally large, as in the paper; the reference methods cannot use that. "
    'DMTRC is always coupled, "DMTRC auto" is our default, which may refuse to couple. LSKMTC and MBC are '
    "reconstructions from abstracts."
)


def draws_text(frame: Any) -> str:
    """How many draws the rows of each data set have."""
    free = frame[frame["protocol"] != "grid"]
    counts = free.groupby("dataset", sort=False)["draw"].nunique()
    grid = frame[frame["protocol"] == "grid"]
    text = "Draws: " + "; ".join(f"{name}: {count}" for name, count in counts.items()) + "."
    if len(grid):
        text += f" Grids for the oracle on the first {grid['draw'].nunique()} of them."
    return text


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
    free = without_labels(frame)
    rows = []
    for name in names:
        cells = []
        for dataset in datasets:
            values = by_draw(free, dataset, name, "nmi_of_starts").dropna()
            cells.append(f"{values.mean():.3f}" if len(values) else "–")
        if any(cell != "–" for cell in cells):
            rows.append([name, *cells])
    text = "The same reference methods by the mean NMI over all starts, which is what the paper reports (no labels)."
    return Section("Reference methods, mean over starts", text, ["method", *datasets], rows)


def nmi_figure(
    frame: Any, directory: Path, datasets: Sequence[str], names: Sequence[str], stem: str, picture: Mapping[str, str]
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
    return Picture(figures.save(figure, directory, stem), **picture)


def omega_of(frame: Any, dataset: str, name: str) -> NDArray[np.float64] | None:
    """Ω of the first draw of a data set."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)].sort_values("draw")
    found = [details["omega"] for details in rows["details"] if "omega" in details]
    return np.array(found[0]) if found else None


def off_diagonal_share_of(frame: Any, dataset: str, name: str) -> float:
    """Mean over draws of the share of D² off its diagonal; nan without rows."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    return float(np.mean([details["off_diagonal"] for details in rows["details"]])) if len(rows) else float("nan")


def mean_correlation(frame: Any, dataset: str, name: str) -> NDArray[np.float64] | None:
    """Mean over draws of the task correlations."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    found = [np.array(details["omega"]) for details in rows["details"] if "omega" in details]
    if not found:
        return None
    return np.mean([as_correlation(omega) for omega in found], axis=0)


def as_correlation(omega: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.sqrt(np.maximum(np.diag(omega), 1e-12))
    return np.asarray(omega / np.outer(scale, scale))


def hinton_figure(
    frame: Any,
    directory: Path,
    wanted: Sequence[tuple[str, str]],
    tasks: Mapping[str, Sequence[str]],
    stem: str,
    picture: Mapping[str, str],
) -> Picture | None:
    """Hinton diagrams of Ω, first draw, one panel per (data set, name)."""
    found = [(dataset, name, omega_of(frame, dataset, name)) for dataset, name in wanted]
    shown = [(dataset, name, omega) for dataset, name, omega in found if omega is not None]
    if not shown:
        return None
    figure, axes = figures.panels(len(shown), width=2.2, height=2.4)
    for ax, (dataset, name, omega) in zip(axes[0], shown):
        figures.hinton(ax, omega, tasks[dataset], f"{dataset}\n{name}")
    return Picture(figures.save(figure, directory, stem), **picture)


def heat_figure(
    directory: Path, wanted: Mapping[str, str], stem: str, picture: Mapping[str, str], columns: int = 3
) -> Picture | None:
    """Heat maps of D from the matrices kept beside the table; ``wanted`` maps their names to titles."""
    found = [(title, load_array(directory, name)) for name, title in wanted.items()]
    shown = [(title, matrix) for title, matrix in found if matrix is not None]
    if not shown:
        return None
    n_rows = -(-len(shown) // columns)
    figure, axes = figures.panels(min(columns, len(shown)), n_rows, width=2.2, height=2.4)
    for ax in axes.flat[len(shown) :]:
        ax.set_visible(False)
    for ax, (title, matrix) in zip(axes.flat, shown):
        figures.heat_map(ax, matrix, title)
    return Picture(figures.save(figure, directory, stem), **picture)


def pictures(*found: Picture | None) -> list[Picture]:
    """Those that could be drawn."""
    return [picture for picture in found if picture is not None]
