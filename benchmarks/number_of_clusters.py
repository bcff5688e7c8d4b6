"""The number of clusters without labels, 2 to 12, beside silhouette, gap statistic and BIC; tables without clusters.

    MTCLUST_DATA=/path/to/data python benchmarks/number_of_clusters.py             the sets that decisions looked at
    ... --sets held-out                                                           the others, once at the end
    ... --nothing 200                                                             draws of each kind without clusters,
                                                                                  and the sets decided on with columns
                                                                                  permuted within tasks

Finished rows are kept; an interrupted run goes on. Silhouette and gap statistic are those of k-means, BIC that of
Gaussian mixtures with full covariances; all three see the rows of all tasks as one table, which is what they can do.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from _tables import Rows, markdown_table, write_markdown
from _tables_sets import GROUPS, SETS
from mtclust import DMTRC
from mtclust.selection import select_n_clusters

Array = NDArray[np.float64]
RANGE = range(2, 13)
#: reference tables of the gap statistic
_REFERENCES = 10
NOTHING = (
    "one Gaussian", "one Gaussian, correlated", "uniform", "independent mixed columns", "independent skewed columns",
    "skewed and correlated columns", "heavy tails",
)  # fmt: skip
PERMUTED = "columns permuted"
Answer = tuple[int, str, str]


def ours(X: Array, tasks: NDArray[Any]) -> Answer:
    """The number, whether there are clusters, and the numbers that the data do not decide between."""
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=RANGE)
    return choice.n_clusters, choice.structure, " ".join(map(str, choice.shown))


def silhouette(X: Array, tasks: NDArray[Any]) -> Answer:
    fits = [KMeans(k, n_init=10, random_state=0).fit_predict(X) for k in RANGE]
    return RANGE[int(np.argmax([silhouette_score(X, labels) for labels in fits]))], "", ""


def gap_statistic(X: Array, tasks: NDArray[Any]) -> Answer:
    """Tibshirani, Walther and Hastie (2001): the first number whose gap is within one standard error of the next."""
    rng = np.random.default_rng(0)

    def log_inertia(rows: Array) -> Array:
        numbers = [*RANGE, RANGE[-1] + 1]
        return np.log([KMeans(k, n_init=3, random_state=0).fit(rows).inertia_ for k in numbers])

    references = np.stack([log_inertia(rng.uniform(X.min(0), X.max(0), X.shape)) for _ in range(_REFERENCES)])
    gap = references.mean(axis=0) - log_inertia(X)
    error = references.std(axis=0) * np.sqrt(1 + 1 / _REFERENCES)
    enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return RANGE[int(enough[0])] if len(enough) else RANGE[-1], "", ""


def mixture_bic(X: Array, tasks: NDArray[Any]) -> Answer:
    mixtures = [GaussianMixture(k, n_init=2, reg_covar=1e-4, random_state=0).fit(X) for k in RANGE]
    return RANGE[int(np.argmin([mixture.bic(X) for mixture in mixtures]))], "", ""


METHODS: dict[str, Callable[[Array, NDArray[Any]], Answer]] = {
    "mtclust": ours, "silhouette": silhouette, "gap statistic": gap_statistic, "BIC": mixture_bic,
}  # fmt: skip


def nothing(kind: str, seed: int) -> tuple[Array, NDArray[np.int64]]:
    """A table of 1 to 5 tasks without clusters; the tasks' levels differ."""
    rng = np.random.default_rng([seed, NOTHING.index(kind)])
    m, n, d = 1 + seed % 5, int(rng.choice([60, 100, 150])), int(rng.choice([2, 4, 8, 16]))
    shape = (m * n, d)
    X = rng.normal(size=shape)
    if "correlated" in kind:
        X = X @ rng.normal(size=(d, d))
    if kind == "skewed and correlated columns":
        X = np.exp(rng.uniform(0.3, 1.0) * X / X.std(axis=0))
    elif kind == "uniform":
        X = rng.uniform(size=shape)
    elif kind == "independent skewed columns":
        X = rng.lognormal(sigma=rng.uniform(0.3, 1.2), size=shape)
    elif kind == "heavy tails":
        X = rng.standard_t(3, size=shape)
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
                chosen, structure, shown = choose(table.X, table.tasks)
                rows.add(
                    dataset=name, draw=draw, method=method, kind=SETS[name].kind, truth=table.k, chosen=chosen,
                    structure=structure, shown=shown, seconds=time.process_time() - begin,
                )  # fmt: skip


def permuted(name: str, draw: int) -> tuple[Array, NDArray[Any]]:
    """A set whose columns are permuted within tasks: nothing is left but the columns one by one."""
    table, rng = SETS[name].load(draw), np.random.default_rng(draw)
    X = table.X.copy()
    for task in np.unique(table.tasks):
        X[table.tasks == task] = rng.permuted(X[table.tasks == task], axis=0)
    return X, table.tasks


def run_nothing(rows: Rows, draws: int) -> None:
    tables = {(kind, draw): partial(nothing, kind, draw) for draw in range(draws) for kind in NOTHING}
    if draws:
        tables |= {(PERMUTED, k): partial(permuted, name, 0) for k, name in enumerate(GROUPS["decided"])}
    for (kind, draw), load in tables.items():
        if rows.has(dataset=kind, draw=draw, method="mtclust"):
            continue
        X, tasks = load()
        begin = time.process_time()
        chosen, structure, shown = ours(X, tasks)
        rows.add(
            dataset=kind, draw=draw, method="mtclust", kind="nothing", truth=1, chosen=chosen, structure=structure,
            shown=shown, seconds=time.process_time() - begin,
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
    """How many tables are said to have clusters, for those without any and for the real ones."""
    lines = []
    groups = {kind: [r for r in found if r["dataset"] == kind] for kind in (*NOTHING, PERMUTED)}
    for group in ("decided", "held-out"):
        groups[f"sets with classes, {group}"] = _of_group(found, group)
    for name, mine in groups.items():
        if mine:
            answers = [r["structure"] for r in mine]
            lines.append([name, len(mine), *(answers.count(answer) for answer in ("none", "clusters"))])
    return lines


def undecided(found: list[dict[str, str]]) -> list[list[Any]]:
    """How often the data are said not to decide, and how often the number is right where they do and do not."""
    lines = []
    for group in ("decided", "held-out"):
        for said in (False, True):
            mine = [r for r in _of_group(found, group) if (" " in r["shown"]) == said]
            if mine:
                right = np.mean([r["chosen"] == r["truth"] for r in mine])
                among = np.mean([r["truth"] in r["shown"].split() for r in mine])
                lines.append([group, "undecided" if said else "decided", len(mine), f"{right:.2f}", f"{among:.2f}"])
    return lines


def _of_group(found: list[dict[str, str]], group: str) -> list[dict[str, str]]:
    return [r for r in found if r["dataset"] in GROUPS[group] and r["method"] == "mtclust"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", choices=["decided", "held-out", "none"], default="decided")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--nothing", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/number_of_clusters"))
    options = parser.parse_args()
    keys, values = ["dataset", "draw", "method"], ["kind", "truth", "chosen", "structure", "shown", "seconds"]
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
        for words, names, lines in (
            ("Whether the data decide:", ["sets", "what is said", "tables", "right", "right number shown"], undecided),
            ("Whether there are clusters:", ["tables", "draws", "none", "clusters"], doubted),
        ):
            file.write("\n".join(["", words, "", *markdown_table(names, lines(found)), ""]))


if __name__ == "__main__":
    main()
