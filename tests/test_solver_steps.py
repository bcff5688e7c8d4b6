"""The steps of the exchange solver one by one, against brute force and direct computation."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg as sla

from mtclust.core.assignment import assign
from mtclust.core.kernels import centre_kernel
from mtclust.core.labels import label_codes, parse_sizes
from mtclust.core.matching import groups_of_tasks
from mtclust.search import recipe
from mtclust.search.descent import Accelerator, exchange_until_stable, log_matrix, proposals, rename, transfer
from mtclust.search.problem import Effort, Problem, SearchOptions
from tests.conftest import gaussian_tasks

C = 3
SEED = np.array([1], dtype=np.uint64)


def small_problem(sizes=1.0, rows=(7, 6, 5), spread=1.0, seed=0):
    X, _, _ = gaussian_tasks(rows=6, d=3, spread=spread, seed=seed)
    offsets = np.concatenate([[0], np.cumsum(rows)])
    kernel = centre_kernel(X[: offsets[-1]] @ X[: offsets[-1]].T, offsets, True).matrix
    return Problem(kernel, offsets, parse_sizes(sizes, rows, C), np.array([0.05, 0.1, 0.2]), 0.05)


def noise():
    """Rows without clusters, which have many local optima."""
    X = np.random.default_rng(0).normal(size=(30, 8))
    offsets = np.array([0, 16, 30])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    return Problem(kernel, offsets, parse_sizes(0.3, [16, 14], C), np.full(2, 0.001), 0.001)


def noise_labels(seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.permutation(np.arange(n) % C) for n in (16, 14)])


def random_point(problem, seed=0):
    labels = np.random.default_rng(seed).integers(C, size=18)
    A = np.random.default_rng(seed).normal(size=(3, 3))
    return problem.point(labels, A @ A.T / np.trace(A @ A.T))


def all_tasks(problem):
    return range(problem.n_tasks)


def J(point, labels):
    return point.fit.at.objective(label_codes(labels, C))


def descended(problem, point, seed=0, **effort):
    return problem.descend(point, np.random.default_rng(seed), Effort("test", **effort))


def renamings(labels, rows):
    for names in itertools.permutations(range(C)):
        other = labels.copy()
        other[rows] = np.array(names)[labels[rows]]
        yield other


# -- descent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_permuting_a_task_finds_the_best_of_all_namings_of_its_clusters(seed):
    problem = small_problem()
    point = random_point(problem, seed)
    before = point.labels.copy()
    rename(problem, point, [1])
    best = min(J(point, labels) for labels in renamings(before, slice(7, 13)))
    assert J(point, point.labels) == pytest.approx(best, rel=1e-12)
    np.testing.assert_array_equal(np.delete(point.labels, np.s_[7:13]), np.delete(before, np.s_[7:13]))


def test_permuting_keeps_the_sizes_that_every_name_must_have():
    problem = small_problem([[4, 2, 1], [3, 2, 1], [1, 1, 3]])
    labels = np.repeat([0, 1, 2, 0, 1, 2, 0, 1, 2], [4, 2, 1, 3, 2, 1, 1, 1, 3])
    for seed in range(5):
        rng = np.random.default_rng(seed)
        mixed = np.concatenate([rng.permutation(labels[problem.coupling.slices[i]]) for i in range(3)])
        point = problem.point(mixed, np.full((3, 3), 0.3) + 0.0333 * np.eye(3))
        rename(problem, point, all_tasks(problem))
        for task in range(3):
            assert problem.bounds.respects(task, np.bincount(point.labels[problem.coupling.slices[task]], minlength=C))


@pytest.mark.parametrize("active", [None, [1]])
def test_stable_rows_have_no_exchange_left_and_tasks_that_are_not_active_stay(active):
    problem = small_problem()
    point = random_point(problem)
    before = point.labels.copy()
    exchange_until_stable(problem, point, active or all_tasks(problem), SEED.copy())
    found = J(point, point.labels)
    assert found < J(point, before)
    for task in active or all_tasks(problem):
        rows = range(problem.coupling.slices[task].start, problem.coupling.slices[task].stop)
        for j, k in itertools.combinations(rows, 2):
            swapped = point.labels.copy()
            swapped[[j, k]] = point.labels[[k, j]]
            assert J(point, swapped) >= found - 1e-9
        for j, c in itertools.product(rows, range(C)):
            moved = point.labels.copy()
            moved[j] = c
            assert J(point, moved) >= found - 1e-9
    if active:
        np.testing.assert_array_equal(np.delete(point.labels, np.s_[7:13]), np.delete(before, np.s_[7:13]))


@pytest.mark.parametrize("seed", range(8))
def test_exchanging_again_changes_nothing(seed):
    problem = noise()
    point = problem.point(noise_labels(seed), np.array([[0.5, 0.45], [0.45, 0.5]]))
    exchange_until_stable(problem, point, [0, 1], SEED.copy())
    found = point.labels.copy()
    exchange_until_stable(problem, point, [0, 1], SEED.copy())
    np.testing.assert_array_equal(point.labels, found)


def test_transfer_takes_a_labelling_of_the_pool_under_its_best_names():
    problem = small_problem()
    good = np.array([2, 0, 1, 2, 0, 1])  # every third row is of one cluster
    problem = replace(problem, proposed=[[], [good], []])
    truth = np.arange(18) % C
    truth[7:13] = 0
    point = problem.point(truth, np.full((3, 3), 0.3) + 0.0333 * np.eye(3))
    transfer(problem, point, np.array([1]), SEED.copy())
    offered = truth.copy()
    offered[7:13] = good
    assert J(point, point.labels) <= min(J(point, labels) for labels in renamings(offered, slice(7, 13))) + 1e-12
    np.testing.assert_array_equal(point.labels[:7], truth[:7])


@pytest.mark.parametrize("seed", range(8))
def test_transfer_never_raises_the_objective(seed):
    problem = noise()
    point = problem.point(noise_labels(seed), np.array([[0.5, 0.4], [0.4, 0.5]]))
    exchange_until_stable(problem, point, [0, 1], SEED.copy())
    before = J(point, point.labels)
    transfer(problem, point, np.array([1, 0]), SEED.copy())
    assert J(point, point.labels) <= before


def test_proposals_are_what_the_models_of_the_other_tasks_say():
    problem = small_problem("balanced")
    labels = np.concatenate([np.arange(n) % C for n in (7, 6, 5)])
    point = problem.point(labels, np.full((3, 3), 0.2) + 0.4 / 3 * np.eye(3))
    codes, mine = problem.codes(labels), np.arange(7, 13)
    others = np.delete(np.arange(18), mine)
    lower, upper = problem.bounds.lower[1], problem.bounds.upper[1]
    [(_, K)] = problem.coupling.kernels(point.Z)
    K += 0.5 * np.diag(np.repeat([7, 6, 5], [7, 6, 5]))
    left_out = K[np.ix_(mine, others)] @ np.linalg.solve(K[np.ix_(others, others)], codes[others])
    alpha = np.linalg.solve(K, codes)
    expected = [assign(-left_out, lower, upper)]
    expected += [assign(-problem.kernel[mine][:, rows] @ alpha[rows], lower, upper) for rows in np.s_[0:7, 13:18]]
    term = problem.criterion.term(point.fit.at, 1, codes)
    assert len({labels.tobytes() for labels in (*expected, labels[mine])}) == 4  # each is proposed only once
    np.testing.assert_array_equal(proposals(problem, point, 1, term, alpha), expected)
    wider = replace(problem, proposed=[[], [np.array([2, 2, 1, 1, 0, 0])], []])
    offered = np.concatenate([labels[:7], [2, 2, 1, 1, 0, 0], labels[13:]])
    named = min(renamings(offered, mine), key=lambda candidate: J(point, candidate))[mine]
    found = proposals(wider, point, 1, term, alpha)
    np.testing.assert_array_equal(found, [*expected, named])


def test_descent_stops_when_a_round_gains_less_than_tol_or_the_rounds_are_used_up():
    problem = small_problem()
    short = descended(problem, random_point(problem), max_iter=1, tol=0.0)
    assert (short.n_iter, short.converged) == (1, False)
    satisfied = descended(problem, random_point(problem), max_iter=1, tol=1.0)
    assert (satisfied.n_iter, satisfied.converged) == (1, True)
    assert [entry["step"] for entry in satisfied.history] == ["start", "labels", "coupling"]
    long = descended(problem, random_point(problem), max_iter=100, tol=1e-6)
    assert long.converged
    assert 1 < long.n_iter < 100
    assert long.value < short.value
    rounds = np.array([entry["objective"] for entry in long.history if entry["step"] == "labels"])
    assert len(rounds) == long.n_iter
    assert np.all(np.diff(rounds)[:-1] < 0)


def test_descent_is_patient_by_default():
    problem = small_problem()
    point = descended(problem, random_point(problem))
    assert point.converged
    assert point.n_iter > 1


@pytest.mark.parametrize("seed", range(4))
def test_rows_are_stable_after_every_round(seed):
    problem = small_problem(spread=2.0)
    point = descended(problem, random_point(problem, seed), seed, max_iter=1, learn=False)
    found = point.labels.copy()
    exchange_until_stable(problem, point, all_tasks(problem), SEED.copy())
    np.testing.assert_array_equal(point.labels, found)


def test_descent_leaves_a_poor_optimum_for_a_labelling_of_the_pool_and_not_the_other_way_round():
    problem = noise().alone
    ends = []
    for seed in range(12):
        point = problem.point(noise_labels(seed), problem.coupling.uncoupled())
        exchange_until_stable(problem, point, [0, 1], SEED.copy())
        ends.append((J(point, point.labels), point.labels))
    (best, good), (worst, poor) = min(ends, key=lambda end: end[0]), max(ends, key=lambda end: end[0])
    assert best < worst * (1 - 1e-6)
    for begin, offered in ((poor, good), (good, poor)):
        wider = replace(problem, proposed=[[offered[problem.coupling.slices[i]]] for i in range(2)])
        found = descended(wider, wider.point(begin, problem.coupling.uncoupled()))
        assert found.value <= best * (1 + 1e-12)


def test_coupling_stays_unless_it_may_be_learned():
    problem = small_problem()
    point = random_point(problem)
    Z = point.Z.copy()
    descended(problem, point, learn=False)
    np.testing.assert_array_equal(point.Z, Z)
    assert {entry["step"] for entry in point.history} == {"start", "labels"}


def test_coupling_takes_its_many_steps_only_in_rounds_that_change_no_label():
    problem = small_problem()
    point = descended(problem, random_point(problem), tasks=[], max_iter=1, last=True)
    assert [entry["step"] for entry in point.history] == ["start", "labels", *["coupling"] * 5]
    point = descended(problem, random_point(problem), max_iter=1, last=True)
    assert [entry["step"] for entry in point.history] == ["start", "labels", "coupling"]


def test_a_step_of_the_coupling_that_does_not_lower_the_objective_is_not_taken():
    problem = small_problem()
    point = random_point(problem)
    assert not problem.take(point, point.Z.copy())
    best = problem.closed_form(point)
    before = point.value
    assert problem.take(point, best)
    assert point.value == J(point, point.labels) < before
    np.testing.assert_array_equal(point.Z, best)


def test_clusters_of_coupled_tasks_stay_where_the_start_has_them():
    problem = replace(small_problem(), bounds=parse_sizes("balanced", [7, 6, 5], [3, 2, 1]))
    labels = np.concatenate([np.arange(7) % 3, np.array([0, 2] * 3), np.full(5, 1)])
    coupled = problem.point(labels, np.eye(3) / 3).fit.bounds
    assert coupled.present.tolist() == [[True] * 3, [True, False, True], [False, True, False]]
    assert not coupled.movable
    alone = problem.alone
    assert alone.point(labels, alone.coupling.uncoupled()).fit.bounds.movable


# -- acceleration -----------------------------------------------------------------------------------------------------


def test_logarithm_of_a_singular_matrix_is_floored():
    Z = np.diag([0.7, 0.3, 0.0])
    np.testing.assert_allclose(log_matrix(Z)[0], np.diag(np.log([0.7, 0.3, np.finfo(float).eps])))
    A = np.random.default_rng(0).normal(size=(3, 3))
    np.testing.assert_allclose(sla.expm(log_matrix(A @ A.T)[0]), A @ A.T, atol=1e-10)


def test_the_first_proposal_goes_twice_as_far_as_the_closed_form():
    proposal = Accelerator().propose(np.diag([0.7, 0.3]), np.diag([0.6, 0.4]))
    twice = np.array([0.6**2 / 0.7, 0.4**2 / 0.3])
    np.testing.assert_allclose(np.diag(proposal), twice / twice.sum(), atol=1e-7)
    assert np.trace(proposal) == pytest.approx(1, abs=1e-12)


def test_proposals_find_the_fixed_point_of_an_affine_map_of_logarithms():
    fixed, rates = np.log([0.6, 0.3, 0.1]), np.array([0.9, 0.6, 0.2])
    accelerator, Z = Accelerator(), np.eye(3) / 3
    for _ in range(5):
        target = np.diag(np.exp(fixed + rates * (np.log(np.diag(Z)) - fixed)))
        Z = accelerator.propose(Z, target)
    np.testing.assert_allclose(np.diag(Z), [0.6, 0.3, 0.1], atol=1e-6)


def test_directions_that_died_are_revived():
    proposal = Accelerator().propose(np.eye(3) / 3, np.diag([1.0, 0.0, 0.0]))
    assert np.linalg.eigvalsh(proposal).min() == pytest.approx(1e-8 / 3, rel=1e-3)


def test_an_extrapolation_keeps_weak_directions_as_alive_as_the_closed_form_does():
    weak, falling = np.diag([0.5, 0.5 - 2e-6, 2e-6]), np.diag([0.6, 0.4 - 1e-6, 1e-6])
    proposal = Accelerator().propose(weak, falling)
    assert np.linalg.eigvalsh(proposal).min() == pytest.approx(1e-6, rel=1e-3)  # twice as far would be 5e-7
    strong = Accelerator().propose(np.diag([0.5, 0.5]), np.diag([0.8, 0.2]))
    assert np.linalg.eigvalsh(strong).min() < 0.1


def test_after_a_failure_the_past_does_not_count():
    rng = np.random.default_rng(0)
    steps = [np.diag(rng.dirichlet(np.ones(3))) for _ in range(8)]

    accelerator, one = Accelerator(), Accelerator()
    for Z, target in zip(steps[:4], steps[1:]):
        accelerator.propose(Z, target)
    accelerator.restart()
    one.propose(steps[3], steps[4])
    np.testing.assert_array_equal(accelerator.propose(steps[6], steps[7]), one.propose(steps[6], steps[7]))


# -- the recipe -------------------------------------------------------------------------------------------------------


def test_the_first_relationship_is_the_similarity_made_positive_definite():
    np.testing.assert_allclose(recipe.first_relationship(np.array([[1.0, -0.4], [-0.4, 1.0]])), np.eye(2) / 2)
    Omega = recipe.first_relationship(np.ones((2, 2)))
    np.testing.assert_allclose(np.linalg.eigvalsh(Omega), np.array([0.02, 2.0]) / 2.02)
    similarity = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, 0.2], [0.1, 0.2, 1.0]])
    np.testing.assert_allclose(recipe.first_relationship(similarity), similarity / 3, atol=1e-12)


def point_with(value, *values):
    point = random_point(small_problem())
    point.value = value
    point.history = [{"stage": "s", "step": "labels", "objective": value} for value in values]
    return point


def test_of_two_points_the_lower_wins_and_its_history_never_rises():
    first, second = point_with(3.0, 5.0, 3.0), point_with(2.0, 6.0, 3.0, 2.5, 2.0)
    assert recipe.better(first, point_with(3.0, 4.0, 3.0)) is first
    winner = recipe.better(first, second)
    assert winner is second
    assert [entry["objective"] for entry in winner.history] == [5.0, 3.0, 2.5, 2.0]


def test_points_of_the_same_objective_count_once():
    points = [point_with(value) for value in (2.0, 1.0, 2.0001, 1.5, 1.0)]
    assert [point.value for point in recipe.distinct(points)] == [1.0, 1.5, 2.0]


def test_the_last_descent_goes_further_than_tol_has_converged_at_tol_and_counts_all_rounds():
    problem = small_problem()
    point = descended(problem, random_point(problem), tol=0.3)
    rounds, value = point.n_iter, point.value
    assert descended(problem, random_point(problem), tol=0.3, last=True).value < value
    first = descended(problem, point, tol=0.3, last=True, max_iter=1)
    assert (first.converged, first.n_iter) == (True, rounds + 1)
    assert not descended(problem, random_point(problem), tol=0.0, last=True, max_iter=1).converged


def test_a_labelled_task_labels_the_others_through_its_model():
    X, truth, _ = gaussian_tasks(rows=9, spread=0.1)
    offsets = np.array([0, 9, 18, 27])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    problem = Problem(kernel, offsets, parse_sizes("balanced", [9] * 3, C), np.full(3, 0.01), 0.01)
    for task in range(3):
        point = problem.seeded(task, truth[problem.coupling.slices[task]], np.eye(3) / 3)
        np.testing.assert_array_equal(point.labels, truth)


def test_starts_take_the_names_that_agree_with_the_aligned_labels():
    problem = replace(small_problem(), bounds=parse_sizes("balanced", [7, 6, 5], [3, 2, 1]))
    aligned = np.concatenate([np.arange(7) % 3, np.array([0, 2] * 3), np.full(5, 1)])
    own = [np.array([1, 2, 0])[aligned[:7]], np.array([1, 0, 1, 0, 0, 1]), np.zeros(5, dtype=np.int64)]
    single = problem.alone.point(aligned, np.eye(3) / 3)
    fixed, starts = recipe._with_ids_of(single, problem, [[labels] for labels in own])
    np.testing.assert_array_equal(starts[0][0], aligned[:7])
    np.testing.assert_array_equal(starts[1][0], [0, 2, 0, 2, 2, 0])
    np.testing.assert_array_equal(starts[2][0], aligned[13:])
    assert not fixed.bounds.movable
    assert fixed.bounds.present.tolist() == [[True] * 3, [True, False, True], [False, True, False]]


def test_tasks_alone_are_a_result_of_one_round_that_has_converged():
    problem = small_problem()
    result = recipe.solve(problem.alone, SearchOptions(starts=3), np.random.default_rng(0))
    point = result.point
    assert (point.converged, point.n_iter) == (True, 1)
    assert [entry["step"] for entry in point.history] == ["start", "labels"]
    assert {entry["objective"] for entry in point.history} == {point.value}
    assert sorted(np.concatenate(groups_of_tasks(result.similarity)).tolist()) == [0, 1, 2]
