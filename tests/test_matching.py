"""Common cluster ids: found again where names are shuffled, against all permutations; cases of property tests."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from mtclust.core.labels import SizeBounds, counts_by_task
from mtclust.core.matching import (
    _nearest_subset,
    _shifted_products,
    best_renaming,
    class_mean_products,
    groups_of_tasks,
    match_labels,
    match_means,
    pair_counts,
)
from mtclust.core.tasks import index_tasks


def test_a_task_whose_class_means_coincide_up_to_rounding_resembles_no_other():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 10, 20])
    Phi = rng.normal(size=(20, 3))
    for rows in (slice(0, 10), slice(10, 20)):
        Phi[rows] -= Phi[rows].mean(axis=0)
    labels = np.concatenate([np.arange(10) % 2, np.zeros(10, dtype=int)])  # the mean of the second task is 0, rounded
    free = SizeBounds(np.zeros((2, 2), dtype=np.int64), np.full((2, 2), 10))
    _, similarity = match_labels(Phi @ Phi.T, offsets, labels, free)
    np.testing.assert_array_equal(similarity, np.eye(2))


@pytest.mark.parametrize("seed", range(10))
def test_groups_are_the_connected_components(seed):
    rng = np.random.default_rng(seed)
    similarity = rng.uniform(-1, 0.75, size=(12, 12))
    similarity = np.maximum(similarity, similarity.T)
    np.fill_diagonal(similarity, 1.0)
    _, component = connected_components(similarity > 0.5, directed=False)
    expected = [np.flatnonzero(component == c).tolist() for c in range(component.max() + 1)]
    assert [group.tolist() for group in groups_of_tasks(similarity)] == expected


def named_apart(m, n_clusters, seed, rows=6, noise=0.05, centre=True):
    """Rows of the same clusters in m tasks, whose names are shuffled in every task: features, labels, classes."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(n_clusters, 4))
    classes = np.tile(np.repeat(np.arange(n_clusters), rows), m)
    Phi = means[classes] + noise * rng.normal(size=(len(classes), 4))
    offsets = n_clusters * rows * np.arange(m + 1)
    labels = np.concatenate([rng.permutation(n_clusters)[classes[a:b]] for a, b in zip(offsets[:-1], offsets[1:])])
    if centre:
        for a, b in zip(offsets[:-1], offsets[1:]):
            Phi[a:b] -= Phi[a:b].mean(axis=0)
    return Phi, offsets, labels, classes


def free(sizes, n_clusters, movable=False):
    return SizeBounds(np.zeros((len(sizes), n_clusters), dtype=np.int64), np.tile(sizes[:, None], n_clusters), movable)


def one_to_one(first, second):
    """Whether two labellings are the same but for names."""
    pairs = set(zip(first.tolist(), second.tolist()))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
@pytest.mark.parametrize("m", [1, 2, 3, 6, 55])
def test_equal_clusters_get_equal_ids_in_all_tasks(m, n_clusters):
    Phi, offsets, labels, classes = named_apart(m, n_clusters, seed=m)
    found, similarity = match_labels(Phi @ Phi.T, offsets, labels, free(np.diff(offsets), n_clusters))
    assert one_to_one(found, classes)
    assert similarity.shape == (m, m)
    assert similarity.min() > 0.95
    np.testing.assert_allclose(similarity.diagonal(), 1.0)


@pytest.mark.parametrize("m", [4, 52])
def test_similarity_is_the_cosine_under_the_best_of_all_matchings(m):
    """By trying all permutations; with many tasks all pairs are matched at once."""
    Phi, offsets, labels, _ = named_apart(m, 3, seed=1, noise=1.5)
    _, similarity = match_labels(Phi @ Phi.T, offsets, labels, free(np.diff(offsets), 3))
    parts = list(zip(offsets[:-1], offsets[1:]))
    means = np.stack([[Phi[a:b][labels[a:b] == c].mean(axis=0) for c in range(3)] for a, b in parts])
    for i, k in ((0, 1), (2, 0), (1, m - 1), (m - 1, m - 2)):
        best = max(np.sum(means[i] * means[k][list(order)]) for order in itertools.permutations(range(3)))
        assert similarity[i, k] == pytest.approx(best / np.linalg.norm(means[i]) / np.linalg.norm(means[k]))
    np.testing.assert_array_equal(similarity, similarity.T)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("centre", [True, False])
def test_a_task_that_lacks_a_cluster_is_matched_whatever_the_scale(centre, scale):
    """Three clusters in a row and the middle and last of them: around their own centres, or where they are."""
    places = np.array([0.0, 1.0, 2.2])
    x = np.concatenate([np.repeat(places, 4), np.repeat(places[1:], 4)])
    x[12:] += 0.5 if centre else 0.0
    Phi = np.stack([x, np.tile([0.1, -0.1, 0.05, -0.05], 5)], axis=1)
    if centre:
        Phi[:12] -= Phi[:12].mean(axis=0)
        Phi[12:] -= Phi[12:].mean(axis=0)
    labels = np.concatenate([np.repeat([0, 1, 2], 4), np.repeat([0, 1], 4)])
    bounds = free(np.array([12, 8]), 3, movable=True)
    found, similarity = match_labels(scale * Phi @ Phi.T, np.array([0, 12, 20]), labels, bounds)
    first, second = found[[0, 4, 8]], found[[12, 16]]
    np.testing.assert_array_equal(second, first[1:])
    assert similarity[0, 1] == pytest.approx(1.0)


def test_one_task_is_renamed_to_fit_the_others():
    Phi, offsets, labels, classes = named_apart(4, 3, seed=5)
    bounds = free(np.diff(offsets), 3)
    aligned, _ = match_labels(Phi @ Phi.T, offsets, labels, bounds)
    shuffled = aligned.copy()
    shuffled[18:36] = np.array([2, 0, 1])[aligned[18:36]]
    products = class_mean_products(Phi @ Phi.T, offsets, shuffled, 3)
    new_ids, similarity = match_means(products, counts_by_task(shuffled, offsets, 3), bounds, 1)
    found = shuffled.copy()
    found[18:36] = new_ids[1][shuffled[18:36]]
    np.testing.assert_array_equal(found, aligned)
    assert similarity.min() > 0.95
    assert one_to_one(found, classes)


def test_sizes_that_belong_to_an_id_forbid_other_names():
    counts = np.array([5, 3, 4])
    bounds = SizeBounds(np.array([[5, 3, 3]]), np.array([[5, 4, 4]]))
    profit = np.array([[0.0, 9.0, 9.0], [9.0, 0.0, 5.0], [9.0, 4.0, 0.0]])
    assert best_renaming(profit, bounds, 0, counts).tolist() == [0, 2, 1]
    movable = SizeBounds(bounds.lower, bounds.upper, True)
    assert best_renaming(profit, movable, 0, counts).tolist() == best_renaming(profit).tolist() == [1, 2, 0]


def test_names_that_agree_most_are_given():
    rng = np.random.default_rng(0)
    model = rng.integers(4, size=101)
    labels = np.where(rng.random(101) < 0.8, np.array([2, 3, 1, 0])[model], rng.integers(4, size=101))
    plain = pair_counts(labels, model, 4)
    for c, d in itertools.product(range(4), range(4)):
        assert plain[c, d] == np.count_nonzero((labels == c) & (model == d))
    renamed = best_renaming(plain)[labels]
    assert one_to_one(renamed, labels)
    best = max(np.mean(np.array(order)[labels] == model) for order in itertools.permutations(range(4)))
    assert np.mean(renamed == model) == best


def test_ids_by_size_keep_clusters_without_rows_last_and_ties_in_the_order_of_their_first_rows():
    labels = np.array([2, 2, 4, 4, 2, 1, 2, 1, 4, 2, 2, 1, 2, 4, 1])
    index = replace(index_tasks(None, 15), ordered=True)
    assert index.with_plain_ids(labels, labels, 5, True)[2].tolist() == [3, 2, 0, 4, 1]


@pytest.mark.parametrize("shifted", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_points_are_matched_to_the_nearest_subset_of_all(seed, shifted):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=(4, 2))
    a = b[rng.permutation(4)[:3]] + 0.2 * rng.normal(size=(3, 2)) + (5.0 * rng.normal(size=2) if shifted else 0.0)

    def value(columns, shift):
        return np.sum((a + shift - b[list(columns)]) ** 2)

    shifts = {
        order: (b[list(order)] - a).mean(axis=0) if shifted else 0.0 for order in itertools.permutations(range(4), 3)
    }
    matched, shift = _nearest_subset(a, b, shifted)
    assert value(matched, shift) == pytest.approx(min(value(order, t) for order, t in shifts.items()))


def test_nearness_is_one_in_c_where_means_coincide_and_falls_with_their_distance():
    """The formula of the docstring: (τ − ½|a + t − b|²)/(Cτ), features that are not centred, so that t = 0."""
    means = np.array([[[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]], [[1.0, 0.2], [0.0, 1.0], [0.0, 0.0]]])
    sizes = np.array([[3, 3, 3], [3, 3, 0]])
    for i, k in ((0, 1), (1, 0)):
        nearness, cosine = _shifted_products(np.einsum("icr,kdr->ikcd", means, means), sizes, i, k)
        matched = means[0, :2], means[1, :2]
        typical = 0.5 * (np.sum(matched[0] ** 2) + np.sum(matched[1] ** 2)) / 2
        distances = np.sum((means[0][:, None] - means[1][None, :2]) ** 2, axis=2)
        expected = np.zeros((3, 3))
        expected[:, :2] = (typical - 0.5 * distances) / (3 * typical)
        np.testing.assert_allclose(nearness, expected if i == 0 else expected.T, atol=1e-9)
        norms = np.linalg.norm(matched[0]) * np.linalg.norm(matched[1])
        assert cosine == pytest.approx(np.sum(matched[0] * matched[1]) / norms)
