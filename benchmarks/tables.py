"""Ordinary tables, single ones and ones of several tasks: our defaults against what a user has instead.

    MTCLUST_DATA=/path/to/data python benchmarks/tables.py --group decided     sets that decisions may look at
    MTCLUST_DATA=/path/to/data python benchmarks/tables.py --group held-out    once, when everything is decided
    python benchmarks/tables.py --sets iris penguins_year --methods DMTRC "k-means, pooled" --draws 1 --out /tmp/quick

Needs `pip install "mtclust[benchmarks]"`. Every method is told the number of clusters and nothing else. Sets that lie
under MTCLUST_DATA are left out without it. One thread; finished fits are kept and an interrupted run goes on: remove
runs.csv to measure anew. Writes runs.csv and table.md: means with their standard errors over sets, wins and losses
against every peer, and every set. To decide something, two minutes are enough:

    MTCLUST_DATA=/path/to/data python benchmarks/tables.py --draws 1 --methods DSTC DMTRC --out /tmp/quick
"""

from __future__ import annotations

import argparse
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
from _tables import Rows, made_by, markdown_table
from _tables_methods import METHODS
from _tables_read import Table, data_home
from _tables_sets import DECIDED_ON, GROUPS, HELD_OUT, SETS, SIXTEEN
from mtclust.metrics import macro_nmi, per_task

KEYS = ("set", "draw", "method")
VALUES = ("nmi", "ari", "pari", "seconds", "rows", "tasks", "tried", "chosen")
MEASURES = {
    "nmi": "NMI, mean over tasks",
    "ari": "ARI, mean over tasks",
    "pari": "pARI: ARI over the rows of all tasks at once, high where ids mean the same in every task",
    "seconds": "CPU seconds",
}
#: scores of a set that differ by less count as equal
EQUAL = 0.005
_NOTES = (
    "Means over draws. Every method is told the number of clusters over all tasks together and nothing else. "
    "`pooled`: all rows at once; `per task`: each task alone, so that its pARI means little; `within tasks`: all rows "
    "at once after standardising the columns of every task. CPU seconds on one thread; ± standard errors over sets."
)


def scores(table: Table, labels: Any) -> dict[str, float]:
    """Means over tasks, and the agreement over all rows at once: do ids mean the same everywhere?"""
    return {
        "nmi": macro_nmi(table.y, labels, table.tasks),
        "ari": float(np.mean(list(per_task(adjusted_rand_score, table.y, labels, table.tasks).values()))),
        "pari": float(adjusted_rand_score(table.y, labels)),
    }


def run(name: str, seed: int, methods: list[str], rows: Rows) -> None:
    """Every method that is still missing on one draw of a set."""
    kind = SETS[name].kind
    missing = [
        method
        for method in methods
        if (kind == "multi" or METHODS[method].single) and not rows.has(set=name, draw=seed, method=method)
    ]
    if not missing:
        return
    table = SETS[name].load(seed)
    for method in missing:
        begin = time.process_time()
        answer = METHODS[method].run(table, seed)
        seconds = time.process_time() - begin
        size = {"rows": len(table.y), "tasks": len(np.unique(table.tasks))}
        rows.add(
            set=name, draw=seed, method=method, seconds=seconds, tried=answer.tried, chosen=answer.chosen,
            **scores(table, answer.labels), **size,
        )  # fmt: skip


def write_report(rows: list[dict[str, str]], path: Path) -> None:
    """The page: the two groups of sets apart, single tables and several tasks apart."""
    frame = pd.DataFrame([row for row in rows if row["set"] in SETS])
    frame = frame.astype({**dict.fromkeys(MEASURES, float), "draw": int})
    frame["kind"] = [SETS[name].kind for name in frame["set"]]
    page = [made_by(), "", _NOTES, ""]
    groups = (("Sets looked at while deciding", DECIDED_ON), ("Sets run once at the end", HELD_OUT))
    page += _means(frame) + _wins(frame)
    for title, names in groups:
        part = frame[frame["set"].isin(names)]
        if len(part):
            page += [f"## {title}", "", *_group(part)]
    page += _sixteen(frame)
    page += _choices(frame)
    path.write_text("\n".join(page).rstrip() + "\n")
    print(path.read_text())


def _parts(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """Single tables and several tasks, each decided on and held out."""
    pairs = itertools.product(("single", "multi"), (DECIDED_ON, HELD_OUT))
    return [frame[(frame["kind"] == kind) & frame["set"].isin(names)] for kind, names in pairs]


def _with_error(values: pd.Series) -> str:
    error = "" if len(values) < 2 else f" ± {values.std(ddof=1) / np.sqrt(len(values)):.3f}".replace("0.", ".")
    return f"{values.mean():.3f}{error}"


def _means(frame: pd.DataFrame) -> list[str]:
    header = ["method", "single, decided on", "single, held out", "several, decided on", "several, held out"]
    lines = []
    for method in METHODS:
        cells = []
        for part in _parts(frame):
            own = part[part["method"] == method].groupby("set")[["nmi", "pari", "seconds"]].mean()
            if not len(own) or len(own) < part["set"].nunique():
                cells.append("")
                continue
            second = "" if (part["kind"] == "single").all() else f" / {_with_error(own['pari'])}"
            cells.append(f"{_with_error(own['nmi'])}{second} ({own['seconds'].mean():.2f} s)")
        if any(cells):
            lines.append([method, *cells])
    tried = frame[frame["tried"].fillna("") != ""].astype({"tried": float}).groupby("method")["tried"].mean()
    counted = ", ".join(f"{method} {tried[method]:.1f}" for method in METHODS if method in tried)
    title = "## Means: NMI, for several tasks also pARI, and CPU seconds"
    page = [title, "", *markdown_table(header, lines), ""]
    return [*page, f"Candidates of a fit: {counted}.", ""] if counted else page


def _wins(frame: pd.DataFrame) -> list[str]:
    """Set by set, ours against each peer: better : worse, and the mean difference."""
    header = ["ours", "peer", "single, decided on", "single, held out", "several, decided on", "several, held out"]
    lines = []
    peers = [name for name, method in METHODS.items() if not method.ours]
    for ours, peer in itertools.product(("DSTC", "DMTRC"), peers):
        cells = []
        for part in _parts(frame):
            single = bool((part["kind"] == "single").all())
            found = []
            for measure in ("nmi",) if single else ("nmi", "pari"):
                table = part.pivot_table(index="set", columns="method", values=measure, aggfunc="mean")
                if single == (ours == "DSTC") and {ours, peer} <= set(table):
                    difference = (table[ours] - table[peer]).dropna()
                    wins, losses = (difference > EQUAL).sum(), (difference < -EQUAL).sum()
                    found.append(f"{wins} : {losses}, {_with_error(difference)}")
            cells.append(" / ".join(found))
        if any(cells):
            lines.append([ours, peer, *cells])
    if not lines:
        return []
    title = f"## Set by set: better : worse (by more than {EQUAL}) and the mean difference, in NMI / pARI"
    return [title, "", *markdown_table(header, lines), ""]


def _group(frame: pd.DataFrame) -> list[str]:
    page = []
    for kind, measures in (("single", ("nmi", "ari", "seconds")), ("multi", tuple(MEASURES))):
        part = frame[frame["kind"] == kind]
        heading = "Single tables" if kind == "single" else "Several tasks"
        for measure in measures if len(part) else ():
            page += [f"### {heading}: {MEASURES[measure]}", "", *_wide(part, measure), ""]
    return page


def _wide(frame: pd.DataFrame, measure: str) -> list[str]:
    """A row per set and the mean over sets, a column per method; a mean only where no set is missing."""
    table = frame.pivot_table(index="set", columns="method", values=measure, aggfunc="mean")
    methods = [name for name in METHODS if name in table.columns]
    table = table.loc[[name for name in SETS if name in table.index], methods]
    digits = 2 if measure == "seconds" else 3
    lines = [[name, *(_number(value, digits) for value in row)] for name, row in zip(table.index, table.to_numpy())]
    mean = [_number(table[method].mean(skipna=False), digits) for method in methods]
    return markdown_table(["set", *methods], [*lines, ["**mean**", *mean]])


def _number(value: float, digits: int) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}f}"


def _sixteen(frame: pd.DataFrame) -> list[str]:
    """The mean over the sixteen single tables, once all of them have been run."""
    part = frame[frame["set"].isin(SIXTEEN)]
    if part["set"].nunique() < len(SIXTEEN):
        return []
    return [f"## The sixteen single tables: {MEASURES['nmi']}", "", *_wide(part, "nmi"), ""]


def _choices(frame: pd.DataFrame) -> list[str]:
    told = frame[frame["chosen"].fillna("") != ""]
    if not len(told):
        return []
    lines = [[row.set, row.draw, row.method, row.chosen] for row in told.itertuples()]
    return ["## What was chosen", "", *markdown_table(["set", "draw", "method", "chosen"], lines)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=tuple(GROUPS), default="decided")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), metavar="SET", help="these, whatever their group")
    parser.add_argument("--methods", nargs="+", choices=tuple(METHODS), metavar="METHOD", default=tuple(METHODS))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/tables"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        for name in options.sets or GROUPS[options.group]:
            if SETS[name].files and data_home() is None:
                print(f"{name} is left out: MTCLUST_DATA is not set", flush=True)
                continue
            for seed in range(options.draws):
                run(name, seed, list(options.methods), rows)
            print(name, flush=True)
    write_report(rows.read(), options.out / "table.md")


if __name__ == "__main__":
    main()
