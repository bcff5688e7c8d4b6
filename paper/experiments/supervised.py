"""The supervised counterparts MTRL and MTFL: the core of DMTRC and DMTFC with the labels given.

With Y known the objective is convex in (W, Ω) or (W, D) together; W and the closed form of the coupling are alternated.
λ is the value with the best leave-one-out predictions of the given labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.coupling import Conditioned, Coupling, Independent, Relationship, SharedFeatures
from mtclust.core.kernels import Kernel, centre_kernel, eigen_features
from mtclust.core.labels import label_codes
from mtclust.core.model import DecisionModel, KernelOrigin, build_model
from mtclust.core.tasks import index_tasks, numbers_of_known_tasks
from mtclust.search.problem import predictions_left_out

Array = NDArray[np.float64]

#: MTRL: Ω; MTFL: D; STL: every task alone
KINDS = ("STL", "MTFL", "MTRL")
LAMBDAS = tuple(2.0**-k for k in (2, 4, 6, 8, 10))
_MAX_STEPS = 30
_TOLERANCE = 1e-4


class SupervisedLinear:
    """Linear classifiers of several tasks that share Ω (MTRL), D (MTFL) or nothing (STL).

    MTFL takes ``n_components`` leading eigen-features, all by default. ``lambda_`` is the λ₁ = λ₂ with the best
    leave-one-out score, ``coupling_matrix_`` Ω, D or I/m.

    Examples
    --------
    >>> from mtclust.datasets import make_related_tasks
    >>> made = make_related_tasks(random_state=0)
    >>> model = SupervisedLinear("MTRL").fit(made.data, made.target, made.tasks)
    >>> bool((model.predict(made.data, made.tasks) == made.target).mean() > 0.9)
    True
    """

    def __init__(self, kind: str, n_components: int | None = None) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {KINDS}; got {kind!r}.")
        self.kind = kind
        self.n_components = n_components

    def fit(self, X: Any, y: NDArray[np.int64], tasks: Any) -> SupervisedLinear:
        """Learn from labelled rows; ``y`` counts the classes from 0."""
        index = index_tasks(tasks, X.shape[0])
        rows = X[index.order]
        kernel = Kernel("linear")
        centred = centre_kernel(kernel(rows, rows), index.offsets, True)
        codes = label_codes(np.asarray(y)[index.order], int(np.max(y)) + 1)
        features = eigen_features(centred.matrix, self.n_components) if self.kind == "MTFL" else None

        def coupling(lambda_: float) -> Coupling:
            if self.kind == "MTRL":
                return Relationship(centred.matrix, index.offsets, lambda_, lambda_)
            if features is not None:
                return SharedFeatures(features, index.offsets, lambda_, lambda_)
            return Independent(centred.matrix, index.offsets, lambda_ * (1 + index.n_tasks))

        def left_out(state: Conditioned) -> float:
            return float(np.sum((codes - predictions_left_out(state, codes, index.offsets, True)) ** 2))

        states = {lambda_: _alternate(coupling(lambda_), codes) for lambda_ in LAMBDAS}
        self.lambda_ = min(states, key=lambda lambda_: left_out(states[lambda_]))
        state = states[self.lambda_]
        self.coupling_matrix_ = state.Z
        present = np.ones((index.n_tasks, codes.shape[1]), dtype=bool)
        origin = KernelOrigin(kernel, rows, centred, index.order)
        self.model_: DecisionModel = build_model(origin, state.predictors(codes), present)
        self.tasks_ = index.names
        return self

    def predict(self, X: Any, tasks: Any) -> NDArray[np.int64]:
        """The class of each row."""
        codes = numbers_of_known_tasks(tasks, X.shape[0], self.tasks_)
        return np.asarray(self.model_.scores(X, codes).argmax(axis=1))


def _alternate(coupling: Coupling, codes: Array) -> Conditioned:
    """W given Z in closed form, Z given W in closed form, until the objective stands."""
    state: Conditioned = coupling.condition(coupling.uncoupled())
    value = state.objective(codes)
    for _ in range(_MAX_STEPS):
        step = coupling.condition(state.closed_form(codes))
        before, value = value, step.objective(codes)
        state = step
        if before - value <= _TOLERANCE * before:
            break
    return state
