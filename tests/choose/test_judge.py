"""The judge ranks right above wrong, whatever the sizes, the shift of tasks or the scale."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mtclust.choose import judge
from mtclust.choose.judge import Predictability, quadratic_errors, scores, terms
from tests.test_criterion import refitted_residuals

ONE = np.zeros


def blobs(shares, seed=0, n=100):
    """Three clear clusters in three columns, in shares that differ by task; rows, classes, tasks."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0]])
    labels = [np.repeat(np.arange(3), np.round(np.array(share) * n).astype(int)) for share in shares]
    X = np.concatenate([centres[y] + rng.normal(size=(len(y), 3)) for y in labels])
    return X, np.concatenate(labels), np.repeat(np.arange(len(labels)), [len(y) for y in labels])


def thirds(X, tasks):
    """Equal thirds along the first column of every task: neat, even and wrong."""
    labels = np.empty(len(X), dtype=np.int64)
    for task in range(tasks.max() + 1):
        rows = tasks == task
        labels[rows] = np.argsort(np.argsort(X[rows, 0])) * 3 // rows.sum()
    return labels


def test_unequal_clusters_that_are_there_score_above_equal_ones_that_are_not():
    X, y, tasks = blobs([(0.8, 0.15, 0.05)] * 3)
    right, wrong = scores(X, tasks, np.stack([y, thirds(X, tasks)]), 3)
    assert right > wrong + 0.3
    assert Predictability(X, tasks).verdict(y, 3).separation > 0.6


def test_within_tasks_shifts_scale_and_names_of_clusters_change_nothing():
    X, y, tasks = blobs([(0.5, 0.3, 0.2), (0.2, 0.4, 0.4)])
    first = Predictability(X, tasks).verdict(y, 3).separation
    moved = X + 50.0 * tasks[:, None]
    for rows, labels in ((moved, y), (1e3 * X, y), (X, 2 - y)):
        assert Predictability(rows, tasks).verdict(labels, 3).separation == pytest.approx(first, abs=1e-6)


def test_terms_of_several_labellings_are_those_of_each_alone():
    X, y, tasks = blobs([(0.5, 0.3, 0.2), (0.2, 0.4, 0.4)])
    labels = np.stack([y, thirds(X, tasks), np.random.default_rng(0).integers(3, size=len(y))])
    together = terms(X, tasks, labels, 3, X + tasks[:, None])
    assert list(together) == list(judge.WEIGHTS)
    for k in range(3):
        alone = terms(X, tasks, labels[k : k + 1], 3, X + tasks[:, None])
        for name, values in together.items():
            assert values[k] == pytest.approx(alone[name][0], abs=1e-9), name


def test_clusters_that_are_only_tasks_are_not_separated_within_tasks():
    X, _, tasks = blobs([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    separation, shape = Predictability(X, tasks).of(tasks[None], 3)
    assert np.all(separation == 0.0)
    assert np.all(shape == 0.0)


def test_a_task_without_a_cluster_is_not_judged_by_it():
    X, y, tasks = blobs([(0.4, 0.3, 0.3), (1.0, 0.0, 0.0)])
    alone = Predictability(X[:100], tasks[:100]).verdict(y[:100], 3)
    assert Predictability(X, tasks).verdict(y, 3).separation == pytest.approx(alone.separation, abs=0.05)


def test_labels_of_noise_have_a_separation_of_about_zero_or_less():
    X = np.random.default_rng(0).normal(size=(120, 4))
    labels = (X[:, 0] > 0).astype(np.int64)
    assert Predictability(X, np.repeat([0, 1], 60)).verdict(labels, 2).separation < 0.2


def test_separation_is_r_squared_beyond_noise_at_the_best_ridge():
    """By hand for the linear kernel and two tasks, from refitting without each row."""
    X, y, tasks = blobs([(0.5, 0.3, 0.2), (0.4, 0.6, 0.0)], n=20)
    parts = [X[tasks == task] - X[tasks == task].mean(axis=0) for task in range(2)]
    scale = np.mean(np.concatenate([np.sum(part**2, axis=1) for part in parts]))
    by_ridge, total, noise = np.zeros((len(judge._LAMBDAS), 3)), np.zeros(3), np.zeros(3)
    for task, n_held in ((0, 3), (1, 2)):
        z, kernel = np.eye(3)[y[tasks == task]], parts[task] @ parts[task].T / scale
        spread = 20 * z.mean(axis=0) * (1 - z.mean(axis=0))
        total, noise = total + spread, noise + spread * judge._NOISE[n_held - 1]
        for k, ridge in enumerate(judge._LAMBDAS):
            e = np.stack([refitted_residuals(kernel, float(ridge), z[:, c]) for c in range(3)], axis=1)
            by_ridge[k] += (e**2).sum(axis=0) * (19 / 20) ** 2
    r_squared = 1 - by_ridge / total
    best = r_squared[r_squared.sum(axis=1).argmax()]
    expected = (best - noise / total) / (1 - noise / total)
    separation, _ = Predictability(X, tasks).of(y[None], 3)
    np.testing.assert_allclose(separation[0, 0], expected, atol=1e-4)
    verdict = Predictability(X, tasks).verdict(y, 3)
    np.testing.assert_allclose(verdict.by_cluster, separation.mean(axis=0)[0])
    assert verdict.separation == pytest.approx(verdict.by_cluster.mean())


def test_noise_levels_fall_with_the_number_of_clusters_and_leave_room():
    assert judge._NOISE[0] == 0.0
    assert np.all(np.diff(judge._NOISE[1:]) < 0)
    assert 0.4 < judge._NOISE[1:].min() < judge._NOISE.max() < 0.8


def test_rows_that_do_not_differ_and_tasks_of_one_row_are_no_trouble():
    verdict = Predictability(np.zeros((6, 2)), ONE(6, dtype=int)).verdict(np.array([0, 0, 1, 1, 1, 1]), 2)
    assert np.all(verdict.by_cluster < 0)  # nothing but the mean is predicted
    X, y, _ = blobs([(0.5, 0.3, 0.2)])
    tasks = np.repeat([0, 1, 2], [1, 2, 97])
    assert np.isfinite(Predictability(X, tasks).verdict(y, 3).separation)


def test_evenness_is_one_for_equal_sizes_and_zero_for_one_cluster():
    tasks = np.repeat([0, 1], 6)
    assert judge._evenness(np.tile([0, 1, 2], 4), tasks, 3) == pytest.approx(1.0)
    assert judge._evenness(np.zeros(12, dtype=int), tasks, 3) == 0.0
    assert judge._evenness(np.repeat([0, 1], 6), tasks, 2) == 0.0
    assert judge._evenness(np.repeat([0, 1], 6), np.zeros(12, dtype=int), 2) == pytest.approx(1.0)


@pytest.mark.parametrize("counts", [(25, 15), (20, 2), (20, 12, 1)], ids=str)
def test_the_quadratic_discriminant_leaves_each_row_out(counts):
    """Against densities that are really fitted without the row."""
    rng, C = np.random.default_rng(1), len(counts)
    labels = np.repeat(np.arange(C), counts)
    X = rng.normal(size=(len(labels), 3)) + 1.5 * labels[:, None]
    n, r = X.shape
    means = np.stack([X[labels == c].mean(axis=0) for c in range(C)])
    apart = X - means[labels]
    within = apart.T @ apart / (n - C)  # the shape that all clusters share is not left out
    within += 1e-6 * np.mean(X**2) * np.eye(r)
    nu, chance = r + 2, np.empty((n, C))
    for j in range(n):
        density = []
        for c in range(C):
            others = X[(labels == c) & (np.arange(n) != j)]
            if len(others) == 0:  # a row alone in its cluster counts as half a row where it is
                density.append(0.5 * multivariate_normal.pdf(X[j], X[j], within))
                continue
            scatter = (others - others.mean(axis=0)).T @ (others - others.mean(axis=0))
            covariance = (scatter + nu * within) / (len(others) + nu)
            density.append(len(others) * multivariate_normal.pdf(X[j], others.mean(axis=0), covariance))
        chance[j] = np.array(density) / np.sum(density)
    z = np.eye(C)[labels]
    np.testing.assert_allclose(quadratic_errors(X, z, C)[0], np.sum((z - chance) ** 2, axis=0), rtol=1e-6, atol=1e-9)


def test_shapes_that_no_line_separates_are_seen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2)) * np.where(np.arange(240)[:, None] < 120, [9.0, 0.5], [0.5, 9.0])
    labels = np.repeat([0, 1], 120)
    right, wrong = (quadratic_errors(X, np.eye(2)[own], 2).sum() for own in (labels, rng.permutation(labels)))
    assert right < 0.25 * wrong
