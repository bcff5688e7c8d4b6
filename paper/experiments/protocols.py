"""Two ways to choose hyper-parameters, side by side, and what is computed from the rows of a table.

*No labels*: our models choose by their own rules, reference methods run at the setting their registry calls default.
*Oracle*: the one setting of a grid with the highest mean NMI over the draws of a data set, which needs the classes;
this is how the paper tunes its models. No user can do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtclust.util.extras import require
from paper.experiments.table import as_json
from paper.reference import REFERENCE_METHODS

pd: Any = require("pandas", "experiments")

#: a difference between two means counts if it is larger than this many standard errors and than this much NMI
CLEAR_ERRORS = 2.0
CLEAR_NMI = 0.005

_SUFFIX = {"linear": "_l", "rbf": "_r", "": ""}
SINGLE = ("KM", "KKM", "NC")
POOLED = ("ALL KM", "ALL KKM", "ALL NC")
MULTITASK = ("LSSMTC", "LSKMTC", "MBC")
REFERENCES = SINGLE + POOLED + MULTITASK


def display_name(method: str, kernel: str = "", raw: bool = False) -> str:
    """The paper's name of a method: _l linear, _r RBF, * without PCA; reconstructions say so.

    Examples
    --------
    >>> display_name("DMTRC", "linear", raw=True), display_name("DMTRC auto", "rbf"), display_name("MBC")
    ('*DMTRC_l', 'DMTRC_r auto', 'MBC (reconstruction)')
    """
    if method in REFERENCE_METHODS:
        return REFERENCE_METHODS[method].label
    base, _, rest = method.partition(" ")
    return ("*" if raw else "") + base + _SUFFIX[kernel] + (f" {rest}" if rest else "")


def with_names(frame: Any) -> Any:
    """The finished rows without an error, with the column ``name`` (:func:`display_name`)."""
    frame = frame[frame["error"] == ""].copy()
    raw = frame["dataset"].str.endswith("raw")
    frame["name"] = [display_name(m, k, r) for m, k, r in zip(frame["method"], frame["kernel"], raw)]
    cutting = frame["solver"] == "cutting-plane"
    frame.loc[cutting, "name"] += " cutting planes"
    return frame


def without_labels(frame: Any) -> Any:
    """Rows in which nothing was chosen with labels."""
    return frame[frame["protocol"] == "no labels"]


def oracle(frame: Any) -> Any:
    """Of every data set and method the rows at the setting with the highest mean NMI over draws.

    Methods without hyper-parameters have nothing to choose: their rows without labels, on the draws of the grids.
    """
    grid = frame[frame["protocol"] == "grid"].copy()
    if grid.empty:
        return grid
    pairs = grid[["dataset", "draw"]].drop_duplicates()
    fixed = without_labels(frame).merge(pairs, on=["dataset", "draw"])
    fixed = fixed[fixed["method"].isin([name for name, method in REFERENCE_METHODS.items() if not method.grid])]
    grid["point"] = [as_json(setting) for setting in grid["setting"]]
    kept = []
    for _, part in grid.groupby(["dataset", "name"], sort=False):
        by_point = part.groupby("point")["nmi"]
        counts = by_point.count()
        # settings that were not run on all draws cannot be compared
        means = by_point.mean()[counts == counts.max()]
        kept.append(part[part["point"] == means.idxmax()])
    return pd.concat([*kept, fixed]) if len(fixed) else pd.concat(kept)


@dataclass(frozen=True)
class Difference:
    """A mean over draws with its standard error."""

    mean: float
    error: float
    n: int

    @property
    def judged(self) -> bool:
        """Whether there are draws enough for a standard error."""
        return self.n > 1

    @property
    def sign(self) -> int:
        """1 or −1 if the difference is clear, else 0, also for a single draw."""
        if not self.judged:
            return 0
        limit = max(CLEAR_NMI, CLEAR_ERRORS * self.error)
        return int(np.sign(self.mean)) if abs(self.mean) > limit else 0

    def __str__(self) -> str:
        if not np.isfinite(self.mean):
            return "no rows"
        return f"{self.mean:+.3f} ± {self.error:.3f}" if np.isfinite(self.error) else f"{self.mean:+.3f}"


def difference(values: Any) -> Difference:
    """Mean and standard error of values, one per draw.

    Examples
    --------
    >>> difference([0.1, 0.3])
    Difference(mean=0.2, error=0.1, n=2)
    """
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if not len(array):
        return Difference(float("nan"), float("nan"), 0)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else float("nan")
    return Difference(float(array.mean().round(12)), float(np.round(error, 12)), len(array))


def by_draw(frame: Any, dataset: str, name: str, value: str = "nmi") -> Any:
    """The value of a method on the draws of a data set, indexed by draw."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    return rows.groupby("draw")[value].mean()


def paired(frame: Any, dataset: str, first: str, second: str) -> Difference:
    """NMI of one method minus that of another over the draws both have."""
    return difference((by_draw(frame, dataset, first) - by_draw(frame, dataset, second)).dropna())


def best_by_mean(frame: Any, dataset: str, names: Sequence[str]) -> str | None:
    """The method with the highest mean NMI on a data set; None if none of them has rows."""
    rows = frame[(frame["dataset"] == dataset) & frame["name"].isin(list(names))]
    return None if rows.empty else str(rows.groupby("name")["nmi"].mean().idxmax())


def summary_table(frame: Any, datasets: Sequence[str], names: Sequence[str]) -> list[list[str]]:
    """Lines of a table: method, then per data set mean NMI ± standard error, both protocols, and seconds."""
    best = oracle(frame)
    free = without_labels(frame)
    lines = []
    for name in names:
        line = [name]
        for dataset in datasets:
            mine = by_draw(free, dataset, name)
            tuned = by_draw(best, dataset, name) if not best.empty else mine.iloc[:0]
            line += [_mean_text(mine), _mean_text(tuned)]
        rows = free[free["name"] == name]
        seconds = [rows[rows["dataset"] == dataset]["seconds"].median() for dataset in datasets]
        line.append(" / ".join(number_text(value, ".2g") for value in seconds))
        lines.append(line)
    return lines


def _mean_text(values: Any) -> str:
    if not len(values):
        return "–"
    found = difference(values)
    return f"{found.mean:.3f}" + (f" ± {found.error:.3f}" if np.isfinite(found.error) else "")


def number_text(value: float, form: str = ".2f") -> str:
    """A number for a table; a dash where there is none."""
    return "–" if np.isnan(value) else format(value, form)


def slope(x: Any, y: Any) -> float:
    """Exponent p of y ∝ xᵖ: least squares on logarithms.

    Examples
    --------
    >>> round(slope([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    keep = (y > 0) & np.isfinite(y)
    if len(np.unique(x[keep])) < 2:
        return float("nan")
    return float(np.polyfit(np.log(x[keep]), np.log(y[keep]), 1)[0])
