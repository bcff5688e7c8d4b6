"""MBC: every step descends and solves its subproblem."""

import numpy as np
import pytest
from reference_helpers import assert_never_rises
from scipy.optimize import linprog, minimize
from sklearn.cluster import KMeans

from mtclust.core.tasks import split_by_task
from paper.reference import REFERENCE_METHODS
from paper.reference.mbc import CoupledCentroids, assign_rows, match_centroids, move_centroids


def objective(problem, centroids, labels, matching):
    """J with the plans given as matchings, straight from the formula."""
    n_tasks = len(problem.tables)
    value = sum(
        ((table - own[h]) ** 2).sum(axis=1).mean() / n_tasks for table, own, h in zip(problem.tables, centroids, labels)
    )
    for t in range(n_tasks):
        for s in range(n_tasks):
            if s != t:
                distance = ((centroids[t] - centroids[s][matching[t, s]]) ** 2).sum(axis=1)
                value += problem.strength / (n_tasks * (n_tasks - 1)) * distance.mean()
    return value


def random_problem(seed, n_clusters=4, strength=1.0):
    rng = np.random.default_rng(seed)
    tables = [rng.normal(size=(size, 3)) for size in (25, 40, 15)]
    return CoupledCentroids(tables, n_clusters, strength), rng.normal(size=(3, n_clusters, 3))


@pytest.mark.parametrize("strength", [0.0, 0.1, 1.0, 100.0])
def test_every_single_step_descends(strength, rows_and_tasks):
    X, tasks = rows_and_tasks
    problem = CoupledCentroids(list(split_by_task(X, tasks).values()), 5, strength)
    rng = np.random.default_rng(0)
    centroids = np.stack([table[rng.choice(len(table), 5, replace=False)] for table in problem.tables])
    labels = [rng.integers(5, size=len(table)) for table in problem.tables]
    matching, _ = match_centroids(problem, centroids)
    values = [objective(problem, centroids, labels, matching)]
    for _ in range(10):
        labels, loss = assign_rows(problem, centroids)
        values.append(objective(problem, centroids, labels, matching))
        matching, penalty = match_centroids(problem, centroids)
        values.append(objective(problem, centroids, labels, matching))
        assert values[-1] == pytest.approx(loss + penalty, rel=1e-9)
        centroids = move_centroids(problem, centroids, labels, matching)
        values.append(objective(problem, centroids, labels, matching))
    assert_never_rises(values)


def test_matching_is_an_optimal_transport_plan():
    problem, centroids = random_problem(0)
    matching, penalty = match_centroids(problem, centroids)
    C, total = problem.n_clusters, 0.0
    marginals = np.concatenate([np.kron(np.eye(C), np.ones((1, C))), np.kron(np.ones((1, C)), np.eye(C))])
    for t in range(3):
        for s in range(3):
            if s != t:
                cost = ((centroids[t][:, None] - centroids[s][None]) ** 2).sum(axis=2)
                plan = linprog(cost.ravel(), A_eq=marginals, b_eq=np.full(2 * C, 1 / C))
                total += problem.strength / 6 * plan.fun
                assert sorted(matching[t, s].tolist()) == list(range(C))
                assert cost[np.arange(C), matching[t, s]].mean() == pytest.approx(plan.fun, rel=1e-7)
    assert penalty == pytest.approx(total, rel=1e-7)


def test_centroids_minimise_the_objective():
    problem, centroids = random_problem(1)
    labels, _ = assign_rows(problem, centroids)
    labels[0] = np.where(labels[0] == 3, 0, labels[0])  # a cluster without rows: only its partners pull
    matching, _ = match_centroids(problem, centroids)
    moved = move_centroids(problem, centroids, labels, matching)

    def value(flat):
        return objective(problem, flat.reshape(centroids.shape), labels, matching)

    found = minimize(value, centroids.ravel(), method="BFGS", options={"gtol": 1e-8})
    assert value(moved.ravel()) == pytest.approx(found.fun, rel=1e-8)
    np.testing.assert_allclose(moved, found.x.reshape(centroids.shape), atol=1e-4)


def test_centroids_satisfy_the_published_equations():
    problem, centroids = random_problem(2, strength=0.7)
    labels, _ = assign_rows(problem, centroids)
    matching, _ = match_centroids(problem, centroids)
    moved = move_centroids(problem, centroids, labels, matching)
    T, C, lam = 3, problem.n_clusters, problem.strength
    for t in range(T):
        n_t = len(problem.tables[t])
        for k in range(C):
            rows = problem.tables[t][labels[t] == k]
            partners = [moved[s][matching[t, s, k]] / C for s in range(T) if s != t]
            factor = 2 * lam / (T * (T - 1))
            top = rows.sum(axis=0) / (T * n_t) + factor * np.sum(partners, axis=0)
            bottom = len(rows) / (T * n_t) + factor * (T - 1) / C
            np.testing.assert_allclose(moved[t, k], top / bottom, atol=1e-8)


def test_a_cluster_without_rows_and_partners_stays_where_it_is():
    problem, centroids = random_problem(3, strength=0.0)
    centroids[0, 2] = 1e3
    labels, _ = assign_rows(problem, centroids)
    matching, _ = match_centroids(problem, centroids)
    np.testing.assert_allclose(move_centroids(problem, centroids, labels, matching)[0, 2], 1e3)


def test_without_strength_it_is_kmeans_in_every_task(noise):
    X, tasks = noise
    coupled = REFERENCE_METHODS["MBC"].fit(X, tasks, 3, strength=0, n_init=100)
    parts = [X[tasks == task] for task in np.unique(tasks)]
    expected = np.mean([KMeans(3, n_init=50, random_state=0).fit(part).inertia_ / len(part) for part in parts])
    assert coupled.objective == pytest.approx(expected, rel=0.02)
    assert coupled.objective >= expected - 1e-9


def test_great_strength_draws_the_centroids_together(noise):
    X, tasks = noise
    problem = CoupledCentroids(list(split_by_task(X, tasks).values()), 3, 1e6)
    start = np.stack([table[:3] for table in problem.tables])
    labels, _ = assign_rows(problem, start)
    matching, _ = match_centroids(problem, start)
    centroids = move_centroids(problem, start, labels, matching)
    _, penalty = match_centroids(problem, centroids)
    assert penalty / problem.strength < 1e-9


def test_cluster_ids_are_comparable_across_tasks(separated):
    X, classes, tasks = separated
    labels = REFERENCE_METHODS["MBC"].fit(X, tasks, 4).labels
    assert len(set(zip(classes.tolist(), labels.tolist()))) == 4
