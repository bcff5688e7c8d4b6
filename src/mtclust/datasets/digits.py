"""What every loader returns, and scikit-learn's bundled digits cut into related tasks: real data without a download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

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
    rows: NDArray[np.int64] | None = None
    task_covariance: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        (n, d), n_classes = self.data.shape, len(np.unique(self.target))
        return f"TaskData({n} rows, {d} features, {self.n_tasks} tasks, {n_classes} classes)"

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


def one_per(name: str, given: int | Sequence[int], of: str, n: int, least: int) -> list[int]:
    """Numbers of rows, one per task or class, from one number for all or one each."""
    sizes = [int(given)] * n if isinstance(given, int | np.integer) else [int(size) for size in given]
    if len(sizes) != n:
        raise ValueError(f"{name} has {len(sizes)} entries but there are {n} {of}; give one number, or one each.")
    if min(sizes) < least:
        raise ValueError(f"{name} must be at least {least}; got {min(sizes)}.")
    return sizes


def load_digits_tasks(
    digits: Sequence[int] = (0, 3, 6, 8, 9),
    *,
    n_tasks: int = 3,
    rows_per_class: int | Sequence[int] = 20,
    unrelated: Sequence[int] | None = None,
    seed: int = 0,
) -> TaskData:
    """Related clustering tasks from the 8 × 8 digits that come with scikit-learn; needs no network.

    Every task holds its own rows of the same digits: the tasks are related, and no row is in two of them.

    Parameters
    ----------
    digits : sequence of int, default=(0, 3, 6, 8, 9)
        The classes of every task.
    n_tasks : int, default=3
        Number of tasks.
    rows_per_class : int or sequence of int, default=20
        Rows of each digit in a task, or one number per digit for skewed sizes. There are about 180 rows of each digit.
    unrelated : sequence of int, optional
        The classes of a second group of ``n_tasks`` tasks, as many as in ``digits``. With other digits than the first
        group, the two groups are unrelated.
    seed : int, default=0
        Which draw.

    Returns
    -------
    TaskData
        Grey levels in [0, 1]; ``target`` is the digit, ``tasks`` counts from 0 (the second group follows the first),
        ``rows`` are row numbers of ``sklearn.datasets.load_digits``.

    Examples
    --------
    >>> from mtclust.datasets import load_digits_tasks
    >>> digits = load_digits_tasks([1, 7], n_tasks=2, rows_per_class=10)
    >>> digits.data.shape, sorted(set(digits.target.tolist()))
    ((40, 64), [1, 7])

    Two groups of tasks that have nothing to do with each other:

    >>> load_digits_tasks([0, 3, 6], unrelated=[1, 2, 4], n_tasks=2).n_tasks
    4
    """
    groups = [list(digits)] + ([list(unrelated)] if unrelated is not None else [])
    for group in groups:
        if not group or len(set(group)) != len(group) or not set(group) <= set(range(10)):
            raise ValueError(f"digits and unrelated must be different digits from 0 to 9; got {group}.")
    if len({len(group) for group in groups}) > 1:
        raise ValueError(f"unrelated must have as many digits as digits: {len(groups[0])}, not {len(groups[1])}.")
    if n_tasks < 1:
        raise ValueError(f"n_tasks must be at least 1; got {n_tasks}.")
    sizes = one_per("rows_per_class", rows_per_class, "classes", len(groups[0]), 1)

    bunch = load_digits()
    rng = np.random.default_rng(seed)
    # each digit's rows are shuffled once and dealt out from the front, so that no row is given twice
    stock = {digit: rng.permutation(np.flatnonzero(bunch.target == digit)) for digit in range(10)}
    chosen = []
    for group in np.repeat(groups, n_tasks, axis=0).tolist():
        for digit, size in zip(group, sizes):
            if size > len(stock[digit]):
                raise ValueError(
                    f"there are {np.sum(bunch.target == digit)} rows of digit {digit}, too few for {size} in each of "
                    "its tasks; ask for fewer tasks or fewer rows_per_class."
                )
            chosen.append(stock[digit][:size])
            stock[digit] = stock[digit][size:]
    rows = np.concatenate(chosen)
    return TaskData(
        data=bunch.data[rows] / 16.0,  # the grey level of white
        target=bunch.target[rows].astype(np.int64),
        tasks=np.repeat(np.arange(n_tasks * len(groups)), sum(sizes)),
        target_names=tuple(str(digit) for digit in range(10)),
        feature_names=np.array(bunch.feature_names),
        rows=rows.astype(np.int64),
    )
