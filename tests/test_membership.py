"""Scores turned into probabilities: the temperature in closed form, scores of rows left out against refitting."""

import numpy as np
import pytest

from mtclust.core.model import best_temperature, left_out, probabilities


def test_the_temperature_is_where_the_left_out_labels_are_most_likely():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4000, 3))
    labels = np.array([rng.choice(3, p=p) for p in probabilities(scores, 0.4)])
    assert best_temperature(scores, labels) == pytest.approx(0.4, rel=0.1)
    assert best_temperature(np.zeros((4, 2)), np.zeros(4, dtype=int)) == 1.0
    assert best_temperature(np.ones((4, 1)), np.zeros(4, dtype=int)) == 1.0


@pytest.mark.parametrize(("n", "C", "gap"), [(10, 2, 1.0), (40, 2, 0.3), (30, 3, 2.0)])
def test_clusters_without_overlap_have_one_row_counted_as_wrong(n, C, gap):
    """Every row has the score ``gap`` for its own cluster and 0 for the others: p = e/(e + C − 1) = 1 − 1/(n + C)."""
    labels = np.arange(n) % C
    wrong = 1 / (n + C)
    expected = gap / np.log((C - 1) * (1 - wrong) / wrong)
    assert best_temperature(gap * np.eye(C)[labels], labels) == pytest.approx(expected, rel=1e-4)


def test_clusters_that_a_task_lacks_change_no_temperature():
    labels = np.arange(12) % 2
    scores = np.c_[np.eye(2)[labels], np.full(12, -np.inf)]
    wrong = 1 / (12 + 3)
    assert best_temperature(scores, labels) == pytest.approx(1 / np.log((1 - wrong) / wrong), rel=1e-4)
    assert best_temperature(np.full((3, 2), -np.inf), np.zeros(3, dtype=int)) == 1.0
    # a label that the task lacks says nothing
    assert best_temperature(scores, np.where(np.arange(12) == 0, 2, labels)) > 0


def test_labels_that_scores_know_nothing_of_have_about_equal_probabilities():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(400, 2)), np.tile([0, 1], 200)
    scores -= scores.mean(axis=0)
    labels = np.where(scores[:, 0] > scores[:, 1], 1, 0)  # and the wrong way round
    assert np.ptp(probabilities(scores, best_temperature(scores, labels))) < 0.01


@pytest.mark.parametrize("centred", [True, False])
def test_scores_of_rows_left_out_equal_refitting_without_them(centred):
    rng = np.random.default_rng(3)
    n, ridge = 12, 0.7
    Phi, targets = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    if centred:
        Phi -= Phi.mean(axis=0)
    mean = targets.mean(axis=0) if centred else None
    inverse = np.linalg.inv(Phi.T @ Phi + ridge * np.eye(3))
    fitted = Phi @ inverse @ Phi.T @ (targets - (mean if centred else 0))
    found = left_out(targets, fitted, np.einsum("nr,rs,ns->n", Phi, inverse, Phi), mean, n)
    for j in range(n):
        rest = np.arange(n) != j
        table = np.c_[Phi[rest], np.ones(n - 1)] if centred else Phi[rest]
        penalty = ridge * np.diag([1.0, 1.0, 1.0, 0.0][: table.shape[1]])
        W = np.linalg.solve(table.T @ table + penalty, table.T @ targets[rest])
        expected = Phi[j] @ W[:3] + (W[3] - targets[rest].mean(axis=0) if centred else 0)
        np.testing.assert_allclose(found[j], expected, atol=1e-10)


def test_rows_that_fit_any_label_of_their_own_have_scores_of_zero():
    targets = np.array([[1.0, -1.0], [0.5, 0.2], [2.0, 1.0]])
    scores = left_out(targets, 0.5 * targets, np.array([1.0, 1.0 - 1e-10, 0.5]), None, 3)
    np.testing.assert_array_equal(scores[:2], 0.0)
    np.testing.assert_allclose(scores[2], 0.0, atol=1e-12)  # residual y/2, divided by 1 − ½
    scores = left_out(targets, 0.5 * targets, np.full(3, 0.25), None, 3)
    np.testing.assert_allclose(scores, targets - 0.5 * targets / 0.75)
    alone = left_out(targets[:1], np.zeros((1, 2)), np.zeros(1), targets[0], 1)
    np.testing.assert_array_equal(alone, 0.0)
