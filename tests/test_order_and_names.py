"""Nothing depends on the order of rows and columns, on what tasks are called, or on chance, where sizes are open."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.choose.settings import all_rows, sample_rows
from mtclust.core.tasks import index_tasks


def _iris():
    X, _ = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), np.arange(150) % 3


def _overlapping(rows=120, n_tasks=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(3, d))
    y = rng.integers(3, size=(n_tasks, rows))
    X = centres[y] + rng.normal(size=(n_tasks, rows, d)) + rng.normal(size=(n_tasks, 1, d))
    return X.reshape(-1, d), np.repeat(np.arange(n_tasks), rows)


TABLES = {"iris": _iris(), "few rows": _overlapping(50), "a sample": _overlapping(180), "features": _overlapping(300)}


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
@pytest.mark.parametrize(("table", "method"), [
    ("iris", DMTRC), ("a sample", DMTRC), ("features", DMTRC), ("few rows", DMTFC), ("few rows", DSTC),
])  # fmt: skip
def test_order_names_and_seeds_change_nothing(table, method):
    X, tasks = TABLES[table]
    rng = np.random.default_rng(1)
    labels = method(3, random_state=0).fit(X, tasks=tasks).labels_
    rows, columns, names = rng.permutation(len(X)), rng.permutation(X.shape[1]), rng.permutation(3)
    others = {
        "rows": (rows, method(3, random_state=0).fit(X[rows], tasks=tasks[rows])),
        "names": (slice(None), method(3, random_state=0).fit(X, tasks=names[tasks])),
        "columns": (slice(None), method(3, random_state=0).fit(X[:, columns], tasks=tasks)),
        "seed": (slice(None), method(3, random_state=7).fit(X, tasks=tasks)),
    }
    assert {name: adjusted_rand_score(labels[order], other.labels_) for name, (order, other) in others.items()} == (
        dict.fromkeys(others, 1.0)
    )


def test_models_follow_the_names_of_tasks():
    X, tasks = _overlapping(60)
    one = DMTRC(3, coupling="full", center="task").fit(X, tasks=tasks)
    names = np.array(["c", "a", "b"])
    other = DMTRC(3, coupling="full", center="task").fit(X, tasks=names[tasks])
    order = np.argsort(names)  # where the tasks of the other fit were
    np.testing.assert_allclose(other.task_covariance_, one.task_covariance_[np.ix_(order, order)], rtol=1e-3, atol=1e-6)
    same = one.predict(X, tasks=tasks), other.predict(X, tasks=names[tasks])
    assert adjusted_rand_score(*same) > 0.99
    assert one.selection_["task_similarity"][0, 1] == pytest.approx(other.selection_["task_similarity"][2, 0], abs=1e-6)


@pytest.mark.parametrize("names", [[2, 0, 1], [1, 2, 0]])
def test_names_do_not_decide_in_which_order_tasks_are_refined(names):
    """Under E two tasks may undo each other's moves: who comes first counts, also where labels are carried on."""
    data = load_diabetes(scaled=False)
    rows = np.delete(data.data, [0, 1], axis=1)
    tasks = np.searchsorted([40, 55], data.data[:, 0], side="right")
    X = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    one, other = (DMTRC(3).fit(X, tasks=named).labels_ for named in (tasks, np.array(names)[tasks]))
    assert adjusted_rand_score(one, other) == 1.0


def test_rows_are_ordered_by_what_they_hold():
    X, tasks = _overlapping(20)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = index_tasks(tasks, 60).by_content(X), index_tasks(tasks[order], 60).by_content(X[order])
    np.testing.assert_array_equal(X[one.order], X[order][other.order])
    renamed = index_tasks((2 - tasks), 60).by_content(X)
    np.testing.assert_array_equal(2 - one.by_rows, renamed.by_rows)


def test_a_sample_knows_where_its_rows_and_tasks_are():
    X, tasks = _overlapping(30)
    index = index_tasks(tasks, 90).by_content(X)
    sample = sample_rows(X, index, 45, index.by_rows)
    np.testing.assert_array_equal(sample.rows, X[sample.order])
    np.testing.assert_array_equal(np.repeat(index.by_rows, 15), tasks[sample.order])
    positions, values, place = sample.by_task(np.arange(45))
    np.testing.assert_array_equal(index.by_rows[place], [0, 1, 2])
    for task in range(3):
        mine = values[15 * task : 15 * task + 15]
        np.testing.assert_array_equal(X[index.order[index.offsets[task] + positions[task]]], sample.rows[mine])
    assert not sample.complete
    assert all_rows(X, index).in_order


@pytest.mark.parametrize("rows", [100, 300])
def test_separation_is_of_the_labels_whoever_gave_the_sizes(rows):
    """The judge sees the same rows whether sizes are open or given, with kernel matrices and with features."""
    rng = np.random.default_rng(0)
    y, tasks = np.tile([0, 1, 2], rows), np.repeat([0, 1, 2], rows)
    X = 9.0 * np.eye(3)[y] + rng.normal(size=(3 * rows, 3))
    given, left_open = (DMTRC(3, sizes=sizes).fit(X, tasks=tasks) for sizes in ("balanced", "auto"))
    assert adjusted_rand_score(y, given.labels_) == adjusted_rand_score(y, left_open.labels_) == 1.0
    assert given.loo_score_ == pytest.approx(left_open.loo_score_, abs=0.02)
    assert given.selection_["coupling"]["decision"] == "full"


@pytest.mark.parametrize("rows", [200, 400])
def test_sizes_that_were_released_on_a_sample_stay_released(rows):
    """Clusters of 60, 25 and 15 % are not made equal when they are carried to all rows."""
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.permutation(np.repeat([0, 1, 2], [6 * rows // 10, rows // 4, 15 * rows // 100]))] * 3)
    X = 7.0 * np.eye(3)[y] + rng.normal(size=(len(y), 3))
    model = DMTRC(3, kernel="linear").fit(X, tasks=np.repeat([0, 1, 2], len(y) // 3))
    assert adjusted_rand_score(y, model.labels_) > 0.98
