"""Descent and polish: exact changes of J, certificates checked by brute force."""

import numpy as np
import pytest
from primal_helpers import Case, case, centred_directly, dense_form, gains_of_exchanges, random_coupling

from mtclust.labels import parse_sizes
from mtclust.primal.rows import TableRows, moments
from mtclust.primal.search import Data, descend, polish, state_of
from mtclust.primal.solve import PrimalOptions, PrimalProblem, solve

METHODS = ["relationship", "features", "independent"]
#: J relative to its size at the level of rounding
ROUNDING = 1e-9


def begun(example, seed=0):
    """The state of the example's labels under a random coupling."""
    system = example.problem.system()
    size = example.Phi.shape[1] if example.problem.method == "features" else example.data.n_tasks
    Z = random_coupling(size, np.random.default_rng(seed))
    return system, state_of(example.data, system, Z, example.task_labels())


def take(example, state):
    example.labels = state.labels.astype(np.int64)


def best_exchange(example, state):
    """The change of J by the best single exchange, by brute force on the dense dual form."""
    take(example, state)
    M = dense_form(example.dual(state.solver.Z), example.offsets)
    bounds = example.data.bounds
    return min(gains_of_exchanges(M, example.codes, example.labels, example.offsets, bounds.lower, bounds.upper))


def polished(example, state, rounds=60):
    """Polish until it says that nothing is left."""
    tasks, rng = list(range(example.data.n_tasks)), np.random.default_rng(0)
    for _ in range(rounds):
        before = state.value
        certified = polish(example.data, state, tasks, rng)
        assert state.value <= before + ROUNDING
        take(example, state)
        dual = example.dual(state.solver.Z)
        assert state.value == pytest.approx(dual.objective(example.codes), rel=1e-8)
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
    _, state = begun(example, seed)
    start = state.value
    assert polished(example, state)
    assert state.value < start
    assert best_exchange(example, state) >= -ROUNDING


@pytest.mark.parametrize("method", ["relationship", "independent"])
@pytest.mark.parametrize("rule", ["balanced", 1.0, (0.1, 0.6)])
@pytest.mark.parametrize("seed", [0, 1])
def test_certificates_hold_where_only_some_rows_are_looked_at(method, rule, seed):
    example = case(method, sizes=(400, 330), rule=rule, seed=seed, spread=1.5)
    system, state = begun(example, seed)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        descend(example.data, system, state, rng, max_rounds=40, tol=0.0, stage="test", learn=False, polish_rounds=20)
        if state.certified:
            break
    assert state.certified
    assert best_exchange(example, state) >= -ROUNDING
    values = [entry["objective"] for entry in state.history]
    assert np.diff(values).max() <= ROUNDING


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["balanced", 1.0])
def test_what_the_whole_search_certifies_holds(method, rule):
    """The recipe stops after one polish; where it claims a certificate there must be no better exchange."""
    claimed = 0
    for seed in range(4):
        example = case(method, sizes=(40, 170, 200), rule=rule, seed=seed, spread=1.2)
        state = solve(example.problem, PrimalOptions(n_init=2), np.random.default_rng(seed)).state
        claimed += state.certified
        best = best_exchange(example, state)
        if state.certified:
            assert best >= -ROUNDING
        assert state.value == pytest.approx(example.dual(state.solver.Z).objective(example.codes), rel=1e-8)
        values = [entry["objective"] for entry in state.history]
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
    problem = PrimalProblem(data, "independent", np.array([0.01]), 0.01)
    right = Case(problem, centred_directly(X, offsets)[0], offsets, labels.copy())
    wrong = Case(problem, right.Phi, offsets, np.append(labels[:-1], 0))
    best, state = begun(right)[1], begun(wrong)[1]
    assert state.value > best.value
    assert not polish(data, state, [0], np.random.default_rng(0))
    np.testing.assert_array_equal(state.labels, labels)
    assert state.value == pytest.approx(best.value, rel=1e-9)
    assert polish(data, state, [0], np.random.default_rng(0))


def test_only_active_tasks_change_their_labels():
    example = case(sizes=(40, 40, 40))
    system, state = begun(example)
    before = [task.labels.copy() for task in state.tasks]
    descend(
        example.data, system, state, np.random.default_rng(0), max_rounds=5, tol=1e-6, stage="test", active=[1],
        polish_rounds=3,
    )  # fmt: skip
    np.testing.assert_array_equal(state.tasks[0].labels, before[0])
    np.testing.assert_array_equal(state.tasks[2].labels, before[2])
    assert np.any(state.tasks[1].labels != before[1])
