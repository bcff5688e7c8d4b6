"""The demonstration: handwritten digits cut into related tasks, clustered four ways. Nothing is downloaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from mtclust import DMTRC, DSTC
from mtclust._atomic import atomic_write
from mtclust.app.commands.output import written_to
from mtclust.datasets import load_digits_tasks
from mtclust.metrics import nmi, per_task
from mtclust.tasks import index_tasks

_DIGITS = (0, 3, 6, 8, 9)
_OTHER_DIGITS = (1, 2, 4, 5, 7)
_SEED = 0


def run_demo(out: Path | None) -> None:
    """Cluster, print the comparison and the task correlations, save the picture (if ``out`` is given)."""
    if out is not None:
        with written_to(out):
            out.mkdir(parents=True, exist_ok=True)  # before the work: where it cannot be made, the work is for nothing
    data = load_digits_tasks(_DIGITS, unrelated=_OTHER_DIGITS, n_tasks=3, seed=_SEED)
    X, y, tasks = data.X_y_tasks
    n_clusters = len(_DIGITS)
    print(
        f"Handwritten digits (8 x 8 pixels): {data.n_tasks} tasks of {len(y) // data.n_tasks} images.\n"
        f"Tasks 0-2 hold the digits {_spell(_DIGITS)}, tasks 3-5 the digits {_spell(_OTHER_DIGITS)}.\n"
        "No method sees the digits, nor which tasks belong together.\n"
        "DSTC and DMTRC are told that the clusters of a task are equally large.\n"
    )
    model = DMTRC(n_clusters, sizes="balanced", coupling="full", random_state=_SEED).fit(X, tasks=tasks)
    alone = DSTC(n_clusters, sizes="balanced", random_state=_SEED).fit(X, tasks=tasks)
    rows = {
        "k-means on all tasks pooled": _pooled(X, 2 * n_clusters),
        "k-means on each task": _per_task(X, tasks, n_clusters),
        "DSTC: each task alone": alone.labels_,
        "DMTRC: all tasks together": model.labels_,
    }
    _print_table(rows, y, tasks)
    print("\nCorrelations between the tasks, as DMTRC learned them:\n")
    print("        " + "".join(f"{name:>8}" for name in model.tasks_))
    for name, row in zip(model.tasks_, model.task_correlation_):
        print(f"task {name:<3}" + "".join(f"{value:8.2f}" for value in row))
    print("\nGroups of related tasks:", " and ".join(_spell(group) for group in model.task_groups_))
    if out is not None:
        print(f"\nPicture: {_save_picture(model, out)}")


def _spell(values: Any) -> str:
    return ", ".join(str(value) for value in values)


def _per_task(X: NDArray[np.float64], tasks: NDArray[Any], n_clusters: int) -> NDArray[np.int64]:
    index = index_tasks(tasks, len(X))
    parts = [KMeans(n_clusters, n_init=10, random_state=_SEED).fit_predict(X[index.order[p]]) for p in index.slices()]
    return index.to_input_order(np.concatenate(parts).astype(np.int64))


def _pooled(X: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    return KMeans(n_clusters, n_init=10, random_state=_SEED).fit_predict(X).astype(np.int64)


def _print_table(rows: dict[str, NDArray[np.int64]], y: NDArray[Any], tasks: NDArray[Any]) -> None:
    names = np.unique(tasks)
    print(
        f"{'Agreement with the true digits (NMI)':<38}" + "".join(f"{f'task {n}':>8}" for n in names) + f"{'mean':>8}"
    )
    for title, labels in rows.items():
        scores = list(per_task(nmi, y, labels, tasks).values())
        print(f"{title:<38}" + "".join(f"{score:8.2f}" for score in scores) + f"{np.mean(scores):8.2f}")


def _save_picture(model: DMTRC, out: Path) -> Path:
    from mtclust._extras import require
    from mtclust.plotting import plot_task_relationship

    require("matplotlib", "plot").use("Agg")
    path = out / "task_relationship.png"
    with written_to(out), atomic_write(path) as stream:
        plot_task_relationship(model).figure.savefig(stream, format="png", dpi=150)
    return path
