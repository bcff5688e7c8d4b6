"""Small relaxed problems, and their optimum by cvxpy with the hull and the models written out."""

import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from mtclust.core.coupling import BaseCoupling, Independent, Relationship
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.core.labels import SizeBounds, parse_sizes
from mtclust.relaxation.cutting_plane import CuttingPlaneOptions
from mtclust.search.problem import Problem

LAMBDA1, LAMBDA2 = 0.1, 0.2
#: more exact than the comparison with cvxpy needs
EXACT = CuttingPlaneOptions(init="random", max_cuts=200, gap_tol=3e-6, zero_tol=0, level_tol=3e-6, max_level_steps=400)


@dataclass(frozen=True)
class Small:
    problem: Problem
    coupling: BaseCoupling
    features: np.ndarray  # ΦΦᵀ is the kernel

    @property
    def parts(self):
        offsets = self.problem.offsets
        return [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:])]


def small_problem(
    method, *, sizes="balanced", task_sizes=(8, 6), n_clusters=3, d=3, centre=False, seed=0, lambda1=None
):
    """Gaussian rows, linear kernel; ``method`` is "relationship", "features" or "independent"."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(task_sizes)]).astype(np.int64)
    X = rng.normal(size=(offsets[-1], d)) + rng.normal(size=d)
    if centre:
        for a, b in zip(offsets[:-1], offsets[1:]):
            X[a:b] -= X[a:b].mean(axis=0)
    kernel = centre_kernel(X @ X.T, offsets, centre)
    m = len(task_sizes)
    bounds = sizes if isinstance(sizes, SizeBounds) else parse_sizes(sizes, task_sizes, n_clusters)
    features = eigen_features(kernel.matrix) if method == "features" else None
    first = np.full(m, LAMBDA1) if lambda1 is None else np.array(lambda1)
    problem = Problem(kernel.matrix, offsets, bounds, first, LAMBDA2, method, features)
    return Small(problem, problem.coupling, X / np.sqrt(kernel.scale))


def hull(problem):
    """Ỹ of every task as cvxpy expressions and the constraints that make them the convex hull of the labellings.

    The hull is a transportation polytope: shares at least 0, one row each, cluster sizes within bounds.
    """
    codes, constraints = [], []
    for task, n in enumerate(np.diff(problem.offsets)):
        C = problem.n_clusters
        Z = cp.Variable((int(n), C), nonneg=True)
        sizes = cp.sum(Z, axis=0)
        constraints += [cp.sum(Z, axis=1) == 1]
        constraints += [sizes >= problem.bounds.lower[task], sizes <= problem.bounds.upper[task]]
        codes.append((C * Z - 1) / (C - 1))
    return codes, constraints


def mixtures(problem, pools):
    """Ỹ of every task as mixtures of given labellings."""
    from mtclust.core.labels import label_codes

    codes, constraints = [], []
    for pool in pools:
        mu = cp.Variable(len(pool), nonneg=True)
        constraints.append(cp.sum(mu) == 1)
        codes.append(sum(mu[k] * label_codes(labels, problem.n_clusters) for k, labels in enumerate(pool)))
    return codes, constraints


def reference_optimum(small, codes, constraints):
    """min J(Ỹ, W, Z) by cvxpy; eliminating Z leaves λ₂/2 times a squared nuclear norm of the stacked models."""
    problem, C = small.problem, small.problem.n_clusters
    m, d = problem.n_tasks, small.features.shape[1]
    W = [cp.Variable((d, C)) for _ in range(m)]
    penalty = sum(0.5 * lambda1 * cp.sum_squares(w) for lambda1, w in zip(problem.lambda1, W))
    if isinstance(small.coupling, Independent):
        penalty += 0.5 * m * LAMBDA2 * sum(cp.sum_squares(w) for w in W)
    elif isinstance(small.coupling, Relationship):
        stacked = cp.hstack([cp.reshape(w, (d * C, 1), order="F") for w in W])
        penalty += 0.5 * LAMBDA2 * cp.square(cp.normNuc(stacked))
    else:
        rank = small.coupling.features.rank
        penalty += 0.5 * LAMBDA2 * m / rank * cp.square(cp.normNuc(cp.hstack(W)))
    loss = sum(
        cp.sum_squares(codes[i] - small.features[rows] @ W[i]) / (rows.stop - rows.start)
        for i, rows in enumerate(small.parts)
    )
    program = cp.Problem(cp.Minimize(penalty + loss), constraints)
    with warnings.catch_warnings():  # 1e-11 is more than is compared, and not reached on every machine
        warnings.filterwarnings("ignore", "Solution may be inaccurate", UserWarning)
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_threads=1)
    return float(program.value)
