"""Time, memory and quality from a thousand to a million rows, against scikit-learn's clusterers on the same data.

    MTCLUST_DATA=/path/to/data python benchmarks/scale.py      all of it; without the data the part on text is left out
    python benchmarks/scale.py --quick --out /tmp/scale        a look at everything in small
    python benchmarks/scale.py --parts grid --rows 1000000     some parts, some sizes of the grid

One process and one thread. Every method is run once per draw of the data, one after the other, and ratios are taken
within a draw, so that other load on the machine meets all methods alike; medians over draws. Finished draws are kept
and an interrupted run goes on: remove runs.csv to measure anew. Writes runs.csv, table.md and growth.svg.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

import _one_thread
import _scale_parts as parts
from _scale_data import Cell
from _scale_measure import Runs
from _scale_methods import OURS_ONCE
from _scale_report import plot_growth, write_report

PARTS = ("memory", "starts", "grid", "nystroem", "growth", "text")
QUICK_GRID = [Cell(1000, 3), Cell(1000, 3, family="elongated")]
QUICK_GROWTH = {
    "rows": [Cell(300, 2, 5, 3), Cell(1000, 2, 5, 3)],
    "tasks": [Cell(300, 2, 5, 3), Cell(300, 4, 5, 3)],
}


def run_all(runs: Runs, chosen: set[str], rows: int | None, repeats: int | None) -> None:
    """The full benchmark; what needs a small parent process comes first."""
    grid = [cell for cell in (*parts.GRID, *parts.ELONGATED) if rows in (None, cell.rows)]
    if "memory" in chosen:
        parts.measure_memory(runs, [cell for cell in parts.MEMORY if rows in (None, cell.rows)])
    if "starts" in chosen:
        parts.measure_starts(runs, repeats or 3)
    parts.warm_up()
    if "grid" in chosen:
        parts.time_cells(runs, "grid", grid, None, repeats)
    if "nystroem" in chosen:
        parts.measure_nystroem(runs, parts.NYSTROEM, parts.RANKS, repeats or 5)
    if "growth" in chosen:
        parts.time_growth(runs, parts.GROWTH, repeats)
    if "text" in chosen:
        parts.measure_text(runs, repeats or 3)


def run_quick(runs: Runs) -> None:
    parts.measure_memory(runs, QUICK_GRID[:1], OURS_ONCE[:1])
    parts.time_cells(runs, "grid", QUICK_GRID, None, 1)
    parts.measure_nystroem(runs, Cell(150, 3), (10, 100), 1)
    parts.time_growth(runs, QUICK_GROWTH, 1)
    parts.measure_starts(runs, 1, ["primal form, 1000 rows"], cold=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="everything in small, apart from cold starts and text")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, help="only the sizes of the grid with this many rows")
    parser.add_argument("--repeats", type=int, help="draws per size; by default 7, 5 or 3, fewer for larger data")
    parser.add_argument("--out", type=Path, default=Path("results/scale"))
    options = parser.parse_args()
    runs = Runs(options.out / "runs.csv")
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1):
        if options.quick:
            run_quick(runs)
        else:
            run_all(runs, set(options.parts), options.rows, options.repeats)
    growth = QUICK_GROWTH if options.quick else parts.GROWTH
    rows = runs.read()
    plot_growth(rows, growth, options.out)
    write_report(rows, growth, options.out / "table.md")


if __name__ == "__main__":
    main()
