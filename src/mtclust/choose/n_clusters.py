r"""The number of clusters, and whether there are any.

On a few hundred rows, for every number C of a range, the rows are labelled (:mod:`mtclust.choose.sweep`) and judged
(:mod:`mtclust.choose.judge`), and so are Gaussian rows with the mean and covariance of every task. Of the ways to look
at several tasks (alone, together, in a common frame) the one with the largest lead over that noise is taken. No single
signal is right on all tables, so that three have a vote there, and the median counts:

- *separation*: the number with the largest lead R² − R²₀ of leave-one-out prediction over noise, times how well the
  clusters of one task are recovered in the others,
- *distance*: the number with the highest silhouette of k-means,
- *density*: the number with the lowest BIC of Gaussian mixtures.

Whether there is anything is answered in three steps: columns that do not depend on each other within tasks have *no
structure beyond the marginals*; rows that are separated no better than Gaussian rows have *no structure beyond one
elliptical cloud*; else there are *clusters*. Nothing depends on ``random_state``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.choose._old.few_values import columns_to_spread, judging_kernels, spread
from mtclust.choose._old.judge import Judge
from mtclust.choose.number_choice import ClusterNumberChoice, Structure, lead_over_noise
from mtclust.choose.settings import sample_rows
from mtclust.choose.structure import columns_depend, deciding_column, gaussian_kernel, gaussian_rows
from mtclust.choose.sweep import Look, Swept, sweep
from mtclust.choose.views import KernelSpec, View
from mtclust.choose.votes import by_density, by_distance
from mtclust.core.kernels import Kernel, is_precomputed
from mtclust.core.labels import counts_by_task
from mtclust.core.tasks import TaskIndex, index_tasks
from mtclust.core.validation import split_task_column
from mtclust.util.threads import one_blas_thread

Array = NDArray[np.float64]

#: candidates when none are given
CANDIDATES = range(2, 13)
#: what clusters that tasks lack take from the lead of a common frame, times their share of all
_ABSENT = 0.2
#: rows that the number is chosen on
ROWS = 400
#: sets of Gaussian rows
_NULL_DRAWS = 2
#: share of tables with independent columns that may be taken for dependent
_LEVEL = 0.02
#: mean gap to Gaussian rows, over numbers up to this, that clusters must have: few Gaussian rows reach it
_FEW_CLUSTERS = 6
CLEAR_GAP = 0.1


def select_n_clusters(
    estimator: Any, X: Any, *, tasks: Any = None, candidates: Iterable[int] = CANDIDATES
) -> ClusterNumberChoice:
    """Choose the number of clusters without labels, and say whether there are any.

    Costs about as much as a few fits of some hundred rows, however many rows there are. The same data give the same
    answer.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        Only its kernel and ``task_column`` matter.
    X, tasks
        As in ``fit``.
    candidates : iterable of int, default=range(2, 13)

    Returns
    -------
    ClusterNumberChoice

    Examples
    --------
    >>> from mtclust import DSTC
    >>> from mtclust.selection import select_n_clusters
    >>> from sklearn.datasets import make_blobs
    >>> X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    >>> choice = select_n_clusters(DSTC(), X, candidates=range(2, 6))
    >>> choice.n_clusters, choice.structure
    (3, 'clusters')
    """
    numbers = sorted({int(c) for c in candidates})
    if estimator.task_column is not None:
        X, tasks = split_task_column(X if hasattr(X, "shape") else np.asarray(X), estimator.task_column)
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    rows = spread(rows, columns_to_spread(estimator, rows))
    return choose_n_clusters(estimator, rows, index_tasks(tasks, rows.shape[0]), numbers, names)


def choose_n_clusters(
    estimator: Any, table: Any, index: TaskIndex, numbers: list[int], names: list[str] | None = None
) -> ClusterNumberChoice:
    """The same for a table that numbers of rows index, and its tasks.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
    table : array, CSR matrix or table of a Dask collection
    index : TaskIndex
    numbers : list of int
        At least 2, ascending.
    names : list of str, optional
        Of the columns.
    """
    if not numbers or numbers[0] < 2:
        raise ValueError(f"candidates={numbers} must hold numbers of clusters >= 2.")
    precomputed = is_precomputed(estimator.kernel)
    sample = sample_rows(np.arange(table.shape[0])[:, None] if precomputed else table, index, ROWS)
    rows, offsets = sample.rows, sample.index.offsets
    if precomputed:
        chosen = rows[:, 0].astype(np.int64)
        rows = table[chosen][:, chosen]
    with one_blas_thread():
        if precomputed or sp.issparse(rows) or not isinstance(estimator.kernel, str):
            return _of_kernel(_kernel_of(estimator, rows, precomputed), offsets, numbers)
        return _of_rows(estimator, rows, offsets, numbers, names)


def _kernel_of(estimator: Any, rows: Any, precomputed: bool) -> Array:
    """The kernel matrix of rows that are known through it, or of texts."""
    if precomputed:
        kernel = rows
    elif isinstance(estimator.kernel, str):
        kernel = rows @ rows.T
    else:
        kernel = Kernel("callable", function=estimator.kernel)(rows, rows)
    return np.asarray(kernel.toarray() if sp.issparse(kernel) else kernel, dtype=np.float64)


def _of_kernel(kernel: Array, offsets: NDArray[np.int64], numbers: list[int]) -> ClusterNumberChoice:
    spec = (KernelSpec("precomputed"),)
    data = _swept(View(kernel, offsets), spec, spec, numbers, across=True)
    noise = [
        _swept(View(gaussian_kernel(kernel, offsets, np.random.default_rng(draw)), offsets), spec, spec, numbers)
        for draw in range(_NULL_DRAWS)
    ]
    return _choice(View(kernel, offsets), spec[0], numbers, data, noise)[0]


def _of_rows(
    estimator: Any, rows: Array, offsets: NDArray[np.int64], numbers: list[int], names: list[str] | None
) -> ClusterNumberChoice:
    specs, judging = _search_kernels(estimator.kernel, estimator.width), judging_kernels(estimator.kernel)
    view = View(rows, offsets)
    data = _swept(view, specs, judging, numbers, across=True)
    noise = [
        _swept(View(gaussian_rows(rows, offsets, np.random.default_rng(draw)), offsets), specs, judging, numbers)
        for draw in range(_NULL_DRAWS)
    ]
    choice, labels = _choice(view, KernelSpec("linear"), numbers, data, noise)
    structure, column = choice.structure, None
    if not columns_depend(rows, offsets, _LEVEL):
        structure = "marginals"
    if labels is not None:
        column = deciding_column(rows, offsets, labels, choice.n_clusters)
    name = column if column is None or names is None else names[column]
    return replace(choice, structure=structure, column=name)


def _search_kernels(kernel: str, width: Any) -> tuple[KernelSpec, ...]:
    """The kernels that labels are searched with."""
    rbf = KernelSpec("rbf", 1.0 if width == "auto" else float(width))
    return {"auto": (KernelSpec("linear"), rbf), "linear": (KernelSpec("linear"),), "rbf": (rbf,)}[kernel]


def _swept(
    view: View, specs: tuple[KernelSpec, ...], judging: tuple[KernelSpec, ...], numbers: list[int], across: bool = False
) -> list[Swept]:
    judge = Judge.of(view, judging, by_shape=False)
    looks: tuple[Look, ...] = ("alone", "together", "common") if len(view.offsets) > 2 else ("alone",)
    return sweep(view, specs, judge, numbers, looks, across)


def _lead(view: View, numbers: list[int], swept: Swept, null: Array) -> float:
    """The largest lead over noise of one look; clusters that tasks lack count against a common frame.

    Tasks that are shifted apart have clusters of their own there, each easy to predict.
    """
    lead = lead_over_noise(numbers, swept.separation - np.maximum(null.mean(axis=1), 0.0))
    if swept.look == "common":
        absent = [
            0.0 if labels is None else np.mean(counts_by_task(labels, view.offsets, C) == 0)
            for labels, C in zip(swept.labels, numbers)
        ]
        lead = lead - _ABSENT * np.asarray(absent)
    return float(lead.max())


def _choice(
    view: View, spec: KernelSpec, numbers: list[int], data: list[Swept], noise: list[list[Swept]]
) -> tuple[ClusterNumberChoice, NDArray[np.int64] | None]:
    """The look with the largest lead over noise, the median of the votes in it, and the labels for that."""
    nulls = [np.stack([draw[look].separation for draw in noise], axis=1) for look in range(len(data))]
    best = int(np.argmax([_lead(view, numbers, swept, null) for swept, null in zip(data, nulls)]))
    swept = data[best]
    # where tasks lack clusters, what is found in one need not be there in another
    agreement = data[0].agreement if swept.look != "common" else None
    gaps = swept.separation - nulls[best].mean(axis=1)
    kernel = view.through(spec, "all" if swept.look == "common" else "task").centred.matrix
    votes = {"separation": numbers[int(lead_over_noise(numbers, gaps, agreement).argmax())]}
    for name, vote in (
        ("distance", by_distance(kernel, numbers)),
        ("density", by_density(kernel, numbers, swept.labels)),
    ):
        if vote is not None:
            votes[name] = vote
    chosen = sorted(votes.values())[(len(votes) - 1) // 2]
    k = numbers.index(chosen)
    structure: Structure = "clusters" if _evidence(numbers, data, nulls) > CLEAR_GAP else "cloud"
    choice = ClusterNumberChoice(
        chosen, numbers, swept.separation, nulls[best], agreement, votes, structure, swept.look
    )
    return choice, swept.labels[k]


def _evidence(numbers: list[int], data: list[Swept], nulls: list[Array]) -> float:
    """Mean gap over the smaller numbers, tasks around their own centres: less at the mercy of chance than one gap."""
    few = np.array(numbers) <= max(_FEW_CLUSTERS, numbers[0])
    gaps = [(swept.separation - null.mean(axis=1))[few] for swept, null in zip(data, nulls) if swept.look != "common"]
    known = np.concatenate(gaps)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else 0.0
