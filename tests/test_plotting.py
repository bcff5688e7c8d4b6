"""The pictures: what is drawn is what the model holds, whatever the names, numbers of tasks and clusters."""

import io

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.plotting import (
    NEGATIVE,
    POSITIVE,
    cluster_style,
    plot_feature_covariance,
    plot_task_relationship,
    plot_tasks,
)
from tests.conftest import gaussian_tasks

mpl.use("Agg")

X, Y, TASKS = gaussian_tasks()
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8}
NAMES = np.array(["$\\frac$ & <b>", "customers of the northern region 2021", "customers of the northern region 2022"])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def related():
    return DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=NAMES[TASKS])


@pytest.fixture(scope="module")
def shared():
    frame = pd.DataFrame(X, columns=["height", "width", "$x$", "depth"]).assign(city=NAMES[TASKS])
    return DMTFC(3, kernel="linear", task_column="city", **QUICK).fit(frame), frame


def png(ax):
    out = io.BytesIO()
    np.atleast_1d(ax)[0].figure.savefig(out, format="png", dpi=50)
    return out.getvalue()


def tick_names(ax):
    return [text.get_text() for text in ax.get_xticklabels()]


# -- relationship ----------------------------------------------------------------------------------------------------


def squares(ax):
    (collection,) = ax.collections
    sides = [np.ptp(path.vertices[:, 0]) for path in collection.get_paths()]
    return np.array(sides), [to_hex(colour, keep_alpha=False).upper() for colour in collection.get_facecolors()]


@pytest.mark.parametrize("correlation", [True, False])
def test_areas_are_the_entries_and_colours_their_signs(correlation):
    model = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    model.task_correlation_ = np.array([[1, -0.5, 0.25], [-0.5, 1, 0], [0.25, 0, 1]])
    model.task_covariance_ = model.task_correlation_ / 3
    sides, colours = squares(plot_task_relationship(model, correlation=correlation))
    entries = model.task_correlation_.ravel()
    np.testing.assert_allclose(sides**2 / sides[0] ** 2, np.abs(entries), atol=1e-12)
    assert colours == [POSITIVE if entry >= 0 else NEGATIVE for entry in entries]


def test_names_are_text_never_formulas_and_long_ones_keep_both_ends(related):
    ax = plot_task_relationship(related)
    png(ax)  # "$\frac$" as a formula would be an error here
    names = tick_names(ax)
    assert names[0] == "$\\frac$ & <b>"
    assert names[1].startswith("customers of")
    assert names[1].endswith("region 2021")
    assert len(set(names)) == 3


def test_many_tasks_are_drawn_with_every_few_named():
    model = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    model.tasks_ = np.arange(70)
    model.task_correlation_ = np.eye(70)
    ax = plot_task_relationship(model)
    png(ax)
    assert len(ax.collections[0].get_paths()) == 70**2
    assert tick_names(ax) == [str(i) for i in range(0, 70, 2)]


def test_the_heat_map_shows_d_under_the_names_of_its_columns(shared):
    model, _ = shared
    ax = plot_feature_covariance(model)
    png(ax)
    np.testing.assert_array_equal(ax.images[0].get_array(), model.feature_covariance_)
    assert tick_names(ax) == ["height", "width", "$x$", "depth"]
    assert ax.get_xlabel() == "columns"


def test_of_many_features_those_with_the_largest_variance_are_shown(shared):
    model, _ = shared
    ax = plot_feature_covariance(model, max_features=2)
    best = np.argsort(-np.diag(model.feature_covariance_))[:2]
    np.testing.assert_array_equal(ax.images[0].get_array(), model.feature_covariance_[np.ix_(best, best)])
    assert ax.get_xlabel() == "2 of 4 columns, largest entries of the diagonal first"
    with pytest.raises(ValueError, match="max_features=0 must be at least 1"):
        plot_feature_covariance(model, max_features=0)


@pytest.mark.parametrize("task_column", [0, -5])
def test_columns_of_arrays_are_numbered_as_in_x(task_column):
    model = DMTFC(3, kernel="linear", task_column=task_column, **QUICK).fit(np.column_stack([TASKS, X]))
    assert tick_names(plot_feature_covariance(model)) == ["1", "2", "3", "4"]


def test_components_of_a_kernel_are_not_called_columns():
    model = DMTFC(3, n_components=4, kernel="rbf", **QUICK).fit(X, tasks=TASKS)
    assert plot_feature_covariance(model).get_xlabel() == "components of the kernel"


# -- tasks -----------------------------------------------------------------------------------------------------------


def points_by_colour(ax):
    """(colour, marker size is left out) → points."""
    return {to_hex(c.get_facecolors()[0], keep_alpha=False).upper(): c.get_offsets().data for c in ax.collections}


def test_every_row_is_drawn_once_and_a_cluster_has_one_colour_in_all_tasks(related):
    panels = plot_tasks(related, X, NAMES[TASKS])
    png(panels)
    assert len(panels) == 3
    for task, ax in enumerate(panels):
        mine = NAMES[TASKS] == related.tasks_[task]
        drawn = points_by_colour(ax)
        for cluster, size in enumerate(np.bincount(related.labels_[mine])):
            assert len(drawn[cluster_style(cluster)["color"]]) == size


def test_tasks_that_are_alike_look_alike_wherever_they_lie():
    """Equal tasks apart from a shift: equal panels."""
    rows = np.vstack([X[:30], X[:30] + 100.0])
    model = DMTRC(3, kernel="linear", **QUICK).fit(rows, tasks=np.repeat([0, 1], 30))
    first, second = (points_by_colour(ax) for ax in plot_tasks(model, rows, np.repeat([0, 1], 30)))
    assert first.keys() == second.keys()
    for colour in first:
        np.testing.assert_allclose(first[colour], second[colour], atol=1e-9)


def test_two_columns_are_drawn_as_they_are():
    frame = pd.DataFrame(X[:, :2], columns=["height", "$w"]).assign(city=NAMES[TASKS])
    model = DMTRC(3, kernel="linear", task_column="city", **QUICK).fit(frame)
    panels = plot_tasks(model, frame)
    png(panels)
    drawn = np.vstack(list(points_by_colour(panels[0]).values()))
    expected = X[NAMES[TASKS] == model.tasks_[0], :2]
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    assert (panels[0].get_xlabel(), panels[0].get_ylabel()) == ("height", "$w")


@pytest.mark.parametrize("form", ["sparse", "sparse two columns", "precomputed", "one column", "one task"])
def test_other_forms_of_data_are_drawn_too(form):
    kernel, rows, tasks = "linear", X, TASKS
    if form.startswith("sparse"):
        rows = sp.csr_array(X[:, :2] if "two" in form else X)
    elif form == "precomputed":
        kernel, rows = "precomputed", rbf_kernel(X)
    elif form == "one column":
        rows = X[:, :1]
    else:
        tasks = None
    model = DSTC(3, kernel=kernel, **QUICK).fit(rows, tasks=tasks)
    panels = plot_tasks(model, rows, tasks)
    png(panels)
    assert sum(len(points) for ax in panels for points in points_by_colour(ax).values()) == 90


def test_twelve_clusters_can_be_told_apart():
    styles = {tuple(sorted(cluster_style(cluster).items())) for cluster in range(12)}
    assert len(styles) == 12
    rows, _, tasks = gaussian_tasks(n_clusters=12, rows=24)
    model = DSTC(12, kernel="linear", **QUICK).fit(rows, tasks=tasks)
    panels = plot_tasks(model, rows, tasks)
    png(panels)
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [str(cluster) for cluster in range(12)]


def test_of_many_tasks_some_are_shown_and_others_can_be_asked_for():
    rows, _, tasks = gaussian_tasks(n_tasks=38, rows=6, n_clusters=2)
    model = DSTC(2, kernel="linear", n_init=1, **QUICK).fit(rows, tasks=tasks)
    panels = plot_tasks(model, rows, tasks)
    assert len(panels) == 36
    assert panels[0].figure.get_suptitle() == "36 of 38 tasks"
    assert [ax.get_title() for ax in plot_tasks(model, rows, tasks, which=[37, 2])] == ["task 37", "task 2"]
    with pytest.raises(ValueError, match="ids that were not in fit: 99"):
        plot_tasks(model, rows, tasks, which=[99])


def test_of_many_rows_some_are_drawn_and_the_panel_says_so(related, monkeypatch):
    monkeypatch.setattr("mtclust.plotting._MOST_POINTS", 10)
    panels = plot_tasks(related, X, NAMES[TASKS])
    assert panels[0].get_title().endswith("(10 of 30 rows)")
    assert sum(map(len, points_by_colour(panels[0]).values())) == 10


def test_other_rows_than_those_of_fit_need_their_labels(related):
    with pytest.raises(ValueError, match=r"X has 3 rows but the model was fitted on 90; .* labels=estimator.predict"):
        plot_tasks(related, X[:3], NAMES[:1].repeat(3))
    labels = related.predict(X[:5], tasks=NAMES[0])
    panels = plot_tasks(related, X[:5], NAMES[0], labels=labels, which=[NAMES[0]])
    assert sum(map(len, points_by_colour(panels[0]).values())) == 5
    with pytest.raises(ValueError, match="X has 5 rows but labels has 4"):
        plot_tasks(related, X[:5], NAMES[0], labels=labels[:4])


# -- all -------------------------------------------------------------------------------------------------------------


def test_given_axes_are_drawn_into_and_returned(related, shared):
    for plot, model in [(plot_task_relationship, related), (plot_feature_covariance, shared[0])]:
        _, ax = plt.subplots()
        assert plot(model, ax) is ax


def test_only_what_was_learned_can_be_drawn(related, shared):
    with pytest.raises(TypeError, match="estimator is a DMTFC; only DMTRC learns how the tasks are related"):
        plot_task_relationship(shared[0])
    with pytest.raises(TypeError, match="estimator is a DMTRC; only DMTFC learns a covariance of features"):
        plot_feature_covariance(related)
    for plot in (plot_task_relationship, plot_feature_covariance):
        with pytest.raises(NotFittedError):
            plot(DMTRC(3))
    with pytest.raises(NotFittedError):
        plot_tasks(DMTRC(3), X)


def test_a_loaded_model_gives_the_same_pictures(related, shared, tmp_path):
    model, frame = shared
    model.save(tmp_path / "features")
    related.save(tmp_path / "related")
    loaded, loaded_features = mtclust.load(tmp_path / "related"), mtclust.load(tmp_path / "features")
    assert png(plot_task_relationship(loaded)) == png(plot_task_relationship(related))
    assert png(plot_feature_covariance(loaded_features)) == png(plot_feature_covariance(model))
    assert png(plot_tasks(loaded_features, frame)) == png(plot_tasks(model, frame))
