"""Sets and fits of ``steady.py``, and the same fits in a process of their own.

    python benchmarks/_steady_sets.py SEED_OF_HASHES N_JOBS FILE iris wine      labels of these sets into FILE (npz)

Libraries have the threads that the environment gives them: :mod:`_one_thread` is not imported here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes

from _tables_read import Table, data_home, standardised
from _tables_sets import SETS
from mtclust import DMTRC

Labels = NDArray[np.int64]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def diabetes_by_age(seed: int = 0) -> Table:
    """The table of the tutorial: three age groups, three clusters, no classes."""
    data = load_diabetes(scaled=False)
    columns = [name for name in data.feature_names if name not in ("age", "sex")]
    X = data.data[:, [data.feature_names.index(name) for name in columns]]
    age = data.data[:, data.feature_names.index("age")]
    return standardised(Table(X, np.zeros(len(X), dtype=int), np.searchsorted([40, 55], age, side="right"), 3))


def steady_sets() -> dict[str, Callable[[int], Table]]:
    """The sets that changes are tried on, by name; two of them are files."""
    sets: dict[str, Callable[[int], Table]] = {name: SETS[name].load for name in ("iris", "wine", "penguins_year")}
    sets |= {"digits": SETS["digits"].load, "diabetes": diabetes_by_age}
    if data_home() is not None:
        sets |= {name: SETS[name].load for name in ("mice", "gas")}
    return sets


def labels_of(table: Table, **changes: Any) -> Labels:
    """Labels of a default fit that is told the number of clusters."""
    return np.asarray(DMTRC(table.k, **changes).fit(table.X, tasks=table.tasks).labels_)


def labels_elsewhere(names: list[str], *, threads: int, n_jobs: int, hash_seed: int) -> dict[str, Labels]:
    """Labels of some sets, fitted in a new process with so many threads in every library and hashes of its own."""
    environment = os.environ | dict.fromkeys(_THREADS, str(threads)) | {"PYTHONHASHSEED": str(hash_seed)}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "labels.npz"
        command = [sys.executable, __file__, str(hash_seed), str(n_jobs), str(path), *names]
        subprocess.run(command, env=environment, check=True)
        with np.load(path) as found:
            return {name: found[name] for name in names}


def main() -> None:
    hash_seed, n_jobs, path, *names = sys.argv[1:]
    if os.environ.get("PYTHONHASHSEED") != hash_seed:
        raise SystemExit("PYTHONHASHSEED is not what was asked for.")
    warnings.simplefilter("ignore")
    sets = steady_sets()
    np.savez(path, **{name: labels_of(sets[name](0), random_state=0, n_jobs=int(n_jobs)) for name in names})


if __name__ == "__main__":
    main()
