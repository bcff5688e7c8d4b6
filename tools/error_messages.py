"""Print every message the library raises, by module, as the page ``docs/errors.md``; read from the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "mtclust"


def text_of(node: ast.expr) -> str:
    """A message as written, with what is filled in between {…}; empty where it is made elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"  # type: ignore[attr-defined]
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return text_of(node.left) + text_of(node.right)
    return ""


def messages(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, exception and message of every ``raise`` of a module that says something."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            message = text_of(node.exc.args[0])
            if message:
                yield node.lineno, ast.unparse(node.exc.func).split(".")[-1], message


def page() -> str:
    """The whole page."""
    lines = [
        "# Error messages",
        "",
        "Every error the library raises itself, by module; {…} is filled in. An error names the argument, what was",
        "given, what is allowed and, where there is one, the way out.",
    ]
    for path in sorted(SOURCE.rglob("*.py")):
        found = sorted(messages(path))
        if found:
            lines += ["", f"## `{path.relative_to(SOURCE).as_posix()}`", ""]
            lines += [f"- {kind}: `` {message} ``" for _, kind, message in found]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
