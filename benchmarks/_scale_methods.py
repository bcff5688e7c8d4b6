"""The methods of the scale benchmark: ours on all tasks together, the others task by task."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans, SpectralClustering
from sklearn.metrics import pairwise_distances
from sklearn.mixture import GaussianMixture

from _scale_data import Cell, Mixture
from mtclust import DMTFC, DMTRC, DSTC

Method = Callable[[Mixture, int], NDArray[np.int64]]

#: relative to the kernel, which the estimators scale to unit mean diagonal
LAMBDA = 2.0**-6
#: of the RBF kernels, ours and spectral clustering's, in units of the mean distance between two rows
WIDTH = 0.5
#: methods with n × n matrices are run up to this many rows
MOST_ROWS_OF_PAIRS = 5000
_DISTANCE_ROWS = 500

ESTIMATORS = {"DMTRC": DMTRC, "DMTFC": DMTFC, "DSTC": DSTC}
OURS_ONCE = tuple(f"{name} (n_init=1)" for name in ESTIMATORS)
OURS = (*OURS_ONCE, *ESTIMATORS)
OURS_RBF = tuple(f"{name} RBF" for name in OURS)
REFERENCE = "KMeans (n_init=1)"
SPECTRAL = "SpectralClustering"
GEMCLUS = "gemclus LinearMMD"


def has_gemclus() -> bool:
    return importlib.util.find_spec("gemclus") is not None


def estimator(name: str, n_clusters: int, seed: int | None = 0, form: str = "primal", **settings: Any) -> Any:
    """One of our three with everything fixed that could be chosen; ``name`` as in the table."""
    kind = name.split()[0]
    settings = {"kernel": "rbf", "width": WIDTH} | settings if "RBF" in name else {"kernel": "linear"} | settings
    if "n_init=1" in name:
        settings["n_init"] = 1
    if kind == "DMTRC":
        settings["coupling"] = "full"
    return ESTIMATORS[kind](
        n_clusters, lambda1=LAMBDA, lambda2=LAMBDA, sizes="balanced", solver_options={"form": form},
        random_state=seed, **settings,
    )  # fmt: skip


def _ours(name: str, data: Mixture, seed: int) -> NDArray[np.int64]:
    return estimator(name, data.n_clusters, seed).fit(data.X, tasks=data.tasks).labels_


def _task_by_task(make: Callable[[int, int], Any], data: Mixture, seed: int) -> NDArray[np.int64]:
    return np.concatenate([make(data.n_clusters, seed).fit_predict(part) for part in data.parts])


def _spectral(data: Mixture, seed: int) -> NDArray[np.int64]:
    labels = []
    for part in data.parts:
        few = part[:: max(1, len(part) // _DISTANCE_ROWS)]
        sigma = WIDTH * pairwise_distances(few).sum() / (len(few) * (len(few) - 1))
        model = SpectralClustering(data.n_clusters, gamma=0.5 / sigma**2, random_state=seed)
        labels.append(model.fit_predict(part))
    return np.concatenate(labels)


def _gemclus(n_clusters: int, seed: int) -> Any:
    from gemclus.linear import LinearMMD

    return LinearMMD(n_clusters=n_clusters, random_state=seed)


METHODS: dict[str, Method] = {
    **{name: partial(_ours, name) for name in (*OURS, *OURS_RBF)},
    REFERENCE: partial(_task_by_task, lambda C, seed: KMeans(C, n_init=1, random_state=seed)),
    "KMeans (n_init=10)": partial(_task_by_task, lambda C, seed: KMeans(C, n_init=10, random_state=seed)),
    "MiniBatchKMeans": partial(_task_by_task, lambda C, seed: MiniBatchKMeans(C, n_init=3, random_state=seed)),
    "GaussianMixture": partial(_task_by_task, lambda C, seed: GaussianMixture(C, random_state=seed)),
    SPECTRAL: _spectral,
    GEMCLUS: partial(_task_by_task, _gemclus),
}


def methods_for(cell: Cell) -> list[str]:
    """The methods that are run on a cell: those that form n × n matrices, and RBF kernels, only on small ones."""
    few = cell.rows <= MOST_ROWS_OF_PAIRS
    names = [REFERENCE, *OURS, *(name for name in METHODS if name not in (REFERENCE, *OURS, *OURS_RBF))]
    if not few:
        names = [name for name in names if name not in (SPECTRAL, GEMCLUS)]
    elif not has_gemclus():
        names.remove(GEMCLUS)
    return [*names, *OURS_RBF] if cell.rows == MOST_ROWS_OF_PAIRS else names
