r"""Whether to couple the tasks.

Coupling is judged row by row: with the uncoupled model M_i of a task, q_j(Y) = ½⟨ȳ_j, ((M_i − (2/n_i)I)Y)_j⟩ is row j's
share of the task's own objective,

.. math:: x_j = q_j(Y_{coupled}) - q_j(Y_{single}), \quad t_i = \sum_j x_j/(\sqrt{n_i}\,\mathrm{sd}(x_j)), \quad
          Z = \sum_i t_i/\sqrt m

Large Z says that the coupled labels are worse for the tasks' own data than chance fluctuation: coupling may only break
ties that a task's own data cannot decide. And there must be something to share: the class means of a task and of its
nearest relative must resemble each other (:mod:`mtclust.alignment`), or coupling only adds noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust._warnings import warn_user
from mtclust.exceptions import SearchWarning, UncoupledWarning
from mtclust.labels import free_bounds
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.outcome import Outcome
from mtclust.search.variants import shrunk, uncoupled
from mtclust.tasks import TaskIndex

Array = NDArray[np.float64]

#: coupled labels are kept up to this value of Z
COUPLING_LIMIT = 1.645
#: below this Z the coupled labels are better for the tasks' own data too: those were searched too little
SEARCHED_TOO_LITTLE = -3.0
#: tasks whose nearest relatives are on average less similar than this have nothing to share
SIMILARITY_LIMIT = 0.4


@dataclass(frozen=True)
class CouplingTest:
    """How the coupled labels fare on the tasks' own data, and how alike the tasks are.

    Attributes
    ----------
    statistic : float
        Z; above ``COUPLING_LIMIT`` the tasks' own data contradict the coupled labels.
    per_task : ndarray of shape (m,)
        t_i.
    similarity : float
        Mean over tasks of the similarity V to the most similar other task; below ``SIMILARITY_LIMIT`` they look
        unrelated.

    Examples
    --------
    >>> import numpy as np
    >>> from mtclust.selection import CouplingTest
    >>> CouplingTest(0.3, np.array([0.1, 0.3]), 0.9).accepted, CouplingTest(2.4, np.array([2.0, 1.4]), 0.9).accepted
    (True, False)
    >>> CouplingTest(0.3, np.array([0.1, 0.3]), 0.2).reason
    'the tasks look unrelated (similarity to the nearest task 0.20 on average, at least 0.4 needed)'
    """

    statistic: float
    per_task: Array
    similarity: float

    @property
    def agree(self) -> bool:
        """Whether coupled and single-task labels are the same clusters: there is nothing to decide then."""
        return not np.any(self.per_task)

    @property
    def accepted(self) -> bool:
        return self.agree or (self.statistic <= COUPLING_LIMIT and self.similarity >= SIMILARITY_LIMIT)

    @property
    def reason(self) -> str:
        """The decision in words."""
        likeness = (
            f"similarity to the nearest task {self.similarity:.2f} on average, at least {SIMILARITY_LIMIT} needed"
        )
        contradiction = f"Z = {self.statistic:.2f}, limit {COUPLING_LIMIT}"
        if self.agree:
            return "coupled or not, the clusters are the same"
        if self.similarity < SIMILARITY_LIMIT:
            return f"the tasks look unrelated ({likeness})"
        if self.statistic > COUPLING_LIMIT:
            return f"the tasks' own data contradict the coupled labels ({contradiction})"
        return (
            f"the tasks are alike ({likeness}), their own data do not contradict the coupled labels ({contradiction})"
        )


def coupling_statistic(
    kernel: Array, offsets: NDArray[np.int64], ridge: Array, coupled: Array, single: Array, similarity: Array
) -> CouplingTest:
    """Compare coupled and single-task label codes on every task's own objective.

    Parameters
    ----------
    kernel : ndarray of shape (N, N)
        Centred and scaled kernel, rows sorted by task (:func:`mtclust.features.centre_kernel`).
    offsets : ndarray of shape (m + 1,)
        Task i holds rows ``offsets[i]:offsets[i + 1]``.
    ridge : ndarray of shape (m,)
        λ₁ + mλ₂ of every task.
    coupled, single : ndarrays of shape (N, C)
        Label codes (:func:`mtclust.labels.label_codes`).
    similarity : ndarray of shape (m, m)
        V.

    Returns
    -------
    CouplingTest

    Examples
    --------
    Coupled labels that are worse for the first task than its own:

    >>> import numpy as np
    >>> from mtclust.features import centre_kernel
    >>> from mtclust.labels import label_codes
    >>> from mtclust.selection import coupling_statistic
    >>> X = np.array([[0.0], [0.1], [4.0], [4.3], [0.0], [0.2], [4.0], [4.1]])
    >>> offsets = np.array([0, 4, 8])
    >>> kernel = centre_kernel(X @ X.T, offsets, centre=True).matrix
    >>> single, coupled = label_codes([0, 0, 1, 1, 0, 0, 1, 1], 2), label_codes([0, 1, 0, 1, 0, 0, 1, 1], 2)
    >>> test = coupling_statistic(kernel, offsets, np.array([0.1, 0.1]), coupled, single, np.ones((2, 2)))
    >>> test.accepted, bool(test.per_task[0] > 2), float(test.per_task[1])
    (False, True, 0.0)
    """
    # λ₂ = 0: the ridge is λ₁ alone
    bounds = free_bounds(np.diff(offsets), np.ones((len(offsets) - 1, coupled.shape[1]), dtype=bool))
    problem = KernelProblem(kernel, offsets, bounds, ridge, 0.0, "independent")
    ours, theirs = (
        problem.own_shares(problem.point(codes.argmax(axis=1), problem.uncoupled())) for codes in (coupled, single)
    )
    return coupling_test(ours, theirs, similarity)


def coupling_test(coupled: list[Array], single: list[Array], similarity: Array) -> CouplingTest:
    """Z and V from every row's share of its task's own objective, task by task, under either labelling."""
    m = len(coupled)
    t = np.zeros(m)
    for i, (ours, theirs) in enumerate(zip(coupled, single)):
        difference = ours - theirs
        spread = difference.std()
        if spread > 1e-12 * np.abs(theirs).mean():
            t[i] = difference.sum() / (np.sqrt(len(difference)) * spread)
    nearest = np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1)
    return CouplingTest(float(t.sum() / np.sqrt(m)), t, float(nearest.mean()))


def decide_coupling(
    coupling: float | str, outcome: Outcome, index: TaskIndex, options: SearchOptions, rng: np.random.Generator
) -> tuple[Outcome, dict[str, Any]]:
    """DMTRC's ``coupling``: forced, shrunk, or kept unless the tasks' own data contradict it.

    Returns the outcome that was decided for, and the decision in words and figures.
    """
    m = index.n_tasks
    if m == 1 or coupling in ("none", 0):
        return outcome, {"decision": "none", "reason": "there is only one task" if m == 1 else "set by the user"}
    if coupling != "auto":
        decision: dict[str, Any] = {"decision": coupling, "reason": "set by the user"}
        return outcome if coupling in ("full", 1) else shrunk(outcome, float(coupling), options, rng), decision
    ours, theirs = (outcome.few.own_shares(point) for point in (outcome.few_point, outcome.few_single))
    test = coupling_test(ours, theirs, outcome.similarity)
    decision = {
        "decision": "full" if test.accepted else "none",
        "reason": test.reason,
        "statistic": test.statistic,
        "per_task": dict(zip(index.names.tolist(), test.per_task.tolist())),
        "similarity": test.similarity,
        "coupled_labels": index.to_input_order(outcome.point.labels).astype(np.int64),
        "task_covariance": outcome.point.Z,
    }
    if test.statistic < SEARCHED_TOO_LITTLE:
        warn_user(
            "The coupled search found clearly better labels for the tasks' own data than searching each task "
            f"alone (Z = {test.statistic:.2f}): single_task_labels_ were searched too little. Raise "
            'solver_options={"single_task_n_init": ...}.',
            SearchWarning,
        )
    if test.accepted:
        return outcome, decision
    warn_user(
        f"The tasks were clustered apart: {test.reason}. "
        'Use coupling="full" to couple them all the same; selection_["coupling"] holds both results.',
        UncoupledWarning,
    )
    return uncoupled(outcome, options, rng), decision
