"""The number of clusters without labels, 2 to 12, beside silhouette, gap statistic and BIC; tables without clusters.

    MTCLUST_DATA=/path/to/data python benchmarks/number_of_clusters.py             the sets that decisions looked at
    ... --sets held-out                                                           the others, once at the end
    ... --nothing 200                                                             draws of each kind without clusters

Finished rows are kept; an interrupted run goes on. Silhouette and gap statistic are those of k-means, BIC that of
Gaussian mixtures with full covariances; all three see the rows of all tasks as one table, which is what they can do.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from _tables import Rows, write_markdown
from _tables_sets import GROUPS, SETS
from mtclust import DMTRC
from mtclust.selection import select_n_clusters

Array = NDArray[np.float64]
RANGE = range(2, 13)
#: reference tables of the gap statistic
_REFERENCES = 10
NOTHING = (
    "one Gaussian", "one Gaussian, correlated", "uniform", "independent mixed columns", "independent skewed columns",
)  # fmt: skip


def ours(X: Array, tasks: NDArray[Any]) -> tuple[int, str]:
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=RANGE)
    return choice.n_clusters, choice.structure


def silhouette(X: Array, tasks: NDArray[Any]) -> tuple[int, str]:
    fits = [KMeans(k, n_init=10, random_state=0).fit_predict(X) for k in RANGE]
    return RANGE[int(np.argmax([silhouette_score(X, labels) for labels in fits]))], ""


def gap_statistic(X: Array, tasks: NDArray[Any]) -> tuple[int, str]:
    """Tibshirani, Walther and Hastie (2001): the first number whose gap is within one standard error of the next."""
    rng = np.random.default_rng(0)

    def log_inertia(rows: Array) -> Array:
        numbers = [*RANGE, RANGE[-1] + 1]
        return np.log([KMeans(k, n_init=3, random_state=0).fit(rows).inertia_ for k in numbers])

    references = np.stack([log_inertia(rng.uniform(X.min(0), X.max(0), X.shape)) for _ in range(_REFERENCES)])
    gap = references.mean(axis=0) - log_inertia(X)
    error = references.std(axis=0) * np.sqrt(1 + 1 / _REFERENCES)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return RANGE[int(enough[0])] if len(enough) else RANGE[-1], ""


def mixture_bic(X: Array, tasks: NDArray[Any]) -> tuple[int, str]:
    mixtures = [GaussianMixture(k, n_init=2, reg_covar=1e-4, random_state=0).fit(X) for k in RANGE]
    return RANGE[int(np.argmin([mixture.bic(X) for mixture in mixtures]))], ""


METHODS: dict[str, Callable[[Array, NDArray[Any]], tuple[int, str]]] = {
    "mtclust": ours, "silhouette": silhouette, "gap statistic": gap_statistic, "BIC": mixture_bic,
}  # fmt: skip


def nothing(kind: str, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """A table of 1 to 5 tasks without clusters; the tasks' levels differ."""
    rng = np.random.default_rng([seed, NOTHING.index(kind)])
    m, n, d = 1 + seed % 5, int(rng.choice([60, 100, 150])), int(rng.choice([2, 4, 8, 16]))
    shape = (m * n, d)
    X = rng.normal(size=shape)
    if kind == "one Gaussian, correlated":
        X = X @ rng.normal(size=(d, d))
    elif kind == "uniform":
        X = rng.uniform(size=shape)
    elif kind == "independent skewed columns":
        X = rng.lognormal(sigma=rng.uniform(0.3, 1.2), size=shape)
    tasks = np.repeat(np.arange(m), n)
    X = X + rng.normal(size=(m, d))[tasks]
    if kind == "independent mixed columns":
        levels = int(rng.integers(2, 5))
        categories = [np.eye(levels)[rng.integers(levels, size=m * n)] for _ in range(d // 2)]
        X = np.hstack([X[:, ::2], *categories])
    return (X - X.mean(axis=0)) / X.std(axis=0), tasks


def run_sets(rows: Rows, names: tuple[str, ...], draws: int) -> None:
    for name in names:
        for draw in range(draws):
            for method, choose in METHODS.items():
                if rows.has(dataset=name, draw=draw, method=method):
                    continue
                table = SETS[name].load(draw)
                begin = time.process_time()
                chosen, structure = choose(table.X, table.tasks)
                rows.add(
                    dataset=name, draw=draw, method=method, kind=SETS[name].kind, truth=table.k, chosen=chosen,
                    structure=structure, seconds=time.process_time() - begin,
                )  # fmt: skip


def run_nothing(rows: Rows, draws: int) -> None:
    for draw in range(draws):
        for kind in NOTHING:
            if rows.has(dataset=kind, draw=draw, method="mtclust"):
                continue
            X, tasks = nothing(kind, draw)
            begin = time.process_time()
            chosen, structure = ours(X, tasks)
            seconds = time.process_time() - begin
            rows.add(
                dataset=kind, draw=draw, method="mtclust", kind="nothing", truth=1, chosen=chosen, structure=structure,
                seconds=seconds,
            )  # fmt: skip


def summary(found: list[dict[str, str]]) -> list[list[Any]]:
    """A line for every group of sets and method; draws of a set are averaged before sets are."""
    lines = []
    for group in ("decided", "held-out"):
        for kind in ("single", "multi"):
            for method in METHODS:
                mine = [
                    r for r in found if r["dataset"] in GROUPS[group] and (r["kind"], r["method"]) == (kind, method)
                ]
                if not mine:
                    continue
                names = sorted({row["dataset"] for row in mine})
                errors = [
                    [abs(int(r["chosen"]) - int(r["truth"])) for r in mine if r["dataset"] == name] for name in names
                ]
                right = np.mean([np.mean(np.equal(own, 0)) for own in errors])
                near = np.mean([np.mean(np.less_equal(own, 1)) for own in errors])
                off = np.mean([np.mean(own) for own in errors])
                seconds = np.median([float(r["seconds"]) for r in mine])
                shown = f"{right:.2f}", f"{near:.2f}", f"{off:.2f}", f"{seconds:.1f}"
                lines.append([group, f"{kind} ({len(names)})", method, *shown])
    return lines


def doubted(found: list[dict[str, str]]) -> list[list[Any]]:
    """How many tables are announced as clusters, for those without any and for the real ones."""
    lines = []
    for kind in NOTHING:
        mine = [r["structure"] for r in found if r["dataset"] == kind]
        if mine:
            lines.append([kind, len(mine), *(mine.count(answer) for answer in ("marginals", "cloud", "clusters"))])
    for group in ("decided", "held-out"):
        mine = [r["structure"] for r in found if r["dataset"] in GROUPS[group] and r["method"] == "mtclust"]
        if mine:
            shown = (mine.count(answer) for answer in ("marginals", "cloud", "clusters"))
            lines.append([f"sets with classes, {group}", len(mine), *shown])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", choices=["decided", "held-out", "none"], default="decided")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--nothing", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/number_of_clusters"))
    options = parser.parse_args()
    keys, values = ["dataset", "draw", "method"], ["kind", "truth", "chosen", "structure", "seconds"]
    rows = Rows(options.out / "runs.csv", keys, values)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.sets != "none":
            run_sets(rows, GROUPS[options.sets], options.draws)
        run_nothing(rows, options.nothing)
    found = rows.read()
    header = ["sets", "kind", "method", "right", "within one", "mean error", "seconds"]
    notes = "Range 2 to 12. CPU seconds on one core, median over sets; draws 0, 1, … of every set."
    write_markdown(options.out / "table.md", header, summary(found), notes)
    with (options.out / "table.md").open("a", encoding="utf-8") as file:
        file.write("\nWhat is said about tables (1 to 5 tasks where there is nothing):\n\n")
        file.write("| tables | draws | marginals only | one cloud | clusters |\n|---|---|---|---|---|\n")
        file.writelines("| " + " | ".join(map(str, line)) + " |\n" for line in doubted(found))


if __name__ == "__main__":
    main()
