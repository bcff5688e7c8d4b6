"""Whether rows speak for one frame of all tasks, and what a fit makes of it."""

import warnings

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

import mtclust
from mtclust import DMTFC, DMTRC
from mtclust.choose.frames import (
    around_means,
    described,
    directions,
    lengths,
    moves_of_tasks,
    normal_scores,
)
from mtclust.core.order import information
from mtclust.exceptions import UncoupledWarning

OFFSETS = np.array([0, 120, 240, 360])
TASKS = np.repeat([0, 1, 2], 120)


def rows(shares, shift=0.0, seed=0):
    """Three clusters in the plane, in shares that differ by task; tasks are moved by ``shift``."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([rng.choice(3, 120, p=share) for share in shares])
    X = np.array([[0, 0], [6, 0], [0, 6]])[y] + rng.normal(size=(360, 2))
    return X + shift * np.array([[0, 0], [1, 1], [2, -1]])[TASKS], y


NO_ERRORS = np.zeros((2, 2))
EQUAL = [[1 / 3, 1 / 3, 1 / 3]] * 3
SKEWED = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]


def cut_evenly(X):
    """Clusters of equal size in every task, by the first column: what own frames make of skewed shares."""
    return np.concatenate([np.argsort(np.argsort(X[a:b, 0])) // 40 for a, b in zip(OFFSETS[:-1], OFFSETS[1:])])


def shortest(X, labels):
    found = lengths(X, np.zeros((X.shape[1], X.shape[1])), TASKS, labels, 3)
    return min(found, key=found.get)


def test_clusters_in_the_same_places_speak_for_one_frame_and_a_shift_for_aligned_tasks():
    for shares in (EQUAL, SKEWED):
        X, y = rows(shares)
        assert shortest(X, y) == "all"
        X, y = rows(shares, shift=2.0)
        assert shortest(X, y) == "aligned"
        assert shortest(X + 1e6 * TASKS[:, None], y) == "aligned"


def test_clusters_in_other_places_speak_for_own_frames():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=360)
    X = 5.0 * rng.normal(size=(3, 3, 4))[TASKS, y] + rng.normal(size=(360, 4))
    assert shortest(X, y) == "task"


def test_em_finds_clusters_and_offsets_from_labels_that_own_frames_give():
    X, y = rows(SKEWED)
    assert adjusted_rand_score(y, described(X, NO_ERRORS, TASKS, [cut_evenly(X), y], 3)) > 0.95
    X, y = rows(SKEWED, shift=2.0)
    found = described(X, NO_ERRORS, TASKS, [np.random.default_rng(0).permutation(y), cut_evenly(X)], 3)
    assert adjusted_rand_score(y, found) > 0.95


def test_clusters_that_are_tasks_are_no_clusters_of_a_fit():
    X, y = rows(EQUAL, shift=12.0)
    model = DMTRC(3).fit(X, tasks=TASKS)
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_variants_of_a_cluster_in_every_task_are_not_clusters_of_one_frame():
    """Twelve tasks have three kinds of rows, each in a hand of its own: hands describe rows most shortly."""
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(12), 30), np.tile(np.repeat(np.arange(3), 10), 12)
    hands = 2.0 * rng.normal(size=(12, 3, 4))
    X = 3.0 * np.eye(4)[y] + hands[tasks, y] + 0.5 * rng.normal(size=(360, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        model = DMTRC(3).fit(X, tasks=tasks)
    assert model.selection_.center == "task"
    assert np.mean([adjusted_rand_score(y[tasks == i], model.labels_[tasks == i]) for i in range(12)]) > 0.9


def test_lengths_of_given_labels_are_those_of_the_densities_of_scipy():
    X, y = rows(SKEWED, shift=2.0)
    counts = np.array([np.bincount(y[task == TASKS], minlength=3) for task in range(3)]) + 0.5
    shares = counts / counts.sum(axis=1, keepdims=True)
    cells, sizes = np.bincount(3 * TASKS + y), np.bincount(y)
    offsets = np.append(sizes, np.sort(np.bincount(TASKS))[:2])
    designs = {
        "all": (np.eye(3)[y], sizes), "aligned": (np.hstack([np.eye(3)[y], np.eye(3)[TASKS]]), offsets),
        "task": (np.eye(9)[3 * TASKS + y], np.append(offsets, np.sort(cells)[:4])),
    }  # fmt: skip
    for frame, (design, rows_of_means) in designs.items():
        apart = X - design @ np.linalg.lstsq(design, X, rcond=None)[0]
        apart *= np.sqrt(360 / (360 - np.linalg.matrix_rank(design)))
        common = apart.T @ apart / 360
        length = -np.log(shares[TASKS, y]).sum()
        for c in range(3):
            own = apart[y == c]
            covariance = (own.T @ own + 4 * common) / (len(own) + 4) + 1e-3 * np.trace(common) / 2 * np.eye(2)
            density = multivariate_normal(np.zeros(2), covariance).logpdf(own) + np.log(2 * np.pi)
            length -= density.sum()
        expected = (length + np.log(rows_of_means + 1).sum() + 0.5 * 3 * 3 * np.log(360)) / 360
        assert lengths(X, NO_ERRORS, TASKS, y, 3)[frame] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("shift", "frame"), [(0.0, "all"), (1.0, "aligned")])
@pytest.mark.parametrize(("n_tasks", "n_rows"), [(60, 8), (300, 6)])
def test_offsets_of_many_small_tasks_are_found_and_none_are_made_up(n_tasks, n_rows, shift, frame):
    rng = np.random.default_rng(n_tasks)
    tasks, y = np.repeat(np.arange(n_tasks), n_rows), rng.integers(3, size=n_tasks * n_rows)
    X = 2.5 * np.eye(8)[y] + shift * rng.normal(size=(n_tasks, 8))[tasks] + rng.normal(size=(len(y), 8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        assert DMTRC(3).fit(X, tasks=tasks).selection_.center == frame


def test_as_many_means_as_rows_are_no_description():
    X, tasks, y = np.random.default_rng(0).normal(size=(6, 2)), np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1] * 3)
    found = lengths(X, NO_ERRORS, tasks, y, 2)
    assert found["task"] == np.inf
    assert np.isfinite([found["all"], found["aligned"]]).all()


def test_a_column_of_two_values_does_not_make_a_description_short():
    """Cut along it, a cluster has no variance there: without the error that would be all that counts."""
    rng = np.random.default_rng(0)
    binary, y = rng.integers(2, size=200), np.repeat([0, 1], 100)
    X = np.c_[binary, 2.0 * y + rng.normal(size=200), 2.0 * y + rng.normal(size=200)]
    one = np.zeros(200, dtype=int)
    Y, E = directions(X, one, information(X))
    right, wrong = (lengths(Y, E, one, labels, 2)["all"] for labels in (y, binary))
    assert right < wrong
    assert lengths(Y, 0 * E, one, y, 2)["all"] > lengths(Y, 0 * E, one, binary, 2)["all"]


def test_normal_scores_keep_the_shifts_of_tasks_and_the_order_of_rows_and_lose_long_tails():
    rng = np.random.default_rng(0)
    X = np.exp(2.0 * rng.normal(size=(360, 2)))
    found = normal_scores(X, TASKS)
    np.testing.assert_allclose(normal_scores(X + 100.0 * TASKS[:, None], TASKS), found + 100.0 * TASKS[:, None])
    np.testing.assert_allclose(normal_scores(-X, TASKS), -found, atol=1e-9)
    for task in range(3):
        np.testing.assert_array_equal(np.argsort(found[task == TASKS, 0]), np.argsort(X[task == TASKS, 0]))
    farthest, before = (np.abs(rows - rows.mean(axis=0)).max() / rows.std() for rows in (found, X))
    assert farthest < 0.5 * before


def test_a_description_is_not_shorter_for_clusters_that_it_leaves_empty():
    X, y = rows(EQUAL)
    three, four = (lengths(X, NO_ERRORS, TASKS, np.where(y == 2, 1, y), C) for C in (3, 4))
    for frame in three:  # the room for one cluster more: its mean, its covariance and its share
        assert four[frame] - three[frame] > 0.5 * 5 * np.log(360) / 360


def test_moves_are_the_shifts_of_tasks():
    X, y = rows(SKEWED, shift=2.0)
    moves = moves_of_tasks(X, TASKS, y, 3)
    true = 2.0 * np.array([[0, 0], [1, 1], [2, -1]])
    np.testing.assert_allclose(moves - moves.mean(axis=0), true - true.mean(axis=0), atol=0.4)
    np.testing.assert_allclose(moves_of_tasks(X + 1e6, TASKS, y, 3), moves, atol=1e-6)
    np.testing.assert_allclose(around_means(X, TASKS).reshape(3, 120, 2).mean(axis=1), 0.0, atol=1e-12)


def test_normal_scores_have_no_long_tails():
    values = np.exp(np.arange(100.0) / 9)[:, None]
    scores = normal_scores(values, np.zeros(100, dtype=int))
    farthest = [float(abs(found - found.mean()).max() / found.std()) for found in (values, scores)]
    assert np.round(farthest, 1).tolist() == [4.5, 2.6]


def test_rows_that_do_not_differ_and_single_rows_are_no_trouble():
    assert set(lengths(np.eye(3), np.zeros((3, 3)), np.arange(3), np.arange(3), 3)) == {"all", "aligned", "task"}
    found = lengths(np.zeros((5, 1)), np.zeros((1, 1)), np.array([0, 0, 1, 1, 1]), np.arange(5) % 2, 2)
    assert np.isfinite(list(found.values())).all()
    found = described(np.zeros((4, 1)), np.zeros((1, 1)), np.array([0, 0, 1, 1]), [np.arange(4) % 2], 2)
    assert found.shape == (4,)


@pytest.mark.parametrize("method", [DMTRC, DMTFC])
def test_a_table_cut_by_one_of_its_columns_is_clustered_in_one_frame(method):
    data = load_wine()
    X, y = StandardScaler().fit_transform(data.data), data.target
    strength = X[:, 12]  # proline, which tells the kinds apart
    tasks = np.searchsorted(np.quantile(strength, [1 / 3, 2 / 3]), strength)
    X = np.delete(X, 12, axis=1)
    model = method(3, random_state=0).fit(X, tasks=tasks)
    assert model.selection_.center == "all"
    assert adjusted_rand_score(y, model.labels_) > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        apart = method(3, center="task", random_state=0).fit(X, tasks=tasks)
    assert adjusted_rand_score(y, apart.labels_) < 0.5


def shifted_and_skewed(n=360, d=4, seed=0, shift=1.5):
    """Three clusters, of which every task lacks one or has it rarely; every task is moved."""
    rng = np.random.default_rng(seed)
    shares = [[0.7, 0.3, 0.0], [0.1, 0.6, 0.3], [0.3, 0.0, 0.7]]
    y = np.concatenate([rng.choice(3, n // 3, p=share) for share in shares])
    tasks = np.repeat(["z", "a", "b"], n // 3)
    moved = np.repeat(shift * rng.normal(size=(3, d)), n // 3, axis=0)
    return rng.normal(size=(n, d)) + 5.0 * np.eye(d)[y] + moved, y, tasks


@pytest.mark.parametrize(
    ("method", "kernel", "n"),
    [(DMTRC, "linear", 360), (DMTRC, "rbf", 2400), (DMTFC, "linear", 2400), (DMTFC, "rbf", 360)],
)
def test_tasks_that_are_shifted_and_hold_other_shares_are_aligned(method, kernel, n, tmp_path):
    X, y, tasks = shifted_and_skewed(n)
    # DMTFC finds the same clusters in own frames now and then, and keeps those
    model = method(3, kernel=kernel, center="auto" if method is DMTRC else "aligned").fit(X, tasks=tasks)
    assert model.selection_.center == "aligned"
    assert adjusted_rand_score(y, model.labels_) > 0.97
    # the model has the offsets in it: rows are predicted as they come, one by one
    np.testing.assert_array_equal(model.predict(X[::7], tasks=tasks[::7]), model.predict(X, tasks=tasks)[::7])
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.98
    assert model.score(X, tasks=tasks) == pytest.approx(model.loo_score_, abs=0.02)
    # a new task is moved to the others, whatever its shares
    rng = np.random.default_rng(1)
    new = rng.choice(3, 150, p=[0.2, 0.2, 0.6])
    rows_of_new = rng.normal(size=(150, 4)) + 5.0 * np.eye(4)[new] + [2.0, -1.0, 1.0, 0.0]
    found = model.fit_task(rows_of_new)
    assert adjusted_rand_score(np.r_[y, new], np.r_[model.labels_, found.labels_]) > 0.95
    np.testing.assert_array_equal(found.predict(rows_of_new), found.labels_)
    model.save(tmp_path / "model.mtclust")
    again = mtclust.load(tmp_path / "model.mtclust")
    np.testing.assert_array_equal(again.decision_function(X, tasks=tasks), model.decision_function(X, tasks=tasks))
    np.testing.assert_array_equal(again.fit_task(rows_of_new).labels_, found.labels_)


def test_aligned_tasks_are_stable_and_can_be_asked_for():
    X, y, tasks = shifted_and_skewed()
    model = DMTRC(3, center="aligned", kernel="linear").fit(X, tasks=tasks)
    assert model.selection_.center == "aligned"
    assert model.stability(X, tasks=tasks, n_refits=3).overall > 0.95
    # offsets as rows of a cluster show them, up to one that all tasks share
    first, second = (X[(tasks == task) & (y == 2)].mean(axis=0) for task in "ab")
    np.testing.assert_allclose(model.task_offsets_[0] - model.task_offsets_[1], first - second, atol=0.5)
    together = DMTRC(3, center="all", kernel="linear").fit(X, tasks=tasks)
    assert adjusted_rand_score(y, together.labels_) < adjusted_rand_score(y, model.labels_)
    assert together.task_offsets_ is None
    with pytest.raises(ValueError, match='center="aligned" needs sizes="auto"'):
        DMTRC(3, center="aligned", sizes="balanced").fit(X, tasks=tasks)
    with pytest.raises(ValueError, match=r'center="aligned" needs .*rows in place of a precomputed kernel'):
        DMTRC(3, center="aligned", kernel="precomputed").fit(X @ X.T, tasks=tasks)


@pytest.mark.parametrize("shift", [0.5, 5.0, 1e6])
def test_how_far_tasks_are_shifted_does_not_matter(shift):
    X, y, tasks = shifted_and_skewed(shift=shift)
    model = DMTRC(3, kernel="linear").fit(X, tasks=tasks)
    assert model.selection_.center == "aligned"
    assert adjusted_rand_score(y, model.labels_) > 0.97
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=360)  # the same shares everywhere
    X = rng.normal(size=(360, 4)) + 5.0 * np.eye(4)[y] + 1e3 * shift * rng.normal(size=(3, 4))[TASKS]
    model = DMTRC(3).fit(X, tasks=TASKS)
    assert adjusted_rand_score(y, model.labels_) > 0.97


def test_tasks_of_one_cluster_are_moved_to_the_nearest():
    """Two tasks are pure and could be moved to any cluster; a third has both, and all are shifted a little."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 0, 1], [80, 80, 40, 40])
    tasks = np.repeat(["first", "second", "third"], 80)
    moved = np.repeat([[0.6, -0.5, 0.4], [-0.6, 0.5, 0.6], [0.5, 0.6, -0.6]], 80, axis=0)
    X = rng.normal(size=(240, 3)) + 8.0 * np.eye(3)[y] + moved
    model = DMTRC(2).fit(X, tasks=tasks)
    assert adjusted_rand_score(y, model.labels_) > 0.97


def test_offsets_of_many_rows_come_from_all_of_them():
    X, y, tasks = shifted_and_skewed(9000)
    model = DMTRC(3, kernel="linear").fit(X, tasks=tasks)
    assert model.selection_.center == "aligned"
    first, second = (X[(tasks == task) & (y == 2)].mean(axis=0) for task in "ab")
    np.testing.assert_allclose(model.task_offsets_[0] - model.task_offsets_[1], first - second, atol=0.1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_new_task_of_one_cluster_that_is_in_place_stays_there(kernel):
    X, _, tasks = shifted_and_skewed()
    model = DMTRC(3, kernel=kernel, center="aligned").fit(X, tasks=tasks)
    for c in range(3):
        rows_of_new = model._kept.means[c] + np.random.default_rng(c).normal(size=(30, 4))
        assert np.bincount(model.fit_task(rows_of_new).labels_, minlength=3).argmax() == c


def test_more_tasks_than_settings_are_chosen_on_can_share_a_frame():
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(101), 8), rng.integers(3, size=808)
    X = rng.normal(size=(808, 4)) + 6.0 * np.eye(4)[y]
    model = DMTRC(3, kernel="linear", center="all").fit(X, tasks=tasks)
    assert adjusted_rand_score(y, model.labels_) > 0.97
    assert model.cluster_sizes_.shape == (101, 3)
    assert np.mean(model.predict(X, tasks=tasks) == model.labels_) > 0.97
    moved = X + 3.0 * rng.normal(size=(101, 4))[tasks]
    for center in ("aligned", "auto"):
        model = DMTRC(3, kernel="linear", center=center).fit(moved, tasks=tasks)
        assert adjusted_rand_score(y, model.labels_) > 0.95


@pytest.mark.parametrize("center", ["all", "aligned"])
def test_where_there_is_nothing_to_choose_there_is_no_frame_to_share(center):
    X, _, tasks = shifted_and_skewed(60)
    assert DMTRC(1, center=center).fit(X, tasks=tasks).predict(X[:2], tasks=tasks[:2]).tolist() == [0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rows do not vary, and that tasks are apart
        assert DMTRC(2, center=center).fit(np.ones((60, 2)), tasks=tasks).selection_.center == "task"


def test_aligned_labels_do_not_depend_on_order_names_or_offset():
    X, _, tasks = shifted_and_skewed()
    expected = DMTRC(3, kernel="linear").fit(X, tasks=tasks).labels_
    order = np.random.default_rng(3).permutation(len(X))
    names = {"z": "p", "a": "q", "b": "o"}
    shift = 100 + np.repeat([[1.0], [-2.0], [3.0]], 120, axis=0)
    model = DMTRC(3, kernel="linear").fit((X + shift)[order], tasks=[names[task] for task in tasks[order]])
    assert model.selection_.center == "aligned"
    assert adjusted_rand_score(expected[order], model.labels_) == 1.0
    assert model.score((X + shift)[order], tasks=[names[task] for task in tasks[order]]) == pytest.approx(
        model.score(X + shift, tasks=[names[task] for task in tasks])
    )


@pytest.mark.parametrize("n", [300, 1500])
def test_known_rows_in_one_frame_are_the_rows_that_were_given(n):
    """Tasks whose names come in another order than their sizes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    tasks = np.where((rng.random(n) < 0.5) | (y == 2), "a", "b")
    X = rng.normal(size=(n, 3)) + 5.0 * np.eye(3)[y]
    known = np.full(n, -1)
    some = rng.choice(n, 30, replace=False)
    known[some] = (y[some] + 1) % 3
    model = DMTRC(3, center="all", kernel="linear").fit(X, tasks=tasks, known=known)
    np.testing.assert_array_equal(model.labels_[some], known[some])
    assert np.mean(model.labels_ == (y + 1) % 3) > 0.98


def test_shifted_tasks_have_no_common_frame():
    X, y = rows(EQUAL, shift=4.0)
    model = DMTRC(3, random_state=0).fit(X, tasks=TASKS)
    assert model.selection_.center != "all"
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
    if method is DMTRC:
        assert model.selection_.coupling.decision == "full"
        assert model.stability(X, tasks=tasks, n_refits=3).overall > 0.6
        apart = DMTRC(3, coupling="none", random_state=0).fit(X, tasks=tasks)
        assert adjusted_rand_score(y, apart.labels_) < adjusted_rand_score(y, model.labels_) - 0.1


def test_tasks_with_clusters_in_other_places_keep_them():
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(3), 60), np.tile(np.repeat(np.arange(3), 20), 3)
    X = 8.0 * rng.normal(size=(3, 3, 4))[tasks, y] + rng.normal(size=(180, 4))  # every task has centres of its own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UncoupledWarning)
        model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    for task in range(3):
        assert adjusted_rand_score(y[tasks == task], model.labels_[tasks == task]) > 0.9


def test_tasks_of_two_unrelated_groups_are_not_mixed():
    """Two tasks hold three kinds of rows, two others three other kinds; three clusters of all would mix them."""
    rng = np.random.default_rng(0)
    tasks, y = np.repeat(np.arange(4), 60), np.tile(np.repeat(np.arange(3), 20), 4)
    centres = 6.0 * np.eye(6)
    X = centres[y + 3 * (tasks // 2)] + rng.normal(size=(240, 6))
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    for task in range(4):
        assert adjusted_rand_score(y[tasks == task], model.labels_[tasks == task]) > 0.95
