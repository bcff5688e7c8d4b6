"""The page of the benchmark on tables: the two groups of sets apart, single tables and several tasks apart."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd

from _tables import made_by, markdown_table
from _tables_methods import METHODS
from _tables_sets import DECIDED_ON, HELD_OUT, SETS, SIXTEEN

MEASURES = {
    "nmi": "NMI, mean over tasks",
    "ari": "ARI, mean over tasks",
    "pari": "pARI: ARI over the rows of all tasks at once, high where ids mean the same in every task",
    "seconds": "CPU seconds",
}
_NUMBERS = ["nmi", "ari", "pari", "seconds"]
_NOTES = (
    "Means over draws. Every method is told the number of clusters over all tasks together and nothing else. "
    "`pooled`: all rows at once; `per task`: each task alone, so that its pARI means little; `within tasks`: all rows "
    "at once after standardising the columns of every task. CPU seconds on one thread."
)


def write_report(rows: list[dict[str, str]], path: Path) -> None:
    frame = pd.DataFrame(rows).astype({**dict.fromkeys(_NUMBERS, float), "draw": int})
    frame["kind"] = [SETS[name].kind for name in frame["set"]]
    page = [made_by(), "", _NOTES, ""]
    groups = (("Sets looked at while deciding", DECIDED_ON), ("Sets run once at the end", HELD_OUT))
    page += _means(frame)
    for title, names in groups:
        part = frame[frame["set"].isin(names)]
        if len(part):
            page += [f"## {title}", "", *_group(part)]
    page += _sixteen(frame)
    page += _choices(frame)
    path.write_text("\n".join(page).rstrip() + "\n")
    print(path.read_text())


def _means(frame: pd.DataFrame) -> list[str]:
    """One row per method, the means over the sets of each group that it was run on all of."""
    header = ["method", "single, decided on", "single, held out", "several, decided on", "several, held out"]
    lines = []
    for method in METHODS:
        cells = []
        for kind, names in itertools.product(("single", "multi"), (DECIDED_ON, HELD_OUT)):
            part = frame[(frame["kind"] == kind) & frame["set"].isin(names)]
            own = part[part["method"] == method].groupby("set")[["nmi", "pari", "seconds"]].mean()
            if not len(own) or len(own) < part["set"].nunique():
                cells.append("")
                continue
            nmi, pari, seconds = own.mean()
            second = "" if kind == "single" else f" / {pari:.3f}"
            cells.append(f"{nmi:.3f}{second} ({seconds:.2f} s)")
        if any(cells):
            lines.append([method, *cells])
    title = "## Means: NMI, for several tasks also pARI, and CPU seconds"
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
