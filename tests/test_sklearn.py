"""scikit-learn's own checks, and the tools its users combine estimators with."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mtclust import DMTFC, DMTRC, DSTC, task_scorer
from mtclust.exceptions import InputWarning
from mtclust.metrics import macro_nmi, nmi
from tests.conftest import gaussian_tasks

X, Y, TASKS = gaussian_tasks()


def not_for_clusterers(estimator):
    """Checks that take whatever has predict_proba for a classifier."""
    classes = "expects a column of predict_proba for each of four classes"
    return dict.fromkeys(("check_estimator_sparse_array", "check_estimator_sparse_matrix"), classes)


@parametrize_with_checks(
    [DMTRC(), DMTFC(kernel="linear"), DSTC()],
    expected_failed_checks=not_for_clusterers,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.coo_array, sp.dia_matrix])
@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_sparse_tables_of_every_kind_are_fitted_like_dense_ones(method, container):
    """What is left of the checks above that are not for clusterers."""
    dense, sparse = (method(4, kernel="linear", random_state=0).fit(rows) for rows in (X, container(X)))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_allclose(sparse.predict_proba(container(X)), dense.predict_proba(X), atol=1e-6)
    assert sparse.predict(container(X)).shape == (len(X),)


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_clone_and_set_params_keep_every_parameter(method):
    model = method(4, kernel="linear", lambda1=0.5, sizes=[[1, 2, 3, 4]])
    assert clone(model).get_params() == model.get_params()
    assert clone(model).set_params(lambda1=0.25).lambda1 == 0.25


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_tasks_reach_the_estimator_through_a_pipeline(routing):
    pipeline = make_pipeline(StandardScaler(), DMTRC(3, width=1.0, random_state=0))
    pipeline.fit(X, tasks=TASKS)
    assert pipeline[-1].tasks_.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(pipeline.predict(X, tasks=TASKS), pipeline[-1].labels_)


def test_grid_search_with_routed_tasks(routing):
    search = GridSearchCV(
        DMTRC(3, kernel="linear", random_state=0),
        {"lambda1": [0.01, 0.1]},
        scoring=task_scorer(nmi),
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    search.fit(X, Y, tasks=TASKS)
    assert search.best_estimator_.tasks_.tolist() == [0, 1, 2]
    assert search.best_score_ == pytest.approx(1)


def test_grid_search_with_a_task_column_and_no_routing():
    frame = pd.DataFrame(X, columns=list("abcd")).assign(shop=np.array(["x", "y", "z"])[TASKS])
    search = GridSearchCV(
        DMTRC(3, kernel="linear", task_column="shop", random_state=0),
        {"lambda2": [0.01, 0.1]},
        scoring=task_scorer(nmi),
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(frame, Y)
    assert search.best_score_ == pytest.approx(1)
    assert macro_nmi(Y, search.predict(frame), frame["shop"]) == 1
    by_name = GridSearchCV(search.estimator, {"n_init": [2]}, scoring="adjusted_rand_score", cv=GroupKFold(2))
    by_name.fit(frame, Y, groups=np.arange(90) % 10)
    assert by_name.best_score_ > 0.9


def test_scorer_is_the_mean_over_tasks():
    model = DSTC(3, kernel="linear", random_state=0).fit(X, tasks=TASKS)
    wrong = np.where(TASKS == 0, 0, Y)  # no information about task 0
    assert task_scorer(nmi)(model, X, wrong, tasks=TASKS) == pytest.approx(2 / 3)
    assert repr(task_scorer(nmi)) == "task_scorer(nmi)"


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_scores_come_as_a_frame_where_that_is_asked_for(method):
    frame = pd.DataFrame(X, index=[f"row {j}" for j in range(len(X))])
    frame.columns = frame.columns.astype(str)
    model = method(3, kernel="linear", random_state=0).set_output(transform="pandas")
    first = model.fit_transform(frame, tasks=TASKS)
    scores = model.transform(frame, tasks=TASKS)
    name = method.__name__.lower()
    assert scores.columns.tolist() == [f"{name}{c}" for c in range(3)]
    assert scores.index.equals(frame.index)
    np.testing.assert_array_equal(scores, model.decision_function(frame, tasks=TASKS))
    pd.testing.assert_frame_equal(first, scores)


def test_a_search_over_the_number_of_clusters_warns_and_one_without_tasks_names_the_remedy():
    X, _, tasks = gaussian_tasks(n_tasks=2, rows=30)
    frame = np.column_stack([X, tasks])
    folds = KFold(2, shuffle=True, random_state=0)
    model = DSTC(3, kernel="linear", lambda1=0.1, sizes="balanced", task_column=X.shape[1], random_state=0)
    with pytest.warns(InputWarning, match="n_clusters by score"):
        GridSearchCV(model, {"n_clusters": [2, 3]}, cv=folds).fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        GridSearchCV(model, {"lambda1": [0.1, 0.2]}, cv=folds).fit(frame)
    fitted = DSTC(3, kernel="linear", lambda1=0.1, sizes="balanced", random_state=0).fit(X, tasks=tasks)
    with pytest.raises(ValueError, match="task_column="):
        fitted.score(X)
