"""The targets for speed and memory, what was measured for each, and whether it is met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from _scale_data import Cell
from _scale_methods import OURS, OURS_ONCE, REFERENCE, SPECTRAL
from _scale_parts import FIRST_FITS
from _scale_plot import curve, slope
from _scale_summary import Row, median_of, numbers, of_cell, plain, ratio, table

#: growth in rows is judged from here on: below, the fixed cost of the search would flatter it
LARGE_ROWS = 10**5
_IMPORT_ALLOWANCE = 0.2


@dataclass(frozen=True)
class Target:
    """A figure per method that must not exceed a limit."""

    what: str
    limit: float
    measure: Callable[[str], float]
    in_default: bool = True  # whether the defaults of n_init are measured too

    def line(self) -> list[str]:
        names = OURS if self.in_default else OURS_ONCE
        values = {name: self.measure(name) for name in names}
        cells = [plain(values[name], 3) if name in values else "" for name in OURS]
        return [self.what, f"≤ {self.limit:g}", *cells, verdict({name: values[name] for name in OURS_ONCE}, self.limit)]


def verdict(values: dict[str, float], limit: float) -> str:
    if not all(np.isfinite(value) for value in values.values()):
        return "not measured"
    above = [name.split(" (")[0] for name, value in values.items() if value > limit]
    return f"**not met** ({', '.join(above)})" if above else "met"


def targets(rows: list[Row], growth: dict[str, list[Cell]]) -> list[Target]:
    def against(reference: str, cells: list[Cell], suffix: str = "") -> Callable[[str], float]:
        # the worst of the cells; not a number as long as one of them is missing
        return lambda name: float(np.max([ratio(rows, "grid", cell, name + suffix, reference) for cell in cells]))

    def memory_share(name: str) -> float:
        mine = of_cell(rows, "memory", million, name)
        return median_of(mine, "extra_mb") / (million.rows * million.features * 8 / 1e6)

    def growth_in_rows(name: str) -> float:
        return slope(*curve(rows, growth["rows"], "rows", name), at_least=LARGE_ROWS)

    million, pairs = Cell(10**6, 10), [Cell(5000, 3)]
    small = [Cell(1000, 3), Cell(1000, 10), Cell(1000, 20), Cell(10**4, 3), Cell(10**4, 20)]
    hundred = [Cell(10**4, 100), Cell(10**5, 100)]
    times = f"× {REFERENCE}"
    return [
        Target(f"N = 10⁶, m = 10: time, {times}", 0.5, against(REFERENCE, [million])),
        Target("N = 10⁶, m = 10: extra memory, share of the data", 0.3, memory_share),
        Target("N from 10⁵ to 10⁶, m = 10: slope in N", 1.05, growth_in_rows, in_default=False),
        Target(f"N = 10⁵, m = 3 and 10: time, {times}", 1.2, against(REFERENCE, [Cell(10**5, 3), Cell(10**5, 10)])),
        Target(f"N = 10³ and 10⁴, m ≤ 20: time, {times}", 2.0, against(REFERENCE, small)),
        Target(f"N = 10⁴ and 10⁵, m = 100: time, {times}", 2.5, against(REFERENCE, hundred)),
        Target(f"N = 5·10³, m = 3, linear: time, × {SPECTRAL}", 0.05, against(SPECTRAL, pairs)),
        Target(f"N = 5·10³, m = 3, RBF by Nyström: time, × {SPECTRAL}", 0.5, against(SPECTRAL, pairs, " RBF")),
    ]


def targets_table(rows: list[Row], growth: dict[str, list[Cell]]) -> tuple[list[str], list[list[str]]]:
    """Header and lines: the worst figure over the sizes named, per method; the verdict is on n_init=1."""
    return ["target", "limit", *OURS, "with n_init=1"], [target.line() for target in targets(rows, growth)]


def starts_table(rows: list[Row]) -> str:
    """Imports and first fits, CPU and wall."""
    lines = []
    reference = of_cell(rows, "import", None, "sklearn.cluster")
    imports = of_cell(rows, "import", None, "mtclust.estimators")
    more = numbers(imports) - numbers(reference) if len(imports) == len(reference) else np.array([])
    beyond = float(np.median(more)) if len(more) else float("nan")
    for module, mine in (("sklearn.cluster", reference), ("mtclust.estimators", imports)):
        lines.append([f"import {module}", *_both(mine), "", ""])
    allowed, found = f"≤ {_IMPORT_ALLOWANCE:g}", verdict({"mtclust": beyond}, _IMPORT_ALLOWANCE)
    lines.append(["import mtclust.estimators beyond sklearn.cluster", plain(beyond, 3), "", allowed, found])
    for way, limit in (("cold", 10.0), ("warm", 1.0)):
        for name in FIRST_FITS:
            mine = of_cell(rows, "first fit", None, f"{way}: {name}")
            found = verdict({"DMTRC": median_of(mine)}, limit)
            lines.append([f"{way} first fit, {name}", *_both(mine), f"≤ {limit:g}", found])
    return table(["in a new process", "CPU seconds", "wall seconds", "limit", "target"], lines)


def _both(rows: list[Row]) -> list[str]:
    return [plain(median_of(rows, column), 3) for column in ("cpu_seconds", "wall_seconds")]
