"""What is said to users who made a mistake: the argument, what was given, what is allowed, and the way out.

One case per message of the estimators and of the functions around them; those of data sets, text, plots, saved models,
reference methods and the command line are beside the tests of these.
"""

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mtclust import DMTFC, DMTRC, DSTC, split_by_task, stack_tasks
from mtclust.core.kernels import Kernel, rbf_from_distances
from mtclust.core.labels import parse_sizes
from mtclust.relaxation.cutting_plane import CuttingPlaneOptions
from mtclust.selection import select_n_clusters
from mtclust.util.system import require_kernel_memory
from tests.conftest import gaussian_tasks

X, _, TASKS = gaussian_tasks(rows=12)
QUICK = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "n_init": 1, "random_state": 0}


def fit(method=DSTC, X=X, tasks=TASKS, n_clusters=3, **options):
    return lambda: method(n_clusters, **QUICK | options).fit(X, tasks=tasks)


def fitted(**options):
    return DSTC(3, **QUICK | options).fit(X, tasks=TASKS)


def sizes(value, rows=(6, 6), n_clusters=2):
    return lambda: parse_sizes(value, list(rows), n_clusters)


def relaxed(**options):
    return fit(DMTRC, solver="cutting-plane", solver_options=options)


#: what is done, the error, and what its message must say
CASES: dict[str, tuple[Callable, type, list[str]]] = {
    # rows and tasks
    "no X": (fit(X=None), ValueError, ["X is None", "expected a table"]),
    "too few rows": (fit(X=X[:2], tasks=None), ValueError, ["n_samples=2", "n_clusters=3", "fewer clusters"]),
    "shape of tasks": (fit(tasks=np.zeros((36, 2))), ValueError, ["tasks", "(36, 2)", "one id per row"]),
    "number of tasks": (fit(tasks=[1, 2]), ValueError, ["tasks has 2 entries", "36 rows", "one task id per row"]),
    "missing task": (fit(tasks=[np.nan] + [1.0] * 35), ValueError, ["tasks has 1 missing", "row 0", "every row needs"]),
    "mixed tasks": (
        fit(tasks=np.array([1] * 18 + ["a"] * 18, dtype=object)), TypeError, ["tasks", "int, str", "of one type"],
    ),
    "ids of rows": (
        fit(tasks=np.arange(36)), ValueError,
        ["tasks has 36 different ids for 36 rows", "36 of them", "one id per group"],
    ),
    "tasks twice": (fit(task_column=0), ValueError, ["tasks and task_column", "use one of them"]),
    "no such column": (
        fit(X=pd.DataFrame(X), tasks=None, task_column="shop"), ValueError, ["task_column='shop'", "not a column of X"],
    ),
    "column of an array": (
        fit(tasks=None, task_column="shop"), ValueError, ["task_column='shop'", "which has 0, 1"],
    ),
    "column out of range": (fit(tasks=None, task_column=9), ValueError, ["task_column=9", "has 0, 1, 2 and 3"]),
    "column of a vector": (fit(X=X[0], tasks=None, task_column=0), ValueError, ["task_column=0 is not a column of X"]),
    "unknown task": (
        lambda: fitted().predict(X, tasks=5), ValueError, ["tasks", "5", "known are 0, 1 and 2", "Use fit_task(X)"],
    ),
    "task left out": (
        lambda: fitted().predict(X), ValueError, ["tasks is required", "3 tasks", "Give one id per row"],
    ),
    "no tables": (lambda: stack_tasks([]), ValueError, ["tables is empty", "at least one"]),
    "number of names": (lambda: stack_tasks([X, X], ["a"]), ValueError, ["each of the 2 tables a name", "['a']"]),
    "name twice": (lambda: stack_tasks([X, X], ["a", "a"]), ValueError, ["names", "no two the same", "['a', 'a']"]),
    "table of three dimensions": (
        lambda: stack_tasks([np.zeros((2, 2, 2))]), ValueError, ["table 0", "(2, 2, 2)", "two dimensions"],
    ),
    "columns of tables": (
        lambda: stack_tasks([X, X[:, :2]]), ValueError, ["table 1 has shape (36, 2)", "(36, 4)", "the same columns"],
    ),
    "frame and array": (
        lambda: stack_tasks([pd.DataFrame({"a": [1]}), np.ones((1, 1))]), ValueError,
        ["table 1 has other columns", "different: 0, a", "same columns"],
    ),
    "names of columns": (
        lambda: stack_tasks([pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})]), ValueError,
        ["table 1 has other columns", "different: a, b", "same columns"],
    ),
    "split": (lambda: split_by_task(X, [1]), ValueError, ["tasks has 1 entries", "36 rows"]),
    # numbers that cannot be used
    "words": (fit(X=np.full((36, 4), "red")), ValueError, ["X must hold numbers", "'red'", "Leave such columns out"]),
    "too large": (fit(X=X * 1e300), ValueError, ["X has values too large", "divide X by"]),
    "too small": (
        lambda: rbf_from_distances(np.ones((2, 2)), 1e-200), ValueError, ["σ = 1e-200", "rescale X or raise width"],
    ),
    "shape of a kernel": (
        fit(kernel=lambda A, B: np.ones(3)), ValueError, ["kernel returned", "(3,)", "one finite value per pair"],
    ),
    "kernel with NaN": (
        lambda: Kernel("callable", function=lambda A, B: np.full((36, 36), np.nan))(X, X), ValueError,
        ["NaN or infinity", "one finite value per pair"],
    ),
    "negative kernel": (
        fit(X=-X @ X.T, kernel="precomputed", fit_intercept=False), ValueError,
        ["kernel", "negative mean diagonal", "must be positive semidefinite"],
    ),
    "kernel not square": (fit(kernel="precomputed"), ValueError, ["X, of shape (36, 4)", "not square"]),
    "kernel not symmetric": (
        fit(X=np.arange(36.0 * 36).reshape(36, 36), kernel="precomputed"), ValueError,
        ["is not symmetric", 'kernel="precomputed" needs'],
    ),
    "memory": (
        lambda: require_kernel_memory(10**10), MemoryError,
        ["10000000000 rows needs at least", "available", "Use fewer rows"],
    ),
    # numbers of clusters and sizes
    "clusters by task": (
        fit(n_clusters={0: 2, 1: 2, 7: 2}), ValueError, ["n_clusters", "missing: [2]", "not a task: [7]", "one entry"],
    ),
    "clusters that are none": (
        fit(n_clusters={0: 2, 1: 2, 2: 0}), ValueError, ["n_clusters", "got 0 for task 2", "whole numbers >= 1"],
    ),
    "candidates": (
        lambda: select_n_clusters(DSTC(**QUICK), X, tasks=TASKS, candidates=[1, 2]), ValueError,
        ["candidates=[1, 2]", ">= 2"],
    ),
    "candidates that are no numbers": (
        lambda: select_n_clusters(DSTC(**QUICK), X, candidates="23"), ValueError,
        ["candidates=['2', '3']", "whole numbers of clusters >= 2", "<= 36, the rows"],
    ),
    "kernel not square and a number to choose": (
        fit(n_clusters="auto", kernel="precomputed"), ValueError, ["X, of shape (36, 4)", "not square"],
    ),
    "very many clusters": (fit(n_clusters=10**30), ValueError, [f"n_clusters={10**30}", "n_samples=36"]),
    "very many clusters of a task": (
        fit(n_clusters={0: 2, 1: 10**30, 2: 2}), ValueError, [f"n_clusters={10**30}", "n_samples=36"],
    ),
    "range without numbers": (
        fit(n_clusters=range(5, 2)), ValueError, ["n_clusters=range(5, 2)", "numbers of clusters >= 2", "rows, 36"],
    ),
    "range from one": (fit(n_clusters=range(1, 4)), ValueError, ["n_clusters=range(1, 4)", ">= 2"]),
    "sizes by a word": (sizes("equal"), ValueError, ["sizes='equal'", "allowed are", "balanced"]),
    "sizes by nothing": (sizes(None), ValueError, ["sizes=None", "allowed are", "balanced"]),
    "sizes by a number": (sizes(1.5), ValueError, ["sizes=1.5", "must lie in [0, 1]"]),
    "fractions": (sizes((0.6, 0.2)), ValueError, ["sizes=(0.6, 0.2)", "0 <= low <= high <= 1"]),
    "fractions that cannot be met": (sizes((0.0, 0.3)), ValueError, ["sizes cannot be met in task 0", "at most"]),
    "sizes by task": (sizes({0: [3, 3], 5: [3, 3]}), ValueError, ["sizes", "missing: [1]", "not a task: [5]"]),
    "shape of sizes": (sizes([[3, 3, 3]]), ValueError, ["shape (2, 2) or (2, 2, 2)", "[[3, 3, 3]]"]),
    "ragged sizes": (sizes([[3, 3], [3]]), ValueError, ["sizes as a table", "shape (2, 2)", "[[3, 3], [3]]"]),
    "sizes not whole": (sizes([[3, 3], [2.5, 3.5]]), ValueError, ["sizes", "whole numbers", "2.5"]),
    "sizes that do not add up": (
        sizes([[3, 3], [3, 4]]), ValueError, ["sizes", "task 1", "6 rows", "at least 7 and at most 7"],
    ),
    "sizes the wrong way round": (
        sizes([[[3, 2], [3, 4]], [[3, 3], [3, 3]]]), ValueError, ["sizes cannot be met in task 0", "[3, 3] to [2, 4]"],
    ),
    "sizes of clusters a task lacks": (
        lambda: parse_sizes([[2, 2, 2], [2, 2, 2]], [6, 6], [3, 2]), ValueError,
        ["sizes gives task 1 3 clusters", "n_clusters gives it 2", "set the sizes of the others to 0"],
    ),
    # penalties, solvers and their options
    "lambda by task": (fit(lambda1={0: 1.0}), ValueError, ["lambda1", "missing: [1, 2]", "one entry per task"]),
    "negative lambda": (fit(lambda1={0: 1.0, 1: -1.0, 2: 1.0}), ValueError, ["lambda1", "numbers >= 0", "-1.0"]),
    "options": (fit(solver_options={"speed": 1}), ValueError, ["solver_options", "'speed'", 'may only hold "form"']),
    "True for a number of cuts": (
        fit(solver="cutting-plane", solver_options={"max_cuts": True}), ValueError, ["=True", "whole number"],
    ),
    "form": (fit(solver_options={"form": "both"}), ValueError, ["form", "'both'", "one of ['auto', 'dual'"]),
    "primal kernel": (
        fit(X=X @ X.T, kernel="precomputed", solver_options={"form": "primal"}), ValueError,
        ['"form"]="primal"', "kernel='precomputed'", "needs explicit rows"],
    ),
    "new task of a kernel": (
        lambda: DSTC(3, **QUICK | {"kernel": "precomputed"}).fit(X @ X.T, tasks=TASKS).fit_task(X), ValueError,
        ['kernel="precomputed"', 'Fit with kernel="rbf"'],
    ),
    "columns of a new task": (lambda: fitted().fit_task(X[:, :2]), ValueError, ["X has 2 features", "expecting 4"]),
    "rows of a new task": (
        lambda: fitted().fit_task(X[:12]).predict(X[:, :2]), ValueError, ["X has 2 features", "expecting 4"],
    ),
    "cuts by task": (
        fit(DMTRC, n_clusters={0: 2, 1: 2, 2: 3}, solver="cutting-plane"), ValueError,
        ['solver="cutting-plane"', "same number of clusters", 'Use solver="exchange"'],
    ),
    "share of coupling": (
        fit(DMTRC, coupling=0.5, solver="cutting-plane"), ValueError, ["coupling=0.5", 'solver="exchange"', "full"],
    ),
    "options of cuts": (
        lambda: CuttingPlaneOptions.from_dict({"speed": 1}), ValueError, ["solver_options", "['speed']", "allowed are"],
    ),
    "cuts": (
        lambda: CuttingPlaneOptions.from_dict({"max_cuts": -1}), ValueError, ["['max_cuts']=-1", "whole number >="],
    ),
    "gap": (lambda: CuttingPlaneOptions.from_dict({"gap_tol": -1}), ValueError, ["['gap_tol']=-1", "number >= 0"]),
    "start by a word": (
        lambda: CuttingPlaneOptions.from_dict({"init": "best"}), ValueError, ["['init']='best'", "must be k-means"],
    ),
    "shape of a start": (relaxed(init=[0, 1]), ValueError, ["['init']", "shape (2,)", "one label per row"]),
    "words as a start": (relaxed(init=["a"] * 36), ValueError, ["['init']", "whole numbers", "got 'a'"]),
    "numbers of a start": (relaxed(init=[7] * 36), ValueError, ["['init']", "from 0 to 2", "got 7"]),
    "sizes of a start": (
        relaxed(init=[0] * 36), ValueError, ["['init']", "1. task", "[12, 0, 0]", "change the labels or sizes="],
    ),
    "no lambda1 with cuts": (
        fit(DMTRC, lambda1=0.0, lambda2=1.0, solver="cutting-plane"), ValueError, ["lambda1=[0.0", "lambda1 > 0"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_message_names_the_argument_what_was_given_what_is_allowed_and_the_way_out(name):
    act, error, said = CASES[name]
    with pytest.raises(error) as caught:
        act()
    message = str(caught.value)
    for words in said:
        assert words in message, message
    assert re.fullmatch(r"\S.*[.!?]", message, flags=re.DOTALL), "a sentence"


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n_clusters", 0), ("n_clusters", 2.5), ("kernel", "cosine"), ("width", -1.0), ("lambda1", -1.0),
        ("lambda2", 0.0), ("solver", "simplex"), ("solver_options", 3), ("n_components", 0), ("fit_intercept", "yes"),
        ("n_init", 0), ("task_column", 1.5), ("random_state", "x"), ("n_jobs", 0.5),
        ("n_jobs", 0),
    ],
)  # fmt: skip
def test_arguments_out_of_range_are_named_with_their_range_and_what_was_given(method, argument, value):
    if argument not in method().get_params():
        pytest.skip(f"{method.__name__} has no {argument}")
    said = rf"The {argument!r} parameter of {method.__name__} must (not )?be .* Got .* instead"
    with pytest.raises(ValueError, match=said):
        method(**{"n_clusters": 3, argument: value}).fit(X, tasks=TASKS)


def test_sparse_input_with_nan_is_refused_by_name():
    rows = sp.csr_array(X)
    rows.data[0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fit(X=rows)()
