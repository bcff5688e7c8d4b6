"""The number of clusters, whether there are any, and what is said about it."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import special_ortho_group
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.choose import n_clusters
from mtclust.choose.n_clusters import ROWS
from mtclust.choose.number_choice import warn_of_choice
from mtclust.choose.structure import columns_depend, deciding_column, gaussian_kernel, gaussian_rows, variables_of
from mtclust.choose.sweep import _agreement, agreement_across_tasks, labels_of_numbers
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import ClusterNumberWarning
from mtclust.metrics import macro_nmi
from mtclust.selection import ClusterNumberChoice, select_n_clusters
from tests.conftest import gaussian_tasks

mpl.use("Agg")


def blobs(shares, n=60, distance=8.0, d=4, seed=0):
    """Gaussian clusters whose shares of a task may differ from task to task, or be 0."""
    rng = np.random.default_rng(seed)
    counts = np.round(np.array(shares) * n).astype(int)
    y = np.concatenate([np.repeat(np.arange(len(own)), own) for own in counts])
    tasks = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    return distance * np.eye(d)[y] / np.sqrt(2) + rng.normal(size=(len(y), d)), y, tasks


# -- the number -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("kernel", ["auto", "linear", "rbf"])
def test_number_of_separated_clusters_is_found(method, kernel):
    X, _, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    choice = select_n_clusters(method(kernel=kernel), X, tasks=tasks, candidates=range(2, 6))
    assert choice.n_clusters == 3
    assert choice.supported
    assert choice.gap.shape == choice.agreement.shape == (4,)
    assert choice.agreement[1] > 0.9
    ax = choice.plot()
    assert ax.get_title() == "3 clusters"


def test_a_task_may_lack_clusters():
    X, _, tasks = blobs([(0.5, 0.5, 0.0), (0.0, 0.4, 0.6), (0.3, 0.0, 0.7)])
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=range(2, 6))
    assert choice.n_clusters == 3


def test_the_same_data_give_the_same_choice_whatever_random_state_is():
    X, _, tasks = gaussian_tasks(n_tasks=2)
    first, second = (
        select_n_clusters(DSTC(random_state=seed), X, tasks=tasks, candidates=[2, 3, 4]) for seed in (0, 1)
    )
    np.testing.assert_array_equal(first.scores, second.scores)
    np.testing.assert_array_equal(first.null, second.null)


def test_sparse_rows_kernels_and_a_task_column():
    X, _, tasks = gaussian_tasks(n_tasks=2)
    candidates = [2, 3]  # more than there are have many optima that rounding chooses from
    expected = select_n_clusters(DSTC(kernel="precomputed"), X @ X.T, tasks=tasks, candidates=candidates)
    sparse = select_n_clusters(DSTC(kernel="linear"), sp.csr_matrix(X), tasks=tasks, candidates=candidates)
    called = select_n_clusters(DSTC(kernel=lambda A, B: A @ B.T), X, tasks=tasks, candidates=candidates)
    np.testing.assert_allclose(sparse.scores, expected.scores, atol=1e-6)
    np.testing.assert_allclose(called.scores, expected.scores, atol=1e-6)
    assert sparse.n_clusters == called.n_clusters == expected.n_clusters
    rows = select_n_clusters(DSTC(), X, tasks=tasks, candidates=candidates)
    column = select_n_clusters(DSTC(task_column=-1), np.column_stack([X, tasks]), candidates=candidates)
    np.testing.assert_allclose(column.gap, rows.gap)
    assert expected.n_clusters == rows.n_clusters == 3


def test_cost_does_not_grow_with_the_rows(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(50_000) % 4
    X = 8 * np.eye(4)[y] + rng.normal(size=(50_000, 4))
    looked_at = []

    def spy(estimator, rows, *others):
        looked_at.append(rows.shape[0])
        return of_rows(estimator, rows, *others)

    of_rows = n_clusters._of_rows
    monkeypatch.setattr(n_clusters, "_of_rows", spy)
    choice = select_n_clusters(DSTC(), X, candidates=range(2, 7))
    assert looked_at == [ROWS]
    assert choice.n_clusters == 4


@pytest.mark.parametrize("rows", [np.zeros((12, 2)), np.arange(5.0)[:, None], np.eye(3)])
def test_hardly_any_rows_still_get_a_number(rows):
    choice = select_n_clusters(DSTC(), rows, candidates=[2, 3])
    assert choice.n_clusters in (2, 3)
    assert choice.reason


@pytest.mark.parametrize("candidates", [[1, 2], []])
def test_candidates_are_checked(candidates):
    with pytest.raises(ValueError, match="candidates"):
        select_n_clusters(DSTC(), np.zeros((5, 1)), candidates=candidates)


@pytest.mark.parametrize("n_clusters", ["auto", range(2, 6)])
def test_estimators_choose_the_number_of_clusters(n_clusters):
    X, y, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    model = DMTRC(n_clusters, kernel="linear", random_state=0).fit(X, tasks=tasks)
    chosen = model.selection_["n_clusters"]
    assert model.n_clusters_ == chosen["chosen"] == 3
    assert chosen["reason"].startswith("a quick trial with 3 clusters")
    assert chosen["answer"].startswith("clusters")
    gaps = chosen["gaps"]
    assert min(gaps[2], gaps[3]) > 0.8
    assert max(gap for number, gap in gaps.items() if number > 3) < gaps[3] - 0.2
    assert macro_nmi(y, model.labels_, tasks) == 1


@pytest.mark.parametrize(("estimator", "sparse"), [(DMTRC, False), (DSTC, False), (DSTC, True)])
def test_number_of_clusters_of_large_data_is_chosen_on_a_sample(estimator, sparse):
    rng = np.random.default_rng(0)
    y, tasks = np.arange(2400) % 3, np.arange(2400) // 1200
    X = 8 * np.eye(4)[y] + rng.normal(size=(2400, 4))
    settings = {"lambda1": 2.0**-6, "lambda2": 2.0**-6, "sizes": "balanced", "n_init": 2, "random_state": 0}
    model = estimator(range(2, 5), kernel="linear", solver_options={"form": "primal"}, **settings)
    model.fit(sp.csr_matrix(X) if sparse else X, tasks=tasks)
    assert model.n_clusters_ == 3
    assert model.selection_["form"] == "primal"


# -- whether there is anything --------------------------------------------------------------------------------------


def nothing(kind, seed, n=100, d=4, m=2):
    rng = np.random.default_rng(seed)
    tasks = np.repeat(np.arange(m), n)
    if kind == "correlated":
        return rng.normal(size=(m * n, d)) @ rng.normal(size=(d, d)), tasks
    X = {"uniform": rng.uniform, "skewed": rng.lognormal, "mixed": rng.normal}[kind](size=(m * n, d))
    if kind == "mixed":
        X[:, ::2] = rng.integers(0, 3, size=X[:, ::2].shape)
    return X, tasks


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("correlated", "cloud"), ("uniform", "marginals"), ("skewed", "marginals"), ("mixed", "marginals")],
)
def test_tables_without_clusters_are_doubted(kind, answer):
    X, tasks = nothing(kind, 1)
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=range(2, 6))
    assert choice.structure == answer
    assert not choice.supported
    assert answer.removesuffix("s") in choice.answer
    with pytest.warns(ClusterNumberWarning, match=f"no structure beyond .*{answer}.* is a weak choice"):
        warn_of_choice(choice)


def test_independent_columns_rarely_pass_for_dependent_ones():
    tables = [np.random.default_rng(seed).exponential(size=(60, 4)) for seed in range(60)]
    passed = [columns_depend(X, np.array([0, 60]), 0.1) for X in tables]
    assert np.mean(passed) <= 0.2


def test_a_ring_is_seen_to_depend_though_nothing_is_correlated():
    angle = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    assert columns_depend(np.column_stack([np.cos(angle), np.sin(angle)]), np.array([0, 80]), 0.02)


def test_shifts_between_tasks_are_no_dependence_within_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) + np.repeat([[0.0] * 3, [9.0] * 3], 60, axis=0)
    assert not columns_depend(X, np.array([0, 60, 120]), 0.02)


def test_gaussian_rows_keep_mean_and_covariance_and_the_kernel_is_that_of_the_rows():
    rng = np.random.default_rng(0)
    X, offsets = rng.exponential(size=(4000, 2)) @ np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([0, 4000])
    noise = gaussian_rows(X, offsets, np.random.default_rng(1))
    np.testing.assert_allclose(np.cov(noise.T), np.cov(X.T), atol=0.15)
    np.testing.assert_allclose(noise.mean(axis=0), X.mean(axis=0), atol=0.1)
    few, offsets = X[:30], np.array([0, 10, 30])
    rows = gaussian_rows(few, offsets, np.random.default_rng(2))
    kernel = gaussian_kernel(few @ few.T, offsets, np.random.default_rng(2))
    np.testing.assert_allclose(kernel, rows @ rows.T, atol=1e-8)


def test_the_column_that_alone_decides_is_named():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.arange(120) % 2
    X[:, 1] += 8 * y
    assert deciding_column(X, np.array([0, 120]), y, 2) == 1
    choice = select_n_clusters(DSTC(), pd.DataFrame(X, columns=["a", "b", "c"]), candidates=[2, 3])
    assert choice.column == "b"
    assert "column 'b' alone decides" in choice.answer or "column b alone decides" in choice.answer


def test_no_column_decides_where_several_do():
    X, y, _ = blobs([(0.5, 0.5)], n=100)
    turned = X @ special_ortho_group.rvs(4, random_state=0)
    assert deciding_column(turned, np.array([0, 100]), y, 2) is None


# -- words and warnings ---------------------------------------------------------------------------------------------


def choice_of(chosen, candidates, **given):
    scores = np.where(np.array(candidates) == chosen, 0.9, 0.5)
    return ClusterNumberChoice(chosen, candidates, scores, np.zeros((len(candidates), 2)), **given)


@pytest.mark.parametrize(
    ("chosen", "candidates", "at_end"),
    [(2, [2, 3, 4], False), (4, [2, 3, 4], True), (3, [3, 4, 5], True), (4, [3, 4, 5], False), (3, [3], False)],
)
def test_a_number_at_the_end_of_its_range_is_told(chosen, candidates, at_end, recwarn):
    choice = choice_of(chosen, candidates)
    warn_of_choice(choice)
    assert choice.at_end == at_end
    assert [str(entry.message) for entry in recwarn if "end of the range" in str(entry.message)] or not at_end
    assert len(recwarn) == at_end


def test_reason_names_votes_that_differ_and_the_runner_up():
    choice = choice_of(3, [2, 3, 4], votes={"separation": 3, "distance": 2, "density": 4})
    assert "by distance 2" in choice.reason
    assert "the median" in choice.reason
    agreed = choice_of(3, [2, 3, 4], votes={"separation": 3, "distance": 3, "density": 3})
    assert "agree" in agreed.reason
    assert agreed.reason.endswith(f"next is {agreed.runner_up}")
    assert choice_of(3, [3]).runner_up is None


# -- the sweep ------------------------------------------------------------------------------------------------------


def test_labels_for_every_number_use_all_their_clusters():
    X, _, _ = blobs([(0.4, 0.3, 0.3)])
    kernel = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T / 10
    found = labels_of_numbers(kernel, [2, 3, 7])
    assert sorted(found) == [2, 3, 7]
    assert all(len(np.unique(labels)) == C for C, labels in found.items())


def test_agreement_is_one_for_the_same_clusters_and_about_zero_for_unrelated_ones():
    X, y, tasks = blobs([(0.5, 0.5), (0.5, 0.5)])
    offsets = np.array([0, 60, 120])
    centred = X - np.repeat([X[tasks == i].mean(axis=0) for i in (0, 1)], 60, axis=0)
    kernel = centred @ centred.T / 10
    assert agreement_across_tasks(kernel, offsets, y, 2) > 0.9
    other = np.where(tasks == 0, y, np.random.default_rng(0).permutation(120) % 2)
    assert abs(agreement_across_tasks(kernel, offsets, other, 2)) < 0.2


def mixed_columns(seed):
    """Two numbers, a category of two and one of three levels, all independent, and a copy of the first number."""
    rng = np.random.default_rng(seed)
    categories = [np.eye(k)[rng.integers(k, size=150)] for k in (2, 3)]
    X = np.hstack([rng.normal(size=(150, 2)), *categories])
    return np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), -3 * X[:, 0]])


def test_levels_of_one_category_and_copies_are_no_dependence():
    offsets = np.array([0, 70, 150])
    tables = [mixed_columns(seed) for seed in range(30)]
    assert all(variables_of(X, offsets).tolist() == [0, 1, 2, 2, 3, 3, 3, 0] for X in tables)
    assert np.mean([columns_depend(X, offsets, 0.02) for X in tables]) <= 0.1


def test_a_single_variable_may_have_clusters():
    x = np.repeat([0.0, 5.0], 40)[:, None] + np.random.default_rng(0).normal(size=(80, 1))
    for X in (x, np.hstack([x, 2 * x])):
        choice = select_n_clusters(DSTC(), X, candidates=[2, 3, 4])
        assert (choice.n_clusters, choice.structure) == (2, "clusters")


def test_a_column_may_be_constant_in_one_task():
    X, _, tasks = blobs([(0.5, 0.5), (0.5, 0.5)])
    X = np.column_stack([X, np.where(tasks == 0, 0.0, 6.0 * (np.arange(len(X)) % 2))])
    assert select_n_clusters(DSTC(), X, tasks=tasks, candidates=[2, 3, 4]).n_clusters in (2, 3, 4)


def test_agreement_is_the_adjusted_rand_index():
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = rng.integers(4, size=(2, 30))
        assert _agreement(first, second, 4) == pytest.approx(adjusted_rand_score(first, second), abs=1e-12)
    assert _agreement(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), 2) == 1.0
