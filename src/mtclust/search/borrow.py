"""Small tasks borrow: a dozen rows beside hundreds take their labels from what the other tasks have found.

Rows fewer than the features they have fit any labels, so that neither criterion can tell which are right. Where a task
has far fewer rows than its neighbours, its rows are labelled by ridge regression on the labels of all other tasks, rows
centred by task.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray

from mtclust.assignment import assign
from mtclust.criterion import indicators
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Point

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
    offsets, C = problem.offsets, problem.n_clusters
    rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in lenders])
    z = indicators(labels[rows], C)
    mean, n = z.mean(axis=0), len(rows)
    system = problem.kernel[np.ix_(rows, rows)] + 0.5 * n * _RIDGE * np.eye(n)
    models = sla.solve(system, z - mean, assume_a="pos")
    scores = problem.kernel[problem.rows(task)][:, rows] @ models + mean
    return assign(-scores, problem.bounds.lower[task], problem.bounds.upper[task])


def with_borrowed(problem: KernelProblem, point: Point) -> Point:
    """The point in which small tasks have the labels that the other tasks give them."""
    sizes = np.diff(problem.offsets)
    small = small_tasks(sizes)
    if len(small) == 0 or problem.kernel.diagonal().max() == 0:
        return point
    lenders = np.setdiff1d(np.arange(problem.n_tasks), small)
    labels = point.labels.copy()
    for task in small:
        labels[problem.rows(int(task))] = borrowed_labels(problem, point.labels, int(task), lenders)
    borrowed = problem.point(labels, point.Z)
    borrowed.history, borrowed.n_iter, borrowed.converged = point.history, point.n_iter, point.converged
    return borrowed
