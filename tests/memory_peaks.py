"""Print, for every case, what a fit was said to need and the most it took, in bytes; run by ``test_memory.py``."""

import ctypes
import gc
import json
import sys
import warnings

import numpy as np

import mtclust
from mtclust.estimators import forms, problems

QUICK = {"lambda1": 0.1, "n_init": 1, "sizes": "balanced", "random_state": 0}


def rows_of(n, d, n_clusters):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, d)) + 6 * rng.normal(size=(n_clusters, d))[rng.integers(n_clusters, size=n)]


def status(key):
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) * 1024 for line in stream if line.startswith(key))


def measured(case):
    """Both figures; a small fit before has compiled what is compiled once."""
    n, d, m, C = case["n"], case["d"], case["m"], case["C"]
    if case["options"] is None:  # everything is left to be chosen
        estimator, few = getattr(mtclust, case["method"])(C), 600 if n <= 700 else 900
    else:
        form, few = {"form": "primal" if n > 2000 else "dual"}, 40 * m
        estimator = getattr(mtclust, case["method"])(C, **QUICK | case["options"], solver_options=form)
    estimator.fit(rows_of(few, d, C), tasks=np.arange(few) % m)
    X, tasks = rows_of(n, d, C), np.arange(n) % m
    said = []
    for module in (forms, problems):
        module.require_memory = lambda need, *words: said.append(need)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed would be taken again unseen
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")
    before = status("VmRSS")
    estimator.fit(X, tasks=tasks)
    return said[-1], status("VmHWM") - before


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        print(json.dumps(measured(json.loads(line))), flush=True)
