"""The judge ranks right above wrong, whatever the sizes, the shift of tasks or the scale."""

from __future__ import annotations

import numpy as np
import pytest

from mtclust.choose.judge import LAMBDAS, NOISE, ROWS, TASKS, Judge, Verdict, _spectrum, _spread, evenness, noise_level
from mtclust.choose.views import View, judging_kernels
from tests.test_criterion import refitted_residuals


def judge_of(X: np.ndarray, offsets: np.ndarray) -> Judge:
    view = View(X, offsets)
    return Judge.of(view, judging_kernels("auto"))


def blobs(shares: list[tuple[float, ...]], seed: int = 0, n: int = 100) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0]])
    labels = [np.repeat(np.arange(3), np.round(np.array(share) * n).astype(int)) for share in shares]
    rows = [centres[y] + rng.normal(size=(len(y), 3)) for y in labels]
    offsets = np.concatenate([[0], np.cumsum([len(y) for y in labels])])
    return np.concatenate(rows), np.concatenate(labels), offsets


def halves(X: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Equal thirds along the first column of every task: neat, even and wrong."""
    labels = np.empty(len(X), dtype=np.int64)
    for a, b in zip(offsets[:-1], offsets[1:]):
        labels[a:b] = np.argsort(np.argsort(X[a:b, 0])) * 3 // (b - a)
    return labels


def test_unequal_clusters_that_are_there_score_above_equal_ones_that_are_not() -> None:
    X, y, offsets = blobs([(0.8, 0.15, 0.05)] * 3)
    judge = judge_of(X, offsets)
    right, wrong = judge(y, 3), judge(halves(X, offsets), 3)
    assert right.score > wrong.score + 0.3
    assert right.separation > 0.6
    assert 0.9 < right.shape <= 1.0
    assert wrong.evenness == pytest.approx(1.0, abs=1e-3)


def test_score_does_not_depend_on_shifts_of_tasks_scale_or_names_of_clusters() -> None:
    X, y, offsets = blobs([(0.5, 0.3, 0.2), (0.2, 0.4, 0.4)])
    first = judge_of(X, offsets)(y, 3)
    moved = X.copy()
    moved[offsets[1] :] += 50.0
    for other in (judge_of(moved, offsets)(y, 3), judge_of(1e3 * X, offsets)(y, 3), judge_of(X, offsets)(2 - y, 3)):
        assert other.score == pytest.approx(first.score, abs=1e-6)


def test_clusters_that_are_only_tasks_score_nothing() -> None:
    X, _, offsets = blobs([(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)])
    labels = np.repeat(np.arange(3), np.diff(offsets))
    verdict = judge_of(X, offsets)(labels, 3)
    assert verdict.separation == verdict.shape == 0.0


def test_a_task_without_a_cluster_is_not_judged_by_it() -> None:
    X, y, offsets = blobs([(0.4, 0.3, 0.3), (1.0, 0.0, 0.0)])
    alone = judge_of(X[:100], offsets[:2])(y[:100], 3)
    both = judge_of(X, offsets)(y, 3)
    assert both.separation == pytest.approx(alone.separation, abs=0.05)


def test_labels_of_noise_score_about_zero_or_less() -> None:
    X = np.random.default_rng(0).normal(size=(120, 4))
    labels = (X[:, 0] > 0).astype(np.int64)
    verdict = judge_of(X, np.array([0, 60, 120]))(labels, 2)
    assert isinstance(verdict, Verdict)
    assert verdict.separation < 0.2


def test_residuals_equal_refitting() -> None:
    """R² of one kernel and λ against ridge regression on the other rows, one row at a time."""
    X, y, offsets = blobs([(0.5, 0.3, 0.2)], n=30)
    view = View(X, offsets)
    kernel = view.through(judging_kernels("auto")[0], "task").centred.matrix
    z = (y == 1).astype(float)
    errors = _spectrum(kernel).errors(np.stack([z, 1 - z], axis=1))
    for k in (0, 3, 7):
        e = refitted_residuals(kernel, float(LAMBDAS[k]), z)
        assert errors[k, 0] == pytest.approx(np.sum(e**2) * (29 / 30) ** 2, rel=1e-4)


def test_evenness_and_noise_level() -> None:
    assert evenness(np.repeat([0, 1, 2], 5), 3) == pytest.approx(1.0)
    assert evenness(np.zeros(5, dtype=np.int64), 1) == 1.0
    assert noise_level(1) == 0.0
    assert noise_level(2) > noise_level(5) > noise_level(40) > 0.4


def test_noise_levels_fall_with_the_number_of_clusters_and_leave_room() -> None:
    assert np.all(np.diff(NOISE) < 0)
    assert 0.4 < min(NOISE) < max(NOISE) < 0.8
    assert [noise_level(k) for k in range(2, 13)] == list(NOISE)
    assert noise_level(13) == NOISE[-1]


def test_rows_that_do_not_differ_predict_nothing_but_the_mean() -> None:
    z = np.array([[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 4)
    errors = _spectrum(np.zeros((6, 6))).errors(z)
    np.testing.assert_allclose(errors, np.full((len(LAMBDAS), 2), 6 * (1 / 3) * (2 / 3)))  # R² is 0


def test_tasks_of_two_rows_are_judged_and_those_of_one_are_not() -> None:
    X, y, _ = blobs([(0.5, 0.3, 0.2)])
    found = judge_of(X, np.array([0, 1, 3, 100])).by_task(y, 3)
    assert sorted(found) == [1, 2]


def test_with_very_many_tasks_some_are_judged_from_the_first_to_the_last() -> None:
    offsets = 4 * np.arange(TASKS + 11)
    X = np.random.default_rng(0).normal(size=(offsets[-1], 2))
    judged = sorted(judge_of(X, offsets).by_task(np.arange(len(X)) % 2, 2))
    assert len(judged) == TASKS
    assert (judged[0], judged[-1]) == (0, TASKS + 9)
    assert max(np.diff(judged)) <= 2


def test_large_tasks_are_judged_by_some_rows_that_follow_no_cycle() -> None:
    rows = _spread(7, 7 + 2 * ROWS)
    assert len(rows) == len(np.unique(rows)) == ROWS
    assert 7 <= rows.min() < 17 < 2 * ROWS - 10 < rows.max() < 7 + 2 * ROWS
    assert 0.4 < np.mean(rows % 2) < 0.6
    np.testing.assert_array_equal(_spread(7, 7 + ROWS), np.arange(7, 7 + ROWS))


def test_score_is_made_of_separation_shape_and_evenness() -> None:
    verdict = Verdict(0.8, {"linear": 0.8}, np.array([0.9, 0.7]), 0.5, 0.2)
    assert verdict.overall == pytest.approx(2 / 3 * 0.8 + 1 / 3 * 0.2)
    assert verdict.score == pytest.approx(verdict.overall - 0.6 * 0.5)
    assert verdict.score_by_kernels == pytest.approx(0.8 - 0.6 * 0.5)
    plain = Verdict(0.8, {"linear": 0.8}, np.array([0.9, 0.7]), 0.5)
    assert plain.overall == 0.8


def test_separation_is_r_squared_beyond_noise_at_the_best_ridge() -> None:
    """By hand for one kernel and two tasks, from refitting without each row."""
    X, y, offsets = blobs([(0.5, 0.3, 0.2), (0.4, 0.6, 0.0)], n=20)
    kernel = View(X, offsets).through(judging_kernels("auto")[0], "task").centred.matrix
    by_ridge, total, noise = np.zeros((len(LAMBDAS), 3)), np.zeros(3), np.zeros(3)
    for a, b, n_held in ((0, 20, 3), (20, 40, 2)):
        z = np.eye(3)[y[a:b]]
        spread = 20 * z.mean(axis=0) * (1 - z.mean(axis=0))
        total, noise = total + spread, noise + spread * noise_level(n_held)
        for k, ridge in enumerate(LAMBDAS):
            e = np.stack([refitted_residuals(kernel[a:b, a:b], float(ridge), z[:, c]) for c in range(3)], axis=1)
            by_ridge[k] += (e**2).sum(axis=0) * (19 / 20) ** 2
    r_squared = 1 - by_ridge / total
    best = r_squared[r_squared.mean(axis=1).argmax()]
    expected = (best - noise / total) / (1 - noise / total)
    verdict = Judge({"one": kernel}, offsets)(y, 3)
    np.testing.assert_allclose(verdict.by_cluster, expected, atol=1e-4)
    assert verdict.separation == pytest.approx(expected.mean(), abs=1e-4)
    assert verdict.by_kernel == {"one": verdict.separation}


def test_a_cluster_of_one_row_is_judged_by_its_shape() -> None:
    X, y, offsets = blobs([(0.5, 0.5, 0.0)], n=20)
    y[0] = 2
    shapes = judge_of(X, offsets)._shapes(y, 3)
    assert shapes[2] == -1.0  # the least that is said of a cluster
    assert shapes[1] == pytest.approx(1.0)
