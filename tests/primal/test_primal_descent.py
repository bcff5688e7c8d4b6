"""Descent in passes over all rows: J and names as the dense dual form has them."""

import itertools

import numpy as np
import pytest
from primal_helpers import Case, blobs, case, random_coupling

from mtclust.search.all_rows import rename_by_sums
from mtclust.search.descent import Accelerator, coupling_steps
from mtclust.search.problem import Effort

METHODS = ["relationship", "features", "independent"]
#: J relative to its size at the level of rounding
ROUNDING = 1e-9


def begun(example, seed=0):
    """The point of the example's labels under a random coupling."""
    size = example.Phi.shape[1] if example.problem.method == "features" else example.problem.n_tasks
    Z = random_coupling(size, np.random.default_rng(seed))
    return example.problem.point(example.labels, Z)


def take(example, point):
    example.labels = point.labels.astype(np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", ["balanced", 1.0])
def test_a_descent_knows_its_j_and_never_raises_it(method, rule):
    for seed in range(4):
        example = case(method, sizes=(40, 170, 200), rule=rule, seed=seed, spread=1.2)
        point = example.problem.descend(begun(example, seed), np.random.default_rng(seed), Effort("all rows"))
        take(example, point)
        assert point.value == pytest.approx(example.dual(point.Z).objective(example.codes), rel=1e-8)
        values = [entry["objective"] for entry in point.history]
        assert np.diff(values).max(initial=0.0) <= ROUNDING


def test_only_active_tasks_change_their_labels():
    example = case(sizes=(40, 40, 40))
    point = begun(example)
    before = [task.labels.copy() for task in point.fit.tasks]
    example.problem.descend(point, np.random.default_rng(0), Effort("test", max_iter=5, tol=1e-6, tasks=[1]))
    np.testing.assert_array_equal(point.fit.tasks[0].labels, before[0])
    np.testing.assert_array_equal(point.fit.tasks[2].labels, before[2])
    assert np.any(point.fit.tasks[1].labels != before[1])


@pytest.mark.parametrize("method", ["relationship", "features"])
def test_the_history_tells_every_kind_of_step(method):
    example = case(method)
    point = begun(example)
    example.problem.descend(point, np.random.default_rng(0), Effort("here"))
    assert {entry["stage"] for entry in point.history} == {"here"}
    steps = [entry["step"] for entry in point.history]
    assert (steps[0], steps[1], steps[2]) == ("start", "labels", "coupling")
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
        coupling_steps(example.problem, point, Accelerator(), 8, 1e-12, "Z")
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
    rename_by_sums(example.data, point, [task], "test")
    assert [entry["step"] for entry in point.history] == ["rename"]
    take(example, point)
    assert point.value == pytest.approx(example.dual(Z).objective(example.codes), rel=1e-8)
    for order in itertools.permutations(range(3)):
        other = Case(example.problem, example.Phi, example.offsets, example.labels.copy())
        other.labels[rows] = np.array(order)[example.labels[rows]]
        assert example.dual(Z).objective(other.codes) >= point.value - ROUNDING
    before = point.value
    rename_by_sums(example.data, point, [task], "test")
    assert point.value == before
