"""Rows whose cluster is known: kept, names given by them, used to choose; contradictions refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.criterion import LeaveOneOutTerm, PaperObjective
from mtclust.core.hints import Hints, placed, read_known
from mtclust.core.labels import SizeBounds, counts_by_task, free_bounds, left_over
from mtclust.datasets import make_related_tasks
from mtclust.search.hints import ids_after_known, with_room
from tests.test_contract import FORMS, GIVEN

X, Y, TASKS = make_related_tasks(3, n_samples=40, separation=2.5, random_state=1).X_y_tasks
QUICK = {"kernel": "linear", "lambda1": 0.05, "lambda2": 0.02, "random_state": 0, "n_init": 3}


def some_known(y=Y, share=0.1, seed=0, n=None):
    rng = np.random.default_rng(seed)
    known = np.full(len(y), -1)
    rows = rng.choice(len(y), n or round(share * len(y)), replace=False)
    known[rows] = y[rows]
    return known


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["auto", "balanced"])
@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "dask"], ids=lambda form: form.name)
def test_known_rows_keep_their_clusters_in_every_form(form, method, sizes):
    from tests.test_contract import CLASSES

    wrong = some_known(CLASSES)
    rows = np.flatnonzero(wrong >= 0)
    wrong[rows[::6]] = (wrong[rows[::6]] + 1) % 3  # what the data speak against is kept as well
    options = {"sizes": sizes} | ({"lambda1": "auto", "lambda2": "auto"} if sizes == "auto" else {})
    model = form.model(method, **options).fit(form.rows, tasks=form.tasks, known=wrong)
    np.testing.assert_array_equal(model.labels_[rows], wrong[rows])
    others = wrong < 0
    assert np.mean(model.labels_[others] == CLASSES[others]) > 0.93
    if sizes == "balanced":
        assert np.ptp(model.cluster_sizes_, axis=1).max() <= 1
    assert np.all(model.cluster_sizes_.sum(axis=1) == np.bincount(form.tasks))
    np.testing.assert_allclose(model.probabilities_.sum(axis=1), 1)
    assert np.mean(model.predict(form.rows, tasks=form.tasks) == model.labels_) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"center": "all"}, {"n_clusters": {0: 3, 1: 2, 2: 3}}, {"coupling": "none"}, {"coupling": 0.5}, {"kernel": "rbf"},
    {"n_clusters": "auto", "kernel": "auto"}, {"n_clusters": range(2, 5)},
], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_known_rows_are_kept_whatever_is_asked_for(options):
    y = Y.copy()
    if isinstance(options.get("n_clusters"), dict):
        y[TASKS == 1] = np.minimum(y[TASKS == 1], 1) + 1  # the second task has the clusters 1 and 2
    known = some_known(y, n=20)
    arguments = {"n_clusters": 3} | QUICK | {"lambda1": "auto", "lambda2": "auto"} | options
    model = DMTRC(**arguments).fit(X, tasks=TASKS, known=known)
    np.testing.assert_array_equal(model.labels_[known >= 0], known[known >= 0])
    if isinstance(options.get("n_clusters"), dict):
        assert set(model.labels_[TASKS == 1].tolist()) == {1, 2}


def test_known_rows_name_the_clusters():
    rows, y, tasks = make_related_tasks(3, n_samples=40, separation=7.0, random_state=1).X_y_tasks
    known = np.full(len(y), -1)
    known[[int(np.flatnonzero(y == c)[0]) for c in range(3)]] = [2, 0, 1]
    model = DMTRC(3, **QUICK).fit(rows, tasks=tasks, known=known)
    expected = np.array([2, 0, 1])[y]
    assert adjusted_rand_score(expected, model.labels_) > 0.9
    assert np.mean(model.labels_ == expected) > 0.95
    assert DMTRC(3, **QUICK).fit_predict(rows, tasks=tasks, known=known).tolist() == model.labels_.tolist()


def test_a_table_of_sizes_names_the_clusters_and_known_rows_obey():
    y = np.repeat(np.arange(3), (30, 20, 10))
    rows = 8.0 * np.eye(3)[y] + np.random.default_rng(0).normal(size=(60, 3))
    counts, known = np.bincount(y), some_known(y, n=12)
    model = DSTC(3, **QUICK | {"sizes": [counts.tolist()]}).fit(rows, known=known)
    assert model.cluster_sizes_.tolist() == [counts.tolist()]
    np.testing.assert_array_equal(model.labels_[known >= 0], known[known >= 0])
    assert np.mean(model.labels_ == y) > 0.9


@pytest.mark.slow
def test_without_known_rows_nothing_changes():
    plain = DMTRC(3, **QUICK).fit(X, tasks=TASKS)
    for none in (None, np.full(len(Y), -1), [None] * len(Y), np.full(len(Y), np.nan)):
        model = DMTRC(3, **QUICK).fit(X, tasks=TASKS, known=none)
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.objective_ == plain.objective_


@pytest.mark.parametrize("make", [
    lambda known: pd.Series(known).where(known >= 0), lambda known: pd.array(known).astype("Int64"),
    lambda known: known.astype(float), lambda known: [None if k < 0 else int(k) for k in known],
], ids=["missing", "nullable", "float", "list"])  # fmt: skip
def test_unknown_may_be_said_in_any_way(make):
    known = some_known()
    expected = DSTC(3, **QUICK).fit(X, tasks=TASKS, known=known).labels_
    np.testing.assert_array_equal(DSTC(3, **QUICK).fit(X, tasks=TASKS, known=make(known)).labels_, expected)


@pytest.mark.slow
def test_known_rows_settle_between_two_ways_to_cluster():
    """Four blobs in a rectangle halve along either side; the longer one wins unless rows are known."""
    rng = np.random.default_rng(0)
    corner = np.arange(200) % 4
    rows = np.c_[corner // 2 * 6.0, corner % 2 * 5.0] + rng.normal(size=(200, 2))
    short = corner % 2
    plain = DSTC(2, random_state=0).fit(rows)
    assert normalized_mutual_info_score(short, plain.labels_) < 0.1
    known = some_known(short, n=20)
    model = DSTC(2, random_state=0).fit(rows, known=known)
    others = known < 0
    assert np.mean(model.labels_[others] == short[others]) > 0.95


def test_refining_leaves_rows_that_are_not_free_alone_and_lowers_the_criterion():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 4))
    M = np.linalg.inv(features @ features.T + 5.0 * np.eye(30))
    free = np.arange(0, 30, 2)
    lower, upper, seed = np.zeros(3, dtype=np.int64), np.full(3, 30), np.array([1], dtype=np.uint64)
    at = type("At", (), {"coupling": type("C", (), {"couples_labels": False})(), "block": lambda self, task: M})()
    J = PaperObjective().term(at, 0, np.zeros((30, 3)))
    for term in (J, LeaveOneOutTerm.of(M, 3)):
        labels = rng.integers(3, size=30)
        before, fixed = term.value(labels), np.setdiff1d(np.arange(30), free)
        held = labels[fixed].copy()
        moves, value = term.refine(labels, lower, upper, seed, free), term.value(labels)
        np.testing.assert_array_equal(labels[fixed], held)
        assert moves > 0
        assert value < before
        for row in free:  # no single move of a free row is left that would gain
            for c in range(3):
                other = labels.copy()
                other[row] = c
                assert term.value(other) >= value - 1e-9


def test_known_rows_are_placed_with_as_few_moves_as_sizes_allow():
    labels, known = np.array([0, 0, 1, 1, 2, 2]), np.array([1, -1, -1, -1, -1, -1])
    two = np.full(3, 2)
    found = placed(labels, known, two, two)
    assert found[0] == 1
    assert np.bincount(found).tolist() == [2, 2, 2]
    assert np.count_nonzero(found[1:] != labels[1:]) == 1
    assert placed(labels, known, np.zeros(3, dtype=int), np.full(3, 6)).tolist() == [1, 0, 1, 1, 2, 2]


def test_names_follow_all_tasks_and_depart_from_them_where_more_rows_of_a_task_say_so():
    labels, offsets = np.array([0, 0, 1, 1, 0, 0, 1, 1]), np.array([0, 4, 8])
    bounds = free_bounds(np.array([4, 4]), np.ones((2, 2), dtype=bool))
    bounds = SizeBounds(bounds.lower, bounds.upper)
    as_often = np.array([1, 1, 0, 0, 0, 1, -1, -1])
    assert ids_after_known(labels, as_often, offsets, bounds).tolist() == [[1, 0], [1, 0]]
    twice = np.array([1, 1, 0, 0, 0, 0, 1, 1])
    assert ids_after_known(labels, twice, offsets, bounds).tolist() == [[1, 0], [0, 1]]
    assert Hints(twice).agreement(labels, 2) == 4 / 2  # four of eight rows, of two clusters


def test_sizes_that_were_left_open_make_room_for_known_rows():
    bounds = SizeBounds(np.array([[2, 2]]), np.array([[3, 3]]))
    roomy = with_room(bounds, np.array([[5, 0]]), np.array([6]))
    assert roomy.upper.tolist() == [[5, 3]]
    assert roomy.lower.tolist() == [[0, 0]]
    known = np.where(TASKS == 0, 0, -1)  # one task is all of one cluster
    model = DMTRC(3, **QUICK).fit(X, tasks=TASKS, known=known)
    assert np.all(model.labels_[TASKS == 0] == 0)


REFUSED = {
    "length": ({"known": [0, 1]}, ValueError, ["known has the shape (2,)", "120 rows", "one cluster id per row"]),
    "booleans": ({"known": [True] * 120}, ValueError, ["known has True at row 0", "whole cluster ids"]),
    "words": ({"known": ["a"] * 120}, ValueError, ["known has 'a' at row 0", "whole cluster ids"]),
    "fraction": ({"known": [0.5] + [-1] * 119}, ValueError, ["known has 0.5 at row 0", "whole cluster ids"]),
    "below": ({"known": [-1] * 119 + [-2]}, ValueError, ["known has -2 at row 119"]),
    "infinite": ({"known": [np.inf] + [-1] * 119}, ValueError, ["known has inf at row 0", "whole cluster ids"]),
    "huge": ({"known": [-1] * 119 + [1e300]}, ValueError, ["known has 1e+300 at row 119", "whole cluster ids"]),
    "beyond int64": ({"known": [2.0**64] + [-1] * 119}, ValueError, ["known has 1.8446744073709552e+19 at row 0"]),
    "uint64": ({"known": np.full(120, 2**63, dtype=np.uint64)}, ValueError, ["known has 9223372036854775808 at row 0"]),
    "too high": ({"known": [-1] * 119 + [3]}, ValueError, ["known has 3 at row 119", "0 to 2"]),
    "too many of one": (
        {"known": np.where(TASKS == 1, 0, -1), "sizes": "balanced"}, ValueError,
        ["known has [40, 0, 0] rows of the clusters in task 1", "change sizes"],
    ),
    "none left for others": (
        {"known": np.where(TASKS == 1, np.arange(120) % 2, -1), "sizes": (0.2, 0.6)}, ValueError,
        ["known has [20, 20, 0] rows", "in task 1", "[8, 8, 8]"],
    ),
    "clusters of a task": (
        {"known": np.where(TASKS == 1, np.arange(120) % 3, -1), "n_clusters": {0: 3, 1: 2, 2: 3}}, ValueError,
        ["rows of the clusters in task 1", "n_clusters ask for"],
    ),
    "range": (
        {"known": [5] + [-1] * 119, "n_clusters": range(2, 5)}, ValueError, ["nor smaller than the 6 clusters"],
    ),
    "cutting planes": (
        {"known": [0] + [-1] * 119, "solver": "cutting-plane"}, ValueError, ['known needs solver="exchange"'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_contradictions_are_refused_in_words(case):
    options, error, words = REFUSED[case]
    options = dict(options)
    known = options.pop("known")
    with pytest.raises(error) as caught:
        DMTRC(**{"n_clusters": 3} | QUICK | options).fit(X, tasks=TASKS, known=known)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.slow
def test_dask_collections_have_no_known_rows():
    da = pytest.importorskip("dask.array")
    with pytest.raises(TypeError, match="known needs rows in memory"):
        DSTC(3, **GIVEN).fit(da.from_array(X), known=some_known())


def test_rows_move_where_sizes_are_only_too_small_or_only_too_large():
    none = np.full(4, -1)
    too_small = placed(np.zeros(4, dtype=int), none, np.array([0, 1, 0]), np.full(3, 4))
    assert np.bincount(too_small, minlength=3).tolist() == [3, 1, 0]
    too_large = placed(np.array([0, 0, 0, 1]), none, np.zeros(3, dtype=int), np.array([2, 4, 4]))
    assert np.bincount(too_large, minlength=3)[0] == 2
    assert np.count_nonzero(too_large != [0, 0, 0, 1]) == 1


def test_what_known_rows_leave_of_the_sizes():
    low, high = left_over(np.array([0, 0, 2, -1, -1]), np.array([1, 1, 2]), np.array([1, 2, 3]))
    assert low.tolist() == [0, 1, 1]
    assert high.tolist() == [0, 2, 2]


def test_unknown_is_minus_one_and_nothing_else():
    assert read_known([0, None, float("nan"), -1, 3], 5).tolist() == [0, -1, -1, -1, 3]
    assert read_known(pd.array([1, pd.NA], dtype="Int64"), 2).tolist() == [1, -1]
    assert read_known([-1, -1], 2) is None
    assert read_known(None, 2) is None
    counts = counts_by_task(np.array([0, -1, 0, 2, 1]), np.array([0, 3, 5]), 3)
    assert counts.tolist() == [[2, 0, 0], [0, 1, 1]]


def test_sizes_with_room_for_known_rows_stay_and_crowded_ones_give_way():
    bounds = SizeBounds(np.array([[2, 2], [2, 2]]), np.array([[4, 4], [4, 4]]))
    roomy = with_room(bounds, np.array([[4, 0], [5, 0]]), np.array([6, 6]))
    assert roomy.lower.tolist() == [[2, 2], [0, 0]]
    assert roomy.upper.tolist() == [[4, 4], [5, 4]]


def test_a_task_that_lacks_clusters_has_one_for_every_known_id():
    """The task has two of three clusters, called 0 and 1; rows of the second are known to be of cluster 2."""
    labels, known = np.array([0, 0, 1, 1]), np.array([0, -1, 2, -1])
    bounds = SizeBounds(np.array([[1, 1, 0]]), np.array([[4, 4, 0]]), True)
    names = ids_after_known(labels, known, np.array([0, 4]), bounds)
    assert names[0, :2].tolist() == [0, 2]


def test_a_single_known_row_names_two_clusters():
    labels, bounds = np.array([0, 0, 1, 1]), SizeBounds(np.array([[1, 1]]), np.array([[4, 4]]))
    assert ids_after_known(labels, np.array([1, -1, -1, -1]), np.array([0, 4]), bounds).tolist() == [[1, 0]]
    assert ids_after_known(labels, np.full(4, -1), np.array([0, 4]), bounds).tolist() == [[0, 1]]


def test_a_task_of_two_rows_names_its_clusters_after_them():
    """The first task has three clusters under their own names, the second two of one row each."""
    labels, offsets = np.array([0, 0, 1, 1, 2, 2, 0, 1]), np.array([0, 6, 8])
    known = np.array([0, 0, 1, 1, 2, 2, -1, 2])
    bounds = SizeBounds(np.array([[1, 1, 1], [1, 1, 0]]), np.array([[6, 6, 6], [1, 1, 0]]), True)
    names = ids_after_known(labels, known, offsets, bounds)
    assert names[0].tolist() == [0, 1, 2]
    assert names[1, 1] == 2


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_sizes_that_nobody_gave_do_not_contradict_known_rows(method):
    """Without centring sizes are searched near equal ones; that is no reason to refuse what is known."""
    rows = np.array([9.7, 10.7, 3.8, 3.3, 10.1, 10.0, 2.6, 2.6, 8.3, 8.1])[:, None]
    known = [-1, -1, 0, 0, -1, -1, 0, -1, -1, -1]
    tasks = [0, 0, 1, 1, 0, 0, 1, 1, 0, 0]
    model = method(2, fit_intercept=False, random_state=0).fit(rows, tasks=tasks, known=known)
    assert model.labels_[[2, 3, 6]].tolist() == [0, 0, 0]


@pytest.mark.parametrize("hint", ["known", "must_link"])
def test_random_state_has_no_effect_where_sizes_are_open_and_the_order_of_rows_has_none(hint):
    differing = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rows, given = rng.normal(size=(40, 2)), rng.integers(0, 3, 40)
        order = rng.permutation(40)
        pairs = np.array([[0, 20], [1, 30], [2, 25]])
        known = np.where(rng.random(40) < 0.3, given, -1)
        hints = {"known": known} if hint == "known" else {"must_link": pairs}
        other = {"known": known[order]} if hint == "known" else {"must_link": np.argsort(order)[pairs]}
        first = DSTC(3, kernel="linear", random_state=0).fit(rows, **hints).labels_
        second = DSTC(3, kernel="linear", random_state=1).fit(rows, **hints).labels_
        permuted = DSTC(3, kernel="linear").fit(rows[order], **other).labels_
        differing += not (np.array_equal(first, second) and np.array_equal(first[order], permuted))
    assert differing == 0
