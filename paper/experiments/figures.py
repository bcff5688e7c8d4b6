"""The figures of the experiments: drawn on axes, saved as PNG."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.util.system import require
from paper.experiments.protocols import REFERENCES, estimate
from paper.experiments.table import replace_file

matplotlib: Any = require("matplotlib", "experiments")
require("matplotlib.figure", "experiments")

patches: Any = require("matplotlib.patches", "experiments")

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
_STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def panels(n_columns: int, n_rows: int = 1, *, width: float = 3.2, height: float = 2.9) -> tuple[Any, NDArray[Any]]:
    """A figure with a grid of axes."""
    with matplotlib.rc_context(_STYLE):
        figure = matplotlib.figure.Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
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
    with matplotlib.rc_context(_STYLE):
        figure.savefig(content, format="png", dpi=_DPI)
    replace_file(directory / path, content.getvalue())
    return Picture(path, caption, paper)


def colour(name: str) -> str:
    """The colour of a method, the same in all figures."""
    if name.endswith("auto"):
        return _AUTO
    return next((found for family, found in _FAMILY.items() if name.lstrip("*").startswith(family)), _OTHER)


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
        found = {at: estimate(values) for at, values in zip(x, columns) if len(values)}
        if not found:
            continue
        mean, error = ([e.mean for e in found.values()], [np.nan_to_num(e.error) for e in found.values()])
        style = {"color": colour(name), "marker": MARKERS[number % len(MARKERS)], "markersize": 4, "label": name}
        style["linestyle"] = "--" if name in dashed or name.endswith("auto") else "-"
        ax.errorbar(list(found), mean, yerr=error if spread else None, linewidth=1.3, capsize=2, **style)
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
    ax.set(xscale="log", yscale="log", ylabel="CPU seconds")
    ax.set_xticks(x, ticks, fontsize=7)
    ax.minorticks_off()


def legend_below(figure: Any, ax: Any, columns: int) -> None:
    """One legend for all panels, under them."""
    handles, labels = ax.get_legend_handles_labels()
    with matplotlib.rc_context(_STYLE):
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8)
