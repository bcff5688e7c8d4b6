"""fit_task: a task that was not in fit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.metrics import match_clusters, nmi
from tests.conftest import gaussian_tasks

X, Y, TASKS = gaussian_tasks(n_tasks=4)
OLD, NEW = TASKS < 3, TASKS == 3


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_new_task_gets_labels_that_mean_what_they_mean_in_the_old_ones(method, kernel, monkeypatch):
    model = method(3, kernel=kernel, width=1.0, lambda1=0.02, random_state=0).fit(X[OLD], tasks=TASKS[OLD])
    before = model.labels_.copy()
    new = model.fit_task(X[NEW])
    assert nmi(Y[NEW], new.labels_) == 1
    both = np.append(model.labels_, new.labels_)
    assert match_clusters(np.append(Y[OLD], Y[NEW]), both)[1] == 1
    np.testing.assert_array_equal(new.predict(X[NEW]), new.labels_)
    monkeypatch.setattr("mtclust.core.model._BLOCK", 7)  # rows are scored in blocks
    np.testing.assert_array_equal(new.predict(X[NEW][::-1]), new.labels_[::-1])
    np.testing.assert_array_equal(model.labels_, before)
    if method is DMTRC:
        assert new.task_covariance_.shape == (4, 4)
        assert np.trace(new.task_covariance_) == pytest.approx(1)
        assert new.task_correlation_[-1] == pytest.approx(1)
        if kernel == "linear":
            assert np.all(new.task_correlation_[:3] > 0.8)
    else:
        assert new.task_covariance_ is None


@pytest.mark.slow
def test_a_few_rows_are_clustered_better_with_the_old_tasks_than_alone():
    """With nine noisy rows the new task leans on what the others have learned."""
    gains = []
    for seed in range(8):
        data, y, tasks = gaussian_tasks(n_tasks=4, rows=40, spread=2.0, seed=seed, d=6)
        model = DMTRC(3, kernel="linear", sizes="balanced", coupling="full", random_state=0)
        model.fit(data[tasks < 3], tasks=tasks[tasks < 3])
        few = np.flatnonzero(tasks == 3)[:9]
        alone = DSTC(3, kernel="linear", sizes="balanced", random_state=0).fit(data[few])
        gains.append(nmi(y[few], model.fit_task(data[few]).labels_) - nmi(y[few], alone.labels_))
    assert np.mean(gains) > 0.1


def test_sparse_rows_and_sizes():
    model = DMTRC(3, kernel="linear", random_state=0).fit(sp.csr_matrix(X[OLD]), tasks=TASKS[OLD])
    new = model.fit_task(X[NEW], sizes=[[12, 10, 8]])
    assert sorted(np.bincount(new.labels_).tolist()) == [8, 10, 12]


def test_refused_coupling_clusters_the_new_task_alone():
    model = DMTRC(3, kernel="linear", coupling="none", random_state=0).fit(X[OLD], tasks=TASKS[OLD])
    new = model.fit_task(X[NEW])
    assert new.task_covariance_ is None
    assert nmi(Y[NEW], new.labels_) == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [(X[NEW][:, :2], "X has 2 features, but DMTRC is expecting 4"), (np.full((5, 4), np.nan), "contains NaN")],
)
def test_rows_that_cannot_be_used(rows, message):
    model = DMTRC(3, kernel="linear", random_state=0).fit(X[OLD], tasks=TASKS[OLD])
    with pytest.raises(ValueError, match=message):
        model.fit_task(rows)


def test_predicting_with_other_columns_than_the_new_task_had():
    new = DMTRC(3, kernel="linear", random_state=0).fit(X[OLD], tasks=TASKS[OLD]).fit_task(X[NEW])
    with pytest.raises(ValueError, match="X has 2 features"):
        new.predict(X[NEW][:, :2])


def test_a_precomputed_kernel_has_no_rows_to_extend():
    model = DSTC(3, kernel="precomputed", random_state=0).fit(X[OLD] @ X[OLD].T, tasks=TASKS[OLD])
    with pytest.raises(ValueError, match="fit_task needs the rows themselves"):
        model.fit_task(X[NEW])


def test_a_table_of_sizes_given_as_tuples_is_no_pair_of_fractions():
    sizes = ((10, 20), (15, 15))
    model = DSTC(2, kernel="linear", lambda1=0.02, sizes=sizes, random_state=0).fit(X[:60], tasks=TASKS[:60])
    assert model.cluster_sizes_.tolist() == [[10, 20], [15, 15]]
    assert model.fit_task(X[NEW]).labels_.shape == (30,)
    given = model.fit_task(X[NEW], sizes=((12, 18),))
    assert np.bincount(given.labels_).tolist() == [12, 18]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("form", ["dual", "primal"])
def test_a_tiny_task_lacks_no_cluster_that_nobody_excluded(method, form):
    few = np.r_[:30, 30:32, 60:90]
    model = method(3, kernel="linear", sizes="auto", solver_options={"form": form}, random_state=0)
    model.fit(X[few], tasks=TASKS[few])
    assert np.isfinite(model.decision_function(X[few], tasks=TASKS[few])).all()
    for rows in (1, 2, 4):
        new = model.fit_task(X[NEW][:rows])
        assert np.isfinite(new.decision_function(X[NEW])).all()
        excluded = model.fit_task(X[NEW][:rows], sizes=((rows, 0, 0),)).decision_function(X[NEW])
        assert np.isneginf(excluded).any(axis=0).tolist() == [False, True, True]


@pytest.mark.parametrize("task_column", [None, "shop"])
@pytest.mark.parametrize("what", ["fit_task", "predict", "predict_proba", "decision_function"])
def test_columns_of_frames_are_those_of_fit(what, task_column):
    frame = pd.DataFrame(X, columns=list("pqrs"))
    old = frame[OLD] if task_column is None else frame[OLD].assign(shop=TASKS[OLD])
    model = DMTRC(3, kernel="linear", task_column=task_column, random_state=0)
    model.fit(old, tasks=TASKS[OLD] if task_column is None else None)
    rows = frame[NEW]
    new = model.fit_task(rows)
    act = getattr(model if what == "fit_task" else new, what)
    act(pl.DataFrame({name: rows[name].to_numpy() for name in "pqrs"}))
    others = pl.DataFrame({name: rows[name].to_numpy() for name in "srqp"})
    for table in (rows[list("srqp")], rows.rename(columns={"p": "z"}), others):
        with pytest.raises(ValueError, match="feature names should match"):
            act(table)


def test_rows_under_a_mask_are_no_rows_of_a_new_task():
    model = DMTRC(3, kernel="linear", random_state=0).fit(X[OLD], tasks=TASKS[OLD])
    masked = np.ma.array(X[NEW], mask=X[NEW] > X[NEW].mean())
    for act in (model.fit_task, model.fit_task(X[NEW]).predict):
        with pytest.raises(ValueError, match="X is a masked array with masked values"):
            act(masked)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_cluster_that_no_task_has_is_predicted_for_none_unless_sizes_ask_for_it(kernel, tmp_path):
    """Four clusters of rows with three values, in a common frame: one is left without rows."""
    rows, tasks = np.repeat([[-1.0], [0.0], [1.0]], 10, axis=0), np.arange(30) % 2
    model = DMTRC(4, kernel=kernel, center="all", random_state=0).fit(rows, tasks=tasks)
    lacks = model.cluster_sizes_.sum(axis=0) == 0
    assert lacks.tolist() == [False, False, False, True]
    model.save(tmp_path / "model")
    for same in (model, mtclust.load(tmp_path / "model")):
        between = np.linspace(-2, 2, 80)[:, None]
        for other in (same.fit_task(rows[::-1]), same):
            given = {"tasks": np.arange(80) % 2} if other is same else {}
            np.testing.assert_array_equal(other.decision_function(between, **given)[:, lacks], -np.inf)
            assert set(other.predict(between, **given)) <= {0, 1, 2}
            assert not other.predict_proba(between, **given)[:, lacks].any()
        sizes = same.fit_task(rows[:8], sizes=[[2, 2, 0, 4]])
        assert np.bincount(sizes.labels_).tolist() == [2, 2, 0, 4]
        assert np.isfinite(sizes.decision_function(between)).all(axis=0).tolist() == [True, True, False, True]
