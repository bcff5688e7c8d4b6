"""One thread in every library, set when this is imported: they read it when they are loaded, so import it first."""

import os
import sys
from pathlib import Path

SETTINGS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
os.environ.update(SETTINGS)
# benchmarks run as scripts find the package of the paper's data and methods beside them
sys.path.append(str(Path(__file__).resolve().parents[1]))
