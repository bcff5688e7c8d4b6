"""NMI against each constant of the rules that choose without labels, from the rows of without_labels.py.

    python benchmarks/rule_constants.py        reads results/without_labels/runs.csv, writes rule_constants.svg and .md

- the limits on Z and V: which of the coupled and single-task labels are taken
- the tolerance on the macro leave-one-out R²: which of the size candidates is taken
- the share of the largest gap that λ must reach: read off the oracle's grid of widths and λ (full coupling)
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

from _tables import write_markdown
from mtclust.selection.coupling import COUPLING_LIMIT, SIMILARITY_LIMIT
from mtclust.selection.kernel import NEARLY
from mtclust.selection.sizes import TOLERANCE

mpl.use("Agg")

Z_LIMITS = [-np.inf, -0.5, 0.0, 0.5, 1.0, 1.645, 2.33, 3.0, 5.0, np.inf]
V_LIMITS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
TOLERANCES = [0.0, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05]
SHARES = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
SIZES = ("balanced", "released", "free", "estimated")


def coupled_nmi(runs: pd.DataFrame, z_limit: float, v_limit: float) -> pd.Series:
    """NMI per data set if coupling is accepted up to these limits (always where both labellings agree)."""
    accept = ((runs["Z"] <= z_limit) & (runs["V"] >= v_limit)) | np.isclose(runs["full"], runs["DSTC"])
    return runs["full"].where(accept, runs["DSTC"]).groupby(runs["dataset"], sort=False).mean()


def sized_nmi(details: list[dict[str, Any]], tolerance: float) -> float:
    by_set: dict[str, list[float]] = {}
    for detail in details:
        best = max(detail[f"score {name}"] for name in SIZES)
        chosen = next(name for name in SIZES if detail[f"score {name}"] >= best - tolerance)
        by_set.setdefault(detail["dataset"], []).append(detail[f"nmi {chosen}"])
    return float(np.mean([np.mean(values) for values in by_set.values()]))


def lambda_nmi(details: list[dict[str, Any]], grid: pd.DataFrame, share: float) -> float:
    """NMI on the oracle's grid at the λ (nearest of the grid) that a share of the largest gap leads to."""
    scores = []
    for detail in details:
        gaps = [row for row in detail["gaps"] if row[2] is not None]
        top = max(gaps, key=lambda row: row[2])
        near = [row[1] for row in gaps if row[0] == top[0] and row[2] >= share * top[2]]
        wanted = min(near) if top[2] > 0 else 2.0**-4
        mine = grid[(grid["dataset"] == detail["dataset"]) & (grid["draw"] == detail["draw"])]
        mine = mine[np.isclose(mine["width"], top[0] if top[0] is not None else 1.0)]
        if len(mine):
            nearest = (np.log2(mine["lambda"]) - np.log2(wanted)).abs().idxmin()
            scores.append(mine.loc[nearest, "nmi"])
    return float(np.mean(scores)) if scores else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/without_labels"))
    options = parser.parse_args()
    table = pd.read_csv(options.out / "runs.csv")
    auto = table[table["rule"] == "auto"]
    details = [
        json.loads(d) | {"dataset": s, "draw": n} for d, s, n in zip(auto["detail"], auto["dataset"], auto["draw"])
    ]
    wide = table[table["rule"].isin(["DSTC", "full"])].pivot_table("nmi", ["dataset", "draw"], "rule", sort=False)
    runs = wide.reset_index().merge(pd.DataFrame(details)[["dataset", "draw", "Z", "V"]], on=["dataset", "draw"])
    sized = [detail for detail in details if "sizes" in detail]
    grid = table[table["rule"].str.startswith("width")].copy()
    parsed = grid["rule"].str.extract(r"width (\S+) lambda (\S+)").astype(float)
    grid["width"], grid["lambda"] = parsed[0], parsed[1]
    with_grid = [
        detail
        for detail in details
        if ((grid["dataset"] == detail["dataset"]) & (grid["draw"] == detail["draw"])).any()
    ]

    panels = {
        "limit on Z": (Z_LIMITS, [coupled_nmi(runs, z, SIMILARITY_LIMIT).mean() for z in Z_LIMITS], COUPLING_LIMIT),
        "limit on V": (V_LIMITS, [coupled_nmi(runs, COUPLING_LIMIT, v).mean() for v in V_LIMITS], SIMILARITY_LIMIT),
        "tolerance of sizes": (TOLERANCES, [sized_nmi(sized, t) for t in TOLERANCES], TOLERANCE),
        "share of the gap": (SHARES, [lambda_nmi(with_grid, grid, s) for s in SHARES], NEARLY),
    }
    worst = {
        "limit on Z": [_worst(runs, z, SIMILARITY_LIMIT) for z in Z_LIMITS],
        "limit on V": [_worst(runs, COUPLING_LIMIT, v) for v in V_LIMITS],
    }
    draw(panels, options.out)
    lines = [
        [
            name,
            f"{value:g}",
            f"{nmi:.4f}",
            f"{worst[name][i]:+.3f}" if name in worst else "",
            "x" if value == used else "",
        ]
        for name, (values, scores, used) in panels.items()
        for i, (value, nmi) in enumerate(zip(values, scores))
    ]
    header = ["constant", "value", "mean NMI", "worst data set against DSTC", "in use"]
    write_markdown(options.out / "rule_constants.md", header, lines, "Mean over data sets of the mean over draws.")


def _worst(runs: pd.DataFrame, z_limit: float, v_limit: float) -> float:
    single = runs["DSTC"].groupby(runs["dataset"], sort=False).mean()
    return float((coupled_nmi(runs, z_limit, v_limit) - single).min())


def draw(panels: dict[str, Any], out: Path) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(panels), figsize=(13, 3.2), layout="constrained")
    for ax, (name, (values, scores, used)) in zip(axes, panels.items()):
        finite = np.clip(values, -1.5, 7)
        ax.plot(finite, scores, "o-", color="#0072B2")
        ax.axvline(used, color="#D55E00", linestyle=":")
        ax.set_xlabel(name)
        ax.set_title(f"in use: {used:g}", fontsize=10)
    axes[0].set_ylabel("mean NMI")
    figure.savefig(out / "rule_constants.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
