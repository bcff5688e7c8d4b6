"""Whether to couple the tasks: unless the tasks' own rows contradict the coupled labels.

With sizes open labels of every task alone stand among the candidates of one score (:mod:`mtclust.choose.choice`). With
sizes given there are two labellings, coupled and apart, and what counts is how well they are separated within the
tasks. Coupling may break ties that a task's own data cannot decide, so that coupled labels are kept as long as they do
not fall clearly behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.judge import Predictability
from mtclust.choose.record import CouplingDecision, Tried
from mtclust.choose.settings import Sample
from mtclust.core.tasks import TaskIndex
from mtclust.exceptions import UncoupledWarning
from mtclust.search.problem import SearchOptions
from mtclust.search.recipe import Outcome, shrunk, uncoupled
from mtclust.util.messages import warn_user

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: with sizes given, coupled labels are kept up to this loss of separation within tasks
LARGEST_LOSS = 0.05
_BY_USER, _ONE_TASK = "set by the user", "there is only one task"


def decide_coupling(
    coupling: float | str, outcome: Outcome, X: Array, tried: Sequence[Tried], sample: Sample, index: TaskIndex,
    options: SearchOptions,
) -> tuple[Outcome, CouplingDecision]:  # fmt: skip
    """DMTRC's ``coupling``: forced, shrunk, or kept unless the tasks' own rows contradict it.

    ``X`` are the rows of the sample in coordinates, ``tried`` the candidates for labels where sizes were open. Returns
    the outcome that was decided for, and the decision in words and figures.
    """
    m = index.n_tasks
    if m == 1 or coupling in ("none", 0):
        return outcome, CouplingDecision("none", _ONE_TASK if m == 1 else _BY_USER)
    rng = np.random.default_rng(0)
    if coupling != "auto":
        full = coupling in ("full", 1)
        outcome = outcome if full else shrunk(outcome, float(coupling), options, rng)
        return outcome, CouplingDecision(coupling, _BY_USER)
    if tried:
        return outcome, _decision_of_candidates(tried, outcome)
    C = outcome.problem.bounds.n_clusters
    where = sample.positions_in(index)
    both = np.stack([point.labels[where] for point in (outcome.point, outcome.single)]).astype(np.int64)
    together, apart = Predictability(X, sample.index.task_numbers).of(both, C).mean(axis=(0, 2))
    kept = bool(apart - together <= LARGEST_LOSS)
    reason = (
        f"within tasks, left-out rows are {'not ' if kept else ''}predicted clearly worse by coupled labels than by "
        "those of every task alone"
    )
    labels = index.to_input_order(outcome.point.labels).astype(np.int64)
    decision = _decision(kept, reason, float(apart - together), outcome, labels)
    return outcome if kept else uncoupled(outcome, options, rng), decision


def decision_of_relaxation(coupling: float | str, n_tasks: int) -> CouplingDecision:
    """What ``coupling`` means for cutting planes: they learn Ω or leave the tasks apart."""
    if n_tasks == 1 or coupling in ("none", 0):
        return CouplingDecision("none", _ONE_TASK if n_tasks == 1 else _BY_USER)
    if coupling not in ("auto", "full", 1):
        raise ValueError(
            f'coupling={coupling!r} needs solver="exchange"; '
            'cutting planes know "full", which "auto" means for them, and "none".'
        )
    return CouplingDecision("full", _BY_USER if coupling != "auto" else "cutting planes always couple, as in the paper")


def _decision_of_candidates(tried: Sequence[Tried], outcome: Outcome) -> CouplingDecision:
    """What the choice of labels says of the coupling."""
    together, apart = (next((x for x in tried if (x.frame == "own") == own), tried[0]) for own in (False, True))
    lead, coupled = together.score - apart.score, outcome.problem.coupling.learns
    than = "higher than" if lead >= 0 else "hardly lower than" if coupled else "clearly lower than"
    reason = f"labels found in all tasks together score {than} those of every task alone ({lead:+z.2f})"
    return _decision(coupled, reason.replace("-", "−"), apart.score - together.score, outcome)


def _decision(
    coupled: bool, reason: str, loss: float, outcome: Outcome, labels: Labels | None = None
) -> CouplingDecision:
    """The decision with its figures; warns where tasks are clustered apart."""
    if not coupled:
        warn_user(
            f"The tasks were clustered apart: {reason}. "
            'Use coupling="full" to couple them all the same; selection_["coupling"] has the figures.',
            UncoupledWarning,
        )
    searched = outcome.few or outcome
    V = searched.problem.matched(searched.point)[1]
    nearest = float(np.where(np.eye(len(V), dtype=bool), -np.inf, V).max(axis=1).mean())
    return CouplingDecision("full" if coupled else "none", reason, loss, nearest, labels, outcome.point.Z)
