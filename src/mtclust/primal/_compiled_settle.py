"""Exact labels within size bounds, compiled: what the batch step does for every task in every pass.

Plain loops, since a task has few rows near its boundaries and calls of library functions would be most of the work.
"""

from __future__ import annotations

import numpy as np

from mtclust._compiled import augment
from mtclust._numba import njit
from mtclust.primal._compiled import choose, lower_prices, two_best

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
def smallest(values, rank):  # type: ignore[no-untyped-def]
    """The value of this rank (0: the least); reorders the values."""
    low = 0
    high = len(values) - 1
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
def _solve(matrix, right, size):  # type: ignore[no-untyped-def]
    """Solve the first ``size`` equations, whose matrix is positive definite, by elimination; ``right`` becomes x."""
    for k in range(size):
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k, size):
                    matrix[i, j] -= factor * matrix[k, j]
                right[i] -= factor * right[k]
    for k in range(size - 1, -1, -1):
        total = right[k]
        for j in range(k + 1, size):
            total -= matrix[k, j] * right[j]
        right[k] = total / matrix[k, k]


@njit
def newton_prices(cost, low, high, start):  # type: ignore[no-untyped-def]
    """Prices whose cluster sizes nearly meet the bounds.

    Raising a price by ε moves about as many rows to each rival as have it second best within ε: with these numbers per
    ε as weights, sizes answer to prices like a graph Laplacian, which is solved for the rows too many or too few.
    """
    n, C = cost.shape
    best = start.copy()
    if n <= _ENOUGH:
        return best
    prices = start.copy()
    first = np.empty(n, dtype=np.int64)
    second = np.empty(n, dtype=np.int64)
    gaps = np.empty(n)
    held = np.empty(n)
    counts = np.empty(C, dtype=np.int64)
    excess = np.empty(C)
    active = np.empty(C, dtype=np.int64)
    weights = np.empty((C, C))
    laplacian = np.empty((C, C))
    fewest = 2 * n + 1
    for _ in range(_NEWTON_STEPS):
        two_best(cost, prices, first, second, gaps)
        counts[:] = 0
        for j in range(n):
            counts[first[j]] += 1
        misfit = 0
        for c in range(C):
            # a price is 0 unless its cluster is held at a bound
            if prices[c] > 0.0 or counts[c] > high[c]:
                goal = high[c]
            elif prices[c] < 0.0 or counts[c] < low[c]:
                goal = low[c]
            else:
                goal = counts[c]
            excess[c] = counts[c] - goal
            misfit += abs(counts[c] - goal)
        if misfit < fewest:
            best[:] = prices
            fewest = misfit
        elif misfit > 2 * fewest:
            break
        if misfit <= 2 * C:
            break
        for j in range(n):
            held[j] = gaps[j]
        delta = smallest(held, min(n - 1, max(_ENOUGH, 2 * misfit)))
        if not delta > 0.0:
            break
        weights[:, :] = 0.0
        for j in range(n):
            if gaps[j] <= delta:
                weights[first[j], second[j]] += 0.5 / delta
                weights[second[j], first[j]] += 0.5 / delta
        n_active = 0
        for c in range(C):
            if excess[c] != 0.0 or prices[c] != 0.0 or low[c] == high[c]:
                active[n_active] = c
                n_active += 1
        largest = 0.0
        for a in range(n_active):
            p = active[a]
            degree = 0.0
            for q in range(C):
                if q != p:
                    degree += weights[p, q]
            for b in range(n_active):
                laplacian[a, b] = -weights[p, active[b]]
            laplacian[a, a] = degree
            largest = max(largest, degree)
        if not largest > 0.0:
            break
        # prices that all rise alike change nothing: that direction is made stiff
        stiff = largest / C if n_active == C else 0.0
        for a in range(n_active):
            for b in range(n_active):
                laplacian[a, b] += stiff
            laplacian[a, a] += _SINGULAR * largest
        for a in range(n_active):
            held[a] = excess[active[a]]
        _solve(laplacian, held, n_active)
        for a in range(n_active):
            prices[active[a]] += min(max(held[a], -_LONGEST_STEP * delta), _LONGEST_STEP * delta)
    return best


@njit
def exact(cost, low, high, prices):  # type: ignore[no-untyped-def]
    """Optimal labels within the bounds and prices that prove it."""
    n, C = cost.shape
    prices = newton_prices(cost, low, high, prices)
    labels = np.empty(n, dtype=np.int64)
    counts = np.zeros(C, dtype=np.int64)
    least = np.inf
    most = -np.inf
    for j in range(n):
        best = np.inf
        winner = 0
        for c in range(C):
            least = min(least, cost[j, c])
            most = max(most, cost[j, c])
            value = cost[j, c] + prices[c]
            if value < best:
                best = value
                winner = c
        labels[j] = winner
        counts[winner] += 1
    augment(cost, labels, counts, low, high, _PATH_TOLERANCE * (most - least))
    found = np.zeros(C + 1)
    found[:C] = prices
    lower_prices(cost, labels, counts > low, counts < high, found)
    return labels, found[:C] - found[C]


@njit
def sizes_fit(prices, counts, lower, upper):  # type: ignore[no-untyped-def]
    """Whether the labels that prices alone give are optimal: sizes within bounds, and the prices belong to them.

    Above 0 only at the upper bound, below 0 only at the lower.
    """
    for c in range(len(counts)):
        if counts[c] < lower[c] or counts[c] > upper[c]:
            return False
        if counts[c] > lower[c] and prices[c] < 0.0:
            return False
        if counts[c] < upper[c] and prices[c] > 0.0:
            return False
    return True


@njit
def _gap_of_rank(gaps, rank, held):  # type: ignore[no-untyped-def]
    """A gap that about ``rank`` rows do not exceed; of many rows every so many are looked at."""
    n = len(gaps)
    if rank >= n:
        return np.max(gaps)
    step = 1 if n <= SAMPLED_GAPS else n // SAMPLED_GAPS
    size = 0
    for j in range(0, n, step):
        held[size] = gaps[j]
        size += 1
    if step > 1 or n > SAMPLED_GAPS:
        rank = min(size - 1, -(-rank * size // n))
    return smallest(held[:size], rank)


@njit
def settle(scores, constant, lower, upper, labels, prices):  # type: ignore[no-untyped-def]
    """The best labels of a task within the bounds, by scores + constant; ``labels`` and ``prices`` change in place.

    As :func:`mtclust.primal.boundary.settle`. Returns how many labels changed, or −1, with nothing changed, where more
    than ``MOST_ROWS`` rows are near a boundary.
    """
    n, C = scores.shape
    given = labels.copy()
    gaps = np.empty(n)
    counts = np.zeros(C, dtype=np.int64)
    changed = choose(scores, prices - constant, given, gaps, counts)
    if sizes_fit(prices, counts, lower, upper):
        labels[:] = given
        return changed
    misfit = 0
    for c in range(C):
        misfit += max(counts[c] - upper[c], 0) + max(lower[c] - counts[c], 0)
    held = np.empty(n)
    undecided = np.empty(min(n, MOST_ROWS), dtype=np.int64)
    low = np.empty(C, dtype=np.int64)
    high = np.empty(C, dtype=np.int64)
    delta = _gap_of_rank(gaps, UNDECIDED_PER_MISFIT * misfit + FEWEST_UNDECIDED, held)
    while True:
        k = 0
        for j in range(n):
            if gaps[j] <= delta:
                if k == MOST_ROWS:
                    return -1
                undecided[k] = j
                k += 1
        low[:] = lower
        high[:] = upper
        for c in range(C):
            low[c] -= counts[c]
            high[c] -= counts[c]
        for i in range(k):
            low[given[undecided[i]]] += 1
            high[given[undecided[i]]] += 1
        fewest = 0
        most = 0
        possible = True
        for c in range(C):
            low[c] = max(low[c], 0)
            possible = possible and high[c] >= 0
            fewest += low[c]
            most += high[c]
        if possible and fewest <= k <= most:
            cost = np.empty((k, C))
            for i in range(k):
                for c in range(C):
                    cost[i, c] = -constant[c] - scores[undecided[i], c]
            found, new_prices = exact(cost, low, high, prices)
            change = new_prices - prices
            span = np.max(change) - np.min(change)
            if k == n or span <= delta * (1 + ROUNDING):
                break
            # those prices would move rows further from the boundary: take these in as well
            delta = max(WIDER * delta, WIDER * span)
        else:
            delta = max(2 * delta, _gap_of_rank(gaps, 2 * k + 1, held))
    for i in range(k):
        given[undecided[i]] = found[i]
    prices[:] = new_prices
    changed = 0
    for j in range(n):
        if labels[j] != given[j]:
            labels[j] = given[j]
            changed += 1
    return changed
