"""The page, the plot and the report of a table in a new process, for the everyday benchmark."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

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


def _medians(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """A row per case and a column per method, in their order."""
    table = frame.pivot_table(index="case", columns="method", values=column, aggfunc="median", sort=False)
    return table[list(dict.fromkeys(frame["method"]))]


def _cells(values: Iterable[float], digits: int = 2) -> list[str]:
    return ["" if pd.isna(value) else f"{value:.{digits}f}" for value in values]


def _sizes(frame: pd.DataFrame) -> list[str]:
    if not len(frame):
        return []
    seconds, scores = _medians(frame, "cpu_seconds"), _medians(frame, "nmi")
    ratios = seconds["DMTFC"] / seconds["DMTRC"]
    draws = frame.groupby("case")["draw"].nunique()
    lines = []
    for case in seconds.index:
        aim = f"≤ {LIMITS[case]:g}" if case in LIMITS else ""
        times = [*_cells(seconds.loc[case]), *_cells([ratios[case]], 1)]
        lines.append([case, str(draws[case]), aim, *times, *_cells(scores.loc[case], 3)])
    names = [f"{name}, s" for name in seconds], [f"{name}, NMI" for name in scores]
    header = ["case", "draws", "aim", *names[0], "DMTFC / DMTRC", *names[1]]
    return ["## Everyday sizes", "", *markdown_table(header, lines), ""]


def _starts(frame: pd.DataFrame) -> list[str]:
    imports = frame[frame["part"] == "import"].groupby("case")["wall_seconds"].median()
    first = frame[frame["part"] == "first fit"].groupby("case", sort=False)["wall_seconds"].median()
    if not len(first):
        return []
    beyond = imports["mtclust.estimators"] - imports["sklearn.cluster"]
    lines = [["from mtclust import DMTRC beyond sklearn.cluster", f"≤ {IMPORT_LIMIT:g}", *_cells([beyond])]]
    lines += [[f"first fit of a process, {case}", f"≤ {FIRST_LIMIT:g}", *_cells([s])] for case, s in first.items()]
    return ["## A new process, wall seconds", "", *markdown_table(["what", "aim", "seconds"], lines), ""]


def _reports(frame: pd.DataFrame) -> list[str]:
    lines = []
    for case, part in frame.groupby("case", sort=False):
        seconds = _cells(part[["wall_seconds", "cpu_seconds"]].median(), 1)
        lines.append([f"mtclust fit {case}", str(len(part)), f"≤ {REPORT_LIMIT:g}", *seconds])
    table = markdown_table(["command", "runs", "aim", "wall s", "CPU s"], lines)
    return ["## From a file to its report, in a new process", "", *table, ""] if lines else []


def _growth(frame: pd.DataFrame, out: Path) -> list[str]:
    """Time and NMI by rows, in a table and in growth.svg."""
    if not len(frame):
        return []
    frame = frame.astype({"case": int}).sort_values("case", kind="stable")
    seconds, scores = _medians(frame, "cpu_seconds"), _medians(frame, "nmi")
    figure = Figure(figsize=(7, 6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for name, (colour, marker) in zip(
        seconds, (("#555555", "x"), ("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"))
    ):
        above.loglog(seconds.index, seconds[name], color=colour, marker=marker, label=name)
        below.semilogx(scores.index, scores[name], color=colour, marker=marker)
    above.set_ylabel("CPU seconds of one fit")
    below.set_ylabel("NMI, mean over tasks")
    below.set_ylim(0, 1.02)
    below.set_xlabel("rows")
    above.legend(frameon=False)
    for panel in (above, below):
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(out / "growth.svg", metadata={"Date": None})
    header = ["rows", *(f"{name}, s" for name in seconds), *(f"{name}, NMI" for name in scores)]
    lines = [[f"{n:,}", *_cells(seconds.loc[n], 3), *_cells(scores.loc[n], 3)] for n in seconds.index]
    picture = "![time and NMI by rows](growth.svg)"
    return ["## Growth with the rows", "", picture, "", *markdown_table(header, lines), ""]
