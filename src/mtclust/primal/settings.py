"""Kernel width, λ and cluster sizes of large data, chosen on a sample by the rules for small data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mtclust.features import CentredKernel, Kernel, centre_kernel, raw_kernel, squared_distances
from mtclust.labels import SizeBounds, parse_sizes
from mtclust.selection.kernel import LAMBDAS, WIDTHS, centred_rbf, select_kernel
from mtclust.selection.sizes import choose_sizes
from mtclust.solvers.exchange import solve_independent
from mtclust.solvers.problem import Problem, SolverOptions
from mtclust.tasks import TaskIndex, index_tasks

Array = NDArray[np.float64]

#: tasks and rows that settings are chosen on
_TASKS = 6
_ROWS = 600
#: random starts of a task on the sample
_STARTS = 8


@dataclass(frozen=True)
class Sample:
    """Rows of some tasks, sorted by task."""

    rows: Any
    index: TaskIndex
    tasks: NDArray[np.int64]


@dataclass(frozen=True)
class Settings:
    """What was chosen, and from what."""

    kernel: Kernel
    lambda1: Array
    lambda2: float
    sizes: str | None  # the rule that ``sizes="auto"`` chose, None where sizes were given
    selection: dict[str, Any]


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


def settle(
    estimator: Any,
    X: Any,
    index: TaskIndex,
    clusters: NDArray[np.int64],
    given1: Array | None,
    rng: np.random.Generator,
) -> Settings:
    """Settle what the estimator's arguments leave open; ``given1`` is λ₁ by task, None for "auto"."""
    share, m = estimator._lambda2_share(index.n_tasks), index.n_tasks
    ridge_per_lambda = 1.0 + m * share
    selection: dict[str, Any] = {"sizes": estimator.sizes}
    given2 = None if estimator.lambda2 == "auto" else float(estimator.lambda2)
    lambdas: tuple[float, ...] = LAMBDAS
    if given1 is not None or given2 is not None:
        given1 = np.full(m, given2) if given1 is None else given1
        given2 = float(given1.mean()) if given2 is None else given2
        lambdas = (float(given1.mean() + m * share * given2) / ridge_per_lambda,)
    open_sizes = estimator.sizes == "auto" if isinstance(estimator.sizes, str) else False
    open_sizes = open_sizes and clusters.max() > 1 and estimator.fit_intercept
    kind = estimator.kernel if isinstance(estimator.kernel, str) else "callable"
    widths = WIDTHS if kind == "rbf" and estimator.width == "auto" else (None,)
    if kind == "rbf" or len(lambdas) > 1 or open_sizes:
        sample = settings_sample(X, index, rng)
        kernels, centred = _candidates(estimator, kind, widths, sample)
    else:
        kernels, centred = {None: Kernel("linear") if kind == "linear" else _callable(estimator)}, {}
    width = next(iter(kernels))
    if len(kernels) > 1 or len(lambdas) > 1:
        bounds = _sample_bounds(estimator, sample, clusters)
        if clusters.max() > 1 and any(kernel.scale > 0 for kernel in centred.values()):
            choice = select_kernel(centred, bounds, lambdas, ridge_per_lambda, rng, estimator.n_jobs)
            width, lambdas = choice.width, (choice.lambda_,)
            selection["candidates"], selection["reason"] = choice.candidates, choice.reason
    if given1 is None or given2 is None:
        given1, given2 = np.full(m, lambdas[-1]), lambdas[-1]
    selection["lambda1"], selection["lambda2"] = float(given1[0]), given2
    if np.ptp(given1) > 0:
        selection["lambda1"] = dict(zip(index.names.tolist(), given1.tolist()))
    if width is not None:
        selection["width"] = width
    sizes = None
    if open_sizes and centred[width].scale > 0:
        sizes = _choose_sizes(estimator, sample, centred[width], clusters, given1, given2 * share, m, rng, selection)
    if kind != "linear" or len(lambdas) > 1 or open_sizes:
        selection["chosen_on"] = f"{_ROWS} rows of {min(m, _TASKS)} tasks at most"
    return Settings(kernels[width], given1, given2 * share, sizes, selection)


def _callable(estimator: Any) -> Kernel:
    return Kernel("callable", function=estimator.kernel)


def _candidates(
    estimator: Any, kind: str, widths: tuple[float | None, ...], sample: Sample
) -> tuple[dict[float | None, Kernel], dict[float | None, CentredKernel]]:
    """Kernels of the sample to choose from, by width."""
    centre, offsets = estimator.fit_intercept, sample.index.offsets
    if kind != "rbf":
        kernel = Kernel("linear") if kind == "linear" else _callable(estimator)
        return {None: kernel}, {None: centre_kernel(raw_kernel(kernel, sample.rows, offsets, centre), offsets, centre)}
    squared = squared_distances(sample.rows)
    if widths == (None,):
        widths = (float(estimator.width),)
    kernels, centred = {}, {}
    for width in widths:
        assert width is not None
        centred[width], sigma = centred_rbf(squared, width, offsets, centre)
        kernels[width] = Kernel("rbf", sigma=sigma)
    return kernels, centred  # type: ignore[return-value]


def _sample_bounds(estimator: Any, sample: Sample, clusters: NDArray[np.int64]) -> SizeBounds:
    """Size bounds of the sample: the estimator's rule, balanced where that is a table of the whole tasks."""
    rule = estimator.sizes if isinstance(estimator.sizes, str | float | int | tuple) else "balanced"
    return parse_sizes(rule, sample.index.sizes, np.minimum(clusters[sample.tasks], sample.index.sizes))


def _choose_sizes(
    estimator: Any, sample: Sample, kernel: CentredKernel, clusters: NDArray[np.int64],
    lambda1: Array, lambda2: float, n_tasks: int, rng: np.random.Generator, selection: dict[str, Any],
) -> str:  # fmt: skip
    """Balanced, free or estimated sizes, as each task of the sample alone prefers."""
    bounds = _sample_bounds(estimator, sample, clusters)
    weight = lambda2 * n_tasks / sample.index.n_tasks
    problem = Problem(kernel.matrix, sample.index.offsets, bounds, lambda1[sample.tasks], weight)
    options = SolverOptions(single_task_n_init=_STARTS, n_jobs=estimator.n_jobs)
    choice = choose_sizes(problem, lambda part: solve_independent(part, options, rng), options, rng)
    selection["sizes"] = {"chosen": choice.chosen, "reason": choice.reason, "scores": choice.scores}
    return choice.chosen
