"""The batch step: best labels within the size bounds, against HiGHS and against its own dual bound."""

import numpy as np
import pytest
import scipy.sparse as sp
from primal_helpers import blobs
from scipy.optimize import linprog

from mtclust.core.labels import SizeBounds
from mtclust.rows.moments import Data
from mtclust.rows.passes import TaskLabels, first_prices, relabel
from mtclust.rows.source import TableRows

KINDS = ["equal", "unequal", "interval", "loose"]


def optimum_by_linear_programming(scores, lower, upper):
    n, C = scores.shape
    columns = sp.kron(np.ones((1, n)), sp.eye_array(C))
    result = linprog(
        -scores.ravel(),
        A_ub=sp.vstack([columns, -columns]),
        b_ub=np.concatenate([upper, -np.asarray(lower)]),
        A_eq=sp.kron(sp.eye_array(n), np.ones((1, C))),
        b_eq=np.ones(n),
        bounds=(0, 1),
        method="highs",
    )
    return -result.fun


def bounds_of(kind, n, C, rng):
    """Lower and upper sizes that n rows can meet."""
    if kind == "equal":
        return np.full(C, n // C), np.full(C, -(-n // C))
    if kind == "unequal":
        sizes = rng.multinomial(n, rng.dirichlet(np.full(C, 2.0)))
        return sizes, sizes
    if kind == "loose":
        return np.zeros(C, dtype=np.int64), np.full(C, n)
    lower = rng.integers(0, n // C + 1, size=C)
    upper = lower + rng.integers(0, max(2, 2 * n // C), size=C)
    upper[rng.integers(C)] += max(0, n - upper.sum())
    return lower, upper


class Task:
    """One task with a model: the batch step, and the scores it works on."""

    def __init__(self, X, W):
        self.source = TableRows(X, np.array([0, len(X)]))
        self.moments = self.source.moments(centre=True)
        self.W = W
        self.scores = self.moments.centred(0, X) @ W

    def within(self, lower, upper):
        return Data(self.source, self.moments, SizeBounds(np.array([lower]), np.array([upper])))

    def fresh(self):
        return TaskLabels.none(len(self.scores), self.W.shape[1], self.W.shape[0])

    def relabel(self, current, lower, upper):
        """The step, with all that must hold whatever the bounds."""
        before = current.labels.copy()
        changed = relabel(self.source, self.within(lower, upper), 0, self.W, current)
        assert changed == np.count_nonzero(current.labels != before)
        assert np.all(current.counts >= lower)
        assert np.all(current.counts <= upper)
        X = np.asarray(self.source.table, dtype=np.float64)
        sums = np.stack([X[current.labels == c].sum(axis=0) for c in range(len(lower))])
        np.testing.assert_allclose(current.sums, sums, rtol=1e-9, atol=1e-9 * np.abs(X).sum())
        return current

    def total(self, current):
        return float(self.scores[np.arange(len(self.scores)), current.labels].sum())

    def bound(self, prices, lower, upper):
        """The value of the dual at these prices: no labelling within the bounds can score more."""
        best = (self.scores - prices).max(axis=1).sum()
        return float(best + np.maximum(prices, 0) @ upper - np.maximum(-prices, 0) @ lower)


def random_task(n, C, seed, d=4):
    X, _, _ = blobs((n,), n_clusters=max(C, 2), d=d, seed=seed)
    return Task(X, np.random.default_rng(seed).normal(size=(d, C)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [1, 2, 3, 20])
def test_total_score_equals_the_linear_program(kind, C):
    rng = np.random.default_rng(C)
    for seed in range(6):
        n = int(rng.integers(max(C, 5), 150))
        task, (lower, upper) = random_task(n, C, seed), bounds_of(kind, n, C, rng)
        best = optimum_by_linear_programming(task.scores, lower, upper)
        cold = task.relabel(task.fresh(), lower, upper)
        assert task.total(cold) == pytest.approx(best, abs=1e-8 * n)
        # prices of a similar model, and prices that are plain wrong
        other = Task(task.source.table, task.W + 0.1 * rng.normal(size=task.W.shape))
        warm = other.relabel(other.fresh(), lower, upper)
        assert task.total(task.relabel(warm, lower, upper)) == pytest.approx(best, abs=1e-8 * n)
        wrong = task.fresh()
        wrong.prices = 10 * rng.normal(size=C)
        assert task.total(task.relabel(wrong, lower, upper)) == pytest.approx(best, abs=1e-8 * n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("C", [2, 4])
def test_exact_ties_and_repeated_rows_do_no_harm(kind, C):
    rng = np.random.default_rng(0)
    for seed in range(4):
        distinct = rng.integers(-1, 2, size=(5, 3)).astype(float)
        X = distinct[rng.integers(5, size=120)]
        task = Task(X, rng.integers(-1, 2, size=(3, C)).astype(float))
        lower, upper = bounds_of(kind, 120, C, np.random.default_rng(seed))
        best = optimum_by_linear_programming(task.scores, lower, upper)
        assert task.total(task.relabel(task.fresh(), lower, upper)) == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "C"), [(2500, 3), (9000, 2), (9000, 20), (30_000, 5)])
def test_prices_certify_the_labels_of_many_rows(n, C, kind):
    """Equality of the total score and of the dual bound proves that no other labels score more."""
    rng = np.random.default_rng(n + C)
    task, (lower, upper) = random_task(n, C, seed=1), bounds_of(kind, n, C, rng)
    cold = task.fresh()
    cold.prices = first_prices(task.source, task.within(lower, upper), 0, task.W, cold.prices)
    near = Task(task.source.table, task.W + 0.02 * rng.normal(size=task.W.shape))
    for step, current in ((task, cold), (near, cold), (task, cold)):
        step.relabel(current, lower, upper)
        total = step.total(current)
        assert step.bound(current.prices, lower, upper) == pytest.approx(total, abs=1e-9 * np.abs(step.scores).sum())
        slack = (step.scores - current.prices).max(axis=1) - (step.scores - current.prices)[
            np.arange(n), current.labels
        ]
        assert slack.max() <= 1e-9 * np.abs(step.scores).max()
        tiny = 1e-9 * np.abs(step.scores).max()
        assert np.all(current.counts[current.prices > tiny] == upper[current.prices > tiny])
        assert np.all(current.counts[current.prices < -tiny] == lower[current.prices < -tiny])


@pytest.mark.parametrize("kind", ["equal", "interval"])
def test_many_repeated_rows_are_certified_too(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))[rng.integers(12, size=6000)]
    task = Task(X, rng.normal(size=(3, 4)))
    lower, upper = bounds_of(kind, 6000, 4, rng)
    current = task.relabel(task.fresh(), lower, upper)
    scale = np.abs(task.scores).sum()
    assert task.bound(current.prices, lower, upper) == pytest.approx(task.total(current), abs=1e-9 * scale)


def test_skewed_preferences_are_certified():
    """Prices that give nearly all rows to one cluster, and sizes that do not: almost every row is undecided."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    task = Task(X, np.array([[0.01, 0.02, 0.0], [0.0, 0.01, 0.03], [0.0, 0.0, 0.01]]))
    lower = upper = np.array([4000, 900, 100])
    current = task.fresh()
    current.prices = np.array([-5.0, 0.0, 0.0])
    task.relabel(current, lower, upper)
    scale = np.abs(task.scores).sum()
    assert task.bound(current.prices, lower, upper) == pytest.approx(task.total(current), abs=1e-9 * scale)


def test_single_precision_is_optimal_up_to_its_rounding():
    task = random_task(5000, 4, seed=3)
    single = Task(task.source.table.astype(np.float32), task.W)
    lower = upper = np.full(4, 1250)
    current = single.relabel(single.fresh(), lower, upper)
    gap = single.bound(current.prices, lower, upper) - single.total(current)
    assert 0 <= gap + 1e-6 * np.abs(single.scores).sum() <= 2e-6 * np.abs(single.scores).sum()


def test_a_second_step_with_the_same_model_changes_nothing():
    task = random_task(3000, 5, seed=2)
    lower = upper = np.full(5, 600)
    current = task.relabel(task.fresh(), lower, upper)
    before = current.labels.copy()
    assert relabel(task.source, task.within(lower, upper), 0, task.W, current) == 0
    np.testing.assert_array_equal(current.labels, before)
