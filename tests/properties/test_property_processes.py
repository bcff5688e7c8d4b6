"""The same seed gives the same labels in another process, whatever order its hashes have."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from property_problems import METHODS, Problem, rows_of

HERE = Path(__file__).parent


def digest():
    """A hash of the labels and objectives of some fits."""
    found = hashlib.sha256()
    for seed, (method, kernel, form) in enumerate(
        (method, kernel, form) for method in METHODS for kernel in ("linear", "rbf") for form in ("dual", "primal")
    ):
        X, tasks = rows_of("clusters", (14, 9, 11), 3, seed)
        names = np.array(["north", "south", "west"])[tasks]
        problem = Problem(X, names, method, kernel, form, 3, (0.1, 0.8), 0.01, True, seed)
        model = problem.fit()
        found.update(model.labels_.tobytes())
        found.update(np.float64(model.objective_).tobytes())
    return found.hexdigest()


def test_the_same_seed_gives_the_same_labels_in_another_process():
    code = "import test_property_processes as here; print(here.digest())"
    paths = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "2"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == digest()
