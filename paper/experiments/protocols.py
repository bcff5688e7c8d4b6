"""Ways to choose hyper-parameters, side by side, and what is computed from the rows of a table.

*No labels*: our models choose by their own rules, reference methods run at the setting their registry calls default.
*As printed*: the paper's solver and scales over the paper's grid, at the one setting with the highest mean NMI over the
draws of a data set, which needs the classes (an *oracle*: no user can do it); its reference methods are the oracle over
their grids by the mean NMI over all starts. The paper's solver without labels is the middle of its grid.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from paper.experiments.table import as_json
from paper.reference import REFERENCE_METHODS

#: how the name of the paper's solver ends where its weights are found by the level method
LEVEL = ", level method"
#: probability that an interval covers the mean
COVERAGE = 0.95

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
    """The finished rows without an error, with the column ``name`` (:func:`display_name`, and the paper's solver)."""
    frame = frame[frame["error"] == ""].copy()
    names = []
    for row in frame.itertuples():
        name = display_name(row.method, row.kernel, row.dataset.endswith("raw"))
        if row.protocol == "as printed":
            name += f" from {row.setting['init']}" + (LEVEL if "reduced" in row.setting else "")
        elif row.solver == "cutting-plane":  # of the complexity experiment
            name += " cutting planes"
        names.append(name)
    return frame.assign(name=names)


def without_labels(frame: Any) -> Any:
    """Rows in which nothing was chosen with labels."""
    return frame[frame["protocol"] == "no labels"]


def oracle(frame: Any) -> Any:
    """Of every data set and method the rows at the setting with the highest mean NMI over draws.

    ``frame`` has one row per draw and ``point``, the setting as a text. Settings that were not run on all draws cannot
    be compared.
    """
    kept = [frame.iloc[:0]]
    for _, part in frame.groupby(["dataset", "name"], sort=False):
        by_point = part.groupby("point", sort=False)["nmi"].agg(["mean", "count"])
        complete = by_point[by_point["count"] == by_point["count"].max()]
        kept.append(part[part["point"] == complete["mean"].idxmax()])
    return pd.concat([part for part in kept if len(part)] or kept[:1])


def as_reported(frame: Any) -> Any:
    """The reference methods as the paper reports them: NMI is the mean over starts, settings are tuned with labels.

    Methods without hyper-parameters have nothing to tune: their rows on the draws of the grids.
    """
    references = frame[frame["method"].isin(REFERENCES)]
    references = references.assign(nmi=references["nmi_of_starts"], point=references["setting"].map(as_json))
    grid = references[references["protocol"] == "grid"]
    fixed = references[references["method"].isin([name for name in REFERENCES if not REFERENCE_METHODS[name].grid])]
    fixed = fixed.merge(grid[["dataset", "draw"]].drop_duplicates(), on=["dataset", "draw"])
    return pd.concat([part for part in (oracle(grid), fixed) if len(part)] or [grid])


@dataclass(frozen=True)
class Estimate:
    """A mean over draws with its standard error."""

    mean: float
    error: float
    n: int

    @property
    def interval(self) -> tuple[float, float]:
        """Student's interval of the mean; unbounded for a single draw."""
        if self.n < 2:
            return -np.inf, np.inf
        reach = float(stats.t.ppf((1 + COVERAGE) / 2, self.n - 1)) * self.error
        return self.mean - reach, self.mean + reach

    def __str__(self) -> str:
        if not self.n:
            return "not run"
        draws = f"{self.n} draw{'s' if self.n > 1 else ''}"
        if self.n < 2:
            return f"{self.mean:+.3f}, {draws}"
        low, high = self.interval
        return f"{self.mean:+.3f} [{low:+.3f}, {high:+.3f}], {draws}"


def estimate(values: Any) -> Estimate:
    """Mean and standard error of values, one per draw."""
    array = np.asarray(values, dtype=np.float64)
    array = array[np.isfinite(array)]
    if not len(array):
        return Estimate(float("nan"), float("nan"), 0)
    error = array.std(ddof=1) / np.sqrt(len(array)) if len(array) > 1 else float("nan")
    return Estimate(float(array.mean().round(12)), float(np.round(error, 12)), len(array))


def by_draw(frame: Any, dataset: str, name: str, value: str = "nmi") -> Any:
    """The value of a method on the draws of a data set, indexed by draw."""
    rows = frame[(frame["dataset"] == dataset) & (frame["name"] == name)]
    return rows.groupby("draw")[value].mean()


def natural_order(text: str) -> list[Any]:
    """Sorts by the numbers in a text, where there are any.

    Examples
    --------
    >>> sorted(["10 %, raw", "5 %, raw", "10 %, PCA"], key=natural_order)
    ['5 %, raw', '10 %, PCA', '10 %, raw']
    """
    return [float(part) if part[:1].isdigit() else part for part in re.split(r"(\d[\d.]*)", text)]


def mean_text(values: Any) -> str:
    if not len(values):
        return "–"
    found = estimate(values)
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
