"""Change the core one operator at a time and see whether a test notices: ``make mutation``.

    python tools/mutation.py [--mutants 120] [--seed 0] [--jobs 2] [--module labels.py ...] [--again]

Every mutant is a copy of the package with one change; the tests of its module run in a forked process, which has the
heavy imports behind it. A mutant that no test notices survives: it is equivalent, or a test is missing. What was tried
is kept in ``results/mutation/mutants.csv`` and not tried again while the module stays as it is, so that an interrupted
run goes on where it was; ``--again`` asks again about survivors without a reason. ``results/mutation/table.md``
counts them and says of every survivor why it does (``reasons.csv`` beside it, written by hand).
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
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from mutants import Mutant, mutants

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mtclust"
RESULTS = ROOT / "results" / "mutation"
#: stands for the doctests of the changed module
DOCTESTS = "doctests"
CORE = "tests/properties/test_property_core.py"
BOUNDS = f"{CORE}::test_bounds_are_feasible_and_say_what_the_rule_says"
ASSIGNMENT = f"{CORE}::test_assignment_is_optimal_within_the_bounds_whatever_the_prices"
EXCHANGE = f"{CORE}::test_exchange_ends_where_no_swap_or_move_lowers_the_objective"
PER_TASK = "tests/test_clusters_per_task.py"
STEPS = ["tests/test_solver_steps.py", "tests/test_coupling.py"]
SEARCH = ["tests/test_exchange_solver.py", "-k", "not number_of_jobs"]
PLANES = "tests/cutting_plane"
#: the tests that know a module: lists that are tried in turn, the quickest first, until one notices
TESTS = {
    "labels.py": [[DOCTESTS, "tests/test_labels.py"], [PER_TASK, "-k", "bounds_move"], [BOUNDS]],
    "assignment.py": [[DOCTESTS, "tests/test_assignment.py", "-k", "not hundred_thousand"], [ASSIGNMENT]],
    "objective.py": [["tests/test_objective.py"]],
    "_compiled.py": [
        ["tests/test_compiled.py"],
        ["tests/test_assignment.py", "-k", "prices or hungarian or unit or integers"],
        [ASSIGNMENT, EXCHANGE],
    ],
    "problem/acceleration.py": [STEPS, SEARCH],
    "relaxation/alternation.py": [[f"{PLANES}/test_alternation.py"], [f"{PLANES}/test_cutting_plane.py", "-k", "two"]],
    "relaxation/certificate.py": [[DOCTESTS, f"{PLANES}/test_certificate.py"], [f"{PLANES}/test_alternation.py"]],
    "relaxation/cutting_plane.py": [
        [f"{PLANES}/test_cutting_plane.py", "-k", "grow or no_cuts or one_cluster or refused or two"],
        [f"{PLANES}/test_cutting_plane.py", "-k", "not two and not symmetric"],
    ],
    "problem/kernel_descent.py": [STEPS, SEARCH, [PER_TASK, "-k", "obeys_the_sizes and balanced"]],
    "search/recipe.py": [STEPS, SEARCH, [PER_TASK, "-k", "obeys_the_sizes and balanced"]],
    "relaxation/level_method.py": [
        [f"{PLANES}/test_level_method.py"],
        [f"{PLANES}/test_cutting_plane.py", "-k", "two"],
    ],
    "problem/pool.py": [["tests/test_objective.py", "tests/test_pool.py"], [EXCHANGE], SEARCH],
    "problem/kernels.py": [STEPS, SEARCH, [f"{PLANES}/test_cutting_plane.py", "-k", "start"]],
    "relaxation/options.py": [
        [DOCTESTS, f"{PLANES}/test_relaxation.py"],
        [f"{PLANES}/test_cutting_plane_estimators.py", "-k", "wrong or keep or solvers"],
    ],
    "relaxation/starts.py": [
        [f"{PLANES}/test_cutting_plane.py", "-k", "start or constant"],
        [f"{PLANES}/test_cutting_plane_estimators.py", "-k", "wrong_options or keep_the_start"],
    ],
}
Tests = dict[str, list[list[str]]]
Keep = Callable[[Mutant, str], None]
#: run as Python: compiling a mutant takes longer than its tests
NOT_COMPILED = ("_compiled.py",)
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

            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--rootdir", ".", *arguments])
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
        for module, some in by_module.items():
            patience = unchanged(places[0], module, tests[module])
            for k in range(len(places), jobs):  # after the first tests, with the code that was compiled for them
                places.append(shutil.copytree(places[0], Path(name) / str(k)))
            try_all(package, some, tests[module], patience, places, keep)


def unchanged(place: Path, module: str, tests: list[list[str]]) -> list[int]:
    """Run the tests of a module that is not changed; returns after how many seconds each list counts as hanging."""
    patience = []
    for some in tests:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if fails(place, module, some, 3600, quick=False):
            raise SystemExit(f"{module}: its tests fail without any change; mend them first: {some}")
        needed = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        patience.append(int(_PATIENCE * needed) + _GRACE)
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


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_reasons() -> dict[tuple[str, str, str], str]:
    """Why survivors survive, by module, function and change."""
    return {(row["module"], row["function"], row["change"]): row["reason"] for row in read(RESULTS / "reasons.csv")}


def commit() -> str:
    """What is checked out, where git knows it."""
    git = shutil.which("git")
    command = [git or "git", "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False) if git else None
    return found.stdout.strip() if found and found.returncode == 0 else "unknown"


def table(tried: list[Tried], n_mutants: Counter[str], at: str) -> str:
    """Counts by module, and every survivor with its reason."""
    reasons = read_reasons()
    outcomes = Counter((one.module, one.outcome) for one in tried)
    lines = [
        f"Commit {at}; `python tools/mutation.py --mutants 0 --jobs 2`, or `--mutants N --seed S` for some at random."
        " What stands here is not tried again while its module stays as it is.", "",
        "A mutant that hangs counts as noticed. `_compiled.py` is run as Python; it holds the loops of assignment and "
        "exchange. The survivors' reasons are written by hand (`reasons.csv`).", "",
        "| module | mutants | tried | noticed | of these hung | survive |", "|---|--:|--:|--:|--:|--:|",
    ]  # fmt: skip

    def count(name: str, modules: list[str]) -> str:
        survived, noticed, hung = (sum(outcomes[m, o] for m in modules) for o in ("survived", "noticed", "hung"))
        total = sum(n_mutants[m] for m in modules)
        return f"| {name} | {total} | {survived + noticed + hung} | {noticed + hung} | {hung} | {survived} |"

    lines += [*(count(f"`{module}`", [module]) for module in TESTS), count("all", list(TESTS))]
    lines += ["", "| survivor | change | why no test notices it |", "|---|---|---|"]
    for one in tried:
        if one.outcome == "survived":
            change = one.change.replace("|", "\\|").split("  ->  ")
            reason = reasons.get((one.module, one.function, one.change), "**not looked at**")
            where = f"{one.module}:{one.line} {one.function}".strip()
            lines.append(f"| {where} | `{change[0]}` → `{'→'.join(change[1:])}` | {reason} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=120, help="how many to draw at random; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--module", action="append", choices=TESTS, help="e.g. labels.py; all of the core by default")
    parser.add_argument("--again", action="store_true", help="ask again about survivors without a reason")
    given = parser.parse_args()
    os.chdir(ROOT)
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(threads, "1")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none is needed, and they take half a second per mutant
    for heavy in HEAVY:
        importlib.import_module(heavy)
    gc.freeze()  # what is imported is shared by all processes and not searched in any

    everything = {mutant.key: mutant for module in TESTS for mutant in mutants(PACKAGE, module)}
    record = {
        row["key"]: Tried(row["module"], row["function"], int(row["line"]), row["change"], row["outcome"], row["key"])
        for row in read(RESULTS / "mutants.csv")
        if row["key"] in everything
    }
    drawn = [mutant for mutant in everything.values() if mutant.module in (given.module or TESTS)]
    if given.mutants:
        drawn = random.Random(given.seed).sample(drawn, min(given.mutants, len(drawn)))  # noqa: S311
    reasons = read_reasons()
    chosen = [
        mutant
        for mutant in drawn
        if mutant.key not in record
        or (given.again and record[mutant.key].outcome == "survived" and mutant.place not in reasons)
    ]
    order = {key: k for k, key in enumerate(everything)}
    began, at = time.monotonic(), commit()

    def write() -> None:
        rows = sorted(record.values(), key=lambda one: order[one.key])
        RESULTS.mkdir(parents=True, exist_ok=True)
        with (RESULTS / "mutants.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Tried)])
            writer.writerows(astuple(one) for one in rows)
        n_mutants = Counter(mutant.module for mutant in everything.values())
        (RESULTS / "table.md").write_text(table(rows, n_mutants, at), encoding="utf-8")

    def keep(mutant: Mutant, outcome: str) -> None:
        record[mutant.key] = Tried(mutant.module, mutant.function, mutant.line, mutant.change, outcome, mutant.key)
        write()
        if outcome == "survived":
            print(f"survived: {mutant.module}:{mutant.line} {mutant.function}: {mutant.change}", flush=True)

    run(PACKAGE, chosen, TESTS, given.jobs, keep)
    write()
    known = Counter(record[mutant.key].outcome for mutant in drawn)
    seconds = time.monotonic() - began
    print(
        f"{len(drawn)} of {len(everything)} mutants, {len(chosen)} of them tried now in {seconds:.0f} s:",
        f"{known['noticed'] + known['hung']} noticed, {known['survived']} survive",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
