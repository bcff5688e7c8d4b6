"""The tables of how_sure.py."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from _how_sure_parts import rank_correlation
from _tables import made_by, markdown_table

Row = dict[str, str]


def _read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _mean(rows: list[Row], column: str) -> float:
    values = [float(row[column]) for row in rows if row[column] not in ("", "nan")]
    return float(np.mean(values)) if values else float("nan")


def _shown(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _sets(rows: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["set"] for row in rows))


def _by_set(rows: list[Row], line: Callable[[list[Row]], list[Any]]) -> list[list[Any]]:
    lines = [[name, *line([row for row in rows if row["set"] == name])] for name in _sets(rows)]
    return [*lines, ["all", *line(rows)]]


def _calibration(out: Path) -> list[str]:
    rows = _read(out / "calibration.csv")
    if not rows:
        return []
    methods = list(dict.fromkeys(row["method"] for row in rows))

    def line(own: list[Row]) -> list[str]:
        cells = []
        for method in methods:
            mine = [row for row in own if row["method"] == method]
            cells += [_shown(_mean(mine, column)) for column in ("ece", "confidence", "accuracy")]
        return cells

    header = ["set", *(f"{method} {what}" for method in methods for what in ("ECE", "confidence", "accuracy"))]
    curve = _reliability(rows, methods, out)
    return ["## Calibration", "", *markdown_table(header, _by_set(rows, line)), "", *curve, ""]


def _reliability(rows: list[Row], methods: list[str], out: Path) -> list[str]:
    """Over all sets and draws: of rows with a confidence in a tenth, how many are in the right class."""
    lines, table = [], []
    for method in methods:
        sums = np.zeros((10, 3))
        for row in rows:
            if row["method"] == method:
                sums += [[float(value) for value in cell.split(":")] for cell in row["bins"].split()]
        for b, (count, sure, right) in enumerate(sums):
            if count:
                entry = [method, f"{b / 10:.1f} to {(b + 1) / 10:.1f}", int(count), sure / count, right / count]
                lines.append(entry)
                table.append([*entry[:3], f"{entry[3]:.3f}", f"{entry[4]:.3f}"])
    with (out / "reliability.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["method", "confidence", "rows", "mean_confidence", "accuracy"])
        writer.writerows([[*entry[:3], round(entry[3], 6), round(entry[4], 6)] for entry in lines])
    return markdown_table(["method", "confidence", "rows", "mean confidence", "in the right class"], table)


def _stability(out: Path) -> list[str]:
    rows = _read(out / "stability.csv")
    if not rows:
        return []
    sets, clusters = [row for row in rows if row["what"] == "set"], [row for row in rows if row["what"] != "set"]
    table = _by_set(sets, lambda own: [_shown(_mean(own, what)) for what in ("stability", "truth", "auc", "ratio")])
    ranks = {
        what: rank_correlation([float(r["stability"]) for r in own], [float(r["truth"]) for r in own])
        for what, own in (("sets", sets), ("clusters", [row for row in clusters if row["stability"] != "nan"]))
    }
    header = ["set", "stability", "ARI with classes", "AUC of rows", "time over that of the fit"]
    words = (
        f"Rank correlation of stability with agreement to the classes: {ranks['sets']:.2f} over {len(sets)} fits, "
        f"{ranks['clusters']:.2f} over {len(clusters)} clusters (Jaccard similarity with the most similar class). "
        "AUC of rows: how well the stability of a row tells rows in the right class from the others."
    )
    return ["## Stability", "", *markdown_table(header, table), "", words, ""]


def _outliers(out: Path) -> list[str]:
    rows = _read(out / "outliers.csv")
    if not rows:
        return []
    kinds, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("planted", "method"))

    def line(own: list[Row]) -> list[str]:
        cells = []
        for kind in kinds:
            parts = [row for row in own if row["planted"] == kind]
            cells += [_shown(_mean([row for row in parts if row["method"] == method], "auc")) for method in methods]
            ours = [row for row in parts if row["method"] == "mtclust"]
            cells += [_shown(_mean(ours, "found")), _shown(_mean(ours, "false"))]
        return cells

    header = ["set"]
    for kind in kinds:
        header += [f"{kind}: {method}" for method in methods] + ["found at the cut", "false alarms"]
    return ["## Outliers", "", *markdown_table(header, _by_set(rows, line)), ""]


def _known(out: Path) -> list[str]:
    rows = _read(out / "known.csv")
    if not rows:
        return []
    columns = ("nmi", "nmi_known", "right", "kept", "ratio")
    low = [row for row in rows if _mean([r for r in rows if r["set"] == row["set"]], "nmi") < 0.8]
    header = ["set", "NMI", "NMI with 5 % known", "in the class they are named after", "known rows kept", "time ratio"]
    table = _by_set(rows, lambda own: [_shown(_mean(own, column)) for column in columns])
    ratios = sorted(float(row["ratio"]) for row in rows)
    words = f"Median time ratio {np.median(ratios):.2f}."
    if low:
        gained = [_mean(own, "nmi_known") - _mean(own, "nmi") for own in (
            [row for row in low if row["set"] == name] for name in _sets(low)
        )]  # fmt: skip
        words = (
            f"Sets below .8 without known rows: mean {_mean(low, 'nmi'):.3f}, with them {_mean(low, 'nmi_known'):.3f}; "
            f"higher on {sum(gain > 0 for gain in gained)} of {len(gained)}. " + words
        )
    return ["## Known rows", "", *markdown_table(header, table), "", words, ""]


def write_report(out: Path) -> None:
    """table.md from whatever parts there are."""
    lines = [made_by(), "", *_calibration(out), *_stability(out), *_outliers(out), *_known(out)]
    (out / "table.md").write_text("\n".join(lines))
    print((out / "table.md").read_text())
