"""The rules by which one of several candidates is taken, on candidates whose labels and scores are given."""

from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from mtclust.choose import candidates as rules
from mtclust.choose.candidates import COUPLED, choose
from mtclust.choose.judge import Verdict
from mtclust.choose.views import KernelSpec
from mtclust.choose.ways import Candidate, Question, constant_lambdas
from mtclust.problem.protocol import SearchOptions

OFFSETS = np.array([0, 6, 12])
LABELS = np.tile([0, 0, 0, 1, 1, 1], 2)
#: score of the labels of the tasks' own frames as those of one task
OWN_IN_ONE_FRAME = 0.3
LINEAR, NARROW = KernelSpec("linear"), KernelSpec("rbf", 0.5)
OTHER, MOVES = np.tile([0, 1], 6), np.zeros((2, 3))


def candidate(score, kernel="rbf ½", frame="task", labels=LABELS, agreement=0.0, evenness=1.0):
    """Its separation is the score, unless sizes are uneven."""
    outcome = SimpleNamespace(point=SimpleNamespace(labels=labels.copy()), similarity=np.ones((2, 2)))
    verdict = Verdict(score, {}, np.full(2, score), evenness)
    return Candidate("E", "free", kernel, frame, outcome, verdict, frame == "task", agreement=agreement)


def question(**given):
    view = SimpleNamespace(offsets=OFFSETS)
    given = {"judge": None, "method": "relationship"} | given
    return Question(view, (LINEAR, NARROW), clusters=np.array([2, 2]), **given)


@pytest.fixture(autouse=True)
def not_together(monkeypatch, request):
    """Clusters of all rows together, around the means of tasks, are left out, except where they are what is tested."""
    if "together" not in request.node.name:
        monkeypatch.setattr(rules, "_together", lambda question, choice, options: choice)


@pytest.fixture
def chosen(monkeypatch):
    """The choice among given candidates of own frames, and of the frame that rows speak for."""

    def run(own, common=(), frame="task", others=(), frames=("task", "all", "aligned"), **given):
        way = SimpleNamespace(criterion="J", begun=None, question=SimpleNamespace(method="independent"), name="J")
        way.candidates = lambda options, coupled: []
        waiting = [list(common), list(others)]
        monkeypatch.setattr(rules, "_own_frame", lambda question, options: (own[0], [(one, way) for one in own]))
        monkeypatch.setattr(rules, "_ways", lambda *given: [way])
        monkeypatch.setattr(rules, "_alone", lambda ways, options: [(found, way) for found in waiting.pop(0)])
        monkeypatch.setattr(rules, "frame_of_rows", lambda *given: (frame, OTHER))
        monkeypatch.setattr(rules, "moves_of_tasks", lambda *given: MOVES)
        monkeypatch.setattr(Question, "directions", None)
        view = SimpleNamespace(offsets=OFFSETS, in_one_frame=SimpleNamespace(centred_rows=(None, None)))
        one = SimpleNamespace(
            judge=lambda labels, C: Verdict(OWN_IN_ONE_FRAME, {}, np.zeros(2), 1.0), kernels=(), criteria=("E", "J"),
            linear_lead=given.get("linear_lead", 0.0),
        )  # fmt: skip
        monkeypatch.setattr(Question, "in_one_frame", one)
        monkeypatch.setattr(Question, "aligned", lambda self, moves: one)
        asked = replace(question(**given), view=view, frames=frames if common else ("task",))
        return choose(asked, SearchOptions())

    return run


def test_the_highest_score_is_taken_and_all_are_kept_in_order(chosen):
    found = chosen([candidate(0.2), candidate(0.7), candidate(0.5, kernel="linear")])
    assert [own.verdict.score for own in found.tried] == [0.7, 0.5, 0.2]
    assert found.best is found.tried[0]
    assert found.alone.verdict.score == 0.2
    assert found.reason == (
        "E, rbf ½, free sizes: membership of rows that are left out is predicted best (separation 0.70, score 0.70; "
        "next E, linear, free sizes, 0.50)"
    )


def test_a_single_candidate_has_no_next(chosen):
    assert chosen([candidate(0.4)]).reason.endswith("predicted best (separation 0.40, score 0.40)")


def test_what_known_rows_say_counts_and_rounding_does_not(chosen):
    assert chosen([candidate(0.5), candidate(0.4, agreement=0.2)]).best.verdict.score == 0.4
    equal = [candidate(0.5), candidate(0.5 + 1e-9)]
    assert chosen(equal).best is equal[0]


def test_with_very_many_rows_the_linear_kernel_may_fall_behind_a_little(chosen):
    both = [candidate(0.51), candidate(0.50, kernel="linear")]
    assert chosen(both).best.kernel == "rbf ½"
    found = chosen(both, linear_lead=0.02)
    assert found.best.kernel == "linear"
    assert "as good as others for so many rows, and cheaper (separation 0.50, score 0.50)" in found.reason
    assert chosen([candidate(0.53), both[1]], linear_lead=0.02).best.kernel == "rbf ½"
    frames = [candidate(0.9, frame="all", labels=OTHER), candidate(0.89, "linear", "all", labels=OTHER)]
    assert chosen([candidate(0.5)], frames, "all", linear_lead=0.02).best.kernel == "linear"


def test_where_rows_speak_for_one_frame_the_best_of_all_ways_is_taken_there(chosen):
    free = [candidate(0.35, frame="all", labels=OTHER)]
    top = candidate(0.4, frame="all", labels=OTHER)
    found = chosen([candidate(0.5)], free, "all", others=[top])
    assert found.best is top
    assert found.moves is None
    assert found.reason.endswith("clusters lie in the same places in all tasks, and are clearer there (by 0.10)")
    assert {id(each) for each in found.tried} >= {id(top), id(free[0])}
    assert chosen([candidate(0.5)], free, "task", others=[top]).best.frame == "task"


def test_where_rows_speak_for_aligned_tasks_candidates_of_one_frame_do_not_count(chosen):
    free = [candidate(0.9, frame="all", labels=OTHER)]
    top = candidate(0.4, frame="aligned", labels=OTHER)
    found = chosen([candidate(0.5)], free, "aligned", others=[top])
    assert found.best is top
    assert found.moves is MOVES
    assert found.reason.endswith("once tasks are moved by an offset each, and are clearer there (by 0.10)")
    assert found.best.name.endswith("aligned tasks")


def test_labels_of_own_frames_are_kept_where_they_are_as_clear_in_one_frame_or_the_same(chosen):
    below = candidate(OWN_IN_ONE_FRAME - 0.01, frame="all", labels=OTHER)
    assert chosen([candidate(0.5)], [below], "all").best.frame == "task"
    assert chosen([candidate(0.5)], [below], "all", frames=("aligned",)).best.frame == "all"  # nothing else is allowed
    same = candidate(0.9, frame="all")
    assert chosen([candidate(0.9)], [same], "all").best.frame == "task"
    known = candidate(0.35, frame="all", labels=OTHER)
    assert chosen([candidate(0.5, agreement=0.1)], [known], "all").best.frame == "task"


@pytest.mark.parametrize(("score", "fits", "taken"), [(0.4, True, True), (0.4, False, False), (0.29, True, False)])
def test_rows_together_are_taken_where_they_are_clearer_and_describe_rows_better(monkeypatch, score, fits, taken):
    begun = candidate(0.1)
    way = mock.Mock(**{"from_together.return_value": replace(begun, start="together")})
    monkeypatch.setattr(rules, "Way", lambda *given: way)
    monkeypatch.setattr(rules, "_ways", lambda *given: [])
    monkeypatch.setattr(rules, "_alone", lambda ways, options: [(candidate(score, kernel="linear"), None)])
    monkeypatch.setattr(rules, "one_model_fits", lambda *given: fits)
    one = SimpleNamespace(judge=lambda labels, C: Verdict(OWN_IN_ONE_FRAME, {}, np.zeros(2), 1.0), directions=None)
    monkeypatch.setattr(Question, "around_means", one)
    monkeypatch.setattr(Question, "directions", None)
    own = rules.Choice(candidate(0.5), [candidate(0.5)], "own")
    found = rules._together(question(), own, SearchOptions())
    assert (found.best.start == "together") is taken
    if taken:
        assert "from all rows together" in found.best.name
        assert found.reason.endswith("around the means of tasks, show them clearest (by 0.10)")
        assert len(found.tried) == 2
    # where tasks stay alone, have sizes or numbers of clusters of their own, nothing is tried
    for given in ({"method": "independent"}, {"sizes_open": False}, {"criteria": ("J",)}):
        assert rules._together(question(**given), own, SearchOptions()) is own
    assert rules._together(replace(question(), clusters=np.array([2, 3])), own, SearchOptions()) is own
    many = SimpleNamespace(offsets=np.array([0, 20, 40]))  # ten rows of a cluster in every task
    assert rules._together(replace(question(), view=many), own, SearchOptions()) is own


#: score of every way with the tasks alone; coupled it is .01 higher
SCORES = {
    "E, linear": 0.5, "J, linear": 0.1, "E, RBF 0.5": 0.4, "J, RBF 0.5": 0.6, "E, linear, mixture": 0.3,
    "E, RBF 0.5, mixture": 0.2,
}  # fmt: skip


@pytest.fixture
def searched(monkeypatch):
    """The choice where ways have given scores, and which of them were searched: name, whether coupled, restarts."""

    def run(options, scores=SCORES, mixture=LABELS, **given):
        asked = []

        class Way:
            def __init__(self, question, spec, criterion, options, mixture=None, start="random"):
                self.begun = mixture
                self.name = f"{criterion}, {spec.name}" + ("" if mixture is None else ", mixture")

            def candidates(self, options, coupled):
                asked.append((self.name, coupled, options.n_init))
                return [candidate(scores[self.name] + (0.01 if coupled else 0.0), kernel=self.name)]

        monkeypatch.setattr(rules, "Way", Way)
        monkeypatch.setattr(Question, "mixture", lambda self: mixture)
        return choose(replace(question(**given), frames=("task",)), options), asked

    return run


def test_all_are_searched_alone_the_most_promising_coupled_and_the_best_with_restarts(searched):
    found, asked = searched(SearchOptions(n_init=8))
    assert sorted(name for name, coupled, _ in asked if not coupled) == sorted(SCORES)
    coupled = [(name, n_init) for name, coupled, n_init in asked if coupled]
    assert coupled == [("J, RBF 0.5", 1), ("E, linear", 1), ("E, RBF 0.5", 1), ("J, RBF 0.5", 8)]
    assert len(coupled) == COUPLED + 1
    assert found.alone.kernel == "J, RBF 0.5"
    assert found.alone.verdict.score == 0.6
    assert found.best.verdict.score == pytest.approx(0.61)
    assert len(found.tried) == 4
    once = [(name, n_init) for name, coupled, n_init in searched(SearchOptions(n_init=1))[1] if coupled]
    assert once == coupled[:3]


def test_what_begins_with_a_mixture_has_no_restarts(searched):
    _, asked = searched(SearchOptions(n_init=8), SCORES | {"E, linear, mixture": 0.9})
    coupled = [entry for entry in asked if entry[1]]
    assert coupled[0] == ("E, linear, mixture", True, 1)
    assert {n_init for _, _, n_init in coupled} == {1}


def test_tasks_that_stay_alone_are_not_coupled(searched):
    found, asked = searched(SearchOptions(n_init=8), mixture=None, method="independent")
    assert not any(coupled for _, coupled, _ in asked)
    assert [own.kernel for own in found.tried] == ["J, RBF 0.5", "E, linear", "E, RBF 0.5", "J, linear"]


#: of which restarts find nothing more
WAY = SimpleNamespace(name="E", begun=LABELS)


@pytest.mark.parametrize(("given", "starts", "seeds"), [(40, 8, 2), (None, 8, 2), (3, 1, 2), (40, 8, 1)])
def test_candidates_are_searched_with_fewer_starts_and_seeds(monkeypatch, given, starts, seeds):
    asked = []
    monkeypatch.setattr(
        rules, "_own_frame", lambda question, options: (None, asked.append(options) or [(candidate(0.5), WAY)])
    )
    choose(
        replace(question(), frames=("task",)), SearchOptions(single_task_n_init=given, n_seeds=1 if seeds == 1 else 5)
    )
    (options,) = asked
    assert (options.single_task_n_init, options.n_seeds, options.polish) == (starts, seeds, False)


def test_lambdas_are_constants():
    lambda1, lambda2 = constant_lambdas(3, LINEAR, "J")
    np.testing.assert_allclose(lambda1, np.full(3, 0.125 / 4))
    assert lambda2 == 0.125 / 4
    assert constant_lambdas(3, NARROW, "E", share=0.5)[1] == 0.125 / 2.5
    assert constant_lambdas(3, NARROW, "J")[1] == 2.0**-9
