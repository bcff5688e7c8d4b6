"""Common cluster ids: cases that property tests have found."""

import numpy as np

from mtclust.alignment import align
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
