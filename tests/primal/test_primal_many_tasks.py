"""Common ids of many tasks agree with those of the alignment of all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from mtclust.alignment import align_means
from mtclust.class_means import align_many
from mtclust.labels import SizeBounds


def _free(m: int, C: int) -> SizeBounds:
    return SizeBounds(np.zeros((m, C), dtype=np.int64), np.full((m, C), 1000))


def _groups(n_groups: int, per_group: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Class means of tasks in unrelated groups, each task with its clusters in a random order (returned)."""
    rng = np.random.default_rng(seed)
    C, r = 4, 30
    means, orders = [], []
    for _ in range(n_groups):
        centres = rng.normal(size=(C, r))
        centres -= centres.mean(axis=0)
        for _ in range(per_group):
            order = rng.permutation(C)
            means.append((centres + noise * rng.normal(size=(C, r)))[order])
            orders.append(order)
    return np.array(means), np.array(orders)


@pytest.mark.parametrize("n_groups", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_clusters_of_related_tasks_get_one_id(n_groups, seed):
    means, orders = _groups(n_groups, 40 // n_groups, 0.3, seed)
    ids, similarity = align_many(means, np.full(orders.shape, 10), _free(*orders.shape))
    per_group = 40 // n_groups
    for g in range(n_groups):
        group = range(g * per_group, (g + 1) * per_group)
        named = {tuple(ids[i][np.argsort(orders[i])]) for i in group}  # the id of each true cluster
        assert len(named) == 1
    assert similarity[0, 1] > 0.8
    if n_groups > 1:
        assert abs(similarity[0, per_group]) < 0.5


def test_it_agrees_with_the_alignment_of_all_pairs():
    means, orders = _groups(2, 6, 0.4, 5)
    m, C = orders.shape
    counts = np.full((m, C), 7)
    flat = means.reshape(m * C, -1)
    products = (flat @ flat.T).reshape(m, C, m, C).transpose(0, 2, 1, 3)
    pairwise, V = align_means(products, counts, _free(m, C))
    ids, similarity = align_many(means, counts, _free(m, C))
    related = np.kron(np.eye(2), np.ones((6, 6))).astype(bool)
    np.testing.assert_allclose(similarity[related], V[related], atol=1e-10)
    # the same partition of all clusters within each group
    for group in (slice(0, 6), slice(6, 12)):
        step = pairwise[group][0][np.argsort(ids[group][0])]
        np.testing.assert_array_equal(step[ids[group]], pairwise[group])


def test_ids_that_would_break_the_sizes_are_not_given():
    means, _ = _groups(1, 60, 0.3, 1)
    counts = np.tile([5, 6, 7, 8], (60, 1))
    bounds = SizeBounds(counts, counts)
    ids, _ = align_many(means, counts, bounds)
    np.testing.assert_array_equal(ids, np.tile(np.arange(4), (60, 1)))
