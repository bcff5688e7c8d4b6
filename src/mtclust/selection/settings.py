"""Kernel width, λ and cluster sizes: what the arguments of an estimator leave open, chosen in one place for every form.

With kernel matrices λ and width are chosen on all rows, and cluster sizes by searching under each candidate; for
explicit features and wide sparse tables everything is chosen on a sample, by the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.features import CentredKernel, Kernel, centre_kernel, raw_kernel, squared_distances
from mtclust.labels import SizeBounds, parse_sizes
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.outcome import Outcome
from mtclust.search.recipe import solve
from mtclust.search.variants import released
from mtclust.selection.kernel import LAMBDAS, WIDTHS, centred_rbf, select_kernel
from mtclust.selection.sizes import choose_sizes
from mtclust.tasks import TaskIndex, index_tasks

Array = NDArray[np.float64]

#: tasks and rows that settings of large data are chosen on
_TASKS = 6
_ROWS = 600
#: random starts of a task on the sample
_STARTS = 8


@dataclass(frozen=True)
class Sample:
    """Rows of some tasks, sorted by task.

    Attributes
    ----------
    rows : array or CSR matrix
    index : TaskIndex
        Of these rows.
    tasks : ndarray
        Which tasks these are.
    complete : bool
        Whether these are all rows.
    """

    rows: Any
    index: TaskIndex
    tasks: NDArray[np.int64]
    complete: bool = False


@dataclass(frozen=True)
class Settings:
    """What was chosen, and from what.

    Attributes
    ----------
    kernel : Kernel
    centred : CentredKernel or None
        Its matrix for the rows of the sample, where it was needed.
    lambda1 : ndarray of shape (m,)
    lambda2 : float
    sizes : str or None
        "open" where the search is to choose, the rule that was chosen on a sample, or None where sizes were given.
    selection : dict
        For ``selection_``.
    """

    kernel: Kernel
    centred: CentredKernel | None
    lambda1: Array
    lambda2: float
    sizes: str | None
    selection: dict[str, Any]


def all_rows(X: Any, index: TaskIndex) -> Sample:
    """Every row, as float64."""
    rows = X[index.order]
    if rows.dtype != np.float64:
        rows = rows.astype(np.float64)
    return Sample(rows, index, np.arange(index.n_tasks), complete=True)


def settings_sample(X: Any, index: TaskIndex, rng: np.random.Generator) -> Sample:
    """At most ``_ROWS`` rows of at most ``_TASKS`` tasks, the largest ones."""
    tasks = np.sort(np.argsort(-index.sizes, kind="stable")[:_TASKS])
    per_task = np.minimum(index.sizes[tasks], max(1, _ROWS // len(tasks)))
    parts = [
        index.order[index.offsets[i] + np.sort(rng.choice(int(index.sizes[i]), int(k), replace=False))]
        for i, k in zip(tasks, per_task)
    ]
    rows = X[np.concatenate(parts)]
    if not sp.issparse(rows):
        rows = np.asarray(rows, dtype=np.float64)
    return Sample(rows, index_tasks(np.repeat(tasks, per_task), int(per_task.sum())), tasks)


def choose_settings(
    estimator: Any,
    sample: Sample | None,
    index: TaskIndex,
    clusters: NDArray[np.int64],
    rng: np.random.Generator,
) -> Settings:
    """Choose what the estimator's arguments leave open.

    Parameters
    ----------
    estimator : DMTRC, DMTFC or DSTC
        Only its parameters are read.
    sample : Sample or None
        The rows to choose on; None where :func:`needs_sample` says that nothing is left open.
    index : TaskIndex
        Of all rows.
    clusters : ndarray of shape (m,)
        Number of clusters of every task.
    rng : numpy Generator
    """
    m, share = index.n_tasks, estimator._lambda2_share(index.n_tasks)
    ridge_per_lambda = 1.0 + m * share
    lambda1, lambda2, lambdas = _given_lambdas(estimator, index, ridge_per_lambda)
    selection: dict[str, Any] = {"sizes": estimator.sizes}
    if sample is None:
        kernels: dict[float | None, Kernel] = {None: _plain_kernel(estimator)}
        centred: dict[float | None, CentredKernel] = {}
    else:
        kernels, centred = _candidates(estimator, sample)
    width = next(iter(kernels))
    # with a single setting, one cluster or rows that do not differ there is nothing to choose from
    flat = all(kernel.scale == 0 for kernel in centred.values()) or clusters.max() == 1
    if sample is not None and (len(kernels) > 1 or len(lambdas) > 1) and not flat:
        bounds = _bounds_of(estimator, sample, clusters)
        choice = select_kernel(centred, bounds, lambdas, ridge_per_lambda, rng, estimator.n_jobs)
        width, lambdas = choice.width, (choice.lambda_,)
        selection["candidates"], selection["reason"] = choice.candidates, choice.reason
    if lambda1 is None or lambda2 is None:
        lambda1, lambda2 = np.full(m, lambdas[-1]), lambdas[-1]
    by_task = isinstance(estimator.lambda1, Mapping)
    selection["lambda1"] = dict(zip(index.names.tolist(), lambda1.tolist())) if by_task else float(lambda1[0])
    selection["lambda2"] = lambda2
    if width is not None:
        selection["width"] = width
    sizes = None
    if _sizes_open(estimator, clusters) and centred[width].scale > 0:
        assert sample is not None
        sizes = "open"
        if not sample.complete:
            sizes = _sizes_on_sample(
                estimator, sample, centred[width], clusters, lambda1, lambda2 * share, rng, selection
            )
    if sample is not None and not sample.complete:
        selection["chosen_on"] = f"{sample.rows.shape[0]} rows of {sample.index.n_tasks} tasks"
    return Settings(kernels[width], centred.get(width), lambda1, lambda2 * share, sizes, selection)


def needs_sample(estimator: Any, clusters: NDArray[np.int64]) -> bool:
    """Whether anything is left open, or needs distances between rows."""
    given = estimator.lambda1 != "auto" or estimator.lambda2 != "auto"
    kind = estimator.kernel if isinstance(estimator.kernel, str) else "callable"
    return kind == "rbf" or not given or _sizes_open(estimator, clusters)


def search_with_sizes(
    problem: Any,
    settings: Settings,
    options: SearchOptions,
    rng: np.random.Generator,
    index: TaskIndex,
) -> Outcome:
    """The search under the sizes that were given or chosen, or under every candidate where that is still open."""
    if settings.sizes == "open":
        choice = choose_sizes(problem, lambda part: solve(part, options, rng), options, rng)
        settings.selection["sizes"] = {
            "chosen": choice.chosen,
            "reason": choice.reason,
            "scores": choice.scores,
            "labels": {name: index.to_input_order(found) for name, found in choice.labels.items()},
        }
        return choice.result
    outcome = solve(problem, options, rng)
    return released(outcome, options, rng) if settings.sizes == "released" else outcome


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


def _given_lambdas(
    estimator: Any, index: TaskIndex, ridge_per_lambda: float
) -> tuple[Array | None, float | None, tuple[float, ...]]:
    """λ₁ by task and λ₂ as they are given (None: both open), and the values of λ to choose from."""
    lambda1 = given_lambda1(estimator.lambda1, index)
    lambda2 = None if estimator.lambda2 == "auto" else float(estimator.lambda2)
    if lambda1 is None and lambda2 is None:
        return None, None, LAMBDAS
    # one of the two given: the other is the same
    lambda1 = np.full(index.n_tasks, lambda2) if lambda1 is None else lambda1
    lambda2 = float(lambda1.mean()) if lambda2 is None else lambda2
    return lambda1, lambda2, (float(lambda1.mean() + (ridge_per_lambda - 1.0) * lambda2) / ridge_per_lambda,)


def _sizes_open(estimator: Any, clusters: NDArray[np.int64]) -> bool:
    """Whether sizes are to be chosen: without centring one big cluster would be best."""
    left_open = isinstance(estimator.sizes, str) and estimator.sizes == "auto"
    return bool(left_open and clusters.max() > 1 and estimator.fit_intercept and estimator.solver == "exchange")


def _plain_kernel(estimator: Any) -> Kernel:
    """A kernel without a width."""
    if not isinstance(estimator.kernel, str):
        return Kernel("callable", function=estimator.kernel)
    return Kernel(estimator.kernel)


def _candidates(estimator: Any, sample: Sample) -> tuple[dict[float | None, Kernel], dict[float | None, CentredKernel]]:
    """The kernels to choose from, by width (None for kernels without one)."""
    centre, rows, offsets = estimator.fit_intercept, sample.rows, sample.index.offsets
    if estimator.kernel == "rbf":
        squared = squared_distances(rows)
        widths = WIDTHS if estimator.width == "auto" else (float(estimator.width),)
        built = {width: centred_rbf(squared, width, offsets, centre) for width in widths}
        return (
            {width: Kernel("rbf", sigma=sigma) for width, (_, sigma) in built.items()},
            {width: centred for width, (centred, _) in built.items()},
        )
    kernel = _plain_kernel(estimator)
    if kernel.kind == "precomputed":
        raw = _precomputed(rows, sample.index)
    else:
        raw = raw_kernel(kernel, rows, offsets, centre)
    return {None: kernel}, {None: centre_kernel(raw, offsets, centre)}


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


def _bounds_of(estimator: Any, sample: Sample, clusters: NDArray[np.int64]) -> SizeBounds:
    """Size bounds of the rows to choose on: the estimator's rule, balanced where that is a table of other rows."""
    if sample.complete:
        return parse_sizes(estimator.sizes, sample.index.sizes, clusters, sample.index.names)
    rule = estimator.sizes if isinstance(estimator.sizes, str | float | int | tuple) else "balanced"
    return parse_sizes(rule, sample.index.sizes, np.minimum(clusters[sample.tasks], sample.index.sizes))


def _sizes_on_sample(
    estimator: Any, sample: Sample, kernel: CentredKernel, clusters: NDArray[np.int64], lambda1: Array, lambda2: float,
    rng: np.random.Generator, selection: dict[str, Any],
) -> str:  # fmt: skip
    """Balanced, released, free or estimated sizes, as each task of the sample alone prefers."""
    weight = lambda2 * len(lambda1) / sample.index.n_tasks
    bounds = _bounds_of(estimator, sample, clusters)
    offsets = sample.index.offsets
    problem = KernelProblem(kernel.matrix, offsets, bounds, lambda1[sample.tasks], weight, "independent")
    options = SearchOptions(single_task_n_init=_STARTS, n_jobs=estimator.n_jobs)
    choice = choose_sizes(problem, lambda part: solve(part, options, rng), options, rng)
    selection["sizes"] = {"chosen": choice.chosen, "reason": choice.reason, "scores": choice.scores}
    return choice.chosen
