"""The demonstration: a real table that comes with scikit-learn, from a CSV file to a report. Nothing is downloaded."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from mtclust._atomic import atomic_write
from mtclust._extras import require
from mtclust.app.commands.output import written_to

#: what the command is told beside files and columns
OPTIONS = ("--clusters", "3", "--kernel", "linear")
_COLUMNS = (
    "age", "sex", "bmi", "blood_pressure", "cholesterol", "ldl", "hdl", "cholesterol_hdl_ratio", "log_triglycerides",
    "glucose", "progression",
)  # fmt: skip
_AGES = {"40 and under": 40, "41 to 55": 55, "over 55": 200}


def patients() -> Any:
    """442 patients with diabetes: ten measurements, and how far the disease had progressed a year later."""
    from sklearn.datasets import load_diabetes

    frame = load_diabetes(as_frame=True, scaled=False).frame
    frame.columns = list(_COLUMNS)
    frame["age"] = [next(name for name, limit in _AGES.items() if age <= limit) for age in frame["age"]]
    frame["sex"] = frame["sex"].map({1.0: "a", 2.0: "b"})
    frame.insert(0, "patient", range(1, len(frame) + 1))
    return frame


def run_demo(out: Path, run_command: Callable[[list[str]], int]) -> int:
    """Write the table, run ``mtclust fit`` on it, and compare its clusters with those of k-means."""
    require("pandas", "cli")
    require("jinja2", "report")
    frame = patients()
    new = not out.exists()
    table, result = out / "patients.csv", out / "result"
    with written_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with atomic_write(table) as stream:
            stream.write(frame.to_csv(index=False).encode())
    keys = "patient,progression"
    command = ["fit", str(table), "--task-column", "age", "--key", keys, *OPTIONS, "--out", str(result), "--overwrite"]
    print(
        f"{len(frame)} patients with diabetes in three age groups (the tasks), from scikit-learn. The clusters do\n"
        "not see how far the disease progressed in the year after, so that this can judge them.\n\n"
        f"$ mtclust {shlex.join(command)}\n"
    )
    code = run_command(command)
    if code != 0:
        _clear_up(out, table, new)
        return code
    _compare(frame, result)
    print(f"\nOpen this page in a browser: {(result / 'report.html').resolve()}")
    return 0


def _clear_up(out: Path, table: Path, new: bool) -> None:
    with suppress(OSError):
        table.unlink()
        if new:
            out.rmdir()


def _compare(frame: Any, result: Path) -> None:
    """How much of the progression within age groups the clusters explain, beside two ways of k-means."""
    pandas = require("pandas", "cli")
    tasks = frame["age"].to_numpy()
    measured = frame.drop(columns=["patient", "age", "sex", "progression"])
    X = ((measured - measured.mean()) / measured.std()).assign(sex=(frame["sex"] == "b") - 0.5).to_numpy()
    labels = pandas.read_csv(result / "labels.csv")["cluster"].to_numpy()
    n_clusters = len(np.unique(labels))
    alone = np.zeros(len(X), dtype=np.int64)
    for task in np.unique(tasks):
        alone[tasks == task] = _kmeans(X[tasks == task], n_clusters)
    print("\nHow much of the differences in progression within an age group the clusters explain:\n")
    rows = (
        ("k-means on all patients", _kmeans(X, n_clusters)),
        ("k-means on each age group", alone),
        ("mtclust", labels),
    )
    for name, found in rows:
        print(f"  {name:<28}{100 * _explained(frame['progression'].to_numpy(), tasks, found):5.1f} %")


def _kmeans(X: NDArray[np.float64], n_clusters: int) -> NDArray[np.int64]:
    return KMeans(n_clusters, n_init=10, random_state=0).fit_predict(X).astype(np.int64)


def _explained(outcome: NDArray[np.float64], tasks: NDArray[Any], labels: NDArray[np.int64]) -> float:
    """Share of the variance within tasks that lies between the clusters of a task."""
    within = between = 0.0
    for task in np.unique(tasks):
        own, groups = outcome[tasks == task], labels[tasks == task]
        within += float(np.sum((own - own.mean()) ** 2))
        between += sum(float((groups == c).sum() * (own[groups == c].mean() - own.mean()) ** 2) for c in set(groups))
    return between / within
