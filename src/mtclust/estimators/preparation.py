"""From checked rows to a problem a solver can take: kernel, width, λ and size bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.features import CentredKernel, Kernel, centre_kernel, raw_kernel, squared_distances
from mtclust.labels import parse_sizes
from mtclust.selection.kernel import LAMBDAS, WIDTHS, centred_rbf, select_kernel
from mtclust.solvers.problem import Problem
from mtclust.tasks import TaskIndex

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prepared:
    """Everything chosen before the solver runs."""

    rows: Any
    index: TaskIndex
    kernel: Kernel
    centred: CentredKernel
    problem: Problem
    selection: dict[str, Any]


def prepare(
    estimator: Any, features: Any, index: TaskIndex, n_clusters: NDArray[np.int64], rng: np.random.Generator
) -> Prepared:
    """Sort the rows by task and settle kernel, width and λ as the estimator's arguments ask.

    ``n_clusters`` holds the number of clusters of every task.
    """
    bounds = parse_sizes(estimator.sizes, index.sizes, n_clusters, index.names)
    rows = features[index.order]
    if rows.dtype != np.float64:
        rows = rows.astype(np.float64)
    kernels, centred = _candidate_kernels(estimator, rows, index)
    given1, given2 = given_lambda1(estimator.lambda1, index), estimator.lambda2
    share = estimator._lambda2_share(index.n_tasks)
    ridge_per_lambda = 1.0 + index.n_tasks * share
    selection: dict[str, Any] = {"sizes": estimator.sizes}
    lambdas: tuple[float, ...] = LAMBDAS
    if given1 is not None or given2 != "auto":
        # one of the two given: the other is the same
        given1 = np.full(index.n_tasks, float(given2)) if given1 is None else given1
        given2 = float(given1.mean()) if given2 == "auto" else float(given2)
        lambdas = (float(given1.mean() + index.n_tasks * share * given2) / ridge_per_lambda,)
    width = next(iter(kernels))
    # with a single setting, one cluster or rows that do not differ there is nothing to choose from
    flat = all(kernel.scale == 0 for kernel in centred.values()) or n_clusters.max() == 1
    if (len(kernels) > 1 or len(lambdas) > 1) and not flat:
        choice = select_kernel(centred, bounds, lambdas, ridge_per_lambda, rng, estimator.n_jobs)
        width, lambdas = choice.width, (choice.lambda_,)
        selection["candidates"], selection["reason"] = choice.candidates, choice.reason
    if given1 is None:
        given1, given2 = np.full(index.n_tasks, lambdas[-1]), lambdas[-1]
    by_task = isinstance(estimator.lambda1, Mapping)
    selection["lambda1"] = dict(zip(index.names.tolist(), given1.tolist())) if by_task else float(given1[0])
    selection["lambda2"] = given2
    if width is not None:
        selection["width"] = width
    problem = Problem(centred[width].matrix, index.offsets, bounds, given1, given2 * share)
    return Prepared(rows, index, kernels[width], centred[width], problem, selection)


def clusters_per_task(n_clusters: Any, index: TaskIndex) -> NDArray[np.int64]:
    """The number of clusters of every task from a number or a mapping task → number."""
    if not isinstance(n_clusters, Mapping):
        return np.full(index.n_tasks, n_clusters, dtype=np.int64)
    names = index.names.tolist()
    missing, surplus = [n for n in names if n not in n_clusters], [n for n in n_clusters if n not in names]
    if missing or surplus:
        raise ValueError(
            f"n_clusters must have one entry per task; missing: {missing or 'none'}, not a task: {surplus or 'none'}."
        )
    for name in names:
        value = n_clusters[name]
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ValueError(f"n_clusters must hold whole numbers >= 1, one per task; got {value!r} for task {name!r}.")
    return np.array([n_clusters[name] for name in names], dtype=np.int64)


def given_lambda1(lambda1: Any, index: TaskIndex) -> Array | None:
    """One λ₁ per task from a number or a mapping; None for "auto"."""
    if not isinstance(lambda1, Mapping):
        return None if lambda1 == "auto" else np.full(index.n_tasks, float(lambda1))
    names = index.names.tolist()
    missing, surplus = [n for n in names if n not in lambda1], [n for n in lambda1 if n not in names]
    if missing or surplus:
        raise ValueError(
            f"lambda1 must have one entry per task; missing: {missing or 'none'}, not a task: {surplus or 'none'}."
        )
    values = np.array([float(lambda1[name]) for name in names])
    if not np.all(np.isfinite(values)) or np.any(values < 0):
        raise ValueError(f"lambda1 must hold numbers >= 0; got {dict(lambda1)}.")
    return values


def _candidate_kernels(
    estimator: Any, rows: Any, index: TaskIndex
) -> tuple[dict[float | None, Kernel], dict[float | None, CentredKernel]]:
    """The kernels to choose from, by width (None for kernels without one)."""
    centre, offsets = estimator.fit_intercept, index.offsets
    if not isinstance(estimator.kernel, str):
        kernel = Kernel("callable", function=estimator.kernel)
        return {None: kernel}, {None: centre_kernel(kernel(rows, rows), offsets, centre)}
    if estimator.kernel == "linear":
        kernel = Kernel("linear")
        return {None: kernel}, {None: centre_kernel(raw_kernel(kernel, rows, offsets, centre), offsets, centre)}
    if estimator.kernel == "precomputed":
        return {None: Kernel("precomputed")}, {None: centre_kernel(_precomputed(rows, index), offsets, centre)}
    squared = squared_distances(rows)
    widths = WIDTHS if estimator.width == "auto" else (float(estimator.width),)
    built = {width: centred_rbf(squared, width, offsets, centre) for width in widths}
    return (
        {width: Kernel("rbf", sigma=sigma) for width, (_, sigma) in built.items()},
        {width: centred for width, (centred, _) in built.items()},
    )


def _precomputed(rows: Any, index: TaskIndex) -> Array:
    if rows.shape[0] != rows.shape[1]:
        raise ValueError(f'X has shape {rows.shape}; kernel="precomputed" needs the square kernel matrix of all rows.')
    matrix = rows.toarray() if sp.issparse(rows) else rows
    matrix = matrix[:, index.order]
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-8 * float(np.abs(matrix).max())):
        apart = float(np.abs(matrix - matrix.T).max())
        raise ValueError(
            f"X is not symmetric (entries differ by up to {apart:.3g} from their mirror images); "
            'kernel="precomputed" needs the kernel matrix of all rows with each other.'
        )
    return matrix
