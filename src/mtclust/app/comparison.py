"""The tasks compared: clusters that are more or less common in one task than in the others, with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from mtclust.app.shown import percent

#: smaller differences are not worth a sentence
_LEAST_RATIO = 1.3
#: nor are those whose interval nearly holds no difference
_CERTAIN = 1.1
#: a cluster that is so many times as common in a task is found almost only there
_ALMOST_ONLY = 20
#: chance of an error over all intervals together
_CHANCE = 0.05


@dataclass(frozen=True)
class Difference:
    """A cluster whose share in one task differs from its share in the others.

    Attributes
    ----------
    task, cluster : int
    share, elsewhere : float
        Of the rows of the task, and of the rows of all other tasks.
    low, high : float
        Interval for the ratio of the two, such that all intervals together hold with 95 %.
    """

    task: int
    cluster: int
    share: float
    elsewhere: float
    low: float
    high: float

    @property
    def certain(self) -> float:
        """How far the ratio is from 1 at least, as a factor."""
        return max(self.low, 1 / self.high if self.high > 0 else np.inf)

    def in_words(self, task: str, cluster: str) -> str:
        """A sentence without its full stop."""
        shares = f"{percent(self.share)} of the rows, elsewhere {percent(self.elsewhere)}"
        if self.share == 0:
            return f"{cluster} is absent in {task} ({percent(self.elsewhere)} of the rows elsewhere)"
        if self.elsewhere == 0:
            return f"{cluster} is found only in {task} ({percent(self.share)} of its rows)"
        more = self.share > self.elsewhere
        factor = max(self.share / self.elsewhere, self.elsewhere / self.share)
        if factor >= _ALMOST_ONLY:
            verb = "is found almost only" if more else "is hardly found"
            return f"{cluster} {verb} in {task} ({shares})"
        low, high = (self.low, self.high) if more else (1 / self.high, 1 / self.low)
        interval = f"{low:.1f} to {high:.1f} times" if high < 100 else f"at least {low:.1f} times"
        return f"{cluster} is {_times(factor, more)} in {task} ({shares}; {interval})"


def differences(sizes: NDArray[np.int64]) -> list[Difference]:
    """All differences that are beyond chance, the most certain first.

    Examples
    --------
    >>> import numpy as np
    >>> found = differences(np.array([[50, 50], [90, 10], [88, 12]]))
    >>> [difference.in_words("abc"[difference.task], f"cluster {difference.cluster}") for difference in found][0]
    'cluster 1 is 4.5 times as common in a (50 % of the rows, elsewhere 11 %; 2.5 to 8.2 times)'
    """
    sizes = np.asarray(sizes, dtype=float)
    m, C = sizes.shape
    if m < 2 or C < 2:
        return []
    z = norm.isf(_CHANCE / (2 * m * C))
    found = []
    for task in range(m):
        rows, others = sizes[task].sum(), np.delete(sizes, task, axis=0).sum()
        for cluster in range(C):
            here, there = sizes[task, cluster], sizes[:, cluster].sum() - sizes[task, cluster]
            ratio = np.log((here + 0.5) / (rows + 0.5)) - np.log((there + 0.5) / (others + 0.5))
            (down, up), (down_there, up_there) = _reaches(here, rows, z), _reaches(there, others, z)
            low, high = np.exp(ratio - np.hypot(down, up_there)), np.exp(ratio + np.hypot(up, down_there))
            difference = Difference(task, cluster, here / rows, there / others, float(low), float(high))
            if (low > 1 or high < 1) and difference.certain >= _CERTAIN and abs(ratio) >= np.log(_LEAST_RATIO):
                found.append(difference)
    return sorted(found, key=lambda difference: -difference.certain)


def wilson(counts: NDArray[Any], rows: NDArray[Any] | float, z: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Wilson's intervals for shares of so many rows, z standard deviations wide.

    Examples
    --------
    >>> low, high = wilson(np.array([1.0, 50.0]), np.array([1.0, 100.0]), 1.96)
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([0.21, 0.4], [1.0, 0.6])
    """
    share = counts / rows
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    reach = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)


def _reaches(count: float, rows: float, z: float) -> tuple[float, float]:
    """How far the logarithm of a share may be down and up, by Wilson: one row that is all of a task tells little."""
    low, high = wilson(np.array(count), rows, z)
    share = (count + 0.5) / (rows + 0.5)
    down = np.log(share / low) if low > 0 else np.inf
    return max(float(down), 0.0), max(float(np.log(high / share)), 0.0)


def shares_were_given(model: Any) -> bool:
    """Whether the sizes of the clusters were set by the user, so that comparing them says nothing."""
    return not (isinstance(model.sizes, str) and model.sizes == "auto")


def tasks_in_words(sizes: NDArray[np.int64], task: Callable[[int], str], cluster: Callable[[int], str]) -> list[str]:
    """For every task its most certain differences, in one line."""
    lines: list[list[str]] = [[] for _ in range(len(sizes))]
    for difference in differences(sizes):
        if len(lines[difference.task]) < 2:
            lines[difference.task].append(difference.in_words("this task", cluster(difference.cluster)))
    return ["; ".join(line) for line in lines]


def _times(factor: float, more: bool) -> str:
    """How many times as common, or as rare."""
    what = "common" if more else "rare"
    for number, word in ((2, "twice"), (3, "three times")):
        if abs(factor - number) < 0.15:
            return f"{word} as {what}"
    return f"{factor:.0f} times as {what}" if factor >= 10 else f"{factor:.1f} times as {what}"


def task_in_words(name: str, task_column: str | None) -> str:
    """A task in a sentence; a bare number says what it counts.

    Examples
    --------
    >>> task_in_words("Oslo", "shop"), task_in_words("2", "batch"), task_in_words("7", None)
    ('Oslo', 'batch 2', 'task 7')
    """
    bare = not any(character.isalpha() for character in name)
    return f"{task_column or 'task'} {name}" if bare else name
