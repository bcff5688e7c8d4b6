"""The ten usual mistakes with the Python interface, and what is said about each."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from mtclust import DMTRC, DSTC, stack_tasks
from mtclust.exceptions import InputWarning
from mtclust.nuisance import NuisanceRemover, remove_nuisance
from mtclust.selection import select_n_clusters
from tests.conftest import gaussian_tasks

X, Y, TASKS = gaussian_tasks(rows=12)
SHOPS = np.array(["paris", "rome", "oslo"])[TASKS]
FRAME = pd.DataFrame(X, columns=[f"m{k}" for k in range(X.shape[1])], index=[f"r{k}" for k in range(len(X))])
DAYS = np.arange(36).astype("datetime64[us]")
QUICK = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "n_init": 1, "random_state": 0}


def model(**options):
    return DMTRC(3, **QUICK | options)


#: what is done, the error or warning, and what it must say
MISTAKES = {
    "tasks as y": (
        lambda: model().fit(X, SHOPS), InputWarning, ["y holds text", "ignored", "one task", "fit(X, tasks=...)"],
    ),
    "classes as y": (
        lambda: model().fit(X, pd.Series(SHOPS, dtype="category"), tasks=TASKS), InputWarning,
        ["y holds text", "known="],
    ),
    "dates": (
        lambda: model(task_column="shop").fit(FRAME.assign(shop=SHOPS, day=pd.Timestamp("2024-03-01"))), ValueError,
        ["X must hold numbers, not text or dates ('day')", "mtclust.cluster"],
    ),
    "dates in another way": (
        lambda: model().fit(pl.DataFrame({"m": X[:, 0], "day": DAYS}), tasks=TASKS), ValueError,
        ["X must hold numbers, not text or dates ('day')", "mtclust.cluster"],
    ),
    "dates of a frame only": (
        lambda: model().fit(pd.DataFrame({"day": DAYS}), tasks=TASKS), ValueError, ["not text or dates ('day')"],
    ),
    "durations": (
        lambda: model().fit(pd.DataFrame({"age": DAYS - DAYS[0]}), tasks=TASKS), ValueError,
        ["not text or dates ('age')"],
    ),
    "array of dates": (
        lambda: model().fit(DAYS[:, None], tasks=TASKS), ValueError, ["not text or dates ('datetime64[us]')"],
    ),
    "list of dates": (
        lambda: model().fit([[day] for day in DAYS], tasks=TASKS), ValueError, ["not text or dates ('datetime64[us]')"],
    ),
    "a column": (lambda: model().fit(FRAME["m0"], tasks=TASKS), ValueError, ["Expected a 2-dimensional container"]),
    "missing values": (
        lambda: model().fit(FRAME.where(FRAME < 3), tasks=TASKS), ValueError,
        ["Input X contains NaN", "SimpleImputer", "mtclust.cluster, which fills them in"],
    ),
    "missing values of an array": (
        lambda: model().fit(np.where(X < 3, X, np.nan), tasks=TASKS), ValueError,
        ["Input X contains NaN; missing values are not filled in here"],
    ),
    "tasks in another order": (
        lambda: model().fit(FRAME, tasks=pd.Series(SHOPS, index=FRAME.index).sort_values()), ValueError,
        ["the index of tasks is not that of X", "'r0'", "tasks.reindex(X.index)", "tasks.to_numpy()"],
    ),
    "tasks in another order in select_n_clusters": (
        lambda: select_n_clusters(DMTRC(), FRAME, tasks=pd.Series(SHOPS, index=FRAME.index).sort_values()), ValueError,
        ["the index of tasks is not that of X", "tasks.to_numpy()"],
    ),
    "nuisance in another order": (
        lambda: remove_nuisance(FRAME, FRAME["m0"].sort_values(), tasks=SHOPS), ValueError,
        ["the index of nuisance is not that of X", "nuisance.reindex(X.index)"],
    ),
    "nuisance of other rows": (
        lambda: NuisanceRemover().fit(FRAME, nuisance=pd.DataFrame(X), tasks=SHOPS), ValueError,
        ["the index of nuisance"],
    ),
    "tasks in another order in remove_nuisance": (
        lambda: remove_nuisance(FRAME, X[:, 0], tasks=pd.Series(SHOPS, index=FRAME.index).sort_values()), ValueError,
        ["the index of tasks is not that of X"],
    ),
    "tasks of other rows": (
        lambda: model().fit(FRAME, tasks=pd.Series(SHOPS)), ValueError,
        ["the index of tasks is not that of X", "0, 1, 2"],
    ),
    "known of other rows": (
        lambda: model().fit(FRAME, tasks=SHOPS, known=pd.Series(np.full(36, -1))), ValueError, ["the index of known"],
    ),
    "tasks of other rows in predict": (
        lambda: model().fit(FRAME, tasks=SHOPS).predict(FRAME, tasks=pd.Series(SHOPS)), ValueError,
        ["the index of tasks"],
    ),
    "task column left in": (
        lambda: model().fit(FRAME.assign(shop_id=TASKS)), InputWarning,
        ["column 'shop_id'", "like any measurement", "one task", "task_column='shop_id'"],
    ),
    "task column of text left in": (
        lambda: model().fit(FRAME.assign(shop=SHOPS)), ValueError, ["not text or dates ('shop')", "task_column="],
    ),
    "many columns of text": (
        lambda: model().fit(FRAME.assign(**dict.fromkeys("abcde", SHOPS))), ValueError,
        ["'a', 'b', 'c', 'd' and 1 more"],
    ),
    "name of a column as tasks": (
        lambda: model().fit(FRAME.assign(shop=SHOPS), tasks="shop"), ValueError,
        ["tasks='shop' is the name of a column", "one task", "task_column='shop'", "tasks=X['shop']"],
    ),
    "list of tables": (
        lambda: model().fit([X[:12], X[12:]]), ValueError, ["X is a list of 2 tables", "stack_tasks"],
    ),
    "row numbers as tasks": (
        lambda: model().fit(X, tasks=np.arange(36)), ValueError,
        ["tasks has 36 different ids for 36 rows", "they name rows, not tasks", "one id per group"],
    ),
    "columns of very different spread": (
        lambda: model().fit(FRAME.assign(m0=1e4 * FRAME["m0"]), tasks=TASKS), InputWarning,
        ["differ in spread by a factor of", "column 'm0'", "counts for nothing", "StandardScaler", "mtclust.cluster"],
    ),
    "ids of another type": (
        lambda: model().fit(X, tasks=TASKS).predict(X, tasks=TASKS.astype(str)), ValueError,
        ["not in fit: '0', '1'", "known are 0, 1", "the same type as in fit"],
    ),
    "task column in fit_task": (
        lambda: model().fit(X, tasks=TASKS).fit_task(np.c_[X[:12], TASKS[:12]]), ValueError,
        [f"X has {X.shape[1] + 1} features", "Leave the task column out"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_usual_mistake_is_told_in_words(mistake):
    make, kind, words = MISTAKES[mistake]
    if issubclass(kind, Warning):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make()
        said = " ".join(str(warning.message) for warning in caught if issubclass(warning.category, kind))
    else:
        with pytest.raises(kind) as raised:
            make()
        said = str(raised.value)
    assert isinstance(words, list)
    assert words
    for word in words:
        assert word in said, f"{word!r} is not in {said!r}"


@pytest.mark.parametrize(("fit", "plain"), [
    (lambda: DSTC(3, **QUICK).fit(X, Y), "one task"),
    (lambda: DSTC(3, **QUICK).fit(X, Y.tolist()), "one task"),
    (lambda: DSTC(3, **QUICK).fit(FRAME), "one task"),
    (lambda: model().fit(FRAME, tasks=pd.Series(SHOPS, index=FRAME.index)), "three tasks"),
    (lambda: model().fit(X, tasks=pd.Series(SHOPS, index=FRAME.index)), "three tasks"),
    (lambda: model().fit(*stack_tasks([X[:12], X[12:]])[:1], tasks=SHOPS), "three tasks"),
    (lambda: DMTRC(3, **QUICK | {"task_column": "shop"}).fit(FRAME.assign(shop=SHOPS)), "three tasks"),
    (lambda: model().fit(FRAME.astype(str), tasks=SHOPS), "three tasks"),
    (lambda: DSTC(3, **QUICK).fit(X.tolist()), "one task"),
], ids=["y of numbers", "list of numbers", "frame", "same index", "array", "stacked", "task column", "numbers in text",
        "nested lists"])  # fmt: skip
def test_nothing_is_said_where_there_is_no_mistake(fit, plain):
    """Whatever the rows come in, the labels are those of plain arrays, without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit()
    expected = DSTC(3, **QUICK).fit(X) if plain == "one task" else model().fit(X, tasks=SHOPS)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert len(found.tasks_) == len(expected.tasks_)
