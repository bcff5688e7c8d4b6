"""Tasks that differ: a number of clusters of their own (``n_clusters`` as a mapping) and a λ₁ of their own."""

import numpy as np
import pytest

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.core.kernels import centre_kernel
from mtclust.core.labels import SizeBounds, counts_by_task, parse_sizes
from mtclust.core.matching import match_labels
from mtclust.exceptions import SmallTaskWarning
from mtclust.metrics import match_clusters, nmi, per_task
from tests.conftest import gaussian_tasks

ALL = [DMTRC, DMTFC, DSTC]
QUICK = {"random_state": 0, "width": 1.0, "lambda1": 2.0**-8, "lambda2": 2.0**-8}
#: the classes of every task, out of five
CLASSES = {"a": [0, 1, 3, 4], "b": [0, 1, 2, 3, 4], "c": [1, 2, 4]}
NUMBERS = {task: len(classes) for task, classes in CLASSES.items()}


def subset_tasks(classes=CLASSES, rows=12, d=8, spread=0.3, seed=0, shift=0.5, centres=None):
    """Every task has some of the same separated classes; tasks shifted against each other, rows in random order."""
    rng = np.random.default_rng(seed)
    n_classes = max(map(max, classes.values())) + 1
    centres = 3 * np.eye(n_classes, d) + 0.5 * rng.normal(size=(n_classes, d)) if centres is None else centres
    X, y, tasks = [], [], []
    for task, own in classes.items():
        labels = rng.permutation(np.repeat(own, rows))
        X.append(centres[labels] + spread * rng.normal(size=(len(labels), d)) + shift * rng.normal(size=d))
        y.append(labels)
        tasks.append(np.full(len(labels), task))
    order = rng.permutation(sum(map(len, y)))
    return np.concatenate(X)[order], np.concatenate(y)[order], np.concatenate(tasks)[order]


X, Y, TASKS = subset_tasks()


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("seed", range(2))
def test_smaller_tasks_are_matched_to_the_right_clusters_of_the_larger(method, kernel, seed):
    data, truth, tasks = subset_tasks(seed=seed)
    model = method(NUMBERS, kernel=kernel, random_state=0).fit(data, tasks=tasks)
    assert set(per_task(nmi, truth, model.labels_, tasks).values()) == {1.0}
    matching, accuracy = match_clusters(truth, model.labels_)
    assert accuracy == 1  # one matching serves all tasks
    assert model.n_clusters_ == 5
    for row, task in enumerate(model.tasks_):
        present = np.flatnonzero(model.cluster_sizes_[row])
        assert sorted(matching[c] for c in present) == CLASSES[task]
        assert set(model.cluster_sizes_[row][present]) == {12}
    assert np.all(np.diff(model.cluster_sizes_.sum(axis=0)) <= 0)  # the largest first


@pytest.mark.parametrize("method", ALL)
def test_clusters_in_a_row_are_matched_to_neighbours_not_to_the_outermost(method):
    """The inner products of class means would match 1, 2, 3 of the smaller task to 0, 2, 4 of the larger."""
    centres = 3.0 * np.arange(5)[:, None] * np.eye(1, 3)
    data, truth, tasks = subset_tasks({0: [0, 1, 2, 3, 4], 1: [1, 2, 3]}, d=3, shift=0.0, centres=centres)
    model = method({0: 5, 1: 3}, width=0.5, lambda1=2.0**-8, lambda2=2.0**-8, random_state=0).fit(data, tasks=tasks)
    assert match_clusters(truth, model.labels_)[1] == 1


def test_without_centring_clusters_are_matched_where_they_are():
    """Two clusters look like any other two that lie as far apart, unless their place counts."""
    centres = 3.0 * np.arange(5)[:, None] * np.eye(1, 3)
    classes = {0: [0, 1, 2, 3, 4], 1: [3, 4]}
    data, truth, tasks = subset_tasks(classes, d=3, shift=0.0, centres=centres)
    order = np.argsort(tasks, kind="stable")
    data, truth = data[order], truth[order]
    offsets = np.array([0, 60, 84])
    renamed = np.where(np.arange(84) < 60, truth, truth - 3)
    bounds = parse_sizes("balanced", [60, 24], [5, 2])
    aligned, _ = match_labels(centre_kernel(data @ data.T, offsets, False).matrix, offsets, renamed, bounds)
    np.testing.assert_array_equal(aligned, truth)


def test_small_tasks_that_share_few_clusters_do_not_mislead_each_other():
    classes = {0: [0, 1, 2, 3, 4], 1: [0, 1, 3, 4], 2: [1, 2, 4]}
    rng = np.random.default_rng(0)
    centres = 4 * np.eye(5, 8)
    centres[3] = centres[2] + rng.normal(size=8) / 2  # 2 and 3 lie close: tasks 1 and 2 alone would confuse them
    data, truth, tasks = subset_tasks(classes, centres=centres, spread=0.05)
    order = np.argsort(tasks, kind="stable")
    offsets = np.array([0, 60, 108, 144])
    renamed = truth[order]
    for task, own in classes.items():
        rows = slice(offsets[task], offsets[task + 1])
        renamed[rows] = np.searchsorted(own, renamed[rows])
    kernel = centre_kernel(data[order] @ data[order].T, offsets, True).matrix
    aligned, similarity = match_labels(kernel, offsets, renamed, parse_sizes("balanced", [60, 48, 36], [5, 4, 3]))
    np.testing.assert_array_equal(aligned, truth[order])
    assert similarity[0, 1] > 0.99
    assert similarity[0, 2] > 0.99


@pytest.mark.filterwarnings("ignore::mtclust.exceptions.UncoupledWarning")
@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("sizes", ["balanced", "auto", (0.1, 0.6)])
def test_every_task_obeys_the_sizes_of_its_own_number_of_clusters(method, sizes):
    noisy = X + 1.5 * np.random.default_rng(1).normal(size=X.shape)
    model = method(NUMBERS, sizes=sizes, **QUICK).fit(noisy, tasks=TASKS)
    for task, found in zip(model.tasks_, model.cluster_sizes_):
        n, own = found.sum(), NUMBERS[task]
        assert n == np.sum(task == TASKS)
        if sizes == "auto":
            assert np.count_nonzero(found) == own
            continue
        bounds = parse_sizes(sizes, [n], own)
        present = np.sort(found)[-own:]
        assert np.all(present >= bounds.lower[0, 0])
        assert np.all(present <= bounds.upper[0, 0])
        assert np.count_nonzero(found) <= own
    values = [entry["objective"] for entry in model.history_]
    if sizes != "auto":  # released sizes begin anew
        assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert values[-1] == pytest.approx(model.objective_)
    assert np.isfinite(model.loo_score_)
    for labels in (model.labels_, model.single_task_labels_):
        for task, number in NUMBERS.items():
            assert len(np.unique(labels[task == TASKS])) <= number


@pytest.mark.parametrize("method", ALL)
def test_sizes_are_chosen_freely_among_the_clusters_a_task_has(method):
    data, truth, tasks = subset_tasks(rows=20)
    keep = (truth != 4) | (np.random.default_rng(0).random(len(truth)) < 0.3)
    data, truth, tasks = data[keep], truth[keep], tasks[keep]
    model = method(NUMBERS, random_state=0).fit(data, tasks=tasks)
    assert model.selection_["sizes"] == "free"
    assert set(per_task(nmi, truth, model.labels_, tasks).values()) == {1.0}
    assert match_clusters(truth, model.labels_)[1] == 1


@pytest.mark.parametrize("method", ALL)
def test_a_table_of_sizes_says_which_clusters_a_task_has(method):
    rows = {"a": [12, 12, 0, 12, 12], "b": [12] * 5, "c": [0, 12, 12, 0, 12]}
    model = method(NUMBERS, sizes=rows, **QUICK).fit(X, tasks=TASKS)
    np.testing.assert_array_equal(model.cluster_sizes_, list(rows.values()))
    assert set(per_task(nmi, Y, model.labels_, TASKS).values()) == {1.0}
    assert not np.isin(model.predict(10 * X, tasks="c"), [0, 3]).any()


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_cluster_that_a_task_lacks_is_never_predicted(method, kernel):
    model = method(NUMBERS, kernel=kernel, **QUICK).fit(X, tasks=TASKS)
    np.testing.assert_array_equal(model.predict(X, tasks=TASKS), model.labels_)
    anywhere = 10 * np.random.default_rng(0).normal(size=(500, 8))
    for row, task in enumerate(model.tasks_):
        absent = model.cluster_sizes_[row] == 0
        assert not absent[model.predict(anywhere, tasks=task)].any()
        scores = model.decision_function(anywhere, tasks=task)
        assert np.all(np.isneginf(scores[:, absent]))
        assert np.all(np.isfinite(scores[:, ~absent]))


@pytest.mark.parametrize("method", ALL)
def test_equal_numbers_are_the_same_as_one_number(method):
    data, _, tasks = gaussian_tasks(spread=1.0)
    plain = method(3, random_state=0).fit(data, tasks=tasks)
    mapped = method(dict.fromkeys(range(3), np.int64(3)), random_state=0).fit(data, tasks=tasks)
    np.testing.assert_array_equal(mapped.labels_, plain.labels_)
    assert mapped.objective_ == plain.objective_
    assert mapped.n_clusters_ == plain.n_clusters_ == 3


@pytest.mark.parametrize("method", ALL)
def test_order_of_rows_and_of_the_mapping_do_not_matter(method):
    order = np.random.default_rng(5).permutation(len(X))
    first = method(NUMBERS, **QUICK).fit(X, tasks=TASKS)
    second = method(dict(reversed(NUMBERS.items())), **QUICK).fit(X[order], tasks=TASKS[order])
    assert match_clusters(first.labels_[order], second.labels_)[1] == 1


@pytest.mark.parametrize("method", ALL)
def test_one_task_may_have_a_single_cluster(method):
    data, truth, tasks = subset_tasks({0: [0, 1, 2], 1: [1]})
    model = method({0: 3, 1: 1}, sizes="balanced", coupling="full", **QUICK) if method is DMTRC else None
    model = (model or method({0: 3, 1: 1}, sizes="balanced", **QUICK)).fit(data, tasks=tasks)
    assert nmi(truth[tasks == 0], model.labels_[tasks == 0]) == 1
    assert len(np.unique(model.labels_[tasks == 1])) == 1
    assert len(np.unique(model.predict(data, tasks=1))) == 1


@pytest.mark.parametrize("method", ALL)
def test_a_new_task_may_have_all_clusters(method):
    data, truth, tasks = subset_tasks({"a": [0, 1, 3, 4], "b": [0, 1, 2, 3, 4], "c": [1, 2, 4], "new": [0, 1, 2, 3, 4]})
    new = tasks == "new"
    model = method(NUMBERS, kernel="linear", **QUICK).fit(data[~new], tasks=tasks[~new])
    found = model.fit_task(data[new])
    matching, _ = match_clusters(truth[~new], model.labels_)
    np.testing.assert_array_equal([matching[c] for c in found.labels_], truth[new])
    without = np.array([0 if matching[c] == 0 else 15 for c in range(5)])
    fewer = model.fit_task(data[new], sizes=without[None])
    np.testing.assert_array_equal(np.bincount(fewer.labels_, minlength=5), without)
    assert not np.isin(fewer.predict(10 * data), np.flatnonzero(without == 0)).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"n_clusters": {"a": 4, "b": 5}},
            r"n_clusters must have one entry per task; missing: \['c'\], .*: none",
        ),
        ({"n_clusters": NUMBERS | {"z": 2}}, r"n_clusters must have one entry per task; missing: none, .*\['z'\]"),
        ({"n_clusters": NUMBERS | {"b": 2.5}}, "n_clusters must hold whole numbers >= 1.*got 2.5 for task 'b'"),
        ({"n_clusters": NUMBERS | {"b": 0}}, "n_clusters must hold whole numbers >= 1.*got 0 for task 'b'"),
        ({"n_clusters": NUMBERS | {"b": True}}, "n_clusters must hold whole numbers >= 1.*got True for task 'b'"),
        ({"n_clusters": NUMBERS | {"b": "5"}}, "n_clusters must hold whole numbers >= 1.*got '5' for task 'b'"),
        ({"n_clusters": NUMBERS | {"b": 500}}, "n_samples=144 should be >= n_clusters=500"),
        ({"n_clusters": {}}, r"n_clusters must have one entry per task; missing: \['a', 'b', 'c'\]"),
        ({"n_clusters": "many"}, "n_clusters"),
        ({"sizes": [[12] * 5] * 3}, "sizes cannot be met in task 'a'"),
        (
            {"sizes": [[12] * 4 + [0], [12] * 5, [9] * 4 + [0]]},
            "sizes gives task 'c' 4 clusters .* gives it 3",
        ),
        ({"sizes": [[12] * 4] * 3}, r"of shape \(3, 5\) or"),
        ({"sizes": (0.3, 0.4)}, "sizes cannot be met in task"),
        ({"solver": "cutting-plane"}, 'solver="cutting-plane" needs the same number of clusters in all tasks'),
    ],
)
def test_bad_mappings_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        DMTRC(**({"n_clusters": NUMBERS} | change)).fit(X, tasks=TASKS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lambda1": {"a": 1.0, "b": 1.0}}, r"lambda1 must have one entry per task; missing: \['c'\]"),
        ({"lambda1": dict.fromkeys("abcd", 1.0)}, r"lambda1 must have one entry per task; .* not a task: \['d'\]"),
        ({"lambda1": {"a": 1.0, "b": -1.0, "c": 1.0}}, "lambda1 must hold numbers >= 0"),
        ({"lambda1": {"a": 1.0, "b": np.nan, "c": 1.0}}, "lambda1 must hold numbers >= 0"),
    ],
)
def test_bad_mappings_of_lambda1_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        DSTC(**({"n_clusters": NUMBERS} | change)).fit(X, tasks=TASKS)


def test_tasks_with_fewer_rows_than_their_own_clusters_give_a_warning():
    data, _, tasks = subset_tasks({0: [0, 1, 2, 3], 1: [0, 1]}, rows=2)
    DSTC({0: 4, 1: 2}, **QUICK).fit(data, tasks=tasks)  # 4 rows are enough for 2 clusters
    with pytest.warns(SmallTaskWarning, match="1 of 2 tasks have fewer rows than"):
        model = DSTC({0: 4, 1: 5}, **QUICK).fit(data, tasks=tasks)
    assert model.cluster_sizes_.sum(axis=1).tolist() == [8, 4]


def test_bounds_move_with_the_labels_and_keep_unused_ids_where_they_are():
    bounds = parse_sizes(1.0, [10, 10], [4, 2])
    assert bounds.movable
    labels = np.array([0, 1, 2, 3] * 2 + [0, 1] + [3] * 10)
    counts = counts_by_task(labels, np.array([0, 10, 20]), bounds.n_clusters)
    fitted = bounds.fitted(counts)
    np.testing.assert_array_equal(fitted.upper, [[10] * 4, [10, 0, 0, 10]])
    fixed = SizeBounds(bounds.lower, bounds.upper)
    assert fixed.fitted(counts) is fixed


# -- λ₁ by task ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_equal_lambda1_by_task_is_the_same_as_one_number(method):
    data, _, tasks = gaussian_tasks(spread=1.0)
    kwargs = {"lambda2": 0.01, "random_state": 0}
    plain = method(3, lambda1=0.02, **kwargs).fit(data, tasks=tasks)
    mapped = method(3, lambda1=dict.fromkeys(range(3), 0.02), **kwargs).fit(data, tasks=tasks)
    np.testing.assert_array_equal(mapped.labels_, plain.labels_)
    assert mapped.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    assert mapped.selection_["lambda1"] == dict.fromkeys(range(3), 0.02)


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_a_task_with_a_huge_lambda1_has_models_near_zero(method):
    data, truth, tasks = gaussian_tasks()
    model = method(
        3, kernel="linear", lambda1={0: 0.01, 1: 1e6, 2: 0.01}, lambda2=0.01, sizes="balanced", random_state=0
    )
    model.fit(data, tasks=tasks)
    size = np.linalg.norm(model.coef_, axis=(1, 2))
    assert size[1] < 1e-4 * min(size[0], size[2])
    for task in (0, 2):
        assert nmi(truth[tasks == task], model.labels_[tasks == task]) == 1
