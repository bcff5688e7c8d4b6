"""Numbers far from all others of their column: -999 for "not known", a slipped decimal point, another unit.

One of them is enough to make the scale of a column so large that nothing else in it counts. They are never changed, but
told with the way out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtclust.app.wording import advice, option

Array = NDArray[np.float64]

#: columns with fewer known or different values say nothing about what is far
_LEAST_ROWS, _LEAST_VALUES = 20, 10
#: a gap so many times as wide as the values before it parts far values from the others
_GAP = 3.0
#: and so many times where a far value stands there only once or twice, as the largest of skewed columns do
_GAP_OF_FEW, _FEW = 10.0, 2
#: more different values far away are no codes or slips, but a kind of rows
_MOST = 3
#: columns that a sentence names
_COLUMNS = 5


def far_values(values: Array) -> Array:
    """A few values, each once, that lie beyond a wide gap around the half of the values that is closest together.

    Examples
    --------
    >>> import numpy as np
    >>> ages = np.r_[np.arange(20.0, 60.0), -999, -999, -999]
    >>> far_values(ages).tolist(), far_values(ages[:-3]).tolist()
    ([-999.0], [])
    """
    known = np.sort(values[~np.isnan(values)])
    half = (len(known) + 1) // 2
    if len(known) < _LEAST_ROWS or len(np.unique(known)) < _LEAST_VALUES:
        return np.empty(0)
    first = int(np.argmin(known[half - 1 :] - known[: len(known) - half + 1]))
    low, high = known[first], known[first + half - 1]
    if low == high:
        return np.empty(0)
    above = _beyond(known[known > high], high, low)
    below = -_beyond(-known[known < low][::-1], -low, -high)
    return np.concatenate([below[::-1], above])


def _beyond(outside: Array, edge: float, begin: float) -> Array:
    """Different values behind the first wide gap, walking upwards from the edge of a range that begins at ``begin``."""
    different, counts = np.unique(outside, return_counts=True)
    edges = np.concatenate([[edge], different])[:-1]
    repeated = np.maximum.accumulate(counts[::-1])[::-1] > _FEW  # here or further out
    wide = different - edges > np.where(repeated, _GAP, _GAP_OF_FEW) * (edges - begin)
    far = different[np.argmax(wide) :] if wide.any() else np.empty(0)
    return far if len(far) <= _MOST else np.empty(0)


def far_values_in_words(name: str, values: Array) -> str:
    """What is far in a column, for :func:`far_values_doubt`; empty where nothing is.

    Examples
    --------
    >>> import numpy as np
    >>> far_values_in_words("age", np.r_[np.arange(20.0, 60.0), -999, -999, -999])
    'age (-999 in 3 rows, the others 20 to 59)'
    """
    far = far_values(values)
    if not len(far):
        return ""
    others = values[~np.isnan(values) & ~np.isin(values, far)]
    counts = [int(np.sum(values == value)) for value in far]
    shown = [f"{value:.6g} in {count} row{'s' if count > 1 else ''}" for value, count in zip(far, counts)]
    return f"{name} ({', '.join(shown)}, the others {others.min():.4g} to {others.max():.4g})"


def far_example(values: Array) -> str:
    """The most common far value of a column, as an option takes it."""
    far = far_values(values)
    value = f"{far[np.argmax([np.sum(values == one) for one in far])]:.15g}"
    return advice(f"[{value!r}]", value)


def far_values_doubt(columns: Sequence[str], example: str) -> str:
    """A sentence about the columns that hold far values, and the way out."""
    shown = "; ".join(columns[:_COLUMNS]) + (
        f"; and {len(columns) - _COLUMNS} more columns" if len(columns) > _COLUMNS else ""
    )
    return (
        f"Values lie so far from all others that hardly anything else in their column counts: {shown}. If they mean "
        f"'not known', say so ({option('missing', example)}); if they are errors, mend them."
    )
