"""The size-neutral criterion E (:mod:`mtclust.core.criterion`) in place of J: labels change by single moves.

Values are −E, summed over tasks. The labels of one task are refined for the task's own E, the other tasks giving their
part of the prediction; the descent keeps a round of such steps only where the sum over all tasks gains.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Conditioned
from mtclust.core.criterion import (
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
from mtclust.core.kernels import leading_features
from mtclust.problem.criteria import Criterion, PaperObjective, TaskTerm
from mtclust.problem.pool import k_means, partition_key, quadratic_forms, random_labels
from mtclust.problem.protocol import Start

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: random starts follow λ times these; the landscape of E is smoother than J's
PATH = (64.0, 16.0, 4.0, 1.0)
#: random starts of a task, at most: with k-means beside them more gain nothing
_RANDOM_STARTS = 6
#: leading eigen-features that k-means sees
_K_MEANS_FEATURES = 50
_K_MEANS_RESTARTS = 3
#: fewer rows are left to random starts
_K_MEANS_ROWS = 30


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
    """The criterion E."""

    name: str = "E"

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

    def closed_form(self, at: Conditioned, codes: Array) -> Array:
        return at.closed_form(codes)

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

    def starts_of_task(
        self, kernel: Array, ridge: float, lower: Labels, upper: Labels, n_init: int, seed: int
    ) -> list[Start]:
        n, C = len(kernel), len(lower)
        rng = np.random.default_rng(seed)
        forms = [leave_one_out_form(M) for M in quadratic_forms(kernel, ridge * np.asarray(PATH))]
        begun = [random_labels(n, lower, upper, rng) for _ in range(min(n_init, _RANDOM_STARTS))]
        begun += _k_means_starts(kernel, lower, upper)
        found: dict[bytes, Start] = {}
        for labels in begun:
            order = rng.permutation(n)
            value = 0.0
            for form in forms:
                value, _ = move_rows(form, labels, lower, upper, order)
            found.setdefault(partition_key(labels, C), Start(labels, -value))
        return sorted(found.values(), key=lambda start: start.value)


def _k_means_starts(kernel: Array, lower: Labels, upper: Labels) -> list[Labels]:
    """Labels of k-means on the leading eigen-features, with every cluster that the task may have."""
    present = np.flatnonzero(upper)
    n, C = len(kernel), len(present)
    if not 1 < C < n or n < _K_MEANS_ROWS:
        return []
    labels = present[k_means(leading_features(kernel, _K_MEANS_FEATURES), C, _K_MEANS_RESTARTS)]
    counts = np.bincount(labels, minlength=len(lower))
    return [labels] if np.all(counts >= lower) else []


def criterion_named(name: str) -> Criterion:
    """The criterion "J" or "E"."""
    return Predictability() if name == "E" else PaperObjective()
