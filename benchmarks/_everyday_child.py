"""The first fit of a process, everything chosen by the model; prints JSON. Called by the everyday benchmark.

_everyday_child.py ESTIMATOR CELL
"""

from __future__ import annotations

import json
import sys

from _everyday_fits import fit, load
from _scale_measure import timed


def main(estimator: str, cell: str) -> None:
    data = load(cell, 0)
    found = timed(lambda: fit(estimator, data, 0))
    print(json.dumps({"cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
