"""Every public name of the library is there, takes what it always took and can be imported from where it always was."""

import importlib
import inspect

import numpy as np
import pandas as pd
import pytest

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import make_related_tasks

X, _, TASKS = make_related_tasks(3, n_samples=30, separation=5.0, random_state=0).X_y_tasks
PARAMETERS = {
    "n_clusters": 8, "kernel": "auto", "width": "auto", "lambda1": "auto", "lambda2": "auto", "coupling": "auto",
    "center": "auto", "sizes": "auto", "solver": "exchange", "solver_options": None, "n_components": None,
    "fit_intercept": True, "n_init": 8, "max_iter": 40, "tol": 1e-4, "task_column": None, "random_state": None,
    "n_jobs": None, "verbose": 0,
}  # fmt: skip
LACKS = {DMTRC: set(), DMTFC: {"coupling"}, DSTC: {"coupling", "center", "max_iter", "tol"}}
ATTRIBUTES = (
    "labels_", "probabilities_", "outlier_scores_", "task_offsets_", "tasks_", "coef_", "intercept_", "objective_",
    "loo_score_", "cluster_sizes_", "cluster_scores_", "task_groups_", "n_features_in_", "feature_names_in_",
    "n_iter_", "converged_", "history_", "selection_", "single_task_labels_", "n_clusters_",
)  # fmt: skip
COUPLING = {DMTRC: ("task_covariance_", "task_correlation_"), DMTFC: ("feature_covariance_",), DSTC: ()}
MODULES = {
    "mtclust": [
        "DMTRC", "DMTFC", "DSTC", "cluster", "load", "stack_tasks", "split_by_task", "exceptions", "__version__",
    ],
    "mtclust.selection": ["select_n_clusters", "Selection", "ClusterNumberChoice", "CouplingDecision"],
    "mtclust.scoring": ["task_scorer"],
    "mtclust.datasets": ["make_related_tasks", "load_digits_tasks"],
    "mtclust.exceptions": ["UncoupledWarning", "SmallTaskWarning", "DegenerateSolutionWarning"],
    "mtclust.plotting": ["plot_task_relationship", "plot_feature_covariance", "plot_tasks"],
    "mtclust.metrics": [],
    "mtclust.text": [],
    "mtclust.nuisance": [],
}  # fmt: skip


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_parameters_and_their_defaults(method):
    expected = {name: value for name, value in PARAMETERS.items() if name not in LACKS[method]}
    expected["n_init"] = 40 if method is DSTC else 8
    signature = inspect.signature(method).parameters
    assert {name: parameter.default for name, parameter in signature.items()} == expected
    assert [name for name, parameter in signature.items() if parameter.kind is not parameter.KEYWORD_ONLY] == [
        "n_clusters"
    ]
    assert method().get_params() == expected


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_methods_and_attributes_of_a_fitted_model(method, tmp_path):
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])])
    asked = {"tasks": None, "known": None, "sample_weight": None, "must_link": None, "cannot_link": None}
    fit = inspect.signature(method.fit).parameters
    assert {name: fit[name].default for name in asked} == asked
    model = method(3, kernel="linear", random_state=0).fit(frame, tasks=TASKS)
    for name in (*ATTRIBUTES, *COUPLING[method]):
        assert hasattr(model, name), name
    n, C = len(X), 3
    assert model.predict(frame, tasks=TASKS).shape == (n,)
    for name in ("decision_function", "predict_proba", "transform"):
        assert getattr(model, name)(frame, tasks=TASKS).shape == (n, C)
    assert np.isfinite(model.score(frame, tasks=TASKS))
    np.testing.assert_array_equal(model.fit_predict(frame, tasks=TASKS), model.labels_)
    new = model.fit_task(frame[TASKS == 0])
    assert new.predict(frame[:2]).shape == (2,)
    assert new.labels_.shape == (int(np.sum(TASKS == 0)),)
    assert model.stability(frame, tasks=TASKS, n_refits=2) is model.stability_
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(mtclust.load(tmp_path / "model").labels_, model.labels_)


@pytest.mark.parametrize("module", MODULES)
def test_import_paths(module):
    found = importlib.import_module(module)
    for name in [*MODULES[module], *getattr(found, "__all__", [])]:
        assert hasattr(found, name), f"{module}.{name}"


def test_a_table_is_clustered_and_what_comes_back(tmp_path):
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(X.shape[1])]).assign(city=np.array(["a", "b", "c"])[TASKS])
    found = mtclust.cluster(frame, task="city", n_clusters=3)
    assert found.labels.index.equals(frame.index)
    assert isinstance(found.clusters, pd.DataFrame)
    assert isinstance(found.tasks, pd.DataFrame)
    assert found.predict(frame).shape == (len(frame),)
    assert str(found.summary())
    found.report(tmp_path / "report.html")
    found.save(tmp_path / "found")
    assert (tmp_path / "report.html").exists()
