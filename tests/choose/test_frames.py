"""Whether rows speak for one frame of all tasks, and what a fit makes of it."""

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from mtclust import DMTFC, DMTRC
from mtclust.choose.frames import MOST_DISPLACED, displacement, in_place, one_frame_fits, one_model_fits

OFFSETS = np.array([0, 120, 240, 360])
TASKS = np.repeat([0, 1, 2], 120)


def rows(shares, shift=0.0, seed=0):
    """Three clusters in the plane, in shares that differ by task; tasks are moved by ``shift``."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([rng.choice(3, 120, p=share) for share in shares])
    X = np.array([[0, 0], [6, 0], [0, 6]])[y] + rng.normal(size=(360, 2))
    return X + shift * np.array([[0, 0], [1, 1], [2, -1]])[TASKS], y


EQUAL = [[1 / 3, 1 / 3, 1 / 3]] * 3
SKEWED = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]


@pytest.mark.parametrize("shares", [EQUAL, SKEWED])
def test_clusters_in_the_same_places_are_not_displaced(shares):
    X, y = rows(shares)
    assert abs(displacement(X, y, TASKS)) < 0.1
    # chance is taken off: labels that mean nothing are not displaced either
    assert abs(displacement(X, np.arange(360) % 3, np.random.default_rng(1).permutation(TASKS))) < 0.1


def test_a_shift_displaces_clusters_by_its_square_in_units_of_their_spread():
    X, y = rows(EQUAL, shift=1.0)
    moved = np.array([[0, 0], [1, 1], [2, -1]])
    expected = np.mean(np.sum((moved - moved.mean(axis=0)) ** 2, axis=1))
    assert displacement(X, y, TASKS) == pytest.approx(expected, rel=0.25)
    assert displacement(1e6 * X - 3.0, y, TASKS) == pytest.approx(displacement(X, y, TASKS), rel=1e-6)


def test_shares_that_differ_by_task_speak_for_one_frame_and_shifts_against_it():
    X, y = rows(SKEWED)
    # around the means of the tasks every task has all clusters, in the wrong places
    own = np.concatenate([np.argsort(np.argsort(X[a:b, 0])) // 40 for a, b in zip(OFFSETS[:-1], OFFSETS[1:])])
    assert one_frame_fits(X, OFFSETS, y, own, 3)
    shifted, y = rows(EQUAL, shift=4.0)
    assert not one_frame_fits(shifted, OFFSETS, y, y, 3)
    assert displacement(shifted, y, TASKS) > MOST_DISPLACED
    assert not in_place(shifted, OFFSETS, y)


def test_clusters_that_are_tasks_do_not_speak_for_one_frame():
    X, y = rows(EQUAL, shift=12.0)
    assert in_place(X, OFFSETS, TASKS)  # each is where it is
    assert not one_frame_fits(X, OFFSETS, TASKS, y, 3)


def test_rows_that_do_not_differ_and_single_rows_are_no_trouble():
    assert displacement(np.zeros((4, 1)), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])) <= 0
    assert isinstance(one_frame_fits(np.eye(3), np.array([0, 1, 2, 3]), np.arange(3), np.arange(3), 3), bool)


@pytest.mark.parametrize("method", [DMTRC, DMTFC])
def test_a_table_cut_by_one_of_its_columns_is_clustered_in_one_frame(method):
    data = load_wine()
    X, y = StandardScaler().fit_transform(data.data), data.target
    strength = X[:, 12]  # proline, which tells the kinds apart
    tasks = np.searchsorted(np.quantile(strength, [1 / 3, 2 / 3]), strength)
    X = np.delete(X, 12, axis=1)
    model = method(3, random_state=0).fit(X, tasks=tasks)
    assert model.selection_.center == "all"
    assert "same places in all tasks" in model.selection_.reason
    assert adjusted_rand_score(y, model.labels_) > 0.7
    apart = method(3, center="task", random_state=0).fit(X, tasks=tasks)
    assert adjusted_rand_score(y, apart.labels_) < 0.5


def test_shifted_tasks_keep_frames_of_their_own():
    X, y = rows(EQUAL, shift=4.0)
    model = DMTRC(3, random_state=0).fit(X, tasks=TASKS)
    assert model.selection_.center == "task"
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_features_are_learned_in_one_frame_too():
    X, y = rows(SKEWED)
    X = np.c_[X, np.random.default_rng(2).normal(size=(360, 3))]
    for form in ("dual", "primal"):
        model = DMTFC(3, kernel="linear", center="all", solver_options={"form": form}, random_state=0)
        D = model.fit(X, tasks=TASKS).feature_covariance_
        assert D.shape == (5, 5)
        assert np.trace(D[:2, :2]) > 0.9
        assert np.trace(D) == pytest.approx(1.0)
        assert adjusted_rand_score(y, model.labels_) > 0.95
        assert model.selection_.center == "all"


def test_lambdas_that_are_given_count_in_one_frame():
    X, _ = rows(SKEWED)
    model = DMTRC(3, kernel="linear", center="all", lambda1=0.5, lambda2=0.25, random_state=0).fit(X, tasks=TASKS)
    assert model.selection_.lambda1 == 0.5
    assert model.selection_.lambda2 == 0.75  # of one task that stands for three
    wide = DMTRC(3, kernel="linear", center="all", lambda1=50.0, lambda2=25.0, random_state=0).fit(X, tasks=TASKS)
    assert np.abs(wide.coef_).max() < np.abs(model.coef_).max() / 10


def many_small_tasks(seed, n_tasks=25):
    """Three clusters in four columns; tasks of 4 to 11 rows, each moved by much."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 12, size=n_tasks)
    tasks = np.repeat(np.arange(n_tasks), sizes)
    y = rng.integers(3, size=len(tasks))
    centres = np.array([[0, 0, 0, 0], [5, 0, 3, 0], [0, 5, 0, 3]])
    return centres[y] + rng.normal(size=(len(y), 4)) + 4.0 * rng.normal(size=(n_tasks, 4))[tasks], y, tasks


@pytest.mark.parametrize("method", [DMTRC, DMTFC])
@pytest.mark.parametrize("seed", [0, 1])
def test_many_small_shifted_tasks_are_clustered_together(method, seed):
    X, y, tasks = many_small_tasks(seed)
    model = method(3, random_state=0).fit(X, tasks=tasks)
    assert adjusted_rand_score(y, model.labels_) > 0.75
    assert model.selection_.center == "task"
    assert "from all rows together" in model.selection_.reason
    assert any("rows together" in tried.name for tried in model.selection_.candidates)
    if method is DMTRC:
        assert model.selection_.coupling.decision == "full"
        assert model.task_correlation_[np.triu_indices(len(model.tasks_), 1)].mean() > 0.3
        assert model.stability(X, tasks=tasks, n_refits=3).overall > 0.6
        apart = DMTRC(3, coupling="none", random_state=0).fit(X, tasks=tasks)
        assert adjusted_rand_score(y, apart.labels_) < adjusted_rand_score(y, model.labels_) - 0.1


def test_one_model_is_not_taken_where_tasks_have_clusters_in_other_places():
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(3), 60), np.tile(np.repeat(np.arange(3), 20), 3)
    X = 8.0 * rng.normal(size=(3, 3, 4))[tasks, y] + rng.normal(size=(180, 4))  # every task has centres of its own
    around = X - np.repeat([X[tasks == task].mean(axis=0) for task in range(3)], 60, axis=0)
    offsets = np.array([0, 60, 120, 180])
    assert not one_model_fits(X, around, offsets, np.random.default_rng(1).permutation(y), y, 3)
    assert not one_model_fits(X, around, offsets, y, y, 3)  # not shorter than itself
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    assert "from all rows together" not in model.selection_.reason
    for task in range(3):
        assert adjusted_rand_score(y[tasks == task], model.labels_[tasks == task]) > 0.9


def test_tasks_of_two_unrelated_groups_are_not_mixed():
    """Two tasks hold three kinds of rows, two others three other kinds; three clusters of all would mix them."""
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(4), 60), np.tile(np.repeat(np.arange(3), 20), 4)
    centres = 6.0 * np.eye(6)
    X = centres[y + 3 * (tasks // 2)] + rng.normal(size=(240, 6))
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    assert "same places" not in model.selection_.reason
    for task in range(4):
        assert adjusted_rand_score(y[tasks == task], model.labels_[tasks == task]) > 0.95
