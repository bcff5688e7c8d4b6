"""What a fit costs on tables of everyday size, everything chosen by the model, and how that grows to a million rows.

    python benchmarks/everyday.py                                     all of it
    python benchmarks/everyday.py --parts sizes --draws 1             one draw of the everyday sizes
    python benchmarks/everyday.py --parts growth --most-rows 3000     growth as far as that
    MTCLUST_DATA=… python benchmarks/everyday.py --parts report       from customers.csv to its report
    python benchmarks/everyday.py --quick --out /tmp/everyday         a look at everything in small

One process and one thread, compiled code warm. Methods run one after the other on the same draw, medians over draws.
Finished fits are kept and an interrupted run goes on: remove runs.csv to measure anew. Writes runs.csv, table.md and
growth.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

import _one_thread
from _everyday_fits import (
    CELLS,
    DIGITS,
    ESTIMATORS,
    GROWTH_ROWS,
    METHODS,
    QUICK_CELL,
    REFERENCE,
    fit,
    growth_cell,
    load,
)
from _everyday_report import measure_report, write_report
from _measure import child, timed
from _scale_data import Cell, Mixture, draw
from _tables import Rows
from mtclust.metrics import macro_nmi

PARTS = ("starts", "report", "sizes", "growth")
KEYS = ("part", "case", "method", "draw")
VALUES = ("cpu_seconds", "wall_seconds", "nmi", "detail")
IMPORTS = ("sklearn.cluster", "mtclust.estimators")
GROWTH_METHODS = (REFERENCE, "DMTRC")


def time_fit(rows: Rows, part: str, case: str, method: str, seed: int, data: Mixture) -> None:
    found = timed(lambda: fit(method, data, seed))
    rows.add(
        part=part, case=case, method=method, draw=seed, cpu_seconds=found.cpu_seconds,
        wall_seconds=found.wall_seconds, nmi=macro_nmi(data.y, found.result, data.tasks), detail=found.warned,
    )  # fmt: skip
    print(f"{part}: {case}, {method}, draw {seed}: {found.cpu_seconds:.2f} s", flush=True)


def measure_starts(rows: Rows, repeats: int, cell: str, quick: bool) -> None:
    """Imports, and the first fit of a new process with what earlier ones have compiled."""
    if not quick:
        child("first", "DMTRC", cell)  # leaves compiled code behind
    for repeat in range(repeats):
        for module in IMPORTS:
            if not rows.has(part="import", case=module, draw=repeat):
                found = child("import", module)
                rows.add(part="import", case=module, method="", draw=repeat, nmi="", detail="", **found)
        if not rows.has(part="first fit", case=cell, draw=repeat):
            found = child("first", "DMTRC", cell)
            rows.add(part="first fit", case=cell, method="DMTRC", draw=repeat, nmi="", detail="", **found)


def measure_sizes(rows: Rows, cases: list[str], draws: int) -> None:
    for case in cases:
        for seed in range(draws):
            data = load(case, seed)
            for method in METHODS:
                if not rows.has(part="sizes", case=case, method=method, draw=seed):
                    time_fit(rows, "sizes", case, method, seed, data)


def measure_growth(rows: Rows, sizes: list[int], draws: int) -> None:
    for size in sizes:
        for seed in range(draws):
            data = draw(growth_cell(size), seed)
            for method in GROWTH_METHODS:
                if not rows.has(part="growth", case=size, method=method, draw=seed):
                    time_fit(rows, "growth", str(size), method, seed, data)


def warm_up(sizes: tuple[int, ...]) -> None:
    """Compiled code is loaded before the clock starts."""
    for cell in (Cell(size, 2) for size in sizes):
        data = draw(cell, 0)
        for method in ESTIMATORS:
            timed(lambda method=method, data=data: fit(method, data, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="everything in small")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=GROWTH_ROWS[-1], help="where the part on growth ends")
    parser.add_argument("--out", type=Path, default=Path("results/everyday"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", KEYS, VALUES)
    cases, sizes, start = [*CELLS, *DIGITS], [n for n in GROWTH_ROWS if n <= options.most_rows], "1 000 rows, 3 tasks"
    if options.quick:
        cases, sizes, start, options.draws = [QUICK_CELL], list(GROWTH_ROWS[:1]), QUICK_CELL, 1
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        if "starts" in options.parts:
            measure_starts(rows, options.draws, start, options.quick)
        if "report" in options.parts:
            measure_report(rows, options.draws, quick=options.quick)
        if {"sizes", "growth"} & set(options.parts) and not options.quick:
            warm_up((100, 3000))
        if "sizes" in options.parts:
            measure_sizes(rows, cases, options.draws)
        if "growth" in options.parts:
            measure_growth(rows, sizes, options.draws)
    write_report(rows.read(), options.out)


if __name__ == "__main__":
    main()
