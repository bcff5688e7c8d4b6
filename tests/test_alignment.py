"""Common cluster ids: cases that property tests have found."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from mtclust.alignment import align, groups_of_tasks
from mtclust.labels import SizeBounds


def test_a_task_whose_class_means_coincide_up_to_rounding_resembles_no_other():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 10, 20])
    Phi = rng.normal(size=(20, 3))
    for rows in (slice(0, 10), slice(10, 20)):
        Phi[rows] -= Phi[rows].mean(axis=0)
    labels = np.concatenate([np.arange(10) % 2, np.zeros(10, dtype=int)])  # the mean of the second task is 0, rounded
    free = SizeBounds(np.zeros((2, 2), dtype=np.int64), np.full((2, 2), 10))
    _, similarity = align(Phi @ Phi.T, offsets, labels, free)
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
