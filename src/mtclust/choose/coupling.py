"""Whether to couple the tasks: unless the judge says that the tasks' own data contradict the coupled labels.

Coupled labels and those of every task alone answer to the same judge (:mod:`mtclust.choose.judge`), which looks at
every task's own rows only. Coupling may break ties that a task's own data cannot decide, so that coupled labels are
kept as long as their score is not clearly lower.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.choose.judge import Judge
from mtclust.choose.settings import Sample
from mtclust.core.tasks import TaskIndex
from mtclust.exceptions import UncoupledWarning
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.borrow import with_borrowed
from mtclust.search.outcome import Outcome, shrunk, uncoupled
from mtclust.util.warning import warn_user

Array = NDArray[np.float64]

#: coupled labels are kept up to this loss of score; where only a sample was searched up to so much more, times the
#: share of rows left out, divided by the rows of a cluster: labels of a task alone fit what its few rows have by chance
LARGEST_LOSS = 0.05
CHANCE = 0.3


@dataclass(frozen=True)
class CouplingTest:
    """How coupled labels fare on the tasks' own rows.

    Attributes
    ----------
    coupled, single : float
        Score of the coupled labels and of those of every task alone.
    similarity : float
        Mean over tasks of the similarity V of the coupled labels' class means to the most similar other task.
    rows_per_cluster : float
        Of the tasks that are judged, in the mean.
    left_out : float
        Share of their rows that were not searched.

    Examples
    --------
    >>> CouplingTest(0.62, 0.60, 0.9, 30).accepted, CouplingTest(0.40, 0.60, 0.1, 30).accepted
    (True, False)
    """

    coupled: float
    single: float
    similarity: float
    rows_per_cluster: float
    left_out: float = 0.0

    @property
    def loss(self) -> float:
        """What coupling costs on the tasks' own rows; below 0 it gains."""
        return self.single - self.coupled

    @property
    def limit(self) -> float:
        return LARGEST_LOSS + CHANCE * self.left_out / self.rows_per_cluster

    @property
    def accepted(self) -> bool:
        return self.loss <= self.limit

    @property
    def reason(self) -> str:
        """The decision in words."""
        figures = f"score {self.coupled:.2f} together, {self.single:.2f} apart"
        if not self.accepted:
            return f"the tasks' own rows contradict the coupled labels ({figures})"
        if self.loss <= 0:
            return f"coupled labels fit the tasks' own rows as well as labels found apart, or better ({figures})"
        return f"the tasks' own rows do not contradict the coupled labels ({figures}, limit {self.limit:.2f} below)"


def decide_coupling(
    coupling: float | str,
    outcome: Outcome,
    judge: Judge,
    sample: Sample,
    index: TaskIndex,
    options: SearchOptions,
    small_tasks_borrow: bool = False,
) -> tuple[Outcome, dict[str, Any]]:
    """DMTRC's ``coupling``: forced, shrunk, or kept unless the tasks' own data contradict it.

    The judge sees the rows of the sample. Returns the outcome that was decided for, and the decision in words and
    figures.
    """
    m = index.n_tasks
    if m == 1 or coupling in ("none", 0):
        return outcome, {"decision": "none", "reason": "there is only one task" if m == 1 else "set by the user"}
    rng = np.random.default_rng(0)
    if coupling != "auto":
        decision: dict[str, Any] = {"decision": coupling, "reason": "set by the user"}
        full = coupling in ("full", 1)
        if full and small_tasks_borrow:
            return _borrowing(outcome), decision
        return outcome if full else shrunk(outcome, float(coupling), options, rng), decision
    C = outcome.problem.bounds.n_clusters
    coupled, single = (sample.labels_of(point, index) for point in (outcome.point, outcome.single))
    similarity = similarity_of_nearest(outcome.few.class_means(outcome.few_point), outcome.few.bounds)
    together, apart = (judge(labels, C).score_by_kernels for labels in (coupled, single))
    left_out = 1.0 - len(coupled) / int(index.sizes[sample.tasks].sum())
    test = CouplingTest(together, apart, similarity, len(coupled) / (C * len(sample.tasks)), left_out)
    ours, theirs = judge.by_task(coupled, C), judge.by_task(single, C)
    decision = {
        "decision": "full" if test.accepted else "none",
        "reason": test.reason,
        "statistic": test.loss,
        "per_task": {
            name: theirs[i] - ours[i] for i, name in enumerate(index.names[sample.tasks].tolist()) if i in ours
        },
        "similarity": test.similarity,
        "coupled_labels": index.to_input_order(outcome.point.labels).astype(np.int64),
        "task_covariance": outcome.point.Z,
    }
    if test.accepted:
        return _borrowing(outcome) if small_tasks_borrow else outcome, decision
    warn_user(
        f"The tasks were clustered apart: {test.reason}. "
        'Use coupling="full" to couple them all the same; selection_["coupling"] holds both results.',
        UncoupledWarning,
    )
    return uncoupled(outcome, options, rng), decision


def _borrowing(outcome: Outcome) -> Outcome:
    """Small tasks take the labels that the others give them, where rows are held as kernel matrices."""
    if not isinstance(outcome.problem, KernelProblem):
        return outcome
    point = with_borrowed(outcome.problem, outcome.point)
    return replace(outcome, point=point, few_point=point if outcome.few is outcome.problem else outcome.few_point)


def similarity_of_nearest(means: Any, bounds: Any) -> float:
    """Mean over tasks of the similarity V of their class means to those of the most similar other task."""
    _, V = means.aligned(bounds)
    return float(np.where(np.eye(len(V), dtype=bool), -np.inf, V).max(axis=1).mean())
