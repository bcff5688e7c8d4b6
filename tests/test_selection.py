"""Choices without labels: kernel, criterion, sizes, frame, coupling, number of clusters."""

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.coupling import Independent
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import ClusterNumberWarning, UncoupledWarning
from mtclust.features import centre_kernel
from mtclust.labels import label_codes
from mtclust.metrics import macro_nmi
from mtclust.selection import select_n_clusters
from mtclust.selection.n_clusters import warn_unless_supported
from mtclust.selection.null import gaussian_kernel, gaussian_rows
from tests.conftest import gaussian_tasks

mpl.use("Agg")


# -- kernel, criterion and λ ----------------------------------------------------------------------------------------


def test_the_candidate_with_the_highest_score_is_taken():
    X, _, tasks = gaussian_tasks(spread=1.5)
    model = DMTRC(3, center="task").fit(X, tasks=tasks)
    chosen = model.selection_
    best = max(chosen["candidates"], key=lambda row: row["score"])
    assert best == chosen["candidates"][0]
    assert (chosen["kernel"], chosen["criterion"], chosen["sizes"]["chosen"]) == (
        best["kernel"],
        best["criterion"],
        best["sizes"],
    )
    assert chosen["reason"].startswith(best["name"])
    assert model.loo_score_ == pytest.approx(best["separation"])


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_the_same_data_give_the_same_result_whatever_the_seed(method):
    X, _, tasks = gaussian_tasks(spread=1.5)
    first, second = (method(3, random_state=seed).fit(X, tasks=tasks) for seed in (0, 1))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.selection_["reason"] == second.selection_["reason"]
    assert first.loo_score_ == second.loo_score_


def test_lambdas_are_constants():
    X, _, tasks = gaussian_tasks(n_tasks=3)
    linear = DMTRC(3, kernel="linear", sizes="balanced", random_state=0).fit(X, tasks=tasks)
    narrow = DMTRC(3, kernel="rbf", width=0.5, sizes="balanced", random_state=0).fit(X, tasks=tasks)
    for model, expected in ((linear, 0.125 / 4), (narrow, 2.0**-9)):
        assert model.selection_["lambda1"] == model.selection_["lambda2"] == expected
        assert "candidates" not in model.selection_


def test_what_the_user_gives_is_not_chosen_again():
    X, _, tasks = gaussian_tasks()
    model = DMTRC(3, kernel="rbf", width=0.7, lambda1=0.01, random_state=0).fit(X, tasks=tasks)
    assert model.selection_["width"] == 0.7
    assert model.selection_["lambda1"] == model.selection_["lambda2"] == 0.01
    assert {row["kernel"] for row in model.selection_["candidates"]} == {"RBF 0.7"}


def test_many_rows_are_judged_on_a_part_of_them(monkeypatch):
    from mtclust.choose import judge

    monkeypatch.setattr(judge, "ROWS", 20)
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
    for counts in ([20, 20, 20], [40, 15, 5]):
        y = np.tile(np.repeat([0, 1, 2], counts), 2)
        X = centres[y] + rng.normal(size=(120, 2))
        tasks = np.repeat([0, 1], 60)
        model = method(3, random_state=0).fit(X, tasks=tasks)
        assert macro_nmi(y, model.labels_, tasks) > 0.95
        choice = model.selection_["sizes"]
        assert np.sort(model.cluster_sizes_, axis=1).tolist() == [sorted(counts)] * 2
        assert choice["reason"]
        assert set(choice["scores"]) <= {"balanced", "released", "free"}
        assert choice["chosen"] in choice["scores"]
        if counts[0] == 40:
            assert choice["chosen"] != "balanced"


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
    assert "one frame" in model.selection_["frame"]
    assert "one frame" in model.selection_["coupling"]["reason"]
    assert np.sum(model.cluster_sizes_ == 0) == 3
    assert macro_nmi(y, model.labels_, np.zeros_like(tasks)) == 1
    np.testing.assert_allclose(model.task_correlation_, 1)


def test_shifted_tasks_keep_their_own_frames():
    X, y, tasks = gaussian_tasks(shift=40.0)
    model = DMTRC(3).fit(X, tasks=tasks)
    assert model.selection_["center"] == "task"
    assert macro_nmi(y, model.labels_, tasks) == 1
    assert "frame" in model.selection_


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
    assert together.selection_["kernel"] == alone.selection_["kernel"]
    assert together.selection_["coupling"]["reason"] == "there is only one task"


def test_row_shares_add_up_to_the_objective():
    X, y, _ = gaussian_tasks(n_tasks=1)
    offsets = np.array([0, 30])
    kernel = centre_kernel(X @ X.T, offsets, True).matrix
    state = Independent(kernel, offsets, 0.1).condition(np.eye(1))
    codes = label_codes(y, 3)
    shares = 0.5 * np.einsum("nc,nc->n", codes, state.block(0) @ codes)
    assert shares.sum() == pytest.approx(state.objective(codes))


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


@pytest.mark.parametrize("method", [DMTRC, DSTC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_number_of_separated_clusters_is_found(method, kernel):
    X, _, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    choice = select_n_clusters(method(kernel=kernel), X, tasks=tasks, candidates=range(2, 6), random_state=0)
    assert choice.n_clusters == 3
    assert choice.supported
    assert choice.gap.shape == (4,)
    ax = choice.plot()
    assert ax.get_title() == "3 clusters"


def test_sparse_rows_and_a_task_column():
    X, _, tasks = gaussian_tasks(n_tasks=2)
    expected = select_n_clusters(DSTC(kernel="linear"), X, tasks=tasks, candidates=[2, 3, 4], random_state=0)
    from_sparse = select_n_clusters(
        DSTC(kernel="linear"), sp.csr_matrix(X), tasks=tasks, candidates=[2, 3, 4], random_state=0
    )
    by_column = select_n_clusters(
        DSTC(kernel="linear", task_column=-1), np.column_stack([X, tasks]), candidates=[2, 3, 4], random_state=0
    )
    np.testing.assert_allclose(from_sparse.gap, expected.gap, atol=1e-8)
    np.testing.assert_allclose(by_column.gap, expected.gap, atol=1e-8)


def test_noise_supports_no_number_of_clusters():
    X = np.random.default_rng(3).normal(size=(60, 4))
    choice = select_n_clusters(DSTC(kernel="linear"), X, candidates=range(2, 5), random_state=0)
    assert abs(choice.gap).max() < 0.1
    if not choice.supported:
        with pytest.warns(ClusterNumberWarning, match="is a weak choice"):
            warn_unless_supported(choice)


@pytest.mark.parametrize(("kwargs", "message"), [({"candidates": [1, 2]}, "candidates"), ({"n_null": 0}, "n_null=0")])
def test_arguments_of_select_n_clusters_are_checked(kwargs, message):
    with pytest.raises(ValueError, match=message):
        select_n_clusters(DSTC(), np.zeros((5, 1)), **kwargs)


@pytest.mark.parametrize("n_clusters", ["auto", range(2, 6)])
def test_estimators_choose_the_number_of_clusters(n_clusters):
    X, y, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    model = DMTRC(n_clusters, kernel="linear", random_state=0).fit(X, tasks=tasks)
    assert model.n_clusters_ == 3
    assert model.selection_["n_clusters"]["reason"].startswith("with 3 clusters")
    assert macro_nmi(y, model.labels_, tasks) == 1
    assert max(model.selection_["n_clusters"]["gaps"], key=model.selection_["n_clusters"]["gaps"].get) == 3
    np.testing.assert_array_equal(model.predict(X, tasks=tasks), model.labels_)


@pytest.mark.parametrize(("estimator", "sparse"), [(DMTRC, False), (DSTC, False), (DSTC, True)])
def test_number_of_clusters_of_large_data_is_chosen_on_a_sample(estimator, sparse):
    rng = np.random.default_rng(0)
    y, tasks = np.arange(2400) % 3, np.arange(2400) // 1200
    X = 8 * np.eye(4)[y] + rng.normal(size=(2400, 4))
    settings = {"lambda1": 2.0**-6, "lambda2": 2.0**-6, "sizes": "balanced", "n_init": 2, "random_state": 0}
    model = estimator(range(3, 5), kernel="linear", solver_options={"form": "primal"}, **settings)
    model.fit(sp.csr_matrix(X) if sparse else X, tasks=tasks)
    assert model.n_clusters_ == 3
    assert model.selection_["form"] == "primal"
