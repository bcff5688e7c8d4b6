"""Interrupted fits, and a cache of compiled code that cannot be used."""

import errno
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import mtclust
from mtclust import DMTFC, DMTRC, DSTC
from mtclust.estimators.base import unchanged_on_failure
from tests.conftest import gaussian_tasks

METHODS = [DMTRC, DMTFC, DSTC]
QUICK = {"kernel": "rbf", "width": 1.0, "lambda1": 0.01, "sizes": "balanced", "n_init": 2, "random_state": 0}


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
# an interrupt between opening a file and using it leaves it to the garbage collector, which says so
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("form", ["dual", "primal"])
@pytest.mark.parametrize("method", METHODS)
def test_interrupts_at_many_moments_leave_the_estimator_as_it_was_and_usable(method, form):
    X, _, tasks = gaussian_tasks(rows=60, spread=1.0)
    options = QUICK | ({"coupling": "full"} if method is DMTRC else {}) | {"solver_options": {"form": form}}
    expected = method(3, **options).fit(X, tasks=tasks).labels_
    armed = False

    def interrupt(_, frame):
        # one that comes when the fit has ended, on the way back from it, interrupts no fit
        while frame is not None and frame.f_code is not inside:
            frame = frame.f_back
        if armed and frame is not None:
            raise KeyboardInterrupt

    inside = unchanged_on_failure(lambda estimator: None).__code__
    before = signal.signal(signal.SIGALRM, interrupt)
    model = method(4, **options)
    interrupted = 0
    try:
        for delay in np.geomspace(2e-4, 0.05, 12):
            unfitted = method(3, **options)
            for estimator, state in ((unfitted, vars(unfitted).copy()), (model, vars(model).copy())):
                armed = True
                try:
                    signal.setitimer(signal.ITIMER_REAL, delay)
                    estimator.fit(X, tasks=tasks)
                    armed = False
                except KeyboardInterrupt:
                    interrupted += 1
                    assert vars(estimator).keys() == state.keys()
                    assert all(vars(estimator)[name] is value for name, value in state.items())
                finally:
                    armed = False
                    signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 0
    np.testing.assert_array_equal(method(3, **options).fit(X, tasks=tasks).labels_, expected)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("no more"), MemoryError])
def test_a_failed_refit_keeps_the_first_fit(error):
    X, _, tasks = gaussian_tasks()
    calls = []

    def kernel(A, B):
        if len(calls) > 0:
            raise error
        return A @ B.T

    model = DSTC(3, **QUICK | {"kernel": kernel}).fit(X, tasks=tasks)
    labels = model.labels_
    calls.append(1)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        model.set_params(n_clusters=2).fit(X[:40, :2], tasks=tasks[:40])
    assert model.labels_ is labels
    assert (model.n_clusters_, model.n_features_in_) == (3, 4)
    calls.clear()
    assert model.predict(X, tasks=tasks).shape == labels.shape


def test_what_a_method_sets_before_it_fails_is_undone():
    class Half:
        @unchanged_on_failure
        def fit(self):
            self.half_ = 1
            raise RuntimeError

    half = Half()
    with pytest.raises(RuntimeError):
        half.fit()
    assert vars(half) == {}


FIT = """
import warnings, numpy as np
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from mtclust import DSTC
    X = np.random.default_rng(0).normal(size=(30, 2))
    for form in ("dual", "primal"):
        DSTC(3, kernel="linear", lambda1=.1, sizes="balanced", n_init=1, solver_options={"form": form}).fit(X)
print("|".join(f"{w.category.__name__}: {w.message}" for w in caught))
"""


def fit_with_package_at(place, **variables):
    """Fit in a new process from a copy of the package without a cache; returns the warnings."""
    shutil.copytree(Path(mtclust.__file__).parent, place / "mtclust", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [place / "mtclust", *(path for path in (place / "mtclust").rglob("*") if path.is_dir())]:
        # a file where the folder should be: not even the superuser can write the cache then
        (folder / "__pycache__").write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    environment |= {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"} | variables
    run = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, cwd=place)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_a_package_that_cannot_be_written_is_compiled_for_the_process(tmp_path):
    nowhere = tmp_path / "file"
    nowhere.write_text("")
    no_cache = {"HOME": str(nowhere / "home"), "XDG_CACHE_HOME": str(nowhere / "cache"), "NUMBA_CACHE_DIR": ""}
    assert fit_with_package_at(tmp_path, **no_cache) == ""


@pytest.fixture
def adder(tmp_path, monkeypatch):
    """A function that imports a compiled one anew, as a new process would."""
    (tmp_path / "adder.py").write_text("from mtclust.core.compiled import njit\n@njit\ndef add(x):\n    return x + 1\n")

    def fresh():
        spec = importlib.util.spec_from_file_location("adder", tmp_path / "adder.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "adder", module)
        spec.loader.exec_module(module)
        return module.add

    return fresh


def test_a_damaged_cache_costs_a_note_and_not_the_result(adder, caplog):
    first = adder()
    assert first(1) == 2
    files = list(Path(first._cache.cache_path).glob("adder*.nb?"))
    assert len(files) == 2
    assert adder()(1) == 2  # from the cache
    for file in files:
        file.write_bytes(b"damaged")
    with caplog.at_level(logging.INFO, logger="mtclust"):
        assert adder()(1) == 2
    assert "numba cannot keep compiled code" in caplog.text


def test_a_full_disk_under_the_cache_costs_a_note_and_not_the_result(adder, monkeypatch, caplog):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
    with caplog.at_level(logging.INFO, logger="mtclust"):
        assert adder()(1) == 2
    assert "No space left on device" in caplog.text
