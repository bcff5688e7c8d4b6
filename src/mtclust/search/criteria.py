r"""What labels are judged by: the paper's J, and the size-neutral E (:mod:`mtclust.core.criterion`). Values are to be
lowered.

A search moves labels only through a :class:`Criterion`. Where every exchange is tried (kernel matrices) it says what a
labelling is worth under one coupling, how the labels of one task are refined while those of the others stay, and what
its tasks can begin with. Where a pass moves all rows at once (explicit features) it says what labels are worth from
their class sums and models, and by which models rows are scored.

To add one, write a class with the methods of :class:`Criterion` and a line in :data:`CRITERIA`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Conditioned, objective
from mtclust.core.criterion import (
    GAMMA,
    SMALLEST_RESIDUAL,
    LeaveOneOutForm,
    decision_weights,
    indicators,
    leave_one_out_form,
    move_rows,
    predictability,
    size_weights,
    weights_of_sizes,
)
from mtclust.core.kernels import largest_eigenvectors
from mtclust.core.labels import code_scale, label_codes
from mtclust.search import starts
from mtclust.search.starts import exchange_rows, k_means, partition_key, quadratic_forms, random_labels, refined_along

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: random starts follow λ times these; the landscape of E is smoother than J's
PATH = (64.0, 16.0, 4.0, 1.0)
#: random starts of a task, at most: with k-means beside them more gain nothing
_RANDOM_STARTS = 6
#: leading eigen-features that k-means sees
_K_MEANS_FEATURES = 50


class Modelled(Protocol):
    """Class vectors b_i = 2Φ_iᵀY_i/n_i of every task and the models W that belong to them (m × r × C each)."""

    b: Array
    W: Array

    @property
    def counts(self) -> NDArray[np.int64]:
        """Cluster sizes (m × C)."""


class TaskTerm(Protocol):
    """A criterion as a function of the labels of one task, those of the others fixed."""

    @property
    def linear_term(self) -> Array | None:
        """L_i, what the other tasks say; None where they say nothing."""

    def value(self, labels: Labels) -> float: ...

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        """Improve labels within the sizes, in place, until nothing does; the value and how often they changed.

        Only the rows ``free`` may move; all by default.
        """

    def cost_of_names(self, labels: Labels) -> Array:
        """What naming cluster c (row) as d (column) adds to the value, up to a constant."""


class Criterion(Protocol):
    """Judges labels under one coupling."""

    @property
    def name(self) -> str:
        """One letter, J or E."""

    @property
    def lowered(self) -> str:
        """What values are of, as it is shown: J, or −E."""

    @property
    def exchanges(self) -> bool:
        """Whether labels change within sizes that count, by exchanges and passes that lower the value for certain."""

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        """The targets (n × C) that models are fitted to."""

    def value(self, at: Conditioned, codes: Array) -> float:
        """Of all tasks; lower is better."""

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        """The criterion seen by one task; ``codes`` are those of all rows, ``alpha`` is M·codes where it is known."""

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        """Scale and offset (m × C each) that turn models into scores of clusters; None where models are scores."""

    def value_of_models(self, fit: Modelled) -> float:
        """Of all tasks, from class sums and models; lower is better."""

    def scoring(self, fit: Modelled) -> tuple[Array, Array | None]:
        """Models (m × r × C) and constants (m × C; None for none) that score rows for the clusters."""

    def left_out_weights(self, fit: Modelled) -> tuple[Array, tuple[Array, Array] | None]:
        """Models (m × r × C) of the codes, and what turns their predictions into scores, as ``decision_weights``."""

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Labels]:
        """Distinct good labellings of one task alone, best first."""


@dataclass(frozen=True)
class _QuadraticTerm:
    """½⟨Y, MY⟩ + ⟨Y, L⟩ of one task."""

    M: Array
    linear_term: Array | None
    n_clusters: int

    def value(self, labels: Labels) -> float:
        Y = label_codes(labels, self.n_clusters)
        linear = 0.0 if self.linear_term is None else float(np.vdot(Y, self.linear_term))
        return 0.5 * float(np.vdot(Y, self.M @ Y)) + linear

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        if free is None or len(free) == len(labels):
            return exchange_rows(self.M, self.linear_term, labels, lower, upper, seed)
        # the same form in the codes of the other rows, to which known ones add a linear term
        known = np.setdiff1d(np.arange(len(labels)), free)
        L = self.M[np.ix_(free, known)] @ label_codes(labels[known], self.n_clusters)
        L = L if self.linear_term is None else L + self.linear_term[free]
        own = labels[free]
        counts = np.bincount(labels[known], minlength=self.n_clusters)
        low, high = np.maximum(lower - counts, 0), np.maximum(upper - counts, 0)
        part = np.ascontiguousarray(self.M[np.ix_(free, free)])
        _, moves = exchange_rows(part, L, own, low, high, seed) if len(free) else (0.0, 0)
        labels[free] = own
        return self.value(labels), moves

    def cost_of_names(self, labels: Labels) -> Array:
        if self.linear_term is None:
            return np.zeros((self.n_clusters, self.n_clusters))
        return label_codes(labels, self.n_clusters).T @ self.linear_term


@dataclass(frozen=True)
class PaperObjective:
    """J = ½⟨Y, MY⟩ (paper, eq. 20 with W eliminated): labels are exchanged within the cluster sizes."""

    name: str = "J"
    lowered: str = "J"
    exchanges: bool = True

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        return label_codes(labels, n_clusters)

    def value(self, at: Conditioned, codes: Array) -> float:
        return at.objective(codes)

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        L = at.linear_term(task, codes, alpha) if at.coupling.couples_labels else None
        return _QuadraticTerm(at.block(task), L, codes.shape[1])

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        return None

    def value_of_models(self, fit: Modelled) -> float:
        return objective(fit.b, fit.W)

    def scoring(self, fit: Modelled) -> tuple[Array, Array | None]:
        return fit.W, None

    def left_out_weights(self, fit: Modelled) -> tuple[Array, tuple[Array, Array] | None]:
        return fit.W, None

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Labels]:
        path = quadratic_forms(kernel, ridge * np.asarray(starts.PATH))
        return [labels for _, labels in refined_along(path, lower, upper, n_init, np.random.default_rng(seed))]


@lru_cache(maxsize=64)
def _order(seed: int, n: int) -> NDArray[np.int64]:
    """In which rows are visited; a descent asks for the same one again and again."""
    return np.random.default_rng(seed).permutation(n)


@dataclass(frozen=True)
class _PredictabilityTerm:
    """−E of one task as a function of its labels."""

    form: LeaveOneOutForm
    linear_term: Array | None
    n_clusters: int

    def value(self, labels: Labels) -> float:
        return -predictability(labels, self.form.errors(indicators(labels, self.n_clusters)))

    def refine(
        self, labels: Labels, lower: Labels, upper: Labels, seed: NDArray[np.uint64], free: Labels | None = None
    ) -> tuple[float, int]:
        order = _order(int(seed[0]), len(labels))
        if free is not None:
            order = order[np.isin(order, free)]
        value, moves = move_rows(self.form, labels, lower, upper, order)
        return -value, moves

    def cost_of_names(self, labels: Labels) -> Array:
        weight, unit = size_weights(len(labels))
        counts = np.bincount(labels, minlength=self.n_clusters)
        errors = self.form.errors_by_name(indicators(labels, self.n_clusters))
        return unit[counts][:, None] * errors - weight[counts][:, None]


@dataclass(frozen=True)
class Predictability:
    """−E, summed over tasks: labels change by single moves, and in passes over rows by what each would add.

    The labels of one task are refined for the task's own E, the other tasks giving their part of the prediction; the
    descent keeps a round of such steps only where the sum over all tasks gains. In passes leaving one of very many rows
    out changes little, and E becomes Σ_c ω(n_c)·b_cᵀW_c with class vectors b_c and models W_c.
    """

    name: str = "E"
    lowered: str = "−E"
    exchanges: bool = False

    _forms: WeakKeyDictionary[Conditioned, dict[int, LeaveOneOutForm]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def codes(self, labels: Labels, n_clusters: int) -> Array:
        return indicators(labels, n_clusters)

    def value(self, at: Conditioned, codes: Array) -> float:
        begin, n = at.coupling.offsets[:-1], np.diff(at.coupling.offsets)[:, None]
        counts = np.add.reduceat(codes, begin)
        # what depends on the task alone, for every row
        half, mean = (np.repeat(part, n[:, 0], axis=0) for part in (0.5 * n, counts / n))
        R = np.maximum(half * at.diagonal()[:, None] - 0.5 / half, SMALLEST_RESIDUAL)
        e = (half * at.alpha(codes) - mean) / R
        weight, unit = weights_of_sizes(counts, n)
        return -float(np.sum(weight - unit * np.add.reduceat(e * e, begin)))

    def _form(self, at: Conditioned, task: int) -> LeaveOneOutForm:
        known = self._forms.setdefault(at, {})
        if task not in known:
            known[task] = leave_one_out_form(at.block(task))
        return known[task]

    def term(self, at: Conditioned, task: int, codes: Array, alpha: Array | None = None) -> TaskTerm:
        form, L = self._form(at, task), None
        if at.coupling.couples_labels:
            L = at.linear_term(task, codes, alpha)
            n = len(L)
            R = np.maximum(0.5 * n * at.block(task).diagonal() - 1.0 / n, SMALLEST_RESIDUAL)
            form = replace(form, from_others=0.5 * n * L / R[:, None])
        return _PredictabilityTerm(form, L, codes.shape[1])

    def decision_weights(self, at: Conditioned, codes: Array) -> tuple[Array, Array] | None:
        offsets, alpha = at.coupling.offsets, at.alpha(codes)
        shares, r_squared = [], []
        for a, b in zip(offsets[:-1], offsets[1:]):
            z, mean = codes[a:b], codes[a:b].mean(axis=0)
            fitted = z - 0.5 * (b - a) * alpha[a:b]  # the part of z that the models explain
            spread = (b - a) * mean * (1 - mean)
            sums = np.einsum("nc,nc->c", z - mean, fitted)
            shares.append(mean)
            r_squared.append(np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0))
        return decision_weights(np.stack(shares), np.stack(r_squared))

    def explained(self, fit: Modelled) -> tuple[Array, Array]:
        """Shares π and R² of the training rows, per task and cluster (m × C)."""
        shares = fit.counts / fit.counts.sum(axis=1, keepdims=True)
        a, _ = code_scale(shares.shape[1])
        spread = shares * (1 - shares)
        # b = (2a/n)Φᵀz and W = a·(the model of z), so that bᵀW = (2a²/n)·(explained sum of squares)
        sums = np.einsum("irc,irc->ic", fit.b, fit.W) / (2 * a**2)
        return shares, np.divide(sums, spread, out=np.zeros_like(sums), where=spread > 0)

    def value_of_models(self, fit: Modelled) -> float:
        shares, r_squared = self.explained(fit)
        return -float(np.sum((4 * shares * (1 - shares)) ** GAMMA * r_squared))

    def scoring(self, fit: Modelled) -> tuple[Array, Array | None]:
        models, weights = self.left_out_weights(fit)
        assert weights is not None
        return models * weights[0][:, None, :], weights[1]

    def left_out_weights(self, fit: Modelled) -> tuple[Array, tuple[Array, Array] | None]:
        a, _ = code_scale(fit.W.shape[2])
        return fit.W / a, decision_weights(*self.explained(fit))

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Labels]:
        n, C = len(kernel), len(lower)
        rng = np.random.default_rng(seed)
        forms = [leave_one_out_form(M) for M in quadratic_forms(kernel, ridge * np.asarray(PATH))]
        begun = [random_labels(n, lower, upper, rng) for _ in range(min(n_init, _RANDOM_STARTS))]
        begun += _k_means_starts(kernel, lower, upper)
        found: dict[bytes, tuple[float, Labels]] = {}
        for labels in begun:
            order = rng.permutation(n)
            value = 0.0
            for form in forms:
                value, _ = move_rows(form, labels, lower, upper, order)
            found.setdefault(partition_key(labels, C), (-value, labels))
        return [labels for _, labels in sorted(found.values(), key=lambda item: item[0])]


def _k_means_starts(kernel: Array, lower: Labels, upper: Labels) -> list[Labels]:
    """Labels of k-means on the leading eigen-features, with every cluster that the task may have."""
    present = np.flatnonzero(upper)
    n, C = len(kernel), len(present)
    if not 1 < C < n:
        return []
    eigenvalues, vectors = largest_eigenvectors(kernel, _K_MEANS_FEATURES)
    labels = present[k_means(vectors * np.sqrt(np.maximum(eigenvalues, 0.0)), C)]
    counts = np.bincount(labels, minlength=len(lower))
    return [labels] if np.all(counts >= lower) else []


CRITERIA: dict[str, type[PaperObjective] | type[Predictability]] = {"J": PaperObjective, "E": Predictability}
