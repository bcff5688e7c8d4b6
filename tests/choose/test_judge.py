"""The judge ranks right above wrong, whatever the sizes, the shift of tasks or the scale."""

import numpy as np
import pytest

from mtclust.choose import judge
from mtclust.choose.judge import Judge, Predictability
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
    right, wrong = Judge(X, tasks, 3).of(np.stack([y, thirds(X, tasks)]))[0]
    assert right > wrong + 0.3
    assert Predictability(X, tasks).by_cluster(y, 3).mean() > 0.6


def test_within_tasks_shifts_scale_and_names_of_clusters_change_nothing():
    X, y, tasks = blobs([(0.5, 0.3, 0.2), (0.2, 0.4, 0.4)])
    first = Predictability(X, tasks).by_cluster(y, 3).mean()
    moved = X + 50.0 * tasks[:, None]
    for rows, labels in ((moved, y), (1e3 * X, y), (X, 2 - y)):
        assert Predictability(rows, tasks).by_cluster(labels, 3).mean() == pytest.approx(first, abs=1e-6)


def test_terms_of_several_labellings_are_those_of_each_alone():
    X, y, tasks = blobs([(0.5, 0.3, 0.2), (0.2, 0.4, 0.4)])
    labels = np.stack([y, thirds(X, tasks), np.random.default_rng(0).integers(3, size=len(y))])
    together = Judge(X, tasks, 3, X + tasks[:, None]).of(labels)[1]
    assert set(together) == set(judge.WEIGHTS)
    for k in range(3):
        alone = Judge(X, tasks, 3, X + tasks[:, None]).of(labels[k : k + 1])[1]
        for name, values in together.items():
            if name == "agreement":  # which is of one candidate with the others
                continue
            assert values[k] == pytest.approx(alone[name][0], abs=1e-9), name


def test_clusters_that_are_only_tasks_are_not_separated_within_tasks():
    X, _, tasks = blobs([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    assert np.all(Predictability(X, tasks).of(tasks[None], 3) == 0.0)


def test_a_task_without_a_cluster_is_not_judged_by_it():
    X, y, tasks = blobs([(0.4, 0.3, 0.3), (1.0, 0.0, 0.0)])
    alone = Predictability(X[:100], tasks[:100]).by_cluster(y[:100], 3)
    assert Predictability(X, tasks).by_cluster(y, 3).mean() == pytest.approx(alone.mean(), abs=0.05)


def test_labels_of_noise_have_a_separation_of_about_zero_or_less():
    X = np.random.default_rng(0).normal(size=(120, 4))
    labels = (X[:, 0] > 0).astype(np.int64)
    assert Predictability(X, np.repeat([0, 1], 60)).by_cluster(labels, 2).mean() < 0.2


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
    separation = Predictability(X, tasks).of(y[None], 3)
    np.testing.assert_allclose(separation[0, 0], expected, atol=1e-4)
    verdict = Predictability(X, tasks).by_cluster(y, 3)
    np.testing.assert_allclose(verdict, separation.mean(axis=0)[0])
    assert verdict.mean() == pytest.approx(verdict.mean())


def test_noise_levels_fall_with_the_number_of_clusters_and_leave_room():
    assert judge._NOISE[0] == 0.0
    assert np.all(np.diff(judge._NOISE[1:]) < 0)
    assert 0.4 < judge._NOISE[1:].min() < judge._NOISE.max() < 0.8


def test_rows_that_do_not_differ_and_tasks_of_one_row_are_no_trouble():
    verdict = Predictability(np.zeros((6, 2)), ONE(6, dtype=int)).by_cluster(np.array([0, 0, 1, 1, 1, 1]), 2)
    assert np.all(verdict < 0)  # nothing but the mean is predicted
    X, y, _ = blobs([(0.5, 0.3, 0.2)])
    tasks = np.repeat([0, 1, 2], [1, 2, 97])
    assert np.isfinite(Predictability(X, tasks).by_cluster(y, 3).mean())


def test_evenness_is_one_for_equal_sizes_and_zero_for_one_cluster():
    X, tasks = np.random.default_rng(0).normal(size=(12, 2)), np.zeros(12, dtype=int)
    labels = np.stack([np.tile([0, 1, 2], 4), np.zeros(12, dtype=int)])
    assert Judge(X, tasks, 3).of(labels)[1]["evenness"].tolist() == pytest.approx([1.0, 0.0])


def test_agreement_is_one_for_the_same_clusters_under_other_names_and_zero_for_unrelated_ones():
    tasks, y = np.repeat([0, 1], 60), np.tile(np.arange(3), 40)
    names = np.array([[0, 1, 2], [2, 0, 1]])[tasks, y]  # the same clusters in every task
    unrelated = np.repeat(np.tile([0, 1], 2), 30)
    np.testing.assert_allclose(judge._agreement(tasks, np.stack([y, names]), 3), 1.0)
    np.testing.assert_allclose(judge._agreement(tasks, np.stack([y, unrelated]), 3), 0.0, atol=1e-9)
    np.testing.assert_allclose(judge._agreement(tasks, np.stack([y, names, unrelated]), 3), [0.5, 0.5, 0.0], atol=1e-9)
    assert judge._agreement(tasks, y[None], 3).tolist() == [0.0]


def test_labels_of_one_cluster_agree_with_nothing_whatever_rounding_makes_of_their_entropy():
    tasks = np.repeat([0, 1, 2, 3], [3, 5, 10, 11])
    several = np.arange(29) % 2
    one = np.ones(29, dtype=np.int64)
    assert judge._agreement(tasks, np.stack([several, 0 * one, one]), 2).tolist() == [0.0, 0.0, 0.0]
