"""summary() and the piece of HTML in notebooks: complete, escaped, and readable whatever the names."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from mtclust import DMTRC, DSTC
from mtclust.app.words import Facts, cautions, choices, sizes_table
from mtclust.selection import ClusterNumberChoice, CouplingDecision
from mtclust.util.messages import distinct_names
from tests.conftest import clustering_of, gaussian_tasks

X, Y, TASKS = gaussian_tasks()
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8}
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def found():
    names = np.array([EVIL, "東京 & Osaka", "\x1b[31mred\n\u202e"])
    return clustering_of(DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=names[TASKS]), X, names[TASKS])


# -- text ------------------------------------------------------------------------------------------------------------


def test_every_task_has_its_sizes_and_its_closest_task():
    fitted = DMTRC(3, kernel="linear", center="task", random_state=0).fit(X, tasks=np.array(["a", "b", "c"])[TASKS])
    correlation = fitted.task_correlation_ - 2 * np.eye(3)
    for row, name, sizes, near in zip(
        sizes_table(fitted, Facts.of(fitted))[1], fitted.tasks_, fitted.cluster_sizes_, correlation
    ):
        best = int(np.argmax(near))
        assert row == [name, "30", *map(str, sizes), f"{fitted.tasks_[best]} ({near[best]:.2f})"]


def test_names_cannot_break_the_terminal_or_the_columns(found):
    text = str(found.summary())
    assert repr(found.summary()) == text
    assert all(character.isprintable() or character == "\n" for character in text)
    lines = text.splitlines()
    start = lines.index("Rows per task and cluster") + 1
    table = lines[start : start + 4]
    places = {line.index("30" if k else "rows") + (2 if k else 4) for k, line in enumerate(table)}
    assert len(places) == 1  # the numbers end in the same column


def test_no_line_is_longer_than_the_terminal_and_nothing_is_lost_without_a_word():
    rows, _, tasks = gaussian_tasks(n_tasks=44, rows=26, n_clusters=13, d=8)
    names = np.array([f"a rather long name for the task of number {i}" for i in range(44)])[tasks]
    model = DSTC(13, kernel="linear", n_init=1, sizes="balanced", **QUICK).fit(rows, tasks=names)
    text = str(clustering_of(model, rows, names).summary())
    assert max(map(len, text.splitlines())) <= 100
    assert "and 4 more tasks" in text
    assert "smallest  median  largest" in text


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"sizes": "balanced"}, "'balanced': set by the user"),
        ({"sizes": 0.1}, "0.1: set by the user"),
        ({"sizes": np.full((3, 3), 10)}, "a table: set by the user"),
        ({}, "free: they follow from the labels that were chosen"),
        ({"lambda1": {0: 0.25, 1: 0.5, 2: 0.25}, "center": "task"}, "λ1 by task (0.25 to 0.5)"),
        ({"lambda2": 0.5, "center": "task"}, "λ1 = 0.00391, λ2 = 0.5"),
        ({"coupling": "none"}, "none: set by the user"),
        ({"coupling": 0.5}, "0.5: set by the user"),
        ({"kernel": "precomputed"}, "precomputed, criterion E"),
        ({"n_clusters": range(2, 5)}, "3: "),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_what_was_chosen_and_what_the_user_set_is_called_so(parameters, expected):
    rows = X @ X.T if parameters.get("kernel") == "precomputed" else X
    fitted = DMTRC(**{"n_clusters": 3, "kernel": "linear", **QUICK, **parameters}).fit(rows, tasks=TASKS)
    assert any(f"{value}: {why}".startswith(expected) for _, value, why in choices(fitted))


# -- what to be careful about ----------------------------------------------------------------------------------------


def test_a_good_model_raises_no_caution():
    assert cautions(DMTRC(3, random_state=0).fit(X, tasks=TASKS)) == []


def said(model):
    return [str(caution) for caution in cautions(model)]


def titles(model):
    return [caution.title for caution in cautions(model)]


def test_a_search_that_was_stopped_is_cautioned():
    fitted = DMTRC(3, kernel="linear", **QUICK).fit(X, tasks=TASKS)
    fitted.converged_, fitted.n_iter_ = False, 40
    text = "Not converged: The search was stopped after 40 rounds while the objective was still falling"
    assert said(fitted) == [text + ". Raise max_iter or tol."]
    fitted = DMTRC(3, kernel="linear", sizes="balanced", **QUICK).fit(X, tasks=TASKS)
    fitted.converged_, fitted.n_iter_ = False, 40
    assert said(fitted) == [
        "Not converged: The search was stopped after 40 rounds while the objective was still falling; another seed may "
        "give noticeably different clusters. Raise max_iter or tol."
    ]


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.DegenerateSolutionWarning")
def test_a_relaxation_is_cautioned():
    fitted = DMTRC(3, kernel="linear", solver="cutting-plane", solver_options={"max_cuts": 1}, **QUICK)
    assert "those of a convex relaxation" in said(fitted.fit(X, tasks=TASKS))[0]


def noted(fitted, **entries):
    """The model with other notes about its choices."""
    fitted.selection_ = replace(fitted.selection_, **entries)


def test_tasks_that_were_clustered_apart_are_said_to_be():
    fitted = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    noted(fitted, coupling=CouplingDecision("none", "they look unrelated"))
    assert said(fitted) == [
        "Tasks clustered apart: Every task was clustered on its own: they look unrelated. Cluster ids were matched "
        'afterwards. coupling="full" couples them all the same.'
    ]
    fitted.coupling = "none"
    assert said(fitted) == [], "the user asked for it"


def test_labels_that_differ_from_those_of_a_task_alone_are_no_accusation():
    """Shared labels may differ from those of a task alone because they are better: nothing tells which."""
    fitted = DMTRC(3, kernel="linear", coupling="auto", random_state=0).fit(X, tasks=TASKS)
    noted(fitted, coupling=CouplingDecision("full", "", statistic=2.0))
    assert cautions(fitted) == []


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.SmallTaskWarning")
def test_a_task_with_hardly_any_rows_gets_one_caution_not_three():
    kept = np.r_[0:60, 60:66, 89]  # 30, 30, 6 and 1 rows
    fitted = DMTRC(3, kernel="linear", coupling="auto", random_state=0).fit(X[kept], tasks=np.r_[TASKS[kept[:-1]], 3])
    noted(fitted, coupling=CouplingDecision("full", "", statistic=0.9))
    (found,) = cautions(fitted)  # six rows cannot contradict, and one row is in one cluster
    assert found.text == "Tasks 2 and 3 have fewer than 5 rows per cluster; clusters there rest on very few rows."


def test_clusters_that_are_not_there_are_cautioned():
    fitted = DSTC(3, kernel="linear", **QUICK).fit(X)
    fitted.loo_score_ = -0.02
    assert said(fitted) == ["No clear clusters: The clusters are separated no better than those of noise."]
    noted(fitted, n_clusters=ClusterNumberChoice(3, "", {}, structure="none"))
    (caution,) = said(fitted)
    assert caution.startswith("No clear clusters: A test finds no structure beyond single columns")


def test_tiny_clusters_are_named_unless_they_were_asked_for():
    sizes = {0: [29, 1, 0], 1: [10, 20, 0], 2: [28, 0, 2]}
    fitted = DSTC(3, kernel="linear", **{**QUICK, "sizes": sizes}).fit(X, tasks=TASKS)
    fitted.loo_score_ = 0.5
    assert cautions(fitted) == []
    fitted.sizes = "auto"
    (found,) = cautions(fitted)
    assert found.text == (
        '2 of 90 rows in cluster 2: too few to say much about. Try fewer clusters or sizes="balanced".'
    )


@pytest.mark.parametrize(
    ("sizes", "tiny"), [([56, 4], True), ([55, 5], False), ([1180, 20], True), ([1120, 80], False)]
)
def test_a_cluster_is_tiny_by_its_rows_or_by_its_share(sizes, tiny):
    fitted = DSTC(2, kernel="linear", **QUICK).fit(X)
    fitted.cluster_sizes_ = np.array([sizes])
    assert titles(fitted) == (["Tiny clusters"] if tiny else [])


def test_tasks_with_few_rows_are_cautioned():
    fitted = DSTC(2, kernel="linear", **QUICK).fit(X[:39], tasks=["a long task"] * 30 + ["short"] * 9)
    fitted.cluster_sizes_ = np.array([[15, 15], [5, 4]])
    assert titles(fitted) == ["Few rows"]
    assert "Task short has fewer than 5 rows per cluster" in said(fitted)[0]


# -- notebooks -------------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Text and tags of a page; tags that are not closed in order are an error."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.text, self._open = [], "", []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_is_well_formed_and_names_are_text(found):
    page = _Page(found.summary()._repr_html_())
    assert page.tags == ["pre"]
    assert page.text == str(found.summary())
    for name in distinct_names(found.model.tasks_.tolist()):
        assert name in page.text
    assert "東京 & Osaka" in page.text


def test_a_script_in_a_name_stays_text(found):
    html = found.summary()._repr_html_()
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html
