"""Change the core one operator at a time and see whether a test notices: ``make mutation``.

    python tools/mutation.py [--mutants 120] [--seed 0] [--module labels ...]

Every mutant is a copy of the package with one change; the tests of its module run in a forked process, which has the
heavy imports behind it. A mutant that no test notices survives and is printed as a line to look at.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "mtclust"
CORE = "tests/properties/test_property_core.py"
BOUNDS = f"{CORE}::test_bounds_are_feasible_and_say_what_the_rule_says"
ASSIGNMENT = f"{CORE}::test_assignment_is_optimal_within_the_bounds_whatever_the_prices"
EXCHANGE = f"{CORE}::test_exchange_ends_where_no_swap_or_move_lowers_the_objective"
#: the tests that know a module; the first list is quick, the second is asked about those that survive it
TESTS = {
    "labels.py": (["tests/test_labels.py"], ["tests/test_error_messages.py", BOUNDS]),
    "assignment.py": (["tests/test_assignment.py"], [ASSIGNMENT]),
    "objective.py": (["tests/test_objective.py"], []),
    "solvers/pool.py": ([EXCHANGE], ["tests/test_exchange_solver.py"]),
    "solvers/descent.py": (["tests/test_exchange_solver.py"], ["tests/test_clusters_per_task.py"]),
    "solvers/exchange.py": (["tests/test_exchange_solver.py"], ["tests/test_clusters_per_task.py"]),
    "solvers/acceleration.py": (["tests/test_exchange_solver.py"], ["tests/test_coupling.py"]),
}
#: seconds for the tests of one mutant; one that hangs is noticed
_PATIENCE = 300
_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
_NAMES = {"min": "max", "max": "min", "maximum": "minimum", "minimum": "maximum", "floor": "ceil", "ceil": "floor"}


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing changed, or None."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in _COMPARISONS:
        new.ops[0] = _COMPARISONS[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp | ast.AugAssign) and type(new.op) in _OPERATORS:
        new.op = _OPERATORS[type(new.op)]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        return new.operand
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float, bool):
        new.value = (not new.value) if isinstance(new.value, bool) else new.value + 1
    elif isinstance(new, ast.Attribute) and new.attr in _NAMES:
        new.attr = _NAMES[new.attr]
    elif isinstance(new, ast.Name) and new.id in _NAMES:
        new.id = _NAMES[new.id]
    elif isinstance(new, ast.Break):
        return ast.Pass()
    else:
        return None
    return new


class _Replace(ast.NodeTransformer):
    """Puts a node in the place of another for as long as the source is written."""

    def __init__(self, target: ast.AST, replacement: ast.AST) -> None:
        self.target, self.replacement = target, replacement

    def visit(self, node: ast.AST) -> ast.AST:
        return self.replacement if node is self.target else super().visit(node)


def mutants(path: Path) -> list[tuple[int, str, str]]:
    """Line, description and source of every mutant of a module; annotations and messages are left alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        parts = [node] if isinstance(node, ast.Raise | ast.AnnAssign) else []
        if isinstance(node, ast.FunctionDef):
            parts += [part for part in (node.returns, *(argument.annotation for argument in node.args.args)) if part]
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("NDArray", "list")
        ):
            parts.append(node)
        for part in parts:
            skipped |= set(ast.walk(part))
    result = []
    for node in list(ast.walk(tree)):
        new = None if node in skipped else changed(node)
        if new is not None:
            words = f"{ast.unparse(node)}  ->  {ast.unparse(new)}"
            ast.copy_location(new, node)
            mutated = ast.unparse(ast.fix_missing_locations(_Replace(node, new).visit(tree)))
            result.append((node.lineno, words, mutated))  # type: ignore[attr-defined]
            _Replace(new, node).visit(tree)
    return result


def run_tests(package_parent: Path, tests: list[str]) -> bool:
    """Whether the tests of a changed package fail."""
    child = os.fork()
    if child == 0:
        signal.alarm(_PATIENCE)
        with contextlib.suppress(BaseException), open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            sys.path.insert(0, str(package_parent))
            import pytest

            code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests])
            os._exit(0 if code == 0 else 1)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    return status != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=120, help="how many to try; 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="append", help="e.g. labels.py; all of the core by default")
    given = parser.parse_args()
    os.chdir(ROOT)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for heavy in ("numba", "pandas", "pytest", "scipy.optimize", "sklearn.cluster"):
        importlib.import_module(heavy)

    everything = [(name, *mutant) for name in given.module or TESTS for mutant in mutants(PACKAGE / name)]
    chosen = random.Random(given.seed).sample(everything, min(given.mutants or len(everything), len(everything)))  # noqa: S311
    began, survivors = time.monotonic(), []
    with tempfile.TemporaryDirectory() as place:
        copied = Path(place) / "mtclust"
        shutil.copytree(PACKAGE, copied)
        for name in sorted({name for name, *_ in chosen}):
            if run_tests(Path(place), [*TESTS[name][0], *TESTS[name][1]]):
                print(f"{name}: its tests fail without any change; mend them first", file=sys.stderr)
                return 1
        for name, line, what, source in sorted(chosen):
            original = (copied / name).read_text(encoding="utf-8")
            (copied / name).write_text(source, encoding="utf-8")
            noticed = any(run_tests(Path(place), tests) for tests in TESTS[name])
            (copied / name).write_text(original, encoding="utf-8")
            if not noticed:
                survivors.append((name, line))
                print(f"survived: {name}:{line}: {what}", flush=True)
    noticed = len(chosen) - len(survivors)
    print(f"{len(chosen)} of {len(everything)} mutants tried in {time.monotonic() - began:.0f} s, {noticed} noticed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
