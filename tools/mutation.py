"""Change the core one operator at a time and see whether a test notices: ``make mutation``.

    python tools/mutation.py [--mutants 120] [--seed 0] [--jobs 2] [--module core/labels.py ...]

Every mutant is a copy of the package with one change: an operator, a number or a statement. A module of the core rooms
is tried with its doctests and the test files that bear its name (``core/labels.py``: ``tests/test_labels.py``), then
with the tests of ``make quick``. A mutant that no test notices survives: it is equivalent, or a test is missing. What
was tried is kept in ``build/mutation.csv`` and not tried again while the function stays as it is, so that an
interrupted run goes on where it was.
"""

import argparse
import ast
import copy
import csv
import hashlib
import os
import queue
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE, RECORD = ROOT / "src" / "mtclust", ROOT / "build" / "mutation.csv"
#: rooms whose modules are changed
ROOMS = ("core", "rows", "search", "choose", "relaxation")
#: stands for the doctests of the changed module
DOCTESTS = "doctests"
#: run as Python: compiling a mutant takes longer than its tests
NOT_COMPILED = ("compiled.py",)
#: a mutant hangs if its tests take this many times as long as without it and so many seconds more, of the processor
_PATIENCE, _GRACE = 4, 5

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
_NAMES = {"min": "max", "max": "min", "maximum": "minimum", "minimum": "maximum", "floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """One change of a module; the key is the same as long as the function (class, statement) and the change are."""

    module: str
    line: int
    function: str
    change: str
    key: str
    source: str  # of the whole module


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """The node with one thing changed, in every way we know."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            if type(operator) in _COMPARISONS:
                new = copy.deepcopy(node)
                new.ops[k] = _COMPARISONS[type(operator)]()
                yield new
        return
    new = copy.deepcopy(node)
    if isinstance(new, ast.BinOp | ast.AugAssign) and type(new.op) in _OPERATORS:
        new.op = _OPERATORS[type(new.op)]()
        yield new
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
        yield new
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        yield new.operand
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float, bool):
        new.value = (not new.value) if isinstance(new.value, bool) else new.value + 1
        yield new
    elif isinstance(new, ast.Attribute) and new.attr in _NAMES:
        new.attr = _NAMES[new.attr]
        yield new
    elif isinstance(new, ast.Name) and new.id in _NAMES:
        new.id = _NAMES[new.id]
        yield new
    elif isinstance(new, ast.Break | ast.Continue) or (isinstance(new, ast.Expr) and isinstance(new.value, ast.Call)):
        yield ast.Pass()


def _left_alone(tree: ast.AST) -> set[ast.AST]:
    """Decorators, annotations, what errors say and numpy's generic types."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = [node] if isinstance(node, ast.Raise) else []
        if isinstance(node, ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            parts += [node.returns, *(argument.annotation for argument in arguments)]
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("NDArray", "list")
        ):
            parts.append(node)
        for part in parts:
            if part is not None:
                skipped |= set(ast.walk(part))
    return skipped


class _Replace(ast.NodeTransformer):
    """Puts a node in the place of another for as long as the source is written."""

    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self.target, self.replacement = target, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self.replacement if node is self.target else super().visit(node)


def _functions(tree: ast.AST) -> dict[ast.AST, str]:
    """The innermost function every node belongs to."""
    names: dict[ast.AST, str] = {}
    for function in ast.walk(tree):  # outer functions come first
        if isinstance(function, ast.FunctionDef):
            names |= dict.fromkeys(ast.walk(function), function.name)
    return names


def mutants(package: Path, module: str) -> list[Mutant]:
    """Every mutant of a module of a package."""
    tree = ast.parse((package / module).read_text(encoding="utf-8"))
    skipped, functions = _left_alone(tree), _functions(tree)
    written = [ast.unparse(statement) for statement in tree.body]
    seen: Counter[tuple[str, str]] = Counter()
    result = []
    for k, statement in enumerate(tree.body):
        for node in list(ast.walk(statement)):
            if node in skipped:
                continue
            for new in changes(node):
                function, change = functions.get(node, ""), f"{ast.unparse(node)}  ->  {ast.unparse(new)}"
                seen[function, change] += 1
                if seen[function, change] > 1:
                    change += f"  ({seen[function, change]}.)"
                ast.copy_location(new, node)
                changed = ast.unparse(ast.fix_missing_locations(_Replace(node, new).visit(statement)))
                source = "\n".join([*written[:k], changed, *written[k + 1 :]])
                key = hashlib.sha256(f"{module}\n{change}\n{changed}".encode()).hexdigest()[:12]
                result.append(Mutant(module, node.lineno, function, change, key, source))  # type: ignore[attr-defined]
                _Replace(new, node).visit(statement)
    return result


def tests_of(module: str) -> list[list[str]]:
    """Lists of tests that are tried in turn, the quickest first, until one notices."""
    name = Path(module).stem.strip("_")
    found = sorted((ROOT / "tests").rglob(f"test_*{name}*.py"), key=lambda path: (len(path.name), path))
    files = [path.relative_to(ROOT).as_posix() for path in found]
    doctests = [DOCTESTS] if ">>> " in (PACKAGE / module).read_text(encoding="utf-8") else []
    return [*([[*doctests, *files]] if doctests or files else []), ["tests", "-m", "quick"]]


def outcome_of(place: Path, module: str, tests: list[str], seconds: int) -> str:
    """Run tests on the package in ``place`` for so many seconds of the processor at most."""
    arguments = [str(place / "mtclust" / module) if test == DOCTESTS else test for test in tests]
    added = {"PYTHONPATH": f"{place}{os.pathsep}.", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    if Path(module).name in NOT_COMPILED:
        added["NUMBA_DISABLE_JIT"] = "1"
        arguments += ["-W", "ignore::RuntimeWarning"]  # compiled code does not warn of overflow or ∞ − ∞
    # beside a path outside of the repository its settings would not be found
    settings = ["-c", "pyproject.toml"] if Path("pyproject.toml").exists() else []
    options = [*settings, "--rootdir", ".", "--doctest-modules", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", *options, *arguments], check=False, capture_output=True,
        env=os.environ | added, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1)),
    )  # fmt: skip
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return "hung"
    return "noticed" if done.returncode else "survived"


def patience_with(place: Path, module: str, tests: list[list[str]]) -> list[int]:
    """After how many seconds each list of tests counts as hanging."""
    patience = []
    for some in tests:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if outcome_of(place, module, some, 3600) != "survived":
            raise SystemExit(f"{module}: its tests fail without any change; mend them first: {some}")
        spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        patience.append(int(_PATIENCE * spent) + _GRACE)
    return patience


def tried(module: str, some: list[Mutant], tests: list[list[str]], jobs: int) -> Iterator[tuple[Mutant, str]]:
    """Try the mutants of a module, ``jobs`` at a time, each in a copy of the package."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        places = [Path(name) / str(k) for k in range(jobs)]
        shutil.copytree(PACKAGE, places[0] / "mtclust", ignore=shutil.ignore_patterns("__pycache__"))
        patience = patience_with(places[0], module, tests)
        free: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for place in places:  # with the code that was compiled for the first tests
            if not place.exists():
                shutil.copytree(places[0], place)
            free.put(place)

        def attempt(mutant: Mutant) -> tuple[Mutant, str]:
            place = free.get()
            (place / "mtclust" / module).write_text(mutant.source, encoding="utf-8")
            outcomes = (outcome_of(place, module, own, seconds) for own, seconds in zip(tests, patience))
            outcome = next((found for found in outcomes if found != "survived"), "survived")
            shutil.copy2(PACKAGE / module, place / "mtclust" / module)
            free.put(place)
            return mutant, outcome

        yield from pool.map(attempt, some)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=120, help="how many to draw at random; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--module", action="append", help="core/labels.py, say; all by default")
    given = parser.parse_args()
    os.chdir(ROOT)
    files = sorted(path for room in ROOMS for path in (PACKAGE / room).glob("*.py") if path.name != "__init__.py")
    names = given.module or [path.relative_to(PACKAGE).as_posix() for path in files]
    everything = {mutant.key: mutant for module in names for mutant in mutants(PACKAGE, module)}
    drawn = random.Random(given.seed).sample(list(everything), min(given.mutants or 10**9, len(everything)))  # noqa: S311
    known: dict[str, str] = {}
    if RECORD.exists():
        with RECORD.open(encoding="utf-8", newline="") as file:
            known = {row["key"]: row["outcome"] for row in csv.DictReader(file)}
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    began, chosen = time.monotonic(), [everything[key] for key in drawn if key not in known]
    with RECORD.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not RECORD.stat().st_size:
            writer.writerow(["module", "function", "line", "change", "outcome", "key"])
        for module in dict.fromkeys(mutant.module for mutant in chosen):
            mine = [mutant for mutant in chosen if mutant.module == module]
            for mutant, outcome in tried(module, mine, tests_of(module), given.jobs):
                known[mutant.key] = outcome
                writer.writerow([module, mutant.function, mutant.line, mutant.change, outcome, mutant.key])
                file.flush()
                if outcome == "survived":
                    print(f"survived: {module}:{mutant.line} {mutant.function}: {mutant.change}", flush=True)
    found = Counter(known[key] for key in drawn)
    print(
        f"{len(drawn)} of {len(everything)} mutants, {len(chosen)} of them tried now in "
        f"{time.monotonic() - began:.0f} s: {found['noticed'] + found['hung']} noticed, {found['survived']} survive",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
