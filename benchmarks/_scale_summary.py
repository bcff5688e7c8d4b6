"""Reading the rows of the scale benchmark: medians, ratios within a draw, and how they are written."""

from __future__ import annotations

import numpy as np

from _scale_data import Cell

Row = dict[str, str]


def of_cell(rows: list[Row], part: str, cell: Cell | None, method: str) -> list[Row]:
    """The draws of one method on one cell, in order; ``None``: of a part without sizes."""
    key = {} if cell is None else {name: str(value) for name, value in cell.key.items()}
    key |= {"part": part, "method": method}
    mine = [row for row in rows if all(row[name] == value for name, value in key.items())]
    return sorted(mine, key=lambda row: int(row["repeat"]))


def numbers(rows: list[Row], column: str = "cpu_seconds") -> np.ndarray:
    return np.array([float(row[column]) for row in rows if row[column] != ""])


def median_of(rows: list[Row], column: str = "cpu_seconds") -> float:
    found = numbers(rows, column)
    return float(np.median(found)) if len(found) else float("nan")


def mean_of(rows: list[Row], column: str = "nmi") -> float:
    found = numbers(rows, column)
    return float(np.mean(found)) if len(found) else float("nan")


def ratio(rows: list[Row], part: str, cell: Cell, method: str, reference: str, column: str = "cpu_seconds") -> float:
    """Median over draws of the ratio within a draw."""
    of = {row["repeat"]: float(row[column]) for row in of_cell(rows, part, cell, reference) if row[column] != ""}
    mine = [row for row in of_cell(rows, part, cell, method) if row["repeat"] in of and row[column] != ""]
    ratios = [float(row[column]) / of[row["repeat"]] for row in mine]
    return float(np.median(ratios)) if ratios else float("nan")


def seconds(value: float) -> str:
    """Three significant digits, milliseconds where short; a dash where not measured."""
    if not np.isfinite(value):
        return "–"
    return f"{value * 1000:.3g} ms" if value < 0.1 else f"{value:.3g} s"


def plain(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "–"


def table(header: list[str], lines: list[list[str]]) -> str:
    body = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*body, *("| " + " | ".join(line) + " |" for line in lines)])
