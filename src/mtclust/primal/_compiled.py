"""The loops over rows of the primal form that need a compiler; imported only when first needed."""

from __future__ import annotations

import numpy as np

from mtclust.util.compiler import njit


@njit
def choose(scores, prices, labels, gaps, counts):  # type: ignore[no-untyped-def]
    """Give every row the cluster of highest score − price; gaps to the second best; returns how many labels changed.

    ``labels`` and ``gaps`` are written, ``counts`` added to.
    """
    n, C = scores.shape
    changed = 0
    for j in range(n):
        best = scores[j, 0] - prices[0]
        second = -np.inf
        winner = 0
        # selections, no branches: which cluster wins is unpredictable, and wrong guesses of the processor cost more
        for c in range(1, C):
            value = scores[j, c] - prices[c]
            higher = value > best
            rival = best if higher else value
            second = rival if rival > second else second
            winner = c if higher else winner
            best = value if higher else best
        gaps[j] = best - second
        counts[winner] += 1
        changed += 1 if labels[j] != winner else 0
        labels[j] = winner
    return changed


@njit
def move_sums(rows, old, new, sums):  # type: ignore[no-untyped-def]
    """Class sums (C × r) after the labels of these rows changed from ``old`` (−1: none yet) to ``new``."""
    n, r = rows.shape
    for j in range(n):
        p = old[j]
        q = new[j]
        if p == q:
            continue
        for k in range(r):
            sums[q, k] += rows[j, k]
        if p >= 0:
            for k in range(r):
                sums[p, k] -= rows[j, k]


@njit
def two_best(cost, prices, first, second, gaps):  # type: ignore[no-untyped-def]
    """The two clusters of lowest cost + price of every row, and how far they are apart."""
    n, C = cost.shape
    for j in range(n):
        best = cost[j, 0] + prices[0]
        next_best = np.inf
        winner = 0
        rival = 0
        for c in range(1, C):
            value = cost[j, c] + prices[c]
            lower = value < best
            loser = best if lower else value
            who = winner if lower else c
            nearer = loser < next_best
            rival = who if nearer else rival
            next_best = loser if nearer else next_best
            winner = c if lower else winner
            best = value if lower else best
        first[j] = winner
        second[j] = rival
        gaps[j] = next_best - best


@njit
def count(labels, counts):  # type: ignore[no-untyped-def]
    """Add the number of rows of every cluster to ``counts``."""
    for j in range(len(labels)):
        counts[labels[j]] += 1


@njit
def eagerness(scores, prices, labels, wants):  # type: ignore[no-untyped-def]
    """How much better than its own the best other cluster is for every row, by score − price."""
    n, C = scores.shape
    for j in range(n):
        p = labels[j]
        best = -np.inf
        for c in range(C):
            value = scores[j, c] - prices[c]
            value = -np.inf if c == p else value
            best = value if value > best else best
        wants[j] = best - (scores[j, p] - prices[p])


@njit
def lower_prices(cost, labels, may_give, may_take, prices):  # type: ignore[no-untyped-def]
    """Change prices so that every row has its cheapest cluster by cost + price; returns whether that was possible.

    Difference constraints q_a ≤ q_b + min over rows of a of (cost_b − cost_a), relaxed from the given prices down. The
    last price is that of "no constraint": a cluster that may take rows costs no more, one that may give no less.
    """
    n, C = cost.shape
    exits = np.empty((C + 1, C + 1))
    for a in range(C + 1):
        for b in range(C + 1):
            exits[a, b] = np.inf
    for j in range(n):
        a = labels[j]
        for b in range(C):
            price = cost[j, b] - cost[j, a]
            if price < exits[a, b]:
                exits[a, b] = price
    for c in range(C):
        exits[c, c] = 0.0
        if may_take[c]:
            exits[c, C] = 0.0
        if may_give[c]:
            exits[C, c] = 0.0
    for _ in range(C + 2):
        changed = False
        for a in range(C + 1):
            for b in range(C + 1):
                reach = prices[b] + exits[a, b]
                if reach < prices[a] - 1e-13 * (1.0 + abs(reach)):
                    prices[a] = reach
                    changed = True
        if not changed:
            return True
    return False
