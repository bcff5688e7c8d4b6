"""Shared helpers of the tests."""

import os
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

TESTS = Path(__file__).parent
#: run by ``make quick``: the formulas, loops and solvers against oracles, which notice most changes of the core, and
#: one way through the estimators. A test of these that takes seconds and repeats what others see is marked slow.
QUICK = (
    "test_assignment.py", "test_carried_labels.py", "test_compiled.py", "test_coupling.py",
    "test_criterion.py", "test_matching.py",
    "test_error_messages_inside.py", "test_exchange_solver.py", "test_known.py", "test_labels.py", "test_links.py",
    "test_membership.py", "test_new_task.py", "test_objective.py", "test_outliers.py", "test_pool.py",
    "test_repository.py", "test_solver_steps.py", "test_tasks.py",
    "choose/test_choice.py", "choose/test_coupling_decision.py", "choose/test_judge.py",
    "cutting_plane/test_certificate.py", "cutting_plane/test_mixtures.py",
    "cutting_plane/test_relaxation.py",
    "primal/test_primal_labelling.py", "primal/test_primal_moments.py", "primal/test_primal_descent.py",
    "primal/test_primal_predictability.py", "primal/test_primal_systems.py",
    "properties/test_property_core.py",
)  # fmt: skip


def pytest_ignore_collect(collection_path, config):
    """With ``-m quick`` other files are not even imported, which takes longer than the tests."""
    if config.option.markexpr == "quick" and collection_path.suffix == ".py":
        return collection_path not in {TESTS / name for name in QUICK}
    return None


def pytest_collection_modifyitems(items):
    quick = {TESTS / name for name in QUICK}
    for item in items:
        if item.path in quick and item.get_closest_marker("slow") is None:
            item.add_marker("quick")


@pytest.fixture(autouse=True, scope="session")
def one_blas_thread():
    """Tests run side by side; more threads than cores would only make them wait for each other."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def data_home():
    """Where the real data lie; tests that need them are skipped without."""
    path = os.environ.get("MTCLUST_DATA")
    if not path:
        pytest.skip("MTCLUST_DATA is not set: real data are not at hand")
    return path


def gaussian_tasks(n_tasks=3, rows=30, n_clusters=3, d=4, spread=0.3, seed=0, shift=1.0):
    """Separated clusters at the same places in every task, tasks shifted against each other."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_clusters, d)) * 2
    X, y, tasks = [], [], []
    for task in range(n_tasks):
        labels = np.arange(rows) % n_clusters
        X.append(centres[labels] + spread * rng.normal(size=(rows, d)) + shift * rng.normal(size=d))
        y.append(labels)
        tasks.append(np.full(rows, task))
    return np.concatenate(X), np.concatenate(y), np.concatenate(tasks)


def clustering_of(model, X, tasks, *, scale=1.0, offset=0.0, task_column=None, files=()):
    """A fitted estimator as if its rows had been a table of numbers: ``offset + scale · X``."""
    import pandas as pd

    from mtclust.app.clustering import Clustering, Rows, row_margins
    from mtclust.app.tables.columns import NumberColumn
    from mtclust.app.tables.encoding import TableEncoder
    from mtclust.app.tables.table import Table
    from mtclust.app.tables.values import NumberForm

    frame = pd.DataFrame(offset + scale * np.asarray(X), columns=[f"f{k}" for k in range(X.shape[1])])
    columns = [NumberColumn(name, offset, scale, offset, {}, NumberForm()) for name in frame.columns]
    names = np.asarray(tasks).astype(str).astype(object)
    table = Table(frame, names, np.arange(1, len(frame) + 1), files, task_column)
    numbers = np.searchsorted(model.tasks_, np.asarray(tasks))
    rows = Rows(table, X, numbers, *row_margins(model.decision_function(X, tasks=tasks), model.labels_))
    return Clustering(model, TableEncoder(columns, task_column=task_column), _rows=rows)
