"""Fits and predictions in several threads at once: the same results, and BLAS has its threads back afterwards."""

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.util.system import one_blas_thread
from tests.conftest import gaussian_tasks

X, _, TASKS = gaussian_tasks(rows=12)


CONTROLLER = ThreadpoolController()


def blas_threads():
    return {library.num_threads for library in CONTROLLER.lib_controllers if library.user_api == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(limits=2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("BLAS has one thread only")
        yield


def test_overlapping_contexts_leave_the_number_of_threads_as_it_was(two_threads):
    """The first to enter is the first to leave: the second still computes with one thread."""
    entered, left = threading.Event(), threading.Event()
    seen = []

    def second():
        with one_blas_thread():
            entered.set()
            left.wait()
            seen.append(blas_threads())

    thread = threading.Thread(target=second)
    with one_blas_thread():
        thread.start()
        entered.wait()
        assert blas_threads() == {1}
    left.set()
    thread.join()
    assert seen == [{1}]
    assert blas_threads() == {2}


def test_contexts_within_each_other_and_errors_in_them_are_left_as_they_were_entered(two_threads):
    with one_blas_thread():
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            1 / 0  # noqa: B018
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_concurrent_fits_and_predictions_are_those_of_one_after_the_other(two_threads):
    quick = {"kernel": "linear", "lambda1": 0.1, "sizes": "balanced", "n_init": 1}
    primal = {"solver_options": {"form": "primal"}}
    estimators = [DMTRC(3, **quick), DMTFC(3, **quick), DSTC(3, **quick), DMTRC(3, **quick, **primal)]

    def fit(estimator):
        return type(estimator)(**estimator.get_params()).set_params(random_state=0).fit(X, tasks=TASKS)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [fit(estimator) for estimator in estimators]
        scores = [model.decision_function(X, tasks=TASKS) for model in expected]
        with ThreadPoolExecutor(8) as pool:
            models = [pool.submit(fit, estimator) for estimator in estimators]
            predicted = [pool.submit(expected[k % 4].decision_function, X, tasks=TASKS) for k in range(50)]
            models = [found.result() for found in models]
    for found, model in zip(models, expected):
        np.testing.assert_array_equal(found.labels_, model.labels_)
        assert found.objective_ == model.objective_
    for k, found in enumerate(predicted):
        np.testing.assert_array_equal(found.result(), scores[k % 4])
    assert blas_threads() == {2}
