r"""What labels are judged by: the paper's J, and the size-neutral E. Values are to be lowered, so that of E is −E.

A search moves labels only through a criterion. Where every exchange is tried (kernel matrices) it says what a labelling
is worth under one coupling, how the labels of one task are improved while those of the others stay, and what its tasks
can begin with: random labels refined along a path of falling λ. At large λ the objective is smooth in the labels and a
local search finds the coarse structure; following it down to the wanted λ avoids the poor local optima that a direct
search ends in. Where a pass moves all rows at once (explicit features) it says what labels are worth from their class
sums and models, and by which models rows are scored. To add one, inherit :class:`PaperObjective` and write a line in
:data:`CRITERIA`.

**E: how well membership of a cluster is predicted for rows that are left out.** The paper's J explains the variance of
the cluster indicators, and the variance nπ(1 − π) of an indicator is largest for halves: a poor cut in the middle beats
a perfect cut of a small cluster. E weighs what is explained of every cluster by a power of its evenness only. For the
one-hot labels z_c of a task with n rows and shares π_c

.. math:: E = \sum_c (4\pi_c(1-\pi_c))^{\gamma} R_c^2, \qquad R_c^2 = 1 - \frac{\|e_c\|^2}{n\pi_c(1-\pi_c)}
          \Big(\frac{n-1}{n}\Big)^2

with e_c the leave-one-out residuals of ridge regression on z_c, the mean fitted as well. With M of
:mod:`mtclust.core.coupling` (rows of task i, features centred within tasks)

.. math:: R = \tfrac{n_i}{2} M - \tfrac1{n_i} 11^T, \qquad e_c = \mathrm{diag}(R)^{-1} R z_c

γ = 1 with training residuals Rz_c in place of e_c is the paper's J, up to a constant and a factor (a = C/(C−1)):
J = (2/n)a² Σ_c z_cᵀRz_c, and Σ_c π_c(1−π_c)·(1 − z_cᵀRz_c/(nπ_c(1−π_c))) is that with the sign changed. γ = 0 would
weigh all clusters alike and split off the smallest tight ones; ¼ to ½ is a plateau. Leaving rows out is what forbids
clusters of one row.

Given the other tasks, ‖e_c‖² = zᵀAz + 2zᵀF + const is quadratic in the labels z of one task, so that the gain of moving
one row from cluster p to q takes a few operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import ArrayLike, NDArray

from mtclust import core
from mtclust.core import Array, Integers, Labels
from mtclust.core.coupling import Conditioned, objective
from mtclust.core.labels import code_scale, label_codes

#: weight of evenness: 1 is the paper's, 0 weighs every cluster alike
GAMMA = 0.25
#: diag(R) is kept from 0, for a row that fits any label of its own has no leave-one-out residual; and an exchange must
#: lower the objective by this share of the mean diagonal of M
SMALLEST_RESIDUAL = 1e-9


def indicators(labels: ArrayLike, n_clusters: int) -> Array:
    """One-hot labels z (n × C)."""
    return (np.asarray(labels)[:, None] == np.arange(n_clusters)).astype(np.float64)


def means_of_clusters(rows: Array, labels: ArrayLike, n_clusters: int) -> Array:
    """Mean of the rows of every cluster (C × d), 0 of none."""
    z = indicators(labels, n_clusters)
    return np.asarray(z.T @ rows / np.maximum(z.sum(axis=0), 1.0)[:, None])


def weights_of_sizes(counts: Integers, rows: ArrayLike) -> tuple[Array, Array]:
    """For clusters of so many rows: what each adds to E if predicted perfectly, and what a unit of ‖e‖² takes from it.

    Both are 0 for a cluster that is empty or fills the task: there is nothing to predict.
    """
    n = np.asarray(rows, dtype=np.float64)
    share = counts / n
    variance = share * (1 - share)
    some = variance > 0
    weight = np.where(some, (4 * variance) ** GAMMA, 0.0)
    unit = np.where(some, weight / (n * np.where(some, variance, 1.0)), 0.0) * ((n - 1) / n) ** 2
    return weight, unit


@lru_cache(maxsize=256)
def size_weights(n_rows: int) -> tuple[Array, Array]:
    """:func:`weights_of_sizes` of clusters of 0 … n rows."""
    return weights_of_sizes(np.arange(n_rows + 1), n_rows)


def decision_weights(shares: Array, r_squared: Array) -> tuple[Array, Array]:
    """Scale and constant that turn predicted membership into what a row would add to E.

    A row x adds, to first order, ω_c(f_c(x) − ½(1−γ)(1−2π_c)R²_c) with ω_c = (4π_c(1−π_c))^γ/(π_c(1−π_c)), where f_c is
    the predicted membership minus π_c. A cluster that a task lacks, or that fills it, is weighed as in the other tasks;
    one that no task tells from others gets scale 0.
    """
    own = (shares > 0) & (shares < 1)
    count = np.maximum(np.count_nonzero(own, axis=0), 1)
    shares, r_squared = (np.where(own, part, np.sum(part * own, axis=0) / count) for part in (shares, r_squared))
    variance = shares * (1 - shares)
    some = variance > 0
    scale = np.where(some, (4 * variance) ** GAMMA / np.where(some, variance, 1.0), 0.0)
    return scale, -scale * 0.5 * (1 - GAMMA) * (1 - 2 * shares) * r_squared


def random_labels(n: int, lower: Labels, upper: Labels, rng: np.random.Generator) -> Labels:
    """Random labels whose sizes lie within the bounds, as even as those allow."""
    sizes = lower.copy()
    while sizes.sum() < n:
        room = np.flatnonzero(sizes < upper)
        smallest = room[sizes[room] == sizes[room].min()]
        left = n - sizes.sum()
        sizes[smallest if len(smallest) <= left else rng.choice(smallest, left, replace=False)] += 1
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def ridge_inverses(kernel: Array, ridges: Array) -> list[Array]:
    """M = (K/λ + (n/2)I)⁻¹ of one task for every ridge λ, from one eigendecomposition."""
    n = len(kernel)
    eigenvalues, vectors = sla.eigh(kernel)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    inverses = ((vectors / (eigenvalues / ridge + 0.5 * n)) @ vectors.T for ridge in ridges)
    return [0.5 * (M + M.T) for M in inverses]


def partition_key(labels: Integers, n_clusters: int) -> bytes:
    """The same for labellings that differ only by the names of the clusters."""
    order = np.full(n_clusters, n_clusters)
    clusters, first = np.unique(labels, return_index=True)
    order[clusters[np.argsort(first)]] = np.arange(len(clusters))
    return order[labels].astype(np.int32).tobytes()


@dataclass(frozen=True)
class QuadraticTerm:
    """½⟨Y, MY⟩ + ⟨Y, L⟩: J as a function of the labels of one task, those of the others fixed.

    ``linear_term`` is L, what the other tasks say; None where they say nothing.
    """

    M: Array
    n_clusters: int
    linear_term: Array | None = None

    def value(self, labels: Labels) -> float:
        Y = label_codes(labels, self.n_clusters)
        linear = 0.0 if self.linear_term is None else float(np.vdot(Y, self.linear_term))
        return 0.5 * float(np.vdot(Y, self.M @ Y)) + linear

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> int:
        """Improve labels within the sizes, in place, until nothing does; how often they changed.

        Only the rows ``free`` may move; all by default.
        """
        if self.n_clusters == 1:
            return 0
        P = label_codes(labels, self.n_clusters).T @ self.M
        if self.linear_term is not None:
            P += self.linear_term.T
        counts = np.bincount(labels, minlength=self.n_clusters)
        tolerance = SMALLEST_RESIDUAL * float(self.M.trace()) / len(self.M)
        order = np.arange(len(labels)) if free is None else free.copy()
        return int(core.compiled.exchange(self.M, P, labels, counts, lower, upper, order, tolerance, seed))

    def cost_of_renaming(self, labels: Labels) -> Array:
        """What naming cluster c (row) as d (column) adds to the value, up to a constant, where other tasks say that."""
        return label_codes(labels, self.n_clusters).T @ np.asarray(self.linear_term)


@dataclass(frozen=True)
class LeaveOneOutTerm:
    """−E of one task as a function of its labels z: ‖e_c‖² = zᵀAz + 2zᵀF + const."""

    residual_map: Array  # diag(R)⁻¹R: labels to leave-one-out residuals (n × n)
    A: Array  # ``residual_map.T @ residual_map`` (n × n)
    n_clusters: int
    divisors: Array  # diag(R) (n × 1)
    # what the labels of the other tasks add to the residuals; None where they add nothing (n × C)
    from_others: Array | None = None
    linear_term: Array | None = None  # L of :class:`QuadraticTerm` (n × C)

    @classmethod
    def of(cls, M: Array, n_clusters: int) -> LeaveOneOutTerm:
        """From a task's block of M; the other tasks say nothing yet."""
        n = len(M)
        R = (0.5 * n) * M - 1.0 / n
        divisors = np.maximum(R.diagonal(), SMALLEST_RESIDUAL)[:, None]
        R /= divisors
        return cls(R, R.T @ R, n_clusters, divisors)

    def value(self, labels: Labels) -> float:
        e = self.residual_map @ indicators(labels, self.n_clusters)
        if self.from_others is not None:
            e = e + self.from_others
        counts, (weight, unit) = np.bincount(labels, minlength=self.n_clusters), size_weights(len(labels))
        return -float(np.sum(weight[counts] - unit[counts] * np.einsum("nc,nc->c", e, e)))

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> int:
        """Move rows to other clusters, each time the best for that row, until E of the task cannot rise.

        They take turns in an order that follows from ``seed``. With P = (Az + F)ᵀ a row j that leaves p
        changes ‖e_p‖² by A_jj − 2P_pj, one that enters q by A_jj + 2P_qj.
        """
        order = np.random.default_rng(int(seed[0])).permutation(len(labels))
        order = order if free is None else order[np.isin(order, free)]
        n, A = len(labels), self.A
        F, errors = np.zeros((self.n_clusters, n)), np.zeros(self.n_clusters)
        if self.from_others is not None:
            F = np.ascontiguousarray(self.from_others.T @ self.residual_map)
            errors = np.einsum("nc,nc->c", self.from_others, self.from_others)
        P, rows, own, (weight, unit) = F.copy(), np.arange(n), A.diagonal(), size_weights(n)
        np.add.at(P, labels, A)
        np.add.at(errors, labels, P[labels, rows] + F[labels, rows])
        counts, moved, place = np.bincount(labels, minlength=self.n_clusters), 0, 0
        while True:
            fewer, more, now = counts - 1, np.minimum(counts + 1, n), unit[counts] * errors
            left = errors[labels] - 2.0 * P[labels, rows] + own
            lost = weight[fewer][labels] - unit[fewer][labels] * left - weight[counts][labels] + now[labels]
            entered = errors[:, None] + 2.0 * P + own
            gains = lost + weight[more][:, None] - unit[more][:, None] * entered + (now - weight[counts])[:, None]
            gains[labels, rows], gains[counts >= upper], gains[:, (counts <= lower)[labels]] = 0.0, 0.0, 0.0
            found = np.flatnonzero(gains.max(axis=0)[order] > 1e-10)
            if not len(found):
                return moved
            place = found[np.searchsorted(found, place) % len(found)]  # the next in turn
            j = order[place]
            p, q = labels[j], gains[:, j].argmax()
            errors[p], errors[q] = left[j], entered[q, j]
            P[p] -= A[j]
            P[q] += A[j]
            counts[p] -= 1
            counts[q] += 1
            labels[j], moved, place = q, moved + 1, place + 1

    def cost_of_renaming(self, labels: Labels) -> Array:
        counts, (weight, unit) = np.bincount(labels, minlength=self.n_clusters), size_weights(len(labels))
        e = self.residual_map @ indicators(labels, self.n_clusters)
        errors = np.tile(np.einsum("nc,nc->c", e, e)[:, None], (1, self.n_clusters))
        if self.from_others is not None:  # ‖e‖² of cluster c (row) if it had the name d (column)
            constant = np.einsum("nc,nc->c", self.from_others, self.from_others)
            errors = errors + 2 * (e.T @ self.from_others) + constant
        return unit[counts][:, None] * errors - weight[counts][:, None]


Term = QuadraticTerm | LeaveOneOutTerm


class PaperObjective:
    """J = ½⟨Y, MY⟩ (paper, eq. 20 with W eliminated): labels are exchanged within the cluster sizes.

    Points of a search on all rows (``fit``) have class vectors b_i = 2Φ_iᵀY_i/n_i and models W (m × r × C each) and
    cluster sizes ``counts`` (m × C).
    """

    name = "J"
    #: whether labels change within sizes that count, by exchanges and passes that lower the value for certain
    exchanges = True

    #: starts follow λ times these in turn
    path: tuple[float, ...] = (1024.0, 256.0, 64.0, 16.0, 4.0, 1.0)
    #: random starts of a task, at most
    most_starts: int | None = None
    #: the targets (n × C) that models are fitted to, of labels and C
    codes = staticmethod(label_codes)
    #: the value of all tasks, from what is factorised and the targets; lower is better
    value = staticmethod(Conditioned.objective)
    #: the criterion of a task alone, from its M and C
    term_alone: Callable[[Array, int], Term] = QuadraticTerm

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> Term:
        """The criterion seen by one task; ``codes`` are those of all rows, ``alpha`` is M·codes where it is known."""
        L = at.linear_term(task, codes, alpha) if at.coupling.couples_labels else None
        return QuadraticTerm(at.block(task), codes.shape[1], L)

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array]:
        """Scale and constants (m × C each) that turn models into scores of clusters."""
        shape = at.coupling.n_tasks, codes.shape[1]
        return np.ones(shape), np.zeros(shape)

    def value_of_models(self, fit: Any) -> float:
        """Of all tasks, from class sums and models; lower is better."""
        return objective(fit.b, fit.W)

    def left_out_weights(self, fit: Any) -> tuple[Array, tuple[Array, Array]]:
        """Models (m × r × C) of the codes, and their ``decision_weights``."""
        return fit.W, (np.ones(fit.counts.shape), np.zeros(fit.counts.shape))

    def scoring(self, fit: Any) -> tuple[Array, Array]:
        """Models (m × r × C) and constants (m × C) that score rows for the clusters."""
        models, (scale, constants) = self.left_out_weights(fit)
        return models * scale[:, None, :], constants

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Labels]:
        """Distinct good labellings of one task alone, best first."""
        C, rng, drawn, ends = len(lower), np.random.default_rng(seed), set[bytes](), dict[bytes, tuple[float, Labels]]()
        terms = [self.term_alone(M, C) for M in ridge_inverses(kernel, ridge * np.asarray(self.path))]
        for _ in range(n_init)[: self.most_starts]:
            labels = random_labels(len(kernel), lower, upper, rng)
            own, key = rng.integers(2**63, size=1, dtype=np.uint64), partition_key(labels, C)
            if key in drawn:  # few rows have few labellings
                continue
            drawn.add(key)
            for term in terms:
                term.refine(labels, lower, upper, own)
            ends.setdefault(partition_key(labels, C), (terms[-1].value(labels), labels))
        return [labels for _, labels in sorted(ends.values(), key=lambda end: end[0])]


class SizeNeutral(PaperObjective):
    """−E, summed over tasks: labels change by single moves, and in passes over rows by what each would add.

    The labels of one task are refined for the task's own E, the other tasks giving their part of the prediction: such
    a round may lower the sum over all tasks a little, and then ends the descent. In passes leaving one of very many
    rows out changes little, and E becomes Σ_c ω(n_c)·b_cᵀW_c with class vectors b_c and models W_c.
    """

    name = "E"
    exchanges = False
    path, most_starts = (64.0, 16.0, 4.0, 1.0), 6  # the landscape of E is smoother than J's
    codes = staticmethod(indicators)
    term_alone = LeaveOneOutTerm.of

    @staticmethod
    def value(at: Conditioned, codes: Array) -> float:
        begin, n = at.coupling.offsets[:-1], np.diff(at.coupling.offsets)[:, None]
        counts = np.add.reduceat(codes, begin)
        # what depends on the task alone, for every row
        half, mean = (np.repeat(part, n[:, 0], axis=0) for part in (0.5 * n, counts / n))
        R = np.maximum(half * at.diagonal()[:, None] - 0.5 / half, SMALLEST_RESIDUAL)
        e = (half * at.alpha(codes) - mean) / R
        weight, unit = weights_of_sizes(counts, n)
        return -float(np.sum(weight - unit * np.add.reduceat(e * e, begin)))

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> Term:
        terms = at.residual_maps
        if task not in terms:
            terms[task] = LeaveOneOutTerm.of(at.block(task), codes.shape[1])
        if not at.coupling.couples_labels:
            return terms[task]
        L = at.linear_term(task, codes, alpha)
        return replace(terms[task], from_others=0.5 * len(L) * L / terms[task].divisors, linear_term=L)

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array]:
        alpha = at.alpha(codes)
        parts = [(codes[rows], codes[rows].mean(axis=0), alpha[rows]) for rows in at.coupling.slices]
        shares = np.stack([mean for _, mean, _ in parts])
        # of the part of z that the models explain
        sums = np.stack([np.einsum("nc,nc->c", z - mean, z - 0.5 * len(z) * own) for z, mean, own in parts])
        return decision_weights(shares, r_squared(shares, sums, at.coupling.sizes[:, None]))

    def explained(self, fit: Any) -> tuple[Array, Array]:
        """Shares π and R² of the training rows, per task and cluster (m × C)."""
        a, _ = code_scale(fit.W.shape[2])
        # b = (2a/n)Φᵀz and W = a·(the model of z), so that bᵀW = (2a²/n)·(explained sum of squares)
        sums = np.einsum("irc,irc->ic", fit.b, fit.W) / (2 * a**2)
        shares = fit.counts / fit.counts.sum(axis=1, keepdims=True)
        return shares, r_squared(shares, sums)

    def value_of_models(self, fit: Any) -> float:
        shares, explained = self.explained(fit)
        return -float(np.sum((4 * shares * (1 - shares)) ** GAMMA * explained))

    def left_out_weights(self, fit: Any) -> tuple[Array, tuple[Array, Array]]:
        return fit.W / code_scale(fit.W.shape[2])[0], decision_weights(*self.explained(fit))


def r_squared(shares: Array, sums: Array, rows: Any = 1) -> Array:
    """R² of clusters of these shares from the sums of squares that are explained in so many rows."""
    variance = rows * shares * (1 - shares)
    return np.divide(sums, variance, out=np.zeros_like(sums), where=variance > 0)


CRITERIA: dict[str, type[PaperObjective]] = {"J": PaperObjective, "E": SizeNeutral}
