"""Print the errors and warnings that no test provokes; exit status 1 if there are any.

python tools/error_messages.py DIR    DIR holds what ``make messages`` noted; messages are read from the source
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "mtclust"
#: calls that warn
_WARNING = ("warn", "warn_user")


class Message(NamedTuple):
    """A message, where it is in the source (first and last line), and the error or warning that carries it."""

    line: int
    kind: str
    text: str
    end: int


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
        return text_of(node.left) + (text_of(node.right) or "{" + ast.unparse(node.right) + "}")
    return ""


def messages(path: Path, *, made_elsewhere: bool = False) -> Iterator[Message]:
    """Every ``raise`` of a module that says something; also those whose text a function makes, if asked for."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = text_of(node.exc.args[0])
            if not text and made_elsewhere:
                text = "{" + ast.unparse(node.exc.args[0]) + "}"
            if text:
                yield Message(node.lineno, ast.unparse(node.exc.func).split(".")[-1], text, node.end_lineno or 0)


def warnings_of(path: Path) -> Iterator[Message]:
    """Every warning of a module."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _WARNING and len(node.args) > 1:
            text = text_of(node.args[0]) or "{" + ast.unparse(node.args[0]) + "}"
            yield Message(node.lineno, ast.unparse(node.args[1]), text, node.end_lineno or 0)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _pattern(text: str) -> re.Pattern[str]:
    """What a message looks like once it is filled in; nothing where all of it is."""
    parts = [re.escape(part) for part in re.split(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", text)]
    return re.compile(".*".join(parts), flags=re.DOTALL)


def untested(noted: Path) -> tuple[list[str], int]:
    """The messages that no test provokes, and how many there are in all."""
    raised: dict[str, set[int]] = {}
    warned: set[str] = set()
    for file in noted.glob("*.json"):
        found = json.loads(file.read_text(encoding="utf-8"))
        warned.update(found["warned"])
        for module, line in found["raised"]:
            raised.setdefault(module, set()).add(line)
    missing, total = [], 0
    for path in sorted(SOURCE.rglob("*.py")):
        module = path.relative_to(SOURCE).as_posix()
        for message in sorted(messages(path, made_elsewhere=True)):
            total += 1
            if not raised.get(module, set()).intersection(range(message.line, message.end + 1)):
                missing.append(f"{module}:{message.line}: {message.kind}: {message.text}")
        for message in sorted(warnings_of(path)):
            total += 1
            if not any(_pattern(message.text).fullmatch(text) for text in warned):
                missing.append(f"{module}:{message.line}: {message.kind}: {message.text}")
    return missing, total


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("noted", type=Path, metavar="DIR", help="what the tests noted")
    missing, total = untested(parser.parse_args().noted)
    print("\n".join([*missing, f"{total - len(missing)} of {total} messages are provoked by a test"]))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
