"""The page, the plot and the report of a table in a new process, for the everyday benchmark."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from _tables import Rows, made_by, markdown_table

#: the table of MTCLUST_DATA that is taken
NAME, TASK = "customers.csv", "shop"


def _made(path: Path) -> Path:
    """A small table, where a look is enough."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=120)
    lines = [f"{'abc'[k % 3]},{5 * kind[k] + rng.normal():.3f},{rng.normal():.3f}" for k in range(120)]
    path.write_text("\n".join(["shop,spent,age", *lines]) + "\n", encoding="utf-8")
    return path


def measure_report(rows: Rows, repeats: int, *, quick: bool) -> None:
    """Wall and CPU seconds of the command, the report written; once before, so that compiled code is there."""
    home = os.environ.get("MTCLUST_DATA")
    if home is None and not quick:
        print("report: MTCLUST_DATA does not say where the tables are; left out")
        return
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        table = _made(place / "made.csv") if quick else Path(str(home)) / "tables" / NAME
        for repeat in range(0 if quick else -1, repeats):
            if rows.has(part="report", case=table.name, draw=max(repeat, 0)):
                continue
            command = [sys.executable, "-m", "mtclust", "fit", str(table), "--task-column", TASK]
            before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run([*command, "--out", str(place / f"out{repeat}")], check=True, capture_output=True)
            wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
            if repeat >= 0:
                cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                rows.add(
                    part="report", case=table.name, method="mtclust fit", draw=repeat, cpu_seconds=cpu,
                    wall_seconds=wall, nmi="", detail="",
                )  # fmt: skip
                print(f"report: {table.name}, {wall:.1f} s", flush=True)


mpl.use("Agg")

#: CPU seconds of DMTRC with defaults that we aim at, by case
LIMITS = {
    "300 rows, 3 tasks": 0.5,
    "1 000 rows, 3 tasks": 1.0,
    "1 000 rows, 10 tasks": 1.0,
    "2 000 rows, 3 tasks": 2.0,
    "2 000 rows, 30 tasks": 2.0,
    "30 tasks × 12 rows": 1.0,
}
IMPORT_LIMIT, FIRST_LIMIT, REPORT_LIMIT = 0.1, 1.0, 20.0
_NOTES = (
    "CPU seconds on one thread with compiled code warm, medians over draws; NMI is the mean over tasks. Everything is "
    "chosen by the model, only the number of clusters is given. KMeans() runs task by task as scikit-learn gives it."
)


def write_report(rows: list[dict[str, str]], out: Path) -> None:
    frame = pd.DataFrame(rows)
    for name in ("cpu_seconds", "wall_seconds", "nmi"):
        frame[name] = pd.to_numeric(frame[name])
    page = [made_by(), "", _NOTES, ""]
    page += _sizes(frame[frame["part"] == "sizes"])
    page += _starts(frame)
    page += _reports(frame[frame["part"] == "report"])
    page += _growth(frame[frame["part"] == "growth"], out)
    (out / "table.md").write_text("\n".join(page).rstrip() + "\n")
    print((out / "table.md").read_text())


def _median(frame: pd.DataFrame, method: str, case: str, column: str) -> float:
    chosen = frame[(frame["method"] == method) & (frame["case"] == case)]
    return float(chosen[column].median())


def _cell(value: float, digits: int = 2) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def _sizes(frame: pd.DataFrame) -> list[str]:
    if not len(frame):
        return []
    methods = list(dict.fromkeys(frame["method"]))
    header = [
        "case",
        "draws",
        "aim",
        *(f"{name}, s" for name in methods),
        "DMTFC / DMTRC",
        *(f"{name}, NMI" for name in methods),
    ]
    lines = []
    for case in dict.fromkeys(frame["case"]):
        seconds = {name: _median(frame, name, case, "cpu_seconds") for name in methods}
        scores = [_cell(_median(frame, name, case, "nmi"), 3) for name in methods]
        ratio = seconds.get("DMTFC", float("nan")) / seconds.get("DMTRC", float("nan"))
        draws = frame[frame["case"] == case]["draw"].nunique()
        aim = f"≤ {LIMITS[case]:g}" if case in LIMITS else ""
        lines.append([case, str(draws), aim, *map(_cell, seconds.values()), _cell(ratio, 1), *scores])
    return ["## Everyday sizes", "", *markdown_table(header, lines), ""]


def _starts(frame: pd.DataFrame) -> list[str]:
    imports = frame[frame["part"] == "import"].groupby("case")["wall_seconds"].median()
    first = frame[frame["part"] == "first fit"]
    if not len(first):
        return []
    beyond = imports["mtclust.estimators"] - imports["sklearn.cluster"]
    lines = [["from mtclust import DMTRC beyond sklearn.cluster", f"≤ {IMPORT_LIMIT:g}", _cell(beyond)]]
    for case, part in first.groupby("case", sort=False):
        lines.append([f"first fit of a process, {case}", f"≤ {FIRST_LIMIT:g}", _cell(part["wall_seconds"].median())])
    return ["## A new process, wall seconds", "", *markdown_table(["what", "aim", "seconds"], lines), ""]


def _reports(frame: pd.DataFrame) -> list[str]:
    lines = []
    for case, part in frame.groupby("case", sort=False):
        seconds = [_cell(part[name].median(), 1) for name in ("wall_seconds", "cpu_seconds")]
        lines.append([f"mtclust fit {case}", str(len(part)), f"≤ {REPORT_LIMIT:g}", *seconds])
    table = markdown_table(["command", "runs", "aim", "wall s", "CPU s"], lines)
    return ["## From a file to its report, in a new process", "", *table, ""] if lines else []


def _growth(frame: pd.DataFrame, out: Path) -> list[str]:
    """Time and NMI by rows, and how each step compares with growth in proportion to the rows."""
    if not len(frame):
        return []
    methods = list(dict.fromkeys(frame["method"]))
    sizes = sorted({int(case) for case in frame["case"]})
    seconds = {name: [_median(frame, name, str(size), "cpu_seconds") for size in sizes] for name in methods}
    scores = {name: [_median(frame, name, str(size), "nmi") for size in sizes] for name in methods}
    _plot(sizes, seconds, scores, out / "growth.svg")
    header = ["rows", *(f"{name}, s" for name in methods), *(f"{name}, NMI" for name in methods)]
    lines = [
        [
            f"{size:,}",
            *(_cell(seconds[name][i], 3) for name in methods),
            *(_cell(scores[name][i], 3) for name in methods),
        ]
        for i, size in enumerate(sizes)
    ]
    return [
        "## Growth with the rows",
        "",
        "![time and NMI by rows](growth.svg)",
        "",
        *markdown_table(header, lines),
        "",
    ]


def _plot(sizes: list[int], seconds: dict[str, list[float]], scores: dict[str, list[float]], path: Path) -> None:
    import matplotlib.pyplot as plt

    looks = (("#555555", "x"), ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
    for (name, times), (colour, marker) in zip(seconds.items(), looks):
        above.loglog(sizes, times, color=colour, marker=marker, label=name)
        below.semilogx(sizes, scores[name], color=colour, marker=marker)
    above.set_ylabel("CPU seconds of one fit")
    below.set_ylabel("NMI, mean over tasks")
    below.set_ylim(0, 1.02)
    below.set_xlabel("rows")
    above.legend(frameon=False)
    for panel in (above, below):
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
