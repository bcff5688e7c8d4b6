"""NMI of DMTRC, DMTFC and DSTC on the paper's pendigits jobs, beside k-means and normalised cut.

    MTCLUST_DATA=/path/to/data python benchmarks/pendigits.py                30 draws (seeds 0 to 29)
    python benchmarks/pendigits.py --draws 1 --out /tmp/quick                a quick look

Nothing is chosen with labels; exact balance is given, as in the paper. Width and λ are the estimators' own choice,
normalised cut uses the width ½ of the mean distance. Every finished row is kept: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import fetch_pendigits_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.features import squared_distances
from mtclust.metrics import macro_nmi, nmi
from mtclust.selection.kernel import rbf_of_width

JOBS = (1, 2, 3)
METHODS = ("KM", "NC", "DSTC_l", "DMTFC_l", "DMTRC_l", "DSTC_r", "DMTFC_r", "DMTRC_r full", "DMTRC_r")
MULTITASK = {"DSTC": DSTC, "DMTFC": DMTFC, "DMTRC": DMTRC}
KERNELS = {"l": "linear", "r": "rbf"}
N_CLUSTERS = 5


def peer(name: str, X: np.ndarray, y: np.ndarray, tasks: np.ndarray, seed: int) -> float:
    scores = []
    for task in np.unique(tasks):
        rows = X[tasks == task]
        if name == "KM":
            labels = KMeans(N_CLUSTERS, n_init=10, random_state=seed).fit_predict(rows)
        else:
            affinity, _ = rbf_of_width(squared_distances(rows), 0.5)
            labels = SpectralClustering(N_CLUSTERS, affinity="precomputed", random_state=seed).fit_predict(affinity)
        scores.append(nmi(y[tasks == task], labels))
    return float(np.mean(scores))


def run_draw(job: int, draw: int, rows: Rows) -> None:
    X, y, tasks = fetch_pendigits_tasks(job, draw).X_y_tasks
    for name in METHODS:
        if name == "DMTRC_r full" or rows.has(job=job, draw=draw, method=name):
            continue
        begin = time.process_time()
        if name in ("KM", "NC"):
            score = peer(name, X, y, tasks, draw)
            rows.add(job=job, draw=draw, method=name, nmi=score, seconds=time.process_time() - begin, setting="")
            continue
        method, kernel = name.split("_")
        model = MULTITASK[method](N_CLUSTERS, kernel=KERNELS[kernel], sizes="balanced", random_state=draw)
        model.fit(X, tasks=tasks)
        seconds = time.process_time() - begin
        setting = f"width {model.selection_.get('width', '')} λ {model.selection_['lambda1']:.5g}"
        if name == "DMTRC_r":
            coupled = model.selection_["coupling"]["coupled_labels"]
            score = macro_nmi(y, coupled, tasks)
            rows.add(job=job, draw=draw, method="DMTRC_r full", nmi=score, seconds=seconds, setting=setting)
            setting += f" coupling {model.selection_['coupling']['decision']}"
        score = macro_nmi(y, model.labels_, tasks)
        rows.add(job=job, draw=draw, method=name, nmi=score, seconds=seconds, setting=setting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("results/pendigits"))
    options = parser.parse_args()
    rows = Rows(options.out / "runs.csv", ["job", "draw", "method"], ["nmi", "seconds", "setting"])
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        for draw in range(options.draws):
            for job in JOBS:
                run_draw(job, draw, rows)
    lines = []
    for name in METHODS:
        cells = [name]
        for job in JOBS:
            mine = [row for row in rows.read() if row["method"] == name and row["job"] == str(job)]
            scores = np.array([float(row["nmi"]) for row in mine])
            seconds = np.median([float(row["seconds"]) for row in mine])
            cells.append(f"{scores.mean():.3f} ± {scores.std(ddof=1) / np.sqrt(len(scores)):.3f}, {seconds:.2f} s")
        lines.append(cells)
    write_markdown(
        options.out / "table.md",
        ["method", *(f"Job {job}" for job in JOBS)],
        lines,
        f"NMI (geometric, mean over tasks), mean over {options.draws} draws ± standard error; median CPU seconds on "
        'one core, choosing included. _l: linear kernel, _r: RBF. DMTRC_r is coupling="auto", DMTRC_r full its coupled '
        "labels. k-means: 10 starts a task.",
    )


if __name__ == "__main__":
    main()
