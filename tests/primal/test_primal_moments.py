"""Means, Gram matrices and scale of blocks of rows against the definition."""

import numpy as np
import pytest
import scipy.sparse as sp
from primal_helpers import blobs, centred_directly

from mtclust.core.kernels import Kernel
from mtclust.core.tasks import index_tasks
from mtclust.rows.features import FeatureMap, feature_map, source_of
from mtclust.rows.moments import block_rows
from mtclust.rows.source import TableRows

SIZES = (300, 5000, 77)


def compare(own, source, X, offsets, centre, rtol=1e-9):
    Phi, scale = centred_directly(X, offsets, centre)
    assert own.scale == pytest.approx(scale, rel=rtol)
    shift = 0.0 if source.shift is None else source.shift
    for i, (a, b) in enumerate(zip(offsets[:-1], offsets[1:])):
        part = Phi[a:b]
        np.testing.assert_allclose(own.gram[i], part.T @ part, rtol=rtol, atol=rtol * (b - a))
        expected = part.sum(axis=0) if not centre else np.zeros(part.shape[1])
        np.testing.assert_allclose(own.total[i], expected, rtol=rtol, atol=rtol * (b - a))
        np.testing.assert_allclose(own.centred(i, source.take(i, np.arange(b - a))), part, atol=1e-7)
    means = np.stack([X[a:b].mean(axis=0, dtype=np.longdouble) for a, b in zip(offsets[:-1], offsets[1:])])
    np.testing.assert_allclose(
        (own.mean + shift).astype(float), means.astype(float) * centre, rtol=1e-3 * rtol, atol=1e-1 * rtol
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("centre", [True, False])
def test_moments_equal_the_definition(dtype, centre):
    X, offsets, _ = blobs(SIZES, d=20)
    X = X.astype(dtype)
    assert SIZES[1] > block_rows(20, X.dtype.itemsize) or dtype == np.float32  # more than one block
    source = TableRows(X, offsets)
    compare(source.moments(centre), source, X, offsets, centre)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_large_offset_of_the_columns_costs_no_digits(dtype):
    X, offsets, _ = blobs(SIZES, d=4)
    X = (X + np.array([1e6, -1e6, 0.0, 1e6])).astype(dtype)
    far = TableRows(X, offsets)
    source = far.kept_near_zero()
    assert source.shift is not None
    # rows of single precision are shifted in single precision
    compare(source.moments(True), source, X, offsets, True, rtol=1e-9 if dtype == np.float64 else 1e-6)
    # and it is the shift that does it
    _, scale = centred_directly(X, offsets)
    assert abs(far.moments(True).scale / scale - 1) > 1e-6


def test_rows_near_zero_are_not_shifted():
    X, offsets, _ = blobs(SIZES, d=4)
    source = TableRows(X, offsets)
    assert source.kept_near_zero() is source


def test_rows_need_not_be_sorted_by_task():
    X, offsets, _ = blobs(SIZES, d=6)
    tasks = np.repeat(np.arange(3), SIZES)
    mixed = np.random.default_rng(0).permutation(len(X))
    index = index_tasks(tasks[mixed], len(X))
    source = TableRows(X[mixed], index.offsets, index.order)
    sorted_rows = X[mixed][index.order]
    compare(source.moments(True), source, sorted_rows, offsets, True)
    for task in range(3):
        blocks = [(begin, end, block.copy()) for begin, end, block in source.blocks(task)]
        assert [begin for begin, _, _ in blocks] == [0, *(end for _, end, _ in blocks[:-1])]
        rows = np.concatenate([block for _, _, block in blocks])
        np.testing.assert_array_equal(rows, sorted_rows[offsets[task] : offsets[task + 1]])


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
def test_constant_rows_have_no_scale(value):
    source = TableRows(np.full((50, 3), value), np.array([0, 20, 50])).kept_near_zero()
    own = source.moments(True)
    assert own.scale == 0
    assert not own.gram.any()


def test_a_given_scale_is_used():
    X, offsets, _ = blobs(SIZES)
    source = TableRows(X, offsets)
    own, given = source.moments(True), source.moments(True, scale=7.0)
    assert given.scale == 7.0
    np.testing.assert_allclose(given.gram * 7.0, own.gram * own.scale, rtol=1e-12)


def test_sparse_rows_equal_dense_ones():
    X, offsets, _ = blobs((200, 1500), d=8)
    X[np.abs(X) < 1] = 0
    order = np.random.default_rng(1).permutation(len(X))
    unsorted = np.empty_like(X)
    unsorted[order] = X
    for table, by_task in ((X, None), (unsorted, order)):
        rows = TableRows(sp.csr_matrix(table), offsets, by_task)
        own, dense = rows.moments(True), TableRows(X, offsets).moments(True)
        np.testing.assert_allclose(own.gram, dense.gram, rtol=1e-10, atol=1e-10)
        assert own.scale == pytest.approx(dense.scale)
        np.testing.assert_array_equal(rows.take(1, np.array([3, 1400])), X[[203, 1600]])


def test_kernel_rows_in_blocks_equal_features_computed_at_once():
    X, offsets, _ = blobs((60, 3000), d=3)
    index = index_tasks(np.repeat([0, 1], (60, 3000)), len(X))
    features = feature_map(Kernel("rbf", sigma=2.0), X, index, index.even_rows(40, False))
    assert isinstance(features, FeatureMap)
    expected = features(X)
    rows = TableRows(X, offsets, features=features)
    np.testing.assert_allclose(rows.projected().table, expected, atol=1e-9)
    picked = rows.take(1, np.array([5, 2999])) @ features.projection
    np.testing.assert_allclose(picked, expected[[65, 3059]], atol=1e-9)
    np.testing.assert_allclose(source_of(X, features, index, True).take(0, np.arange(60)), expected[:60], atol=1e-9)
    given, held = rows.moments(True), rows.projected().moments(True)
    np.testing.assert_allclose(given.gram, held.gram, atol=1e-9 * len(X))
    np.testing.assert_allclose(given.mean, held.mean, atol=1e-9)
