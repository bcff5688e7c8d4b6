"""Every warning says what happened in figures, what to do, and points at the line of the user's that led to it."""

import ast
from collections.abc import Callable
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.datasets import load_digits_tasks
from mtclust.exceptions import (
    ClusterNumberWarning,
    DegenerateSolutionWarning,
    SmallTaskWarning,
    UncoupledWarning,
)
from mtclust.nuisance import NuisanceRemover, remove_nuisance
from tests.conftest import gaussian_tasks

ROOT = Path(__file__).parent.parent
X, _, TASKS = gaussian_tasks(rows=24)
NOISY, _, NOISY_TASKS = gaussian_tasks(rows=300, spread=2.0)
SMALL = np.array([0] * 70 + [1] * 2)
QUICK = {"kernel": "linear", "lambda1": 0.01, "sizes": "balanced", "n_init": 1, "random_state": 0}
DIGITS = load_digits_tasks((0, 3, 6), rows_per_class=10)
NUISANCE = np.random.default_rng(0).normal(size=(72, 3))


def quick(method=DSTC, n_clusters=3, form="dual", **options):
    return method(n_clusters, **QUICK | {"solver_options": {"form": form}} | options)


def unrelated(rows):
    """Clusters that lie in another direction in every task, and overlap so much that coupling changes some labels."""
    rng = np.random.default_rng(0)
    tasks = np.repeat(np.arange(3), rows)
    return rng.normal(size=(3 * rows, 12)) + 1.5 * np.eye(12)[4 * tasks + np.arange(3 * rows) % 3], tasks


APART, APART_TASKS = unrelated(200)
STOPPED = ["stopped after", "with the objective at", "still falling", "raise max_iter or tol"]
FEW = ["1 of 2 tasks", "fewer rows than n_clusters=3", "first: 1", "stay empty"]
EMPTY = ["1 of 2 tasks", "nuisance", "first: 1", "Give fewer nuisance columns"]
ARBITRARY = ["X has no variation within any task", "rescale X", "the labels are arbitrary"]
REFUSED = ["The tasks were clustered apart", 'Use coupling="full"', 'selection_["coupling"]']

#: what is done, the warning, and what it must say
CASES: dict[str, tuple[Callable, type, list[str]]] = {
    "small tasks": (lambda: quick().fit(X, tasks=SMALL), SmallTaskWarning, FEW),
    "small tasks, fit_predict": (lambda: quick().fit_predict(X, tasks=SMALL), SmallTaskWarning, FEW),
    "small tasks, primal": (lambda: quick(form="primal").fit(X, tasks=SMALL), SmallTaskWarning, FEW),
    "small tasks, pipeline": (
        lambda: make_pipeline(StandardScaler(), quick()).fit(X, dstc__tasks=SMALL), SmallTaskWarning, FEW,
    ),
    "no variation": (lambda: quick().fit(np.ones((72, 2)), tasks=TASKS), ConvergenceWarning, ARBITRARY),
    "no variation, primal": (
        lambda: quick(form="primal").fit(np.ones((72, 2)), tasks=TASKS), ConvergenceWarning, ARBITRARY,
    ),
    "stopped": (
        lambda: quick(DMTFC, max_iter=1, tol=0.0, lambda1=1e-3).fit(NOISY, tasks=NOISY_TASKS), ConvergenceWarning,
        ["max_iter=1", *STOPPED],
    ),
    "stopped, primal": (
        lambda: quick(DMTFC, form="primal", max_iter=1, tol=0.0, lambda1=1e-3).fit(NOISY, tasks=NOISY_TASKS),
        ConvergenceWarning, STOPPED,
    ),
    "below 0": (
        lambda: any(  # rounding decides which
            quick(DSTC, form="primal", kernel="linear", lambda1=0.0, lambda2=1e-16, n_init=2).fit(
                np.random.default_rng(seed).normal(size=(72, 40)), tasks=TASKS
            ).objective_ < 0 for seed in range(20)
        ),
        ConvergenceWarning,
        ["the objective came out as -", "lambda1=0", "lambda2=1e-16", "Raise them", 'solver_options={"form": "dual"}'],
    ),
    "uncoupled": (
        lambda: quick(DMTRC, lambda1=2.0**-4).fit(APART[::4], tasks=APART_TASKS[::4]), UncoupledWarning, REFUSED,
    ),
    "uncoupled, primal": (
        lambda: quick(DMTRC, form="primal", lambda1=2.0**-4).fit(APART, tasks=APART_TASKS), UncoupledWarning, REFUSED,
    ),
    "uncoupled, chunks": (
        lambda: quick(DMTRC, form="auto", lambda1=2.0**-4).fit(
            da.from_array(APART, chunks=(150, 12)), tasks=da.from_array(APART_TASKS, chunks=150)
        ),
        UncoupledWarning, REFUSED,
    ),
    "collapsed": (
        lambda: DSTC(
            3, kernel="linear", lambda1=2**-7, sizes="balanced", random_state=0, solver="cutting-plane",
            solver_options={"max_cuts": 10, "init": "random"},
        ).fit(DIGITS.data, tasks=DIGITS.tasks),
        DegenerateSolutionWarning,
        ["10 cuts", "of 90 rows are tied", 'solver="exchange"', "a smaller max_cuts"],
    ),
    "number of clusters": (
        lambda: DSTC(range(2, 4), kernel="linear", lambda1=0.1, sizes="balanced", random_state=0).fit(
            np.random.default_rng(11).normal(size=(60, 4))
        ),
        ClusterNumberWarning, ["clearly more than chance does", "clusters are a weak choice"],
    ),
    "nuisance": (lambda: remove_nuisance(X, NUISANCE, tasks=SMALL), SmallTaskWarning, EMPTY),
    "nuisance, transformer": (
        lambda: NuisanceRemover().fit_transform(X, nuisance=NUISANCE, tasks=SMALL), SmallTaskWarning, EMPTY,
    ),
}  # fmt: skip


def check(act, category, said):
    with pytest.warns(category) as caught:
        act()
    (record,) = [entry for entry in caught if entry.category is category]
    for words in said:
        assert words in str(record.message)
    assert str(record.message).endswith(".")
    assert record.filename == __file__
    return record


@pytest.mark.parametrize("name", CASES)
def test_a_warning_has_figures_a_way_out_and_the_line_of_the_caller(name, monkeypatch):
    act, category, said = CASES[name]
    if category is UncoupledWarning:  # whatever coupling gains is not enough
        monkeypatch.setattr("mtclust.choose.coupling.LARGEST_LOSS", -10.0)
    record = check(act, category, said)
    first, last = act.__code__.co_firstlineno, max(line or 0 for *_, line in act.__code__.co_lines())
    assert first <= record.lineno <= last


def test_every_warning_goes_to_the_user():
    for path in (ROOT / "src" / "mtclust").rglob("*.py"):
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert "warnings.warn" not in calls or path.name == "messages.py", (
            f"{path.name}: warn_user finds the line of the user"
        )
