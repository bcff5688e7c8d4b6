"""The compiled loops one by one, against plain Python."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from mtclust.core import compiled


def splitmix64(state):
    """The generator as its author wrote it, in whole numbers."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def test_random_bits_are_those_of_splitmix64():
    state = np.array([1234567], dtype=np.uint64)
    found = [int(compiled._next(state)) for _ in range(5)]
    assert found[:2] == [6457827717110365317, 3203168211198807973]  # the values published with the generator
    assert found == list(itertools.islice(splitmix64(1234567), 5))


def test_shuffling_swaps_every_place_with_a_random_one_before_it():
    order, state = np.arange(7), np.array([5], dtype=np.uint64)
    compiled._shuffle(order, state)
    expected, bits = list(range(7)), splitmix64(5)
    for j in range(6, 0, -1):
        k = next(bits) % (j + 1)
        expected[j], expected[k] = expected[k], expected[j]
    assert order.tolist() == expected


def test_the_cheapest_exit_is_the_row_that_loses_least():
    rng = np.random.default_rng(0)
    cost, labels = rng.normal(size=(12, 4)), np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2])  # nothing in cluster 3
    exits, movers = np.zeros((4, 4)), np.zeros((4, 4), dtype=np.int64)
    compiled.cheapest_exits(cost, labels, np.ones(len(exits), dtype=bool), exits, movers)
    for a in range(4):
        rows = np.flatnonzero(labels == a)
        for b in range(4):
            if a == b or not len(rows):
                assert exits[a, b] == np.inf
            else:
                losses = cost[rows, b] - cost[rows, a]
                assert exits[a, b] == losses.min()
                assert movers[a, b] == rows[losses.argmin()]


def shortest_by_trying_all(exits, give, take):
    """The shortest simple path from a cluster that may give to one that may take."""
    best = np.inf, ()
    n = len(exits)
    for length in range(2, n + 1):
        for path in itertools.permutations(range(n), length):
            if give[path[0]] and take[path[-1]]:
                best = min(best, (sum(exits[a, b] for a, b in itertools.pairwise(path)), path))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_paths_between_clusters_are_the_shortest(seed):
    rng = np.random.default_rng(seed)
    exits = rng.random((4, 4))
    exits[rng.integers(4), rng.integers(4)] = np.inf
    np.fill_diagonal(exits, np.inf)
    potential = rng.normal(size=4)
    exits += potential[:, None] - potential  # some become negative, no circle does
    give = rng.random(4) < 0.5
    take = ~give
    distance, parent = np.empty(4), np.empty(4, dtype=np.int64)
    end = compiled._shortest_path(exits, give, take, distance, parent, 1e-12)
    length, path = shortest_by_trying_all(exits, give, take)
    if not path:
        assert end == -1
        return
    assert distance[end] == pytest.approx(length)
    found = [end]
    while parent[found[-1]] >= 0:
        found.append(parent[found[-1]])
    assert give[found[-1]]
    assert tuple(found[::-1]) == path


def test_without_a_way_there_is_no_path():
    exits = np.full((3, 3), np.inf)
    distance, parent = np.empty(3), np.empty(3, dtype=np.int64)
    give, take = np.array([True, False, False]), np.array([False, True, True])
    assert compiled._shortest_path(exits, give, take, distance, parent, 0.0) == -1


def test_a_longer_way_round_by_less_than_rounding_is_not_taken():
    exits = np.array([[np.inf, 1.0, 0.5], [np.inf] * 3, [np.inf, 0.5 - 1e-9, np.inf]])
    give, take = np.array([True, False, False]), np.array([False, True, False])
    for rounding, expected in ((1e-8, 0), (1e-10, 2)):
        distance, parent = np.empty(3), np.empty(3, dtype=np.int64)
        assert compiled._shortest_path(exits, give, take, distance, parent, rounding) == 1
        assert parent[1] == expected


def test_whether_a_path_comes_through_a_cluster():
    parent = np.array([-1, 0, 1, -1])  # 0 → 1 → 2, and 3 apart
    found = [[bool(compiled._leads_to(parent, first, last)) for last in range(4)] for first in range(4)]
    assert found == [
        [True, True, True, False],
        [False, True, True, False],
        [False, False, True, False],
        [False] * 3 + [True],
    ]


def test_augmenting_pays_only_for_more_than_the_tolerance():
    cost = np.array([[0.0, 1.0, 9.0], [0.0, 2.0, 9.0], [0.0, 3.0, 9.0], [0.0, 9.0, -0.5]])
    labels, counts = np.zeros(4, dtype=np.int64), np.array([4, 0, 0])
    lower, upper = np.array([0, 2, 0]), np.array([3, 4, 4])
    # one row leaves the cluster that is too large, one joins that which is too small, none moves for its own sake
    compiled.augment(cost, labels, counts, lower, upper, 1e-12)
    assert labels.tolist() == [1, 1, 0, 2]
    assert counts.tolist() == [1, 2, 1]
    labels, counts = np.array([1, 1, 0, 0]), np.array([2, 2, 0])
    compiled.augment(cost, labels, counts, lower, upper, 0.6)
    assert labels.tolist() == [1, 1, 0, 0]
    compiled.augment(cost, labels, counts, lower, upper, 0.4)
    assert labels.tolist() == [1, 1, 0, 2]


@pytest.mark.parametrize("seed", range(6))
def test_exchange_takes_the_best_partner_or_move_of_each_row_in_turn(seed):
    """A plain search with the same order of rows ends at the same labels."""
    rng = np.random.default_rng(seed)
    n, C = 9, 3
    A = rng.normal(size=(n, 4))
    M, L = A @ A.T + 0.1 * np.eye(n), rng.normal(size=(n, C))
    labels = rng.integers(C, size=n)
    lower, upper = np.array([1, 0, 2]), np.array([5, 4, 6])
    labels[:4] = [0, 1, 2, 2]
    codes = np.where(np.eye(C)[labels] == 1, 1.0, -1 / (C - 1))
    found, counts = labels.copy(), np.bincount(labels, minlength=C)
    upper = np.maximum(upper, counts)
    P = np.ascontiguousarray((M @ codes + L).T)
    n_exchanges = compiled.exchange(
        M, P, found, counts, lower, upper, np.arange(n), 1e-9, np.array([seed], dtype=np.uint64)
    )

    def value(candidate):
        Y = np.where(np.eye(C)[candidate] == 1, 1.0, -1 / (C - 1))
        return 0.5 * np.vdot(Y, M @ Y) + np.vdot(Y, L)

    expected, bits, steps, order, improved = labels.copy(), splitmix64(seed), 0, list(range(n)), True
    while improved:
        improved = False
        for j in range(n - 1, 0, -1):
            k = next(bits) % (j + 1)
            order[j], order[k] = order[k], order[j]
        for j in order:
            candidates = []
            for q in range(C):
                moved = expected.copy()
                moved[j] = q
                sizes = np.bincount(moved, minlength=C)
                if np.all((sizes >= lower) & (sizes <= upper)):
                    candidates.append(moved)
            for k in range(n):
                swapped = expected.copy()
                swapped[[j, k]] = expected[[k, j]]
                candidates.append(swapped)
            best = min(candidates, key=value)
            if value(best) < value(expected) - 1e-9:
                expected, improved, steps = best, True, steps + 1
    assert found.tolist() == expected.tolist()
    assert n_exchanges == steps > 0
    assert counts.tolist() == np.bincount(found, minlength=C).tolist()
    codes = np.where(np.eye(C)[found] == 1, 1.0, -1 / (C - 1))
    np.testing.assert_allclose(P, (M @ codes + L).T, atol=1e-9)


def test_kept_code_is_loaded_without_all_that_numba_could_compile():
    """Reading that takes longer than a small fit."""
    code = (
        "import sys, numpy as np\nfrom mtclust.core import compiled\n"
        "labels, counts = np.zeros(3, np.int32), np.zeros(2, np.int64)\n"
        "compiled.choose(np.eye(3, 2), np.zeros(2), labels, np.empty(3), counts)\n"
        "print(counts.tolist(), sum(compiled.choose.stats.cache_hits.values()), 'numba.np.linalg' in sys.modules)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in "ab"]
    assert runs[-1].stdout == "[2, 1] 1 False\n"
