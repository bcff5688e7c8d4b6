"""How far a model can be trusted that says how sure it is: probabilities, stability, outliers, known rows.

    MTCLUST_DATA=/path/to/data python benchmarks/how_sure.py                      all parts, ten sets and a few more
    MTCLUST_DATA=/path/to/data python benchmarks/how_sure.py --parts calibration --sets iris wine --draws 1 --out /tmp/q

calibration   confidence against the share of rows in the right class, beside GaussianMixture and, where it is
              installed, StepMix (accuracy of a cluster is that of the class matched to it)
stability     agreement of refits against agreement with the classes: over sets, clusters and rows
outliers      rows planted among the others: AUC beside IsolationForest and HDBSCAN, found at the cut, false alarms
known         NMI of the other rows with 5 % of the rows known, and without; CPU time of both

One thread; seeds are the numbers of the draws; finished fits are kept and an interrupted run goes on. Writes a CSV file
per part, reliability.csv and table.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from threadpoolctl import threadpool_limits

import _one_thread
from _how_sure_parts import PARTS
from _how_sure_report import write_report
from _tables import Rows
from _tables_read import data_home
from _tables_sets import DECIDED_ON, HELD_OUT, SETS

#: ten real sets for calibration and known rows; stability and outliers take the others of the first group as well
TEN = (
    "iris", "wine", "penguins", "wdbc", "penbased", "penguins_year", "mice", "gas", "digits", "pendigits_job2",
)  # fmt: skip
MORE = ("segment", "ionosphere", "vehicle", "penguins_island", "vowel", "cell_lines", "pendigits_group1_skewed")
GROUPS = {
    "decided": (*TEN, *MORE),
    "held-out": tuple(name for name in HELD_OUT if not name.startswith("blobs")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--group", choices=tuple(GROUPS), default="decided")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), metavar="SET", help="these, whatever their group")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/how_sure"))
    options = parser.parse_args()
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    assert set(GROUPS["decided"]) <= set(DECIDED_ON)
    for part in options.parts:
        keys, values, measure = PARTS[part]
        rows = Rows(options.out / f"{part}.csv", keys, values)
        for name in options.sets or GROUPS[options.group]:
            if SETS[name].files and data_home() is None:
                print(f"{name} is left out: MTCLUST_DATA is not set", flush=True)
                continue
            with threadpool_limits(1):
                for draw in range(options.draws):
                    if not rows.has(set=name, draw=draw):
                        for row in measure(name, draw):
                            rows.add(set=name, draw=draw, **row)
        print(part, flush=True)
    write_report(options.out)


if __name__ == "__main__":
    main()
