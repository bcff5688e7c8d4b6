"""The judge ranks right above wrong, whatever the sizes, the shift of tasks or the scale."""

from __future__ import annotations

import numpy as np
import pytest

from mtclust.choose.judge import LAMBDAS, Judge, Verdict, evenness, noise_level
from mtclust.choose.views import View, judging_kernels


def judge_of(X: np.ndarray, offsets: np.ndarray) -> Judge:
    view = View(X, offsets)
    return Judge({spec.name: view.through(spec, "task").centred.matrix for spec in judging_kernels("auto")}, offsets)


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
    assert judge_of(X, offsets)(labels, 3, common=True).separation == 0.0


def test_a_task_without_a_cluster_is_not_judged_by_it() -> None:
    X, y, offsets = blobs([(0.4, 0.3, 0.3), (1.0, 0.0, 0.0)])
    alone = judge_of(X[:100], offsets[:2])(y[:100], 3)
    both = judge_of(X, offsets)(y, 3, common=True)
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
    from tests.test_criterion import refitted_residuals

    from mtclust.choose.judge import _spectrum

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
