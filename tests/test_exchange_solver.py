"""The whole solver: optimal on tiny problems, never rising, the same whatever the number of jobs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mtclust import DMTRC
from mtclust.core.criterion import random_labels
from mtclust.core.kernels import centre_kernel, eigen_features
from mtclust.core.labels import label_codes, parse_sizes
from mtclust.core.matching import groups_of_tasks, match_labels
from mtclust.metrics import macro_nmi
from mtclust.search.descent import Accelerator, coupling_steps
from mtclust.search.problem import Problem, SearchOptions
from mtclust.search.recipe import solve
from tests.conftest import gaussian_tasks


def tiny_problem(seed, rows=5, n_tasks=2, n_clusters=2, sizes=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_tasks * rows, 3))
    offsets = np.arange(n_tasks + 1) * rows
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    bounds = parse_sizes(sizes, [rows] * n_tasks, n_clusters)
    return Problem(kernel, offsets, bounds, np.full(n_tasks, 0.05), 0.05)


def all_labellings(problem):
    n, C = len(problem.kernel), problem.n_clusters
    for labels in itertools.product(range(C), repeat=n - 1):
        labels = np.array((0, *labels))
        parts = [labels[problem.coupling.slices[i]] for i in range(problem.n_tasks)]
        if all(problem.bounds.respects(i, np.bincount(part, minlength=C)) for i, part in enumerate(parts)):
            yield labels


def best_value(problem, labels):
    """min over Z for fixed labels."""
    point = problem.point(labels, problem.coupling.uncoupled())
    accelerator = Accelerator()
    for _ in range(60):
        before = point.value
        coupling_steps(problem, point, accelerator, 1, 0.0, "Z")
        if before - point.value < 1e-9 * before:
            break
    return point.value


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [1.0, 0.0])
def test_relationship_finds_the_global_optimum_of_tiny_problems(seed, sizes):
    problem = tiny_problem(seed, rows=4, sizes=sizes)
    optimum = min(best_value(problem, labels) for labels in all_labellings(problem))
    result = solve(problem, SearchOptions(tol=1e-8), np.random.default_rng(0))
    assert result.point.value == pytest.approx(optimum, rel=1e-5)


@pytest.mark.parametrize("seed", range(2))
def test_shared_features_find_the_global_optimum_of_tiny_problems(seed):
    problem = tiny_problem(seed, rows=4)
    problem = replace(problem, method="features", features=eigen_features(problem.kernel))
    optimum = min(
        best_value(problem, labels)
        for labels in all_labellings(problem)
        if labels[4] == 0  # the names of the clusters of a task do not matter
    )
    result = solve(problem, SearchOptions(tol=1e-8), np.random.default_rng(0))
    assert best_value(problem, result.point.labels) == pytest.approx(optimum, rel=1e-4)
    assert result.point.value <= optimum * (1 + 1e-4)


@pytest.mark.parametrize("n_clusters", [2, 3])
def test_single_tasks_find_the_global_optimum_of_tiny_problems(n_clusters):
    problem = tiny_problem(5, rows=8, n_tasks=1, n_clusters=n_clusters)
    result = solve(problem.alone, SearchOptions(), np.random.default_rng(0))
    optimum = min(result.point.fit.at.objective(label_codes(labels, n_clusters)) for labels in all_labellings(problem))
    assert result.point.value == pytest.approx(optimum, rel=1e-9)


@pytest.mark.parametrize("n_others", [3, 1])
def test_two_groups_of_tasks_are_found_and_solved(n_others):
    related, y1, t1 = gaussian_tasks(seed=0)
    others, y2, t2 = gaussian_tasks(n_tasks=n_others, seed=9)
    X, y, tasks = np.vstack([related, others]), np.append(y1, y2), np.append(t1, t2 + 3)
    model = DMTRC(3, kernel="linear", lambda1=2.0**-8, sizes="balanced", coupling="full", random_state=0)
    model.fit(X, tasks=tasks)
    assert macro_nmi(y, model.labels_, tasks) == pytest.approx(1)
    assert np.trace(model.task_covariance_) == pytest.approx(1)
    Omega, groups = np.abs(model.task_covariance_), (range(3), range(3, 3 + n_others))
    within = [Omega[i, k] for group in groups for i in group for k in group if i < k]
    across = [Omega[i, k] for i in groups[0] for k in groups[1]]
    assert min(within) > 2 * max(across)


def test_alignment_undoes_any_renaming_and_respects_a_size_table():
    X, y, _ = gaussian_tasks(rows=30)
    offsets = np.array([0, 30, 60, 90])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    renamed = y.copy()
    renamed[30:60] = np.array([2, 0, 1])[y[30:60]]
    renamed[60:] = np.array([1, 0, 2])[y[60:]]
    aligned, similarity = match_labels(kernel, offsets, renamed, parse_sizes("balanced", [30] * 3, 3))
    assert len({tuple(pair) for pair in zip(y, aligned)}) == 3
    assert similarity[0, 1] > 0.9
    skewed = np.concatenate([np.repeat([0, 1, 2], [20, 6, 4])] * 3)
    bounds = parse_sizes([[20, 6, 4]] * 3, [30] * 3, 3)
    kept, _ = match_labels(kernel, offsets, skewed, bounds)
    np.testing.assert_array_equal(kept, skewed)


def test_groups_are_connected_components():
    similarity = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    assert [group.tolist() for group in groups_of_tasks(similarity)] == [[0, 1], [2]]


@pytest.mark.parametrize("bounds", [([1, 2, 0], [5, 5, 9]), ([4, 4, 2], [4, 4, 2]), ([0, 0, 0], [10, 0, 10])])
def test_random_starts_obey_the_bounds(bounds):
    lower, upper = map(np.array, bounds)
    for seed in range(20):
        labels = random_labels(10, lower, upper, np.random.default_rng(seed))
        sizes = np.bincount(labels, minlength=3)
        assert sizes.sum() == 10
        assert np.all(sizes >= lower)
        assert np.all(sizes <= upper)
