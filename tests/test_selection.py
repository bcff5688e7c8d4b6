"""Choices without labels: width, λ, sizes, number of clusters, coupling."""

import matplotlib as mpl
import numpy as np
import pytest

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.coupling import Independent
from mtclust.datasets import load_digits_tasks
from mtclust.exceptions import SearchWarning, UncoupledWarning
from mtclust.features import centre_kernel
from mtclust.labels import label_codes, parse_sizes
from mtclust.metrics import macro_nmi
from mtclust.selection import coupling_statistic, select_kernel
from mtclust.selection.kernel import FALLBACK_LAMBDA, LAMBDAS, NEARLY
from mtclust.selection.null import gaussian_kernel, gaussian_rows
from tests.conftest import gaussian_tasks

mpl.use("Agg")


# -- width and λ ----------------------------------------------------------------------------------------------------


def test_chosen_setting_has_the_largest_gap_and_nearly_the_smallest_lambda():
    X, _, tasks = load_digits_tasks().X_y_tasks
    model = DMTRC(5, sizes="balanced", random_state=0).fit(X, tasks=tasks)
    chosen = model.selection_
    best = max(chosen["candidates"], key=lambda row: row["gap"])
    assert chosen["width"] == best["width"]
    same_width = [row for row in chosen["candidates"] if row["width"] == best["width"]]
    near = [row["lambda"] for row in same_width if row["gap"] >= NEARLY * best["gap"]]
    assert chosen["lambda1"] == chosen["lambda2"] == min(near)
    assert len(chosen["candidates"]) == 5 * len(LAMBDAS)
    assert "largest gap" in chosen["reason"]


def test_without_structure_lambda_falls_back():
    rng = np.random.default_rng(0)
    offsets = np.array([0, 60])
    X = rng.normal(size=(60, 300))  # many weak features, as in text: noise of the same covariance clusters as well
    kernel = centre_kernel(X @ X.T, offsets, True)
    choice = select_kernel({None: kernel}, parse_sizes("balanced", [60], 3), LAMBDAS, 2.0, rng)
    assert max(row["gap"] for row in choice.candidates) <= 0 or choice.lambda_ in LAMBDAS
    if max(row["gap"] for row in choice.candidates) <= 0:
        assert choice.lambda_ == FALLBACK_LAMBDA


def test_what_the_user_gives_is_not_chosen_again():
    X, _, tasks = gaussian_tasks()
    model = DMTRC(3, width=0.7, lambda1=0.01, random_state=0).fit(X, tasks=tasks)
    assert model.selection_["width"] == 0.7
    assert model.selection_["lambda1"] == model.selection_["lambda2"] == 0.01
    assert "candidates" not in model.selection_


def test_large_tasks_are_judged_on_a_part_of_their_rows(monkeypatch):
    from mtclust.selection import kernel as selection_kernel

    monkeypatch.setattr(selection_kernel, "ROWS", 20)
    X, y, tasks = gaussian_tasks(rows=60)
    model = DMTRC(3, random_state=0).fit(X, tasks=tasks)
    assert macro_nmi(y, model.labels_, tasks) == 1


# -- null models ----------------------------------------------------------------------------------------------------


def test_gaussian_rows_have_the_mean_and_covariance_of_the_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2)) @ np.array([[2.0, 0.5], [0.0, 1.0]]) + 3.0
    noise = gaussian_rows(X, rng)
    np.testing.assert_allclose(noise.mean(axis=0), X.mean(axis=0), atol=0.15)
    np.testing.assert_allclose(np.cov(noise.T), np.cov(X.T), atol=0.4)


def test_gaussian_kernel_is_centred_positive_and_of_the_same_size():
    X = np.random.default_rng(0).normal(size=(80, 5))
    kernel = centre_kernel(X @ X.T, np.array([0, 80]), True).matrix
    null = gaussian_kernel(kernel, np.random.default_rng(1))
    np.testing.assert_allclose(null.sum(axis=0), 0, atol=1e-9)
    assert np.linalg.eigvalsh(null).min() > -1e-9
    assert np.trace(null) == pytest.approx(np.trace(kernel), rel=0.3)


# -- sizes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_equal_sizes_are_kept_and_skewed_ones_found(method):
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [6, 0], [0, 6]])
    for counts, expected in (([20, 20, 20], "balanced"), ([30, 20, 10], None)):
        y = np.tile(np.repeat([0, 1, 2], counts), 2)
        X = centres[y] + rng.normal(size=(120, 2))
        tasks = np.repeat([0, 1], 60)
        model = method(3, random_state=0).fit(X, tasks=tasks)
        assert macro_nmi(y, model.labels_, tasks) > 0.95
        choice = model.selection_["sizes"]
        assert choice["reason"].startswith(f"{choice['chosen']} sizes predict cluster membership")
        assert set(choice["scores"]) == {"balanced", "released", "free", "estimated"}
        assert choice["chosen"] == expected or (expected is None and choice["chosen"] != "balanced")


def test_without_centring_sizes_stay_bounded():
    X, _, tasks = gaussian_tasks()
    model = DMTRC(3, kernel="linear", fit_intercept=False, random_state=0).fit(X, tasks=tasks)
    assert model.selection_["sizes"] == "auto"
    assert model.cluster_sizes_.max() <= 30 * 1.2 / 3 + 1


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


def test_auto_with_one_task_equals_dstc():
    X, _, _ = gaussian_tasks(n_tasks=1, spread=1.5)
    together, alone = DMTRC(3, random_state=1).fit(X), DSTC(3, random_state=1).fit(X)
    np.testing.assert_array_equal(together.labels_, alone.labels_)
    assert together.selection_["width"] == alone.selection_["width"]
    assert together.selection_["coupling"]["reason"] == "there is only one task"


def test_statistic_is_zero_for_equal_clusters_and_positive_for_worse_ones():
    X, y, _ = gaussian_tasks(n_tasks=2)
    offsets = np.array([0, 30, 60])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    ridge = np.full(2, 0.1)
    codes = label_codes(y, 3)
    renamed = label_codes((y + 1) % 3, 3)
    same = coupling_statistic(kernel, offsets, ridge, renamed, codes, np.eye(2))
    assert same.statistic == 0
    assert same.accepted
    assert same.reason == "coupled or not, the clusters are the same"
    wrong = label_codes(np.random.default_rng(0).permutation(y), 3)
    worse = coupling_statistic(kernel, offsets, ridge, wrong, codes, np.ones((2, 2)))
    assert worse.statistic > 3
    assert not worse.accepted
    assert "contradict" in worse.reason
    better = coupling_statistic(kernel, offsets, ridge, codes, wrong, np.ones((2, 2)))
    assert better.statistic == pytest.approx(-worse.statistic)
    assert better.accepted
    unrelated = coupling_statistic(kernel, offsets, ridge, codes, wrong, np.eye(2))
    assert not unrelated.accepted
    assert "look unrelated" in unrelated.reason


def test_row_shares_add_up_to_the_objective():
    X, y, _ = gaussian_tasks(n_tasks=1)
    offsets = np.array([0, 30])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    state = Independent(kernel, offsets, 0.1).condition(np.eye(1))
    codes = label_codes(y, 3)
    shares = 0.5 * np.einsum("nc,nc->n", codes, state.block(0) @ codes)
    assert shares.sum() == pytest.approx(state.objective(codes))


def test_refusal_is_told_and_both_results_are_kept():
    X, _, tasks = rotated_tasks(1)
    noisy = X + 1.5 * np.random.default_rng(0).normal(size=X.shape)
    with pytest.warns(UncoupledWarning, match='clustered apart: .* Use coupling="full"'):
        model = DMTRC(3, kernel="linear", random_state=0).fit(noisy, tasks=tasks)
    choice = model.selection_["coupling"]
    assert choice["coupled_labels"].shape == model.labels_.shape
    assert choice["task_covariance"].shape == (4, 4)


def test_a_short_search_of_single_tasks_is_told(monkeypatch):
    monkeypatch.setattr("mtclust.selection.coupling.SEARCHED_TOO_LITTLE", np.inf)
    X, _, tasks = gaussian_tasks(spread=1.2)
    with pytest.warns(SearchWarning, match="single_task_labels_ were searched too little"):
        DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=tasks)
