"""Leave-one-out and the coupling statistic of labels found at scale, on some of the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.primal.rows import take_all
from mtclust.primal.search import Data, State, code_scale
from mtclust.primal.systems import AloneSystem, whitened
from mtclust.selection.coupling import CouplingTest

Array = NDArray[np.float64]

#: rows per task that the leave-one-out score is computed on
_LOO_ROWS = 1000


def _codes(labels: NDArray[np.int32], n_clusters: int) -> Array:
    a, rest = code_scale(n_clusters)
    codes = np.full((len(labels), n_clusters), -rest)
    codes[np.arange(len(labels)), labels] += a
    return codes


def loo_score(data: Data, state: State, centred: bool, rng: np.random.Generator) -> float:
    """Leave-one-out R² of the label codes, from at most ``_LOO_ROWS`` rows of every task.

    With h = ‖ψ‖² the residual of a row left out is (ȳ − f)/(1 − h), corrected for the task's centre as in
    :func:`mtclust.objective.loo_residuals`.
    """
    errors = norms = 0.0
    C = data.bounds.n_clusters
    chosen = [
        np.arange(n) if n <= _LOO_ROWS else np.sort(rng.choice(int(n), _LOO_ROWS, replace=False))
        for n in data.moments.sizes
    ]
    labels = type(state.tasks[0]).of_rows(state.tasks, chosen)
    factors = whitened(state.solver.blocks())
    for i, (n, rows) in enumerate(zip(data.moments.sizes, take_all(data.source, chosen))):
        Phi = data.moments.centred(i, rows)
        Psi = np.sqrt(2.0 / n) * (Phi @ factors[i])
        Y = _codes(labels[i], C)
        left = 1.0 - np.einsum("ij,ij->i", Psi, Psi)[:, None]
        residuals = Y - Phi @ state.W[i]
        if not centred:
            residuals = residuals / left
        elif n > 1:
            a, rest = code_scale(C)
            mean = a * state.tasks[i].counts / n - rest
            residuals = (residuals - mean) / (left - 1.0 / n) + (n * mean - Y) / (n - 1)
        else:
            residuals = Y
        weight = n / len(rows)
        errors += weight * float(np.sum(residuals**2))
        norms += weight * float(np.sum(Y**2))
    return 1.0 - errors / norms


def coupling_statistic(data: Data, ridge: Array, coupled: State, single: State, similarity: Array) -> CouplingTest:
    """Z and V of :mod:`mtclust.selection.coupling`, from the models of every task alone.

    Row j's share of its task's own objective is −⟨ȳ_j, f_j⟩/n_i, f the task's own fit of the labels.
    """
    m = data.n_tasks
    alone = AloneSystem(data.moments.normalised_gram, ridge).condition(np.eye(m))
    models = [alone.models(state.b) for state in (coupled, single)]
    t = np.zeros(m)
    for i, n in enumerate(data.moments.sizes):
        Phi = data.moments.centred(i, data.source.take(i, np.arange(n)))
        share = [
            -np.einsum("nc,nc->n", _codes(state.tasks[i].labels, data.bounds.n_clusters), Phi @ W[i]) / n
            for state, W in zip((coupled, single), models)
        ]
        difference = share[0] - share[1]
        spread = difference.std()
        if spread > 1e-12 * np.abs(share[1]).mean():
            t[i] = difference.sum() / (np.sqrt(n) * spread)
    nearest = np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1)
    return CouplingTest(float(t.sum() / np.sqrt(m)), t, float(nearest.mean()))
