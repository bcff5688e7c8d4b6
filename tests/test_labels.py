"""Label codes and size bounds."""

import itertools

import numpy as np
import pytest

from mtclust.core.labels import (
    SizeBounds,
    balance_bounds,
    code_scale,
    counts_by_task,
    free_bounds,
    label_codes,
    neutral_bounds,
    parse_sizes,
)


@pytest.mark.parametrize("n_clusters", [2, 3, 4])
def test_codes_have_the_papers_norm_and_sum_to_zero(n_clusters):
    codes = label_codes(range(n_clusters), n_clusters)
    np.testing.assert_allclose((codes**2).sum(axis=1), n_clusters / (n_clusters - 1))
    np.testing.assert_allclose(codes.sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
@pytest.mark.parametrize("l", [0.0, 0.03, 0.1, 0.2, 0.5, 1.0])
def test_bounds_are_the_sizes_whose_column_mean_obeys_l(n_clusters, l):
    for n in range(n_clusters, 60):
        lower, upper = balance_bounds(n, n_clusters, l)
        sizes = np.arange(n + 1)
        mean = (n_clusters * sizes / n - 1) / (n_clusters - 1)
        obeying = sizes[(mean >= -l / (n_clusters - 1) - 1e-12) & (mean <= l + 1e-12)].tolist()
        assert lower == min([*obeying, n // n_clusters])
        assert upper == max([*obeying, -(-n // n_clusters)])
        assert lower * n_clusters <= n <= upper * n_clusters


def test_small_l_is_always_feasible():
    lower, upper = balance_bounds(39, 5, 0.1)
    assert lower <= 7
    assert upper >= 8


def test_all_forms_of_sizes_agree_on_a_balanced_task():
    exact = parse_sizes("balanced", [60, 30], 3)
    by_name = {"b": [10] * 3, "a": [20] * 3}
    for form in (0.0, 0, (1 / 3, 1 / 3), [[20] * 3, [10] * 3], [[[20, 20]] * 3, [[10, 10]] * 3], by_name):
        bounds = parse_sizes(form, [60, 30], 3, ["a", "b"])
        np.testing.assert_array_equal(bounds.lower, exact.lower)
        np.testing.assert_array_equal(bounds.upper, exact.upper)


def test_auto_is_the_papers_l_of_a_tenth():
    auto, tenth = (parse_sizes(form, [60, 31], 3) for form in ("auto", 0.1))
    np.testing.assert_array_equal(auto.lower, tenth.lower)
    np.testing.assert_array_equal(auto.upper, tenth.upper)


def test_exact_sizes_and_bounds_may_stand_in_one_mapping():
    bounds = parse_sizes(
        {"a": [[20, 20], [30, 30], [10, 10]], "b": [[5, 10], [0, 30], [1, 2]]}, [60, 30], 3, ["a", "b"]
    )
    assert bounds.lower.tolist() == [[20, 30, 10], [5, 0, 1]]
    assert bounds.upper.tolist() == [[20, 30, 10], [10, 30, 2]]


def test_sizes_of_tasks_with_fewer_clusters_are_a_table_or_move_with_the_labels():
    table = parse_sizes([[2, 2, 2], [3, 0, 3]], [6, 6], [3, 2])
    assert table.lower.tolist() == [[2, 2, 2], [3, 0, 3]]
    assert not table.movable
    assert parse_sizes({0: [2, 2, 2], 1: [3, 0, 3]}, [6, 6], [3, 2]).upper.tolist() == [[2, 2, 2], [3, 0, 3]]
    pair = parse_sizes((0.25, 0.75), [8, 8], [3, 2])
    assert pair.lower.tolist() == [[2, 2, 2], [2, 2, 0]]
    assert pair.upper.tolist() == [[6, 6, 6], [6, 6, 0]]
    assert pair.movable
    assert not parse_sizes("balanced", [6, 6], [3, 3]).movable


def test_a_cluster_is_present_where_it_may_have_rows():
    bounds = SizeBounds(np.array([[0, 0, 3]]), np.array([[0, 1, 5]]))
    assert bounds.present.tolist() == [[False, True, True]]


def test_clusters_are_interchangeable_if_both_bounds_agree():
    same, other = np.array([[2, 2], [5, 5]]), np.array([[5, 5], [6, 7]])
    assert SizeBounds(same, same).interchangeable()
    assert not SizeBounds(same, other).interchangeable()
    assert not SizeBounds(np.array([[1, 0], [0, 0]]), same).interchangeable()


def test_free_bounds_only_ask_that_no_cluster_is_empty_where_there_are_rows_enough():
    present = np.array([[True, True, True], [True, True, True], [True, False, True]])
    bounds = free_bounds(np.array([3, 2, 9]), present)
    assert bounds.lower.tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 1]]
    assert bounds.upper.tolist() == [[3, 3, 3], [2, 2, 2], [9, 0, 9]]
    assert not bounds.movable


def test_fractions_are_rounded_outwards_so_that_an_equal_share_is_always_feasible():
    for n, n_clusters in itertools.product(range(5, 40), (2, 3, 5)):
        bounds = parse_sizes((1 / n_clusters, 1 / n_clusters), [n], n_clusters)
        assert bounds.lower.sum() <= n <= bounds.upper.sum()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ("even", "sizes='even' is not known; allowed are"),
        (1.5, "paper's l and must lie in"),
        (-0.1, "paper's l and must lie in"),
        (True, "is not known"),
        ((0.5, 0.2), "0 <= low <= high <= 1"),
        ((0.2, 1.5), "0 <= low <= high <= 1"),
        ((-0.1, 0.5), "0 <= low <= high <= 1"),
        ((0.1, 0.3), "at least 18 and at most 54"),
        ((0.4, 0.5), "at least 72 and at most 90"),
        ([[20, 20]], r"of shape \(1, 3\) or \(1, 3, 2\); got \[\[20, 20\]\]"),
        ([[20, 20, 21]], "cannot be met in task 0: it has 60 rows, the sizes add up to at least 61"),
        ([[20, 20.5, 19.5]], "whole numbers of rows, none negative"),
        ([[0, -1, 61]], "none negative.*-1"),
        ([[20, np.nan, 20]], "whole numbers.*got .*nan"),
        ([[[5, 4], [20, 30], [20, 30]]], "cannot be met in task 0"),
        ({"x": [20, 20, 20]}, r"missing: \[0\], not a task: \['x'\]"),
        ({}, r"missing: \[0\], not a task: none"),
        ({0: [20, 20, 20], 1: [20, 20, 20]}, r"missing: none, not a task: \[1\]"),
        ([[1, 2], [3]], "as a table must hold"),
    ],
)
def test_sizes_that_cannot_be_used(sizes, message):
    with pytest.raises(ValueError, match=message):
        parse_sizes(sizes, [60], 3)


def test_movable_bounds_go_where_the_labels_of_each_task_have_their_clusters():
    bounds = parse_sizes("balanced", [4, 6, 2], [2, 3, 1])
    labels = np.array([0, 2, 0, 2, 0, 0, 1, 1, 2, 2, 1, 1])  # the first task uses ids 0 and 2, the last only 1
    fitted = bounds.fitted(counts_by_task(labels, np.array([0, 4, 10, 12]), 3))
    assert fitted.upper.tolist() == [[2, 0, 2], [2, 2, 2], [0, 2, 0]]
    assert fitted.lower.tolist() == fitted.upper.tolist()
    assert fitted.movable


def test_bounds_that_do_not_move_stay_whatever_the_labels_are():
    bounds = parse_sizes([[0, 4, 2]], [6], 3)
    lower, upper = bounds.row(0, np.array([0, 1]))
    assert lower.tolist() == upper.tolist() == [0, 4, 2]


def test_moved_bounds_keep_ids_without_rows_that_the_task_has_anyway():
    bounds = SizeBounds(np.array([[0, 2, 2, 0]]), np.array([[0, 9, 9, 0]]), movable=True)
    lower, upper = bounds.row(0, np.array([3]))
    assert lower.tolist() == [0, 2, 0, 2]
    assert upper.tolist() == [0, 9, 0, 9]


def test_a_part_of_the_tasks_keeps_its_bounds_and_whether_they_move():
    bounds = parse_sizes("balanced", [4, 6, 2], [2, 3, 1])
    part = bounds.restrict([2, 0])
    assert part.upper.tolist() == [[2, 0, 0], [2, 2, 0]]
    assert part.lower.tolist() == part.upper.tolist()
    assert part.movable
    assert not part.fitted(part.lower, fixed=True).movable


def test_codes_of_one_cluster_are_ones():
    assert code_scale(1) == (1.0, 0.0)
    assert code_scale(3) == (1.5, 0.5)


def test_neutral_bounds_keep_a_row_of_every_cluster_that_a_task_has():
    bounds = neutral_bounds(np.array([100, 5, 9]), np.array([3, 3, 2]))
    assert bounds.lower.tolist() == [[1, 1, 1], [1, 1, 1], [1, 1, 0]]
    assert bounds.upper.tolist() == [[100] * 3, [5] * 3, [9, 9, 0]]
    assert bounds.movable
    assert not neutral_bounds(np.array([10, 10]), np.array([2, 2])).movable


def test_bounds_follow_a_cluster_of_a_single_row():
    bounds = SizeBounds(np.array([[1, 1, 0]]), np.array([[4, 4, 0]]), True)
    moved = bounds.fitted(np.array([[3, 0, 1]]))
    assert moved.upper.tolist() == [[4, 0, 4]]
    assert moved.lower.tolist() == [[1, 0, 1]]
