"""Pairs of rows that share a cluster or do not: every pair kept, in every form; contradictions refused."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.hints import read_links
from mtclust.datasets import make_related_tasks
from mtclust.search.hints import linked_clusters
from tests.test_contract import CLASSES, FORMS

X, Y, TASKS = make_related_tasks(3, n_samples=40, separation=2.5, random_state=1).X_y_tasks
QUICK = {"random_state": 0, "n_init": 3}


def some_pairs(y, n, seed=0):
    """Pairs of rows as classes have them, over all tasks; one in five of each kind is turned round."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))[: 4 * n].reshape(-1, 2)  # no row is in two pairs, so that all can be kept
    same = y[rows[:, 0]] == y[rows[:, 1]]
    same[::5] = ~same[::5]
    return rows[same], rows[~same]


def all_kept(labels, together, apart):
    return np.all(labels[together[:, 0]] == labels[together[:, 1]]) and np.all(
        labels[apart[:, 0]] != labels[apart[:, 1]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("sizes", ["auto", "balanced"])
@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "dask"], ids=lambda form: form.name)
def test_pairs_are_kept_in_every_form(form, method, sizes):
    together, apart = some_pairs(CLASSES, 10)
    options = {"sizes": sizes} | ({"lambda1": "auto", "lambda2": "auto"} if sizes == "auto" else {})
    model = form.model(method, **options).fit(form.rows, tasks=form.tasks, must_link=together, cannot_link=apart)
    assert all_kept(model.labels_, together, apart)
    linked = np.concatenate([together.ravel(), apart.ravel()])
    others = np.setdiff1d(np.arange(len(CLASSES)), linked)
    assert adjusted_rand_score(CLASSES[others], model.labels_[others]) > 0.85
    if sizes == "balanced":
        assert np.ptp(model.cluster_sizes_, axis=1).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"center": "all"}, {"n_clusters": {0: 3, 1: 2, 2: 3}}, {"coupling": "none"}, {"kernel": "rbf"},
    {"n_clusters": "auto"},
], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_pairs_are_kept_whatever_is_asked_for(options):
    together, apart = some_pairs(Y, 8)
    model = DMTRC(**({"n_clusters": 3} | QUICK | options)).fit(
        X, tasks=TASKS, must_link=together, cannot_link=apart.tolist()
    )
    assert all_kept(model.labels_, together, apart)


def test_pairs_and_known_rows_together():
    known = np.full(len(Y), -1)
    known[[0, 1, 2]] = [2, 2, 0]
    far = int(np.flatnonzero(TASKS == 2)[0])
    model = DMTRC(3, **QUICK).fit(X, tasks=TASKS, known=known, must_link=[(0, far)], cannot_link=[(far, 5), (5, 2)])
    assert model.labels_[[0, 1, 2, far]].tolist() == [2, 2, 0, 2]
    assert model.labels_[5] == 1


@pytest.mark.slow
def test_ten_pairs_say_which_of_two_ways_to_cluster_is_meant():
    """Rows separate along either column."""
    rng = np.random.default_rng(0)
    first, second = rng.integers(2, size=(2, 160))
    table = np.c_[4.2 * first, 4.0 * second] + rng.normal(scale=0.5, size=(160, 2))
    rows = rng.permutation(160)[:20].reshape(-1, 2)
    others = np.setdiff1d(np.arange(160), rows)
    for wanted in (first, second):
        same = wanted[rows[:, 0]] == wanted[rows[:, 1]]
        model = DSTC(2).fit(table, must_link=rows[same], cannot_link=rows[~same])
        assert all_kept(model.labels_, rows[same], rows[~same])
        assert adjusted_rand_score(wanted[others], model.labels_[others]) > 0.95


@pytest.mark.slow
def test_pairs_that_hold_anyway_change_nothing():
    plain = DMTRC(3, **QUICK).fit(X, tasks=TASKS)
    rows = np.flatnonzero(plain.labels_ == 1)
    linked = DMTRC(3, **QUICK).fit(X, tasks=TASKS, must_link=rows[:6].reshape(-1, 2))
    np.testing.assert_array_equal(plain.labels_, linked.labels_)
    empty = DMTRC(3, **QUICK).fit(X, tasks=TASKS, must_link=[], cannot_link=np.empty((0, 2)))
    np.testing.assert_array_equal(plain.labels_, empty.labels_)


@pytest.mark.parametrize("seed", range(20))
def test_clusters_of_linked_rows_are_the_best_of_all(seed):
    """Against a walk through all labellings."""
    rng = np.random.default_rng(seed)
    n, C = 6, 3
    scores = rng.normal(size=(n, C))
    pairs = rng.permutation(n).reshape(-1, 2)
    together, apart = pairs[:1], np.array([[pairs[0, 0], pairs[1, 0]], [pairs[1, 1], pairs[2, 0]]])
    links = read_links(together, apart, n)
    known = np.full(n, -1)
    known[pairs[2, 1]] = 1  # not linked: only carried along
    known[pairs[0, 1]] = rng.integers(C)
    most = np.array([[2, 2, 2]])

    def allowed(labels):
        counts = np.bincount([labels[row] for row in np.unique(np.r_[together.ravel(), apart.ravel()])], minlength=C)
        return links.kept(labels) == 1 and labels[pairs[0, 1]] == known[pairs[0, 1]] and np.all(counts <= most[0])

    linked = np.unique(np.r_[together.ravel(), apart.ravel()])
    every = (np.array(labels) for labels in product(range(C), repeat=n))
    best = max((scores[linked, labels[linked]].sum() for labels in every if allowed(labels)), default=None)
    found = linked_clusters(links, scores, known, np.zeros(n, dtype=np.int64), most)
    assert found[pairs[2, 1]] == 1
    assert scores[linked, found[linked]].sum() == pytest.approx(best, rel=1e-3)
    assert allowed(np.where(found < 0, 0, found))


@pytest.mark.parametrize("sizes", [[[8, 16]], [[16, 8]]])
def test_links_that_move_most_linked_rows_leave_sizes_to_their_clusters(sizes):
    """Two rows join one that is far away in the other cluster; a table of sizes says which cluster is which."""
    x = np.concatenate([np.random.default_rng(0).normal(center, 0.3, n) for center, n in ((0, 8), (5, 16))])
    x[[0, 1, 8]] = 2.2, 2.2, 9.0
    model = DSTC(2, kernel="linear", sizes=sizes, **QUICK).fit(x[:, None], must_link=[(0, 8), (1, 8)])
    assert len(set(model.labels_[[0, 1, 8]])) == 1
    assert model.cluster_sizes_.tolist() == sizes


def test_a_cluster_that_a_task_lacks_is_taken_only_where_a_pair_asks_for_it():
    scores = np.array([[0.2, 0.1, -np.inf], [0.0, 0.3, 0.5], [0.0, 0.0, 0.9]])
    known = np.array([-1, -1, 2])
    assert linked_clusters(read_links([(0, 1)], None, 3), scores, known).tolist() == [1, 1, 2]
    assert linked_clusters(read_links([(0, 2)], None, 3), scores, known).tolist() == [2, -1, 2]
    assert linked_clusters(read_links(None, [(1, 2)], 3), scores, None).tolist() == [-1, 1, 2]


@pytest.mark.parametrize("argument", ["must_link", "cannot_link"])
@pytest.mark.parametrize(
    "pairs", [[0, 1], [(0, 1, 2)], [(0.5, 1.0)], [("a", "b")], [(0, 1), (2,)], [(0, 4)], [(-1, 2)], [(0, 1), (3, 3)]]
)
def test_pairs_that_are_none(argument, pairs):
    with pytest.raises(
        ValueError, match=rf"^{argument} must hold pairs of different rows, shape \(k, 2\), .* from 0 to 3"
    ):
        DSTC(2).fit([[0.0], [1.0], [5.0], [6.0]], **{argument: pairs})


def test_pairs_that_contradict_each_other():
    rows = [[0.0], [1.0], [5.0], [6.0]]
    with pytest.raises(ValueError, match="cannot_link has the rows 0 and 2, which must_link puts in one cluster"):
        DSTC(2).fit(rows, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ValueError, match=r"cannot all be kept with 2 clusters \(3 groups .*, 3 pairs apart\); leave"):
        DSTC(2).fit(rows, cannot_link=[(0, 1), (1, 2), (0, 2)])
    with pytest.raises(ValueError, match="cannot all be kept with 2 clusters and the known rows"):
        DSTC(2).fit(rows, known=[0, 1, -1, -1], must_link=[(0, 1)])
    with pytest.raises(ValueError, match="cannot all be kept with 2 clusters and the sizes given"):
        DSTC(2, sizes="balanced").fit(rows, must_link=[(0, 1), (1, 2)])
    with pytest.raises(ValueError, match='must_link and cannot_link needs solver="exchange"'):
        DSTC(2, solver="cutting-plane").fit(rows, must_link=[(0, 1)])
