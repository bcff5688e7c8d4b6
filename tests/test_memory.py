"""How much memory there is, and how much a fit is said to need, against what it takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mtclust.util import memory


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """Control groups of our own making."""
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_OWN_GROUPS", tmp_path / "own")

    def make(own, **groups):
        (tmp_path / "own").write_text(own)
        for path, (limit, used, files) in groups.items():
            group = tmp_path.joinpath(*path.split("__"))
            group.mkdir(parents=True, exist_ok=True)
            first = "memory" in path.split("__")[0]
            (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(f"{limit}\n")
            (group / ("memory.usage_in_bytes" if first else "memory.current")).write_text(f"{used}\n")
            prefix = "total_" if first else ""
            (group / "memory.stat").write_text(
                f"anon 5\n{prefix}active_file {files // 2}\n{prefix}inactive_file {files - files // 2}\nshmem 7\n"
            )
        return memory._container_memory()

    return make


def test_files_kept_in_memory_do_not_count_as_used(groups):
    assert groups("0::/job\n", job=(1000, 900, 700)) == 800


def test_the_tightest_of_nested_groups_counts(groups):
    inner_free = groups("0::/slice/job\n", slice=(500, 400, 0), slice__job=("max", 300, 0))
    assert inner_free == 100
    assert groups("0::/slice/job\n", slice=(500, 100, 0), slice__job=(350, 300, 0)) == 50


def test_the_older_version_of_control_groups(groups):
    assert groups("5:cpu:/x\n4:memory:/a/b\n", memory__a=(900, 100, 0), memory__a__b=(2**60, 100, 50)) == 800


@pytest.mark.parametrize("own", ["0::/outside/the/container\n", "0::/\n", ""])
def test_a_container_that_sees_its_own_group_as_the_root(groups, own, tmp_path):
    (tmp_path / "memory.max").write_text("1000")
    (tmp_path / "memory.current").write_text("100")
    (tmp_path / "memory.stat").write_text("inactive_file 30\n")
    assert groups(own) == (930 if own else None)


def test_no_limits_and_no_groups_are_no_limit(groups, tmp_path):
    assert groups("0::/job\n", job=("max", 300, 0)) is None
    (tmp_path / "own").unlink()
    assert memory._container_memory() is None


def test_more_used_than_allowed_is_nothing_left(groups):
    assert groups("0::/job\n", job=(100, 300, 0)) == 0


def case(method, n, d, m, C=3, **options):
    return {"method": method, "n": n, "d": d, "m": m, "C": C, "options": options}


def default(method, n, m):
    """Nothing is given but the number of clusters."""
    return {"method": method, "n": n, "d": 10, "m": m, "C": 3, "options": None}


RBF = {"kernel": "rbf", "width": 1.0}
PEAKS = [
    case("DMTRC", 60_000, 50, 3, kernel="linear"),
    case("DMTRC", 20_000, 400, 4, kernel="linear"),
    case("DMTRC", 1200, 10, 3, kernel="linear"),
    case("DMTRC", 800, 10, 8, kernel="linear", sizes="auto"),
    case("DSTC", 1500, 10, 3, kernel="linear"),
    case("DSTC", 1200, 10, 3, kernel="rbf"),
    case("DMTFC", 1200, 10, 3, kernel="linear"),
    case("DMTRC", 60_000, 40, 3, **RBF),
    case("DMTFC", 60_000, 40, 3, **RBF),
    case("DSTC", 40_000, 40, 2, **RBF),
    case("DSTC", 25_000, 40, 2, **RBF),
    case("DMTRC", 60_000, 40, 3, C=8, **RBF | {"sizes": "auto"}),
]
DEFAULTS = [
    *(default("DMTRC", n, m) for n in (300, 2_000, 20_000) for m in (3, 30)),
    default("DMTRC", 200_000, 3),
    *(default(method, n, m) for method in ("DMTFC", "DSTC") for n, m in ((500, 1), (20_000, 30))),
]


def may_measure():
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")
    except OSError:
        return False
    return True


def measured(cases):
    """What every case is said to need, and the peak that one run of it took."""
    script = Path(__file__).parent / "memory_peaks.py"
    # Dask sets MALLOC_TRIM_THRESHOLD_ in the process that starts its workers, as tests before this one do: memory is
    # then given back sooner, and peaks are up to a tenth lower than those of a process that nobody has tuned
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_TUNABLES"))}
    run = subprocess.run(
        [sys.executable, str(script)], input="\n".join(map(json.dumps, cases)), capture_output=True, text=True,
        env=plain | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}, check=True, timeout=280,
    )  # fmt: skip
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.skipif(not may_measure(), reason="the system does not tell the peak of a process")
@pytest.mark.parametrize("cases", [PEAKS, DEFAULTS], ids=["given", "chosen"])
def test_what_a_fit_is_said_to_need_is_what_it_takes(cases):
    found = zip(cases, measured(cases), strict=True)
    wrong = [(said / took, said, took, each) for each, (said, took) in found if not 1 / 1.3 <= said / took <= 1.3]
    assert wrong == []
