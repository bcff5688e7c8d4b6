"""The number of clusters, whether it is certain, whether there are any, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import ndtri
from scipy.stats import rankdata
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import silhouette_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.choose import number
from mtclust.choose.number import NUMBER_ROWS, in_words, warn_of_choice, without_clusters
from mtclust.datasets import make_related_tasks
from mtclust.exceptions import ClusterNumberWarning
from mtclust.metrics import macro_nmi
from mtclust.selection import select_n_clusters
from tests.conftest import gaussian_tasks


def blobs(shares, n=60, distance=8.0, d=4, seed=0):
    """Gaussian clusters whose shares of a task may differ from task to task, or be 0."""
    rng = np.random.default_rng(seed)
    counts = np.round(np.array(shares) * n).astype(int)
    y = np.concatenate([np.repeat(np.arange(len(own)), own) for own in counts])
    tasks = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    return distance * np.eye(d)[y] / np.sqrt(2) + rng.normal(size=(len(y), d)), y, tasks


# -- the number -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_number_of_separated_clusters_is_found(method):
    X, _, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    choice = select_n_clusters(method(), X, tasks=tasks, candidates=range(2, 6))
    assert choice.n_clusters == 3
    assert choice.structure == "clusters"
    assert choice.decided
    assert list(choice.gaps) == [2, 3, 4, 5]


def test_a_task_may_lack_clusters():
    X, _, tasks = blobs([(0.5, 0.5, 0.0), (0.0, 0.4, 0.6), (0.3, 0.0, 0.7)])
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=range(2, 6))
    assert choice.n_clusters == 3


@pytest.mark.parametrize("shift", [0.0, 3.0, 100.0])
def test_shifts_between_tasks_are_no_clusters(shift):
    X, _, tasks = blobs([(0.4, 0.3, 0.3)] * 5)
    X = X + shift * np.random.default_rng(1).normal(size=(5, 4))[tasks]
    assert select_n_clusters(DMTRC(), X, tasks=tasks).n_clusters == 3


def test_the_order_of_rows_columns_and_tasks_and_their_names_have_no_effect():
    X, _, tasks = blobs([(0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.4, 0.2, 0.4)], distance=3.0)
    expected = select_n_clusters(DMTRC(), X, tasks=tasks)
    rng = np.random.default_rng(3)
    for _ in range(3):
        rows, columns = rng.permutation(len(X)), rng.permutation(4)
        names = rng.permutation(["north", "east", "south"])
        found = select_n_clusters(DMTRC(), X[rows][:, columns], tasks=names[tasks[rows]])
        assert found.votes == expected.votes
        np.testing.assert_allclose(list(found.gaps.values()), list(expected.gaps.values()), atol=1e-9)


def test_noise_of_1e_10_has_no_effect_on_columns_of_few_values():
    X, tasks = nothing("mixed", 0)
    X[:, 0] += 4 * X[:, 2]
    expected = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=range(2, 6))
    noise = 1e-10 * np.random.default_rng(1).normal(size=X.shape)
    found = select_n_clusters(DMTRC(), X + noise, tasks=tasks, candidates=range(2, 6))
    assert found.votes == expected.votes
    np.testing.assert_allclose(list(found.gaps.values()), list(expected.gaps.values()), atol=0.02)


def test_sparse_rows_kernels_and_a_task_column():
    X, _, tasks = gaussian_tasks(n_tasks=2)
    candidates = [2, 3, 4]
    expected = select_n_clusters(DSTC(kernel="precomputed"), X @ X.T, tasks=tasks, candidates=candidates)
    sparse = select_n_clusters(DSTC(), sp.csr_matrix(X), tasks=tasks, candidates=candidates)
    called = select_n_clusters(DSTC(kernel=lambda A, B: A @ B.T), X, tasks=tasks, candidates=candidates)
    rows = select_n_clusters(DSTC(), X, tasks=tasks, candidates=candidates)
    column = select_n_clusters(DSTC(task_column=-1), np.column_stack([X, tasks]), candidates=candidates)
    assert column.gaps == pytest.approx(rows.gaps)
    assert sparse.gaps == rows.gaps
    assert {choice.n_clusters for choice in (expected, sparse, called, rows, column)} == {3}


@pytest.mark.parametrize("n_tasks", [1, 300])
def test_cost_does_not_grow_with_the_rows(monkeypatch, n_tasks):
    rng = np.random.default_rng(0)
    y = np.arange(20_000) % 4
    X = 8 * np.eye(4)[y] + rng.normal(size=(20_000, 4))
    looked_at = []

    def spy(rows, *others):
        looked_at.append(len(rows))
        return chosen(rows, *others)

    chosen = number._chosen
    monkeypatch.setattr(number, "_chosen", spy)
    choice = select_n_clusters(DSTC(), X, tasks=np.arange(20_000) // 4 % n_tasks, candidates=range(2, 7))
    assert NUMBER_ROWS - 15 < looked_at[0] <= NUMBER_ROWS
    assert choice.n_clusters == 4


@pytest.mark.parametrize(
    "rows", [np.zeros((12, 2)), np.arange(5.0)[:, None], np.eye(3), np.repeat(np.eye(2), 6, axis=0)]
)
def test_hardly_any_rows_still_get_a_number(rows):
    choice = select_n_clusters(DSTC(), rows, candidates=[2, 3])
    assert choice.n_clusters in (2, 3)
    assert choice.reason


@pytest.mark.parametrize("candidates", [[1, 2], [], [6, 7], [2.7], [2.0], ["3"], "23", [True, 2], [10**30]])
def test_candidates_are_checked(candidates):
    with pytest.raises(ValueError, match="candidates"):
        select_n_clusters(DSTC(), np.zeros((5, 1)), candidates=candidates)


ROWS = np.random.default_rng(0).normal(size=(120, 3))


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (np.where(ROWS > 2, np.nan, ROWS), {}, "Input X contains NaN; missing values"),
        (np.where(ROWS > 2, np.inf, ROWS), {}, "Input X contains infinity"),
        (np.ma.array(ROWS, mask=ROWS > 2), {}, "X is a masked array with masked values"),
        (ROWS[0], {}, "Expected 2D array"),
        (None, {}, "X is None"),
        (ROWS + 1j, {}, "Complex data not supported"),
        ([ROWS, ROWS], {}, "X is a list of 2 tables"),
        (ROWS, {"kernel": "precomputed"}, r"X, of shape \(120, 3\), is not square"),
    ],
)
def test_rows_are_checked_as_in_fit(rows, options, message):
    estimator = DSTC(**options)
    with pytest.raises(ValueError, match=message):
        select_n_clusters(estimator, rows)
    assert vars(estimator) == vars(DSTC(**options))


def test_more_clusters_than_can_be_compared_are_not_said_to_explain_anything():
    assert select_n_clusters(DSTC(), ROWS, candidates=[110]).reason == "110 clusters cannot be judged"


@pytest.mark.parametrize("n_clusters", ["auto", range(2, 6)])
def test_estimators_choose_the_number_of_clusters(n_clusters):
    X, y, tasks = make_related_tasks(2, n_clusters=3, separation=8.0, n_samples=60, random_state=0).X_y_tasks
    model = DMTRC(n_clusters, kernel="linear", random_state=0).fit(X, tasks=tasks)
    chosen = model.selection_["n_clusters"]
    assert model.n_clusters_ == chosen["chosen"] == 3
    assert chosen["reason"].startswith("3 clusters explain the most beyond chance")
    assert chosen["structure"] == "clusters"
    assert chosen["votes"][3] >= 4
    assert chosen["gaps"][3] > chosen["gaps"][2] + 0.2
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


def test_a_column_may_be_constant_in_one_task():
    X, _, tasks = blobs([(0.5, 0.5), (0.5, 0.5)])
    X = np.column_stack([X, np.where(tasks == 0, 0.0, 6.0 * (np.arange(len(X)) % 2))])
    assert select_n_clusters(DSTC(), X, tasks=tasks, candidates=[2, 3, 4]).n_clusters in (2, 3, 4)


# -- whether there is anything --------------------------------------------------------------------------------------


def nothing(kind, seed, n=100, d=4, m=2):
    rng = np.random.default_rng(seed)
    tasks = np.repeat(np.arange(m), n)
    if kind == "correlated":
        return rng.normal(size=(m * n, d)) @ rng.normal(size=(d, d)), tasks
    if kind == "skewed and correlated":
        X = rng.normal(size=(m * n, d)) @ rng.normal(size=(d, d))
        return np.exp(0.6 * X / X.std(axis=0)), tasks
    X = {"uniform": rng.uniform, "skewed": rng.lognormal, "mixed": rng.normal}[kind](size=(m * n, d))
    if kind == "mixed":
        X = np.hstack([X[:, :2], *(np.eye(3)[rng.integers(0, 3, size=m * n)] for _ in range(2))])
    return X, tasks


@pytest.mark.parametrize("kind", ["correlated", "uniform", "skewed", "skewed and correlated", "mixed"])
def test_tables_without_clusters_are_doubted(kind):
    X, tasks = nothing(kind, 1)
    choice = select_n_clusters(DMTRC(), X, tasks=tasks, candidates=range(2, 6))
    assert choice.structure == "none"
    with pytest.warns(ClusterNumberWarning, match="clearly more than chance does; . clusters are a weak choice"):
        warn_of_choice(choice)


def test_a_column_with_two_humps_is_no_structure_beside_noise_and_one_by_itself():
    x = np.repeat([0.0, 5.0], 60)[:, None] + np.random.default_rng(0).normal(size=(120, 1))
    noise = np.random.default_rng(1).normal(size=(120, 2))
    assert select_n_clusters(DSTC(), np.hstack([x, noise]), candidates=[2, 3, 4]).structure == "none"
    for X in (x, np.hstack([x, 2 * x])):
        choice = select_n_clusters(DSTC(), X, candidates=[2, 3, 4])
        assert (choice.n_clusters, choice.structure) == (2, "clusters")


def test_rows_without_clusters_keep_the_values_of_columns_in_tasks_and_their_rank_correlations():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(300, 3)) @ rng.normal(size=(3, 3)) + np.repeat([[0.0] * 3, [9.0] * 3], 150, axis=0)
    offsets = np.array([0, 150, 300])
    null = without_clusters(X, offsets, 0)
    for part in (slice(0, 150), slice(150, 300)):
        np.testing.assert_array_equal(np.sort(null[part], axis=0), np.sort(X[part], axis=0))
        kept, given = (np.corrcoef(ndtri((rankdata(rows[part], axis=0) - 0.5) / 150).T) for rows in (null, X))
        np.testing.assert_allclose(kept, given, atol=0.05)
    assert not np.array_equal(without_clusters(X, offsets, 1), null)


def test_rows_without_clusters_have_none():
    """Where two columns tell the same two clusters apart, many rows are of neither."""
    rows = np.repeat([[0.0, 0.0], [6.0, 6.0]], 100, axis=0) + np.random.default_rng(0).normal(size=(200, 2))
    null = without_clusters(rows, np.array([0, 200]), 0)
    neither = [int(np.sum((X[:, 0] > 3) != (X[:, 1] > 3))) for X in (rows, null)]
    assert neither[0] < 5
    assert neither[1] > 40


def test_columns_that_depend_linearly_move_as_one():
    rng = np.random.default_rng(0)
    levels = np.eye(3)[rng.integers(0, 3, size=120)] * [1.0, 2.0, 5.0]
    X = np.hstack([rng.normal(size=(120, 2)), levels])
    order = rng.permutation(5)
    null = np.empty_like(X)
    null[:, order] = without_clusters(X[:, order], np.array([0, 120]), 0)
    np.testing.assert_array_equal(np.count_nonzero(null[:, 2:], axis=1), 1)


# -- words and warnings ---------------------------------------------------------------------------------------------


def choice_of(chosen, candidates, **given):
    gaps = {number: 0.9 if number == chosen else 0.5 for number in candidates}
    return in_words(chosen, gaps, given.pop("votes", {}), "clusters", **given)


@pytest.mark.parametrize(
    ("chosen", "candidates", "at_end"),
    [(2, [2, 3, 4], False), (4, [2, 3, 4], True), (3, [3, 4, 5], True), (4, [3, 4, 5], False), (3, [3], False)],
)
def test_a_number_at_the_end_of_its_range_is_told(chosen, candidates, at_end, recwarn):
    choice = choice_of(chosen, candidates)
    warn_of_choice(choice)
    assert [str(entry.message) for entry in recwarn if "end of the range" in str(entry.message)] or not at_end
    assert len(recwarn) == at_end


def test_it_is_said_when_the_data_do_not_decide():
    choice = choice_of(3, [2, 3, 4, 5, 6], votes={3: 3, 2: 2, 6: 1})
    assert not choice.decided
    assert choice.shown == [2, 3, 6]
    assert choice.reason.startswith("2, 3 or 6: the data do not decide")
    assert choice.reason.endswith("shown: 3")
    with pytest.warns(ClusterNumberWarning, match="2, 3 or 6 clusters: the data do not decide. 3 are shown"):
        warn_of_choice(choice)


def test_nothing_is_doubted_where_most_samples_agree(recwarn):
    choice = choice_of(3, [2, 3, 4], votes={3: 5, 2: 1, 4: 1})
    warn_of_choice(choice)
    assert choice.decided
    assert choice.shown == [3]
    assert choice.reason.endswith("5 of 7 samples choose 3")
    assert not len(recwarn)


def test_a_silhouette_that_is_largest_for_another_number_is_doubt():
    choice = choice_of(3, [2, 3, 4, 5], votes={3: 7}, silhouette=5)
    assert not choice.decided
    assert choice.shown == [3, 5] == choice["shown"]
    assert choice.reason.startswith(
        "3 or 5: the data do not decide (7 of 7 samples choose 3, the silhouette is largest"
    )
    assert choice_of(3, [2, 3, 4, 5], votes={3: 7}, silhouette=3).shown == [3]


def test_the_silhouette_is_that_of_scikit_learn():
    X, _ = make_blobs(90, centers=[[0, 0], [6, 0], [0, 6]], random_state=0)
    labels = {C: KMeans(C, n_init=10, random_state=0).fit_predict(X) for C in range(2, 6)}
    best = max(labels, key=lambda C: silhouette_score(X, labels[C]))
    assert select_n_clusters(DSTC(), X, candidates=range(2, 6)).shown == [best] == [3]


def test_samples_disagree_where_two_clusters_begin_to_part():
    """Two clusters far apart, one of which becomes two."""
    y = np.arange(120) % 3
    centres = np.zeros((3, 4))
    centres[1:, :2] = 8.0
    votes = {}
    for apart in (0.0, 3.75, 8.0):
        centres[2, 2:] = apart / np.sqrt(2), -apart / np.sqrt(2)
        X = centres[y] + np.random.default_rng(0).normal(size=(120, 4))
        votes[apart] = select_n_clusters(DSTC(), X, candidates=range(2, 7)).votes
    assert votes[0.0] == {2: 7}
    assert set(votes[3.75]) == {2, 3}
    assert votes[8.0] == {3: 7}
