"""Columns with few values do not decide clusters by their gaps, and still say what they say together with others."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC, load
from mtclust.core.few_values import few_valued, spread
from mtclust.datasets import make_related_tasks


def mixed_table(seed=0, n=300, coins=2, answers=3):
    """Three clusters in four measurements, and in yes-or-no answers that are wrong one time in five; coins besides."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    measured = 2 * rng.normal(size=(3, 4))[y] + rng.normal(size=(n, 4))
    right = rng.integers(2, size=(3, answers))[y]
    answered = np.where(rng.random((n, answers)) < 0.2, 1 - right, right)
    table = np.c_[measured, answered, rng.integers(2, size=(n, coins))].astype(float)
    return (table - table.mean(axis=0)) / np.maximum(table.std(axis=0), 1e-9), y


@pytest.mark.parametrize("seed", range(3))
def test_coins_decide_nothing(seed):
    table, y = mixed_table(seed)
    model = DSTC(3).fit(table)
    assert model.spread_columns_.tolist() == [k for k in range(4, 9) if table[:, k].std() > 0]
    assert adjusted_rand_score(y, model.labels_) > 0.6
    for coin in table[:, -2:].T:
        assert adjusted_rand_score(coin > 0, model.labels_) < 0.1
    # with sizes given nothing is spread, as in the paper
    assert DSTC(3, sizes="balanced").fit(table).spread_columns_.tolist() == []


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_everything_after_a_fit_takes_rows_as_they_are(method, tmp_path):
    X, y, tasks = make_related_tasks(3, n_samples=60, separation=6.0, random_state=0).X_y_tasks
    X = np.c_[X, np.random.default_rng(0).integers(2, size=len(X))]
    given = X.copy()
    model = method(3, random_state=0).fit(X, tasks=tasks)
    np.testing.assert_array_equal(X, given)
    assert model.spread_columns_.tolist() == [X.shape[1] - 1]
    assert adjusted_rand_score(y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X, tasks=tasks), model.labels_)
    np.testing.assert_array_equal(model.probabilities_.argmax(axis=1), model.labels_)
    np.testing.assert_array_equal(model.cluster_sizes_.sum(axis=0), np.bincount(model.labels_))
    assert model.stability(X, tasks=tasks).overall > 0.9
    new = model.fit_task(X[tasks == 1])
    assert adjusted_rand_score(y[tasks == 1], new.labels_) > 0.9
    np.testing.assert_array_equal(new.predict(X[tasks == 1]), new.labels_)
    np.testing.assert_array_equal(model.fit_task(sp.csr_array(X[tasks == 1])).labels_, new.labels_)
    assert abs(model.score(X, tasks=tasks) - model.loo_score_) < 0.1
    model.save(tmp_path / "model.mtc")
    loaded = load(tmp_path / "model.mtc")
    np.testing.assert_array_equal(loaded.fit_task(X[tasks == 1]).labels_, new.labels_)


def test_known_rows_and_pairs_stay():
    table, y = mixed_table(1)
    known = np.full(len(y), -1)
    known[:30] = y[:30]
    known[5] = (known[5] + 1) % 3
    pairs = np.arange(40, 60).reshape(-1, 2)
    model = DSTC(3).fit(table, known=known, must_link=pairs[:5], cannot_link=pairs[5:])
    np.testing.assert_array_equal(model.labels_[:30], known[:30])
    same = model.labels_[pairs[:, 0]] == model.labels_[pairs[:, 1]]
    assert same.tolist() == [True] * 5 + [False] * 5


def test_spreading_follows_from_the_content_alone():
    rng = np.random.default_rng(0)
    table = np.c_[rng.normal(size=(80, 2)), rng.integers(2, size=80), rng.integers(4, size=80)]
    columns = few_valued(table)
    assert columns.tolist() == [2, 3]
    found = spread(table, columns)
    np.testing.assert_array_equal(found[:, :2], table[:, :2])
    np.testing.assert_allclose(found.mean(axis=0), table.mean(axis=0))
    np.testing.assert_allclose(found.std(axis=0), table.std(axis=0))
    for k in columns:  # values stay in order, and none is there twice
        for value in np.unique(table[:, k])[1:]:
            assert found[table[:, k] < value, k].max() < found[table[:, k] == value, k].min()
        assert len(np.unique(found[:, k])) == 80
    rows, order = rng.permutation(80), [3, 1, 2, 0]
    np.testing.assert_allclose(spread(table[rows], columns), found[rows])
    np.testing.assert_allclose(spread(table[:, order], np.array([0, 2])), found[:, order])
    np.testing.assert_allclose(spread(5 * table - 2, columns), 5 * found - 2)


def test_noise_of_different_columns_is_independent_and_equal_rows_are_spread_apart():
    rng = np.random.default_rng(0)
    table = rng.integers(2, size=(4000, 3)).astype(float)
    table[:, 2] = table[:, 0]
    noise = spread(table, np.arange(3))
    # within rows that are equal in all columns
    equal = (table[:, 0] == 1) & (table[:, 1] == 0)
    assert abs(np.corrcoef(noise[equal, 0], noise[equal, 1])[0, 1]) < 0.1
    np.testing.assert_array_equal(noise[:, 0], noise[:, 2])
    assert noise[equal, 0].std() > 0.25


def test_what_is_not_spread():
    rng = np.random.default_rng(0)
    assert few_valued(rng.integers(6, size=(300, 1)).astype(float)).tolist() == []
    assert few_valued(np.ones((300, 1))).tolist() == []
    assert few_valued(rng.integers(2, size=(49, 1)).astype(float)).tolist() == []
    late = np.zeros((3000, 1))
    late[2000:, 0] = np.arange(1000)  # only the first rows look alike
    assert few_valued(late).tolist() == []
    one = np.array([[1.0, 2.0]])
    assert spread(one, np.array([0])) is one
