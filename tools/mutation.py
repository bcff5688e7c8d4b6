"""Change the core one operator at a time and see whether a test notices: ``make mutation``.

    python tools/mutation.py [--mutants 120 | --each 16] [--seed 0] [--jobs 2] [--module core/labels.py ...]

Every mutant is a copy of the package with one change; the tests of its module run in a forked process, which has the
heavy imports behind it. A mutant that no test notices survives: it is equivalent, or a test is missing. What was tried
is kept in ``build/mutation.csv`` and not tried again while the function stays as it is, so that an interrupted run goes
on where it was.
"""

import argparse
import contextlib
import csv
import gc
import importlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from module_tests import DOCTESTS, TESTS
from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mtclust"
RECORD = ROOT / "build" / "mutation.csv"
Tests = dict[str, list[list[str]]]
Keep = Callable[[Mutant, str], None]
#: run as Python: compiling a mutant takes longer than its tests
NOT_COMPILED = ("compiled.py",)
HEAVY = ("clarabel", "cvxpy", "joblib", "numba", "pandas", "pytest", "scipy.optimize", "sklearn.cluster",
         "sklearn.feature_extraction.text")  # fmt: skip
#: a mutant hangs if its tests take this many times as long as without it and so many seconds more, of the processor
_PATIENCE, _GRACE = 4, 5
#: or if they wait for so many seconds
_WAITING = 900
_FAILS, _HANGS = 1, 2
OUTCOMES = {0: "survived", _FAILS: "noticed", _HANGS: "hung"}


@dataclass(frozen=True)
class Tried:
    """A row of the record."""

    module: str
    function: str
    line: int
    change: str
    outcome: str
    key: str


def fails(place: Path, module: str, tests: list[str], seconds: int, quick: bool = True) -> int:
    """Run tests on the package in ``place``, in a process of their own: 0 if they pass, else how they do not."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        signal.alarm(_WAITING)
        sys.dont_write_bytecode = quick  # nor that of a mutant for that of the next
        with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            sys.path.insert(0, str(place))
            arguments = [str(place / "mtclust" / module) if test == DOCTESTS else test for test in tests]
            if module in NOT_COMPILED:
                import numba

                numba.config.DISABLE_JIT = True
                arguments += ["-W", "ignore::RuntimeWarning"]  # compiled code does not warn of overflow or ∞ − ∞
            import pytest

            # beside a path outside of the repository its settings would not be found
            settings = ["-c", "pyproject.toml"] if Path("pyproject.toml").exists() else []
            options = [*settings, "--rootdir", ".", "--doctest-modules", "-p", "no:cacheprovider"]
            code = pytest.main(["-x", "-q", *options, *arguments])
            os._exit(0 if code == 0 else _FAILS)
        os._exit(_FAILS)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGALRM, signal.SIGKILL):
        return _HANGS
    return int(status != 0)


def attempt(place: Path, package: Path, mutant: Mutant, tests: list[list[str]], patience: list[int]) -> int:
    """Put a mutant into the copy of a package, run its tests, put the original back."""
    path = place / "mtclust" / mutant.module
    written = path.stat().st_mtime
    path.write_text(mutant.source, encoding="utf-8")
    os.utime(path, (written + 60, written + 60))  # bytecode of the original must not pass for that of the mutant
    outcome = 0
    for some, seconds in zip(tests, patience):
        outcome = fails(place, mutant.module, some, seconds)
        if outcome:
            break
    shutil.copy2(package / mutant.module, path)  # with its time: compiled code of the original stays valid
    return outcome


def run(package: Path, chosen: list[Mutant], tests: Tests, jobs: int, keep: Keep) -> None:
    """Try the mutants, ``jobs`` at a time, each in a copy of the package; ``keep`` gets every one and its outcome."""
    by_module: dict[str, list[Mutant]] = {}
    for mutant in chosen:
        by_module.setdefault(mutant.module, []).append(mutant)
    with tempfile.TemporaryDirectory() as name:
        places = [Path(name) / "0"]
        shutil.copytree(package, places[0] / "mtclust", ignore=shutil.ignore_patterns("__pycache__"))
        needed: dict[frozenset[str], int] = {}
        for module, some in by_module.items():
            patience = unchanged(places[0], module, tests[module], needed)
            for k in range(len(places), jobs):  # after the first tests, with the code that was compiled for them
                places.append(shutil.copytree(places[0], Path(name) / str(k)))
            try_all(package, some, tests[module], patience, places, keep)


def unchanged(place: Path, module: str, tests: list[list[str]], known: dict[frozenset[str], int]) -> list[int]:
    """Run the tests of a module that is not changed; returns after how many seconds each list counts as hanging.

    What is ``known`` of the same tests in whatever order is not measured again.
    """
    patience = []
    for some in tests:
        if frozenset(some) not in known:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            if fails(place, module, some, 3600, quick=False):
                raise SystemExit(f"{module}: its tests fail without any change; mend them first: {some}")
            needed = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            known[frozenset(some)] = int(_PATIENCE * needed) + _GRACE
        patience.append(known[frozenset(some)])
    return patience


def try_all(
    package: Path, some: list[Mutant], tests: list[list[str]], patience: list[int], places: list[Path], keep: Keep
) -> None:
    """Try mutants of one module, as many at a time as there are places."""
    waiting, free = list(reversed(some)), list(places)
    running: dict[int, tuple[Mutant, Path]] = {}
    while waiting or running:
        while waiting and free:
            mutant, place = waiting.pop(), free.pop()
            child = os.fork()
            if child == 0:
                os._exit(attempt(place, package, mutant, tests, patience))
            running[child] = mutant, place
        child, status = os.wait()
        mutant, place = running.pop(child)
        free.append(place)
        keep(mutant, OUTCOMES[os.waitstatus_to_exitcode(status)])


def draw(everything: dict[str, Mutant], given: argparse.Namespace) -> list[Mutant]:
    """The mutants that the options ask for."""
    asked = [mutant for mutant in everything.values() if mutant.module in (given.module or TESTS)]
    if given.each:
        by_module = [[mutant for mutant in asked if mutant.module == module] for module in TESTS]
        return [mutant for some in by_module for mutant in some_of(some, given.each, given.seed)]
    return some_of(asked, given.mutants or len(asked), given.seed)


def some_of(chosen: list[Mutant], n: int, seed: int) -> list[Mutant]:
    return random.Random(seed).sample(chosen, min(n, len(chosen)))  # noqa: S311


class Record:
    """What was tried, kept in a file; rows of functions that have changed since are forgotten."""

    def __init__(self, everything: dict[str, Mutant]) -> None:
        self.rows: dict[str, Tried] = {}
        if RECORD.exists():
            with RECORD.open(encoding="utf-8", newline="") as file:
                tried = [row for row in csv.DictReader(file) if row["key"] in everything]
            self.rows = {row["key"]: Tried(**row | {"line": everything[row["key"]].line}) for row in tried}

    def keep(self, mutant: Mutant, outcome: str) -> None:
        self.rows[mutant.key] = Tried(mutant.module, mutant.function, mutant.line, mutant.change, outcome, mutant.key)
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        with RECORD.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Tried)])
            writer.writerows(astuple(one) for one in self.rows.values())
        if outcome == "survived":
            print(f"survived: {mutant.module}:{mutant.line} {mutant.function}: {mutant.change}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=120, help="how many to draw at random; 0 for all")
    parser.add_argument("--each", type=int, metavar="N", help="draw N of every module instead")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--module", action="append", choices=TESTS, help="core/labels.py, say; all by default")
    given = parser.parse_args()
    os.chdir(ROOT)
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and they take half a second per mutant
    for heavy in HEAVY:
        importlib.import_module(heavy)
    gc.freeze()  # what is imported is shared by all processes and not searched in any

    everything = {mutant.key: mutant for module in TESTS for mutant in mutants(PACKAGE, module)}
    record = Record(everything)
    drawn = draw(everything, given)
    chosen = [mutant for mutant in drawn if mutant.key not in record.rows]
    began = time.monotonic()
    run(PACKAGE, chosen, TESTS, given.jobs, record.keep)
    known = Counter(record.rows[mutant.key].outcome for mutant in drawn)
    seconds = time.monotonic() - began
    print(
        f"{len(drawn)} of {len(everything)} mutants, {len(chosen)} of them tried now in {seconds:.0f} s:",
        f"{known['noticed'] + known['hung']} noticed, {known['survived']} survive",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
