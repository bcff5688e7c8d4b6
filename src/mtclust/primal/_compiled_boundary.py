"""Exact labels within size bounds, compiled: what the batch step does for every task in every pass.

Plain loops, since a task has few rows near its boundaries and calls of library functions would be most of the work. No
operations on whole arrays, no slices, no min and max: each would be compiled too, and that took longer than the rest.
"""

from __future__ import annotations

import numpy as np

from mtclust.core._compiled import augment
from mtclust.primal._compiled import lower_prices, two_best
from mtclust.util.compiler import njit

#: rows near a boundary that are solved exactly, per row too many or too few, and at least
UNDECIDED_PER_MISFIT = 9
FEWEST_UNDECIDED = 64
#: where these were too few, the gap is widened by this factor
WIDER = 1.2
#: the gap that sets them apart is estimated from this many rows
SAMPLED_GAPS = 4096
#: certificates hold up to this share of the spread of the scores
ROUNDING = 1e-12
#: more rows than this are left to the caller
MOST_ROWS = 2000
#: steps towards prices that fit the sizes; below so many rows exact paths are as quick; steps in units of the gap
#: within which rows were counted
_NEWTON_STEPS = 8
_ENOUGH = 64
_LONGEST_STEP = 4.0
#: share of the largest degree that keeps clusters without rivals from making a Laplacian singular
_SINGULAR = 1e-9
#: a path pays if it is shorter than this share of the spread of the costs
_PATH_TOLERANCE = 1e-13


@njit
def smallest(values, size, rank):  # type: ignore[no-untyped-def]
    """The value of this rank (0: the least) among the first ``size``, which are reordered."""
    low = 0
    high = size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                held = values[i]
                values[i] = values[j]
                values[j] = held
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@njit
def _solve(matrix, right):  # type: ignore[no-untyped-def]
    """Solve by elimination, in place: ``right`` becomes x. The matrix must be one for which no pivots are needed."""
    size = len(right)
    for k in range(size):
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            for j in range(k, size):
                matrix[i, j] -= factor * matrix[k, j]
            right[i] -= factor * right[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            right[k] -= matrix[k, j] * right[j]
        right[k] /= matrix[k, k]


@njit
def newton_prices(cost, low, high, best):  # type: ignore[no-untyped-def]
    """Change prices (``best``) so that the cluster sizes nearly meet the bounds.

    Raising a price by ε moves about as many rows to each rival as have it second best within ε: with these numbers per
    ε as weights, sizes answer to prices like a graph Laplacian, which is solved for the rows too many or too few.
    """
    n, C = cost.shape
    if n <= _ENOUGH:
        return
    prices = np.empty(C)
    for c in range(C):
        prices[c] = best[c]
    first = np.empty(n, dtype=np.int64)
    second = np.empty(n, dtype=np.int64)
    gaps = np.empty(n)
    held = np.empty(n)
    counts = np.empty(C, dtype=np.int64)
    step = np.empty(C)
    laplacian = np.empty((C, C))
    fewest = 2 * n + 1
    for _ in range(_NEWTON_STEPS):
        two_best(cost, prices, first, second, gaps)
        for c in range(C):
            counts[c] = 0
        for j in range(n):
            counts[first[j]] += 1
            held[j] = gaps[j]
        misfit = 0
        all_active = True
        for c in range(C):
            # a price is 0 unless its cluster is held at a bound
            goal = counts[c]
            if prices[c] > 0.0 or counts[c] > high[c]:
                goal = high[c]
            elif prices[c] < 0.0 or counts[c] < low[c]:
                goal = low[c]
            step[c] = counts[c] - goal
            misfit += counts[c] - goal if counts[c] > goal else goal - counts[c]
            all_active = all_active and (step[c] != 0.0 or prices[c] != 0.0 or low[c] == high[c])
        if misfit < fewest:
            for c in range(C):
                best[c] = prices[c]
            fewest = misfit
        elif misfit > 2 * fewest:
            return
        if misfit <= 2 * C:
            return
        rank = 2 * misfit if 2 * misfit > _ENOUGH else _ENOUGH
        delta = smallest(held, n, rank if rank < n else n - 1)
        if not delta > 0.0:
            return
        for p in range(C):
            for q in range(C):
                laplacian[p, q] = 0.0
        for j in range(n):
            if gaps[j] <= delta:
                p = first[j]
                q = second[j]
                laplacian[p, q] -= 0.5 / delta
                laplacian[q, p] -= 0.5 / delta
                laplacian[p, p] += 0.5 / delta
                laplacian[q, q] += 0.5 / delta
        largest = 0.0
        for c in range(C):
            largest = laplacian[c, c] if laplacian[c, c] > largest else largest
        if not largest > 0.0:
            return
        # prices that all rise alike change nothing: that direction is made stiff
        stiff = largest / C if all_active else 0.0
        for p in range(C):
            moves = step[p] != 0.0 or prices[p] != 0.0 or low[p] == high[p]
            for q in range(C):
                laplacian[p, q] = laplacian[p, q] + stiff if moves else 0.0
            laplacian[p, p] += _SINGULAR * largest if moves else largest
        _solve(laplacian, step)
        longest = _LONGEST_STEP * delta
        for c in range(C):
            change = step[c] if step[c] < longest else longest
            prices[c] += change if change > -longest else -longest


@njit
def exact(cost, low, high, prices, labels):  # type: ignore[no-untyped-def]
    """Optimal ``labels`` within the bounds, from prices and with ``prices`` that prove it; both are written.

    The last of the C + 1 prices is that of no constraint, 0.
    """
    n, C = cost.shape
    newton_prices(cost, low, high, prices)
    counts = np.zeros(C, dtype=np.int64)
    least = np.inf
    most = -np.inf
    for j in range(n):
        best = np.inf
        winner = 0
        for c in range(C):
            value = cost[j, c]
            least = value if value < least else least
            most = value if value > most else most
            value += prices[c]
            winner = c if value < best else winner
            best = value if value < best else best
        labels[j] = winner
        counts[winner] += 1
    augment(cost, labels, counts, low, high, _PATH_TOLERANCE * (most - least))
    may_give = np.empty(C, dtype=np.bool_)
    may_take = np.empty(C, dtype=np.bool_)
    for c in range(C):
        may_give[c] = counts[c] > low[c]
        may_take[c] = counts[c] < high[c]
    prices[C] = 0.0
    lower_prices(cost, labels, may_give, may_take, prices)
    for c in range(C):
        prices[c] -= prices[C]
    prices[C] = 0.0


@njit
def misfit_of(prices, counts, lower, upper):  # type: ignore[no-untyped-def]
    """Whether the labels that prices alone give are optimal, and how many rows too many and too few they have.

    They are if sizes are within bounds and the prices belong to them: above 0 only at the upper bound, below 0 only at
    the lower.
    """
    fits = True
    misfit = 0
    for c in range(len(counts)):
        if counts[c] > upper[c]:
            misfit += counts[c] - upper[c]
        elif counts[c] < lower[c]:
            misfit += lower[c] - counts[c]
        elif (counts[c] > lower[c] and prices[c] < 0.0) or (counts[c] < upper[c] and prices[c] > 0.0):
            fits = False
    return fits and misfit == 0, misfit


@njit
def gap_of_rank(gaps, rank, held):  # type: ignore[no-untyped-def]
    """A gap that about ``rank`` rows do not exceed, from every so many of many rows; ``held`` is overwritten."""
    n = len(gaps)
    if rank >= n:
        widest = gaps[0]
        for j in range(1, n):
            widest = gaps[j] if gaps[j] > widest else widest
        return widest
    step = 1 if n <= SAMPLED_GAPS else n // SAMPLED_GAPS
    size = (n + step - 1) // step
    for j in range(size):
        held[j] = gaps[j * step]
    if n > SAMPLED_GAPS:
        rank = -(-rank * size // n)
        rank = rank if rank < size else size - 1
    return smallest(held, size, rank)


@njit
def gather(scores, constant, labels, gaps, delta, undecided, cost, low, high):  # type: ignore[no-untyped-def]
    """The rows with at most this gap, with their costs; ``low`` and ``high``, room without rows, become theirs.

    Returns how many they are, whether ``undecided`` had room for all of them, and whether they can meet the bounds.
    """
    C = len(constant)
    k = 0
    for j in range(len(gaps)):
        if gaps[j] <= delta:
            if k == len(undecided):
                return k, False, False
            undecided[k] = j
            low[labels[j]] += 1
            high[labels[j]] += 1
            for c in range(C):
                cost[k, c] = -constant[c] - scores[j, c]
            k += 1
    fewest = 0
    most = 0
    for c in range(C):
        if high[c] < 0:
            return k, True, False
        low[c] = low[c] if low[c] > 0 else 0
        fewest += low[c]
        most += high[c]
    return k, True, fewest <= k and k <= most
