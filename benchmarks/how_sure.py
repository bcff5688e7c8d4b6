"""How far a model can be trusted that says how sure it is: probabilities, stability, outliers, known rows.

    MTCLUST_DATA=/path/to/data python benchmarks/how_sure.py                      all parts, ten sets and a few more
    MTCLUST_DATA=/path/to/data python benchmarks/how_sure.py --parts calibration --sets iris wine --draws 1 --out /tmp/q

calibration   confidence against the share of rows in the right class, beside GaussianMixture and, where it is
              installed, StepMix (accuracy of a cluster is that of the class matched to it)
stability     agreement of refits against agreement with the classes: over sets, clusters and rows
outliers      rows planted among the others: AUC beside IsolationForest and HDBSCAN, found at the cut, false alarms
known         NMI of the other rows with 5 % of the rows known, and without; CPU time of both

One thread; seeds are the numbers of the draws; finished fits are kept and an interrupted run goes on. Writes a CSV file
per part and table.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.cluster import HDBSCAN
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import _one_thread
from _tables import Rows, made_by, markdown_table
from _tables_read import Table, data_home
from _tables_sets import DECIDED_ON, HELD_OUT, SETS
from mtclust import DMTRC, DSTC
from mtclust.estimators.outliers import OUTLIER_CUT
from mtclust.metrics import macro_nmi

Array = NDArray[np.float64]
Row = dict[str, Any]

_BINS = 10
_KNOWN = 0.05
_PLANTED = 0.05
#: of the covariance matrices of Gaussian mixtures, whose columns have variance 1
_RIDGE = 1e-3


def _model(name: str, table: Table, draw: int) -> Any:
    return (DSTC if SETS[name].kind == "single" else DMTRC)(table.k, random_state=draw)


def _fitted(name: str, table: Table, draw: int, **more: Any) -> tuple[Any, float]:
    """The fitted model and its CPU seconds."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(name, table, draw).fit(table.X, tasks=table.tasks, **more)
    return model, time.process_time() - begin


@lru_cache(maxsize=1)
def _warm_up() -> None:
    """Compile and import everything once, so that no fit is timed that did."""
    rows, tasks = np.random.default_rng(0).normal(size=(120, 3)), np.arange(120) % 2
    for given in (None, np.where(np.arange(120) < 20, np.arange(120) % 3, -1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            DMTRC(3, random_state=0).fit(rows, tasks=tasks, known=given).stability(rows, tasks=tasks)


def _classes(table: Table) -> NDArray[np.int64]:
    return np.unique(table.y, return_inverse=True)[1].astype(np.int64)


def matched(labels: NDArray[Any], y: NDArray[np.int64], n_clusters: int) -> NDArray[np.int64]:
    """The class of every cluster, each class once; −1 for clusters beyond the number of classes."""
    pairs = np.zeros((n_clusters, int(y.max()) + 1))
    np.add.at(pairs, (labels, y), 1)
    rows, columns = linear_sum_assignment(-pairs)
    found = np.full(n_clusters, -1)
    found[rows] = columns
    return found


def calibration(name: str, draw: int) -> Iterator[Row]:
    table = SETS[name].load(draw)
    y = _classes(table)
    model, _ = _fitted(name, table, draw)
    mixture = GaussianMixture(table.k, reg_covar=_RIDGE, n_init=3, random_state=draw).fit(table.X)
    probabilities = {"mtclust": model.probabilities_, "GaussianMixture": mixture.predict_proba(table.X)}
    try:
        from stepmix import StepMix
    except ImportError:
        pass
    else:
        steps = StepMix(table.k, measurement="gaussian_diag", n_init=3, random_state=draw, progress_bar=0, verbose=0)
        probabilities["StepMix"] = steps.fit(table.X).predict_proba(table.X)
    for method, p in probabilities.items():
        labels = model.labels_ if method == "mtclust" else p.argmax(axis=1)
        right = matched(labels, y, p.shape[1])[p.argmax(axis=1)] == y
        sure = p.max(axis=1)
        place = np.minimum((sure * _BINS).astype(int), _BINS - 1)
        shares = np.bincount(place, minlength=_BINS) / len(sure)
        gaps = [
            abs(sure[place == b].mean() - right[place == b].mean()) if (place == b).any() else 0 for b in range(_BINS)
        ]
        auc = roc_auc_score(right, sure) if 0 < right.mean() < 1 else float("nan")
        yield {
            "method": method, "ece": float(shares @ gaps), "confidence": float(sure.mean()),
            "accuracy": float(right.mean()), "auc": float(auc),
            "bins": " ".join(
                f"{np.sum(place == b)}:{sure[place == b].sum():.3f}:{right[place == b].sum()}" for b in range(_BINS)
            ),
        }  # fmt: skip


def stability(name: str, draw: int) -> Iterator[Row]:
    table = SETS[name].load(draw)
    y = _classes(table)
    _warm_up()
    model, seconds = _fitted(name, table, draw)
    begin = time.process_time()
    found = model.stability(table.X, tasks=table.tasks)
    spent = time.process_time() - begin
    right = matched(model.labels_, y, table.k)[model.labels_] == y
    rows = np.nan_to_num(found.rows, nan=1.0)
    auc = roc_auc_score(right, rows) if 0 < right.mean() < 1 else float("nan")
    ari = np.mean(
        [adjusted_rand_score(y[table.tasks == t], model.labels_[table.tasks == t]) for t in np.unique(table.tasks)]
    )
    yield {
        "what": "set", "stability": found.overall, "truth": float(ari), "auc": float(auc),
        "ratio": spent / max(seconds, 1e-3),
    }  # fmt: skip
    for c in range(table.k):
        mine = model.labels_ == c
        similar = max(np.sum(mine & (y == k)) / max(1, np.sum(mine | (y == k))) for k in range(int(y.max()) + 1))
        yield {"what": f"cluster {c}", "stability": found.clusters[c], "truth": float(similar), "auc": "", "ratio": ""}


def outliers(name: str, draw: int) -> Iterator[Row]:
    table = SETS[name].load(draw)
    rng = np.random.default_rng(draw)
    n, k = len(table.X), max(5, round(_PLANTED * len(table.X)))
    low, high = table.X.min(axis=0), table.X.max(axis=0)
    planted = {
        "anywhere": rng.uniform(low - 0.1 * (high - low), high + 0.1 * (high - low), size=(k, table.X.shape[1])),
        "columns shuffled": 1.5 * np.stack([rng.permutation(column)[:k] for column in table.X.T], axis=1),
    }
    tasks = np.concatenate([table.tasks, rng.choice(table.tasks, k)])
    truth = np.arange(n + k) >= n
    for kind, rows in planted.items():
        X = np.vstack([table.X, rows])
        model, _ = _fitted(name, table._replace(X=X, tasks=tasks), draw)
        assert model.labels_.min() >= 0
        assert len(model.labels_) == n + k
        scores = {
            "mtclust": model.outlier_scores_,
            "IsolationForest": -IsolationForest(random_state=draw).fit(X).score_samples(X),
            "HDBSCAN": 1.0 - HDBSCAN(copy=True).fit(X).probabilities_,
        }
        for method, score in scores.items():
            ours = method == "mtclust"
            yield {
                "planted": kind, "method": method, "auc": roc_auc_score(truth, score),
                "found": float(np.mean(score[truth] > OUTLIER_CUT)) if ours else "",
                "false": float(np.mean(score[~truth] > OUTLIER_CUT)) if ours else "",
            }  # fmt: skip


def known(name: str, draw: int) -> Iterator[Row]:
    table = SETS[name].load(draw)
    y = _classes(table)
    rng = np.random.default_rng(draw)
    given = np.full(len(y), -1)
    for task in np.unique(table.tasks):
        rows = np.flatnonzero(table.tasks == task)
        chosen = rng.choice(rows, max(1, round(_KNOWN * len(rows))), replace=False)
        given[chosen] = np.where(y[chosen] < table.k, y[chosen], -1)  # some sets have more classes than clusters
    others = given < 0
    _warm_up()
    plain, seconds = _fitted(name, table, draw)
    taught, spent = _fitted(name, table, draw, known=given)
    yield {
        "known": int(np.sum(~others)), "nmi": macro_nmi(y[others], plain.labels_[others], table.tasks[others]),
        "nmi_known": macro_nmi(y[others], taught.labels_[others], table.tasks[others]),
        "right": float(np.mean(taught.labels_[others] == y[others])),
        "kept": float(np.mean(taught.labels_[~others] == given[~others])), "ratio": spent / max(seconds, 1e-3),
    }  # fmt: skip


#: keys, values and measurement of every part
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[str, int], Iterator[Row]]]] = {
    "calibration": (("set", "draw", "method"), ("ece", "confidence", "accuracy", "auc", "bins"), calibration),
    "stability": (("set", "draw", "what"), ("stability", "truth", "auc", "ratio"), stability),
    "outliers": (("set", "draw", "planted", "method"), ("auc", "found", "false"), outliers),
    "known": (("set", "draw"), ("known", "nmi", "nmi_known", "right", "kept", "ratio"), known),
}
#: ten real sets for calibration and known rows; stability and outliers take the others of the first group as well
TEN = (
    "iris", "wine", "penguins", "wdbc", "penbased", "penguins_year", "mice", "gas", "digits", "pendigits_job2",
)  # fmt: skip
MORE = ("segment", "ionosphere", "vehicle", "penguins_island", "vowel", "cell_lines", "pendigits_group1_skewed")
GROUPS = {
    "decided": (*TEN, *MORE),
    "held-out": tuple(name for name in HELD_OUT if not name.startswith("blobs")),
}


#: how many rows have a confidence in every tenth, their mean confidence and the share of them in the right class
RELIABILITY = ("method", "confidence", "rows", "mean confidence", "in the right class")


def reliability(frame: pd.DataFrame) -> list[list[Any]]:
    """Over all sets and draws: of rows with a confidence in a tenth, how many are in the right class."""
    lines = []
    for method, own in frame.groupby("method", sort=False):
        cells = np.array([[cell.split(":") for cell in bins.split()] for bins in own["bins"]], dtype=float).sum(axis=0)
        for b, (count, sure, right) in enumerate(cells):
            if count:
                span = f"{b / _BINS:.1f} to {(b + 1) / _BINS:.1f}"
                lines.append([method, span, int(count), f"{sure / count:.3f}", f"{right / count:.3f}"])
    return lines


def means(frame: pd.DataFrame, values: tuple[str, ...], *across: str) -> list[str]:
    """Means by set and over all of them, a column per value and, where they are named, per method or kind."""
    both = pd.concat([frame, frame.assign(set="all")])
    wide = both.pivot_table(index="set", columns=list(across), values=list(values), sort=False)
    names = [" ".join(map(str, reversed(name))) if across else name for name in wide.columns]
    lines = [[name, *("" if v != v else f"{v:.3f}" for v in row)] for name, row in zip(wide.index, wide.to_numpy())]
    return markdown_table(["set", *names], lines)


def write_report(out: Path) -> None:
    """table.md from whatever parts there are."""
    frames = {part: pd.read_csv(out / f"{part}.csv") for part in PARTS if (out / f"{part}.csv").exists()}
    lines = [made_by(), ""]
    for part, frame in frames.items():
        values = tuple(name for name in PARTS[part][1] if name != "bins")
        lines += [f"## {part.capitalize()}", ""]
        if part == "stability":
            sets, clusters = frame[frame["what"] == "set"], frame[frame["what"] != "set"].dropna(subset="stability")
            ranks = [float(spearmanr(own["stability"], own["truth"]).statistic) for own in (sets, clusters)]
            lines += [
                *means(sets, values), "",
                f"Rank correlation of stability with agreement to the classes (truth: ARI): {ranks[0]:.2f} over "
                f"{len(sets)} fits, {ranks[1]:.2f} over {len(clusters)} clusters (Jaccard similarity with the most "
                "similar class). auc: how well the stability of a row tells rows in the right class from the others.",
            ]  # fmt: skip
        elif part == "calibration":
            lines += [*means(frame, values, "method"), "", *markdown_table(RELIABILITY, reliability(frame))]
        else:
            lines += means(frame, values, *(("planted", "method") if part == "outliers" else ()))
        lines.append("")
    (out / "table.md").write_text("\n".join(lines))
    print((out / "table.md").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--group", choices=tuple(GROUPS), default="decided")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), metavar="SET", help="these, whatever their group")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results/how_sure"))
    options = parser.parse_args()
    print(f"one thread: {' '.join(_one_thread.SETTINGS)}")
    assert set(GROUPS["decided"]) <= set(DECIDED_ON)
    for part in options.parts:
        keys, values, measure = PARTS[part]
        rows = Rows(options.out / f"{part}.csv", keys, values)
        for name in options.sets or GROUPS[options.group]:
            if SETS[name].files and data_home() is None:
                print(f"{name} is left out: MTCLUST_DATA is not set", flush=True)
                continue
            with threadpool_limits(1):
                for draw in range(options.draws):
                    if not rows.has(set=name, draw=draw):
                        for row in measure(name, draw):
                            rows.add(set=name, draw=draw, **row)
        print(part, flush=True)
    write_report(options.out)


if __name__ == "__main__":
    main()
