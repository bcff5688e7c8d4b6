"""How much memory there is, and clear errors before and after it is too little."""

import tracemalloc

import numpy as np
import pytest

from mtclust import DMTFC, DMTRC, DSTC
from mtclust.util import system


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups of our own making."""
    monkeypatch.setattr(system, "_GROUPS", tmp_path)
    monkeypatch.setattr(system, "_OWN_GROUP", tmp_path / "own")

    def make(own, **groups):
        (tmp_path / "own").write_text(own)
        for path, (limit, used, files) in groups.items():
            group = tmp_path.joinpath(*path.split("__"))
            group.mkdir(parents=True, exist_ok=True)
            (group / "memory.max").write_text(f"{limit}\n")
            (group / "memory.current").write_text(f"{used}\n")
            (group / "memory.stat").write_text(
                f"anon 5\nactive_file {files // 2}\ninactive_file {files - files // 2}\n"
            )
        return system.available_memory()

    return make


def test_files_kept_in_memory_do_not_count_as_used(groups):
    assert groups("0::/job\n", job=(1000, 900, 700)) == 800


def test_the_tightest_of_nested_groups_counts(groups):
    inner_free = groups("0::/slice/job\n", slice=(500, 400, 0), slice__job=("max", 300, 0))
    assert inner_free == 100
    assert groups("0::/slice/job\n", slice=(500, 100, 0), slice__job=(350, 300, 0)) == 50


@pytest.mark.parametrize("own", ["0::/outside/the/container\n", "0::/\n"])
def test_a_container_that_sees_its_own_group_as_the_root(groups, own, tmp_path):
    (tmp_path / "memory.max").write_text("1000")
    (tmp_path / "memory.current").write_text("100")
    (tmp_path / "memory.stat").write_text("inactive_file 30\n")
    assert groups(own) == 930


def test_no_limits_and_no_groups_are_no_limit(groups, tmp_path):
    assert groups("0::/job\n", job=("max", 300, 0)) > 10**6  # what the system has
    (tmp_path / "own").unlink()
    assert system.available_memory() > 10**6


def test_more_used_than_allowed_is_nothing_left(groups):
    assert groups("0::/job\n", job=(100, 300, 0)) == 0


@pytest.mark.parametrize("method", [DMTRC, DMTFC, DSTC])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_fit_is_refused_that_would_take_less_than_it_is_said_to(method, kernel):
    """What a fit with kernel matrices is said to need at least, against the peak of what it takes."""
    n = 400
    X = np.random.default_rng(0).normal(size=(n, 5)) + 9 * np.eye(5)[np.arange(n) // 3 % 3]
    given = {"kernel": kernel, "lambda1": 0.1, "sizes": "balanced", "n_init": 1, "random_state": 0}
    model = method(3, solver_options={"form": "dual"}, **given | ({"width": 1.0} if kernel == "rbf" else {}))
    tracemalloc.start()
    try:
        model.fit(X, tasks=np.arange(n) % 3)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak >= 8 * system.KERNEL_MATRICES * n**2


def test_running_out_of_memory_names_the_fit_and_what_takes_less():
    def greedy(A, B):
        return np.empty((2**30, 2**20))  # more than any machine has

    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(
        MemoryError, match=r"fit of 40 rows in 2 tasks ran out of memory.*Unable to allocate.*fewer rows"
    ):
        DMTRC(2, kernel=greedy).fit(X, tasks=np.arange(40) % 2)


def test_an_error_of_our_own_is_left_as_it_is(monkeypatch):
    monkeypatch.setattr(system, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError) as caught, system.memory_named("a fit"):
        system.require_kernel_memory(100)
    assert str(caught.value) == (
        "fit with kernel matrices of 100 rows needs at least 0.00024 GB, but only 1e-06 GB of memory are available. "
        'Use fewer rows or, with rows to make features of, solver_options={"form": "primal"}.'
    )
