"""The methods the paper compares with, under the paper's names, with their grids.

What is not known about the originals stands in the docstrings of the functions.

To add one: write a function like :func:`~paper.reference.kernel_methods.kernel_k_means` and a line in the table below.

>>> list(REFERENCE_METHODS)[:4]
['KM', 'KKM', 'NC', 'ALL KM']
>>> REFERENCE_METHODS["MBC"].label
'MBC (reconstruction)'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mtclust.core.tasks import index_tasks
from paper.reference.kernel_methods import WIDTHS, Run, k_means, kernel_k_means, lskmtc, normalised_cut
from paper.reference.lssmtc import lssmtc
from paper.reference.mbc import mbc

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
        labels, *starts = (
            index.to_input_order(np.concatenate([run.labels for run in runs])) for runs in (best, *zip(*parts))
        )
        return Clustered(labels, float(sum(run.objective for run in best)), np.stack(starts))


_WIDTH: Any = {"default": {"width": 1.0}, "grid": {"width": WIDTHS}}
_METHODS = (
    ReferenceMethod("KM", k_means),
    ReferenceMethod("KKM", kernel_k_means, **_WIDTH),
    ReferenceMethod("NC", normalised_cut, **_WIDTH),
    ReferenceMethod("ALL KM", k_means, pooled=True),
    ReferenceMethod("ALL KKM", kernel_k_means, pooled=True, **_WIDTH),
    ReferenceMethod("ALL NC", normalised_cut, pooled=True, **_WIDTH),
    ReferenceMethod(
        "LSSMTC",
        lssmtc,
        {"trade_off": 0.5, "n_components": 4},
        {"trade_off": (0.25, 0.5, 0.75), "n_components": (2, 4, 8, 16)},
    ),
    ReferenceMethod(
        "LSKMTC",
        lskmtc,
        {"mmd_weight": 10.0, "n_neighbors": 10},
        {"mmd_weight": (1.0, 10.0, 100.0, 1000.0), "n_neighbors": (5, 10)},
        reconstruction=True,
    ),
    ReferenceMethod("MBC", mbc, {"strength": 1.0}, {"strength": (0.0625, 0.25, 1.0, 4.0)}, reconstruction=True),
)

#: name → method, in the order of the paper
REFERENCE_METHODS = {method.name: method for method in _METHODS}
