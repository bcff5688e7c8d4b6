r"""Passes under the size-neutral criterion E (:mod:`mtclust.core.criterion`) over the rows of a source.

With many rows leaving one out changes little, and E becomes Σ_c ω(n_c)·b_cᵀW_c with class sums b_c and models W_c.
Moving a row x to cluster c gains, to first order, ω_c(f_c(x) − ½(1−γ)(1−2π_c)R²_c): scores with a constant of their
own, so that a pass needs no search for prices. Values are −E, summed over tasks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import BaseCoupling, objective
from mtclust.core.criterion import GAMMA, decision_weights
from mtclust.core.labels import code_scale
from mtclust.primal.rows import Data
from mtclust.problem.feature_descent import FEW_CHANGES, FeatureFit, class_vectors, coupling_steps
from mtclust.problem.protocol import Effort, Point

Array = NDArray[np.float64]

#: steps of the coupling after a pass
_COUPLING_STEPS = 2


def explained(fit: FeatureFit) -> tuple[Array, Array]:
    """Shares π and R² of the training rows, per task and cluster (m × C)."""
    counts = np.stack([task.counts for task in fit.tasks])
    shares = counts / counts.sum(axis=1, keepdims=True)
    a, _ = code_scale(counts.shape[1])
    spread = shares * (1 - shares)
    # b = (2a/n)Φᵀz and W = a·(the model of z), so that bᵀW = (2a²/n)·(explained sum of squares)
    sums = np.einsum("irc,irc->ic", fit.b, fit.W) / (2 * a**2)
    return shares, np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0)


def value_of(fit: FeatureFit) -> float:
    shares, r_squared = explained(fit)
    return -float(np.sum((4 * shares * (1 - shares)) ** GAMMA * r_squared))


def decision_models(fit: FeatureFit) -> tuple[Array, Array]:
    """Models (m × r × C) and constants (m × C) that score a row by what it would add to E."""
    shares, r_squared = explained(fit)
    a, _ = code_scale(shares.shape[1])
    scale, offset = decision_weights(shares, r_squared)
    return fit.W * (scale / a)[:, None, :], offset


def score_weights(fit: FeatureFit) -> tuple[Array, Array, Array]:
    """Shares, and the scale and offset that turn membership minus the share into a score (m × C each)."""
    shares, r_squared = explained(fit)
    return shares, *decision_weights(shares, r_squared)


def scored_by(data: Data, offset: Array) -> Data:
    """The same rows, whose scores get constants of their own."""
    return replace(data, moments=replace(data.moments, offset=offset))


def descend(data: Data, coupling: BaseCoupling, point: Point, effort: Effort) -> Point:
    """Passes while E rises; the labels of the best are kept.

    In place; only the tasks of the effort change their labels.
    """
    fit = point.fit
    tasks = list(range(data.n_tasks)) if effort.tasks is None else list(effort.tasks)
    n_rows = int(data.moments.sizes[tasks].sum())
    point.value, point.converged = value_of(fit), False
    point.record(effort.stage, "start")
    for _ in range(effort.max_iter):
        before = point.value
        models, offset = decision_models(fit)
        changed = data.source.relabel(scored_by(data, offset), models, fit.tasks, tasks)
        fit.b[tasks] = class_vectors(data.moments, tasks, [fit.tasks[i] for i in tasks])
        fit.W = fit.solver.models(fit.b)
        if effort.learn:  # in closed form it lowers J, which is what its steps are measured by
            coupling_steps(coupling, Point(fit, objective(fit.b, fit.W)), effort.tol, effort.stage, _COUPLING_STEPS)
        point.value = value_of(fit)
        point.record(effort.stage, "labels")
        point.n_iter += 1
        if changed <= FEW_CHANGES * n_rows or before - point.value <= effort.tol * abs(before):
            point.converged = True
            break
    return point
