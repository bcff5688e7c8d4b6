"""Rows in chunks give what the same rows give in memory (Dask's own threads; no cluster)."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import UncoupledWarning

from .conftest import SETTINGS, overlapping_tasks


def fitted(estimator, X, tasks=None, **settings):
    return estimator(**{"n_clusters": 3, **SETTINGS, **settings}).fit(X, tasks=tasks)


def in_chunks(X, tasks, rows=5000):
    # chunks of the ids differ from those of the rows on purpose
    return da.from_array(X, chunks=(rows, 2)), da.from_array(tasks, chunks=7000)


def assert_same_fit(chunked, whole):
    assert isinstance(chunked.labels_, da.Array)
    np.testing.assert_array_equal(chunked.labels_.compute(), whole.labels_)
    np.testing.assert_array_equal(chunked.single_task_labels_.compute(), whole.single_task_labels_)
    np.testing.assert_array_equal(chunked.cluster_sizes_, whole.cluster_sizes_)
    np.testing.assert_allclose(chunked.objective_, whole.objective_, rtol=1e-9)
    np.testing.assert_allclose(chunked.loo_score_, whole.loo_score_, rtol=1e-7)
    np.testing.assert_allclose(chunked.intercept_, whole.intercept_, atol=1e-8)
    assert chunked.n_iter_ == whole.n_iter_


@pytest.mark.parametrize(
    ("estimator", "order"), [(DMTRC, "random"), (DMTRC, "by task"), (DMTFC, "random"), (DSTC, "by task")]
)
def test_labels_are_those_of_the_fit_in_memory(estimator, order, data):
    X, tasks = data
    if order == "by task":
        sort = np.argsort(tasks, kind="stable")
        X, tasks = X[sort], tasks[sort]
    assert_same_fit(fitted(estimator, *in_chunks(X, tasks)), fitted(estimator, X, tasks))


@pytest.mark.parametrize(
    "settings",
    [
        {"sizes": (0.2, 0.5)},
        {"lambda1": "auto", "center": "task"},
        {"coupling": 0.5},
        {"coupling": "full", "fit_intercept": False},
        {"kernel": "rbf", "width": 1.0, "n_components": 20},
        {"n_components": 4},
        {"n_clusters": {0: 2, 1: 3, 2: 3}},
    ],
    ids=str,
)
def test_every_setting_of_the_primal_form_works_in_chunks(settings, data):
    X, tasks = data
    settings = {"coupling": "full", **settings}
    assert_same_fit(fitted(DMTRC, *in_chunks(X, tasks), **settings), fitted(DMTRC, X, tasks, **settings))


def test_rows_fetched_for_a_pass_may_turn_out_too_few(data, monkeypatch):
    X, tasks = data
    for module in ("rows.passes", "distributed.source"):
        monkeypatch.setattr(f"mtclust.{module}.first_gap", lambda gaps, *sizes: gaps.min())
    assert_same_fit(fitted(DMTRC, *in_chunks(X, tasks)), fitted(DMTRC, X, tasks))


def test_tasks_small_and_large_in_many_chunks():
    X, tasks = overlapping_tasks(n_tasks=2)
    tasks[::300] = 7  # a task of 120 rows
    tasks[5:8] = 9  # a task of three rows, in one chunk only
    settings = {"coupling": "full"}
    assert_same_fit(fitted(DMTRC, *in_chunks(X, tasks, 1000), **settings), fitted(DMTRC, X, tasks, **settings))


def test_refused_coupling_keeps_both_results(data, monkeypatch):
    monkeypatch.setattr("mtclust.choose.coupling.LARGEST_LOSS", -10.0)  # whatever coupling gains is not enough
    X, tasks = data
    X = np.where(tasks[:, None] == 2, X[:, ::-1] * [3, 1, 1, 1, 0.1], X)
    with pytest.warns(UncoupledWarning):
        whole = fitted(DMTRC, X, tasks)
    with pytest.warns(UncoupledWarning):
        chunked = fitted(DMTRC, *in_chunks(X, tasks))
    assert_same_fit(chunked, whole)
    coupled = [model.selection_["coupling"]["coupled_labels"] for model in (chunked, whole)]
    np.testing.assert_array_equal(coupled[0].compute(), coupled[1])


def test_data_frame_with_a_task_column_and_unknown_lengths(data):
    X, tasks = data
    frame = pd.DataFrame(X, columns=list("abcde")).assign(shop=np.array(["paris", "rome", "oslo"])[tasks])
    ddf = dd.from_pandas(frame, npartitions=7, sort=False)
    kept = ddf[ddf.a > -100]  # Dask cannot know how many rows are left
    chunked = DSTC(3, task_column="shop", **SETTINGS).fit(kept)
    assert_same_fit(chunked, DSTC(3, task_column="shop", **SETTINGS).fit(frame))
    assert chunked.tasks_.tolist() == ["oslo", "paris", "rome"]
    assert chunked.feature_names_in_.tolist() == [*"abcde", "shop"]
    scores = chunked.decision_function(kept)
    assert scores.shape == (len(X), 3)
    np.testing.assert_array_equal(scores.compute(), chunked.decision_function(frame))


def test_task_column_of_an_array(data):
    X, tasks = data
    both = np.column_stack([X, tasks])
    chunked = DSTC(3, task_column=-1, **SETTINGS).fit(da.from_array(both, chunks=(5000, 6)))
    assert_same_fit(chunked, fitted(DSTC, X, tasks))


def test_tasks_as_numpy_array_series_or_nothing(data):
    X, tasks = data
    rows = da.from_array(X, chunks=(9000, 5))
    whole = fitted(DSTC, X, tasks)
    assert_same_fit(fitted(DSTC, rows, tasks), whole)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")).assign(task=tasks), npartitions=4)
    assert_same_fit(fitted(DSTC, frame[list("abcde")], frame["task"]), whole)
    assert_same_fit(fitted(DSTC, rows), fitted(DSTC, X))


def test_predict_is_lazy_and_equal(data):
    X, tasks = data
    rows, ids = in_chunks(X, tasks)
    model = fitted(DSTC, X, tasks)
    for given in (ids, tasks):
        found = model.predict(rows, tasks=given)
        assert isinstance(found, da.Array)
        np.testing.assert_array_equal(found.compute(), model.predict(X, tasks=tasks))
    np.testing.assert_array_equal(model.predict(rows, tasks=1).compute(), model.predict(X, tasks=1))


def test_few_rows_are_fitted_in_memory():
    X, tasks = overlapping_tasks(n_rows=300)
    model = fitted(DMTRC, *in_chunks(X, tasks, 100))
    assert model.labels_.chunks == ((100, 100, 100),)
    np.testing.assert_array_equal(model.labels_.compute(), fitted(DMTRC, X, tasks).labels_)


def test_labels_are_judged_on_the_same_rows_as_in_memory_where_some_tasks_are_left_out():
    """Settings are chosen, and labels judged, on 40 tasks where there are more."""
    rng = np.random.default_rng(0)
    tasks = rng.permutation(np.repeat(np.arange(105), np.arange(105) + 1001))
    X = rng.normal(size=(len(tasks), 2)) + 5 * np.eye(2)[rng.integers(2, size=len(tasks))]
    whole, chunked = (fitted(DSTC, *rows, n_clusters=2, n_init=1) for rows in ((X, tasks), in_chunks(X, tasks)))
    assert whole.selection_.chosen_on == chunked.selection_.chosen_on
    assert "40 tasks" in whole.selection_.chosen_on
    assert whole.loo_score_ > 0.3
    assert chunked.loo_score_ == pytest.approx(whole.loo_score_, abs=1e-6)


def test_progress_is_told_pass_by_pass(data, capsys):
    X, tasks = data
    fitted(DSTC, *in_chunks(X, tasks), verbose=2)
    said = capsys.readouterr().out
    assert "[DSTC] 36000 rows of 3 tasks in 8 chunks\n" in said
    assert "pass 1\n" in said
    assert "pass 2\n" in said


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"kernel": "precomputed"}, 'kernel="precomputed"'),
        ({"solver": "cutting-plane"}, 'solver="cutting-plane"'),
        ({"solver_options": {"form": "dual"}}, 'solver_options["form"]="dual"'),
    ],
)
def test_what_needs_all_pairs_of_rows_is_refused(settings, named, data):
    with pytest.raises(ValueError, match="needs a kernel matrix of all rows at once") as error:
        fitted(DSTC, *in_chunks(*data), **settings)
    assert named in str(error.value)
    assert "X.compute()" in str(error.value)


def test_wrong_input_is_named(data):
    X, tasks = data
    rows, ids = in_chunks(X, tasks)
    with pytest.raises(TypeError, match="tasks is a Dask collection but X is ndarray"):
        fitted(DSTC, X, ids)
    with pytest.raises(ValueError, match="tasks has 35990 entries but X has 36000 rows"):
        fitted(DSTC, rows, ids[10:])
    with pytest.raises(ValueError, match="expected an array of shape"):
        fitted(DSTC, rows[:, 0])
    with pytest.raises(TypeError, match=r"columns that are not numbers: \['b'\]"):
        fitted(DSTC, dd.from_pandas(pd.DataFrame({"a": [1.0], "b": ["x"]}), npartitions=1))
    with pytest.raises(ValueError, match="task_column='shop' is not a column"):
        fitted(DSTC, dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1), task_column="shop")
    with pytest.raises(ValueError, match="tasks and task_column were both given"):
        fitted(DSTC, rows, ids, task_column=0)
    holes = X.copy()
    holes[17, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        fitted(DSTC, da.from_array(holes, chunks=5000), tasks)
    unnamed = pd.DataFrame({"a": np.arange(4.0), "shop": ["x", None, "y", None]})
    with pytest.raises(ValueError, match="of tasks has 1 missing values"):
        fitted(DSTC, dd.from_pandas(unnamed, npartitions=2), task_column="shop")
    with pytest.raises(ValueError, match="ids that were not in fit"):
        fitted(DSTC, X, tasks).predict(rows, tasks=ids + 1).compute()


@pytest.fixture(autouse=True)
def local_threads():
    with dask.config.set(scheduler="threads"):
        yield
