"""Every attribute of a fitted model is recomputed from ``labels_``, the rows and the settings, in every form."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import softmax

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import make_related_tasks

X, _, TASKS = make_related_tasks(3, n_samples=36, separation=4.0, random_state=3).X_y_tasks
NAMES = np.array(["rome", "oslo", "bonn"])[TASKS]  # sorted otherwise than they come
ORDER = np.random.default_rng(0).permutation(len(X))
X, NAMES = X[ORDER], NAMES[ORDER]
LAMBDAS = {"lambda1": 0.02, "lambda2": 0.05}
PRIMAL = {"solver_options": {"form": "primal"}}
FITS = {
    "DMTRC, kernels": (DMTRC, {"kernel": "linear", "sizes": "balanced", **LAMBDAS}),
    "DMTRC, RBF": (DMTRC, {"kernel": "rbf", "width": 0.8, "sizes": 0.3, "coupling": "full", **LAMBDAS}),
    "DMTRC, features": (DMTRC, {"kernel": "linear", "sizes": "balanced", **PRIMAL, **LAMBDAS}),
    "DMTRC, shrunk": (DMTRC, {"kernel": "linear", "sizes": "balanced", "coupling": 0.5, **LAMBDAS}),
    "DMTRC, apart": (DMTRC, {"kernel": "linear", "sizes": "balanced", "coupling": "none", **LAMBDAS}),
    "DMTRC, no intercept": (DMTRC, {"kernel": "linear", "sizes": "balanced", "fit_intercept": False, **LAMBDAS}),
    "DMTRC, open": (DMTRC, {}),
    "DMTRC, open, features": (DMTRC, PRIMAL),
    "DMTRC, own frames": (DMTRC, {"center": "task"}),
    "DMTRC, one frame": (DMTRC, {"center": "all"}),
    "DMTRC, aligned": (DMTRC, {"center": "aligned"}),
    "DMTFC, kernels": (DMTFC, {"kernel": "linear", "sizes": "balanced", **LAMBDAS}),
    "DMTFC, features": (DMTFC, {"kernel": "linear", "sizes": "balanced", **PRIMAL, **LAMBDAS}),
    "DMTFC, open": (DMTFC, {}),
    "DSTC, kernels": (DSTC, {"kernel": "linear", "sizes": "balanced", **LAMBDAS}),
    "DSTC, features": (DSTC, {"kernel": "linear", "sizes": "balanced", **PRIMAL, **LAMBDAS}),
    "DSTC, open": (DSTC, {}),
}


@pytest.fixture(scope="module", params=FITS)
def fitted(request):
    method, options = FITS[request.param]
    return method(3, n_init=4, random_state=0, **options).fit(X, tasks=NAMES)


def numbers_of(model):
    return np.searchsorted(model.tasks_, NAMES)


def centred(rows, tasks):
    means = np.stack([rows[tasks == i].mean(axis=0) for i in range(tasks.max() + 1)])
    return rows - means[tasks]


def kernel_of(model, tasks):
    """The kernel of the model between the rows of fit: centred within tasks, with a mean diagonal of 1."""
    rows = centred(X, tasks) if model.fit_intercept else X
    K = rows @ rows.T
    if model.selection_.width is not None:
        squares = np.sum((rows[:, None] - rows[None]) ** 2, axis=2)
        pairs = (tasks[:, None] == tasks) & ~np.eye(len(rows), dtype=bool)
        K = np.exp(-squares / (2 * (model.selection_.width * np.sqrt(squares[pairs]).mean()) ** 2))
    if model.fit_intercept:
        own = (tasks[:, None] == np.arange(tasks.max() + 1)).astype(float)
        C = np.eye(len(rows)) - own @ np.diag(1 / own.sum(axis=0)) @ own.T
        K = C @ K @ C
    return K / np.trace(K) * len(K)


def objective_of(model):
    """J with W eliminated: ½ tr(Yᵀ K̃⁻¹ Y), K̃ = K_Z + Λ/2 (labels and coupling of the model)."""
    tasks, m = numbers_of(model), len(model.tasks_)
    K, sizes = kernel_of(model, tasks), np.bincount(tasks)
    lambda1, lambda2 = model.lambda1, model.lambda2
    if isinstance(model, DMTFC):  # D in the coordinates of X, all of which it weighs
        rows, D, r = centred(X, tasks), model.feature_covariance_, X.shape[1]
        rows = rows / np.sqrt(np.sum(rows**2) / len(rows))
        G = D @ np.linalg.inv(lambda1 * D + lambda2 * m / r * np.eye(r))
        K = (rows @ G @ rows.T) * (tasks[:, None] == tasks)
    else:
        Omega = model.task_covariance_ if isinstance(model, DMTRC) else np.eye(m)
        G = Omega @ np.linalg.inv(lambda1 * Omega + lambda2 * np.eye(m))
        K = G[np.ix_(tasks, tasks)] * K
    Y = np.where(np.eye(3, dtype=bool), 1.0, -0.5)[model.labels_]
    return 0.5 * np.trace(Y.T @ np.linalg.solve(K + np.diag(sizes[tasks] / 2), Y))


def test_sizes_tasks_and_names(fitted):
    model = fitted
    tasks = numbers_of(model)
    assert model.tasks_.tolist() == ["bonn", "oslo", "rome"]
    counts = np.zeros((3, 3), dtype=int)
    np.add.at(counts, (tasks, model.labels_), 1)
    np.testing.assert_array_equal(model.cluster_sizes_, counts)
    assert model.n_clusters_ == 3
    assert model.n_features_in_ == X.shape[1]
    assert sorted(name for group in model.task_groups_ for name in group) == model.tasks_.tolist()


def test_the_objective_is_that_of_the_labels_and_the_last_of_the_history(fitted):
    model = fitted
    assert model.history_[-1]["objective"] == pytest.approx(model.objective_, rel=1e-9)
    if model.selection_.criterion == "J":
        assert objective_of(model) == pytest.approx(model.objective_, rel=1e-6)


def test_separation_is_that_of_the_labels(fitted, monkeypatch):
    model = copy.deepcopy(fitted)
    assert model.loo_score_ == pytest.approx(model.cluster_scores_.mean())
    monkeypatch.setattr(model, "predict", lambda rows, tasks: model.labels_)
    if model.fit_intercept:
        assert model.score(X, tasks=NAMES) == pytest.approx(model.loo_score_, abs=1e-12)


def test_models_score_rows_as_coefficients_and_probabilities_say(fitted):
    model = fitted
    tasks, scores = numbers_of(model), model.decision_function(X, tasks=NAMES)
    np.testing.assert_array_equal(model.predict(X, tasks=NAMES), scores.argmax(axis=1))
    if hasattr(model, "coef_"):
        linear = np.einsum("nd,ncd->nc", X, model.coef_[tasks]) + model.intercept_[tasks]
        np.testing.assert_allclose(scores, linear, atol=1e-9)
    chances = model.predict_proba(X, tasks=NAMES)
    np.testing.assert_allclose(chances, softmax(scores / model._model.temperature, axis=1), atol=1e-12)
    assert model.probabilities_.shape == (len(X), 3)
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1.0)
    # leaving one row of 36 out changes little
    assert np.mean(model.probabilities_.argmax(axis=1) == chances.argmax(axis=1)) > 0.9


def test_the_coupling_is_one(fitted):
    model = fitted
    if isinstance(model, DMTRC):
        Omega = model.task_covariance_
        assert np.trace(Omega) == pytest.approx(1.0)
        assert np.linalg.eigvalsh(Omega).min() >= -1e-12
        scale = np.sqrt(np.diag(Omega))
        np.testing.assert_allclose(model.task_correlation_, Omega / np.outer(scale, scale), atol=1e-12)
    if isinstance(model, DMTFC):
        assert np.linalg.eigvalsh(model.feature_covariance_).min() >= -1e-9


def test_labels_of_tasks_alone_obey_the_sizes_and_are_the_labels_where_nothing_is_coupled(fitted):
    model = fitted
    tasks, single = numbers_of(model), np.asarray(model.single_task_labels_)
    assert single.shape == (len(X),)
    if model.sizes == "balanced":
        for task in range(3):
            assert np.bincount(single[tasks == task], minlength=3).tolist() == [12, 12, 12]
    coupling = model.selection_.coupling
    if isinstance(model, DSTC) or (coupling is not None and coupling.decision == "none"):
        np.testing.assert_array_equal(single, model.labels_)


def test_what_is_found_when_it_is_read_survives_pickles_files_and_copies(fitted, tmp_path):
    names = ("loo_score_", "cluster_scores_", "outlier_scores_")
    method, options = type(fitted), fitted.get_params()
    model = method(**options).fit(X, tasks=NAMES)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    model = method(**options).fit(X, tasks=NAMES)
    model.save(tmp_path / "model")
    others.append(mtclust.load(tmp_path / "model"))
    for other in others:
        for name in names:
            np.testing.assert_array_equal(getattr(other, name), getattr(fitted, name))
    assert not any(hasattr(method(**options), name) for name in names)


@pytest.mark.parametrize("options", [{}, PRIMAL, {"center": "aligned"}])
@pytest.mark.parametrize("make", [np.array, sp.csr_matrix])
def test_rows_that_change_after_the_fit_change_nothing_of_it(options, make):
    rows = make(X)
    model, other = (DMTRC(3, random_state=0, **options).fit(rows, tasks=NAMES) for _ in range(2))
    expected = other.outlier_scores_, other.loo_score_, other.probabilities_
    rows *= 0.0
    for found, value in zip((model.outlier_scores_, model.loo_score_, model.probabilities_), expected):
        np.testing.assert_array_equal(found, value)


def test_outlier_scores_do_not_depend_on_the_labels_or_the_settings():
    first = DMTRC(3, random_state=0).fit(X, tasks=NAMES).outlier_scores_
    second = DSTC(2, sizes="balanced", kernel="linear", random_state=1).fit(X, tasks=NAMES).outlier_scores_
    np.testing.assert_allclose(first, second, atol=1e-12)


def test_a_second_fit_forgets_what_was_read_of_the_first():
    model = DSTC(3, random_state=0).fit(X, tasks=NAMES)
    before = model.outlier_scores_, model.loo_score_
    model.fit(X[:60] ** 3, tasks=NAMES[:60])
    assert len(model.outlier_scores_) == 60
    assert model.loo_score_ != before[1]
