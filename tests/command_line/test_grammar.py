"""Every sentence of the grammar: a crafted case in which it is true and said, and one in which it is not said."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from mtclust import DMTRC, DSTC
from mtclust.app.findings import Findings, differences
from mtclust.app.tables.columns import Feature
from mtclust.app.words import agreement_in_words, cautions, choices, cluster_in_words, difference_in_words
from mtclust.choose.coupling import decide_coupling
from mtclust.choose.number import in_words, warn_of_choice
from mtclust.estimators.stability import Stability
from mtclust.exceptions import ClusterNumberWarning, UncoupledWarning
from mtclust.util.messages import on_command_line
from tests.conftest import gaussian_tasks

# -- what sets a cluster apart -----------------------------------------------------------------------------------------


def described(values, tasks, labels, cluster=1, kind="number"):
    """What is said of a cluster, by one column."""
    tasks, labels, X = np.asarray(tasks), np.asarray(labels), np.asarray(values, dtype=float)[:, None]
    X = X + np.tile([-0.1, 0.1], len(X) // 2)[:, None] * (kind == "number")
    shape = int(tasks.max()) + 1, int(labels.max()) + 1
    findings = Findings(X, tasks, labels, shape, [Feature("a", kind, column="a")])
    names = [f"shop {t}" for t in range(shape[0])]
    return cluster_in_words(SimpleNamespace(findings=findings, n_clusters=shape[1], task_words=names), cluster)


def cells(*rows):
    """Values, tasks and labels of (how many, value, task, label)."""
    return [np.repeat(column, [n for n, *_ in rows]) for column in list(zip(*rows))[1:]]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(20, 1, 0, 0), (20, 5, 0, 1), (20, 2, 1, 0), (20, 6, 1, 1)], "higher a (5.5; others 1.5)"),
        ([(20, 5, 0, 0), (20, 1, 0, 1)], "lower a (1; others 5)"),
        # higher in the task that has most of its rows, lower in the other, where its rows are too few to tell
        (
            [(20, 0, 0, 0), (60, 5, 0, 1), (20, 5, 1, 0), (4, 0, 1, 1)],
            "where most of it lies: higher a (4.69; others 2.5)",
        ),
        # no difference within the tasks, but between them
        ([(30, 0, 0, 0), (10, 0, 0, 1), (10, 9, 1, 0), (30, 9, 1, 1)], "in all rows: higher a (6.75; others 2.25)"),
        # its tasks have no other rows
        ([(20, 0, 0, 0), (20, 9, 1, 1)], "in all rows: higher a (9; others 0)"),
        ([(20, 3, 0, 0), (20, 3, 0, 1)], "nothing sets it apart from the other rows"),
        ([(20, 0, 0, 0), (20, 5, 0, 1), (20, 10, 0, 2)], "lies between other clusters in a (5)"),
    ],
)
def test_a_cluster_is_described_by_what_holds_of_its_rows(rows, said):
    assert described(*cells(*rows)) == said


def test_one_cluster_is_all_rows():
    assert described(*cells((20, 0, 0, 0), (20, 5, 0, 0)), cluster=0) == "all rows"


def test_a_share_between_two_others_is_no_description():
    """That 40 % of its rows have a level tells nobody what a cluster is, if others have it less and more often."""
    values = np.r_[np.arange(20) < 1, np.arange(20) < 8, np.arange(20) < 19]
    said = described(values, np.zeros(60, dtype=int), np.repeat([0, 1, 2], 20), kind="category")
    assert "between" not in said


# -- how tasks differ --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ([[0, 60, 20], [40, 20, 20], [40, 20, 20]], "cluster 0 is absent in a (50 % of the rows elsewhere)"),
        ([[60, 10, 10], [0, 40, 40], [0, 40, 40]], "cluster 0 is found only in a (75 % of the rows there)"),
        (
            [[60, 20, 20], [20, 40, 40], [20, 40, 40]],
            "cluster 0 is more common in a: 60 % of the rows, 20 % elsewhere;",
        ),
        (
            [[20, 60, 60], [120, 60, 60], [120, 60, 60]],
            "cluster 0 is less common in a: 14 % of the rows, 50 % elsewhere;",
        ),
    ],
)
def test_differences_between_tasks_are_said_where_they_are(sizes, said):
    found = [
        difference_in_words(own, "abc"[own.task], f"cluster {own.cluster}")
        for own in differences(np.array(sizes), range(len(sizes[0])))
    ]
    assert any(sentence.startswith(said) for sentence in found), found


def test_equal_shares_and_chance_make_no_difference():
    assert differences(np.array([[20, 20, 20], [40, 40, 40]]), range(3)) == []
    assert differences(np.array([[6, 4], [4, 6]]), range(2)) == []


def test_what_chance_reaches_is_said_where_it_is_known():
    findings = SimpleNamespace(agreement=np.array([[-0.5, 0.2]]), chance=np.array([[0.13, np.nan]]))
    assert agreement_in_words(findings, 0, 0) == "−0.50, by chance up to 0.13"
    assert agreement_in_words(findings, 0, 1) == "0.20"


# -- what to be careful about ------------------------------------------------------------------------------------------

X, _, TASKS = gaussian_tasks()


@pytest.fixture
def model():
    return DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)


def said(model):
    return {caution.title: caution.text for caution in cautions(model)}


def refitted(overall, clusters):
    return Stability(overall, np.ones(90), np.array(clusters), 10, 0.5)


def test_low_agreement_of_refits_is_cautioned_once(model):
    model.stability_ = refitted(0.5, [0.4, 0.9, 0.9])
    assert said(model) == {
        "Low stability": "Other samples of the rows give other clusters (agreement 0.50): do not rely on single rows "
        "or on small differences between tasks. Try fewer clusters."
    }
    with on_command_line():
        assert said(model)["Low stability"].endswith("Try fewer clusters (--clusters).")
    model.stability_ = refitted(0.7, [0.4, 0.9, 0.9])
    assert said(model) == {
        "Some clusters are not reproduced": "In other samples of the rows other rows are in cluster 0 (0.40); below "
        "0.7 a cluster is not reliable."
    }
    model.stability_ = refitted(0.7, [0.7, 0.9, np.nan])
    assert said(model) == {}


def test_two_clusters_cannot_be_fewer():
    fitted = DSTC(2, kernel="linear", random_state=0).fit(X)
    fitted.stability_ = refitted(0.5, [0.9, 0.9])
    assert said(fitted)["Low stability"].endswith("differences between tasks.")


def test_clusters_of_one_task_are_named_from_19_rows_in_20(model):
    model.selection_ = model.selection_.__class__(**(vars(model.selection_) | {"center": "all"}))
    model.cluster_sizes_ = np.array([[95, 20, 20], [5, 20, 20], [0, 20, 20]])
    assert said(model)["Clusters of one task"].startswith(
        "Some clusters lie (almost) entirely in one task: cluster 0 in task 0. Such a cluster may be"
    )
    model.cluster_sizes_ = np.array([[94, 20, 20], [6, 20, 20], [0, 20, 20]])
    assert "Clusters of one task" not in said(model)


def test_a_user_of_the_command_line_reads_its_options(model):
    model.converged_ = False
    assert said(model)["Not converged"].endswith("falling. Raise max_iter or tol.")
    with on_command_line():
        assert said(model)["Not converged"].endswith("falling.")
    drawn = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=TASKS)
    drawn.converged_ = False
    with on_command_line():
        assert said(drawn)["Not converged"].endswith("Try another --seed.")


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.DegenerateSolutionWarning")
def test_relaxed_labels_are_said_to_be():
    options = {"solver": "cutting-plane", "solver_options": {"max_cuts": 1}}
    relaxed = DMTRC(3, kernel="linear", lambda1=0.01, random_state=0, **options).fit(X, tasks=TASKS)
    assert said(relaxed)["Relaxed labels"].endswith('started and when it stopped. Compare with solver="exchange".')


# -- what was chosen ---------------------------------------------------------------------------------------------------


def test_sizes_and_smoothness_are_said_as_they_were_set(model):
    found = {what: (value, why) for what, value, why in choices(model)}
    assert found["cluster sizes"] == ("free", "they follow from the labels that were chosen")
    assert found["regularisation"] == ("λ1 = λ2 = 0.0625", "a constant for this criterion and kernel")
    given = DMTRC(3, kernel="linear", sizes="balanced", lambda1=0.1, lambda2=0.2, random_state=0).fit(X, tasks=TASKS)
    found = {what: (value, why) for what, value, why in choices(given)}
    assert found["cluster sizes"] == ("'balanced'", "set by the user")
    assert found["regularisation"] == ("λ1 = 0.1, λ2 = 0.2", "set by the user")
    by_task = DMTRC(3, kernel="linear", sizes=0.0, lambda1={0: 0.1, 1: 0.2, 2: 0.3}, random_state=0).fit(X, tasks=TASKS)
    assert dict(entry[:2] for entry in choices(by_task))["regularisation"].startswith("λ1 by task (0.1 to 0.3), λ2 = ")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"structure": "none"}, "No number of clusters from 2 to 4 explains clearly more than chance does"),
        (
            {"votes": {3: 3, 2: 3, 4: 1}},
            r"2, 3 or 4 clusters: the data do not decide. 3 are shown; give a number if you know it",
        ),
        (
            {"number": 4, "votes": {4: 7}},
            r"4 clusters are at the end of the range .* there may be more. Try a wider",
        ),
        ({"number": 2, "votes": {2: 7}}, None),
        ({"votes": {3: 7}}, None),
    ],
)
def test_a_number_of_clusters_warns_of_its_doubts_only(choice, message, recwarn):
    asked = {"number": 3, "gaps": {2: 0.3, 3: 0.6, 4: 0.4}, "votes": {}, "structure": "clusters"}
    given = in_words(**(asked | choice))
    if message is None:
        warn_of_choice(given)
        assert not recwarn.list
    else:
        with pytest.warns(ClusterNumberWarning, match=message):
            warn_of_choice(given)


@pytest.mark.parametrize(
    ("together", "learns", "said"),
    [
        (1.2, True, "score higher than those of every task alone (+0.20)"),
        (-0.5, False, "score lower than those of every task alone (−1.50)"),
    ],
)
def test_whether_tasks_are_coupled_is_said_with_the_lead(together, learns, said):
    problem = SimpleNamespace(coupling=SimpleNamespace(learns=learns), matched=lambda point: (None, np.eye(2)))
    outcome = SimpleNamespace(problem=problem, point=SimpleNamespace(Z=None), few=None, relaxation=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, decision = decide_coupling("auto", outcome, None, 1.0 - together, None, SimpleNamespace(n_tasks=2), None)
    assert decision.reason == f"labels found in all tasks together {said}"
    assert [entry.category for entry in caught] == ([] if learns else [UncoupledWarning])
