"""Choices without labels: kernel, criterion, sizes, frame, coupling, number of clusters."""

import matplotlib as mpl
import numpy as np
import pytest

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import UncoupledWarning
from mtclust.metrics import macro_nmi
from tests.conftest import gaussian_tasks

mpl.use("Agg")


# -- kernel, criterion and λ ----------------------------------------------------------------------------------------


def test_the_candidate_with_the_highest_score_is_taken():
    X, _, tasks = gaussian_tasks(spread=1.5)
    chosen = DMTRC(3, center="task", coupling="full").fit(X, tasks=tasks).selection_
    best = max(chosen["candidates"], key=lambda row: row["score"])
    assert best == chosen["candidates"][0]
    assert chosen["criterion"] == "E"
    assert chosen["sizes"] == "free"
    assert chosen["reason"].startswith(f"{best['name']} has the highest score of ")


def test_lambdas_are_constants():
    X, _, tasks = gaussian_tasks(n_tasks=3)
    linear = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=tasks)
    narrow = DMTRC(3, kernel="rbf", width=0.5, sizes="balanced", random_state=0).fit(X, tasks=tasks)
    for model, expected in ((linear, 0.125 / 4), (narrow, 2.0**-8 / 4)):
        assert model.selection_["lambda1"] == model.selection_["lambda2"] == expected
        assert "candidates" not in model.selection_


def test_what_the_user_gives_is_not_chosen_again():
    X, _, tasks = gaussian_tasks()
    model = DMTRC(3, kernel="rbf", width=0.7, lambda1=0.01, center="task", random_state=0).fit(X, tasks=tasks)
    assert model.selection_["width"] == 0.7
    assert model.selection_["lambda1"] == model.selection_["lambda2"] == 0.01
    assert model.selection_["kernel"] == "RBF 0.7"


def test_many_rows_are_judged_on_a_part_of_them(monkeypatch):
    from mtclust.choose import judge

    monkeypatch.setattr(judge, "_ROWS", 20)
    X, y, tasks = gaussian_tasks(rows=60)
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    assert macro_nmi(y, model.labels_, tasks) == 1


def test_settings_of_many_rows_are_chosen_on_few():
    X, y, tasks = gaussian_tasks(rows=600)
    mixed = np.random.default_rng(0).permutation(len(X))
    X, y, tasks = X[mixed], y[mixed], tasks[mixed]
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    assert model.selection_["form"] == "primal"
    assert model.selection_["chosen_on"].startswith("600 rows of ")
    assert macro_nmi(y, model.labels_, tasks) == 1


# -- null models ----------------------------------------------------------------------------------------------------


# -- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_equal_sizes_are_kept_and_skewed_ones_found(method):
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [6, 0], [0, 6]])
    for counts in ([20, 20, 20], [40, 15, 5]):
        y = np.tile(np.repeat([0, 1, 2], counts), 2)
        X = centres[y] + rng.normal(size=(120, 2))
        tasks = np.repeat([0, 1], 60)
        model = method(3, random_state=0).fit(X, tasks=tasks)
        assert macro_nmi(y, model.labels_, tasks) > 0.95
        assert np.sort(model.cluster_sizes_, axis=1).tolist() == [sorted(counts)] * 2
        assert model.selection_.sizes == "free"


def test_without_centring_sizes_stay_bounded():
    X, _, tasks = gaussian_tasks()
    model = DMTRC(3, kernel="linear", fit_intercept=False, random_state=0).fit(X, tasks=tasks)
    assert model.selection_["sizes"] == "auto"
    assert model.cluster_sizes_.max() <= 30 * 1.2 / 3 + 1


# -- frames ---------------------------------------------------------------------------------------------------------


def lacking(shift=0.0, seed=0):
    """Three clusters; each of three tasks has two of them."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 1, 2, 2, 0], 30)
    tasks = np.repeat([0, 1, 2], 60)
    X = 9.0 * np.array([[0, 0], [1, 0], [0, 1]])[y] + rng.normal(size=(180, 2))
    return X + shift * np.array([[0, 0], [1, 2], [3, -1]])[tasks], y, tasks


def test_clusters_that_tasks_lack_are_found_in_one_frame():
    X, y, tasks = lacking()
    model = DMTRC(3).fit(X, tasks=tasks)
    assert model.selection_["center"] == "all"
    assert "one model" in model.selection_["coupling"]["reason"]
    assert np.sum(model.cluster_sizes_ == 0) == 3
    assert macro_nmi(y, model.labels_, np.zeros_like(tasks)) == 1
    np.testing.assert_allclose(model.task_correlation_, 1)


def test_shifted_tasks_do_not_share_a_frame_as_they_are():
    X, y, tasks = gaussian_tasks(shift=40.0)
    model = DMTRC(3).fit(X, tasks=tasks)
    assert model.selection_["center"] in ("task", "aligned")
    assert macro_nmi(y, model.labels_, tasks) == 1


# -- coupling -------------------------------------------------------------------------------------------------------


def rotated_tasks(seed=0):
    """The same clusters in every task, but each task's features rotated at random: nothing is shared."""
    rng = np.random.default_rng(seed)
    X, y, tasks = gaussian_tasks(n_tasks=4, d=12, spread=0.8, shift=0.0, seed=seed)
    for task in range(4):
        Q, _ = np.linalg.qr(rng.normal(size=(12, 12)))
        X[tasks == task] = X[tasks == task] @ Q
    return X, y, tasks


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
def test_unrelated_tasks_end_uncoupled_or_nearly_so(seed):
    X, _, tasks = rotated_tasks(seed)
    model = DMTRC(3, kernel="linear", random_state=0).fit(X, tasks=tasks)
    off_diagonal = model.task_correlation_[~np.eye(4, dtype=bool)]
    assert np.mean(np.abs(off_diagonal)) < 0.35


def test_identical_tasks_end_strongly_correlated():
    X, _, _ = gaussian_tasks(n_tasks=1, spread=0.8)
    model = DMTRC(3, kernel="linear", random_state=0).fit(np.tile(X, (3, 1)), tasks=np.repeat([0, 1, 2], 30))
    assert model.task_correlation_.min() > 0.95
    assert model.selection_["coupling"]["decision"] == "full"


def test_refusal_is_told_and_both_results_are_kept():
    made = make_related_tasks(5, task_covariance="unrelated", n_features=12, separation=2.0, random_state=0)
    with pytest.warns(UncoupledWarning, match='clustered apart: .* Use coupling="full"'):
        model = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(made.data, tasks=made.tasks)
    choice = model.selection_["coupling"]
    assert choice["statistic"] > 0.05
    np.testing.assert_array_equal(model.labels_, model.single_task_labels_)
    assert choice["coupled_labels"].shape == model.labels_.shape
    assert choice["task_covariance"].shape == (5, 5)


# -- number of clusters ---------------------------------------------------------------------------------------------
