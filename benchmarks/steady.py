"""What should change nothing, what should change little, and what a small task can borrow.

    MTCLUST_DATA=/path/to/data python benchmarks/steady.py                        all parts
    python benchmarks/steady.py --parts seeds --out /tmp/quick                    one part

seeds       ARI between any two of ten fits with random_state 0 to 9, and to fits of rows in another order, of tasks
            with other names and of columns in another order (five of each); with two threads in every library and
            n_jobs 1 and 2, and in three new processes whose hashes differ (PYTHONHASHSEED)
shifts      NMI and pARI with every task and column shifted at random by 0, ½, 1 and 3 standard deviations
small       ARI of one task cut to 12 and 25 rows, the others whole: through fit and through fit_task, beside LDA
            trained on the other tasks' clusters
coupling    NMI of coupling "none", "auto" and "full", from results/tables/runs.csv
fresh       J of ten draws of pendigits that nothing was decided on (400 to 409), sizes given, with random_state 0 to 4:
            percent above the lowest of all runs on that draw

One thread; only the number of clusters is given, except in the last part. Writes one CSV file per part and table.md.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import _one_thread
from _steady_sets import labels_elsewhere, labels_of, steady_sets
from _tables import made_by, markdown_table
from _tables_read import data_home
from _tables_sets import SETS
from mtclust import DMTRC
from mtclust.metrics import macro_nmi
from paper.datasets import fetch_pendigits_tasks

SEEDS = range(10)
ORDERS = range(5)
DRAWS = range(3)
FRESH = range(400, 410)
#: fits in processes of their own, beside which those of this one are put
OTHER_PROCESSES = {
    "threads": [
        {"threads": 1, "n_jobs": 2, "hash_seed": 0},
        {"threads": 2, "n_jobs": 1, "hash_seed": 0},
        {"threads": 2, "n_jobs": 2, "hash_seed": 0},
    ],
    "processes": [{"threads": 1, "n_jobs": 1, "hash_seed": seed} for seed in (1, 2, 12345)],
}


def seeds() -> list[dict[str, Any]]:
    found = []
    sets = steady_sets()
    elsewhere = {
        change: [labels_elsewhere(list(sets), **how) for how in ways] for change, ways in OTHER_PROCESSES.items()
    }
    for name, load in sets.items():
        table = load(0)
        fits = [labels_of(table, random_state=seed) for seed in SEEDS]
        pairs = [adjusted_rand_score(a, b) for a, b in itertools.combinations(fits, 2)]
        found.append({"set": name, "change": "seed", "median": np.median(pairs), "worst": min(pairs)})
        for change in ("rows", "tasks", "columns"):
            agreement = []
            for seed in ORDERS:
                rng = np.random.default_rng(seed)
                order = rng.permutation(len(table.X)) if change == "rows" else np.arange(len(table.X))
                columns = np.arange(table.X.shape[1])
                columns = rng.permutation(columns) if change == "columns" else columns
                names = np.unique(table.tasks)
                new = rng.permutation(len(names)) if change == "tasks" else np.arange(len(names))
                tasks = new[np.searchsorted(names, table.tasks)]
                other = table._replace(X=table.X[order][:, columns], tasks=tasks[order])
                agreement.append(adjusted_rand_score(fits[0][order], labels_of(other, random_state=0)))
            found.append({"set": name, "change": change, "median": np.median(agreement), "worst": min(agreement)})
        for change, others in elsewhere.items():
            agreement = [adjusted_rand_score(fits[0], other[name]) for other in others]
            found.append({"set": name, "change": change, "median": np.median(agreement), "worst": min(agreement)})
    return found


def shifts() -> list[dict[str, Any]]:
    found = []
    names = ("penguins_year", "digits") + (("mice", "gas", "vowel") if data_home() is not None else ())
    for name, draw, shift in itertools.product(names, DRAWS, (0.0, 0.5, 1.0, 3.0)):
        table = SETS[name].load(draw)
        rng = np.random.default_rng([draw, 7])
        tasks = np.unique(table.tasks, return_inverse=True)[1]
        offsets = shift * table.X.std(axis=0) * rng.normal(size=(tasks.max() + 1, table.X.shape[1]))
        labels = labels_of(table._replace(X=table.X + offsets[tasks]), center="task")
        found.append(
            {
                "set": name, "draw": draw, "shift": shift, "nmi": macro_nmi(table.y, labels, table.tasks),
                "pari": adjusted_rand_score(table.y, labels),
            }
        )  # fmt: skip
    return found


def small() -> list[dict[str, Any]]:
    found = []
    names = ("digits",) + (("mice",) if data_home() is not None else ())
    for name, draw, rows in itertools.product(names, DRAWS, (12, 25)):
        table = SETS[name].load(draw)
        rng = np.random.default_rng([draw, 8])
        cut = np.unique(table.tasks)[0]
        mine = np.flatnonzero(table.tasks == cut)
        kept = np.sort(rng.choice(mine, rows, replace=False))
        others = np.flatnonzero(table.tasks != cut)
        whole = np.concatenate([kept, others])
        model = DMTRC(table.k).fit(table.X[whole], tasks=table.tasks[whole])
        alone = DMTRC(table.k).fit(table.X[others], tasks=table.tasks[others])
        later = alone.fit_task(table.X[kept]).labels_
        centred = table.X.copy()
        for task in np.unique(table.tasks):
            own = kept if task == cut else np.flatnonzero(table.tasks == task)
            centred[own] -= table.X[own].mean(axis=0)
        lda = LinearDiscriminantAnalysis().fit(centred[others], alone.labels_).predict(centred[kept])
        y = table.y[kept]
        found.append(
            {
                "set": name, "draw": draw, "rows": rows, "fit": adjusted_rand_score(y, model.labels_[:rows]),
                "fit_task": adjusted_rand_score(y, later), "lda": adjusted_rand_score(y, lda),
            }
        )  # fmt: skip
    return found


def coupling() -> list[dict[str, Any]]:
    runs = pd.read_csv("results/tables/runs.csv")
    runs = runs[runs["method"].isin(["DSTC", "DMTRC", "DMTRC full"]) & (runs["tasks"] > 1)]
    wide = runs.pivot_table(index=["set", "draw"], columns="method", values="nmi").dropna()
    refused = runs[(runs["method"] == "DMTRC") & runs["chosen"].str.contains("coupling none")]
    wrong = {
        (row["set"], row["draw"])
        for _, row in refused.iterrows()
        if (row["set"], row["draw"]) in wide.index
        and wide.loc[(row["set"], row["draw"]), "DMTRC full"] > row["nmi"] + 0.01
    }
    return [
        {
            "comparison": f"{one} minus {other}", "mean": (wide[one] - wide[other]).mean(),
            "worst": (wide[one] - wide[other]).min(), "best": (wide[one] - wide[other]).max(), "fits": len(wide),
            "refused": len(refused), "refused_wrongly": len(wrong),
        }
        for one, other in (("DMTRC", "DSTC"), ("DMTRC full", "DSTC"), ("DMTRC", "DMTRC full"))
    ]  # fmt: skip


def fresh() -> list[dict[str, Any]]:
    found = []
    for job, draw in itertools.product((1, 2, 3), FRESH):
        X, _, tasks = fetch_pendigits_tasks(job, draw, data_home=data_home()).X_y_tasks
        settings = {"kernel": "rbf", "width": 0.5, "sizes": "balanced", "lambda1": 2.0**-10, "lambda2": 2.0**-10}
        ends = [
            DMTRC(5, coupling="full", random_state=seed, **settings).fit(X, tasks=tasks).objective_ for seed in range(5)
        ]
        found += [
            {"job": job, "draw": draw, "seed": seed, "objective": end, "above_percent": 100 * (end / min(ends) - 1)}
            for seed, end in enumerate(ends)
        ]
    return found


PARTS = {"seeds": seeds, "shifts": shifts, "small": small, "coupling": coupling, "fresh": fresh}
_GROUPS = {"shifts": ["set", "shift"], "small": ["set", "rows"], "fresh": ["job"]}


def page(out: Path) -> str:
    lines = [made_by(), ""]
    for part in PARTS:
        path = out / f"{part}.csv"
        if not path.exists():
            continue
        frame = pd.read_csv(path)
        if part in _GROUPS:
            numbers = [
                name for name in frame.select_dtypes("number").columns if name not in (*_GROUPS[part], "draw", "seed")
            ]
            frame = frame.groupby(_GROUPS[part])[numbers].agg(["mean", "min", "max"]).reset_index()
            frame.columns = [" ".join(filter(None, name)) for name in frame.columns]
        table = [
            [f"{cell:.3f}" if isinstance(cell, float) else cell for cell in row] for row in frame.to_numpy().tolist()
        ]
        lines += [f"## {part}", "", *markdown_table(list(frame.columns), table), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--out", type=Path, default=Path("results/steady"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in options.parts:
            pd.DataFrame(PARTS[part]()).round(6).to_csv(options.out / f"{part}.csv", index=False)
            print(part, flush=True)
    (options.out / "table.md").write_text(page(options.out))
    print(page(options.out))


if __name__ == "__main__":
    main()
