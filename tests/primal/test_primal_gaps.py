"""Passes that look only at rows which can change: the same labels as passes over all rows."""

import numpy as np
import pytest
from primal_helpers import blobs

from mtclust.core.labels import parse_sizes
from mtclust.rows import passes
from mtclust.rows.moments import Data, moments
from mtclust.rows.passes import KnownGaps, TaskLabels, relabel
from mtclust.rows.source import TableRows
from mtclust.search.all_rows import AllRows, polish
from mtclust.search.problem import Effort


@pytest.fixture
def large_from(monkeypatch):
    """Tasks with more rows than this count as large."""
    return lambda n: monkeypatch.setattr(passes, "_AT_ONCE", n)


def true_gaps(scores, labels):
    """How much better the present cluster is than the best other."""
    own = scores[np.arange(len(labels)), labels]
    others = scores.copy()
    others[np.arange(len(labels)), labels] = -np.inf
    return own - others.max(axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_known_gaps_are_never_above_the_true_ones(seed):
    rng = np.random.default_rng(seed)
    Phi, W, prices = rng.normal(size=(400, 6)), rng.normal(size=(6, 4)), rng.normal(size=4)
    largest = float(np.sum(Phi**2, axis=1).max())
    labels = (Phi @ W - prices).argmax(axis=1)
    known = KnownGaps.measured(true_gaps(Phi @ W - prices, labels), W, prices, 0.0)
    for step in range(6):
        W = W + 0.03 * rng.normal(size=W.shape)
        prices = prices + 0.03 * rng.normal(size=4)
        known.move_on(W, prices, largest)
        gaps = true_gaps(Phi @ W - prices, labels)
        assert np.all(known.values - known.drift <= gaps + 1e-6)
        inside = np.flatnonzero(gaps <= 0.1)
        assert np.all(np.isin(inside, known.within(0.1)))
        if step == 2:  # some are measured again, some change their label, clusters are renamed
            known.measure(np.arange(50), gaps[:50])
            labels[50:60] = (labels[50:60] + 1) % 4
            known.forget(np.arange(50, 60))
            new_ids = rng.permutation(4)
            known.rename(new_ids)
            labels = new_ids[labels]
            W, prices = W[:, np.argsort(new_ids)], prices[np.argsort(new_ids)]


@pytest.mark.parametrize("rule", ["balanced", 0.2, (0.0, 1.0)])
def test_passes_over_near_rows_give_the_labels_of_passes_over_all(rule, large_from, monkeypatch):
    large_from(500)
    X, offsets, _ = blobs((5000,), n_clusters=4, d=5, seed=3)
    source = TableRows(X, offsets)
    data = Data(source, moments(source, centre=True), parse_sizes(rule, [5000], 4))
    rng = np.random.default_rng(0)
    looked_at = []
    original = passes._relabel_near

    def counting(*arguments):
        looked_at.append(len(arguments[5]))
        return original(*arguments)

    monkeypatch.setattr(passes, "_relabel_near", counting)
    W, following = rng.normal(size=(5, 4)), TaskLabels.none(5000, 4, 5)
    for step in range(8):
        W = W + 0.02 / (1 + step) * rng.normal(size=W.shape)
        anew = TaskLabels.none(5000, 4, 5)
        relabel(source, data, 0, W, following)
        relabel(source, data, 0, W, anew)
        np.testing.assert_array_equal(following.labels, anew.labels)
        np.testing.assert_array_equal(following.counts, np.bincount(anew.labels, minlength=4))
        np.testing.assert_allclose(following.sums, anew.sums, atol=1e-8 * np.abs(X).sum())
    assert len(looked_at) >= 4
    assert min(looked_at) < 1000


@pytest.mark.parametrize("form", ["at once", "in blocks"])
def test_a_search_ends_in_the_same_labels_with_and_without_known_gaps(form, large_from, monkeypatch):
    X, offsets, _ = blobs((3000, 2500), n_clusters=3, d=4, seed=1)
    source = TableRows(X, offsets)
    data = Data(source, moments(source, centre=True), parse_sizes("balanced", [3000, 2500], 3))
    problem = AllRows(data, "independent", np.array([0.02, 0.02]), 0.0)
    W = np.random.default_rng(5).normal(size=(2, 4, 3))

    def search():
        point = problem._point(source.best_labels(data, W), problem.uncoupled())
        rng = np.random.default_rng(0)
        for _ in range(2):
            point = problem.descend(point, rng, Effort("", max_iter=30, tol=1e-6))
        return point, polish(data, point, [0, 1], rng)

    large_from(500)
    point, certified = search()
    assert all(task.gaps is not None for task in point.fit.tasks)
    if form == "at once":
        large_from(10_000)
    else:
        monkeypatch.setattr(passes, "_NEAR_SHARE", -1.0)
    plain, plainly_certified = search()
    np.testing.assert_array_equal(point.labels, plain.labels)
    assert point.value == pytest.approx(plain.value, rel=1e-12)
    assert certified == plainly_certified
