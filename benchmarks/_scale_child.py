"""One measurement in a process of its own; prints JSON. Called by the scale benchmark.

_scale_child.py memory METHOD DIRECTORY         peak memory of a fit above the data, which lie in the directory
_scale_child.py import MODULE                   seconds of an import
_scale_child.py first FORM ROWS                 seconds of the first fit
_scale_child.py text CORPUS METHOD              seconds, peak memory and NMI on a whole corpus
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any


def peak_bytes() -> int:
    """Largest memory this process has had. Not ``ru_maxrss`` where /proc tells: that starts at the parent's peak."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def present_bytes() -> int:
    """Memory of this process now; its peak so far where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return peak_bytes()


def measure_memory(method: str, directory: str) -> dict[str, Any]:
    import numpy as np

    from _scale_data import Cell, Mixture, draw
    from _scale_methods import METHODS

    if method != "nothing":
        METHODS[method](draw(Cell(1000, 3), 0), 0)  # libraries and compiled code are no memory of the fit
    X, y, tasks, offsets = (np.load(Path(directory) / f"{name}.npy") for name in ("X", "y", "tasks", "offsets"))
    data = Mixture(X, y, tasks, offsets, int(y.max()) + 1)
    before = present_bytes()
    if method != "nothing":
        METHODS[method](data, 0)
    return {"extra_mb": (peak_bytes() - before) / 1e6, "detail": f"data {X.nbytes / 1e6:.1f} MB"}


def measure_import(module: str) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    importlib.import_module(module)
    return {"cpu_seconds": time.process_time() - cpu, "wall_seconds": time.perf_counter() - wall}


def measure_first(form: str, rows: str) -> dict[str, Any]:
    from _scale_data import Cell, draw
    from _scale_measure import timed
    from _scale_methods import estimator

    data = draw(Cell(int(rows), 3), 0)
    model = estimator("DMTRC", data.n_clusters, form=form)
    found = timed(lambda: model.fit(data.X, tasks=data.tasks))
    return {"cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds, "detail": found.warned}


def measure_text(corpus: str, method: str) -> dict[str, Any]:
    import numpy as np
    from sklearn.cluster import KMeans

    from _scale_data import Cell, draw
    from _scale_measure import timed
    from _scale_methods import ESTIMATORS, METHODS
    from mtclust.metrics import macro_nmi
    from paper.datasets import fetch_newsgroups_tasks, fetch_sentiment_tasks

    METHODS["DMTRC (n_init=1)"](draw(Cell(1000, 3), 0), 0)
    fetch = {"newsgroups": fetch_newsgroups_tasks, "sentiment": fetch_sentiment_tasks}[corpus]
    X, y, tasks = fetch(1.0).X_y_tasks
    y, tasks = np.asarray(y), np.asarray(tasks)
    numbers = {task: len(np.unique(y[tasks == task])) for task in np.unique(tasks)}
    before = present_bytes()
    if method.startswith("KMeans"):

        def fit() -> Any:
            labels = np.empty(len(y), dtype=np.int64)
            for task, number in numbers.items():
                labels[tasks == task] = KMeans(number, n_init=1, random_state=0).fit_predict(X[tasks == task])
            return labels, ""

    else:
        model = ESTIMATORS[method](numbers, kernel="linear", sizes="balanced", random_state=0)

        def fit() -> Any:
            model.fit(X, tasks=tasks)
            return model.labels_, f"{model.selection_['form']}, λ {model.selection_['lambda2']:.3g}"

    found = timed(fit)
    labels, chosen = found.result
    data_mb = sum(part.nbytes for part in (X.data, X.indices, X.indptr)) / 1e6
    return {
        "cpu_seconds": found.cpu_seconds, "wall_seconds": found.wall_seconds, "nmi": macro_nmi(y, labels, tasks),
        "extra_mb": (peak_bytes() - before) / 1e6,
        "detail": f"{' × '.join(map(str, X.shape))}, {len(numbers)} tasks, {data_mb:.1f} MB; {chosen} {found.warned}",
    }  # fmt: skip


MEASURES = {"memory": measure_memory, "import": measure_import, "first": measure_first, "text": measure_text}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](*sys.argv[2:])))
