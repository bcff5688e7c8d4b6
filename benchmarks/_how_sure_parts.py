"""The measurements of how_sure.py, each for one draw of one set."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.cluster import HDBSCAN
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture

from _tables_read import Table
from _tables_sets import SETS
from mtclust import DMTRC, DSTC
from mtclust.estimators.confidence import OUTLIER_CUT
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


def rank_correlation(first: Any, second: Any) -> float:
    return float(spearmanr(first, second).statistic)


#: keys, values and measurement of every part
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[str, int], Iterator[Row]]]] = {
    "calibration": (("set", "draw", "method"), ("ece", "confidence", "accuracy", "auc", "bins"), calibration),
    "stability": (("set", "draw", "what"), ("stability", "truth", "auc", "ratio"), stability),
    "outliers": (("set", "draw", "planted", "method"), ("auc", "found", "false"), outliers),
    "known": (("set", "draw"), ("known", "nmi", "nmi_known", "right", "kept", "ratio"), known),
}
