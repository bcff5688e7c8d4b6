"""Descent and polish: exact changes of J, certificates checked by brute force."""

import itertools

import numpy as np
import pytest
from primal_helpers import Case, blobs, case, centred_directly, dense_form, gains_of_exchanges, random_coupling

from mtclust.core.labels import parse_sizes
from mtclust.rows.moments import Data, moments
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows, polish, rename
from mtclust.search.descent import Accelerator, coupling_steps
from mtclust.search.problem import Effort

METHODS = ["relationship", "features", "independent"]
#: J relative to its size at the level of rounding
ROUNDING = 1e-9


def begun(example, seed=0):
    """The point of the example's labels under a random coupling."""
    size = example.Phi.shape[1] if example.problem.method == "features" else example.data.n_tasks
    Z = random_coupling(size, np.random.default_rng(seed))
    return example.problem.point(example.labels, Z)


def take(example, point):
    example.labels = point.labels.astype(np.int64)


def best_exchange(example, point):
    """The change of J by the best single exchange, by brute force on the dense dual form."""
    take(example, point)
    M = dense_form(example.dual(point.Z), example.offsets)
    bounds = example.data.bounds
    return min(gains_of_exchanges(M, example.codes, example.labels, example.offsets, bounds.lower, bounds.upper))


def polished(example, point, rounds=60):
    """Polish until it says that nothing is left."""
    tasks, rng = list(range(example.data.n_tasks)), np.random.default_rng(0)
    for _ in range(rounds):
        before = point.value
        certified = polish(example.data, point, tasks, rng)
        assert point.value <= before + ROUNDING
        take(example, point)
        dual = example.dual(point.Z)
        assert point.value == pytest.approx(dual.objective(example.codes), rel=1e-8)
        if certified:
            return True
    return False


def test_brute_force_itself_is_right():
    """The oracle's change of one swap and one move equals the difference of two objectives."""
    example = case(sizes=(9, 9), rule=1.0)
    dual = example.dual(np.eye(2) / 2)
    M = dense_form(dual, example.offsets)
    free = np.zeros((2, 3), dtype=int), np.full((2, 3), 9)
    swap, move = gains_of_exchanges(M, example.codes, example.labels, example.offsets, *free)
    value, labels = dual.objective(example.codes), example.labels.copy()
    swaps, moves = [], []
    for j in range(18):
        for c in range(3):
            example.labels = labels.copy()
            example.labels[j] = c
            moves.append(dual.objective(example.codes) - value if c != labels[j] else np.inf)
        for k in range(j + 1, 18):
            if j // 9 == k // 9 and labels[j] != labels[k]:
                example.labels = labels.copy()
                example.labels[[j, k]] = labels[[k, j]]
                swaps.append(dual.objective(example.codes) - value)
    assert swap == pytest.approx(min(swaps))
    assert move == pytest.approx(min(moves))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["balanced", 1.0, (0.1, 0.6)])
@pytest.mark.parametrize("seed", [0, 1])
def test_polish_lowers_j_exactly_and_leaves_no_exchange_where_it_says_so(method, rule, seed):
    example = case(method, sizes=(30, 24, 41), rule=rule, seed=seed, spread=1.5)
    point = begun(example, seed)
    start = point.value
    assert polished(example, point)
    assert point.value < start
    assert best_exchange(example, point) >= -ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("method", ["relationship", "independent"])
@pytest.mark.parametrize("rule", ["balanced", 1.0, (0.1, 0.6)])
@pytest.mark.parametrize("seed", [0, 1])
def test_certificates_hold_where_only_some_rows_are_looked_at(method, rule, seed):
    example = case(method, sizes=(400, 330), rule=rule, seed=seed, spread=1.5)
    point = begun(example, seed)
    rng = np.random.default_rng(seed)
    for _ in range(200):
        example.problem.descend(point, rng, Effort("test", tol=0.0, learn=False))
        if point.certified:
            break
    assert point.certified
    assert best_exchange(example, point) >= -ROUNDING
    values = [entry["objective"] for entry in point.history]
    assert np.diff(values).max() <= ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["balanced", 1.0])
def test_what_the_whole_search_certifies_holds(method, rule):
    """Where a descent claims a certificate there must be no better exchange."""
    claimed = 0
    for seed in range(4):
        example = case(method, sizes=(40, 170, 200), rule=rule, seed=seed, spread=1.2)
        point = example.problem.descend(begun(example, seed), np.random.default_rng(seed), Effort("all rows"))
        take(example, point)
        claimed += point.certified
        best = best_exchange(example, point)
        if point.certified:
            assert best >= -ROUNDING
        assert point.value == pytest.approx(example.dual(point.Z).objective(example.codes), rel=1e-8)
        values = [entry["objective"] for entry in point.history]
        assert np.diff(values).max(initial=0.0) <= ROUNDING
    assert claimed


def test_a_single_row_with_something_to_gain_is_moved():
    """With free sizes one row may be the only candidate; it has no partner, but it can move."""
    n = 401
    X = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(n, 1))
    X[-1] = 0.1
    offsets = np.array([0, n])
    source = TableRows(X, offsets)
    data = Data(source, moments(source, True), parse_sizes(1.0, [n], 2))
    labels = (X[:, 0] > 0).astype(int)
    problem = AllRows(data, "independent", np.array([0.01]), 0.01)
    right = Case(problem, centred_directly(X, offsets)[0], offsets, labels.copy())
    wrong = Case(problem, right.Phi, offsets, np.append(labels[:-1], 0))
    best, point = begun(right), begun(wrong)
    assert point.value > best.value
    assert not polish(data, point, [0], np.random.default_rng(0))
    np.testing.assert_array_equal(point.labels, labels)
    assert point.value == pytest.approx(best.value, rel=1e-9)
    assert polish(data, point, [0], np.random.default_rng(0))


def test_only_active_tasks_change_their_labels():
    example = case(sizes=(40, 40, 40))
    point = begun(example)
    before = [task.labels.copy() for task in point.fit.tasks]
    example.problem.descend(point, np.random.default_rng(0), Effort("test", max_iter=5, tol=1e-6, tasks=[1]))
    np.testing.assert_array_equal(point.fit.tasks[0].labels, before[0])
    np.testing.assert_array_equal(point.fit.tasks[2].labels, before[2])
    assert np.any(point.fit.tasks[1].labels != before[1])


def test_one_cluster_leaves_nothing_to_exchange():
    example = case(sizes=(12, 12), n_clusters=1)
    assert polish(example.data, begun(example), [0, 1], np.random.default_rng(0))


@pytest.mark.parametrize("method", ["relationship", "features"])
def test_the_history_tells_every_kind_of_step(method):
    example = case(method)
    point = begun(example)
    example.problem.descend(point, np.random.default_rng(0), Effort("here"))
    assert {entry["stage"] for entry in point.history} == {"here"}
    steps = [entry["step"] for entry in point.history]
    assert (steps[0], steps[1], steps[2]) == ("start", "labels", "coupling")
    assert "polish" in steps
    assert steps.count("labels") == point.n_iter
    rough = begun(example)
    example.problem.descend(rough, np.random.default_rng(0), Effort("here", learn=False))
    assert "coupling" not in {entry["step"] for entry in rough.history}


def test_the_coupling_is_stepped_until_it_is_its_own_closed_form():
    """With the labels fixed: the steps go on while they pay, and J only falls."""
    example = case("relationship")
    point = begun(example)
    values = [point.value]
    for _ in range(20):
        coupling_steps(example.problem, point, Accelerator(), 8, 1e-12)
        values.append(point.value)
    assert np.all(np.diff(values) <= 0)
    assert values[-1] < values[0]
    target = example.problem.coupling.closed_form(point.fit.W)
    np.testing.assert_allclose(point.Z, target, atol=2e-3)
    assert point.value == pytest.approx(example.dual(point.Z).objective(example.codes), rel=1e-8)


@pytest.mark.parametrize("task", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_renaming_finds_the_best_of_all_namings_of_a_task(seed, task):
    """Clear clusters whose names are changed in one task, tasks alike: J by the dense dual form for every naming."""
    _, _, classes = blobs((40, 30, 50), spread=0.3, seed=seed)
    example = case("relationship", seed=seed, spread=0.3)
    rows = example.slices()[task]
    example.labels = classes.copy()
    example.labels[rows] = (classes[rows] + 1 + seed) % 3
    Z = 0.3 * np.ones((3, 3)) / 3 + 0.7 * np.eye(3) / 3
    point = example.problem.point(example.labels, Z)
    rename(example.data, point, [task], "test")
    assert [entry["step"] for entry in point.history] == ["rename"]
    take(example, point)
    assert point.value == pytest.approx(example.dual(Z).objective(example.codes), rel=1e-8)
    for order in itertools.permutations(range(3)):
        other = Case(example.problem, example.Phi, example.offsets, example.labels.copy())
        other.labels[rows] = np.array(order)[example.labels[rows]]
        assert example.dual(Z).objective(other.codes) >= point.value - ROUNDING
    before = point.value
    rename(example.data, point, [task], "test")
    assert point.value == before
