"""One way to cluster: which sizes, starts, λ and frames its candidates have."""

import numpy as np
import pytest

from mtclust.choose.judge import Judge, evenness
from mtclust.choose.views import KernelSpec, View
from mtclust.choose.ways import DIRECTIONS_OF_D, Question, Way, own_frame_problem
from mtclust.core.hints import Hints
from mtclust.core.labels import parse_sizes
from mtclust.problem.protocol import SearchOptions
from tests.conftest import gaussian_tasks

X, Y, _ = gaussian_tasks(n_tasks=2, rows=18, d=3)
OFFSETS = np.array([0, 18, 36])
LINEAR, NARROW = KernelSpec("linear"), KernelSpec("rbf", 0.5)
VIEW = View(X, OFFSETS)
JUDGE = Judge({"linear": VIEW.through(LINEAR, "task").centred.matrix}, OFFSETS)
OPTIONS = SearchOptions(n_init=1, single_task_n_init=2, n_seeds=1, polish=False)


def question(clusters=(3, 3), method="relationship", **given):
    return Question(VIEW, (LINEAR, NARROW), JUDGE, np.array(clusters), method, **given)


@pytest.mark.parametrize("coupled", [False, True])
def test_e_has_free_sizes_and_j_balanced_ones_and_released_ones(coupled):
    (free,) = Way(question(), LINEAR, "E", OPTIONS).candidates(OPTIONS, coupled)
    assert (free.name, free.coupled, free.frame, free.start) == ("E, linear, free sizes", coupled, "task", "random")
    balanced, released = Way(question(), NARROW, "J", OPTIONS).candidates(OPTIONS, coupled)
    assert [balanced.name, released.name] == ["J, RBF 0.5, balanced sizes", "J, RBF 0.5, released sizes"]
    assert np.bincount(balanced.labels[:18]).tolist() == [6, 6, 6]
    for found in (free, balanced, released):
        assert len(found.labels) == 36
        assert found.verdict.separation == pytest.approx(JUDGE(found.labels, 3).separation)
        assert found.agreement == 0.0


def test_sizes_that_are_given_are_kept():
    own = question(sizes=[[9, 6, 3], [6, 6, 6]], sizes_open=False, names=np.array([0, 1]))
    (given,) = Way(own, LINEAR, "J", OPTIONS).candidates(OPTIONS, True)
    assert given.sizes == "given"
    assert [np.bincount(part).tolist() for part in (given.labels[:18], given.labels[18:])] == [[9, 6, 3], [6, 6, 6]]


def test_a_mixture_is_where_the_search_begins():
    way = Way(question(), LINEAR, "E", OPTIONS, Y, "mixture")
    assert way.name == "E, linear, from a Gaussian mixture"
    (found,) = way.candidates(OPTIONS, False)
    assert found.start == "mixture"
    assert found.name == "E, linear, free sizes, from a Gaussian mixture"
    np.testing.assert_array_equal(found.labels, Y)  # clear clusters: it stays there


def test_mixtures_need_rows_and_the_criterion_e():
    assert len(np.unique(question().mixture())) == 3
    assert question(criteria=("J",)).mixture() is None
    by_kernel = Question(
        VIEW, (KernelSpec("callable", function=lambda A, B: A @ B.T),), JUDGE, np.array([3, 3]), "relationship"
    )
    assert by_kernel.mixture() is None


def test_known_rows_count_for_a_candidate():
    known = np.where(np.arange(36) % 3 == 0, Y, -1)
    (found,) = Way(question(hints=Hints(known)), LINEAR, "E", OPTIONS, Y).candidates(OPTIONS, False)
    assert found.agreement == pytest.approx(12 / (12 + 60))


def test_a_question_knows_its_tasks_and_the_largest_number_of_clusters():
    assert question(clusters=(2, 3)).n_clusters == 3
    assert question().n_tasks == 2


@pytest.mark.parametrize("criterion", ["E", "J"])
def test_the_problem_has_the_sizes_lambdas_and_features_of_its_question(criterion):
    problem = own_frame_problem(question(), LINEAR, criterion)
    np.testing.assert_allclose(problem.lambda1, np.full(2, 0.125 / 3))
    assert problem.lambda2 == 0.125 / 3
    if criterion == "J":
        expected = parse_sizes("balanced", [18, 18], 3)
        np.testing.assert_array_equal(problem.bounds.lower, expected.lower)
        np.testing.assert_array_equal(problem.bounds.upper, expected.upper)
    else:
        assert problem.bounds.upper.max() > 6
    given = own_frame_problem(question(lambdas=(np.array([0.1, 0.2]), 0.3)), NARROW, criterion)
    assert given.lambda1.tolist() == [0.1, 0.2]
    assert given.lambda2 == 0.3
    assert own_frame_problem(question(method="features", n_components=2), LINEAR, criterion).features.rank == 2
    assert own_frame_problem(question(method="features"), LINEAR, criterion).features.rank == 3
    assert own_frame_problem(question(method="features"), NARROW, criterion).features.rank <= DIRECTIONS_OF_D


def test_in_one_frame_all_rows_are_one_task():
    one = question(judging=(LINEAR,)).in_one_frame
    (found,) = Way(one, LINEAR, "E", OPTIONS).candidates(OPTIONS, coupled=False)
    assert found.name == "E, linear, free sizes, common frame"
    assert not found.coupled
    assert found.outcome.problem.offsets.tolist() == [0, 36]
    assert found.outcome.problem.lambda2 == 0.125 / 2
    assert found.outcome.problem.bounds.upper.min() > 18
    assert found.verdict.evenness == pytest.approx(evenness(found.labels, 3))
    given = question(lambdas=(np.array([0.1, 0.2]), 0.3), judging=(LINEAR,)).in_one_frame
    assert given.lambdas[0].tolist() == pytest.approx([0.15])
    assert given.lambdas[1] == 0.6
    assert given.method == "independent"
    assert question(method="features", judging=(LINEAR,)).in_one_frame.method == "features"


def test_directions_are_those_within_tasks_and_a_shift_hides_nothing():
    given = {"judge": JUDGE, "clusters": np.array([3, 3]), "method": "relationship"}
    for shift in (3.0, 1e7):
        rows = X + shift * (np.arange(36) >= 18)[:, None]  # the second task is moved
        found = Question(View(rows, OFFSETS), (LINEAR, NARROW), **given).directions
        apart = rows - rows.mean(axis=0)
        scale = np.vdot(apart, apart) / np.vdot(found, found)
        np.testing.assert_allclose(scale * found @ found.T, apart @ apart.T, rtol=1e-6, atol=1e-6 * shift**2)
        around = [part - part.mean(axis=0) for part in (found[:18], found[18:])]
        assert sum(np.vdot(part, part) for part in around) == pytest.approx(36)  # the variance within tasks is 1
    by_kernel = Question(View(rows @ rows.T, OFFSETS), (KernelSpec("precomputed"),), **given).directions
    np.testing.assert_allclose(by_kernel @ by_kernel.T, apart @ apart.T * 36 / np.vdot(apart, apart), atol=1e-6)
