"""What every reference method must do, whatever it optimises."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference_helpers import assert_never_rises, separated_tasks
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtclust.metrics import nmi, per_task
from paper.reference import LSKMTC, LSSMTC, MBC, REFERENCE_METHODS, KernelKMeans, NormalizedCut, PerTask, Pooled

OWN_ESTIMATORS = [KernelKMeans, NormalizedCut, LSSMTC, LSKMTC, MBC]
ALTERNATING = [KernelKMeans, LSSMTC, LSKMTC, MBC]


@parametrize_with_checks(
    [estimator() for estimator in OWN_ESTIMATORS]
    + [wrapper(KMeans(3, n_init=1, random_state=0)) for wrapper in (PerTask, Pooled)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API")
def test_scikit_learn_estimator_checks_with_one_task(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", REFERENCE_METHODS)
def test_separated_clusters_are_found_in_every_task(name, seed):
    X, classes, tasks = separated_tasks(seed=seed)
    labels = REFERENCE_METHODS[name].build(4, random_state=0).fit_predict(X, tasks=tasks)
    scores = per_task(nmi, classes, labels, tasks)
    assert min(scores.values()) > 0.95, scores


@pytest.mark.parametrize("name", REFERENCE_METHODS)
def test_same_random_state_same_result(name, noise):
    X, tasks = noise
    first, second = (REFERENCE_METHODS[name].build(3, n_init=2, random_state=5).fit(X, tasks=tasks) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.objective_ == second.objective_


@pytest.mark.parametrize("estimator", ALTERNATING)
def test_objective_never_rises(estimator, rows_and_tasks):
    X, tasks = rows_and_tasks
    for seed in range(3):
        model = estimator(5, n_init=2, random_state=seed).fit(X, tasks=tasks)
        assert_never_rises(model.history_)
        assert model.history_[-1] == model.objective_


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_sparse_equals_dense(estimator, separated):
    X, _, tasks = separated
    X = np.where(np.abs(X) < 1, 0, X)
    # few steps: rounding differs between the two and grows along a long run
    dense = estimator(4, n_init=2, tol=1e-2, random_state=0).fit(X, tasks=tasks)
    sparse = estimator(4, n_init=2, tol=1e-2, random_state=0).fit(sp.csr_array(X), tasks=tasks)
    # clusters, not ids: two restarts can end in the same clusters, and rounding decides between them
    assert min(per_task(nmi, dense.labels_, sparse.labels_, tasks).values()) == pytest.approx(1.0)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-8)


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_labels_come_back_in_the_order_of_the_input(estimator):
    X, _, tasks = separated_tasks()
    labels = estimator(4, random_state=0).fit_predict(X, tasks=tasks)
    by_task = np.argsort(tasks, kind="stable")
    sorted_labels = estimator(4, random_state=0).fit_predict(X[by_task], tasks=tasks[by_task])
    np.testing.assert_array_equal(labels[by_task], sorted_labels)


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_no_tasks_means_one_task(estimator, noise):
    X, _ = noise
    without = estimator(3, n_init=2, random_state=0).fit(X)
    with_one = estimator(3, n_init=2, random_state=0).fit(X, tasks=np.full(len(X), "all"))
    np.testing.assert_array_equal(without.labels_, with_one.labels_)
    assert without.objective_ == with_one.objective_


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_input_is_not_changed_and_frames_are_read(estimator, noise):
    X, tasks = noise
    before = X.copy()
    model = estimator(3, n_init=1, random_state=0).fit(X, tasks=tasks)
    np.testing.assert_array_equal(X, before)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    from_frame = estimator(3, n_init=1, random_state=0).fit(frame, tasks=pd.Series(tasks))
    np.testing.assert_array_equal(model.labels_, from_frame.labels_)
    assert from_frame.feature_names_in_.tolist() == list("abcdef")


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_every_restart_is_reported(estimator, noise):
    X, tasks = noise
    model = estimator(3, n_init=4, random_state=0).fit(X, tasks=tasks)
    assert model.restart_labels_.shape == (4, len(X))
    assert model.restart_objectives_.shape == (4,)
    assert model.objective_ <= model.restart_objectives_.min() + 1e-12
    assert model.n_iter_ >= 1
    assert model.tasks_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_equal_rows_are_no_obstacle(estimator):
    model = estimator(2, n_init=2, random_state=0).fit(np.ones((8, 3)), tasks=list("aaaabbbb"))
    assert np.isfinite(model.objective_)
    assert set(model.labels_.tolist()) <= {0, 1}


@pytest.mark.parametrize("estimator", OWN_ESTIMATORS)
def test_a_task_with_too_few_rows_is_named(estimator, noise):
    X, _ = noise
    tasks = np.repeat(["big", "small"], [88, 2])
    with pytest.raises(ValueError, match="task 'small' has n_samples=2, fewer than n_clusters=3"):
        estimator(3).fit(X, tasks=tasks)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (KernelKMeans(2, width=0), "'width' parameter of KernelKMeans must be a float in the range"),
        (KernelKMeans(2, kernel="cosine"), "'kernel' parameter of KernelKMeans must be a str among"),
        (NormalizedCut(0), "'n_clusters' parameter of NormalizedCut must be an int in the range"),
        (LSSMTC(2, trade_off=1.5), "'trade_off' parameter of LSSMTC must be a float in the range .0.*1"),
        (LSSMTC(2, n_components=0), "'n_components' parameter of LSSMTC"),
        (LSSMTC(2, init="zeros"), "'init' parameter of LSSMTC must be a str among"),
        (MBC(2, strength=-1), "'strength' parameter of MBC"),
        (LSKMTC(2, mmd_weight=-1), "'mmd_weight' parameter of LSKMTC"),
        (LSKMTC(3, n_eigenvectors=5), "n_eigenvectors=5 is too small for n_clusters=3 in 3 tasks; give at least 9"),
        (MBC(2, max_iter=0), "'max_iter' parameter of MBC"),
        (PerTask("KMeans"), "'estimator' parameter of PerTask must be an object implementing 'fit_predict'"),
    ],
)
def test_wrong_arguments_are_named(model, message, noise):
    X, tasks = noise
    with pytest.raises(ValueError, match=message):
        model.fit(X, tasks=tasks)


def test_too_few_steps_are_reported(noise):
    X, tasks = noise
    message = r"LSSMTC had not converged after max_iter=1 steps; raise max_iter or tol \(now"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        LSSMTC(3, max_iter=1, random_state=0).fit(X, tasks=tasks)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("model", [KernelKMeans(3, random_state=0), PerTask(KMeans(3, n_init=1, random_state=0))])
def test_task_ids_are_routed_without_a_request(model, noise):
    X, tasks = noise
    expected = clone(model).fit(X, tasks=tasks).labels_
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(FunctionTransformer(), clone(model)).fit(X, tasks=tasks)
    np.testing.assert_array_equal(pipeline[-1].labels_, expected)


@pytest.mark.parametrize("estimator", [*OWN_ESTIMATORS, PerTask, Pooled])
def test_fit_takes_tasks_by_keyword_only(estimator):
    tasks = inspect.signature(estimator.fit).parameters["tasks"]
    assert tasks.kind is inspect.Parameter.KEYWORD_ONLY
    assert tasks.default is None
