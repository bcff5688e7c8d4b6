"""What the report says, against what can be computed by hand or by scikit-learn."""

import copy
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.app.findings import Findings
from mtclust.app.report.page import (
    MOST_PER_TASK,
    SIDE,
    positions,
    render_report,
    report_content,
)
from mtclust.app.tables.columns import Feature
from mtclust.app.words import TASKS_SHOWN, cautions, likeness_of_tasks, natural_order
from mtclust.exceptions import ClusterNumberWarning
from mtclust.util.messages import on_command_line
from tests.conftest import clustering_of, gaussian_tasks


def titles(model, warned=()):
    return {caution.title for caution in cautions(model, warned)}


def findings_of(X, tasks, labels, m, C, **more):
    return Findings(X, tasks, labels, (m, C), [Feature(f"f{k}", "number") for k in range(X.shape[1])], **more)


def places(traits):
    """Number of the feature, scope and task of each."""
    return [(int(trait.feature.name[1:]), trait.scope, trait.task) for trait in traits]


@pytest.fixture(scope="module")
def fitted():
    X, _, tasks = gaussian_tasks(n_tasks=3, rows=40, seed=1)
    return DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=tasks), X, tasks


@pytest.mark.parametrize("sparse", [False, True])
def test_effects_are_mean_differences_in_standard_deviations(sparse):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((90, 5)) < 0.6, rng.normal(size=(90, 5)), 0.0)
    tasks, labels = np.repeat([0, 1, 2], 30), rng.integers(0, 3, 90)
    X[labels == 1, 2] += 3
    best = findings_of(sp.csr_matrix(X) if sparse else X, tasks, labels, 3, 3).traits[1][0]
    assert best.feature.name == "f2"
    for task in range(3):
        own, part = labels[tasks == task] == 1, X[tasks == task, 2]
        expected = (part[own].mean() - part[~own].mean()) / part.std()
        assert best.effects[task] == pytest.approx(expected)
    assert (best.inside, best.outside) == pytest.approx((X[labels == 1, 2].mean(), X[labels != 1, 2].mean()))


def test_of_noise_only_what_differs_in_all_rows_together_is_said():
    rng = np.random.default_rng(0)
    found = findings_of(rng.normal(size=(600, 50)), np.repeat([0, 1], 300), np.tile(np.arange(3), 200), 2, 3)
    assert {scope for own in found.traits for _, scope, _ in places(own)} <= {"rows", "between"}
    assert all(found.traits)


def test_what_holds_in_most_tasks_is_said_where_nothing_holds_in_all():
    rng = np.random.default_rng(0)
    X, tasks, labels = rng.normal(size=(300, 2)), np.repeat([0, 1, 2], 100), np.tile(np.arange(2), 150)
    X[labels == 0, 0] += 2.0 * (tasks[labels == 0] != 2) - 0.5 * (tasks[labels == 0] == 2)
    assert places(findings_of(X, tasks, labels, 3, 2).traits[0])[0] == (0, "most", None)


def test_a_task_without_the_cluster_is_left_out():
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.1], [0.2]])
    (trait,) = findings_of(
        np.repeat(X, 10, axis=0), np.repeat([0, 0, 0, 0, 1, 1], 10), np.repeat([0, 1, 0, 1, 0, 0], 10), 2, 2
    ).traits[1]
    assert np.isnan(trait.effects[1])
    assert trait.effect == pytest.approx(2.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_axes_are_principal_components(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) @ np.diag([5, 3, 1, 1, 1, 1]) + 2
    _, places = positions(sp.csr_matrix(X) if sparse else X, np.zeros(60, dtype=int), [0])
    pca = PCA(2).fit(X)
    expected = pca.transform(X)
    for axis in range(2):
        assert abs(np.corrcoef(places[0][:, axis], expected[:, axis])[0, 1]) > 0.999
    assert places[0].min() >= 0
    assert places[0].max() <= SIDE


def test_many_rows_are_sampled_and_the_report_says_so():
    rng = np.random.default_rng(0)
    drawn, _ = positions(rng.normal(size=(4000, 2)), np.repeat([0, 1], [3900, 100]), [0, 1])
    assert [len(rows) for rows in drawn.values()] == [MOST_PER_TASK, 100]
    X, _, tasks = gaussian_tasks(n_tasks=2, rows=40)
    model = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    content = render_report(clustering_of(model, X, tasks))
    assert "drawn at random" not in content


@pytest.mark.parametrize("shape", [(3, 1), (2, 4), (1, 2)])
def test_tiny_tasks_have_a_picture(shape):
    X = np.arange(np.prod(shape), dtype=float).reshape(shape)
    for rows in (X, sp.csr_matrix(X)):
        _, places = positions(rows, np.zeros(len(X), dtype=int), [0])
        assert places[0].shape == (len(X), 2)


def test_every_pair_of_tasks_has_its_correlation(fitted):
    model, _, _ = fitted
    np.testing.assert_array_equal(likeness_of_tasks(model)[1], model.task_correlation_)


def test_of_many_tasks_the_largest_are_drawn():
    X, _, tasks = gaussian_tasks(n_tasks=TASKS_SHOWN + 2, rows=6, n_clusters=2)
    keep = ~((tasks == 7) & (np.arange(len(tasks)) % 6 > 3)) & ~((tasks == 9) & (np.arange(len(tasks)) % 6 > 3))
    model = DSTC(2, kernel="linear", sizes="balanced", lambda1=0.1, n_init=2, random_state=0)
    model.fit(X[keep], tasks=tasks[keep])
    found = clustering_of(model, X[keep], tasks[keep])
    shown = report_content(found)["shown"]
    assert sorted(shown) == sorted(set(range(TASKS_SHOWN + 2)) - {7, 9})
    assert f"the {TASKS_SHOWN} largest of {TASKS_SHOWN + 2} tasks" in render_report(found)


def test_good_clusters_of_related_tasks_need_no_caution(fitted):
    assert titles(fitted[0]) == set()


def test_unrelated_tasks_are_said_to_be_clustered_apart():
    """Every task has clusters of its own and a weaker contrast in common."""
    rng = np.random.default_rng(0)
    X, tasks = 0.3 * rng.normal(size=(400, 5)), np.repeat(np.arange(4), 100)
    for task in range(4):
        own, common = (rng.permutation(np.arange(100) % 2) * 2 - 1 for _ in range(2))
        X[tasks == task, 0] += 0.95 * common
        X[tasks == task, 1 + task] += own
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DMTRC(2, kernel="linear", center="task", random_state=0).fit(X, tasks=tasks)
    found = titles(model, caught)
    assert "Tasks clustered apart" in found
    assert "Warning" not in found


def batches(shift=30.0, tasks=("0", "1", "2")):
    """Two kinds of rows in every task, and levels of the tasks so far apart that one origin sees nothing else."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40 * len(tasks), 2))
    X[:, 0] += shift * np.repeat(np.arange(len(tasks)), 40)
    return X, np.repeat(np.array(tasks), 40)


def test_clusters_that_are_only_tasks_are_said_to_be_and_nothing_was_set_by_hand():
    X, tasks = batches(tasks=[f"Hospital No. {k} of the Northern Region" for k in range(3)])
    model = DMTRC(3, kernel="linear", center="all", random_state=0).fit(X, tasks=tasks)
    assert sorted(model.cluster_sizes_.sum(axis=0)) == [40, 40, 40]
    found = {caution.title: caution.text for caution in cautions(model)}
    assert found["Clusters of one task"].startswith(
        "Every cluster lies (almost) entirely in one task: cluster 0 in task Hospital No. "
    )
    assert 'center="task" compares rows within tasks only.' in found["Clusters of one task"]
    assert "Tiny clusters" not in found, "a task may lack clusters here"
    with on_command_line():
        (said,) = [caution.text for caution in cautions(model) if caution.title == "Clusters of one task"]
    assert said.endswith("--center task compares rows within tasks only.")
    assert "Clusters of one task" not in titles(DMTRC(2, kernel="linear", center="task").fit(X, tasks=tasks))


def test_long_names_of_tasks_are_told_apart_in_cautions():
    rng = np.random.default_rng(0)
    names = [f"Hospital No. {k} of the Northern Region" for k in range(4)]
    model = DSTC(3, kernel="linear", sizes=1.0, random_state=0).fit(rng.normal(size=(24, 2)), tasks=np.repeat(names, 6))
    (few,) = [caution.text for caution in cautions(model) if caution.title == "Few rows"]
    assert few.startswith("Tasks Hospital No. 0 of the Northern Region, Hospital No. 1 of the Northern Region, ")


def test_tiny_clusters_and_few_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(39, 6))
    X[:3] += 20
    model = DSTC(2, kernel="linear", sizes=1.0, random_state=0, lambda1=1.0).fit(X, tasks=np.repeat([0, 1], [30, 9]))
    assert "Few rows" in titles(model)
    model.cluster_sizes_ = np.array([[27, 3], [9, 0]])
    (tiny,) = [caution.text for caution in cautions(model) if caution.title == "Tiny clusters"]
    assert "3 of 39 rows in cluster 1" in tiny
    assert tiny.endswith('Try fewer clusters or sizes="balanced".')
    with on_command_line():
        (tiny,) = [caution.text for caution in cautions(model) if caution.title == "Tiny clusters"]
    assert tiny.endswith("Try fewer clusters (--clusters) or --sizes balanced.")


def test_noise_is_called_noise_and_clusters_are_not(fitted):
    rng = np.random.default_rng(1)
    found = []
    for seed in range(3):
        X = np.random.default_rng(seed).normal(size=(60, 4))
        model = DSTC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=rng.permutation(60) % 2)
        found.append("No clear clusters" in titles(model))
    assert any(found)
    assert "No clear clusters" not in titles(fitted[0])


def figures(found):
    """The figures at the top of the page, by their names."""
    return dict(re.findall(r"<dt>(\w+): [^<]*</dt><dd>([^<]*)</dd>", render_report(found)))


def test_a_headline_promises_no_more_than_the_cautions_allow(fitted):
    model, X, tasks = fitted
    assert report_content(clustering_of(model, X, tasks))["headline"] == (
        "120 rows in 3 tasks were divided into 3 clusters."
    ), "nobody has asked how stable they are"
    noise = copy.copy(model)
    noise.loo_score_ = -0.1
    content = report_content(clustering_of(noise, X, tasks, task_column="shop"))
    assert content["headline"] == (
        "120 rows in 3 tasks (shop) were divided into 3 clusters, which may not be distinct groups."
    )
    assert figures(clustering_of(noise, X, tasks)) == {"separation": "−0.10"}
    assert "separated no better than those of noise" in " ".join(map(str, content["cautions"]))
    assert "No clear clusters" in [caution.title for caution in content["cautions"]]


def test_one_figure_for_one_thing(fitted):
    """The score stands once, beside what it means, and no figure of noise contradicts it."""
    model, X, tasks = fitted
    found = clustering_of(model, X, tasks)
    assert figures(found) == {"separation": f"{model.loo_score_:.2f}"}
    assert "score" not in [what for what, _, _ in report_content(found)["choices"]]


def test_names_of_clusters_stand_in_cautions():
    X = np.vstack([np.zeros((30, 2)), np.ones((1, 2))]) + np.random.default_rng(0).normal(size=(31, 2)) / 100
    model = DSTC(2, kernel="linear", lambda1=0.1, sizes=(0.01, 1), random_state=0).fit(X)
    assert "1 of 31 rows in the odd one: too few" in " ".join(c.text for c in cautions(model, names={1: "the odd one"}))


def test_a_task_is_not_taken_for_a_cluster_of_its_name():
    X = np.random.default_rng(0).normal(size=(36, 2))
    model = DSTC(2, sizes="balanced", random_state=0).fit(X, tasks=np.repeat(["a", "cluster 1"], [30, 6]))
    said = " ".join(caution.text for caution in cautions(model, names={1: "the odd one"}))
    assert "Task cluster 1 has fewer" in said


def test_a_search_that_was_stopped_is_said_to_be(fitted):
    X, _, tasks = gaussian_tasks(spread=2.0, rows=30, seed=4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DMTRC(3, kernel="linear", sizes="balanced", coupling="full", max_iter=1, tol=0.0, random_state=0)
        model.fit(X, tasks=tasks)
    assert not model.converged_
    assert "Not converged" in titles(model, caught)


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.ClusterNumberWarning")
def test_numbers_that_the_data_do_not_decide_between_are_one_command_away():
    X, _, tasks = gaussian_tasks(n_tasks=3, rows=40, seed=1)
    model = DMTRC("auto", kernel="linear", random_state=0).fit(X, tasks=tasks)
    number = model.selection_.n_clusters
    reason = "2, 3 or 5: the data do not decide (4 of 7 samples choose 3); shown: 3"
    model.selection_ = replace(model.selection_, n_clusters=replace(number, chosen=3, reason=reason, shown=[2, 3, 5]))
    (said,) = [caution for caution in cautions(model) if caution.title == "Number of clusters"]
    assert said.text == f"{reason}. To see the others, cluster again with n_clusters=2 or 5."
    with on_command_line():
        assert "with --clusters 2 or 5." in " ".join(map(str, cautions(model)))
    model.selection_ = replace(model.selection_, n_clusters=replace(number, shown=[number.chosen]))
    assert "Number of clusters" not in titles(model)
    assert "Number of clusters" in titles(model, [ClusterNumberWarning("12 clusters are the end of the range")])


def test_other_warnings_are_passed_on(fitted):
    (caution,) = cautions(fitted[0], [UserWarning("something odd")])
    assert (caution.title, caution.text) == ("Warning", "something odd")


def test_values_are_shown_as_in_the_file(fitted):
    model, X, tasks = fitted
    page = render_report(clustering_of(model, X, tasks, scale=10.0, offset=1000.0))
    sides = re.findall(r"<td>([^<]+)</td><td>([^<]+)</td>\s*<td class=\"strength", page)
    prices = [float(value.replace(",", "")) for pair in sides for value in pair]
    assert prices
    assert all(800 < price < 1200 for price in prices)


def test_shared_features_of_dmtfc_are_listed():
    X, _, tasks = gaussian_tasks(n_tasks=2, rows=40)
    X = np.column_stack([X, np.random.default_rng(0).normal(scale=0.01, size=len(X))])
    model = DMTFC(3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    model.kernel = "auto"  # a linear kernel that was chosen counts like one that was given
    content = report_content(clustering_of(model, X, tasks))
    assert content["shared_features"][0][0] == f"f{np.argmax(np.diag(model.feature_covariance_))}"
    assert sum(share for _, share in content["shared_features"]) == pytest.approx(1.0)
    assert "Which features the tasks share" in render_report(clustering_of(model, X, tasks))


def test_json_in_the_page_cannot_end_its_element(fitted):
    model, X, tasks = fitted
    page = render_report(clustering_of(model, X, tasks).rename({0: "</script><!-- &"}))
    text = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    assert not re.search(r"[<>&]", text)
    assert json.loads(text)["clusters"][0] == "</script><!-- &"


def test_the_page_refers_to_nothing_outside(fitted):
    model, X, tasks = fitted
    page = render_report(clustering_of(model, X, tasks))
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", without_names)


def test_names_of_thousands_of_digits_and_marks_that_turn_the_order_of_reading(fitted):
    X, tasks = fitted[1], fitted[2]
    names = np.array(["9" * 5000, "shop \u202e1", "\u0663 \u2067shop"])
    model = DSTC(3, kernel="linear", lambda1=0.1, sizes="balanced", random_state=0).fit(X, tasks=names[tasks])
    page = render_report(clustering_of(model, X, names[tasks], files=("sales\u202e.csv",)))
    assert not set(page) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200e\u200f")
    assert "sales\\u202e.csv" in page
    assert "shop \\u202e1" in page


def test_names_are_in_the_order_of_their_numbers():
    names = ["shop 10", "shop 9", "shop 010", "shop", "9" * 5000, "1" + "0" * 5000, "SHOP 2"]
    assert [names[i][:8] for i in natural_order(names)] == [
        "9" * 8, "10000000", "shop", "SHOP 2", "shop 9", "shop 010", "shop 10",
    ]  # fmt: skip
