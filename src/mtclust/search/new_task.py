"""Clustering a task that was not in ``fit``, with everything learned so far held fixed.

The new task's labels and the enlarged (m+1)×(m+1) coupling are found by the same descent, in which only the new task's
labels may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtclust.core.labels import SizeBounds
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import Point, SearchOptions, Start
from mtclust.search.borrow import borrowed_labels, small_tasks
from mtclust.search.recipe import first_relationship

if TYPE_CHECKING:
    from mtclust.problem.protocol import Kept, Problem


def cluster_new_task(
    kept: Kept, rows: Any, bounds: SizeBounds, options: SearchOptions, rng: np.random.Generator
) -> tuple[Problem, Point]:
    """Labels of the rows of one more task, whose size bounds are given; the new task is the last of the problem."""
    problem, alone = kept.with_task(rows, bounds)
    starts = alone.starts(options, rng)[0]
    known = kept.starts()
    begun = problem.point_of([*known, starts[0]], problem.uncoupled())
    new_ids, similarity = problem.class_means(begun).last_aligned(problem.bounds)
    Z = first_relationship(similarity) if problem.couples_labels else problem.uncoupled()
    problem = problem.proposing([*([] for _ in known), starts[: options.n_init]])
    point = problem.point_of([*known, starts[0].renamed(new_ids)], Z)
    point = problem.descend(point, rng, options.effort("new task", tasks=[len(known)]))
    if isinstance(problem, KernelProblem) and problem.couples_labels:
        m = len(known)
        if m in small_tasks(np.diff(problem.offsets)):
            labels = borrowed_labels(problem, point.labels, m, np.arange(m))
            point = problem.point_of([*known, Start(labels)], point.Z)
    return problem, point
