"""DMTRC, DMTFC and DSTC as a user meets them: inputs, invariances, sizes, errors."""

import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.exceptions import SmallTaskWarning
from mtclust.metrics import macro_nmi, match_clusters
from tests.conftest import gaussian_tasks

ALL = [DMTRC, DMTFC, DSTC]
X, Y, TASKS = gaussian_tasks()
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8, "lambda2": 2.0**-8}


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_separated_clusters_are_found_with_common_ids(method, kernel):
    model = method(3, kernel=kernel, random_state=0).fit(X, tasks=TASKS)
    assert macro_nmi(Y, model.labels_, TASKS) == 1
    assert match_clusters(Y, model.labels_)[1] == 1  # one matching serves all tasks
    np.testing.assert_array_equal(model.predict(X, tasks=TASKS), model.labels_)
    np.testing.assert_array_equal(model.cluster_sizes_, np.full((3, 3), 10))


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("intercept", [True, False])
def test_linear_decision_function_is_coef_times_x_plus_intercept(method, intercept):
    model = method(3, kernel="linear", fit_intercept=intercept, random_state=0).fit(X, tasks=TASKS)
    expected = np.einsum("nd,ncd->nc", X, model.coef_[TASKS]) + model.intercept_[TASKS]
    np.testing.assert_allclose(model.decision_function(X, tasks=TASKS), expected, atol=1e-10)
    if not intercept:
        assert np.all(model.intercept_ == 0)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_decision_function_on_training_rows_is_labels_minus_scaled_residual(method, kernel):
    """F = Y − (n_i/2)α: the prediction path must agree with the solver's own algebra."""
    from mtclust.core.labels import label_codes

    model = method(3, kernel=kernel, sizes="balanced", random_state=0).fit(X, tasks=TASKS)
    codes = label_codes(model.labels_, 3)
    residual = codes - model.decision_function(X, tasks=TASKS)
    # ½⟨Y, α⟩ = Σ_i (1/n_i)⟨Y_i, Y_i − F_i⟩ is the objective
    assert np.sum(codes * residual) / 30 == pytest.approx(model.objective_, rel=1e-6)


def containers():
    return {
        "list": X.tolist(),
        "csr": sp.csr_matrix(X),
        "csr_array": sp.csr_array(X),
        "pandas": pd.DataFrame(X, columns=list("abcd")),
        "polars": pl.DataFrame(X, schema=list("abcd")),
        "float32": X.astype(np.float32),
    }


def fine(method):
    """Settings under which rounding does not decide where the slow descent in D stops."""
    return {"tol": 1e-6} if method is DMTFC else {}


@lru_cache
def fitted_to_the_array(method, kernel):
    """What every other container is compared with, fitted once."""
    return method(3, kernel=kernel, **QUICK | fine(method)).fit(X, tasks=TASKS)


@pytest.mark.parametrize(("method", "kernel"), [*((method, "linear") for method in ALL), (DMTRC, "rbf")])
@pytest.mark.parametrize("container", list(containers()))
def test_every_container_gives_the_same_labels(method, kernel, container):
    expected = fitted_to_the_array(method, kernel)
    given = containers()[container]
    model = clone(expected).fit(given, tasks=TASKS)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(given, tasks=TASKS), expected.predict(X, tasks=TASKS))
    tolerance = 2e-3 if method is DMTFC else 1e-4 if container == "float32" else 1e-6
    assert model.objective_ == pytest.approx(expected.objective_, rel=tolerance)
    if container in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_with_one_task_dmtrc_equals_dstc(kernel):
    one = X[:30] + np.random.default_rng(0).normal(size=(30, 4))
    kwargs = {"kernel": kernel, "lambda1": 0.01, "lambda2": 0.02, "width": 0.7, "random_state": 3}
    multi, single = DMTRC(3, **kwargs).fit(one), DSTC(3, **kwargs).fit(one)
    np.testing.assert_array_equal(multi.labels_, single.labels_)
    assert multi.objective_ == pytest.approx(single.objective_, rel=1e-12)
    assert multi.task_covariance_.tolist() == [[1.0]]


def test_uncoupled_dmtrc_equals_dstc_with_m_lambda2():
    noisy = X + np.random.default_rng(1).normal(size=X.shape)
    kwargs = {"kernel": "linear", "lambda1": 0.01, "random_state": 3, "center": "task"}
    uncoupled = DMTRC(3, lambda2=0.02, coupling="none", **kwargs).fit(noisy, tasks=TASKS)
    kwargs.pop("center")
    alone = DSTC(3, lambda2=0.06, **kwargs).fit(noisy, tasks=TASKS)
    full = DMTRC(3, lambda2=0.02, coupling="full", center="task", **kwargs).fit(noisy, tasks=TASKS)
    np.testing.assert_array_equal(uncoupled.labels_, alone.labels_)
    assert adjusted_rand_score(full.single_task_labels_, alone.labels_) > 0.9  # ids are those of the coupled labels
    assert uncoupled.objective_ == pytest.approx(alone.objective_, rel=1e-10)
    np.testing.assert_allclose(uncoupled.task_covariance_, np.eye(3) / 3)


def test_a_number_as_coupling_shrinks_omega_towards_independence():
    noisy = X + 0.5 * np.random.default_rng(1).normal(size=X.shape)
    models = {
        s: DMTRC(3, kernel="linear", coupling=s, center="task", random_state=0).fit(noisy, tasks=TASKS)
        for s in (0.0, 0.5, 1.0, "full")
    }
    np.testing.assert_allclose(models[1.0].task_covariance_, models["full"].task_covariance_)
    halfway = 0.5 * models["full"].task_covariance_ + 0.5 * np.eye(3) / 3
    np.testing.assert_allclose(models[0.5].task_covariance_, halfway)
    np.testing.assert_allclose(models[0.0].task_covariance_, np.eye(3) / 3)


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    "sizes",
    [(0.1, 0.6), [[12, 10, 8]] * 3, {0: [[12, 12], [9, 9], [9, 9]], 1: [[10, 10]] * 3, 2: [[5, 20]] * 3}],
    ids=["fractions", "table", "mapping"],
)
def test_labels_obey_the_sizes(method, sizes):
    from mtclust.core.labels import parse_sizes

    noisy = X + 2 * np.random.default_rng(1).normal(size=X.shape)
    model = method(3, sizes=sizes, **QUICK).fit(noisy, tasks=TASKS)
    bounds = parse_sizes(sizes, [30] * 3, 3)
    assert np.all(model.cluster_sizes_ >= bounds.lower)
    assert np.all(model.cluster_sizes_ <= bounds.upper)


@pytest.mark.parametrize("method", ALL)
def test_precomputed_and_callable_kernels_equal_the_built_in_one(method):
    sigma = 1.5
    gamma = 1 / (2 * sigma**2)
    order = np.random.default_rng(0).permutation(len(X))
    data, tasks = X[order], TASKS[order]
    kwargs = {"random_state": 0, "lambda1": 0.01, "lambda2": 0.01}
    by_call = method(3, kernel=lambda A, B: rbf_kernel(A, B, gamma=gamma), **kwargs).fit(data, tasks=tasks)
    by_matrix = method(3, kernel="precomputed", **kwargs).fit(rbf_kernel(data, gamma=gamma), tasks=tasks)
    np.testing.assert_array_equal(by_call.labels_, by_matrix.labels_)
    new = data[:7] + 0.1
    np.testing.assert_allclose(
        by_matrix.decision_function(rbf_kernel(new, data, gamma=gamma), tasks=tasks[:7]),
        by_call.decision_function(new, tasks=tasks[:7]),
        atol=5e-3 if method is DMTFC else 1e-8,  # rounding decides where the slow descent in D stops
    )
    assert not hasattr(by_call, "coef_")


def test_polynomial_kernel_as_callable():
    model = DMTRC(3, kernel=polynomial_kernel, sizes="balanced", random_state=0).fit(X, tasks=TASKS)
    assert macro_nmi(Y, model.labels_, TASKS) > 0.95


@pytest.mark.parametrize("method", ALL)
def test_task_column_of_a_frame_or_array_equals_tasks(method):
    names = np.array(["a", "b", "c"])[TASKS]
    expected = method(3, **QUICK).fit(X, tasks=names)
    frame = pd.DataFrame(X, columns=list("wxyz")).assign(shop=names)
    frames = {"shop": frame[["w", "shop", "x", "y", "z"]], -1: np.column_stack([X, TASKS])}
    frames_polars = pl.DataFrame({name: frame[name].to_list() for name in frame.columns})
    for column, given in frames.items():
        model = method(3, task_column=column, **QUICK).fit(given)
        np.testing.assert_array_equal(model.labels_, expected.labels_)
        np.testing.assert_array_equal(model.predict(given), expected.predict(X, tasks=names))
        assert model.n_features_in_ == 5
    by_polars = method(3, task_column="shop", **QUICK).fit(frames_polars)
    np.testing.assert_array_equal(by_polars.labels_, expected.labels_)
    with pytest.raises(ValueError, match="tasks and task_column were both given"):
        method(3, task_column="shop").fit(frame, tasks=names)


# -- inputs that cannot be used, and extremes with a defined answer ------------------------------------------------


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"tasks": TASKS[:-1]}, ValueError, "tasks has 89 entries but X has 90 rows"),
        ({"X": X[:2], "tasks": TASKS[:2]}, ValueError, "n_samples=2 should be >= n_clusters=3"),
        (
            {"sizes": (0.5, 0.6)},
            ValueError,
            "sizes cannot be met in task 0: it has 30 rows, the sizes add up to at least 45",
        ),
        ({"task_column": "shop", "tasks": None}, ValueError, "task_column='shop' is not a column of X"),
        ({"task_column": 9, "tasks": None}, ValueError, "task_column=9 is not a column of X, which has 0, 1, 2 and 3"),
    ],
)
def test_bad_input_is_named(method, change, error, message):
    change = dict(change)
    data, tasks = change.pop("X", X), change.pop("tasks", TASKS)
    n_clusters = change.pop("n_clusters", 3)
    with pytest.raises(error, match=message):
        method(n_clusters, **change).fit(data, tasks=tasks)


@pytest.mark.parametrize("method", ALL)
def test_predicting_what_was_not_fitted(method):
    with pytest.raises(NotFittedError):
        method(3).predict(X)
    model = method(3, **QUICK).fit(X, tasks=TASKS)
    with pytest.raises(ValueError, match=r"not in fit: 7; known are 0, 1 and 2\. Use fit_task"):
        model.predict(X[:2], tasks=[0, 7])
    with pytest.raises(ValueError, match="tasks is required: the model was fitted on 3 tasks"):
        model.predict(X)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        model.predict(X[:, :3], tasks=TASKS)
    assert model.predict(X[:5], tasks=1).shape == (5,)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_do_not_differ_give_arbitrary_balanced_labels_and_a_warning(method, kernel):
    with pytest.warns(ConvergenceWarning, match="no variation within any task"):
        model = method(3, kernel=kernel, random_state=0, sizes="balanced").fit(
            np.ones((12, 2)), tasks=[0] * 6 + [1] * 6
        )
    assert np.all(model.cluster_sizes_ == 2)
    assert np.all(np.isfinite(model.decision_function([[1.0, 1.0]], tasks=0)))


@pytest.mark.parametrize("method", ALL)
def test_a_constant_column_and_duplicate_rows_change_nothing_bad(method):
    data = np.repeat(np.column_stack([X[:, :2], np.ones(90)]), 2, axis=0)
    model = method(3, **QUICK).fit(data, tasks=np.repeat(TASKS, 2))
    assert np.all(np.isfinite(model.decision_function(data, tasks=np.repeat(TASKS, 2))))
    assert model.labels_.shape == (180,)


@pytest.mark.parametrize("method", ALL)
def test_tasks_smaller_than_the_number_of_clusters_are_clustered_with_a_warning(method):
    tasks = np.where(np.arange(90) == 89, 3, TASKS)
    tasks[87:89] = 4
    with pytest.warns(SmallTaskWarning, match="2 of 5 tasks have fewer rows than n_clusters=3"):
        model = method(3, **QUICK).fit(X, tasks=tasks)
    assert model.cluster_sizes_.sum(axis=1).tolist() == [30, 30, 27, 1, 2]
    assert np.isfinite(model.loo_score_)
    assert macro_nmi(Y[:60], model.labels_[:60], TASKS[:60]) == 1


@pytest.mark.parametrize("method", ALL)
def test_one_cluster_is_allowed(method):
    model = method(1, **QUICK).fit(X, tasks=TASKS)
    assert np.all(model.labels_ == 0)


def test_refitting_forgets_the_first_fit():
    model = DSTC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    model.set_params(kernel="rbf").fit(X[:30])
    assert not hasattr(model, "coef_")
    assert model.tasks_.tolist() == [0]


class OfTwoClusters(DMTRC):
    """A subclass with a parameter of its own, and without most of those of the estimator."""

    def __init__(self, own=1, *, random_state=None):
        super().__init__(2, kernel="linear", random_state=random_state)
        self.own = own


def test_a_subclass_may_have_other_parameters():
    model = clone(OfTwoClusters(own=5, random_state=0)).fit(X, tasks=TASKS)
    assert model.get_params() == {"own": 5, "random_state": 0}
    expected = DMTRC(2, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_no_warning_on_ordinary_data():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DMTRC(3, random_state=0).fit(X, tasks=TASKS)
    assert macro_nmi(Y, model.labels_, TASKS) > 0.95
