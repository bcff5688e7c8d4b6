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

import numpy as np
from numpy.typing import NDArray

from mtclust.coupling import Independent

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
    m = len(offsets) - 1
    state = Independent(kernel, offsets, ridge).condition(np.eye(m))
    t = np.zeros(m)
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        n = b - a
        M = state.block(i) - (2.0 / n) * np.eye(n)
        share = [0.5 * np.einsum("nc,nc->n", codes[a:b], M @ codes[a:b]) for codes in (coupled, single)]
        difference = share[0] - share[1]
        spread = difference.std()
        if spread > 1e-12 * np.abs(share[1]).mean():
            t[i] = difference.sum() / (np.sqrt(n) * spread)
    nearest = np.where(np.eye(m, dtype=bool), -np.inf, similarity).max(axis=1)
    return CouplingTest(float(t.sum() / np.sqrt(m)), t, float(nearest.mean()))
