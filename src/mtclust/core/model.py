r"""The fitted model: scores of rows for every task and cluster.

.. math:: f_i(x) = \sum_j k(x, x_j)\, a_{ij} + b_i

with the models W of the paper's (15) and (25) written as coefficients a_i (N × C), which fold in the centring within
tasks and the scale of the kernel, and b_i = −Σ_j k̄_i(x_j) a_ij from the task's mean. For the linear kernel
f_i(x) = w_iᵀx + b_i, w_i = Σ_j a_ij x_j. Scores become probabilities by one temperature T per model,

.. math:: p_c(x) = \frac{\exp(f_c(x)/T)}{\sum_k \exp(f_k(x)/T)},

the one under which the labels are most likely given scores from which each row was left out: the fitted scores of a row
are pulled towards its own label and would make every row look sure. A cluster that a task does not have has the score
−∞ and the probability 0. The temperature is calibrated to the clusters that were found. How far these are the groups a
reader has in mind no score of the same rows can tell: where clusters cut across these groups, probabilities are too
high.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from mtclust.core import Array, Integers
from mtclust.core.criterion import SMALLEST_RESIDUAL
from mtclust.core.kernels import CentredKernel, Kernel
from mtclust.core.labels import SizeBounds

#: rows scored at once, so that a kernel between many new and many old rows is never held whole
_BLOCK = 1024


@dataclass(frozen=True)
class DecisionModel:
    """Scores rows of known tasks."""

    kernel: Kernel
    rows: Any  # the training rows sorted by task; None for kernels that do not need them (linear, precomputed)
    coefficients: Array  # ``(m, C, d)`` for the linear kernel without rows, otherwise ``(m, N, C)``
    intercept: Array  # (m × C)
    present: NDArray[np.bool_]  # which clusters a task has; the others have the score −∞ there (m × C)
    centres: Array | None = None  # taken off the rows of every task before the kernel sees them (m × d)
    temperature: float = 1.0  # of the probabilities (:func:`probabilities`)

    def scores(self, X: Any, task_numbers: Integers) -> Array:
        """F of every row for its own task, shape (n, C)."""
        result = np.empty((X.shape[0], self.intercept.shape[1]))
        linear = self.kernel.kind == "linear" and self.rows is None  # Nyström features of it have rows
        for begin in range(0, X.shape[0], _BLOCK):
            values, numbers = X[begin : begin + _BLOCK], task_numbers[begin : begin + _BLOCK]
            if self.centres is not None:
                values = (values.toarray() if sp.issparse(values) else values) - self.centres[numbers]
            if not linear and self.kernel.kind != "precomputed":
                values = self.kernel(values, self.rows)
            tasks = np.unique(numbers)
            for task in tasks:
                mine: Any = np.flatnonzero(numbers == task) if len(tasks) > 1 else slice(None)
                # rounding follows from how numbers lie in memory, and decides where scores are equal
                weights = np.ascontiguousarray(self.coefficients[task].T if linear else self.coefficients[task])
                scores = values[mine] @ weights + self.intercept[task]
                result[begin : begin + _BLOCK][mine] = np.where(self.present[task], scores, -np.inf)
        return result

    def clusters(self, rows: Any) -> Integers:
        """Clusters of rows by a model of one task."""
        return np.asarray(self.scores(rows, np.zeros(rows.shape[0], dtype=np.int64)).argmax(axis=1), dtype=np.int64)

    def move_of(self, rows: Array, means: Array) -> Array:
        """How far to move a task (d) so that its rows lie closest to the means (C × d) of their clusters.

        Clusters and move are found in turns, from where the task is, or from where its mean is that of the clusters.
        """
        centre, ends = means.mean(axis=0), []
        for move in (np.zeros_like(centre), rows.mean(axis=0) - centre):
            labels = None
            for _ in range(20):  # labels may go round in circles
                before, labels = labels, self.clusters(rows - move)
                if before is not None and np.array_equal(before, labels):
                    break
                move = (rows - means[labels]).mean(axis=0)
            distance = float(np.mean((rows - move - means[self.clusters(rows - move)]) ** 2))
            # of two that are as good the nearer: the rows of one cluster would fit any
            ends.append((distance * len(rows) + float(np.mean(move**2)), move))
        return min(ends, key=itemgetter(0))[1]

    def shared_by(self, n_tasks: int, moves: Array | None = None) -> DecisionModel:
        """A model of one task as that of several, from whose rows ``moves`` (m × d) are taken off first."""
        model = replace(
            self,
            coefficients=np.repeat(self.coefficients, n_tasks, axis=0),
            intercept=np.repeat(self.intercept, n_tasks, axis=0),
            present=np.repeat(self.present, n_tasks, axis=0),
            centres=None if self.centres is None else np.repeat(self.centres[:1], n_tasks, axis=0),
        )
        return model if moves is None else model.moved(moves)

    def moved(self, moves: Array) -> DecisionModel:
        """The same scores for rows that are moved: ``moves`` (m × d) are taken off the rows of every task first."""
        if self.rows is None:  # the linear kernel
            return replace(self, intercept=self.intercept - np.einsum("icd,id->ic", self.coefficients, moves))
        return replace(self, centres=moves if self.centres is None else self.centres + moves)


@dataclass(frozen=True)
class CommonKept:
    """What a fit in a common frame keeps for later tasks: the one model."""

    model: DecisionModel  # with one task
    bounds: SizeBounds  # of the fitted tasks
    moves: Array | None = None  # what is taken off the rows of the fitted tasks, where they are aligned (m × d)
    means: Array | None = None  # of the clusters then, to which a new task is moved (C × d)

    def in_frame(self, rows: Any, task_numbers: Integers) -> Any:
        """Rows of the fitted tasks where the model compares them: moved, if tasks are aligned."""
        if self.moves is None:
            return rows
        return (rows.toarray() if sp.issparse(rows) else rows) - self.moves[task_numbers]

    def model_of_new_task(self, rows: Any) -> DecisionModel:
        """The one model for the rows of a new task: where tasks are aligned, for rows that are moved as those are."""
        if self.means is None:
            return self.model
        return self.model.moved(self.model.move_of(rows.toarray() if sp.issparse(rows) else rows, self.means)[None])


@dataclass(frozen=True)
class KernelOrigin:
    """Where a kernel matrix comes from, for models of new rows."""

    kernel: Kernel
    rows: Any  # sorted by task
    centred: CentredKernel
    # rows of the input in sorted order: the columns of a precomputed kernel come in the order of the input (N,)
    order: Integers
    centres: Array | None = None  # what was taken off the rows of every task before the kernel saw them (m × d)


def build_model(origin: KernelOrigin, predictors: Array, present: NDArray[np.bool_]) -> DecisionModel:
    """Fold centring and scale into the coefficients.

    ``predictors`` (m × N × C) are coefficients on the centred, scaled kernel row
    (:meth:`mtclust.core.coupling.BaseCoupling.predictors`), ``present`` (m × C) says which clusters a task has.
    """
    kernel, rows, centred = origin.kernel, origin.rows, origin.centred
    coefficients = predictors / centred.scale if centred.scale > 0 else np.zeros_like(predictors)
    if centred.centred:
        sizes = np.diff(centred.offsets)
        means = np.add.reduceat(coefficients, centred.offsets[:-1], axis=1) / sizes[:, None]
        coefficients = coefficients - np.repeat(means, sizes, axis=1)
    intercept = -np.einsum("in,inc->ic", centred.task_means, coefficients)
    if kernel.kind == "linear":
        products = [rows.T @ part for part in coefficients]
        weights = np.stack([(own.toarray() if sp.issparse(own) else np.asarray(own)).T for own in products])
        if origin.centres is not None:
            intercept = intercept - np.einsum("icd,id->ic", weights, origin.centres)
        return DecisionModel(kernel, None, weights, intercept, present)
    if kernel.kind == "precomputed":
        in_input_order = np.empty_like(coefficients)
        in_input_order[:, origin.order] = coefficients
        return DecisionModel(kernel, None, in_input_order, intercept, present)
    return DecisionModel(kernel, rows, coefficients, intercept, present, origin.centres)


def probabilities(scores: Array, temperature: float) -> Array:
    """Softmax of scores over a temperature, row by row."""
    return np.asarray(softmax(scores / temperature, axis=1))


def best_temperature(scores: Array, labels: Integers) -> float:
    """The temperature under which labels are most likely, given scores of rows that were left out.

    One row in as many as there are counts as wrong (label smoothing): without that clusters without any overlap would
    ask for T = 0, and rows would be called certain that were merely never seen to be wrong.
    """
    finite = np.isfinite(scores)
    spread = float(np.std(scores[finite])) if finite.any() else 0.0
    n, C = scores.shape
    if not spread > 0 or C < 2:
        return 1.0
    wrong = 1.0 / (n + C)
    others = np.maximum(finite.sum(axis=1) - 1, 1)[:, None]
    target = np.where(finite, wrong / others, 0.0)
    target[np.arange(n), labels] = 1.0 - wrong
    # only the target of a row's own cluster can meet the score −∞, where labels obey sizes that a model does not know
    target = np.where(finite, target, 0.0)

    def unlikely(power: float) -> float:
        logarithms = log_softmax(scores / (spread * np.exp(power)), axis=1)
        return -float(np.sum(target * np.where(finite, logarithms, 0.0)))

    # between the spread of the scores over and times e⁸
    return spread * float(np.exp(minimize_scalar(unlikely, bounds=(-8.0, 8.0), method="bounded").x))


def left_out(targets: Array, fitted: Array, leverage: Array, mean: Array | None, n_rows: int) -> Array:
    """Scores of rows that were left out, from what a ridge regression on all rows of a task fitted to its targets.

    Leaving a row out divides its residual by 1 − h, h its leverage. Where features are centred within the task the
    mean ``mean`` of the targets is fitted as well, the divisor is 1 − h − 1/n, and a score is the prediction minus the
    mean target of the other rows. A row that fits any label of its own tells nothing when it is left out: it scores 0.
    """
    share = 1.0 - leverage - (0.0 if mean is None else 1.0 / n_rows)
    if mean is not None:
        targets = targets - mean
    residuals = (targets - fitted) / np.maximum(share, SMALLEST_RESIDUAL)[:, None]
    own = targets if mean is None or n_rows == 1 else targets * (n_rows / (n_rows - 1.0))
    return np.where(share[:, None] > SMALLEST_RESIDUAL, own - residuals, 0.0)
