"""The loops that need a compiler: sequential exchanges, augmenting paths, passes over rows.

Imported only when first needed, since importing numba takes a while. Plain loops on arrays of one type each: sorting,
partitioning and dot products, operations on whole arrays, slices, min and max stay outside, they are what makes
compilation slow. Results do not depend on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np
from numba.core.runtime import rtsys

from mtclust.core.order import MIXING
from mtclust.util.messages import LOGGER


def _forgiven(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a cache whose failures cost time, not the result: the disk may be full, a file damaged."""

    def forgiven(*args: Any) -> Any:
        try:
            return method(*args)
        except Exception as error:  # a damaged file can fail in any way while it is unpickled
            LOGGER.info("numba cannot keep compiled code, every new process compiles it again: %s", error)

    return forgiven


def _kept(cache: Any, signature: Any, context: Any) -> Any:
    """What a cache has, without reading first all that numba could compile, which takes longer than a small fit."""
    rtsys.initialize(context)
    return cache._load_overload(signature, context)


def njit(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, without the interpreter's lock, and keep the result if possible."""
    try:
        compiled: Any = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # there is no place for a cache
        return numba.njit(nogil=True)(function)
    cache = getattr(compiled, "_cache", None)  # None under NUMBA_DISABLE_JIT
    if cache is not None:
        cache.load_overload = _forgiven(partial(_kept, cache))
        cache.save_overload = _forgiven(cache.save_overload)
    return compiled


@njit
def _next(state):  # type: ignore[no-untyped-def]
    """One step of splitmix64: 64 random bits; ``state`` is an array of one uint64."""
    state[0] += MIXING[0]
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * MIXING[1]
    z = (z ^ (z >> np.uint64(27))) * MIXING[2]
    return z ^ (z >> np.uint64(31))


@njit
def _shuffle(order, state):  # type: ignore[no-untyped-def]
    for j in range(len(order) - 1, 0, -1):
        k = np.int64(_next(state) % np.uint64(j + 1))
        held = order[j]
        order[j] = order[k]
        order[k] = held


@njit
def exchange(M, P, labels, counts, lower, upper, order, tolerance, state):  # type: ignore[no-untyped-def]
    """Swap and move rows of one task until no single exchange lowers ½⟨Y, MY⟩ + ⟨Y, L⟩; rows in random order.

    ``M`` is n×n symmetric, ``P`` is C×n and holds (MY + L)ᵀ, ``order`` are the rows that may move; ``P``, ``labels``,
    ``counts`` and ``order`` are changed in place.
    Every step takes the best partner (or move) of one row. With a = C/(C−1), swapping j (cluster p) and k (cluster q)
    changes the objective by a(P_qj − P_pj + P_pk − P_qk) + a²(M_jj + M_kk − 2M_jk), moving j alone by
    a(P_qj − P_pj) + a²M_jj.
    Returns the number of exchanges.
    """
    n = M.shape[0]
    C = P.shape[0]
    a = C / (C - 1.0)
    bar = np.full(n, np.inf)  # what a swap with a row that stays costs
    for j in order:
        bar[j] = 0.0
    own = np.empty(n)
    for j in range(n):
        own[j] = P[labels[j], j] - bar[j]
    n_exchanges = 0
    improved = True
    while improved:
        improved = False
        _shuffle(order, state)
        for j in order:
            p = labels[j]
            Mjj = M[j, j]
            best = -tolerance
            partner = -1
            target = -1
            if counts[p] > lower[p]:
                for q in range(C):
                    if q != p and counts[q] < upper[q]:
                        delta = P[q, j] - own[j] + a * Mjj
                        if delta < best:
                            best = delta
                            target = q
            for k in range(n):
                q = labels[k]
                if q != p:
                    delta = P[q, j] - own[j] + P[p, k] - own[k] + a * (Mjj + M[k, k] - 2.0 * M[j, k])
                    if delta < best:
                        best = delta
                        partner = k
                        target = q
            if target < 0:
                continue
            improved = True
            n_exchanges += 1
            labels[j] = target
            if partner >= 0:
                labels[partner] = p
                for k in range(n):
                    change = a * (M[j, k] - M[partner, k])
                    P[target, k] += change
                    P[p, k] -= change
            else:
                counts[p] -= 1
                counts[target] += 1
                for k in range(n):
                    change = a * M[j, k]
                    P[target, k] += change
                    P[p, k] -= change
            for k in range(n):
                own[k] = P[labels[k], k] - bar[k]
    return n_exchanges


@njit
def cheapest_exits(cost, labels, changed, exits, movers):  # type: ignore[no-untyped-def]
    """The cheapest row to hand from each cluster whose rows have changed to each other one, and its price (∞: none)."""
    C = cost.shape[1]
    for a in range(C):
        if changed[a]:
            exits[a, :] = np.inf
    for j in range(cost.shape[0]):
        a = labels[j]
        if not changed[a]:
            continue
        for b in range(C):
            price = cost[j, b] - cost[j, a]
            if b != a and price < exits[a, b]:
                exits[a, b] = price
                movers[a, b] = j


@njit
def _leads_to(parent, first, last):  # type: ignore[no-untyped-def]
    """Whether the path that ends in ``last`` comes through ``first``."""
    node = last
    while node >= 0:
        if node == first:
            return True
        node = parent[node]
    return False


@njit
def _shortest_path(exits, may_give, may_take, distance, parent, rounding):  # type: ignore[no-untyped-def]
    """Bellman–Ford from all clusters that may give to the nearest that may take; returns its number or −1.

    ``rounding`` is that of the costs, in their unit.
    """
    C = exits.shape[0]
    for c in range(C):
        distance[c] = 0.0 if may_give[c] else np.inf
        parent[c] = -1
    for _ in range(C - 1):
        changed = False
        for a in range(C):
            if distance[a] == np.inf:
                continue
            for b in range(C):
                reach = distance[a] + exits[a, b]
                # a shorter way must be shorter by more than rounding, or zero-length circles would never settle; among
                # equal rows circles can come out shorter by more than that, and must not enter a path
                if reach < distance[b] - rounding - 1e-14 * abs(reach) and not _leads_to(parent, b, a):
                    distance[b] = reach
                    parent[b] = a
                    changed = True
        if not changed:
            break
    end = -1
    for c in range(C):
        if may_take[c] and parent[c] >= 0 and (end < 0 or distance[c] < distance[end]):
            end = c
    return end


@njit
def augment(cost, labels, counts, lower, upper, tolerance):  # type: ignore[no-untyped-def]
    """Turn labels that are optimal for their own cluster sizes into the optimum within [lower, upper], in place.

    Shortest augmenting paths on the graph of clusters, whose edge a→b is the cheapest row of a to hand to b: first
    rows leave clusters that are too large, then they reach clusters that are too small, at last sizes move inside their
    bounds while that pays by more than ``tolerance``. No negative circle is left, so the result is optimal.
    """
    C = cost.shape[1]
    exits = np.empty((C, C))
    movers = np.empty((C, C), dtype=np.int64)
    distance = np.empty(C)
    parent = np.empty(C, dtype=np.int64)
    may_give = np.empty(C, dtype=np.bool_)
    may_take = np.empty(C, dtype=np.bool_)
    changed = np.ones(C, dtype=np.bool_)
    for phase in range(3):
        while True:
            for c in range(C):
                may_give[c] = counts[c] > (upper[c] if phase == 0 else lower[c])
                may_take[c] = counts[c] < (lower[c] if phase == 1 else upper[c])
            cheapest_exits(cost, labels, changed, exits, movers)
            changed[:] = False
            end = _shortest_path(exits, may_give, may_take, distance, parent, 0.1 * tolerance)
            if end < 0 or (phase == 2 and distance[end] >= -tolerance):
                break
            node = end
            while parent[node] >= 0:  # hand one row over every edge
                giver = parent[node]
                labels[movers[giver, node]] = node
                counts[giver] -= 1
                counts[node] += 1
                changed[giver] = changed[node] = True
                node = giver


@njit
def choose(scores, prices, labels, gaps, counts):  # type: ignore[no-untyped-def]
    """Give every row the cluster of highest score − price; gaps to the second best.

    ``labels`` and ``gaps`` are written, ``counts`` added to.
    """
    n, C = scores.shape
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
        labels[j] = winner


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
