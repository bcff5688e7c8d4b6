"""What every loader returns, and the checks of arguments they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtclust.core.tasks import split_by_task


@dataclass(frozen=True, repr=False)
class TaskData:
    """Rows of several tasks, stacked task after task, with the classes they come from.

    Attributes
    ----------
    data : ndarray or CSR array of shape (n, d)
        The features.
    target : ndarray of shape (n,)
        The class of each row, a position in ``target_names``.
    tasks : ndarray of shape (n,)
        The task id of each row.
    target_names : tuple of str
        Names of the classes.
    feature_names : ndarray of str of shape (d,), or None
        Names of the features, if they have any.
    description : str
        What the data are and how these rows were chosen.
    rows : ndarray of shape (n,), or None
        Row numbers in the whole data set in its canonical order; None for generated data.
    task_covariance : ndarray of shape (m, m), or None
        The Ω the tasks were generated with; None for real data.

    Examples
    --------
    >>> from mtclust.datasets import load_digits_tasks
    >>> digits = load_digits_tasks()
    >>> digits
    TaskData(300 rows, 64 features, 3 tasks, 5 classes)
    >>> {task: X.shape for task, X in digits.by_task().items()}
    {0: (100, 64), 1: (100, 64), 2: (100, 64)}
    """

    data: Any
    target: NDArray[np.int64]
    tasks: NDArray[Any]
    target_names: tuple[str, ...]
    feature_names: NDArray[Any] | None
    description: str
    rows: NDArray[np.int64] | None = None
    task_covariance: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        n_rows, n_features = self.data.shape
        n_classes = len(np.unique(self.target))
        return f"TaskData({n_rows} rows, {n_features} features, {self.n_tasks} tasks, {n_classes} classes)"

    @property
    def n_tasks(self) -> int:
        return len(np.unique(self.tasks))

    @property
    def X_y_tasks(self) -> tuple[Any, NDArray[np.int64], NDArray[Any]]:
        """The triple ``data, target, tasks``."""
        return self.data, self.target, self.tasks

    def by_task(self) -> dict[Any, Any]:
        """The features of each task: a dictionary task id → rows of that task."""
        return split_by_task(self.data, self.tasks)


def sizes_per_class(rows_per_class: int | Sequence[int], n_classes: int) -> list[int]:
    """Rows to draw from each class of a task, from one number or one number per class."""
    if isinstance(rows_per_class, int | np.integer):
        sizes = [int(rows_per_class)] * n_classes
    else:
        sizes = [int(size) for size in rows_per_class]
    if len(sizes) != n_classes:
        raise ValueError(
            f"rows_per_class has {len(sizes)} sizes but a task has {n_classes} classes; give one per class."
        )
    if min(sizes) < 1:
        raise ValueError(f"rows_per_class must be at least 1 for every class; got {rows_per_class}.")
    return sizes
