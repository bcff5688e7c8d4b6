"""Growth of time with rows, features, tasks and clusters: fitted slopes and their plot."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from _scale_data import Cell
from _scale_methods import OURS_ONCE, REFERENCE
from _scale_summary import Row, median_of, of_cell

mpl.use("Agg")

GROWTH_METHODS = (*OURS_ONCE, REFERENCE)
_NAMES = {"rows": "rows N", "features": "features d", "tasks": "tasks m", "clusters": "clusters C"}
#: colour-blind safe, and told apart by their markers too
_LOOKS = dict(zip(GROWTH_METHODS, (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#555555", "x"))))


def curve(rows: list[Row], cells: list[Cell], axis: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and median CPU seconds, where measured."""
    points = [(getattr(cell, axis), median_of(of_cell(rows, "growth", cell, method))) for cell in cells]
    points = [(size, seconds) for size, seconds in points if np.isfinite(seconds)]
    return np.array([p[0] for p in points], dtype=float), np.array([p[1] for p in points], dtype=float)


def slope(sizes: np.ndarray, seconds: np.ndarray, at_least: float = 0.0) -> float:
    """Exponent of the power law through the points with at least this size; NaN with fewer than two."""
    keep = sizes >= at_least
    if keep.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes[keep]), np.log(seconds[keep]), 1)[0])


def _short(size: int) -> str:
    return f"{size / 10**6:g}M" if size >= 10**6 else f"{size / 1000:g}k" if size >= 1000 else str(size)


def plot_growth(rows: list[Row], growth: dict[str, list[Cell]], out: Path) -> None:
    """One panel per axis, log-log, with the slopes in the legends; nothing where nothing was measured."""
    import matplotlib.pyplot as plt

    if not any(row["part"] == "growth" for row in rows):
        return
    figure, panels = plt.subplots(1, 4, figsize=(16, 4.2), sharey=True, layout="constrained")
    for panel, (axis, cells) in zip(panels, growth.items()):
        for method in GROWTH_METHODS:
            sizes, seconds = curve(rows, cells, axis, method)
            if len(sizes):
                colour, marker = _LOOKS[method]
                label = f"{method}: slope {slope(sizes, seconds):.2f}"
                panel.loglog(sizes, seconds, color=colour, marker=marker, linewidth=1.5, markersize=5, label=label)
        base = cells[len(cells) // 2]
        letters = {"rows": "N", "tasks": "m", "features": "d", "clusters": "C"}
        fixed = [f"{letter} = {getattr(base, name):,}" for name, letter in letters.items() if name != axis]
        panel.set_title(", ".join(fixed), fontsize=10)
        panel.set_xlabel(_NAMES[axis])
        ticks = [getattr(cell, axis) for cell in cells]
        panel.set_xticks(ticks, [_short(size) for size in ticks])
        panel.minorticks_off()
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False, loc="upper left")
    panels[0].set_ylabel("CPU seconds of one fit, one thread")
    low, high = panels[0].get_ylim()
    panels[0].set_ylim(low, high * 8)  # room for the legends
    figure.savefig(out / "growth.svg", metadata={"Date": None})
    plt.close(figure)
