"""Label codes and size bounds."""

import itertools

import numpy as np
import pytest

from mtclust.labels import balance_bounds, label_codes, parse_sizes


def test_codes_have_the_papers_norm_and_sum_to_zero():
    codes = label_codes([0, 1, 2, 3], 4)
    np.testing.assert_allclose((codes**2).sum(axis=1), 4 / 3)
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
        ((0.4, 0.5), "3 clusters need low <= 0.3333 <= high"),
        ([[20, 20]], r"shape \(1, 2\); expected \(1, 3\)"),
        ([[20, 20, 21]], "cannot be met in task 0: it has 60 rows, the sizes add up to at least 61"),
        ([[20.5, 20, 19.5]], "whole numbers"),
        ([[-1, 30, 31]], "none negative"),
        ([[[5, 4], [20, 30], [20, 30]]], "lower bound above the upper"),
        ({"x": [20, 20, 20]}, r"missing: \[0\], not a task: \['x'\]"),
        ([[1, 2], [3]], "neither a number nor a regular table"),
    ],
)
def test_sizes_that_cannot_be_used(sizes, message):
    with pytest.raises(ValueError, match=message):
        parse_sizes(sizes, [60], 3)


def test_movable_bounds_go_where_the_labels_of_each_task_have_their_clusters():
    bounds = parse_sizes("balanced", [4, 6, 2], [2, 3, 1])
    labels = np.array([0, 2, 0, 2, 0, 0, 1, 1, 2, 2, 1, 1])  # the first task uses ids 0 and 2, the last only 1
    fitted = bounds.fitted(labels, np.array([0, 4, 10, 12]))
    assert fitted.upper.tolist() == [[2, 0, 2], [2, 2, 2], [0, 2, 0]]
    assert fitted.lower.tolist() == fitted.upper.tolist()
    assert fitted.movable
