"""load_digits_tasks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from mtclust.datasets import load_digits_tasks


def test_every_task_has_the_digits_and_no_row_is_in_two_tasks():
    made = load_digits_tasks([1, 7, 4], n_tasks=4, rows_per_class=[5, 10, 15], seed=3)
    assert made.n_tasks == 4
    assert len(set(made.rows.tolist())) == len(made.rows) == 4 * 30
    for task in range(4):
        target = made.target[made.tasks == task]
        assert [int((target == digit).sum()) for digit in (1, 7, 4)] == [5, 10, 15]


def test_rows_number_the_bundled_digits_scaled_to_one():
    bunch = load_digits()
    made = load_digits_tasks(seed=1)
    np.testing.assert_array_equal(made.data, bunch.data[made.rows] / 16)
    np.testing.assert_array_equal(made.target, bunch.target[made.rows])
    assert made.data.min() == 0
    assert made.data.max() == 1
    assert len(made.feature_names) == made.data.shape[1]


def test_seed_decides_the_draw():
    first, again, other = (load_digits_tasks(seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.rows, again.rows)
    assert set(first.rows.tolist()) != set(other.rows.tolist())


def test_unrelated_group_follows_the_first_and_shares_no_row_with_it():
    made = load_digits_tasks([0, 3], unrelated=[3, 5], n_tasks=2, rows_per_class=30)
    assert made.n_tasks == 4
    assert [sorted(set(made.target[made.tasks == task].tolist())) for task in range(4)] == [[0, 3]] * 2 + [[3, 5]] * 2
    assert len(set(made.rows.tolist())) == len(made.rows)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"digits": [1, 1]}, "different digits"),
        ({"digits": [1, 10]}, "different digits"),
        ({"digits": []}, "different digits"),
        ({"unrelated": [1, 2]}, "as many digits"),
        ({"n_tasks": 0}, "n_tasks"),
        ({"rows_per_class": 0}, "at least 1"),
        ({"rows_per_class": [1, 2]}, "rows_per_class has 2 entries but there are 5 classes"),
        ({"n_tasks": 10}, "too few"),
    ],
)
def test_impossible_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        load_digits_tasks(**arguments)


def test_result_cannot_be_changed_and_gives_the_triple():
    made = load_digits_tasks()
    with pytest.raises(AttributeError):
        made.data = None
    X, y, tasks = made.X_y_tasks
    assert X is made.data
    assert y is made.target
    assert tasks is made.tasks
    assert all(made.target_names[label] == str(label) for label in y.tolist())
