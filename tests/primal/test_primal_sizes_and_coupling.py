"""Cluster sizes and coupling at scale, given and chosen."""

import warnings

import numpy as np
import pytest
from primal_helpers import primal, stacked

from mtclust import DSTC
from mtclust.exceptions import UncoupledWarning
from mtclust.metrics import nmi


@pytest.fixture(scope="module")
def few():
    return stacked((60, 45, 80), d=4, spread=0.2, seed=1)


def skewed(rows=400, seed=0):
    """Two tasks of three clusters with shares 70, 20 and 10 %."""
    rng = np.random.default_rng(seed)
    centres = 6 * rng.normal(size=(3, 4))
    y = np.concatenate([rng.permutation(np.repeat([0, 1, 2], [7 * rows // 10, rows // 5, rows // 10]))] * 2)
    return centres[y] + rng.normal(size=(2 * rows, 4)), y, np.repeat([0, 1], rows)


def test_sizes_are_found_on_skewed_data():
    scores = []
    for seed in range(3):
        X, y, tasks = skewed(20_000, seed)
        model = primal(sizes="auto").fit(X, tasks=tasks)
        assert model.selection_["sizes"] == "free"
        scores.append(nmi(y, model.labels_) - nmi(y, primal(sizes="balanced").fit(X, tasks=tasks).labels_))
    assert min(scores) > 0.1
    assert np.mean(scores) > 0.2


@pytest.mark.parametrize("rows", [400, 20_000])
def test_sizes_that_are_given_are_kept(rows):
    X, y, tasks = skewed(rows)
    exact = np.array([[7 * rows // 10, rows // 5, rows // 10]] * 2)
    model = primal(sizes=exact).fit(X, tasks=tasks)
    np.testing.assert_array_equal(model.cluster_sizes_, exact)
    assert nmi(y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.labels_, primal(sizes=dict(enumerate(exact))).fit(X, tasks=tasks).labels_)
    shares = primal(sizes=(0.15, 0.6)).fit(X, tasks=tasks).cluster_sizes_ / rows
    assert shares.min() >= 0.15
    assert shares.max() <= 0.6
    by_l = primal(sizes=0.2).fit(X, tasks=tasks).cluster_sizes_ / rows
    assert by_l.min() >= 0.8 / 3 - 1 / rows
    assert by_l.max() <= 1.4 / 3 + 1 / rows


# -- coupling and tasks --------------------------------------------------------------------------------------------


def test_coupling_none_equals_dstc(few):
    """With λ₂ taken m times, as the uncoupled model has it."""
    X, _, tasks = few
    alone = primal(coupling="none", lambda1=0.01, lambda2=0.02).fit(X, tasks=tasks)
    single = primal(DSTC, lambda1=0.01, lambda2=0.06, n_init=8).fit(X, tasks=tasks)
    assert alone.selection_["coupling"]["decision"] == "none"
    assert alone.objective_ == pytest.approx(single.objective_, rel=1e-9)
    np.testing.assert_array_equal(alone.labels_, alone.single_task_labels_)


def test_coupling_by_a_number_lies_between_none_and_full(few):
    X, _, tasks = few
    half = primal(coupling=0.5).fit(X, tasks=tasks)
    full, none = primal(coupling=1.0).fit(X, tasks=tasks), primal(coupling=0.0).fit(X, tasks=tasks)
    np.testing.assert_allclose(half.task_covariance_, 0.5 * full.task_covariance_ + np.eye(3) / 6, atol=1e-9)
    np.testing.assert_allclose(none.task_covariance_, np.eye(3) / 3, atol=1e-12)
    assert half.selection_["coupling"]["decision"] == 0.5


@pytest.mark.parametrize("sizes", [(60, 60, 60), (12_000, 12_000, 12_000)])
def test_coupling_auto_keeps_related_tasks_and_parts_unrelated_ones(sizes, monkeypatch):
    X, _, tasks = stacked(sizes, d=4, spread=0.5, seed=1)
    model = primal(coupling="auto").fit(X, tasks=tasks)
    assert model.selection_["coupling"]["decision"] == "full"
    assert model.task_correlation_[np.triu_indices(3, 1)].min() > 0.5
    rng = np.random.default_rng(0)
    # clusters that lie in another direction in every task, and overlap so much that coupling changes some labels
    apart = np.concatenate(
        [rng.normal(size=(n, 12)) + 1.5 * np.eye(12)[4 * i + np.arange(n) % 3] for i, n in enumerate(sizes)]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        model = primal(coupling="auto").fit(apart, tasks=tasks)
    if model.selection_["coupling"]["decision"] == "full":  # Ω itself keeps them apart
        assert np.abs(model.task_correlation_[np.triu_indices(3, 1)]).max() < 0.5
    monkeypatch.setattr("mtclust.choose.coupling.LARGEST_LOSS", -10.0)  # whatever coupling gains is not enough
    with pytest.warns(UncoupledWarning, match="clustered apart"):
        model = primal(coupling="auto").fit(apart, tasks=tasks)
    assert model.selection_["coupling"]["decision"] == "none"
    np.testing.assert_allclose(model.task_covariance_, np.eye(3) / 3)
    assert set(model.selection_["coupling"]) >= {"coupled_labels", "statistic", "reason", "similarity"}
