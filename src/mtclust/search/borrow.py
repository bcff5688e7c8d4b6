"""Small tasks borrow: a dozen rows beside hundreds take their labels from what the other tasks have found.

Rows fewer than the features they have fit any labels, so that neither criterion can tell which are right. Where a task
has far fewer rows than its neighbours, its rows are labelled by ridge regression on the labels of all other tasks, rows
centred by task.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.core.assignment import assign
from mtclust.core.criterion import indicators
from mtclust.problem.kernels import KernelProblem

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

#: a task is small if it has at most this share of the rows of the median task
SMALL_SHARE = 0.3
#: ridge of the regression on the other tasks
_RIDGE = 0.001


def small_tasks(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Tasks that borrow: never most of them, and none where all are of one size.

    Examples
    --------
    >>> import numpy as np
    >>> small_tasks(np.array([120, 12, 100])).tolist(), small_tasks(np.array([12, 12])).tolist()
    ([1], [])
    """
    return np.flatnonzero(sizes <= SMALL_SHARE * np.median(sizes))


def borrowed_labels(problem: KernelProblem, labels: Labels, task: int, lenders: NDArray[np.int64]) -> Labels:
    """Labels of one task, predicted from the rows of the lenders and within its size bounds."""
    rows = np.concatenate([np.arange(problem.offsets[i], problem.offsets[i + 1]) for i in lenders])
    scores = taught_scores(problem, rows, labels[rows], _RIDGE)(task)
    return assign(-scores, problem.bounds.lower[task], problem.bounds.upper[task])


def taught_scores(problem: KernelProblem, rows: Labels, labels: Labels, ridge: float) -> Callable[[int], Array]:
    """Scores of the rows of a task by ridge regression on the labels of some rows of any tasks."""
    z, n = indicators(labels, problem.n_clusters), len(rows)
    mean = z.mean(axis=0)
    system = problem.kernel[np.ix_(rows, rows)] + 0.5 * n * ridge * np.eye(n)
    models = sla.solve(system, z - mean, assume_a="pos")
    return lambda task: problem.kernel[problem.rows(task)][:, rows] @ models + mean
