r"""Scores of every row from models that were fitted without it, for every form of the data.

Ridge regression leaves a row out in closed form: its residual is divided by 1 − h_j, or by 1 − h_j − 1/n_i where the
task's mean is taken off the features and goes without the row as well. The leverage h_j = 1 − (n_i/2)M_jj with kernel
matrices, (2/n_i)φ_jᵀQ_iφ_j with explicit features.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.membership import left_out
from mtclust.primal.sources import LocalRows

if TYPE_CHECKING:
    from mtclust.core.coupling import Conditioned
    from mtclust.problem.features import FeatureProblem
    from mtclust.problem.kernels import KernelProblem
    from mtclust.problem.protocol import Point

Array = NDArray[np.float64]


def scores_with_kernels(problem: KernelProblem, point: Point, codes: Array | None = None) -> Array:
    """Scores (N × C) of all rows, each left out; ``codes`` as in :meth:`KernelProblem.decision`."""
    assert problem.origin is not None
    centred = problem.origin.centred.centred
    present = problem.bounds.fitted(point.labels, problem.offsets).present
    if codes is None:
        codes = problem.codes(point.labels)
    else:
        present = np.ones_like(present)
    at = point.fit.at
    result = predictions_with_kernels(at, codes, problem.offsets, centred)
    weights = problem.criterion.decision_weights(at, codes)
    for i, (a, b) in enumerate(zip(problem.offsets[:-1], problem.offsets[1:])):
        if weights is not None:
            result[a:b] = result[a:b] * weights[0][i] + weights[1][i]
        result[a:b] = np.where(present[i], result[a:b], -np.inf)
    return result


def predictions_with_kernels(at: Conditioned, codes: Array, offsets: NDArray[np.int64], centred: bool) -> Array:
    """What models of given codes (N × C) predict for every row that is left out; with the task's centre, if centred."""
    alpha, diagonal = at.alpha(codes), at.diagonal()
    result = np.empty_like(codes)
    for a, b in zip(offsets[:-1], offsets[1:]):
        n = b - a
        fitted = codes[a:b] - 0.5 * n * alpha[a:b]
        mean = codes[a:b].mean(axis=0) if centred else None
        result[a:b] = left_out(codes[a:b], fitted, 1.0 - 0.5 * n * diagonal[a:b], mean, n)
    return result


def scores_with_features(problem: FeatureProblem, point: Point) -> Array:
    """Scores (N × C) of all rows, each left out."""
    fit, own, offsets = point.fit, problem.data.moments, problem.offsets
    C, blocks = problem.n_clusters, point.fit.solver.blocks()
    W, weights = problem.criterion.left_out_weights(fit)
    # the mean code of every task, where features are centred
    means = (fit.counts / own.sizes[:, None]) @ problem.criterion.codes(np.arange(C), C)
    centred = not np.any(own.total)
    result = np.empty((int(offsets[-1]), C))
    for task in range(problem.n_tasks):
        first, n = int(offsets[task]), int(own.sizes[task])
        labels = np.asarray(fit.tasks[task].labels, dtype=np.int64)
        for begin, end, block in cast(LocalRows, problem.data.source).blocks(task):
            codes, Phi = problem.criterion.codes(labels[begin:end], C), own.centred(task, block)
            leverages = np.einsum("nr,nr->n", Phi @ blocks[task], Phi) * (2.0 / n)
            scores = left_out(codes, Phi @ W[task], leverages, means[task] if centred else None, n)
            if weights is not None:
                scores = scores * weights[0][task] + weights[1][task]
            result[first + begin : first + end] = np.where(problem.bounds.present[task], scores, -np.inf)
    return result
