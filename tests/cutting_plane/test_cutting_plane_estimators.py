"""``solver="cutting-plane"`` of the three estimators."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks
from mtclust.exceptions import DegenerateSolutionWarning
from mtclust.metrics import macro_nmi

ESTIMATORS = (DMTRC, DMTFC, DSTC)


@pytest.fixture(scope="module")
def digits():
    """Three related tasks of 30 rows, in mixed order."""
    X, y, tasks = load_digits_tasks((0, 3, 6), rows_per_class=10).X_y_tasks
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], np.unique(y, return_inverse=True)[1][order], np.array(["a", "b", "c"])[tasks][order]


def build(estimator, **changed):
    options = {"max_cuts": 2} | changed.pop("solver_options", {})
    settings = {
        "kernel": "linear",
        "lambda1": 2**-7,
        "lambda2": 2**-7,
        "sizes": "balanced",
        "random_state": 0,
    } | changed
    return estimator(3, solver="cutting-plane", solver_options=options, **settings)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_attributes(estimator, digits):
    X, _, tasks = digits
    model = build(estimator).fit(X, tasks=tasks)
    assert model.relaxed_labels_.shape == (90, 3)
    assert [len(weights) for weights in model.mixture_weights_] == model.history_[-1]["pool_sizes"]
    assert all(weights.sum() == pytest.approx(1.0) for weights in model.mixture_weights_)
    assert 0 <= model.lower_bound_ <= model.objective_
    assert model.objective_ == model.history_[-1]["objective"]
    for key in ("objective", "lower_bound", "gap", "pool_sizes", "shrinkage", "labels"):
        assert len([entry[key] for entry in model.history_]) == 3
    np.testing.assert_array_equal(model.history_[-1]["labels"], model.labels_)
    for task in model.tasks_:
        assert np.bincount(model.init_labels_[tasks == task]).tolist() == [10, 10, 10]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_are_the_argmax_of_f(estimator, kernel, digits):
    """As printed in the paper: predicting the rows of ``fit`` gives their labels."""
    X, _, tasks = digits
    model = build(estimator, kernel=kernel, width=1.0).fit(X, tasks=tasks)
    np.testing.assert_array_equal(model.predict(X, tasks=tasks), model.labels_)


def test_kernel_pca_features_of_dmtfc(digits):
    X, _, tasks = digits
    model = build(DMTFC, kernel="rbf", width=1.0, n_components=20).fit(X, tasks=tasks)
    assert model.feature_covariance_.shape == (20, 20)
    assert np.trace(model.feature_covariance_) == pytest.approx(1.0)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_few_cuts_keep_the_start(estimator, digits):
    X, y, tasks = digits
    model = build(estimator, solver_options={"init": y, "max_cuts": 2}).fit(X, tasks=tasks)
    np.testing.assert_array_equal(model.init_labels_, y)
    assert macro_nmi(y, model.history_[0]["labels"], tasks) > 0.9
    assert macro_nmi(y, model.labels_, tasks) > 0.9


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_collapse_warns_with_figures_and_names_the_default_solver(estimator, digits):
    X, _, tasks = digits
    model = build(estimator, solver_options={"max_cuts": 10, "init": "random"})
    with pytest.warns(DegenerateSolutionWarning, match=r'cuts.*\|Ỹ\| = .* \|Y\|, \d+ of 90 rows.*solver="exchange"'):
        model.fit(X, tasks=tasks)
    assert np.linalg.norm(model.relaxed_labels_) < 0.1 * np.sqrt(90 * 1.5)


def test_enough_cuts_reach_the_trivial_optimum(digits):
    X, _, tasks = digits
    model = build(DSTC, solver_options={"max_cuts": 200, "init": "random", "zero_tol": 0}, lambda1=1.0, lambda2=1.0)
    with pytest.warns(DegenerateSolutionWarning):
        model.fit(X, tasks=tasks)
    assert model.converged_
    assert model.objective_ < 1e-8


def test_order_of_rows_does_not_matter_with_given_labels(digits):
    X, y, tasks = digits
    other = np.argsort(tasks, kind="stable")
    first = build(DMTRC, solver_options={"init": y}).fit(X, tasks=tasks)
    second = build(DMTRC, solver_options={"init": y[other].tolist()}).fit(X[other], tasks=tasks[other])
    assert second.objective_ == pytest.approx(first.objective_, rel=1e-6)
    np.testing.assert_allclose(second.relaxed_labels_, first.relaxed_labels_[other], atol=1e-3)


def test_fits_are_reproducible_and_inputs_untouched(digits):
    X, y, tasks = digits
    kept = X.copy(), y.copy()
    model = build(DMTRC, solver_options={"init": "k-means"})
    first, second = (clone(model).fit(X, tasks=tasks) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.objective_ == second.objective_
    np.testing.assert_array_equal(X, kept[0])


def test_attributes_of_the_relaxation_leave_with_the_solver(digits):
    X, _, tasks = digits
    model = build(DSTC).fit(X, tasks=tasks)
    model.set_params(solver="exchange", solver_options=None).fit(X, tasks=tasks)
    assert not hasattr(model, "relaxed_labels_")
    assert not hasattr(model, "mixture_weights_")


def test_one_task_and_uncoupled_tasks_are_dstc(digits):
    X, _, tasks = digits
    mine = tasks == "b"
    alone = build(DMTRC, lambda1=0.1, lambda2=0.2, solver_options={"max_cuts": 1}).fit(X[mine])
    single = build(DSTC, lambda1=0.1, lambda2=0.2, solver_options={"max_cuts": 1}).fit(X[mine])
    assert alone.objective_ == pytest.approx(single.objective_)
    uncoupled = build(DMTRC, coupling="none", lambda1=0.1, lambda2=0.2, solver_options={"max_cuts": 1}).fit(
        X, tasks=tasks
    )
    apart = build(DSTC, lambda1=0.1, lambda2=0.6, solver_options={"max_cuts": 1}).fit(X, tasks=tasks)
    assert uncoupled.objective_ == pytest.approx(apart.objective_)
    assert uncoupled.selection_["coupling"]["decision"] == "none"


def test_lambda1_may_be_a_mapping(digits):
    X, _, tasks = digits
    same, other = (
        build(DMTRC, lambda1=dict(zip("abc", values))).fit(X, tasks=tasks)
        for values in ([2**-7] * 3, [2**-9, 2**-7, 2**-5])
    )
    assert same.objective_ == build(DMTRC).fit(X, tasks=tasks).objective_
    assert other.objective_ != same.objective_
    assert other.objective_ - other.history_[-1]["pool_bound"] <= 1e-3 * other.objective_


@pytest.mark.parametrize("reduced", ["quadratic", "level"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_both_ways_to_solve_the_reduced_problem_agree_while_pools_are_the_same(estimator, reduced, digits):
    X, y, tasks = digits
    options = {"init": y, "max_cuts": 1, "level_tol": 1e-7, "reduced": reduced}
    first, second = build(estimator, solver_options=options).fit(X, tasks=tasks).history_
    other = build(estimator, solver_options=options | {"reduced": "quadratic"}).fit(X, tasks=tasks).history_
    assert first["objective"] == pytest.approx(other[0]["objective"], rel=1e-6)
    assert second["objective"] == pytest.approx(other[1]["objective"], rel=1e-6)


def test_new_tasks_can_be_clustered(digits):
    X, _, tasks = digits
    model = build(DMTRC).fit(X[tasks != "c"], tasks=tasks[tasks != "c"])
    assert len(model.fit_task(X[tasks == "c"]).labels_) == 30


def test_sparse_rows_equal_dense_ones(digits):
    from scipy.sparse import csr_matrix

    X, _, tasks = digits
    dense, sparse = build(DMTRC).fit(X, tasks=tasks), build(DMTRC).fit(csr_matrix(X), tasks=tasks)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_seeds": 3}, "unknown keys"),
        ({"max_cuts": -1}, "max_cuts"),
        ({"max_cuts": 2.5}, "max_cuts"),
        ({"gap_tol": -1e-3}, "gap_tol"),
        ({"level_tol": "small"}, "level_tol"),
        ({"max_level_steps": 0}, "max_level_steps"),
        ({"init": "magic"}, "init"),
        ({"init": [0, 1, 2]}, "one label per row"),
        ({"init": np.full(90, 3)}, "from 0 to 2"),
        ({"init": np.full(90, 0.5)}, "from 0 to 2"),
        ({"init": np.zeros(90, dtype=int)}, "cluster sizes"),
        ({"init": ["x"] * 90}, "whole numbers"),
        ({"refine": "exchange"}, "unknown keys"),
        ({"reduced": "magic"}, "reduced"),
    ],
)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_wrong_options_are_named(estimator, options, message, digits):
    X, _, tasks = digits
    with pytest.raises(ValueError, match=message):
        build(estimator, solver_options=options).fit(X, tasks=tasks)


def test_partial_coupling_needs_the_exchange_solver(digits):
    X, _, tasks = digits
    with pytest.raises(ValueError, match='solver="exchange"'):
        build(DMTRC, coupling=0.5).fit(X, tasks=tasks)


def test_options_of_the_cutting_planes_are_unknown_to_the_exchange_solver(digits):
    X, _, tasks = digits
    with pytest.raises(ValueError, match='may only hold "form"'):
        DSTC(3, solver_options={"max_cuts": 5}).fit(X, tasks=tasks)


@pytest.mark.parametrize("estimator", [DMTRC, DSTC])
def test_the_number_of_clusters_may_be_left_open(estimator, digits):
    X, _, tasks = digits
    model = build(estimator).set_params(n_clusters=range(2, 4), solver_options={"max_cuts": 1, "init": "k-means"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, tasks=tasks)
    assert model.n_clusters_ == model.selection_["n_clusters"]["chosen"] in (2, 3)
