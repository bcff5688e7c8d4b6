"""Data and settings at the edge of what numbers can hold: finite results, or an error or warning that says why not."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.labels import parse_sizes
from mtclust.exceptions import SmallTaskWarning
from mtclust.metrics import macro_nmi
from tests.conftest import gaussian_tasks

METHODS = [DMTRC, DMTFC, DSTC]
FORMS = ["dual", "primal"]
X, Y, TASKS = gaussian_tasks(rows=24)

each_fit = [
    pytest.param(method, kernel, form, id=f"{method.__name__}-{kernel}-{form}")
    for method in METHODS
    for kernel in ("linear", "rbf")
    for form in FORMS
]


def estimator(method, kernel="linear", form="dual", n_clusters=3, **options):
    if method is DMTRC:
        options = {"coupling": "full"} | options
    given = {"width": 1.0, "lambda1": 0.01, "sizes": "balanced", "n_init": 2, "random_state": 0}
    if method is not DSTC:
        given["max_iter"] = 200  # D settles slowly on sparse rows
    return method(n_clusters, kernel=kernel, solver_options={"form": form}, **given | options)


def assert_sound(model, rows, tasks, rounding=1e-9):
    """Sizes kept, everything finite, J between its bounds up to rounding."""
    names, sizes = np.unique(tasks, return_counts=True)
    bounds = parse_sizes(model.sizes, sizes, model.n_clusters_)
    for i, name in enumerate(names):
        assert bounds.respects(i, np.bincount(model.labels_[tasks == name], minlength=model.n_clusters_))
    for name, value in model.__getstate__().items():  # with what is found when it is first read
        if isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f":
            assert np.all(np.isfinite(value)), name
    assert np.all(np.isfinite(model.decision_function(rows, tasks=tasks)))
    values = np.array([entry["objective"] for entry in model.history_])
    assert np.all(np.diff(values) <= rounding)


def rng():
    return np.random.default_rng(0)


def sparse_text():
    counts = rng().poisson(0.005, size=(len(X), 300)).astype(float)
    assert (counts.sum(axis=1) == 0).any()
    return sp.csr_array(counts)


ORDINARY_EXTREMES = {
    "1e150": lambda: X * 1e150,
    "1e-140": lambda: X * 1e-140,
    "columns of all sizes": lambda: X * np.array([1e-150, 1.0, 1e150, 1.0]),
    "rank one": lambda: X[:, :1] * np.arange(1.0, 5.0),
    "duplicates": lambda: X[rng().integers(2, size=len(X))],
    "one-hot": lambda: np.eye(4)[rng().integers(4, size=len(X))],
    "counts": lambda: rng().poisson(0.3, size=(len(X), 30)).astype(float),
    "empty rows of sparse text": sparse_text,
}


@pytest.mark.filterwarnings("ignore:the columns of X differ in spread:mtclust.exceptions.InputWarning")
@pytest.mark.parametrize("name", ORDINARY_EXTREMES)
@pytest.mark.parametrize(("method", "kernel", "form"), each_fit)
def test_extreme_data_without_any_other_warning(method, kernel, form, name):
    rows = ORDINARY_EXTREMES[name]()
    assert_sound(estimator(method, kernel, form).fit(rows, tasks=TASKS), rows, TASKS)


@pytest.mark.parametrize("offset", [1e8, 1e13])
@pytest.mark.parametrize(("method", "kernel", "form"), each_fit)
def test_a_huge_offset_of_all_rows_hides_nothing(method, kernel, form, offset):
    model = estimator(method, kernel, form).fit(X + offset, tasks=TASKS)
    assert_sound(model, X + offset, TASKS)
    assert macro_nmi(Y, model.labels_, TASKS) > 0.95
    expected = estimator(method, kernel, form).fit(X, tasks=TASKS)
    assert model.objective_ == pytest.approx(expected.objective_, rel=0.05)
    scores = model.decision_function(X + offset, tasks=TASKS)
    names = [int(np.bincount(expected.labels_[model.labels_ == c]).argmax()) for c in range(3)]
    wanted = expected.decision_function(X, tasks=TASKS)[:, names]
    np.testing.assert_allclose(scores, wanted, atol=0.1 if offset > 1e10 else 1e-3)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_huge_offsets_between_tasks_hide_nothing_from_a_linear_kernel(method, form):
    rows = X + 1e9 * TASKS[:, None]
    model = estimator(method, "linear", form).fit(rows, tasks=TASKS)
    assert_sound(model, rows, TASKS)
    assert macro_nmi(Y, model.labels_, TASKS) > 0.95
    if form == "dual":
        new = model.fit_task(X[:24] + 1e11)
        assert macro_nmi(Y[:24], new.labels_, TASKS[:24]) > 0.95


@pytest.mark.parametrize(("method", "kernel", "form"), each_fit)
def test_differences_too_small_to_be_squared_are_reported(method, kernel, form):
    model = estimator(method, kernel, form)
    with pytest.warns(ConvergenceWarning, match="no variation within any task.*rescale X"):
        model.fit(X * 1e-300, tasks=TASKS)
    assert_sound(model, X * 1e-300, TASKS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", METHODS)
def test_differences_whose_squares_have_no_digits_left_are_reported(method, form):
    model = estimator(method, "linear", form)
    with pytest.warns(ConvergenceWarning, match="no variation within any task.*rescale X"):
        model.fit(X * 1e-160, tasks=TASKS)
    assert_sound(model, X * 1e-160, TASKS)


@pytest.mark.parametrize("weight", [1e-12, 1e-6, 1e6])
@pytest.mark.parametrize(("method", "kernel", "form"), each_fit)
def test_tiny_and_huge_penalties(method, kernel, form, weight):
    model = estimator(method, kernel, form, lambda1=weight, lambda2=weight)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the objective came out as -", ConvergenceWarning)
        model.fit(X, tasks=TASKS)
    # the primal form takes J from C/(C-1) per task, with 1/λ times the rounding
    assert_sound(model, X, TASKS, rounding=max(1e-9, 1e-15 / weight))
    assert -0.02 < model.objective_ <= 3 * 1.5 * (1 + 1e-9)
    if kernel == "linear":
        assert macro_nmi(Y, model.labels_, TASKS) > 0.8


def test_an_objective_below_zero_is_reported_with_its_figure_and_a_way_out():
    below = []
    for seed in range(12):  # rounding decides on which side of 0 the objective of a draw comes out
        model = estimator(DSTC, "rbf", "primal", lambda1=0.0, lambda2=1e-13)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(np.random.default_rng(seed).normal(size=(72, 4)), tasks=TASKS)
        told = [str(w.message) for w in caught if "came out as" in str(w.message)]
        assert bool(told) == (model.objective_ < 0)
        below += told
    assert below
    for message in below:
        assert re.search(r"came out as -.*lambda2=.*Raise them, or set solver_options", message)


@pytest.mark.parametrize("form", FORMS)
def test_identical_tasks_make_a_nearly_singular_relationship(form):
    rows = np.tile(X[:24], (3, 1))
    model = estimator(DMTRC, "linear", form, lambda1=1e-6, lambda2=1e-3, max_iter=200).fit(rows, tasks=TASKS)
    assert_sound(model, rows, TASKS)
    assert np.linalg.eigvalsh(model.task_covariance_)[0] < 1e-4
    np.testing.assert_array_equal(model.labels_[:24], model.labels_[24:48])


def test_a_kernel_that_is_not_positive_semidefinite_is_an_error_that_says_so():
    eigenvalues, vectors = np.linalg.eigh(X @ X.T)
    second = vectors[:, -2:-1]
    indefinite = X @ X.T - 2 * eigenvalues[-2] * second @ second.T
    for method in (DMTRC, DSTC):
        model = estimator(method, "precomputed", fit_intercept=False, lambda1=1e-4)
        with pytest.raises(np.linalg.LinAlgError, match="must be positive semidefinite"):
            model.fit(indefinite, tasks=TASKS)
        with pytest.raises(ValueError, match=r"negative.*must be positive semidefinite"):
            model.fit(-X @ X.T, tasks=TASKS)


@pytest.mark.parametrize(("method", "kernel", "form"), each_fit)
def test_as_many_clusters_as_rows_in_every_task_and_in_one(method, kernel, form):
    keep = np.concatenate([np.flatnonzero(task == TASKS)[:3] for task in range(3)])
    assert_sound(estimator(method, kernel, form).fit(X[keep], tasks=TASKS[keep]), X[keep], TASKS[keep])
    single = estimator(method, kernel, form, n_clusters=9).fit(X[:9])
    assert sorted(single.labels_.tolist()) == list(range(9))


def test_five_hundred_tasks():
    rows, y, tasks = gaussian_tasks(n_tasks=500, rows=6, spread=0.2)
    model = estimator(DMTFC, "linear", "primal", n_init=1).fit(rows, tasks=tasks)
    assert_sound(model, rows, tasks)
    assert macro_nmi(y, model.labels_, tasks) > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_tasks_of_one_row_beside_a_hundred_thousand(method):
    rows, y, tasks = gaussian_tasks(n_tasks=2, rows=50_000, spread=0.3)
    rows = np.concatenate([rows, rows[:3]])
    tasks = np.concatenate([tasks, [7, 8, 9]])
    model = estimator(method, "linear", "primal", n_init=1)
    with pytest.warns(SmallTaskWarning, match="3 of 5 tasks have fewer rows"):
        model.fit(rows, tasks=tasks)
    assert_sound(model, rows, tasks)
    assert macro_nmi(y, model.labels_[:100_000], tasks[:100_000]) > 0.95


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("method", [DMTRC, DMTFC])
def test_stopping_too_early_is_a_warning_with_figures(method, form):
    rows, _, tasks = gaussian_tasks(rows=300, spread=2.0)
    model = estimator(method, "linear", form, n_init=1, max_iter=1, tol=0.0, lambda1=1e-3)
    with pytest.warns(ConvergenceWarning, match=r"stopped after .* with the objective at [\d.]+ and still falling"):
        model.fit(rows, tasks=tasks)
    assert not model.converged_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambda1": 0}, "leaves no ridge; give lambda2 > 0"),
        ({"kernel": "rbf", "width": 1e-200}, "overflows for σ = .*; rescale X or raise width"),
        ({"kernel": "rbf", "width": 1e200}, "overflows for σ = .*; rescale X or lower width"),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_settings_that_leave_nothing_to_compute_with_are_refused(method, settings, message):
    with pytest.raises(ValueError, match=message):
        method(3, **settings).fit(X, tasks=TASKS)


def test_weights_that_no_memory_holds_are_an_error_that_says_so():
    with pytest.raises(MemoryError, match="Unable to allocate"):
        DSTC(2).fit(np.arange(10.0)[:, None], sample_weight=np.full(10, 10**13))
