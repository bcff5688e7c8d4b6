"""E over the rows of a source, against ridge regression by hand, and what its passes may do."""

from dataclasses import replace

import numpy as np
import pytest
from primal_helpers import case

from mtclust.core.criterion import GAMMA, SizeNeutral, decision_weights
from mtclust.core.labels import neutral_bounds
from mtclust.search.problem import Effort

neutral = SizeNeutral()
SIZES = (40, 30, 50)


def begun(method="independent", labels=None, **options):
    """A problem without bounds on sizes and the point of given or random labels, tasks uncoupled."""
    example = case(method, sizes=SIZES, **options)
    bounds = neutral_bounds(np.array(SIZES), np.full(3, 3))
    example.problem = replace(example.problem.with_bounds(bounds), criterion=neutral)
    example.labels = example.labels if labels is None else labels
    return example, example.problem.point(example.labels, example.problem.coupling.uncoupled())


def by_hand(example):
    """Shares, R² of training and models of membership, task by task, by ridge regression on centred membership."""
    shares, r_squared, models = [], [], []
    for i, rows in enumerate(example.slices()):
        Phi, z = example.Phi[rows], np.eye(3)[example.labels[rows]]
        n, share = len(z), z.mean(axis=0)
        ridge = float(example.problem.coupling.ridge[i])
        W = np.linalg.solve(ridge * np.eye(Phi.shape[1]) + 2 / n * Phi.T @ Phi, 2 / n * Phi.T @ (z - share))
        explained = np.einsum("nc,nc->c", z - share, Phi @ W)
        shares.append(share)
        r_squared.append(explained / (n * share * (1 - share)))
        models.append(W)
    return np.stack(shares), np.stack(r_squared), np.stack(models)


def test_shares_r_squared_and_value_equal_ridge_regression():
    example, point = begun()
    shares, r_squared, _ = by_hand(example)
    found = neutral.explained(point.fit)
    np.testing.assert_allclose(found[0], shares)
    np.testing.assert_allclose(found[1], r_squared, atol=1e-10)
    expected = -np.sum((4 * shares * (1 - shares)) ** GAMMA * r_squared)
    assert neutral.value_of_models(point.fit) == pytest.approx(expected)


def test_rows_are_scored_by_what_they_would_add():
    example, point = begun()
    shares, r_squared, models = by_hand(example)
    scale, constant = decision_weights(shares, r_squared)
    found, constants = neutral.scoring(point.fit)
    np.testing.assert_allclose(found, models * scale[:, None, :], atol=1e-9)
    np.testing.assert_allclose(constants, constant, atol=1e-10)
    plain, weights = neutral.left_out_weights(point.fit)
    for one, other in zip((plain, *weights), (models, scale, constant)):
        np.testing.assert_allclose(one, other, atol=1e-9)
    one, other = (data.on_raw(1, found[1])[1] for data in (example.data, replace(example.data, constants=constants)))
    np.testing.assert_allclose(other - one, constants[1])


def test_a_cluster_that_a_task_does_not_have_explains_nothing():
    _, point = begun(labels=np.concatenate([np.zeros(40, dtype=int), np.arange(80) % 3]))
    shares, r_squared = neutral.explained(point.fit)
    assert shares[0].tolist() == [1.0, 0.0, 0.0]
    assert r_squared[0].tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(neutral.value_of_models(point.fit))


@pytest.mark.parametrize("method", ["relationship", "features", "independent"])
def test_passes_lower_the_value_and_end_where_little_changes(method):
    example, point = begun(method, spread=0.4)
    start = neutral.value_of_models(point.fit)
    end = example.problem.descend(point, np.random.default_rng(0), Effort("test", tol=1e-4))
    assert end is point
    assert end.converged
    assert end.value < start - 0.1
    assert end.value == pytest.approx(neutral.value_of_models(end.fit))
    steps = [entry["step"] for entry in end.history if entry["step"] != "coupling"]
    assert steps == ["start"] + ["labels"] * end.n_iter
    assert end.history[0]["objective"] == pytest.approx(start)


def test_passes_end_where_little_is_gained():
    example, point = begun(spread=1.0)
    example.problem.descend(point, np.random.default_rng(0), Effort("test", tol=1e-3))
    assert point.converged
    assert 1 < point.n_iter < 40
    values = [entry["objective"] for entry in point.history if entry["step"] != "coupling"]
    gains = -np.diff(values) / np.abs(values[:-1])
    assert np.all(gains[:-1] > 1e-3)
    assert gains[-1] <= 1e-3


def test_rounds_are_counted_and_limited_and_only_active_tasks_change():
    example, point = begun()
    before = [task.labels.copy() for task in point.fit.tasks]
    example.problem.descend(point, np.random.default_rng(0), Effort("test", max_iter=1, tol=0.0, tasks=[1]))
    assert point.n_iter == 1
    assert not point.converged
    np.testing.assert_array_equal(point.fit.tasks[0].labels, before[0])
    np.testing.assert_array_equal(point.fit.tasks[2].labels, before[2])
    assert np.any(point.fit.tasks[1].labels != before[1])


@pytest.mark.parametrize("method", ["relationship", "features"])
def test_the_coupling_is_learned_where_it_may_be(method):
    example, point = begun(method, spread=0.4)
    fixed = begun(method, spread=0.4)[1]
    example.problem.descend(point, np.random.default_rng(0), Effort("test"))
    example.problem.descend(fixed, np.random.default_rng(0), Effort("test", learn=False))
    assert np.abs(point.Z - example.problem.coupling.uncoupled()).max() > 0.05
    assert np.trace(point.Z) == pytest.approx(1.0)
    assert point.value < fixed.value
    assert max(entry["objective"] for entry in point.history) < 0  # −E throughout


def test_the_coupling_stays_where_it_may_not_be_learned():
    example, point = begun("relationship")
    example.problem.descend(point, np.random.default_rng(0), Effort("test", learn=False))
    np.testing.assert_allclose(point.Z, np.eye(3) / 3)
    assert "coupling" not in [entry["step"] for entry in point.history]
