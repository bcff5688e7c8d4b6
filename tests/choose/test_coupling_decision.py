"""Coupled labels are kept unless the tasks' own rows contradict them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mtclust.choose.coupling import LARGEST_LOSS, decide_coupling
from mtclust.choose.settings import Sample
from mtclust.choose.views import KernelSpec, View
from mtclust.core.labels import parse_sizes
from mtclust.core.tasks import index_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.search.problem import Problem, SearchOptions
from mtclust.search.recipe import solve


def solution(*sizes):
    """What a search finds on clear clusters in tasks of these sizes, the rows, a sample of all, and the tasks."""
    rng = np.random.default_rng(0)
    n, tasks = sum(sizes), np.repeat(np.arange(len(sizes)), sizes)
    y = np.concatenate([np.arange(size) % 3 for size in sizes])
    X = np.eye(3)[y] * 4 + rng.normal(size=(n, 3))
    index = index_tasks(tasks, n)
    view = View(X, index.offsets)
    kernel, m = view.through(KernelSpec("linear")).centred.matrix, len(sizes)
    problem = Problem(kernel, index.offsets, parse_sizes("balanced", list(sizes), 3), np.full(m, 0.03), 0.03)
    outcome = solve(problem, SearchOptions(n_init=2, starts=4), rng)
    return outcome, X, Sample.of(X, index), index


@pytest.fixture(scope="module")
def solved():
    return solution(40, 40, 40)


def test_labels_that_suit_the_tasks_are_kept(solved):
    outcome, X, sample, index = solved
    kept, decision = decide_coupling("auto", outcome, X, None, sample, index, SearchOptions())
    assert kept.point is outcome.point
    assert decision["decision"] == "full"
    assert decision["statistic"] <= LARGEST_LOSS
    assert decision["similarity"] > 0.8


def test_labels_that_the_tasks_contradict_are_refused(solved):
    outcome, X, sample, index = solved
    shuffled = outcome.problem.point(np.random.default_rng(1).permutation(outcome.point.labels), outcome.point.Z)
    wrong = replace(outcome, point=shuffled)
    with pytest.warns(UncoupledWarning, match="predicted clearly worse"):
        kept, decision = decide_coupling("auto", wrong, X, None, sample, index, SearchOptions())
    assert decision["decision"] == "none"
    assert decision["statistic"] > LARGEST_LOSS
    np.testing.assert_array_equal(kept.point.labels, outcome.single.labels)


def test_one_task_has_nothing_to_be_coupled_with_and_two_have():
    outcome, X, sample, index = solution(40)
    kept, decision = decide_coupling("auto", outcome, X, None, sample, index, SearchOptions())
    assert kept is outcome
    assert decision == {"decision": "none", "reason": "there is only one task"}
    outcome, X, sample, index = solution(40, 40)
    _, decision = decide_coupling("auto", outcome, X, None, sample, index, SearchOptions())
    assert decision["decision"] == "full"


@pytest.mark.parametrize("coupling", ["none", 0, 0.0, "full", 1, 1.0])
def test_what_the_user_sets_is_not_judged(solved, coupling):
    outcome, _, sample, index = solved
    kept, decision = decide_coupling(coupling, outcome, None, None, sample, index, SearchOptions())
    assert kept is outcome
    assert decision == {"decision": "none" if coupling in ("none", 0) else coupling, "reason": "set by the user"}


def test_a_number_shrinks_omega_towards_none(solved):
    outcome, _, sample, index = solved
    shrunk, decision = decide_coupling(0.25, outcome, None, None, sample, index, SearchOptions())
    np.testing.assert_allclose(shrunk.point.Z, 0.25 * outcome.point.Z + 0.75 * np.eye(3) / 3)
    assert decision["decision"] == 0.25
