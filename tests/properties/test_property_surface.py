"""From a table to a model and back: fit, predict, a new task, a file, a pickle and a copy, on generated uses."""

import pickle
import time
import warnings

import numpy as np
import scipy.sparse as sp
from property_cases import holds
from property_surface import uses
from sklearn.base import clone

import mtclust

#: CPU seconds that a fit of so few rows may take
SLOW = 20.0


def same(a, b):
    """Whether two inputs hold the same."""
    if sp.issparse(a):
        return (a != b).nnz == 0
    return a.equals(b) if hasattr(a, "equals") else np.array_equal(np.asarray(a), np.asarray(b))


def is_sound(model, X, tasks, n):
    C = model.n_clusters_
    labels = np.asarray(model.labels_)
    assert labels.shape == (n,)
    assert 0 <= labels.min() <= labels.max() < C
    assert np.isfinite(model.objective_)
    scores = np.asarray(model.decision_function(X, tasks=tasks))
    assert scores.shape == (n, C)
    assert not np.isnan(scores).any()
    assert np.isfinite(scores.max(axis=1)).all()
    np.testing.assert_array_equal(model.predict(X, tasks=tasks), scores.argmax(axis=1))
    assert str(model.summary())
    return scores


def predicts_the_same(model, other, X, tasks, scores):
    np.testing.assert_array_equal(other.labels_, model.labels_)
    np.testing.assert_allclose(np.asarray(other.decision_function(X, tasks=tasks)), scores, rtol=1e-9, atol=1e-9)


def fitted(use):
    X, tasks = use.table()
    before, _ = use.table()
    model = use.estimator()
    begin = time.process_time()
    model.fit(X, tasks=tasks)
    assert time.process_time() - begin < SLOW
    assert same(X, before), "fit has changed X"
    return model, X, tasks


def clusters_a_new_task(use, model):
    rows = use.new_rows()
    new = model.fit_task(rows)
    assert new.labels_.shape == (8,)
    assert 0 <= new.labels_.min() <= new.labels_.max() < model.n_clusters_
    assert new.predict(rows).shape == (8,)
    return new.labels_


def test_every_use_of_the_public_surface_works_from_fit_to_a_loaded_copy(tmp_path):
    @holds("public surface", use=uses())
    def works(use):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model, X, tasks = fitted(use)
            scores = is_sound(model, X, tasks, len(use.rows))
            again, given = use.table(slice(3, 9))
            assert np.asarray(model.predict(again, tasks=given)).shape == (6,)
            new = None if use.precomputed else clusters_a_new_task(use, model)
            copies = [pickle.loads(pickle.dumps(model))]
            if not callable(use.parameters["kernel"]):
                model.save(tmp_path / "model")
                copies.append(mtclust.load(tmp_path / "model"))
            for copy in copies:
                predicts_the_same(model, copy, X, tasks, scores)
                if new is not None and use.parameters["random_state"] in (0, 7):
                    np.testing.assert_array_equal(clusters_a_new_task(use, copy), new)
            told, kept = (
                repr({name: value for name, value in each.get_params().items() if name != "random_state"})
                for each in (clone(model), model)
            )
            assert told == kept
            assert not hasattr(clone(model), "labels_")

    works()
