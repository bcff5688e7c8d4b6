"""The figures of the experiments: drawn on axes, saved as PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.util.system import require
from paper.experiments.protocols import REFERENCES
from paper.experiments.table import replace_file

matplotlib: Any = require("matplotlib", "experiments")
require("matplotlib.figure", "experiments")

#: the paper's colours of a Hinton diagram
_RELATED, _REVERSE = "#2e8b57", "#d1495b"
#: one colour per family of methods
_FAMILY = {"DSTC": "#e69f00", "DMTFC": "#56b4e9", "DMTRC": "#0072b2", "MTRL": "#009e73", "MTFL": "#cc79a7"}
_AUTO = "#1b3a5c"
_OTHER = "#9a9a9a"
_REFERENCE_COLOURS = ("#9a9a9a", "#6b6b6b", "#c9a66b", "#b5b5b5", "#8f7f6b", "#7d9a7d", "#a56b6b", "#7b7ba6", "#a67ba6")
_FAMILY |= dict(zip(REFERENCES, _REFERENCE_COLOURS))
_MARKERS = "osD^v<>PXp*h"
_GROUPS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DPI = 110
_STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def panels(n_columns: int, n_rows: int = 1, *, width: float = 3.2, height: float = 2.9) -> tuple[Any, NDArray[Any]]:
    """A figure with a grid of axes."""
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False)
    return figure, axes


def save(figure: Any, directory: Path, stem: str) -> str:
    """Write ``figures/stem.png`` below a directory; returns this path."""
    content, path = io.BytesIO(), f"figures/{stem}.png"
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format="png", dpi=_DPI)
    replace_file(directory / path, content.getvalue())
    return path


def colour(name: str) -> str:
    """The colour of a method, the same in all figures."""
    if name.endswith("auto"):
        return _AUTO
    return next((found for family, found in _FAMILY.items() if name.lstrip("*").startswith(family)), _OTHER)


def nmi_bars(
    ax: Any, free: Mapping[str, Sequence[float]], tuned: Mapping[str, Sequence[float]], title: str = ""
) -> None:
    """Horizontal bars of the mean NMI, standard deviation as a line; diamonds at the mean of a second set of values."""
    names = list(free)
    for row, name in enumerate(names):
        values = np.asarray(free[name], dtype=np.float64)
        if len(values):
            hatch = "///" if name.endswith(("auto", "random")) else None
            ax.barh(row, values.mean(), color=colour(name), height=0.72, hatch=hatch, edgecolor="white", linewidth=0)
            if len(values) > 1:
                ax.errorbar(values.mean(), row, xerr=values.std(), color="#222222", linewidth=1, capsize=2)
        best = np.asarray(tuned.get(name, ()), dtype=np.float64)
        if len(best):
            ax.plot(best.mean(), row, "D", color="white", markeredgecolor="#222222", markersize=4.5, zorder=3)
    ax.set_yticks(range(len(names)), names)
    # given, not found from the bars: a method without rows would shift them against their names
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)
    ax.set_xlabel("NMI")
    ax.set_title(title)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def hinton(ax: Any, matrix: NDArray[np.float64], names: Sequence[str], title: str = "") -> None:
    """Hinton diagram: the area of a square is the size of the entry; green positive, red negative."""
    patches = require("matplotlib.patches", "experiments")
    m = len(names)
    largest = float(np.abs(matrix).max()) or 1.0
    for i in range(m):
        for k in range(m):
            side = 0.94 * np.sqrt(abs(matrix[i, k]) / largest)
            found = _RELATED if matrix[i, k] >= 0 else _REVERSE
            ax.add_patch(patches.Rectangle((k - side / 2, i - side / 2), side, side, color=found, linewidth=0))
    ax.set_xlim(-0.6, m - 0.4)
    ax.set_ylim(m - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_xticks(range(m), names, rotation=45 if max(map(len, names)) > 3 else 0)
    ax.set_yticks(range(m), names)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(True)
        spine.set_color("#cccccc")
    ax.set_title(title)


def heat_map(ax: Any, matrix: NDArray[np.float64], title: str = "") -> None:
    """Absolute entries of D relative to the largest: white is strong, grey weak, black none."""
    size = np.abs(matrix)
    # a root keeps the many small entries visible beside the few large ones
    ax.imshow(np.sqrt(size / (size.max() or 1.0)), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title)


def scatter(ax: Any, x: Any, y: Any, groups: NDArray[np.int64], title: str = "") -> None:
    """Points with a colour and a symbol per group."""
    for number, group in enumerate(np.unique(groups)):
        mine = groups == group
        style = {"color": _GROUPS[number % len(_GROUPS)], "marker": _MARKERS[number % len(_MARKERS)]}
        ax.scatter(x[mine], y[mine], s=14, linewidths=0, label=str(group), **style)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(title)
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1), handletextpad=0.1, borderpad=0)


def lines(
    ax: Any,
    x: Sequence[float],
    series: Mapping[str, Sequence[Sequence[float]]],
    *,
    spread: bool = True,
    dashed: Sequence[str] = (),
) -> None:
    """One line per series through the mean of the values at every x; bars are standard errors over draws."""
    for number, (name, columns) in enumerate(series.items()):
        kept = [(a, np.asarray(values, dtype=np.float64)) for a, values in zip(x, columns) if len(values)]
        if not kept:
            continue
        at = [a for a, _ in kept]
        mean = [values.mean() for _, values in kept]
        error = [values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0 for _, values in kept]
        style = {"color": colour(name), "marker": _MARKERS[number % len(_MARKERS)], "markersize": 4, "label": name}
        style["linestyle"] = "--" if name in dashed or name.endswith("auto") else "-"
        ax.errorbar(at, mean, yerr=error if spread else None, linewidth=1.3, capsize=2, **style)
    ax.grid(color="#e5e5e5", linewidth=0.6)
    ax.set_axisbelow(True)


def times(
    ax: Any, x: Sequence[float], series: Mapping[str, Any], dashed: Sequence[str], y0: float, guides: Mapping[int, str],
    ticks: Sequence[str],
) -> None:  # fmt: skip
    """Seconds against x on logarithmic axes, with lines y ∝ xᵖ through (x[0], y0) for every guide p."""
    lines(ax, x, series, spread=False, dashed=dashed)
    for power, label in guides.items():
        at = np.asarray(x, dtype=np.float64)
        ax.plot(at, y0 * (at / at[0]) ** power, ":" if power == 2 else "-.", color="#888888", linewidth=1, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xticks(x, ticks, fontsize=7)
    ax.minorticks_off()
    ax.set_ylabel("CPU seconds")


def legend_below(figure: Any, ax: Any, columns: int) -> None:
    """One legend for all panels, under them."""
    handles, labels = ax.get_legend_handles_labels()
    with matplotlib.rc_context(_STYLE):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
