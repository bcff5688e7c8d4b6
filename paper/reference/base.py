"""What the reference methods share: runs from random starts, and what makes a function a method of the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state

from mtclust.core.tasks import index_tasks


@dataclass(frozen=True)
class Run:
    """One run of a method from one random start, on one task or on all of them.

    ``history`` has the objective at the start and after every step; the last entry is what the run has reached.
    """

    labels: NDArray[np.int64]
    history: tuple[float, ...]

    @property
    def objective(self) -> float:
        return self.history[-1]


#: ``cluster(X, tasks, n_clusters, n_init, rng, **setting)``, with the rows sorted by task and the slice of every task:
#: a run per start, for all tasks together or for each by itself
Cluster = Callable[..., list[list[Run]]]


@dataclass(frozen=True)
class Clustered:
    """Labels in the order of the rows and their objective; the labels of every single start, one row each."""

    labels: NDArray[np.int64]
    objective: float
    starts: NDArray[np.int64]


@dataclass(frozen=True)
class ReferenceMethod:
    """One method of the paper's comparison."""

    name: str
    cluster: Cluster
    default: Mapping[str, Any] = field(default_factory=dict)  # written down before the first result, but LSSMTC's start
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # hyper-parameter → values tried
    pooled: bool = False  # whether the rows of all tasks are one table
    reconstruction: bool = False  # whether it was rebuilt from an abstract: tables and plots must say so

    @property
    def label(self) -> str:
        """The name for tables and plots; says so if the method is a reconstruction."""
        return f"{self.name} (reconstruction)" if self.reconstruction else self.name

    def settings(self) -> list[dict[str, Any]]:
        """All points of the grid; one empty setting if there is no grid."""
        return list(ParameterGrid(dict(self.grid)))

    def fit(self, X: Any, tasks: Any, n_clusters: int, *, n_init: int = 10, seed: int = 0, **setting: Any) -> Clustered:
        """Cluster rows with the default setting, except for what is given; the lowest objective of ``n_init`` starts.

        Where tasks are clustered apart each keeps its own best start.
        """
        index = index_tasks(None if self.pooled else tasks, X.shape[0])
        for name, size in zip(index.names.tolist(), index.sizes.tolist()):
            if size < n_clusters:
                raise ValueError(f"task {name!r} has {size} rows, fewer than the {n_clusters} clusters.")
        rng = check_random_state(seed)
        parts = self.cluster(X[index.order], index.slices(), n_clusters, n_init, rng, **{**self.default, **setting})
        best = [min(runs, key=lambda run: run.objective) for runs in parts]
        starts = [index.to_input_order(_labels(runs)) for runs in zip(*parts)]
        return Clustered(
            index.to_input_order(_labels(best)), float(sum(run.objective for run in best)), np.stack(starts)
        )


def _labels(runs: Sequence[Run]) -> NDArray[np.int64]:
    return np.concatenate([run.labels for run in runs])


def fell_less_than(tol: float, before: Any, after: Any) -> Any:
    """Whether an objective fell by no more than ``tol`` times its size (elementwise for arrays)."""
    return before - after <= tol * np.abs(before)


def k_means_runs(X: Any, n_clusters: int, n_init: int, rng: RandomState) -> list[Run]:
    """Scikit-learn's k-means of one table, from several starts."""
    with warnings.catch_warnings():
        # fewer distinct rows than clusters: some stay empty then
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = [KMeans(n_clusters, n_init=1, random_state=rng).fit(X) for _ in range(n_init)]
    return [Run(fit.labels_.astype(np.int64), (float(fit.inertia_),)) for fit in fits]
