"""What is said when: headline, summary, report and cautions speak from one set of facts and never contradict."""

import itertools
import re

import numpy as np
import pytest

from mtclust import DMTRC, DSTC
from mtclust.app.report.page import render_report
from mtclust.app.words import APART, Facts, cautions, likeness_of_tasks, sizes_table
from mtclust.choose.record import ClusterNumberChoice
from mtclust.datasets import make_related_tasks
from mtclust.estimators.stability import DOUBTFUL, Stability
from tests.conftest import clustering_of
from tests.test_display import noted

SEPARATIONS = (-0.4, 0.0, 0.01, APART - 0.01, APART, 1.0)


def stability(overall, clusters=(0.9, 0.9, 0.9), n=90):
    return Stability(overall, np.ones(n), np.array(clusters), 10, 0.5)


CRAFTED = [
    Facts(clusters, tasks, 90, separation, structure, None if overall is None else stability(overall), decided)
    for clusters, tasks, separation, structure, overall, decided in itertools.product(
        (1, 3), (1, 2), SEPARATIONS, (None, "clusters", "none"), (None, 0.3, 0.6, 0.75, 1.0), (True, False)
    )
]


def test_a_headline_promises_clusters_only_where_everything_speaks_for_them():
    for facts in CRAFTED:
        said = facts.headline("90 rows")
        promised = "fall into" in said
        assert promised == (facts.standing == "apart")
        assert ("were divided" in said) == (facts.standing not in ("apart", "one"))
        if promised:
            assert facts.separation >= APART
            assert facts.comparable
            assert facts.structure == "clusters"
            assert facts.stability.overall >= DOUBTFUL
            assert facts.decided
        if facts.n_clusters == 1:
            assert said == "90 rows are one cluster."
            assert facts.figures == {}


def test_what_was_not_tested_is_not_praised():
    assert Facts(3, 2, 90, 0.9, None, stability(1.0)).standing == "divided"
    assert Facts(3, 2, 90, 0.9, "clusters", None).standing == "divided"
    assert Facts(3, 2, 90, 0.9, "clusters", stability(1.0), decided=False).standing == "divided"
    assert Facts(3, 2, 90, 0.9, "clusters", stability(1.0)).standing == "apart"


#: what the words of a headline need: tested for clusters, separation, agreement of refits, number decided
@pytest.mark.parametrize(
    ("structure", "separation", "overall", "decided", "said"),
    [
        ("clusters", 0.8, 0.9, True, "fall into 3 clusters."),
        ("clusters", APART - 0.01, 0.9, True, "were divided into 3 clusters that overlap."),
        ("clusters", 0.8, DOUBTFUL - 0.01, True, "were divided into 3 clusters."),
        ("clusters", 0.8, 0.9, False, "were divided into 3 clusters."),
        ("clusters", 0.8, None, True, "were divided into 3 clusters."),
        (None, 0.8, 0.9, True, "were divided into 3 clusters."),
        ("clusters", 0.0, 0.9, True, "were divided into 3 clusters, which may not be distinct groups."),
        ("clusters", 0.0, DOUBTFUL - 0.01, True, "were divided into 3 clusters, which may not be distinct groups."),
        ("none", 0.8, 0.9, True, "were divided into 3 clusters, which may not be distinct groups."),
        ("none", 0.8, None, True, "were divided into 3 clusters, which may not be distinct groups."),
        ("none", 0.8, DOUBTFUL - 0.01, True, "were divided into 3 clusters, which a test does not confirm."),
    ],
)
def test_each_headline_is_said_in_its_case_only(structure, separation, overall, decided, said):
    refits = None if overall is None else stability(overall)
    assert Facts(3, 2, 90, separation, structure, refits, decided).headline("90 rows") == f"90 rows {said}"


def test_a_column_that_alone_makes_the_clusters_is_named():
    facts = Facts(2, 2, 90, 0.9, "clusters", stability(1.0), column="weight")
    assert facts.headline("90 rows") == "90 rows were divided into 2 clusters by the column weight alone."


def test_every_sentence_has_the_one_figure_it_speaks_of():
    for facts in CRAFTED:
        figures = re.findall(r"separation of (−?\d\.\d\d)", facts.figures.get("separation", ""))
        assert figures == ([] if facts.n_clusters == 1 else [f"{facts.separation:.2f}".replace("-", "−")])
        assert ("stability" in facts.figures) == (facts.stability is not None and facts.n_clusters > 1)
        if "stability" in facts.figures:
            assert f"{facts.stability.overall:.2f}" in facts.figures["stability"]
            assert not re.search("stable|clear-cut", facts.figures["stability"]), "no verdicts"
    assert "of 0.00 (" in Facts(3, 2, 90, -0.001).figures["separation"]


@pytest.fixture(scope="module")
def fitted():
    X, _, tasks = make_related_tasks(2, n_samples=45, separation=6.0, random_state=0).X_y_tasks
    return (
        DMTRC(3, kernel="linear", lambda1=0.05, lambda2=0.05, sizes="balanced", random_state=0).fit(X, tasks=tasks),
        X,
        tasks,
    )


def titles(model):
    return {caution.title for caution in cautions(model)}


def test_cautions_follow_the_same_facts(fitted):
    model, _, _ = fitted
    assert Facts.of(model).standing == "divided"
    assert not titles(model) & {"No clear clusters", "Low stability"}
    for overall, clusters, expected in (
        (0.3, (0.3, 0.4, 0.2), "Low stability"), (0.95, (0.4, 0.5, 0.6), "Some clusters are not reproduced"),
        (0.9, (0.9, 0.9, 0.5), "Some clusters are not reproduced"), (0.95, (0.9, 0.9, 0.9), None),
    ):  # fmt: skip
        model.stability_ = stability(overall, clusters)
        unstable = {title for title in titles(model) if "stability" in title or "reproduced" in title}
        assert unstable == (set() if expected is None else {expected})
    del model.stability_


def test_far_rows_are_told_with_their_number(fitted):
    model, _, _ = fitted
    kept, model.outlier_scores_ = model.outlier_scores_, np.zeros(len(model.labels_))
    assert "Rows far from all others" not in titles(model)
    model.outlier_scores_[:1] = 0.9
    assert "1 row lies far from all others" in " ".join(map(str, cautions(model)))
    model.outlier_scores_[:3] = 0.9
    assert "3 rows lie far from all others" in " ".join(map(str, cautions(model)))
    model.outlier_scores_ = kept


def test_summary_report_and_headline_show_the_same_numbers(fitted):
    model, X, tasks = fitted
    model.stability(X, tasks=tasks, n_refits=3)
    page = render_report(clustering_of(model, X, tasks))
    figure = f"{model.loo_score_:.2f}"
    shown = dict(re.findall(r"<dt>(\w+): [^<]*</dt><dd>([^<]*)</dd>", page))
    assert shown == {"separation": figure, "stability": f"{model.stability_.overall:.2f}"}
    summary = " ".join(str(clustering_of(model, X, tasks).summary()).split())
    assert f"separation of {figure}" in summary
    assert Facts.of(model).figures["stability"] in summary
    assert "<h1>90 rows in 2 tasks fall into 3 clusters.</h1>" in page
    del model.stability_


def test_data_without_clusters_are_called_so_everywhere():
    noise = np.random.default_rng(0).normal(size=(90, 3))
    model = DSTC(3, random_state=0).fit(noise)
    noted(model, n_clusters=ClusterNumberChoice(3, "", {}, structure="none"))
    facts = Facts.of(model)
    assert facts.standing == "doubtful", "nobody has asked how stable they are"
    assert "which may not be distinct groups" in facts.headline("90 rows")
    assert any(str(caution).startswith("No clear clusters: A test finds no structure") for caution in cautions(model))
    model.stability(noise, n_refits=4)
    assert "which a test does not confirm" in Facts.of(model).headline("90 rows")


def test_tasks_with_one_model_are_compared_by_their_shares_of_clusters():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 1, 2, 0, 1], [30, 30, 30, 30, 45, 15])  # halves of two kinds, of two others, and 3 : 1
    tasks = np.repeat(["west", "east", "north"], 60)
    X = 9.0 * np.eye(3)[y] + rng.normal(size=(180, 3))
    model = DMTRC(3, kernel="linear", center="all").fit(X, tasks=tasks)
    kind, matrix = likeness_of_tasks(model)
    assert kind == "shares"
    east, north, west = range(3)
    np.testing.assert_allclose([matrix[east, west], matrix[north, west], matrix[west, west]], [0.5, 0.75, 1.0])
    assert "closest task" not in str(sizes_table(model, Facts.of(model))), "the sizes themselves are there"
    assert "Similarity of the tasks&#39; shares of clusters" in render_report(clustering_of(model, X, tasks))
    own = DMTRC(3, kernel="linear", center="task").fit(X, tasks=tasks)
    assert likeness_of_tasks(own)[0] in ("correlation", "similarity")
