"""Properties of fitted models, on generated problems.

A search among labels may end elsewhere when rounding differs, so what must not depend on the order of rows, tasks and
features, on units, rotation or the kind of container is the objective and the scores *of given labels*. Where the
arithmetic is the same bit for bit, the labels are the same as well.
"""

from itertools import product

import numpy as np
import scipy.sparse as sp
from hypothesis import assume
from hypothesis import strategies as st
from property_cases import holds
from property_problems import Problem, no_variation, objective_and_scores, problems, rows_of
from threadpoolctl import threadpool_limits

from mtclust.core.labels import parse_sizes

TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


def assert_objective_and_scores(problem, model, scores, value, expected):
    """Equal up to rounding, and up to the directions that Nyström features leave out."""
    nystroem = problem.form == "primal" and problem.kernel == "rbf"
    np.testing.assert_allclose(model.objective_, value, **{"rtol": 1e-3, "atol": 1e-4} if nystroem else TOLERANCE)
    np.testing.assert_allclose(scores, expected, **{"rtol": 0.05, "atol": 0.02} if nystroem else {"atol": 1e-4})


def attributes_are_sound(problem, model):
    n = len(problem.X)
    names, sizes = np.unique(problem.tasks, return_counts=True)
    assert model.labels_.shape == (n,)
    assert model.labels_.min() >= 0
    assert model.labels_.max() < problem.n_clusters
    bounds = parse_sizes(problem.sizes, sizes, problem.n_clusters)
    for i, name in enumerate(names):
        counts = np.bincount(model.labels_[problem.tasks == name], minlength=problem.n_clusters)
        assert bounds.respects(i, counts)
        assert counts.tolist() == model.cluster_sizes_[i].tolist()
    values = np.array([entry["objective"] for entry in model.history_])
    assert np.all(np.isfinite(values))
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[:-1]))
    for name, value in model.__getstate__().items():  # with what is found when it is first read
        if isinstance(value, np.ndarray | float) and np.asarray(value).dtype.kind == "f":
            assert np.all(np.isfinite(value)), name
    # a constant labelling is the worst there is: C/(C-1) per task
    assert 0 <= model.objective_ <= len(names) * problem.n_clusters / (problem.n_clusters - 1) * (1 + 1e-9)


def covariance_is_psd_with_trace_one(Z):
    np.testing.assert_allclose(Z, Z.T, atol=1e-12)
    assert np.linalg.eigvalsh(Z).min() >= -1e-10
    assert abs(np.trace(Z) - 1) <= 1e-9


@holds("fitted model", problem=problems())
def test_sizes_labels_history_and_coupling_are_sound(problem):
    model = problem.fit()
    attributes_are_sound(problem, model)
    if problem.method == "DMTRC":
        covariance_is_psd_with_trace_one(model.task_covariance_)
        np.testing.assert_allclose(model.task_correlation_.diagonal(), 1.0)
    if problem.method == "DMTFC" and not no_variation(problem):
        covariance_is_psd_with_trace_one(model.feature_covariance_)


#: for which the coupling is known in the space of X
known = problems(methods=("DMTRC", "DSTC")) | problems(methods=("DMTFC",), kernels=("linear",))


@holds("given labels", problem=known)
def test_objective_and_scores_of_the_labels_depend_on_nothing_but_the_data(problem):
    assume(not no_variation(problem))
    model = problem.fit()
    rng = np.random.default_rng(problem.seed)
    order = rng.permutation(len(problem.X))
    X, tasks, labels = problem.X[order], problem.tasks[order], model.labels_[order]
    scores = model.decision_function(X, tasks=tasks)
    if problem.method != "DMTFC":  # its D is given in these coordinates
        X = X[:, rng.permutation(X.shape[1])]
        rotation = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
        X = 10.0 ** rng.uniform(-3, 3) * (X @ rotation)
    if problem.fit_intercept and problem.kernel == "linear":
        X = X + np.abs(X).max() * rng.normal(size=(tasks.max() + 1, X.shape[1]))[tasks]
    value, expected = objective_and_scores(problem, model, X, tasks, labels)
    assert_objective_and_scores(problem, model, scores, value, expected)


def test_one_row_far_from_all_others_in_small_units_is_no_lack_of_variation():
    """The definition that fits are compared with depends on no units either."""
    X, tasks = rows_of("heavy tails", (1, 1, 3, 12), 4, 5)
    problem = Problem(X, tasks, "DMTRC", "rbf", "dual", 2, "balanced", 1e-4, True, 5)
    model = problem.fit()
    for unit in (1e-3, 1.0, 1e3):
        assert not no_variation(problem.changed(X=unit * X))
        value, scores = objective_and_scores(problem, model, unit * X)
        assert_objective_and_scores(problem, model, model.decision_function(X, tasks=tasks), value, scores)


@holds("exact change of data", problem=problems(), exponent=st.integers(-20, 20))
def test_units_mixing_of_tasks_and_their_names_change_no_bit(problem, exponent):
    model = problem.fit()
    rng = np.random.default_rng(problem.seed)
    # rows of a task stay in their order, tasks are mixed anew, names keep their order
    keys = rng.random(len(problem.X))
    for task in np.unique(problem.tasks):
        mine = problem.tasks == task
        keys[mine] = np.sort(keys[mine])
    order = np.argsort(keys)
    names = np.array(["a", "b", "ö", "東"])
    other = problem.fit(problem.X[order] * 2.0**exponent, names[problem.tasks[order]])
    assert other.objective_ == model.objective_
    assert [entry["objective"] for entry in other.history_] == [entry["objective"] for entry in model.history_]
    np.testing.assert_array_equal(_partition(other.labels_), _partition(model.labels_[order]))


def _partition(labels):
    """Clusters numbered as they first appear: ids follow the order of the input."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def test_units_change_no_bit_where_only_tasks_differ_or_no_row_does():
    tasks, rng = np.repeat([0, 1], [5, 4]), np.random.default_rng(0)
    apart = np.repeat([[1.5, -0.7], [1.3, 0.2]], [5, 4], axis=0)
    equal = [np.tile(10 * rng.normal(size=5), (9, 1)) for _ in range(5)]  # distances are rounding
    for X, method, form in product([apart, *equal], ("DMTRC", "DMTFC", "DSTC"), ("dual", "primal")):
        problem = Problem(X, tasks, method, "rbf", form, 2, "balanced", 1e-4, False, 0)
        model, other = problem.fit(), problem.fit(8.0 * X)
        assert other.objective_ == model.objective_
        np.testing.assert_array_equal(other.labels_, model.labels_)
        if X is apart and method != "DMTFC":
            assert_objective_and_scores(
                problem, model, model.decision_function(X, tasks=tasks), *objective_and_scores(problem, model)
            )


@holds("container", problem=problems(), layout=st.sampled_from(["fortran", "strided", "read-only", "sparse"]))
def test_containers_change_neither_the_objective_nor_the_scores_and_are_not_changed(problem, layout):
    assume(not no_variation(problem))
    if layout == "fortran":
        X = np.asfortranarray(problem.X)
    elif layout == "strided":
        X = np.repeat(np.repeat(problem.X, 2, axis=0), 3, axis=1)[::2, 1::3]
    elif layout == "sparse":
        X = sp.csr_array(problem.X)
    else:
        X = problem.X.copy()
        X.flags.writeable = False
    before = X.copy()
    model = problem.fit(X)
    np.testing.assert_array_equal(X.toarray() if layout == "sparse" else X, problem.X)
    assert (before != X).sum() == 0
    attributes_are_sound(problem, model)
    scores = model.decision_function(problem.X, tasks=problem.tasks)
    np.testing.assert_allclose(model.decision_function(X, tasks=problem.tasks), scores, **TOLERANCE)
    if problem.method == "DMTFC" and problem.kernel == "rbf":
        return
    value, expected = objective_and_scores(problem, model)
    assert_objective_and_scores(problem, model, scores, value, expected)


@holds("single precision", problem=problems(methods=("DMTRC", "DSTC"), kinds=("normal", "clusters", "integers")))
def test_single_precision_has_the_objective_of_double_precision(problem):
    assume(not no_variation(problem))
    X = problem.X.astype(np.float32)
    model = problem.fit(X)
    attributes_are_sound(problem, model)
    value, _ = objective_and_scores(problem, model, X.astype(np.float64))
    np.testing.assert_allclose(model.objective_, value, rtol=1e-3, atol=1e-4)
    if problem.form == "dual":
        np.testing.assert_array_equal(model.labels_, problem.fit(X.astype(np.float64)).labels_)


@holds("parallel", problem=problems())
def test_threads_and_jobs_change_no_bit(problem):
    model = problem.fit(n_jobs=1)
    with threadpool_limits(limits=2):
        for other in (problem.fit(n_jobs=2), problem.fit(n_jobs=1)):
            np.testing.assert_array_equal(other.labels_, model.labels_)
            assert other.objective_ == model.objective_
