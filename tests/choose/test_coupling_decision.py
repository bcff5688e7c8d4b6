"""Coupled labels are kept unless the tasks' own rows contradict them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mtclust.choose.coupling import LARGEST_LOSS, CouplingTest, decide_coupling
from mtclust.choose.judge import Judge
from mtclust.choose.settings import all_rows
from mtclust.choose.views import KernelSpec, View, judging_kernels
from mtclust.core.labels import parse_sizes
from mtclust.core.tasks import index_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.borrow import with_borrowed
from mtclust.search.recipe import solve


def solution(*sizes):
    """What a search finds on clear clusters in tasks of these sizes, the judge of these rows, the rows and tasks."""
    rng = np.random.default_rng(0)
    n, tasks = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    y = np.concatenate([np.arange(size) % 3 for size in sizes])
    X = np.eye(3)[y] * 4 + rng.normal(size=(n, 3))
    index = index_tasks(tasks, n)
    view = View(X, index.offsets)
    kernel, m = view.through(KernelSpec("linear"), "task").centred.matrix, len(sizes)
    problem = KernelProblem(kernel, index.offsets, parse_sizes("balanced", list(sizes), 3), np.full(m, 0.03), 0.03)
    outcome = solve(problem, SearchOptions(n_init=2, single_task_n_init=4), rng)
    return outcome, judge_of(X, index.offsets), all_rows(X, index), index


def judge_of(X, offsets):
    view = View(X, offsets)
    return Judge.of(view, judging_kernels("auto"))


@pytest.fixture(scope="module")
def solved():
    return solution(40, 40, 40)


def test_labels_that_suit_the_tasks_are_kept(solved):
    outcome, judge, sample, index = solved
    kept, decision = decide_coupling("auto", outcome, judge, sample, index, SearchOptions())
    assert kept.point is outcome.point
    assert decision["decision"] == "full"
    assert decision["statistic"] <= LARGEST_LOSS
    assert decision["similarity"] > 0.8


def test_labels_that_the_tasks_contradict_are_refused(solved):
    outcome, judge, sample, index = solved
    shuffled = outcome.problem.point(np.random.default_rng(1).permutation(outcome.point.labels), outcome.point.Z)
    wrong = replace(outcome, point=shuffled, few_point=shuffled)
    with pytest.warns(UncoupledWarning, match="contradict"):
        kept, decision = decide_coupling("auto", wrong, judge, sample, index, SearchOptions())
    assert decision["decision"] == "none"
    assert decision["statistic"] > LARGEST_LOSS
    assert max(decision["per_task"].values()) > LARGEST_LOSS
    np.testing.assert_array_equal(kept.point.labels, outcome.single.labels)


def test_a_gain_is_never_a_refusal():
    assert CouplingTest(0.9, 0.1, -0.5, 30).accepted
    assert "as well as" in CouplingTest(0.9, 0.1, -0.5, 30).reason


def test_what_a_sample_has_by_chance_is_no_contradiction():
    few_rows = {"rows_per_cluster": 6.0}
    assert not CouplingTest(0.30, 0.38, 0.9, **few_rows).accepted
    assert CouplingTest(0.30, 0.38, 0.9, **few_rows, left_out=0.99).accepted
    assert not CouplingTest(0.10, 0.38, 0.9, **few_rows, left_out=0.99).accepted


def test_one_task_has_nothing_to_be_coupled_with_and_two_have():
    outcome, judge, sample, index = solution(40)
    kept, decision = decide_coupling("auto", outcome, judge, sample, index, SearchOptions())
    assert kept is outcome
    assert decision == {"decision": "none", "reason": "there is only one task"}
    outcome, judge, sample, index = solution(40, 40)
    _, decision = decide_coupling("auto", outcome, judge, sample, index, SearchOptions())
    assert decision["decision"] == "full"
    assert sorted(decision["per_task"]) == [0, 1]


@pytest.mark.parametrize("coupling", ["none", 0, 0.0, "full", 1, 1.0])
def test_what_the_user_sets_is_not_judged(solved, coupling):
    outcome, _, sample, index = solved
    kept, decision = decide_coupling(coupling, outcome, None, sample, index, SearchOptions())
    assert kept is outcome
    assert decision == {"decision": "none" if coupling in ("none", 0) else coupling, "reason": "set by the user"}


def test_a_number_shrinks_omega_towards_none(solved):
    outcome, _, sample, index = solved
    shrunk, decision = decide_coupling(0.25, outcome, None, sample, index, SearchOptions())
    np.testing.assert_allclose(shrunk.point.Z, 0.25 * outcome.point.Z + 0.75 * np.eye(3) / 3)
    assert decision["decision"] == 0.25


@pytest.mark.parametrize("coupling", ["full", "auto"])
def test_small_tasks_borrow_where_tasks_are_coupled(coupling):
    outcome, judge, sample, index = solution(60, 60, 9)
    borrowed = with_borrowed(outcome.problem, outcome.point).labels
    poor = outcome.point.labels.copy()
    poor[-9:] = np.roll(poor[-9:], 1)
    outcome = replace(outcome, point=outcome.problem.point(poor, outcome.point.Z))
    arguments = coupling, outcome, judge, sample, index, SearchOptions()
    plain, _ = decide_coupling(*arguments)
    np.testing.assert_array_equal(plain.point.labels, poor)
    for whole in (True, False):  # the few rows of a search may be all rows
        given = outcome if whole else replace(outcome, few=outcome.problem.alone())
        kept, _ = decide_coupling(coupling, given, *arguments[2:], small_tasks_borrow=True)
        np.testing.assert_array_equal(kept.point.labels, borrowed)
        assert kept.few_point is (kept.point if whole else outcome.few_point)


def test_where_a_sample_was_searched_the_limit_knows_its_rows(solved, monkeypatch):
    outcome, _, sample, index = solved
    asked = []
    monkeypatch.setattr("mtclust.choose.coupling.CouplingTest", lambda *args: asked.append(args) or CouplingTest(*args))
    half = [part[:20] for part in sample.positions]
    rows = np.concatenate([40 * k + np.arange(20) for k in range(3)])
    some = replace(sample, rows=sample.rows[rows], positions=half, complete=False)
    judge = judge_of(sample.rows[rows], np.array([0, 20, 40, 60]))
    decide_coupling("auto", outcome, judge, some, index, SearchOptions())
    ((_, _, similarity, rows_per_cluster, left_out),) = asked
    assert rows_per_cluster == pytest.approx(60 / (3 * 3))
    assert left_out == pytest.approx(0.5)
    assert 0.8 < similarity <= 1.0 + 1e-9


def test_the_limit_grows_with_the_rows_left_out_and_the_reason_names_it():
    test = CouplingTest(0.50, 0.56, 0.9, 10.0, left_out=0.5)
    assert test.loss == pytest.approx(0.06)
    assert test.limit == pytest.approx(LARGEST_LOSS + 0.3 * 0.5 / 10)
    assert test.accepted
    assert "score 0.50 together, 0.56 apart, limit 0.07 below" in test.reason
    assert "as well as" in CouplingTest(0.5, 0.5, 0.9, 10.0).reason
