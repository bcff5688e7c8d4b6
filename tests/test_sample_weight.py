"""Rows that count several times: the same as repeating them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC, load
from mtclust.datasets import make_related_tasks
from tests.test_contract import CLASSES, FORMS

X, Y, TASKS = make_related_tasks(3, n_samples=30, separation=2.5, random_state=1).X_y_tasks
COUNTS = np.random.default_rng(0).integers(0, 4, len(Y))


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "dask"], ids=lambda form: form.name)
def test_weights_are_repeated_rows_in_every_form(form, method, tmp_path):
    counts = np.random.default_rng(1).integers(0, 3, len(CLASSES))
    rows = np.repeat(np.arange(len(counts)), counts)
    weighted = form.model(method).fit(form.rows, tasks=form.tasks, sample_weight=counts)
    repeated = form.model(method).fit(form.rows[rows], tasks=form.tasks[rows])
    there = counts > 0
    last = np.cumsum(counts)[there] - 1
    np.testing.assert_array_equal(weighted.labels_[there], repeated.labels_[last])
    np.testing.assert_allclose(weighted.probabilities_[there], repeated.probabilities_[last])
    np.testing.assert_allclose(weighted.outlier_scores_[there], repeated.outlier_scores_[last])
    scores = weighted.decision_function(form.rows, tasks=form.tasks)
    np.testing.assert_allclose(scores, repeated.decision_function(form.rows, tasks=form.tasks))
    np.testing.assert_array_equal(weighted.labels_[~there], scores[~there].argmax(axis=1))
    np.testing.assert_allclose(weighted.probabilities_.sum(axis=1), 1)
    assert np.all((weighted.outlier_scores_ >= 0) & (weighted.outlier_scores_ <= 1))
    np.testing.assert_array_equal(weighted.cluster_sizes_.sum(axis=0), np.bincount(weighted.labels_, minlength=3))
    weighted.save(tmp_path / "m")
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.decision_function(form.rows, tasks=form.tasks), scores)
    np.testing.assert_array_equal(again.labels_, weighted.labels_)


def test_weights_matter():
    """Two loose heaps: where one row counts 30 times, its neighbourhood is a cluster of its own."""
    table = np.array([[0.0], [0.2], [0.4], [0.6], [4.0], [4.2], [4.4], [9.0]])
    plain = DSTC(2, kernel="linear", sizes="balanced").fit(table)
    heavy = DSTC(2, kernel="linear", sizes="balanced").fit(table, sample_weight=[1, 1, 1, 1, 1, 1, 1, 7])
    assert adjusted_rand_score(plain.labels_, [0, 0, 0, 0, 1, 1, 1, 1]) == 1.0
    assert adjusted_rand_score(heavy.labels_, [0, 0, 0, 0, 0, 0, 0, 1]) == 1.0
    assert sorted(heavy.cluster_sizes_[0].tolist()) == [1, 7]


def test_once_each_is_no_weight():
    plain = DMTRC(3, random_state=0).fit(X, tasks=TASKS)
    for weights in (np.ones(len(Y)), pd.Series(np.ones(len(Y), dtype=int))):
        np.testing.assert_array_equal(DMTRC(3, random_state=0).fit(X, tasks=TASKS, sample_weight=weights).labels_,
                                      plain.labels_)  # fmt: skip


def test_known_rows_and_pairs_of_weighted_rows():
    known = np.full(len(Y), -1)
    known[:4] = [0, 1, 2, 0]
    counts = COUNTS.copy()
    counts[[0, 1]] = [0, 3]
    there = np.flatnonzero(counts > 1)[5:9]
    model = DMTRC(3, random_state=0).fit(
        X, tasks=TASKS, known=known, sample_weight=counts, must_link=[there[:2]], cannot_link=[there[2:]]
    )
    assert model.labels_[:4].tolist() == [0, 1, 2, 0]
    labels = model.labels_[there]
    assert labels[0] == labels[1]
    assert labels[2] != labels[3]


def test_wrong_weights():
    table = pd.DataFrame({"x": [0.0, 1.0, 5.0, 6.0]})
    for weights in (
        [1, 2],
        1,
        [1, 0.5, 1, 1],
        [1, 1, -2, 1],
        [1, 1, np.nan, 1],
        [1, 1, np.inf, 1],
        [0] * 4,
        list("abcd"),
    ):
        with pytest.raises(ValueError, match="how many times each of the 4 rows of X counts: whole numbers from 0 on"):
            DSTC(2).fit(table, sample_weight=weights)
    with pytest.raises(ValueError, match="the index of sample_weight is not that of X, or in another order"):
        DSTC(2).fit(table, sample_weight=pd.Series([1, 2, 1, 1], index=[3, 2, 1, 0]))
    with pytest.raises(ValueError, match="sample_weight is 0 in all rows of task 'b'"):
        DSTC(2, sizes="balanced").fit(table, tasks=["a", "a", "a", "b"], sample_weight=[1, 2, 1, 0])
    with pytest.raises(ValueError, match='is not square; kernel="precomputed" needs'):
        DSTC(2, kernel="precomputed").fit(np.eye(4), sample_weight=[1, 2, 1, 1])


def test_a_weighted_model_is_saved_and_loaded(tmp_path):
    model = DMTRC(3, random_state=0).fit(X, tasks=TASKS, sample_weight=COUNTS)
    model.save(tmp_path / "model.mtc")
    loaded = load(tmp_path / "model.mtc")
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    np.testing.assert_array_equal(loaded.predict(X, tasks=TASKS), model.predict(X, tasks=TASKS))
