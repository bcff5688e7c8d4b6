"""From a table to a model and back: fit, predict, a new task, a file, a pickle and a copy, on generated uses."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from property_cases import PARTS, holds, timed
from property_surface import uses
from sklearn.base import clone

import mtclust


def same(a, b):
    """Whether two inputs hold the same."""
    if sp.issparse(a):
        return (a != b).nnz == 0
    return a.equals(b) if hasattr(a, "equals") else np.array_equal(np.asarray(a), np.asarray(b))


def is_sound(use, model, X, tasks):
    n, C = len(use.rows), model.n_clusters_
    labels = np.asarray(model.labels_)
    assert labels.shape == (n,)
    assert 0 <= labels.min() <= labels.max() < C
    assert np.isfinite(model.objective_)
    scores = np.asarray(model.decision_function(X, tasks=tasks))
    assert scores.shape == (n, C)
    assert not np.isnan(scores).any()
    assert np.isfinite(scores.max(axis=1)).all()
    np.testing.assert_array_equal(model.predict(X, tasks=tasks), scores.argmax(axis=1))
    if use.known is not None:
        wanted = np.array([-1 if k is None or k != k else int(k) for k in use.known])
        np.testing.assert_array_equal(labels[wanted >= 0], wanted[wanted >= 0])
    return scores


def is_sure_in_measure(use, model, X, tasks):
    """Probabilities, outliers and separation are numbers that mean what they should."""
    for found in (model.predict_proba(X, tasks=tasks), model.probabilities_):
        found = np.asarray(found)
        assert found.shape == (len(use.rows), model.n_clusters_)
        assert found.min() >= 0
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert model.outlier_scores_.shape == (len(use.rows),)
    assert 0 <= model.outlier_scores_.min() <= model.outlier_scores_.max() <= 1
    assert len(model.get_feature_names_out()) == model.n_clusters_
    assert np.isfinite(model.loo_score_)
    if not use.precomputed and use.container != "dask":
        assert np.isfinite(model.score(X, tasks=tasks))


def predicts_the_same(model, other, X, tasks, scores):
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_allclose(np.asarray(other.transform(X, tasks=tasks)), scores, rtol=1e-9, atol=1e-9)


def fitted(use):
    X, tasks = use.table()
    before, _ = use.table()
    model = use.estimator()
    with timed():
        model.fit(X, tasks=tasks, **{} if use.known is None else {"known": use.known})
    assert same(X, before), "fit has changed X"
    return model, X, tasks


def clusters_a_new_task(use, model):
    rows = use.new_rows()
    new = model.fit_task(rows)
    assert new.labels_.shape == (8,)
    assert 0 <= new.labels_.min() <= new.labels_.max() < model.n_clusters_
    assert new.predict(rows).shape == (8,)
    scores = new.decision_function(rows)
    assert not np.isnan(scores).any()
    if not isinstance(use.parameters["n_clusters"], dict):  # a new task has all clusters that a fitted task has
        assert np.isfinite(scores[:, model.cluster_sizes_.any(axis=0)]).all()
    np.testing.assert_allclose(new.predict_proba(rows).sum(axis=1), 1.0)
    return new.labels_


@pytest.mark.parametrize("part", range(PARTS["public surface"]))
def test_every_use_of_the_public_surface_works_from_fit_to_a_loaded_copy(part, tmp_path):
    @holds("public surface", part, use=uses())
    def works(use):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model, X, tasks = fitted(use)
            scores = is_sound(use, model, X, tasks)
            is_sure_in_measure(use, model, X, tasks)
            again, given = use.table(slice(3, 9))
            assert np.asarray(model.predict(again, tasks=given)).shape == (6,)
            new = None if use.precomputed else clusters_a_new_task(use, model)
            copies = [pickle.loads(pickle.dumps(model))]
            if not callable(use.parameters["kernel"]):
                model.save(tmp_path / "model")
                copies.append(mtclust.load(tmp_path / "model"))
            for copy in copies:
                predicts_the_same(model, copy, X, tasks, scores)
                if new is not None and use.seeded:
                    np.testing.assert_array_equal(clusters_a_new_task(use, copy), new)
            told, kept = (
                repr({name: value for name, value in each.get_params().items() if name != "random_state"})
                for each in (clone(model), model)
            )
            assert told == kept
            assert not hasattr(clone(model), "labels_")

    works()
