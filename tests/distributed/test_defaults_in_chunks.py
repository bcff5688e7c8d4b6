"""With everything left open, rows in chunks get the labels that they get in memory: frames, kernels, sizes, number.

Chunks are uneven, one is empty; the tables are those on which labels were seen to differ, or could.
"""

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.order import content_order, first_by_content
from mtclust.core.tasks import index_tasks

N = 31_000
CHUNKS = (900, 7, 0, 12_000, 3, 9_000, N - 21_910)
CENTRES = 4 * np.random.default_rng(1).normal(size=(3, 4))
ANSWERS = np.array([[0.9, 0.9, 0.1, 0.1, 0.5, 0.5], [0.1, 0.1, 0.9, 0.9, 0.5, 0.5], [0.1, 0.9, 0.1, 0.9, 0.9, 0.1]])


def rows_of(kind):
    """Rows, tasks and clusters."""
    rng = np.random.default_rng(0)
    n_tasks = 150 if kind == "many tiny tasks" else 4
    tasks = rng.integers(n_tasks, size=N)
    if kind == "many tiny tasks":  # and two that have most of the rows
        tasks[: N // 2], tasks[N // 2 : N - 3000] = 0, 1
    shares = rng.dirichlet([2.0, 2.0, 2.0], size=n_tasks)
    classes = (rng.random((N, 1)) > shares[tasks].cumsum(axis=1)).sum(axis=1)
    X = CENTRES[classes] + rng.normal(size=(N, 4))
    if kind in ("aligned", "many tiny tasks"):
        X += 6 * rng.normal(size=(n_tasks, 4))[tasks]
    if kind == "own frames":
        X = np.einsum("nd,nde->ne", X, rng.normal(size=(n_tasks, 4, 4))[tasks]) + 9 * rng.normal(size=(4, 4))[tasks]
    if kind == "binary columns":
        X = (rng.random((N, 6)) < ANSWERS[classes]).astype(float)
    if kind == "binary beside others":
        X = np.hstack([X, rng.random((N, 2)) < ANSWERS[classes, :2]])
    if kind == "rounded":
        X = np.round(X)
    if kind == "mostly zeros":
        X = np.where(rng.random((N, 1)) < 0.4, 0.0, X.clip(0))
    if kind == "float32, far from zero":
        X = (X + 1e4).astype(np.float32)
    return X, tasks, classes


def chunked(X, tasks):
    return da.from_array(X, chunks=(CHUNKS, 2)), da.from_array(tasks, chunks=7000)


def both(estimator, kind, **settings):
    X, tasks, _ = rows_of(kind)
    model = estimator(**{"n_clusters": 3, "random_state": 0, **settings})
    whole = model.fit(X, tasks=tasks)
    ids, single, sizes = whole.labels_, whole.single_task_labels_, whole.cluster_sizes_
    chosen, loo, predicted = whole.selection_, whole.loo_score_, whole.predict(X, tasks=tasks)
    rows, names = chunked(X, tasks)
    parts = model.fit(rows, tasks=names)
    np.testing.assert_array_equal(parts.labels_.compute(), ids)
    np.testing.assert_array_equal(parts.single_task_labels_.compute(), single)
    np.testing.assert_array_equal(parts.cluster_sizes_, sizes)
    np.testing.assert_array_equal(parts.predict(rows, tasks=names).compute(), predicted)
    assert parts.loo_score_ == pytest.approx(loo, abs=1e-9)
    assert (parts.selection_.center, parts.selection_.kernel) == (chosen.center, chosen.kernel)
    assert parts.selection_.candidates == chosen.candidates
    return ids, chosen


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "frame", "agreement"),
    [
        ("one frame", "all", 0.85),
        ("aligned", "aligned", 0.85),
        ("own frames", "task", 0.0),
        ("binary columns", None, 0.4),
        ("binary beside others", "all", 0.85),
        ("rounded", None, 0.8),
        ("mostly zeros", None, 0.0),
        ("float32, far from zero", "all", 0.85),
        ("many tiny tasks", None, 0.0),
    ],
)
def test_labels_of_every_default_are_those_of_memory(kind, frame, agreement):
    labels, chosen = both(DMTRC, kind)
    assert frame in (None, chosen.center)
    assert adjusted_rand_score(rows_of(kind)[2], labels) >= agreement


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        (DMTFC, {}),
        (DSTC, {}),
        (DMTRC, {"n_clusters": "auto"}),
        (DMTRC, {"n_clusters": {0: 2, 1: 3, 2: 3, 3: 3}}),
        (DMTRC, {"kernel": "linear", "coupling": "none"}),
        (DMTRC, {"center": "all"}),
        (DMTRC, {"center": "task"}),
    ],
    ids=str,
)
def test_what_is_left_open_beside_a_setting_is_chosen_as_in_memory(estimator, settings):
    both(estimator, "aligned", **settings)


def test_first_rows_have_every_row_in_its_share():
    """Of equal rows all come at one place by their hash; still a sample must not be made of a few of them."""
    X, tasks, _ = rows_of("binary columns")
    index = index_tasks(tasks, N).by_content(X)
    for task, places in enumerate(index.first_rows(np.arange(4), np.full(4, 200))):
        patterns, all_rows = np.unique(X[tasks == task], axis=0, return_counts=True)
        rows = X[index.order[index.offsets[task] + places]]
        found = (rows[:, None] == patterns).all(axis=2).sum(axis=0)
        assert len(np.unique(places)) == 200
        assert np.abs(found / 200 - all_rows / all_rows.sum()).max() <= 0.02


@pytest.mark.parametrize("kind", ["one frame", "binary columns", "rounded"])
def test_first_rows_are_the_beginning_of_the_whole_order_and_the_same_for_rows_in_any_order(kind):
    X = rows_of(kind)[0][:4000]
    content = content_order(X)
    whole = content.of_rows(np.zeros(len(X), dtype=np.int64))
    turned = np.random.default_rng(0).permutation(len(X))
    other = content_order(X[turned])
    for k in (1, 60, 700, 4000):
        first = first_by_content(content.hashes, content.finer, k)
        np.testing.assert_array_equal(first, whole[:k])
        np.testing.assert_array_equal(X[first], X[turned][first_by_content(other.hashes, other.finer, k)])


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield
