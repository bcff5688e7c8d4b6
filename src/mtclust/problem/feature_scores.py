"""Leave-one-out and every row's share of the objective for labels found with explicit features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtclust.labels import label_codes
from mtclust.primal.rows import Data, take_all
from mtclust.primal.systems import Solver, whitened
from mtclust.problem.feature_descent import FeatureFit, code_scale

Array = NDArray[np.float64]

#: rows per task that the leave-one-out score is computed on
_LOO_ROWS = 1000


def loo_score(data: Data, fit: FeatureFit, centred: bool) -> float:
    """Leave-one-out R² of the label codes, from at most ``_LOO_ROWS`` rows of every task.

    With h = ‖ψ‖² the residual of a row left out is (ȳ − f)/(1 − h), corrected for the task's centre as in
    :func:`mtclust.objective.loo_residuals`.
    """
    errors = norms = 0.0
    C = data.bounds.n_clusters
    rng = np.random.default_rng(0)
    chosen = [
        np.arange(n) if n <= _LOO_ROWS else np.sort(rng.choice(int(n), _LOO_ROWS, replace=False))
        for n in data.moments.sizes
    ]
    labels = type(fit.tasks[0]).of_rows(fit.tasks, chosen)
    factors = whitened(fit.solver.blocks())
    for i, (n, rows) in enumerate(zip(data.moments.sizes, take_all(data.source, chosen))):
        Phi = data.moments.centred(i, rows)
        Psi = np.sqrt(2.0 / n) * (Phi @ factors[i])
        Y = label_codes(labels[i], C)
        left = 1.0 - np.einsum("ij,ij->i", Psi, Psi)[:, None]
        residuals = Y - Phi @ fit.W[i]
        if not centred:
            residuals = residuals / left
        elif n > 1:
            a, rest = code_scale(C)
            mean = a * fit.tasks[i].counts / n - rest
            residuals = (residuals - mean) / (left - 1.0 / n) + (n * mean - Y) / (n - 1)
        else:
            residuals = Y
        weight = n / len(rows)
        errors += weight * float(np.sum(residuals**2))
        norms += weight * float(np.sum(Y**2))
    return 1.0 - errors / norms


def own_shares(data: Data, fit: FeatureFit, alone: Solver) -> list[Array]:
    """Row j's share of its task's own objective, −⟨ȳ_j, f_j⟩/n_i, f the task's own fit of the labels."""
    models, shares = alone.models(fit.b), []
    for i, n in enumerate(data.moments.sizes):
        Phi = data.moments.centred(i, data.source.take(i, np.arange(n)))
        Y = label_codes(fit.tasks[i].labels, data.bounds.n_clusters)
        shares.append(-np.einsum("nc,nc->n", Y, Phi @ models[i]) / n)
    return shares
