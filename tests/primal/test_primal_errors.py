"""What cannot be done is said before anything is taken: forms, memory."""

import numpy as np
import pytest
from primal_helpers import stacked

import mtclust.util.system
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.util.system import available_memory, require_kernel_memory

X, _, TASKS = stacked((30, 40), d=3)


def with_memory(monkeypatch, n_bytes):
    monkeypatch.setattr(mtclust.util.system, "available_memory", lambda: n_bytes)


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
def test_an_unknown_form_is_refused_with_the_known_ones(method):
    with pytest.raises(ValueError, match=r"'fast'.*one of \['auto', 'dual', 'primal'"):
        method(3, solver_options={"form": "fast"}).fit(X, tasks=TASKS)


def test_a_precomputed_kernel_has_no_primal_form():
    with pytest.raises(ValueError, match=r"form.*primal.*needs explicit rows.*precomputed"):
        DMTRC(3, kernel="precomputed", solver_options={"form": "primal"}).fit(X @ X.T, tasks=TASKS)


def test_cutting_planes_have_no_form():
    with pytest.raises(ValueError, match="form"):
        DMTRC(3, solver="cutting-plane", solver_options={"form": "primal"}).fit(X, tasks=TASKS)


def test_lambda_by_task_with_very_many_unknowns_names_the_limit():
    rows, _, tasks = stacked((3,) * 26, d=40)
    by_task = {i: 0.01 + 0.001 * i for i in range(26)}
    options = {"kernel": "linear", "lambda2": 0.01, "sizes": "balanced", "n_init": 1}
    with pytest.raises(ValueError, match=r"lambda1 differs by task.*26 tasks and 40 features"):
        DMTRC(3, lambda1=by_task, solver_options={"form": "primal"}, **options).fit(rows, tasks=tasks)


def test_kernel_matrices_that_do_not_fit_name_figures_and_the_way_out(monkeypatch):
    with_memory(monkeypatch, 100_000)
    model = DMTRC(3, kernel="linear", solver_options={"form": "dual"})
    with pytest.raises(
        MemoryError, match=r"70 rows needs at least 0.000118 GB, but only 0.0001 GB.*\"form\": \"primal\""
    ):
        model.fit(X, tasks=TASKS)
    with pytest.raises(MemoryError, match=r"Use fewer rows"):
        DMTRC(3, kernel="precomputed").fit(X @ X.T, tasks=TASKS)


def test_a_fit_that_fits_is_not_refused(monkeypatch):
    with_memory(monkeypatch, 50_000_000)
    options = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "coupling": "full", "random_state": 0}
    model = DMTRC(3, solver_options={"form": "primal"}, **options).fit(X, tasks=TASKS)
    assert len(model.labels_) == 70


def test_where_the_system_does_not_tell_nothing_is_refused(monkeypatch):
    with_memory(monkeypatch, 1)
    with pytest.raises(MemoryError):
        require_kernel_memory(10**12)
    with_memory(monkeypatch, None)
    assert require_kernel_memory(10**12) is None


def test_available_memory_is_a_plausible_figure():
    found = available_memory()
    assert found is None or 0 < found < 2**60


def test_a_new_task_with_other_columns_is_refused():
    model = DMTRC(3, kernel="linear", lambda1=0.1, sizes="balanced", coupling="full", random_state=0,
                  solver_options={"form": "primal"}).fit(X, tasks=TASKS)  # fmt: skip
    with pytest.raises(ValueError, match=r"X has 2 features, but DMTRC is expecting 3"):
        model.fit_task(np.ones((10, 2)))
