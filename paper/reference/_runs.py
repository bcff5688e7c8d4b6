"""Runs from random starts: what one run leaves behind, and how the runs of several tasks become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mtclust.util.warning import warn_user


@dataclass(frozen=True)
class Run:
    """One run of an alternating method from one random start.

    Attributes
    ----------
    labels : ndarray of shape (n,)
        The cluster of each row.
    objective : float
        What the method minimises, at the end of the run.
    history : tuple of float
        The objective at the start and after every step; its last entry is ``objective``.
    n_iter : int
        Number of steps.
    converged : bool
        Whether the run stopped by itself, not by ``max_iter``.
    """

    labels: NDArray[np.int64]
    objective: float
    history: tuple[float, ...]
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class Restarts:
    """The runs of all random starts and the one to keep."""

    best: Run
    runs: tuple[Run, ...]


def best_of(runs: Sequence[Run]) -> Restarts:
    """Keep the run with the lowest objective; the first one if several are equal."""
    return Restarts(min(runs, key=lambda run: run.objective), tuple(runs))


def repeat_runs(run_once: Callable[[np.random.RandomState], Run], n_init: int, rng: np.random.RandomState) -> Restarts:
    """Run ``n_init`` times from starts drawn one after the other."""
    return best_of([run_once(rng) for _ in range(n_init)])


def join_tasks(restarts: Sequence[Restarts]) -> Restarts:
    """Put the restarts of separately clustered tasks side by side.

    The best is chosen for each task by itself, which is what makes the sum of the objectives smallest.
    """
    runs = [_side_by_side(same_start) for same_start in zip(*(task.runs for task in restarts))]
    return Restarts(_side_by_side([task.best for task in restarts]), tuple(runs))


def _side_by_side(runs: Sequence[Run]) -> Run:
    n_steps = max(len(run.history) for run in runs)
    # a task that stopped earlier stays where it is while the others go on
    padded = [run.history + run.history[-1:] * (n_steps - len(run.history)) for run in runs]
    return Run(
        labels=np.concatenate([run.labels for run in runs]),
        objective=float(sum(run.objective for run in runs)),
        history=tuple(float(sum(step)) for step in zip(*padded)),
        n_iter=max(run.n_iter for run in runs),
        converged=all(run.converged for run in runs),
    )


def fell_less_than(tol: float, before: Any, after: Any) -> Any:
    """Whether an objective fell by no more than ``tol`` times its size (elementwise for arrays)."""
    return before - after <= tol * np.abs(before)


def warn_if_not_converged(run: Run, estimator: Any) -> None:
    """Say so if the run that is kept was stopped by ``max_iter``."""
    if not run.converged:
        warn_user(
            f"{type(estimator).__name__} had not converged after max_iter={estimator.max_iter} steps; "
            f"raise max_iter or tol (now {estimator.tol}).",
            ConvergenceWarning,
        )
