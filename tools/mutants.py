"""Changed copies of a module, one operator, number or statement at a time; :mod:`mutation` tries them."""

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
_NAMES = {"min": "max", "max": "min", "maximum": "minimum", "minimum": "maximum", "floor": "ceil", "ceil": "floor"}


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    module: str
    line: int
    function: str
    change: str
    source: str  # of the whole module
    changed: str  # the function, class or statement that the change is in, with the change

    @property
    def key(self) -> str:
        """The same as long as the function (class, statement) and the change are the same."""
        return hashlib.sha256(f"{self.module}\n{self.change}\n{self.changed}".encode()).hexdigest()[:12]


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
                result.append(Mutant(module, node.lineno, function, change, source, changed))  # type: ignore[attr-defined]
                _Replace(new, node).visit(statement)
    return result
