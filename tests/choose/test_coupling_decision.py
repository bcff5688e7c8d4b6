"""Coupled labels are kept unless the tasks' own rows contradict them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mtclust.choose.coupling import LARGEST_LOSS, CouplingTest, decide_coupling
from mtclust.choose.judge import Judge
from mtclust.choose.settings import all_rows
from mtclust.choose.views import KernelSpec, View, judging_kernels
from mtclust.exceptions import UncoupledWarning
from mtclust.labels import parse_sizes
from mtclust.problem.kernels import KernelProblem
from mtclust.problem.protocol import SearchOptions
from mtclust.search.recipe import solve
from mtclust.tasks import index_tasks


@pytest.fixture
def solved():
    rng = np.random.default_rng(0)
    y, tasks = np.tile([0, 1, 2], 40), np.repeat([0, 1, 2], 40)
    X = np.eye(3)[y] * 4 + rng.normal(size=(120, 3))
    index = index_tasks(tasks, 120)
    view = View(X, index.offsets)
    judge = Judge({s.name: view.through(s, "task").centred.matrix for s in judging_kernels("auto")}, index.offsets)
    kernel = view.through(KernelSpec("linear"), "task").centred.matrix
    problem = KernelProblem(kernel, index.offsets, parse_sizes("balanced", [40] * 3, 3), np.full(3, 0.03), 0.03)
    return solve(problem, SearchOptions(n_init=2, single_task_n_init=4), rng), judge, all_rows(X, index), index


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
