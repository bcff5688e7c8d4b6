"""How labels, frame and kernel are chosen among candidates."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTRC, DSTC
from mtclust.choose import candidates, choice
from mtclust.choose.candidates import Candidate
from mtclust.choose.choice import Question, choose_labels, constant_lambdas, labellings
from mtclust.choose.judge import Judge
from mtclust.choose.record import Tried
from mtclust.choose.views import KernelSpec, View, candidate_kernels, in_many_directions
from mtclust.core.hints import Hints
from mtclust.exceptions import UncoupledWarning
from mtclust.search.problem import SearchOptions
from tests.conftest import gaussian_tasks

LINEAR, NARROW = KernelSpec("linear"), KernelSpec("rbf", 0.5)


@pytest.fixture(scope="module")
def question():
    X, _, tasks = gaussian_tasks(3, 30, 3, 4, spread=1.0)
    offsets = np.array([0, 30, 60, 90])
    assert np.all(np.diff(tasks) >= 0)
    return Question(View(X, offsets), candidate_kernels("auto", "auto"), np.full(3, 3), "relationship")


def test_the_highest_score_is_taken_and_all_are_kept_in_order(question):
    found = choose_labels(question, SearchOptions())
    scores = [own.score for own in found.tried]
    assert scores == sorted(scores, reverse=True)
    assert found.reason.startswith(f"{found.tried[0].name} has the highest score of {len(found.tried)} candidates")
    every = [own.labels.tolist() for own in labellings(question, SearchOptions())[0]]
    assert found.outcome.point.labels.tolist() in every  # labels are not moved by their models


def frames_and_methods(question):
    return {(own.frame, own.method) for own in labellings(question, SearchOptions())[0]}


def test_candidates_stand_as_they_are_and_descended_in_every_frame(question):
    found = frames_and_methods(question)
    assert {(frame, "k-means") for frame in ("all", "task", "aligned", "alone")} <= found
    assert {("alone", "spectral clustering"), ("aligned", "EM with offsets")} <= found
    assert {frame for frame, method in found if method in ("E", "J", "J released")} == {"task"}


def test_frames_that_are_asked_for_are_the_only_ones(question):
    for frames, allowed in ((("task",), {"task", "alone"}), (("all",), {"all"}), (("aligned",), {"aligned"})):
        asked = replace(question, frames=frames)
        assert {frame for frame, _ in frames_and_methods(asked)} == allowed
        assert choose_labels(asked, SearchOptions()).frame == frames[0]
    alone = replace(question, method="independent", frames=("task",))
    assert {frame for frame, _ in frames_and_methods(alone)} == {"alone"}


def test_known_rows_speak_for_the_labels_that_keep_them(question, monkeypatch):
    right, wrong = np.tile(np.arange(3), 30), np.repeat(np.tile(np.arange(3), 3), 10)
    found = [Candidate("right", "all", right), Candidate("wrong", "all", wrong)]
    monkeypatch.setattr(choice, "labellings", lambda *given: (found, Judge(question.X, question.tasks, 3)))
    monkeypatch.setattr(Judge, "of", lambda self, labels: (np.array([0.0, 0.3]), {"separation": np.zeros(2)}))
    assert choose_labels(question, SearchOptions()).tried[0].name == "wrong of all rows"
    known = replace(question, hints=Hints(known=right))
    assert choose_labels(known, SearchOptions()).tried[0].name == "right of all rows"


def test_labels_of_tasks_apart_are_taken_only_where_they_lead(question, monkeypatch):
    together, apart = np.tile(np.arange(3), 30), np.repeat(np.tile(np.arange(3), 3), 10)
    labels = [Candidate("x", "all", together), Candidate("y", "alone", apart)]
    monkeypatch.setattr(choice, "labellings", lambda *given: (labels, Judge(question.X, question.tasks, 3)))
    for lead, frame in ((-0.1, "all"), (0.1, "alone")):
        judged = np.array([0.0, lead]), {"separation": np.zeros(2)}
        monkeypatch.setattr(Judge, "of", lambda self, labels, judged=judged: judged)
        found = choose_labels(question, SearchOptions())
        assert found.tried[0].frame == frame
        assert found.outcome.problem.method == ("independent" if frame == "alone" else found.seen.method)
        assert choose_labels(replace(question, coupling_open=False), SearchOptions()).tried[0].frame == frame
    forced = choose_labels(replace(question, coupling_open=False), SearchOptions())
    assert forced.tried[0].frame == "alone"
    assert forced.outcome.problem.method == "relationship"


def test_a_reason_names_candidates_as_they_are(question):
    tried = [Tried("E", 1.0, 0.0), Tried("k-means of all rows", 0.5, 0.0, "all")]
    reason = choice.Choice(question, LINEAR, "E", question, tried=tried).reason
    assert reason == "E has the highest score of 2 candidates (next: k-means of all rows, −0.50)"


def test_one_function_in_one_file_is_a_new_candidate(monkeypatch):
    def by_first_column(X, n_clusters):
        return np.argsort(np.argsort(X[:, 0] ** 2)) * n_clusters // len(X)

    monkeypatch.setitem(candidates.ALONE, "first column", by_first_column)
    X, _, tasks = gaussian_tasks(2, 30, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        model = DMTRC(3).fit(X, tasks=tasks)
    assert "first column of every task alone" in [tried.name for tried in model.selection_.candidates]


def test_different_numbers_of_clusters_are_kept_task_by_task():
    X, y, tasks = gaussian_tasks(3, 40, 3, 4)
    keep = (tasks < 2) | (y < 2)
    model = DMTRC({0: 3, 1: 3, 2: 2}).fit(X[keep], tasks=tasks[keep])
    assert np.count_nonzero(model.cluster_sizes_, axis=1).tolist() == [3, 3, 2]
    assert adjusted_rand_score(y[keep], model.labels_) > 0.95


def test_lambdas_are_constants():
    lambda1, lambda2 = constant_lambdas(3, LINEAR, "J")
    np.testing.assert_allclose(lambda1, np.full(3, 0.125 / 4))
    assert lambda2 == 0.125 / 4
    assert constant_lambdas(3, NARROW, "E", share=0.5)[1] == 0.125 / 2.5
    assert constant_lambdas(3, NARROW, "J")[1] == 2.0**-10


def test_one_task_alone_has_no_frames_to_choose_from():
    X, y, _ = gaussian_tasks(1, 60, 3, 4)
    model = DSTC(3).fit(X)
    assert model.selection_.center == "task"
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_documents_spread_over_many_directions_however_they_are_stored():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(2000, 0.05), size=4)
    counts = np.stack([rng.multinomial(80, 0.5 * topics[k % 4] + 0.5 / 2000) for k in range(200)])
    words = np.log1p(counts) / np.linalg.norm(np.log1p(counts), axis=1, keepdims=True)
    offsets = np.array([0, 100, 200])
    directions = TruncatedSVD(100, random_state=0).fit_transform(words)
    assert all(in_many_directions(X, offsets) for X in (words, sp.csr_matrix(words), directions))
    # the same number of columns, but few directions; and shifts between tasks are not a direction
    few = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 100))
    assert not in_many_directions(few, offsets)
    assert in_many_directions(directions + 100.0 * (np.arange(200) >= 100)[:, None], offsets)
