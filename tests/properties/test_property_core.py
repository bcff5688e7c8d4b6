"""Properties of the parts that estimators are made of: sizes, assignment, exchange, alignment, coupling, task ids."""

import string
import warnings
from functools import cache

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from property_cases import holds
from scipy.optimize import linear_sum_assignment

import mtclust
from mtclust import DSTC
from mtclust.core.assignment import assign
from mtclust.core.coupling import Independent, Relationship, SharedFeatures, gain_matrix, trace_one_root
from mtclust.core.criterion import QuadraticTerm, random_labels
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.core.labels import SizeBounds, balance_bounds, label_codes, parse_sizes
from mtclust.core.matching import best_renaming, groups_of_tasks, match_labels
from mtclust.core.tasks import index_tasks, split_by_task
from tests.persistence_helpers import assert_same

seeds = st.integers(0, 2**32 - 1)


def bounds_for(rng, n, n_clusters):
    """Random bounds that some labelling of n rows meets."""
    sizes = rng.multinomial(n, rng.dirichlet(np.ones(n_clusters)))
    return np.maximum(sizes - rng.integers(0, 3, n_clusters), 0), sizes + rng.integers(0, 3, n_clusters)


def optimal_cost(cost, lower, upper):
    """The Hungarian method on one slot per allowed row, with a bonus for the slots that must be filled."""
    bonus = 4 * len(cost) * (float(np.ptp(cost)) or 1.0)
    slots = np.repeat(np.arange(len(lower)), upper)
    needed = np.concatenate([np.arange(high) < low for low, high in zip(lower, upper)])
    table = cost[:, slots] - bonus * needed
    rows, columns = linear_sum_assignment(table)
    assert needed[columns].sum() == lower.sum()
    return cost[rows, slots[columns]].sum()


@holds("assignment", n=st.integers(1, 25), n_clusters=st.integers(1, 6), ties=st.booleans(),
       exponent=st.sampled_from([0, -200, 200]), seed=seeds)  # fmt: skip
def test_assignment_is_optimal_within_the_bounds_whatever_the_prices(n, n_clusters, ties, exponent, seed):
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 3, (n, n_clusters)).astype(float) if ties else rng.normal(size=(n, n_clusters))
    lower, upper = bounds_for(rng, n, n_clusters)
    best = optimal_cost(cost, lower, upper)
    for prices in (None, rng.normal(size=n_clusters) * 10.0**exponent):
        labels = assign(cost * 10.0**exponent, lower, upper, prices=prices)
        counts = np.bincount(labels, minlength=n_clusters)
        assert np.all((lower <= counts) & (counts <= upper))
        np.testing.assert_allclose(cost[np.arange(n), labels].sum(), best, atol=1e-9)


@holds("exchange", n=st.integers(1, 12), n_clusters=st.integers(2, 4), coupled=st.booleans(), seed=seeds)
def test_exchange_ends_where_no_swap_or_move_lowers_the_objective(n, n_clusters, coupled, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    M = A @ A.T / n + 0.1 * np.eye(n)
    field = rng.normal(size=(n, n_clusters)) if coupled else None
    lower, upper = bounds_for(rng, n, n_clusters)
    labels = random_labels(n, lower, upper, rng)

    def value(candidate):
        Y = label_codes(candidate, n_clusters)
        return 0.5 * np.vdot(Y, M @ Y) + (0.0 if field is None else np.vdot(Y, field))

    before = value(labels)
    term = QuadraticTerm(M, len(lower), field)
    moves = term.refine(labels, lower, upper, np.array([seed], dtype=np.uint64))
    found = term.value(labels)
    counts = np.bincount(labels, minlength=n_clusters)
    assert np.all((lower <= counts) & (counts <= upper))
    np.testing.assert_allclose(found, value(labels), rtol=1e-9, atol=1e-9)
    assert found <= before + 1e-9
    assert moves > 0 or found >= before - 1e-9
    for j in range(n):
        for c in range(n_clusters):
            p = labels[j]
            if c != p and counts[p] > lower[p] and counts[c] < upper[c]:
                moved = labels.copy()
                moved[j] = c
                assert value(moved) > found - 1e-7
        for k in range(j):
            swapped = labels.copy()
            swapped[[j, k]] = labels[[k, j]]
            assert value(swapped) > found - 1e-7


@holds("size bounds", n=st.integers(1, 60), n_clusters=st.integers(1, 9), l=st.floats(0, 1),
       low=st.floats(0, 1), high=st.floats(0, 1))  # fmt: skip
def test_bounds_are_feasible_and_say_what_the_rule_says(n, n_clusters, l, low, high):
    lower, upper = balance_bounds(n, n_clusters, l)
    assert 0 <= lower <= n // n_clusters <= -(-n // n_clusters) <= upper <= n
    for size in range(n + 1):
        share = size / n
        inside = (1 - l) / n_clusters - 1e-12 <= share <= (1 + (n_clusters - 1) * l) / n_clusters + 1e-12
        equal = size in (n // n_clusters, -(-n // n_clusters))
        if abs(share - (1 - l) / n_clusters) > 1e-7 and abs(share - (1 + (n_clusters - 1) * l) / n_clusters) > 1e-7:
            assert (lower <= size <= upper) >= inside
            if inside or equal:
                assert lower <= size <= upper
    low, high = min(low, high), max(low, high)
    assume(low * n_clusters <= 1 <= high * n_clusters)
    bounds = parse_sizes((low, high), [n], n_clusters)
    assert bounds.lower.sum() <= n <= bounds.upper.sum()
    assert bounds.interchangeable()
    labels = random_labels(n, bounds.lower[0], bounds.upper[0], np.random.default_rng(n))
    counts = np.bincount(labels, minlength=n_clusters)
    assert bounds.respects(0, counts)
    table = parse_sizes([counts.tolist()], [n], n_clusters)
    assert np.array_equal(table.lower, table.upper)
    assert table.respects(0, counts)


@holds("alignment", m=st.integers(1, 4), n_clusters=st.integers(2, 4), seed=seeds, d=st.integers(1, 4))
def test_alignment_renames_clusters_and_nothing_else(m, n_clusters, seed, d):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, size=m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], d))
    labels = rng.integers(n_clusters, size=offsets[-1])
    free = SizeBounds(np.zeros((m, n_clusters), dtype=np.int64), np.tile(sizes[:, None], (1, n_clusters)))
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    aligned, similarity = match_labels(kernel, offsets, labels, free)
    for a, b in zip(offsets[:-1], offsets[1:]):
        pairs = set(zip(labels[a:b].tolist(), aligned[a:b].tolist()))
        assert len(pairs) == len({old for old, _ in pairs}) == len({new for _, new in pairs})
    np.testing.assert_allclose(similarity, similarity.T)
    assert np.all(np.abs(similarity) <= 1 + 1e-9)
    assert sorted(np.concatenate(groups_of_tasks(similarity)).tolist()) == list(range(m))
    profit, counts = rng.normal(size=(n_clusters,) * 2), rng.integers(5, 9, size=n_clusters)
    lower, upper = counts - rng.integers(3, size=n_clusters), counts + rng.integers(3, size=n_clusters)
    new_ids = best_renaming(profit, SizeBounds(lower[None], upper[None]), 0, counts)
    assert sorted(new_ids.tolist()) == list(range(n_clusters))
    assert np.all((lower[new_ids] <= counts) & (counts <= upper[new_ids]))
    assert profit[np.arange(n_clusters), new_ids].sum() >= np.trace(profit) - 1e-12
    index, shuffled = index_tasks(None, len(labels)), rng.permutation(n_clusters)[labels]
    plain, alike, new_ids = index.with_plain_ids(labels, shuffled, n_clusters, True)
    assert sorted(new_ids.tolist()) == list(range(n_clusters))
    np.testing.assert_array_equal(plain, new_ids[labels])
    np.testing.assert_array_equal(alike, plain)
    assert np.all(np.diff(np.bincount(plain, minlength=n_clusters)) <= 0)  # the largest first
    np.testing.assert_array_equal(np.unique(plain), np.arange(np.unique(labels).size))


ids = (
    st.lists(st.integers(-5, 5), min_size=1) | st.lists(st.text(max_size=3), min_size=1)
    | st.lists(st.floats(allow_nan=False), min_size=1) | st.lists(st.booleans(), min_size=1)
)  # fmt: skip


@holds("task index", tasks=ids)
def test_rows_grouped_by_task_return_to_their_places(tasks):
    given = np.array(tasks)
    index = index_tasks(given, len(tasks))
    rows = np.arange(len(tasks))
    np.testing.assert_array_equal(index.to_input_order(rows[index.order]), rows)
    np.testing.assert_array_equal(index.names[index.task_numbers], given)
    assert np.all(index.names[:-1] < index.names[1:])
    assert index.sizes.sum() == len(tasks)
    for i, part in enumerate(index.slices()):
        assert np.all(index.task_numbers[index.order[part]] == i)
        assert np.all(np.diff(index.order[part]) > 0)
    parts = split_by_task(rows, given)
    assert sorted(np.concatenate(list(parts.values())).tolist()) == rows.tolist()
    for name, mine in parts.items():
        assert np.all(given[mine] == np.array([name], dtype=given.dtype))


@holds("coupling", m=st.integers(1, 4), n_clusters=st.integers(2, 4), seed=seeds,
       lambda1=st.sampled_from([0.0, 1e-6, 1e-2, 10.0]), lambda2=st.sampled_from([1e-6, 1e-2, 10.0]))  # fmt: skip
def test_the_closed_form_of_the_coupling_is_a_covariance_and_never_raises_the_objective(
    m, n_clusters, seed, lambda1, lambda2
):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 10, size=m)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    X = rng.normal(size=(offsets[-1], int(rng.integers(1, 4))))
    kernel = centre_kernel(X @ X.T, offsets, bool(rng.integers(2))).matrix
    codes = label_codes(rng.integers(n_clusters, size=offsets[-1]), n_clusters)
    A = rng.normal(size=(m, int(rng.integers(1, m + 1))))
    Z = trace_one_root(A @ A.T)
    # with eigenvalues that are nearly zero, as far as the inverse can be trusted
    G = gain_matrix(Z, lambda1, lambda2)
    np.testing.assert_allclose(G @ (lambda1 * Z + lambda2 * np.eye(m)), Z, atol=1e-9)
    couplings = [
        Relationship(kernel, offsets, lambda1, lambda2),
        SharedFeatures(eigen_features(kernel), offsets, lambda1, lambda2),
        Independent(kernel, offsets, lambda1 + lambda2),
    ]
    for coupling in couplings:
        Z = coupling.uncoupled()
        before = np.inf
        for _ in range(4):
            assert abs(np.trace(Z) - 1) < 1e-9
            assert np.linalg.eigvalsh(Z).min() > -1e-12
            state = coupling.condition(Z)
            value = state.objective(codes)
            assert value <= before * (1 + 1e-6)
            before, Z = value, state.coupling.closed_form_of_rows(state, codes)


extra = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.lists(st.floats(width=32)).map(lambda values: np.array(values, dtype=np.float32))
    | st.lists(st.text(string.printable, max_size=4), min_size=1).map(np.array),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)  # fmt: skip


@cache
def small_model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DSTC(2, kernel="linear", lambda1=0.1, n_init=1, sizes="balanced").fit(np.arange(4.0)[:, None])


def test_extra_comes_back_from_a_file_bit_for_bit(tmp_path):
    @holds("saved extra", value=extra)
    def comes_back(value):
        small_model().save(tmp_path / "model", extra={"value": value})
        _, back = mtclust.load(tmp_path / "model", return_extra=True)
        assert_same(back["value"], value)

    comes_back()
