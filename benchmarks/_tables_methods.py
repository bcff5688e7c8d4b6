"""The methods of the benchmark on tables: ours, and what a user has instead. All are told the number of clusters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from _tables_read import Table
from mtclust import DMTFC, DMTRC, DSTC

Labels = NDArray[np.int64]
#: of the covariance matrices of Gaussian mixtures, whose columns have variance 1
_RIDGE = 1e-3
#: what a fitted model may tell about its choices, in the order in which a reader wants it
_CHOICES = ("kernel", "width", "center", "lambda1", "lambda2", "sizes", "coupling", "candidate")


class Answer(NamedTuple):
    """Labels, in words what was chosen on the way, and the number of candidates it was chosen from."""

    labels: Labels
    chosen: str = ""
    tried: int | str = ""


@dataclass(frozen=True)
class Method:
    """``single`` says that it is of interest on a table of one task as well."""

    run: Callable[[Table, int], Answer]
    ours: bool = False
    single: bool = False


def in_words(selection: Mapping[str, Any]) -> str:
    """The choices of a fitted model in a line; those it does not tell are left out."""
    told = []
    for name in _CHOICES:
        value = selection.get(name)
        if isinstance(value, Mapping):
            value = value.get("chosen", value.get("decision"))
        if isinstance(value, (str, int)):
            told.append(f"{name} {value}")
        elif isinstance(value, float):
            told.append(f"{name} {value:.3g}")
    return ", ".join(told)


def _fit_ours(estimator: Callable[..., Any], table: Table, seed: int) -> Answer:
    model = estimator(table.k, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # doubts about the answer are no matter here: it is scored
        model.fit(table.X, tasks=table.tasks)
    tried = model.selection_.candidates
    return Answer(model.labels_, in_words(model.selection_), len(tried) if tried else "")


def _kmeans(k: int, seed: int) -> ClusterMixin:
    return KMeans(k, n_init=10, random_state=seed)


def _mixture(k: int, seed: int) -> Any:
    return GaussianMixture(k, reg_covar=_RIDGE, n_init=3, random_state=seed)


def _ward(k: int, seed: int) -> ClusterMixin:
    return AgglomerativeClustering(k)


def _spectral(k: int, seed: int) -> ClusterMixin:
    return SpectralClustering(k, affinity="nearest_neighbors", random_state=seed)


Make = Callable[[int, int], Any]


def _fit(make: Make, X: NDArray[np.float64], k: int, seed: int) -> Labels:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a graph that is not connected, a mixture that has not converged
        method = make(min(k, len(X)), seed)
        if getattr(method, "n_neighbors", 0) >= len(X):  # tasks of a few rows
            method.set_params(n_neighbors=len(X) - 1)
        return np.asarray(method.fit_predict(X))


def _pooled(make: Make, table: Table, seed: int) -> Answer:
    return Answer(_fit(make, table.X, table.k, seed))


def _per_task(make: Make, table: Table, seed: int) -> Answer:
    """Each task alone: ids mean nothing across tasks."""
    labels = np.empty(len(table.y), dtype=np.int64)
    for task in np.unique(table.tasks):
        rows = table.tasks == task
        labels[rows] = _fit(make, table.X[rows], table.k, seed)
    return Answer(labels)


def _within(make: Make, table: Table, seed: int) -> Answer:
    """All rows at once, after every task's columns were standardised on their own."""
    X = table.X - table.X.mean(axis=0)
    for task in np.unique(table.tasks):
        rows = table.tasks == task
        spread = X[rows].std(axis=0)
        X[rows] = (X[rows] - X[rows].mean(axis=0)) / np.where(spread > 0, spread, 1)
    return Answer(_fit(make, X, table.k, seed))


_PEERS: dict[str, Make] = {
    "k-means": _kmeans,
    "GMM full": _mixture,
    "Ward": _ward,
    "spectral": _spectral,
}

METHODS: dict[str, Method] = {
    "DSTC": Method(partial(_fit_ours, DSTC), ours=True, single=True),
    "DMTRC": Method(partial(_fit_ours, DMTRC), ours=True),
    "DMTFC": Method(partial(_fit_ours, DMTFC), ours=True),
    **{f"{name}, pooled": Method(partial(_pooled, make), single=True) for name, make in _PEERS.items()},
    **{f"{name}, per task": Method(partial(_per_task, make)) for name, make in _PEERS.items()},
    "k-means, within tasks": Method(partial(_within, _kmeans)),
}
