"""Estimators at scale: what they accept, keep, and return."""

import hashlib
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from primal_helpers import FIXED, primal, stacked
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.metrics import match_clusters, nmi

METHODS = [DMTRC, DMTFC, DSTC]


@pytest.fixture(scope="module")
def many():
    """More rows than the search itself runs on."""
    return stacked((15_000, 10_000, 7_000), d=6, spread=0.6, seed=3)


@pytest.fixture(scope="module")
def few():
    return stacked((60, 45, 80), d=4, spread=0.2, seed=1)


# -- kinds of input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_many_rows_are_primal_by_themselves_and_are_clustered_well(method, many):
    X, y, tasks = many
    model = method(3, **FIXED).fit(X, tasks=tasks)
    assert model.selection_["form"] == "primal"
    assert min(nmi(y[tasks == t], model.labels_[tasks == t]) for t in range(3)) > 0.9
    assert match_clusters(y, model.labels_)[1] > 0.9  # ids mean the same in all tasks
    np.testing.assert_array_equal(model.cluster_sizes_, [[5000] * 3, [3334, 3333, 3333], [2334, 2333, 2333]])
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.95
    new, truth, new_tasks = stacked((50, 50, 50), d=6, spread=0.6, seed=3)
    assert model.predict(new, tasks=new_tasks).shape == truth.shape


def test_a_file_on_disk_is_read_and_not_written(many, tmp_path):
    X, _, tasks = many
    path = tmp_path / "rows.npy"
    np.save(path, X.astype(np.float32))
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    on_disk = np.load(path, mmap_mode="r")
    assert isinstance(on_disk, np.memmap)
    model = primal().fit(on_disk, tasks=tasks)
    np.testing.assert_array_equal(model.labels_, primal().fit(X.astype(np.float32), tasks=tasks).labels_)
    np.testing.assert_array_equal(model.predict(on_disk, tasks=tasks), model.predict(X, tasks=tasks))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_single_precision_stays_single_and_little_memory_is_taken():
    rng = np.random.default_rng(0)
    n, d = 200_000, 20
    tasks = np.repeat([0, 1], n // 2)
    X = (3 * rng.normal(size=(4, d))[rng.integers(4, size=n)] + rng.normal(size=(n, d))).astype(np.float32)
    model = primal(n_clusters=4, sizes=0.5, n_init=2)
    model.fit(X[:: n // 3000], tasks=tasks[:: n // 3000])  # compiled before anything is measured
    tracemalloc.start()
    try:
        model.fit(X, tasks=tasks)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    double_copy, kernels_of_the_sample = 8 * n * d, 8 * 8 * 600**2
    assert peak < 0.4 * double_copy + kernels_of_the_sample


def test_the_order_in_which_tasks_are_mixed_does_not_matter(many):
    """Tasks interleaved, the rows of each in the same order: the same labels, row by row."""
    X, _, tasks = many
    shuffled_tasks = np.random.default_rng(0).permutation(tasks)
    mixed = np.empty(len(X), dtype=np.int64)
    for task in range(3):
        mixed[shuffled_tasks == task] = np.flatnonzero(tasks == task)
    a, b = primal().fit(X, tasks=tasks), primal().fit(X[mixed], tasks=shuffled_tasks)
    assert nmi(a.labels_[mixed], b.labels_) == pytest.approx(1)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-12)


def test_the_order_of_rows_within_a_task_changes_next_to_nothing(many):
    X, _, tasks = many
    order = np.random.default_rng(0).permutation(len(X))
    a, b = primal().fit(X, tasks=tasks), primal().fit(X[order], tasks=tasks[order])
    assert match_clusters(a.labels_[order], b.labels_)[1] > 0.995
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-3)


def test_the_same_seed_gives_the_same_labels_with_any_number_of_jobs(many):
    X, _, tasks = many
    models = [primal(n_jobs=jobs, sizes="auto").fit(X, tasks=tasks) for jobs in (1, 2)]
    for other in models[1:]:
        np.testing.assert_array_equal(models[0].labels_, other.labels_)
        assert models[0].objective_ == other.objective_


def test_sparse_rows_with_few_columns_equal_dense_ones(few):
    X, _, tasks = few
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    for table in (sp.csr_matrix(X), sp.csr_array(X)):
        sparse, dense = primal().fit(table, tasks=tasks), primal().fit(X, tasks=tasks)
        np.testing.assert_array_equal(sparse.labels_, dense.labels_)
        assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-10)
        scores = dense.decision_function(X, tasks=tasks)
        np.testing.assert_allclose(sparse.decision_function(table, tasks=tasks), scores, atol=1e-8)


def test_sparse_rows_with_many_columns():
    """Three topics, each with words of its own among 3000."""
    rng = np.random.default_rng(0)
    y, tasks = np.tile(np.arange(3), 80), np.repeat([0, 1], 120)
    counts = rng.poisson(0.01, size=(240, 3000)) + rng.poisson(0.3, size=(240, 3000)) * (
        np.arange(3000) // 100 == y[:, None]
    )
    X = sp.csr_matrix(counts.astype(float))
    model = primal().fit(X, tasks=tasks)
    assert nmi(y, model.labels_) > 0.95
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.95


def test_a_linear_kernel_through_landmarks_predicts_like_its_columns(few):
    """Four columns, forty landmarks: Nyström features of a linear kernel are the same space."""
    X, _, tasks = few
    columns, landmarks = primal().fit(X, tasks=tasks), primal(n_components=40).fit(X, tasks=tasks)
    assert "Nyström" in landmarks.selection_["features"]
    np.testing.assert_array_equal(columns.labels_, landmarks.labels_)
    assert landmarks.objective_ == pytest.approx(columns.objective_, rel=1e-6)
    scores = columns.decision_function(X, tasks=tasks)
    np.testing.assert_allclose(landmarks.decision_function(X, tasks=tasks), scores, atol=1e-3)
    assert not hasattr(landmarks, "coef_")


def test_a_callable_kernel(few):
    X, y, tasks = few
    model = primal(kernel=lambda A, B: laplacian_kernel(A, B, gamma=0.1), n_components=60).fit(X, tasks=tasks)
    assert nmi(y, model.labels_) > 0.9
    assert not hasattr(model, "coef_")
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.9


def test_refitting_in_the_other_form_leaves_nothing_behind(few):
    X, _, tasks = few
    model = primal().fit(X, tasks=tasks)
    fresh = model.fit(X, tasks=tasks).fit_task(X[tasks == 0]).labels_
    model.set_params(solver_options={"form": "dual"}).fit(X, tasks=tasks)
    assert "form" not in model.selection_ or model.selection_["form"] == "dual"
    assert len(model.fit_task(X[tasks == 0]).labels_) == len(fresh)
    model.set_params(solver_options={"form": "primal"}, kernel="rbf", width=1.0).fit(X, tasks=tasks)
    assert not hasattr(model, "coef_")


# -- clusters and sizes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_one_cluster(method, kernel, few):
    X, _, tasks = few
    model = primal(method, 1, kernel=kernel, width=1.0).fit(X, tasks=tasks)
    assert not model.labels_.any()
    assert model.objective_ == pytest.approx(3.0)
    assert not model.predict(X, tasks=tasks).any()


@pytest.mark.parametrize("method", METHODS)
def test_one_task(method, few):
    X, y, tasks = few
    model = primal(method, coupling="auto") if method is DMTRC else primal(method)
    model.fit(X[tasks == 2])
    assert nmi(y[tasks == 2], model.labels_) > 0.9
    assert model.predict(X[tasks == 2]).shape == (80,)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("value", [0.0, 1e9])
def test_constant_rows_get_balanced_labels_and_a_warning(method, kernel, value):
    X, tasks = np.full((90, 3), value), np.repeat([0, 1], 45)
    model = primal(method, kernel=kernel, width=1.0)
    with pytest.warns(ConvergenceWarning, match="no variation"):
        model.fit(X, tasks=tasks)
    np.testing.assert_array_equal(model.cluster_sizes_, np.full((2, 3), 15))
    assert model.objective_ == pytest.approx(2 * 1.5)


def test_the_number_of_clusters_may_differ_by_task():
    X, y, tasks = stacked((120, 90, 60), n_clusters=4, d=5, spread=0.3, seed=4)
    keep = (tasks != 1) | (y < 2)
    X, y, tasks = X[keep], y[keep], tasks[keep]
    model = primal(n_clusters={0: 4, 1: 2, 2: 4}).fit(X, tasks=tasks)
    found = (model.cluster_sizes_ > 0).sum(axis=1)
    np.testing.assert_array_equal(found, [4, 2, 4])
    assert match_clusters(y, model.labels_)[1] == 1
    missing = np.flatnonzero(model.cluster_sizes_[1] == 0)
    assert not np.isin(model.predict(X[tasks == 1], tasks=1), missing).any()
    assert np.all(np.isneginf(model.decision_function(X[tasks == 1], tasks=1)[:, missing]))


# -- coupling and tasks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "n_tasks"), [(DSTC, 100), (DMTRC, 1000)])
def test_many_small_tasks(method, n_tasks):
    X, y, tasks = stacked((12,) * n_tasks, d=4, spread=0.3, seed=5)
    model = primal(method, n_init=2).fit(X, tasks=tasks)
    np.testing.assert_array_equal(model.cluster_sizes_, np.full((n_tasks, 3), 4))
    assert match_clusters(y, model.labels_)[1] > 0.95
    if method is DMTRC:
        assert np.trace(model.task_covariance_) == pytest.approx(1)
        assert np.linalg.eigvalsh(model.task_covariance_).min() > -1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_copy_of_a_known_task_gets_its_labels(method, kernel, few):
    X, _, tasks = few
    model = primal(method, kernel=kernel, width=1.0).fit(X, tasks=tasks)
    before = model.labels_.copy()
    for offset in (0.0, 1e5 if kernel == "linear" else 0.0):
        new = model.fit_task(X[tasks == 1] + offset)
        assert np.mean(new.labels_ == model.labels_[tasks == 1]) == 1
        assert np.mean(new.predict(X[tasks == 1] + offset) == new.labels_) > 0.9
    np.testing.assert_array_equal(model.labels_, before)
    if method is DMTRC:
        assert new.task_correlation_[1] > 0.9
        assert new.task_covariance_.shape == (4, 4)
        assert np.trace(new.task_covariance_) == pytest.approx(1)


# -- extremes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_values_that_cannot_be_squared_are_refused(form, kernel, few):
    X, _, tasks = few
    model = DMTRC(3, **FIXED | {"kernel": kernel, "width": 1.0}, solver_options={"form": form})
    with pytest.raises(ValueError, match="too large to be squared"):
        model.fit(X * 1e300, tasks=tasks)


@pytest.mark.parametrize("n", [60, 40_000])
def test_one_task_learns_its_feature_covariance_as_the_dual_form_does(n):
    X, _, tasks = stacked((n,), spread=1.3)
    options = {"kernel": "linear", "lambda1": 0.02, "lambda2": 0.01, "sizes": "balanced", "random_state": 0}
    model = DMTFC(3, solver_options={"form": "primal"}, **options).fit(X, tasks=tasks)
    assert model.feature_covariance_.shape == (5, 5)
    assert np.trace(model.feature_covariance_) == pytest.approx(1.0)
    if n == 60:
        dual = DMTFC(3, solver_options={"form": "dual"}, **options).fit(X, tasks=tasks)
        assert model.objective_ == pytest.approx(dual.objective_, rel=2e-3)
        np.testing.assert_allclose(model.feature_covariance_, dual.feature_covariance_, atol=0.02)
