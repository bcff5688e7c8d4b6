r"""Scores of every row from models that were fitted without it, for every form of the data.

Ridge regression leaves a row out in closed form: its residual is divided by 1 − h_j, or by 1 − h_j − 1/n_i where the
task's mean is taken off the features and goes without the row as well. The leverage h_j = 1 − (n_i/2)M_jj with kernel
matrices, (2/n_i)φ_jᵀQ_iφ_j with explicit features. Where neither M nor Q is formed (wide sparse tables) the mean
leverage of a task stands for that of each row, found from random signs v: E[vᵀHv] = tr H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from mtclust.core.labels import code_scale, label_codes
from mtclust.core.membership import left_out
from mtclust.primal.sources import LocalRows
from mtclust.problem.feature_predictability import score_weights

if TYPE_CHECKING:
    from mtclust.core.coupling import Conditioned
    from mtclust.problem.features import FeatureProblem
    from mtclust.problem.kernels import KernelProblem
    from mtclust.problem.protocol import Point

Array = NDArray[np.float64]

#: columns of random signs that the mean leverage is found from
_PROBES = 8


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
    blocks = point.fit.solver.blocks()

    def leverages(task: int, features: Array) -> Array:
        n = int(problem.data.moments.sizes[task])
        return np.einsum("nr,nr->n", features @ blocks[task], features) * (2.0 / n)

    return _from_rows(problem, point, leverages)


def scores_matrix_free(problem: FeatureProblem, point: Point) -> Array:
    """Scores (N × C) of all rows of a wide sparse table, the mean leverage standing for that of each row."""
    means = _mean_leverages(problem, point)
    return _from_rows(problem, point, lambda task, features: np.full(features.shape[0], means[task]))


def _from_rows(problem: FeatureProblem, point: Point, leverages: Any) -> Array:
    fit, own, offsets = point.fit, problem.data.moments, problem.offsets
    C = problem.n_clusters
    centred = not np.any(own.total)
    neutral = problem.criterion == "E"
    a, rest = code_scale(C)
    W = fit.W / a if neutral else fit.W
    shares, weights, offset = score_weights(fit)
    means = shares if neutral else a * shares - rest
    result = np.empty((int(offsets[-1]), C))
    for task in range(problem.n_tasks):
        first, n = int(offsets[task]), int(own.sizes[task])
        labels = np.asarray(fit.tasks[task].labels, dtype=np.int64)
        constant = (own.mean[task] @ W[task]) / own.root_scale
        for begin, end, block in cast(LocalRows, problem.data.source).blocks(task):
            codes = label_codes(labels[begin:end], C)
            targets = (codes + rest) / a if neutral else codes
            fitted = np.asarray(block @ W[task]) / own.root_scale - constant
            features = block if _is_sparse(block) else own.centred(task, block)
            scores = left_out(targets, fitted, leverages(task, features), means[task] if centred else None, n)
            if neutral:
                scores = scores * weights[task] + offset[task]
            result[first + begin : first + end] = np.where(problem.bounds.present[task], scores, -np.inf)
    return result


def _is_sparse(block: Any) -> bool:
    return hasattr(block, "tocsr")


def _mean_leverages(problem: FeatureProblem, point: Point) -> Array:
    """tr(H_ii)/n_i of every task, H the map from targets to what is fitted."""
    own, source = problem.data.moments, cast(LocalRows, problem.data.source)
    rng = np.random.default_rng(0)
    signs = [rng.choice([-1.0, 1.0], size=(int(n), _PROBES)) for n in own.sizes]
    parts = [next(iter(source.blocks(task)))[2] for task in range(problem.n_tasks)]
    b = np.stack(
        [
            (2.0 / len(v)) * (X.T @ v - np.outer(own.mean[i], v.sum(axis=0))) / own.root_scale
            for i, (X, v) in enumerate(zip(parts, signs))
        ]
    )
    W = type(point.fit.solver)(point.fit.solver.system, point.fit.Z).models(b)
    means = []
    for i, (X, v) in enumerate(zip(parts, signs)):
        fitted = (X @ W[i] - own.mean[i] @ W[i]) / own.root_scale
        means.append(float(np.einsum("nc,nc->", v, fitted)) / (v.size))
    return np.clip(means, 0.0, 1.0)
