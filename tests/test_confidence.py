"""How sure a model is: probabilities, rows that belong nowhere, scores of other rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.coupling import gain_matrix
from mtclust.core.labels import label_codes
from mtclust.core.model import probabilities
from mtclust.datasets import make_related_tasks
from tests.test_contract import FORMS, form  # noqa: F401  (a fixture)

X, Y, TASKS = make_related_tasks(3, n_samples=40, separation=3.0, random_state=1).X_y_tasks
GIVEN = {"kernel": "linear", "lambda1": 0.05, "lambda2": 0.02, "random_state": 0, "n_init": 3}


def refitted_without(model, X, tasks, row, targets, ridge):
    """Scores of a row from models of all other rows: a linear system in the columns, nothing of the library's."""
    m, d = len(model.tasks_), X.shape[1]
    keep = np.arange(len(X)) != row
    scale = np.mean([np.sum((X[tasks == i] - X[tasks == i].mean(0)) ** 2, axis=1).mean() for i in range(m)])
    A, b = np.kron(ridge, np.eye(d)), np.zeros((m * d, targets.shape[1]))
    centre = {}
    for i in range(m):
        mine = keep & (tasks == i)
        centre[i] = X[mine].mean(axis=0)
        features = (X[mine] - centre[i]) / np.sqrt(scale)
        part, n = slice(i * d, (i + 1) * d), np.sum(tasks == i)
        A[part, part] += 2 / n * features.T @ features
        b[part] = 2 / n * features.T @ (targets[mine] - targets[mine].mean(axis=0))
    W, task = np.linalg.solve(A, b), int(tasks[row])
    return (X[row] - centre[task]) / np.sqrt(scale) @ W[task * d : (task + 1) * d]


@pytest.mark.parametrize("held", ["dual", "primal"])
@pytest.mark.parametrize("method", [DMTRC, DSTC])
def test_probabilities_of_rows_are_those_of_models_fitted_without_the_row(method, held):
    model = method(3, sizes="balanced", solver_options={"form": held}, **GIVEN).fit(X, tasks=TASKS)
    if method is DMTRC:
        ridge = np.linalg.inv(gain_matrix(model.task_covariance_, 0.05, 0.02))
    else:
        ridge = 0.07 * np.eye(3)
    codes = label_codes(model.labels_, 3)
    rows = np.arange(0, len(X), 11)
    scores = np.stack([refitted_without(model, X, TASKS, row, codes, ridge) for row in rows])
    expected = probabilities(scores, model._model.temperature)
    np.testing.assert_allclose(model.probabilities_[rows], expected, atol=1e-6)


def test_the_form_of_the_data_does_not_matter():
    found = {}
    for own in FORMS:
        if own.name != "dask":
            found[own.name] = own.fitted(sizes="auto", lambda1="auto", lambda2="auto")
    for name in ("features", "text"):
        assert np.mean(np.abs(found[name].probabilities_ - found["kernels"].probabilities_)) < 0.02
        np.testing.assert_allclose(found[name].outlier_scores_, found["kernels"].outlier_scores_, atol=1e-6)


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_probabilities_are_probabilities_in_every_form(form, method, tmp_path):  # noqa: F811
    model = form.once(method)
    new = model.predict_proba(form.rows, tasks=form.tasks)
    if form.name == "dask":
        assert hasattr(new, "dask")
        assert model.probabilities_ is None
        assert model.outlier_scores_ is None
        with pytest.raises(TypeError, match="score needs rows in memory"):
            model.score(form.rows, tasks=form.tasks)
    else:
        assert model.probabilities_.shape == (len(model.labels_), 3)
        np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1)
        assert np.mean(model.probabilities_.argmax(axis=1) == model.labels_) > 0.95
        assert 0 <= model.outlier_scores_.min() <= model.outlier_scores_.max() <= 1
        assert model.score(form.rows, tasks=form.tasks) == pytest.approx(model.loo_score_, abs=0.05)
        model.save(tmp_path / "model")
        loaded = mtclust.load(tmp_path / "model")
        np.testing.assert_allclose(loaded.predict_proba(form.rows, tasks=form.tasks), new, atol=1e-8)
        np.testing.assert_array_equal(loaded.probabilities_, model.probabilities_)
    new = np.asarray(new)
    np.testing.assert_allclose(new.sum(axis=1), 1)
    scores = np.asarray(model.decision_function(form.rows, tasks=form.tasks))
    np.testing.assert_array_equal(new.argmax(axis=1), scores.argmax(axis=1))
    task = model.fit_task(form.rows[:40].compute() if form.name == "dask" else form.rows[:40])
    further = task.predict_proba(form.rows[:7].compute() if form.name == "dask" else form.rows[:7])
    np.testing.assert_allclose(further.sum(axis=1), 1)


def test_few_rows_of_a_dask_collection_have_probabilities():
    da = pytest.importorskip("dask.array")
    model = DSTC(3, **GIVEN).fit(da.from_array(X, chunks=50), tasks=da.from_array(TASKS, chunks=50))
    assert model.probabilities_.chunks[0] == model.labels_.chunks[0]
    np.testing.assert_allclose(np.asarray(model.probabilities_).sum(axis=1), 1)


@pytest.mark.parametrize("options", [
    {"n_clusters": {0: 3, 1: 2, 2: 3}}, {"fit_intercept": False},
    {"solver": "cutting-plane", "solver_options": {"max_cuts": 2}}, {"center": "all"},
    {"kernel": "rbf", "lambda1": "auto", "lambda2": "auto"}, {"kernel": lambda A, B: (A @ B.T + 1.0) ** 2},
], ids=["clusters by task", "no intercept", "cutting planes", "common frame", "rbf", "callable"])  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_fit_has_probabilities(options):
    model = DMTRC(**{"n_clusters": 3} | GIVEN | options).fit(X, tasks=TASKS)
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1)
    absent = model.cluster_sizes_ == 0
    new = model.predict_proba(X, tasks=TASKS)
    if isinstance(options.get("n_clusters"), dict):
        assert absent.any()
        assert np.all(model.probabilities_[absent[TASKS]] == 0)
        assert np.all(new[absent[TASKS]] == 0)
    assert np.isfinite(new).all()
    assert new.sum() == pytest.approx(len(X))


def test_a_precomputed_kernel_has_probabilities_and_outliers_and_cannot_be_scored():
    given = GIVEN | {"sizes": "balanced"}
    rows = DSTC(3, **given).fit(X, tasks=TASKS)
    matrix = DSTC(3, **given | {"kernel": "precomputed"}).fit(X @ X.T, tasks=TASKS)
    names = [int(rows.labels_[matrix.labels_ == c][0]) for c in range(3)]  # equal sizes have no order of their own
    np.testing.assert_allclose(matrix.probabilities_, rows.probabilities_[:, names], atol=1e-6)
    np.testing.assert_allclose(matrix.outlier_scores_, rows.outlier_scores_, atol=1e-6)
    sparse = DSTC(3, **given | {"kernel": "precomputed"}).fit(sp.csr_matrix(X @ X.T), tasks=TASKS)
    np.testing.assert_allclose(sparse.outlier_scores_, rows.outlier_scores_, atol=1e-6)
    with pytest.raises(ValueError, match='cannot be used with kernel="precomputed"'):
        matrix.score(X @ X.T, tasks=TASKS)


def test_rows_of_clear_clusters_are_surer_than_rows_between_them():
    close, _, tasks = make_related_tasks(3, n_samples=60, separation=1.5, random_state=0).X_y_tasks
    apart, _, _ = make_related_tasks(3, n_samples=60, separation=8.0, random_state=0).X_y_tasks
    sure = [DMTRC(3, **GIVEN).fit(rows, tasks=tasks).probabilities_.max(axis=1).mean() for rows in (close, apart)]
    assert sure[0] < 0.97 < 0.99 < sure[1]


def test_many_rows_are_left_to_predict_proba(monkeypatch):
    monkeypatch.setattr("mtclust.estimators.fit.ORDERED", 100)
    model = DMTRC(3, **GIVEN).fit(X, tasks=TASKS)
    assert model.probabilities_ is None
    assert model.outlier_scores_ is None
    np.testing.assert_allclose(model.predict_proba(X, tasks=TASKS).sum(axis=1), 1)
    assert model._model.temperature != 1.0


def test_planted_rows_are_found_and_none_is_lost():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(3, 4)) * 6
    rows = np.vstack([centres[k % 3] + rng.normal(size=4) for k in range(300)])
    planted = rng.uniform(-30, 30, size=(15, 4))
    both, tasks = np.vstack([rows, planted]), np.r_[np.arange(300) % 2, np.arange(15) % 2]
    model = DMTRC(3, random_state=0).fit(both, tasks=tasks)
    truth = np.arange(315) >= 300
    assert roc_auc_score(truth, model.outlier_scores_) > 0.99
    assert np.mean(model.outlier_scores_[300:] > 0.5) > 0.8
    assert np.mean(model.outlier_scores_[:300] > 0.5) < 0.05
    assert model.labels_.min() >= 0
    assert len(model.labels_) == 315


def test_score_prefers_clusters_that_are_there():
    rows, _ = make_blobs(200, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    right = DSTC(3, random_state=0).fit(rows[:100])
    assert right.score(rows[100:]) > 0.6
    noise = np.random.default_rng(0).normal(size=(200, 2))
    assert DSTC(3, random_state=0).fit(noise[:100]).score(noise[100:]) < 0.3
    many = np.vstack([rows] * 6) + np.random.default_rng(0).normal(size=(1200, 2)) * 0.01
    assert right.score(many) > 0.6
    assert right.score(rows.astype(np.float32)) == pytest.approx(right.score(rows), abs=0.02)
    search = GridSearchCV(DSTC(3, random_state=0), {"kernel": ["linear", "rbf"]}, cv=3).fit(rows)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_transform_gives_scores_and_works_in_a_pipeline():
    model = DMTRC(3, **GIVEN)
    scores = model.fit_transform(X, tasks=TASKS)
    np.testing.assert_array_equal(scores, model.decision_function(X, tasks=TASKS))
    assert model.get_feature_names_out().tolist() == ["dmtrc0", "dmtrc1", "dmtrc2"]
    piped = make_pipeline(StandardScaler(), DSTC(3, **GIVEN)).fit(X)
    assert piped.transform(X).shape == (len(X), 3)
    assert piped.predict_proba(X).shape == (len(X), 3)
