"""Exact size-constrained assignment against the linear program solved by HiGHS."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment, linprog

from mtclust.core import assignment, compiled
from mtclust.core.assignment import assign


def optimum_by_linear_programming(cost, lower, upper):
    n, C = cost.shape
    columns = sp.kron(np.ones((1, n)), sp.eye_array(C))
    result = linprog(
        cost.ravel(),
        A_ub=sp.vstack([columns, -columns]),
        b_ub=np.concatenate([upper, -np.asarray(lower)]),
        A_eq=sp.kron(sp.eye_array(n), np.ones((1, C))),
        b_eq=np.ones(n),
        bounds=(0, 1),
        method="highs",
    )
    return result.fun


def random_bounds(rng, n, C, kind):
    if kind == "equal":
        return np.full(C, n // C), np.full(C, -(-n // C))
    if kind == "unequal":
        sizes = rng.multinomial(n, rng.dirichlet(np.ones(C)))
        return sizes, sizes
    while True:
        lower = rng.integers(0, n // C + 1, size=C)
        upper = lower + rng.integers(0, n, size=C)
        if upper.sum() >= n:
            return lower, upper


@pytest.mark.parametrize("kind", ["equal", "unequal", "interval"])
@pytest.mark.parametrize("values", ["normal", "integers"])
def test_total_cost_equals_the_linear_program(kind, values):
    rng = np.random.default_rng(0)
    for _ in range(80):
        n, C = int(rng.integers(2, 40)), int(rng.integers(2, 8))
        cost = rng.normal(size=(n, C)) if values == "normal" else rng.integers(0, 3, size=(n, C)).astype(float)
        lower, upper = random_bounds(rng, n, C, kind)
        labels = assign(cost, lower, upper)
        sizes = np.bincount(labels, minlength=C)
        assert np.all(sizes >= lower)
        assert np.all(sizes <= upper)
        assert cost[np.arange(n), labels].sum() == pytest.approx(
            optimum_by_linear_programming(cost, lower, upper), abs=1e-9
        )


@pytest.mark.parametrize("kind", ["equal", "unequal", "interval"])
def test_prices_and_paths_agree_with_paths_alone(kind, monkeypatch):
    rng = np.random.default_rng(1)
    for C in (3, 6):
        n = 400
        cost = rng.normal(size=(n, C)) + 3 * rng.dirichlet(np.ones(C))
        lower, upper = random_bounds(rng, n, C, kind)
        direct = cost[np.arange(n), assign(cost, lower, upper)].sum()
        with monkeypatch.context() as patch:
            patch.setattr(assignment, "_SMALL", 0)
            swept = cost[np.arange(n), assign(cost, lower, upper)].sum()
        assert swept == pytest.approx(direct, abs=1e-8)


def test_exact_balance_equals_the_hungarian_method():
    rng = np.random.default_rng(2)
    cost = rng.normal(size=(60, 5))
    rows, columns = linear_sum_assignment(np.repeat(cost, 12, axis=1))
    expected = np.repeat(cost, 12, axis=1)[rows, columns].sum()
    assert cost[np.arange(60), assign(cost, [12] * 5, [12] * 5)].sum() == pytest.approx(expected, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("values", ["normal", "ties", "constant"])
def test_a_hundred_thousand_rows_and_twenty_clusters(values):
    rng = np.random.default_rng(3)
    n, C = 100_000, 20
    cost = {"normal": rng.normal(size=(n, C)), "ties": rng.integers(0, 4, (n, C)) * 1.0, "constant": np.zeros((n, C))}
    labels = assign(cost[values], [n // C] * C, [n // C] * C)
    assert np.all(np.bincount(labels, minlength=C) == n // C)


def test_bounds_that_no_labelling_meets():
    with pytest.raises(ValueError, match=r"between \[3, 3\] and \[3, 3\] cannot be met by 5 rows"):
        assign(np.zeros((5, 2)), [3, 3], [3, 3])


@pytest.mark.parametrize("seed", [0, 67, 72, 139])
def test_many_equal_rows_meet_the_bounds_and_the_optimum_of_their_groups(seed):
    """Rows of few kinds: rounding makes circles of clusters that must not mislead the paths."""
    rng = np.random.default_rng(seed)
    kinds, C, n = 12, 4, 6000
    cost, kind = rng.normal(size=(kinds, 3)) @ rng.normal(size=(3, C)), rng.integers(kinds, size=n)
    sizes = np.full(C, n // C)
    labels = assign(cost[kind], sizes, sizes)
    np.testing.assert_array_equal(np.bincount(labels, minlength=C), sizes)
    # the same as a transport from kinds to clusters
    supply = np.bincount(kind, minlength=kinds)
    result = linprog(
        cost.ravel(),
        A_eq=sp.vstack([sp.kron(sp.eye_array(kinds), np.ones((1, C))), sp.kron(np.ones((1, kinds)), sp.eye_array(C))]),
        b_eq=np.concatenate([supply, sizes]),
        method="highs",
    )
    assert cost[kind][np.arange(n), labels].sum() == pytest.approx(result.fun, rel=1e-9)


@pytest.fixture(params=["paths alone", "prices first"])
def either_way(request, monkeypatch):
    """Small problems go straight to the paths, large ones have prices swept before; here both on small ones."""
    if request.param == "prices first":
        monkeypatch.setattr(assignment, "_SMALL", 0)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("unit", [1e-200, 1e-20, 1e200])
def test_the_unit_of_the_cost_does_not_matter(unit):
    rng = np.random.default_rng(3)
    cost, sizes = rng.normal(size=(60, 5)), np.array([10, 14, 12, 20, 4])
    np.testing.assert_array_equal(assign(unit * cost, sizes, sizes), assign(cost, sizes, sizes))


@pytest.mark.usefixtures("either_way")
def test_a_large_number_added_to_all_costs_does_not_matter():
    rng = np.random.default_rng(5)
    sizes = np.array([5, 3, 4])
    for _ in range(20):
        cost = rng.integers(0, 10, size=(12, 3)).astype(float)
        best = optimum_by_linear_programming(cost, sizes, sizes)
        assert cost[np.arange(12), assign(1e6 + 1e-8 * cost, sizes, sizes)].sum() == pytest.approx(best)


@pytest.mark.parametrize(("n", "count"), [(7, 0), (7, 1), (7, 4), (7, 6), (7, 7), (900, 2), (900, 450), (900, 898)])
def test_a_threshold_has_as_many_values_below_it_as_asked_for(n, count):
    values = np.random.default_rng(0).normal(size=n)
    assert np.count_nonzero(values < assignment._threshold(values, count)) == count


def test_prices_settle_before_the_paths_begin():
    """The paths would mend any prices, one row at a time; good ones leave them few rows."""
    rng = np.random.default_rng(0)
    cost, C = rng.normal(size=(3000, 5)) + np.array([0.0, 0.5, 1.0, 1.5, 3.0]), 5
    sizes = np.full(C, 600)
    prices = assignment._class_prices(cost, sizes, sizes, np.zeros(C))
    counts = np.bincount(np.argmin(cost + prices, axis=1), minlength=C)
    assert np.abs(counts - sizes).max() <= 30


@pytest.mark.parametrize("given", [False, True])
def test_rows_take_the_cluster_of_lowest_cost_and_price_before_the_paths_begin(given, monkeypatch):
    rng = np.random.default_rng(0)
    cost, sizes = rng.normal(size=(1500, 5)) + np.array([0.0, 0.5, 1.0, 1.5, 3.0]), np.full(5, 300)
    prices = assignment._class_prices(cost, sizes, sizes, np.zeros(5)) if given else None
    left = []

    def looked_at(cost, labels, counts, *rest):
        left.append(np.abs(counts - sizes).max())
        return augmented(cost, labels, counts, *rest)

    augmented = compiled.augment
    monkeypatch.setattr(compiled, "augment", looked_at)
    monkeypatch.setattr(assignment, "_SMALL", 2000 if given else 0)
    assign(cost, sizes, sizes, prices=prices)
    assert left[0] <= 30


def test_bounds_that_do_not_bind_have_no_price():
    cost = np.random.default_rng(0).normal(size=(300, 4))
    prices = assignment._class_prices(cost, np.array([0, 0, 0, 150]), np.full(4, 300), np.zeros(4))
    np.testing.assert_array_equal(prices[:3], 0)
    assert prices[3] < 0
