"""Data for the tests of the reference methods."""

import os

import numpy as np
import pytest
from reference_helpers import separated_tasks
from threadpoolctl import threadpool_limits

from mtclust.datasets import load_digits_tasks
from paper.datasets import fetch_pendigits_tasks


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # small matrices: threads only get in each other's way, and sums come out in the same order everywhere
    with threadpool_limits(1):
        yield


@pytest.fixture
def separated():
    return separated_tasks()


@pytest.fixture
def noise():
    """Rows without any clusters: where a careless step would show."""
    rng = np.random.default_rng(1)
    return rng.normal(size=(90, 6)), np.repeat([0, 1, 2], [40, 30, 20])


@pytest.fixture(params=["noise", "digits", "pendigits"])
def rows_and_tasks(request, noise):
    """Random and real data: the digits that come with scikit-learn, and pendigits where it is available."""
    if request.param == "noise":
        return noise
    if request.param == "digits":
        digits = load_digits_tasks()
        return digits.data / 16.0, digits.tasks
    if "MTCLUST_DATA" not in os.environ:
        pytest.skip("MTCLUST_DATA is not set: no pendigits")
    pendigits = fetch_pendigits_tasks(job=1, seed=0)
    return pendigits.data, pendigits.tasks
