"""Set-up of the tests of the cutting-plane solver."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    # small matrices: threads only get in each other's way, and sums come out in the same order everywhere
    with threadpool_limits(1):
        yield
