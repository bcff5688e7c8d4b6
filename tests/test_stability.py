"""What refits on subsamples say of a model."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks, make_related_tasks
from mtclust.estimators.stability import DOUBTFUL, Stability, compared, refitted, subsample
from tests.test_contract import CLASSES, DATA, FORMS, TASKS

QUICK = {"kernel": "linear", "lambda1": 0.05, "lambda2": 0.02, "random_state": 0, "n_init": 3}


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "dask"], ids=lambda form: form.name)
def test_clear_clusters_are_stable_in_every_form(form, method, tmp_path):
    model = form.fitted(method)
    found = model.stability(form.rows, tasks=form.tasks, n_refits=4)
    assert model.stability_ is found
    assert found.overall > 0.9
    assert found.rows.shape == (len(DATA),)
    assert np.nanmean(found.rows) > 0.95
    assert found.clusters.shape == (3,)
    assert found.clusters.min() > 0.9
    model.save(tmp_path / "model")
    loaded = mtclust.load(tmp_path / "model").stability_
    np.testing.assert_array_equal(loaded.rows, found.rows)
    assert str(loaded) == str(found)
    assert not hasattr(model.fit(form.rows, tasks=form.tasks), "stability_")


@pytest.mark.parametrize("options", [
    {"center": "all"}, {"n_clusters": {0: 3, 1: 2, 2: 3}}, {"coupling": "none"}, {"kernel": "rbf", "lambda1": "auto"},
    {"sizes": "balanced"}, {"sizes": [[25, 25, 20]] * 3}, {"lambda1": {0: 0.1, 1: 0.05, 2: 0.2}},
    {"fit_intercept": False},
    {"kernel": "auto", "lambda1": "auto", "lambda2": "auto"}, {"kernel": lambda A, B: A @ B.T},
], ids=lambda options: ", ".join(options))  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_settings_of_any_kind_are_kept(options):
    arguments = {"n_clusters": 3} | QUICK | ({"lambda2": "auto"} if options.get("lambda1") == "auto" else {}) | options
    model = DMTRC(**arguments).fit(DATA, tasks=TASKS)
    found = model.stability(DATA, tasks=TASKS, n_refits=3)
    assert 0.5 < found.overall <= 1
    assert found.n_refits == 3


@pytest.mark.parametrize(
    ("frame", "center"), [("alone", "task"), ("task", "task"), (None, "task"), ("all", "all"), ("aligned", "aligned")]
)
def test_a_refit_has_the_frame_that_the_labels_were_found_in(frame, center):
    model = DMTRC(3, random_state=0).fit(DATA, tasks=TASKS)
    tried = [replace(tried, frame=frame) for tried in model.selection_.candidates]
    model.selection_ = replace(model.selection_, candidates=tried)
    assert refitted(model, DATA, TASKS).get_params()["center"] == center


def test_many_rows_are_labelled_by_the_models_of_refits(monkeypatch):
    rows = np.vstack([DATA] * 4) + np.random.default_rng(0).normal(scale=0.05, size=(4 * len(DATA), DATA.shape[1]))
    tasks = np.tile(TASKS, 4)
    model = DMTRC(3, **QUICK).fit(rows, tasks=tasks)
    monkeypatch.setattr("mtclust.estimators.stability.MOST_ROWS", 200)
    found = model.stability(rows, tasks=tasks, n_refits=3)
    assert found.share == pytest.approx(200 / len(rows))
    assert not np.isnan(found.rows).any()
    assert found.overall > 0.9
    kernel = DMTRC(3, **QUICK | {"kernel": "precomputed"}).fit(rows @ rows.T, tasks=tasks)
    assert kernel.stability(rows @ rows.T, tasks=tasks, n_refits=3).overall > 0.9


def test_noise_is_not_stable_and_unstable_rows_lie_between_clusters():
    noise = np.random.default_rng(0).normal(size=(200, 6))
    model = DSTC(5, random_state=0).fit(noise)
    assert model.stability(noise).overall < 0.6
    assert np.nanmean(model.stability_.clusters) < 0.7
    assert model.stability_.overall < DOUBTFUL
    close, y, tasks = make_related_tasks(2, n_samples=120, separation=3.0, random_state=3).X_y_tasks
    model = DMTRC(3, **QUICK).fit(close, tasks=tasks)
    rows = model.stability(close, tasks=tasks).rows
    wrong = model.labels_ != np.array([np.bincount(model.labels_[y == c]).argmax() for c in range(3)])[y]
    assert np.nanmean(rows[wrong]) < np.nanmean(rows[~wrong])


def test_progress_is_told_and_the_same_seed_gives_the_same_answer(caplog):
    model = DSTC(3, **QUICK).fit(DATA, tasks=TASKS)
    with caplog.at_level("INFO", logger="mtclust"):
        first = model.stability(DATA, tasks=TASKS, n_refits=3)
    assert "stability: refit 3 of 3" in caplog.messages
    second = model.stability(DATA, tasks=TASKS, n_refits=3)
    np.testing.assert_array_equal(first.rows, second.rows)
    shuffled = np.random.default_rng(0).permutation(len(DATA))
    other = DSTC(3, **QUICK).fit(DATA[shuffled], tasks=TASKS[shuffled])
    found = other.stability(DATA[shuffled], tasks=TASKS[shuffled], n_refits=3)
    assert found.rows.shape == (len(DATA),)
    assert found.overall > 0.9


def test_figures_are_those_of_the_refits():
    labels, offsets = np.array([0, 0, 1, 1, 0, 1]), np.array([0, 4, 6])
    refits = [
        (np.array([0, 1, 2, 4, 5]), np.array([1, 1, 0, 1, 0])),  # the same, renamed
        (np.array([0, 2, 3, 4, 5]), np.array([0, 1, 0, 0, 1])),  # one row elsewhere
    ]
    found = compared(labels, offsets, 2, refits, 0.5)
    assert found.rows.tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    np.testing.assert_allclose(found.clusters, [(1 + 2 / 3) / 2, (1 + 2 / 3) / 2])
    assert isinstance(found, Stability)


def test_some_tasks_are_left_out_where_there_are_many():
    offsets = np.arange(0, 121, 12)
    tasks, rows = subsample(offsets, 0.5, 2, np.random.default_rng(0))
    assert len(tasks) == 8
    assert len(rows) == 8 * 6
    strata = np.tile(np.repeat([0, 1], [9, 3]), 10)
    tasks, rows = subsample(offsets, 0.67, 2, np.random.default_rng(0), strata)
    assert all(np.bincount(strata[rows[(rows // 12) == i]]).tolist() == [6, 2] for i in tasks)
    few, rows = subsample(np.array([0, 3, 40]), 0.5, 2, np.random.default_rng(0))
    assert few.tolist() == [0, 1]
    assert np.count_nonzero(rows < 3) == 3


def test_what_cannot_be_refitted_is_refused():
    model = DSTC(3, **QUICK).fit(DATA, tasks=TASKS)
    with pytest.raises(ValueError, match="X has 5 rows, but the model was fitted on 210"):
        model.stability(DATA[:5], tasks=TASKS[:5])
    with pytest.raises(ValueError, match=r"n_refits=1 and share=0\.5"):
        model.stability(DATA, tasks=TASKS, n_refits=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planes = DSTC(3, **QUICK | {"solver": "cutting-plane"}).fit(DATA)
    with pytest.raises(ValueError, match='stability needs solver="exchange"'):
        planes.stability(DATA)
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="stability needs rows in memory"):
        model.stability(da.from_array(DATA), tasks=TASKS)
    assert (
        DSTC(3, **QUICK).fit(sp.csr_matrix(DATA), tasks=TASKS).stability(sp.csr_matrix(DATA), tasks=TASKS).overall > 0.9
    )
    assert len(CLASSES) == len(DATA)


def test_tasks_that_undo_each_others_moves_do_not_go_on_for_ever():
    """Under E each task is refined for its own part of the criterion; on halves of these digits two of them cycle."""
    rows, _, tasks = load_digits_tasks(seed=0).X_y_tasks
    model = DMTRC(5, random_state=0).fit(rows, tasks=tasks)
    assert model.stability(rows, tasks=tasks, n_refits=2).n_refits == 2
