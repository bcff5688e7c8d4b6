"""LSSMTC: clustering in every task and in a subspace that all tasks share (Gu and Zhou 2009)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from paper.reference.kernel_methods import Run, fell_less_than, k_means_runs

Array = NDArray[np.float64]

#: the most sweeps of a run, and the share by which the objective must fall for another
MAX_STEPS, _TOLERANCE = 1000, 1e-4
#: with fewer features than clusters the fit can become exact; an objective below this share of |X|² counts as 0
_EXACT_FIT = 1e-8
#: a row whose memberships have all died out (the rule keeps zeros) is left alone instead of divided by nearly 0
_NO_MEMBERSHIP = 1e-200
#: the multiplicative rule cannot leave 0, so the start must not contain any; the value of Ding, Li and Jordan (2010)
_START_OFFSET = 0.2


def lssmtc(
    X: Any, tasks: Sequence[slice], n_clusters: int, n_init: int, rng: RandomState, *, trade_off: float,
    n_components: int,
) -> list[list[Run]]:  # fmt: skip
    """Learning the shared subspace for multitask clustering (Gu and Zhou 2009), with one repaired step.

    X_k is d×n_k (columns are rows of the input), P_k ≥ 0 holds memberships, M_k the centres of task k, W (d×l,
    WᵀW = I) a subspace in which all tasks share the centres M::

        min  λ Σ_k |X_k − M_k P_kᵀ|² + (1−λ) Σ_k |WᵀX_k − M P_kᵀ|²

    λ is ``trade_off``, l ``n_components``, at most the rank of X. Every sweep updates M and M_k by least squares, P_k
    by the published multiplicative rule, W by a Procrustes step (see :func:`update_subspace`). The objective never
    rises. The label of a row is the argmax of its row of P_k; ids mean the same in every task.

    The repaired step: the published multiplicative rule for W keeps the zeros of its start W = eye(d, l), so it never
    learns a subspace, and from a dense start it can raise the objective (the tests record both). It also asks for
    W ≥ 0, which is dropped here.

    The start matters more than in k-means: any C independent non-negative rows of P fit C clusters equally well, so
    from memberships drawn at random the argmax often merges clusters although the objective is low. The start is
    therefore 1 for the cluster of a k-means run on the rows of all tasks, plus a little everywhere; it was chosen after
    seeing results, also the NMI of pendigits draw 0. The paper's grid is not printed.

    The input is first written in the coordinates of its span, because directions in which no row varies would give
    W an empty subspace with objective 0.
    """
    coordinates = span_coordinates(X)
    problem = SharedSubspace([coordinates[part] for part in tasks], trade_off)
    # indicators of the clusters, plus a little everywhere
    labels = np.stack([run.labels for run in k_means_runs(coordinates, n_clusters, n_init, rng)])
    memberships = np.eye(n_clusters)[labels] + _START_OFFSET
    return [descend(problem, start_from([memberships[:, part] for part in tasks], problem, n_components))]


def span_coordinates(X: Any) -> Array:
    """The rows of X in an orthonormal basis of their span, strongest direction first.

    Distances and products between rows do not change. From the smaller of the two Gram matrices, so that sparse X is
    never made dense.
    """
    n_samples, n_features = X.shape
    wide = n_features > n_samples
    gram = safe_sparse_dot(X, X.T, dense_output=True) if wide else safe_sparse_dot(X.T, X, dense_output=True)
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    # what a rounding error in the Gram matrix can look like is not a direction of the data
    rank = max(1, int((values > values[0] * max(X.shape) * np.finfo(np.float64).eps).sum()))
    basis = vectors[:, :rank]
    return np.asarray(basis * np.sqrt(np.maximum(values[:rank], 0)) if wide else safe_sparse_dot(X, basis))


class SharedSubspace:
    """The problem: rows of each task (X_kᵀ of the formula), λ, and what can be computed from them beforehand."""

    def __init__(self, tables: Sequence[Array], trade_off: float) -> None:
        self.tables = list(tables)
        self.trade_off = trade_off
        self.gram: Array = np.sum([table.T @ table for table in self.tables], axis=0)
        self.squared_norm = float(np.trace(self.gram))
        self.largest_eigenvalue = float(np.linalg.eigvalsh(self.gram)[-1])


class State(NamedTuple):
    """The variables of many restarts at once: every array has the restart as its first axis."""

    memberships: list[Array]
    subspace: Array
    centers: list[Array]
    shared_centers: Array

    def select(self, restarts: NDArray[np.bool_]) -> State:
        """The variables of some of the restarts."""
        memberships, centers = ([values[restarts] for values in own] for own in (self.memberships, self.centers))
        return State(memberships, self.subspace[restarts], centers, self.shared_centers[restarts])


def start_from(memberships: list[Array], problem: SharedSubspace, n_components: int) -> State:
    """W the strongest directions of the data, centres by least squares."""
    n_features = problem.gram.shape[0]
    subspace = np.tile(np.eye(n_features, min(n_components, n_features)), (len(memberships[0]), 1, 1))
    return update_centers(problem, State(memberships, subspace, [], np.empty(0)))


def update_centers(problem: SharedSubspace, state: State) -> State:
    """M = WᵀXP(PᵀP)⁻¹ and M_k = X_kP_k(P_kᵀP_k)⁻¹: least squares."""
    sums = [table.T @ P for table, P in zip(problem.tables, state.memberships)]
    grams = [P.transpose(0, 2, 1) @ P for P in state.memberships]
    # one call for all of them: at this size the overhead of a call is what costs
    *inverses, shared_inverse = np.linalg.pinv(np.stack([*grams, np.sum(grams, axis=0)]), hermitian=True)
    centers = [XP @ inverse for XP, inverse in zip(sums, inverses)]
    shared = state.subspace.transpose(0, 2, 1) @ np.sum(sums, axis=0) @ shared_inverse
    return state._replace(centers=centers, shared_centers=shared)


def update_memberships(problem: SharedSubspace, state: State) -> State:
    """P_k ← P_k ∘ sqrt[(A⁺ + P_kB⁻)/(A⁻ + P_kB⁺)], A = λX_kᵀM_k + (1−λ)X_kᵀWM, B = λM_kᵀM_k + (1−λ)MᵀM."""
    own, shared = problem.trade_off, 1 - problem.trade_off
    lifted = shared * state.subspace @ state.shared_centers
    shared_gram = shared * state.shared_centers.transpose(0, 2, 1) @ state.shared_centers
    memberships = []
    for table, P, M in zip(problem.tables, state.memberships, state.centers):
        A = table @ (own * M + lifted)
        B = own * M.transpose(0, 2, 1) @ M + shared_gram
        numerator = np.maximum(A, 0) + P @ np.maximum(-B, 0)
        denominator = np.maximum(-A, 0) + P @ np.maximum(B, 0)
        ratio = np.divide(numerator, denominator, out=np.ones_like(P), where=denominator > _NO_MEMBERSHIP)
        memberships.append(P * np.sqrt(ratio))
    return state._replace(memberships=memberships)


def update_subspace(problem: SharedSubspace, state: State) -> State:
    """W ← UVᵀ with USVᵀ = svd((aI − XXᵀ)W + XPMᵀ), a the largest eigenvalue of XXᵀ.

    The part of the objective that depends on W is tr(WᵀXXᵀW) − 2 tr(WᵀXPMᵀ). On WᵀW = I its quadratic part equals the
    concave −tr(Wᵀ(aI − XXᵀ)W) up to a constant, which lies below its tangent at the present W; minimising the tangent
    plus the linear part is an orthogonal Procrustes problem. So the objective cannot rise.
    """
    sums: Array = np.sum([table.T @ P for table, P in zip(problem.tables, state.memberships)], axis=0)
    W = state.subspace
    target = problem.largest_eigenvalue * W - problem.gram @ W + sums @ state.shared_centers.transpose(0, 2, 1)
    U, _, Vt = np.linalg.svd(target, full_matrices=False)
    return state._replace(subspace=U @ Vt)


def objective(problem: SharedSubspace, state: State) -> Array:
    """The objective of each restart."""
    own, shared = problem.trade_off, 1 - problem.trade_off
    total: Any = 0.0
    for table, P, M in zip(problem.tables, state.memberships, state.centers):
        Pt = P.transpose(0, 2, 1)
        total = total + own * _squares(table.T - M @ Pt)
        total = total + shared * _squares(state.subspace.transpose(0, 2, 1) @ table.T - state.shared_centers @ Pt)
    return np.asarray(total)


def descend(problem: SharedSubspace, state: State) -> list[Run]:
    """Sweep all restarts together, each until it stops by itself."""
    values = objective(problem, state)
    histories = [[float(value)] for value in values]
    labels = np.empty((len(values), sum(map(len, problem.tables))), dtype=np.int64)
    running = np.arange(len(values))
    for step in range(1, MAX_STEPS + 1):
        state = update_subspace(problem, update_memberships(problem, update_centers(problem, state)))
        before, values = values, objective(problem, state)
        for restart, value in zip(running.tolist(), values.tolist()):
            histories[restart].append(value)
        stopped = fell_less_than(_TOLERANCE, before, values) | (values <= _EXACT_FIT * problem.squared_norm)
        leaving = stopped | (step == MAX_STEPS)
        labels[running[leaving]] = np.concatenate([P[leaving].argmax(axis=2) for P in state.memberships], axis=1)
        running, values, state = running[~leaving], values[~leaving], state.select(~leaving)
        if len(running) == 0:
            break
    # a cluster can end without rows in all tasks: the ids have no gaps then
    return [Run(np.unique(own, return_inverse=True)[1], tuple(history)) for own, history in zip(labels, histories)]


def _squares(values: Array) -> Array:
    return np.asarray(np.einsum("...ij,...ij->...", values, values))
