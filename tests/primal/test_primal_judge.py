"""Leave-one-out and the coupling statistic of the primal form against the dual form and against refitting."""

import numpy as np
import pytest
from primal_helpers import case, random_coupling

from mtclust.problem import feature_scores
from mtclust.problem.feature_descent import point_of_labels
from mtclust.problem.feature_scores import loo_score
from mtclust.selection.coupling import coupling_statistic, coupling_test


def points(example, n_points=2):
    """Points of different labels under one coupling."""
    Z = random_coupling(example.data.n_tasks, np.random.default_rng(0))
    found = []
    for seed in range(n_points):
        rng = np.random.default_rng(seed)
        example.labels = np.concatenate([rng.permutation(example.labels[rows]) for rows in example.slices()])
        found.append((point_of_labels(example.data, example.problem.at(Z), example.task_labels()), example.codes))
    return found


def test_the_coupling_statistic_equals_that_of_the_dual_form():
    example = case()
    (coupled, first), (single, second) = points(example)
    similarity = np.array([[1, 0.3, 0.2], [0.3, 1, 0.9], [0.2, 0.9, 1]])
    ridge = example.problem.ridge
    found = coupling_test(*map(example.problem.own_shares, (coupled, single)), similarity)
    expected = coupling_statistic(example.kernel, example.offsets, ridge, first, second, similarity)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-8)
    np.testing.assert_allclose(found.per_task, expected.per_task, rtol=1e-8)
    assert found.similarity == pytest.approx(expected.similarity)


def test_leave_one_out_equals_refitting_without_the_row():
    """Without an intercept: Ω, the scale and n_i kept, the row left out of its task."""
    example = case(sizes=(12, 15), centre=False)
    ((point, codes),) = points(example, 1)
    problem, r = example.problem, example.Phi.shape[1]
    Ginv = np.linalg.inv(point.Z) * problem.lambda2 + np.diag(problem.lambda1)
    errors = 0.0
    for i, rows in enumerate(example.slices()):
        for j in range(rows.start, rows.stop):
            system, right = np.kron(Ginv, np.eye(r)), np.zeros((2 * r, 3))
            for k, own in enumerate(example.slices()):
                kept = [row for row in range(own.start, own.stop) if row != j]
                part, n = example.Phi[kept], own.stop - own.start
                block = slice(k * r, (k + 1) * r)
                system[block, block] += 2 / n * part.T @ part
                right[block] = 2 / n * part.T @ codes[kept]
            W = np.linalg.solve(system, right)[i * r : (i + 1) * r]
            errors += np.sum((codes[j] - example.Phi[j] @ W) ** 2)
    expected = 1 - errors / np.sum(codes**2)
    assert loo_score(example.data, point.fit, False) == pytest.approx(expected, rel=1e-8)


def test_leave_one_out_on_some_of_many_rows_is_near_that_on_all(monkeypatch):
    example = case("independent", sizes=(3000, 2500), spread=0.5)
    ((point, _),) = points(example, 1)
    some = loo_score(example.data, point.fit, True)
    monkeypatch.setattr(feature_scores, "_LOO_ROWS", 10_000)
    assert some == pytest.approx(loo_score(example.data, point.fit, True), abs=0.02)
