"""Whether to couple the tasks: unless the tasks' own rows contradict the coupled labels.

With sizes open labels of every task alone stand among the candidates of one score, :mod:`mtclust.choose.choice` decides
by their lead, and that is said here. With sizes given there are labels of tasks coupled and alone, and what counts is
how well they are separated within the tasks. Coupling may break ties that a task's own data cannot decide, so that
coupled labels are kept as long as they do not fall clearly behind.
"""

from __future__ import annotations

import numpy as np

from mtclust.choose.judge import Predictability
from mtclust.choose.record import CouplingDecision
from mtclust.choose.settings import Sample
from mtclust.core import Array
from mtclust.core.tasks import TaskIndex
from mtclust.exceptions import UncoupledWarning
from mtclust.search.problem import SearchOptions
from mtclust.search.recipe import Outcome, shrunk, uncoupled
from mtclust.util.messages import warn_user

#: with sizes given, coupled labels are kept up to this loss of separation within tasks
LARGEST_LOSS = 0.05
_BY_USER = "set by the user"


def decide_coupling(
    coupling: float | str, outcome: Outcome, X: Array, lead: float | None, sample: Sample, index: TaskIndex,
    options: SearchOptions,
) -> tuple[Outcome, CouplingDecision]:  # fmt: skip
    """DMTRC's ``coupling``: forced, shrunk, or kept unless the tasks' own rows contradict it.

    ``X`` are the rows of the sample in coordinates, ``lead`` is that of labels of every task alone where sizes were
    open. Returns the outcome that was decided for, and the decision in words and figures; warns where tasks are apart.
    """
    m, rng = index.n_tasks, np.random.default_rng(0)
    if m == 1 or coupling in ("none", 0):
        return outcome, CouplingDecision("none", "there is only one task" if m == 1 else _BY_USER)
    if outcome.relaxation is not None:
        words = "cutting planes always couple, as in the paper" if coupling == "auto" else _BY_USER
        return outcome, CouplingDecision("full", words)
    if coupling != "auto":
        full = coupling in ("full", 1)
        outcome = outcome if full else shrunk(outcome, float(coupling), options, rng)
        return outcome, CouplingDecision(coupling, _BY_USER)
    labels = None
    if lead is not None:
        kept = outcome.problem.coupling.learns
        than = "higher than" if kept else "lower than"
        reason = f"labels found in all tasks together score {than} those of every task alone ({-lead:+z.2f})"
        reason = reason.replace("-", "−")
    else:
        C = outcome.problem.bounds.n_clusters
        both = np.stack([point.labels[sample.where] for point in (outcome.point, outcome.single)]).astype(np.int64)
        together, alone = Predictability(X, sample.index.task_numbers).of(both, C).mean(axis=(0, 2)).tolist()
        lead = alone - together
        kept = lead <= LARGEST_LOSS
        reason = (
            f"within tasks, left-out rows are {'not ' if kept else ''}predicted clearly worse by coupled labels than "
            "by those of every task alone"
        )
        labels = index.to_input_order(outcome.point.labels).astype(np.int64)
    if not kept:
        warn_user(
            f"The tasks were clustered apart: {reason}. "
            'Use coupling="full" to couple them all the same; selection_["coupling"] has the figures.',
            UncoupledWarning,
        )
    searched = outcome.few or outcome
    V = searched.problem.matched(searched.point)[1]
    nearest = float(np.where(np.eye(len(V), dtype=bool), -np.inf, V).max(axis=1).mean())
    decision = CouplingDecision("full" if kept else "none", reason, lead, nearest, labels, outcome.point.Z)
    return outcome if kept or labels is None else uncoupled(outcome, options, rng), decision
